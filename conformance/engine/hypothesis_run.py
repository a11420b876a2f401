"""Run a check over drawn cases, reproducibly: the same seed and versions give the same cases in any process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.case import Case


def explore(strategy: SearchStrategy[Case], check: Callable[[Case], None], *, examples: int, seed: int) -> None:
    """Call ``check`` with up to ``examples`` cases and, once it raises, with ever simpler ones.

    Whatever ``check`` raised last, for each class of exception, was raised by the simplest case found. Returns
    normally whether or not a check failed.
    """
    import hypothesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis.errors import Flaky

    from conformance.findings import Failing

    @hypothesis.seed(seed)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        report_multiple_bugs=True,
    )
    @given(strategy)
    def body(case: Case) -> None:
        check(case)

    with _no_mined_constants():
        try:
            body()
        except* (Failing, Flaky):
            pass


@contextmanager
def _no_mined_constants() -> Iterator[None]:
    """Keep Hypothesis from drawing constants that it finds in the source of whatever modules are imported.

    With them the cases would depend on what else is loaded, hence on the number of jobs. There is no setting for it;
    versions without the hook (before 6.131) do not mine.
    """
    from hypothesis.internal.conjecture import providers

    if not hasattr(providers, "_get_local_constants"):
        yield
        return
    empty = type(providers.GLOBAL_CONSTANTS)()
    mined = providers._get_local_constants
    providers._get_local_constants = lambda: empty
    providers.CONSTANTS_CACHE.cache.clear()
    try:
        yield
    finally:
        providers._get_local_constants = mined
        providers.CONSTANTS_CACHE.cache.clear()
