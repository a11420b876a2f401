"""How many elementwise kernels of the library calls of torch reach: over every overload, type, layout and parameter."""

from __future__ import annotations

import re
import warnings

import pytest

from conformance.devices.base import Unsupported
from metal_ops.builds import DEFAULT_BUILD, open_build
from metal_ops.coverage import Coverage, coverage
from tests.metal_ops.launch.calls import calls
from tests.metal_ops.launch.recording import Recorder
from tests.metal_ops.launch.test_choices import LAUNCHES

_INTEGER = "(bool|char|int|long|short|uchar)"
UNREACHABLE = {
    r".+_dense_castout_ilp_\w+": "the host opts in for tests of numbers, and for copies",
    r".+_dense_ilp_\w+": "the host opts in for nan_to_num",
    r"(clamp_scalar|elu|nan_to_num|softplus)_inner_contiguous_\w+": "a struct takes the dense or the strided kernel",
    r"(elu|softplus)_backward_(dense_(broadcast|scalar)|\w+_cast_)\w+": "so it does with two operands",
    r"clamp_(min_|max_)?scalar_\w+_bool_bool_\w+": "torch does not clamp bools",
    r"(div_floor|lcm|pow|sub)_\w+_bool_bool": "torch refuses bools",
    rf".+_cast_float_{_INTEGER}": "a kernel that casts is asked for by the result's type alone",
    r".+_cast_bool_bool(_bool)?": "operands of different types never compute in bool",
    r".+_dense(_broadcast|_broadcast_rhs)?_cast_bool_(float8_e4m3fn|uint|ulong|ushort)": "they promote with numbers",
    rf"logaddexp2_.+_float_{_INTEGER}": "the host refuses integers",
    r"logaddexp_.+_float_bool": "torch refuses bools",
    r"lerp_alpha_\w+_cast_\w+": "torch refuses ends of different types",
    r"lerp_alpha_\w+_half2_half2_half2": "the host asks for a weight of type float2, for which there is no kernel",
    r"(make_complex|polar)_\w+_cast_\w+": "torch refuses parts of different types",
    r"glu_(\w+_cast|dense_scalar|dense_broadcast)_\w+": "both halves of a tensor have one shape and one type",
}
"""Kernels that no call reaches, by PyTorch's own rules: pattern of the name, and why."""


@pytest.fixture(scope="module")
def families() -> list[Coverage]:
    """Elementwise families, with the kernels that no call reached; copies have launches of their own.

    What PyTorch's environment variables force counts: a thread computes four integers only then.
    """
    library = set(open_build(DEFAULT_BUILD).library().functions)
    recorder = Recorder(library=library)
    with pytest.MonkeyPatch.context() as environment, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's experimental types
        for forced in ("", "ilp"):
            for kind in ("UNARY", "BINARY"):
                environment.setenv(f"PYTORCH_{kind}_FORCE_FLAVOR", forced)
            for overload, launch in LAUNCHES.items():
                for arguments, keywords in calls(overload):
                    try:
                        launch(recorder, *arguments, **keywords)
                    except Unsupported:
                        continue
    found = coverage(library, set(recorder.names))
    return [family for family in found if family.kind != "other" and not family.family.startswith("copy_")]


@pytest.mark.parametrize("kind", ["unary", "binary"])
def test_every_kernel_that_pytorch_can_launch_is_reached(families, kind):
    of_kind = [family for family in families if family.kind == kind]
    missing = [name for family in of_kind for name in family.missing]
    unexplained = [name for name in missing if not any(re.fullmatch(pattern, name) for pattern in UNREACHABLE)]
    reachable = sum(len(family.kernels) for family in of_kind) - len(missing) + len(unexplained)
    assert len(unexplained) <= 0.05 * reachable, unexplained[:20]


def test_what_is_called_unreachable_is_not_reached(families):
    reached = [name for family in families for name in set(family.kernels) - set(family.missing)]
    exceptions = r"(isneginf|isposinf|logical_not)_dense_castout_ilp_\w+|nan_to_num_dense_ilp_\w+"
    for pattern in UNREACHABLE:
        wrong = [name for name in reached if re.fullmatch(pattern, name) and not re.fullmatch(exceptions, name)]
        assert not wrong, (pattern, wrong[:5])
