"""Copies and casts. To add an op, add one block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.op import Op, Reference
from conformance.oracle import Exact
from metal_ops.catalogue._blocks import ANY, UNSIGNED, moved
from references import copy as true
from references.gradients import copy as derivative

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.case import Case

_COPIED = (*ANY, *UNSIGNED, "float8_e4m3fn")


def _cast(dtype: str, property: str) -> SearchStrategy[Case]:
    from hypothesis import strategies as st

    from conformance.strategies import elementwise_cases

    target = st.sampled_from([f"torch.{name}" for name in _COPIED])
    return elementwise_cases("to", dtype, property, params={"dtype": target})


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
        bound=Exact("a conversion: rounded to nearest (IEEE 754), truncated or wrapped (C)"),
        properties=("forward", "layout", "backward"),
        kernels=("copy_identity_*", "contiguous_byte_copy"),
        gradient=moved(derivative.cast),
    ),
    Op(
        name="clone",
        family="copy",
        function="clone",
        dtypes=(*_COPIED, "complex32"),
        cases=_clone,
        reference=Reference(true.cast, "exact"),
        bound=Exact("a copy"),
        properties=("forward", "layout", "backward"),
        kernels=("copy_identity_*", "contiguous_byte_copy"),
        gradient=moved(derivative.cast),
    ),
)
