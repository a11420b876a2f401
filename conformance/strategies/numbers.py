"""Python numbers in place of a tensor: kernels take them by another way, and host code rounds or caches them."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from conformance.dtypes import dtype as dtype_of
from conformance.formats import component

Number = bool | int | float

_FLOATS = (0.0, 1.0, -2.0, 0.5, 0.1, -0.0, 1e-7, 3.0, 1000.0, float("inf"), float("-inf"), float("nan"))
_INTEGERS = (0, 1, 2, 3, 7, 100)
_NEGATIVE = (-1, -2)
_BOOLS = (False, True)


@cache
def numbers(dtype: str) -> st.SearchStrategy[Number]:
    """Numbers to combine with a tensor of ``dtype``: mostly of its kind, now and then of another."""
    described = dtype_of(dtype)
    integers = st.sampled_from((*_INTEGERS, *(_NEGATIVE if component(described).is_signed else ())))
    floats, bools = st.sampled_from(_FLOATS), st.sampled_from(_BOOLS)
    weighted: dict[str, list[st.SearchStrategy[Number]]] = {
        "int": [integers, integers, integers, integers, floats, bools],
        "bool": [bools, bools, integers, floats],
    }
    kinds = weighted.get(described.kind, [floats, floats, floats, floats, integers, bools])
    return st.integers(0, len(kinds) - 1).flatmap(kinds.__getitem__)
