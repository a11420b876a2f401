"""Copies and casts. To add an op, add one block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.op import Ladder, Op, Reference
from conformance.oracle import Exact, Rules
from metal_ops.catalogue._blocks import ANY, UNSIGNED
from metal_ops.catalogue._gradients import copied
from references import copy as true
from references.gradients import copy as derivative

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.case import Case

_COPIED = (*ANY, *UNSIGNED, "float8_e4m3fn")

_SIGNED = Rules(signed_zero=True)

_CONVERSION = "a conversion: rounded to nearest (IEEE 754), truncated or wrapped (C)"

_CUDA_FP8 = "to FP8 with saturation or without (CUDA Math API, FP8 intrinsics; OCP 8-bit floating point, 1.0)"


def _cast(dtype: str, property: str) -> SearchStrategy[Case]:
    from hypothesis import strategies as st

    from conformance.strategies import elementwise_cases

    target = st.sampled_from([f"torch.{name}" for name in _COPIED])
    return elementwise_cases("to", dtype, property, params={"dtype": target})


def _targets(dtype: str) -> list[dict[str, Any]]:
    """One type to convert to, with many elements of which hosts choose other kernels."""
    target = {"float32": "float16", "complex32": "complex64", "complex64": "complex32"}.get(dtype, "float32")
    return [{"dtype": f"torch.{target}"}]


def _clone(dtype: str, property: str) -> SearchStrategy[Case]:
    from conformance.strategies import elementwise_cases

    return elementwise_cases("clone", dtype, property)


OPS: tuple[Op, ...] = (
    Op(
        name="to",
        family="copy",
        function="Tensor.to",
        dtypes=_COPIED,
        cases=_cast,
        reference=Reference(true.cast, "exact"),
        bound=Exact(_CONVERSION, rules=_SIGNED),
        documented={"cuda": Exact(f"{_CONVERSION}; {_CUDA_FP8}", rules=_SIGNED, saturates=False)},
        properties=("forward", "variants", "layout", "backward"),
        ladder=Ladder(params=_targets, dtypes=("complex32",)),
        kernels=("copy_identity_*", "contiguous_byte_copy"),
        gradient=copied(derivative.cast),
    ),
    Op(
        name="clone",
        family="copy",
        function="clone",
        dtypes=(*_COPIED, "complex32"),
        cases=_clone,
        reference=Reference(true.cast, "exact"),
        bound=Exact("a copy", rules=_SIGNED),
        properties=("forward", "variants", "layout", "backward"),
        ladder=Ladder(),
        kernels=("copy_identity_*", "contiguous_byte_copy"),
        gradient=copied(derivative.cast),
    ),
)
