"""How many elementwise kernels of the library calls of torch reach: over every overload, type, layout and parameter."""

from __future__ import annotations

import warnings

import pytest

from conformance.devices.base import Unsupported
from metal_ops.builds import DEFAULT_BUILD, open_build
from metal_ops.coverage import Coverage, coverage, total
from metal_ops.unreachable import UNREACHABLE, groups, why_unreachable
from tests.metal_ops.launch.calls import calls
from tests.metal_ops.launch.recording import Recorder
from tests.metal_ops.launch.test_choices import LAUNCHES


@pytest.fixture(scope="module")
def families() -> list[Coverage]:
    """Elementwise families, with the kernels that no call reached; copies have launches of their own."""
    library = set(open_build(DEFAULT_BUILD).library().functions)
    recorder = Recorder(library=library)
    with pytest.MonkeyPatch.context() as environment, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's experimental types
        for kind in ("UNARY", "BINARY"):
            environment.delenv(f"PYTORCH_{kind}_FORCE_FLAVOR", raising=False)
        for overload, launch in LAUNCHES.items():
            for arguments, keywords in calls(overload):
                try:
                    launch(recorder, *arguments, **keywords)
                except (Unsupported, RuntimeError):  # the latter where the host refuses operands: no bool is subtracted
                    continue
    found = coverage(library, set(recorder.names))
    return [family for family in found if family.kind != "other" and not family.family.startswith("copy_")]


@pytest.mark.parametrize("kind", ["unary", "binary"])
def test_every_kernel_that_pytorch_can_launch_is_reached(families, kind):
    whole = total(families, kind)
    assert len(whole.missing) <= 0.05 * whole.reachable, whole.missing[:20]


def test_what_is_called_unreachable_is_not_reached(families):
    reached = [name for family in families for name in set(family.kernels) - set(family.missing + family.unreachable)]
    wrong = {name: reason for name in reached if (reason := why_unreachable(name)) is not None}
    assert not wrong, list(wrong.items())[:5]


def test_every_rule_is_about_kernels_of_the_library():
    assert list(groups(open_build(DEFAULT_BUILD).library().functions)) == list(dict.fromkeys(UNREACHABLE.values()))
