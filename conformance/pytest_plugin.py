"""The suite as a pytest plugin: ``pytest --pyargs conformance.suite --device air -k softmax -n 2``.

It is loaded wherever the package is installed, so it imports nothing until a test of the suite is collected, and its
options are named ``--conformance-device`` and so on. The short names ``--device``, ``--build``, ``--examples``,
``--seed`` and ``--no-known`` exist only where ``conformance.suite`` is asked for and nobody else has them.
"""

from __future__ import annotations

from argparse import ArgumentError
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from conformance.effort import EXAMPLES

if TYPE_CHECKING:
    from conformance.jobs import Bench, Settings

_UNIT = "conformance_unit"
_OPTIONS: dict[str, dict[str, Any]] = {
    "device": {"metavar": "D", "help": "device under test of conformance.suite (default: mps or air)"},
    "build": {"metavar": "V|PATH", "help": "whose kernels conformance.suite judges (air only)"},
    "examples": {
        "type": int,
        "default": EXAMPLES,
        "metavar": "N",
        "help": "cases that conformance.suite draws a property",
    },
    "seed": {"type": int, "default": 0, "metavar": "S", "help": "seed of conformance.suite"},
    "no-known": {"action": "store_true", "help": "conformance.suite judges as if no failures were known"},
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of ``conformance run`` that make sense here, under names that nobody else has."""
    group = _group(parser)
    for name, described in _OPTIONS.items():
        group.addoption(f"--conformance-{name}", dest=_destination(name), **described)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(args: list[str], parser: pytest.Parser) -> Generator[None]:
    """Add the short names if the suite is asked for, after all others have added theirs."""
    yield
    if not any("conformance.suite" in argument for argument in args):
        return
    for name, described in _OPTIONS.items():
        try:
            _group(parser).addoption(f"--{name}", dest=_destination(name), **described)
        except (ValueError, ArgumentError):  # another plugin has the name
            continue


def _group(parser: pytest.Parser) -> pytest.OptionGroup:
    return parser.getgroup("conformance", "conformance of PyTorch's Metal ops (conformance.suite)")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give the suite's test one parameter a unit of the plan."""
    if _UNIT not in metafunc.fixturenames:
        return
    from conformance.plan import Selection, plan

    bench = _bench(metafunc.config)
    units = plan(list(bench.ops.values()), Selection(), bench.known)
    metafunc.parametrize(_UNIT, units, ids=[unit.name for unit in units])


@pytest.fixture(scope="session")
def conformance_bench(pytestconfig: pytest.Config) -> Bench:
    """Give the device with the ops and known failures of its build."""
    return _bench(pytestconfig)


_BENCH = pytest.StashKey[Any]()


def _bench(config: pytest.Config) -> Bench:
    """Make the bench of this process, once.

    Raises
    ------
    pytest.UsageError
        If an option is wrong, or the device or build cannot be had.
    """
    from conformance.devices.base import Unavailable
    from conformance.errors import UsageError
    from conformance.jobs import Bench

    if _BENCH not in config.stash:
        try:
            config.stash[_BENCH] = Bench(_settings(config))
        except (UsageError, Unavailable) as error:
            raise pytest.UsageError(str(error)) from None
    bench: Bench = config.stash[_BENCH]
    return bench


def _settings(config: pytest.Config) -> Settings:
    from conformance.devices import default_name
    from conformance.engine import Effort
    from conformance.errors import UsageError
    from conformance.jobs import Settings

    options = {name: config.getoption(_destination(name)) for name in _OPTIONS}
    if options["examples"] < 1:
        raise UsageError.of("--examples", options["examples"], "integers from 1")
    effort = Effort(options["examples"], options["seed"])
    return Settings(options["device"] or default_name(), options["build"], effort, not options["no-known"])


def _destination(name: str) -> str:
    return "conformance_" + name.replace("-", "_")
