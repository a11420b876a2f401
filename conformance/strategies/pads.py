"""Cases of padding: every mode, within the limits of the input, at them, and now and then beyond."""

from __future__ import annotations

from typing import Any, Literal

from hypothesis import strategies as st

from conformance.case import Case, TensorSpec
from conformance.dtypes import dtype as dtype_of
from conformance.strategies.layouts import layouts
from conformance.strategies.rarely import one_in
from conformance.strategies.shapes import Shape, is_large, shapes
from conformance.strategies.values import cheap, values

Mode = Literal["constant", "reflect", "replicate", "circular"]

_BEYOND = 12
"""One case of so many may pad by more than the mode allows: an error is due."""

_WIDE = 20
"""The largest padding that is drawn, larger than most inputs."""

_RUNS = (15, 16, 17, 31, 33)


def pad_cases(op: str, dtype: str, property: str, *, mode: Mode = "constant") -> st.SearchStrategy[Case]:
    """Cases of ``torch.nn.functional.pad`` in one mode, with the parameters ``pad``, ``mode`` and ``value``.

    The mode ``constant`` pads any number of the last dimensions of a tensor of any rank, by positive and negative
    amounts; ``value`` is left out or any number. The other modes pad the last one to three dimensions of a tensor that
    has one or two more. The property ``layout`` draws strided tensors only.
    """
    dtype_of(dtype)
    strided = True if property == "layout" else None

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        if mode == "constant":
            shape = draw(shapes(0 if strided is None else 1))
            params = draw(_constant(shape, dtype))
        else:
            shape, pad = draw(_within(mode))
            params = {"pad": pad, "mode": mode}
        layout = draw(layouts(len(shape), strided=strided))
        recipe = draw(values(dtype, elementwise=True))
        recipe = cheap(recipe, dtype) if is_large(shape) else recipe
        return Case(op, dtype, property, (TensorSpec(dtype, shape, layout, recipe),), params)

    return case()


@st.composite
def _constant(draw: st.DrawFn, shape: Shape, dtype: str) -> dict[str, Any]:
    padded = draw(st.integers(0, len(shape)))
    low, high = draw(st.sampled_from(((0, 3), (0, 1), (-3, 0), (-3, 5), (0, _WIDE), (-_WIDE, _WIDE))))
    beyond = draw(one_in(_BEYOND, st.just(True), st.just(False)))
    pad: list[int] = []
    for size in shape[: len(shape) - padded - 1 : -1] if padded else ():
        left, right = draw(st.integers(low, high)), draw(st.integers(low, high))
        # What is cut away must be there, unless an error is wanted.
        pad += [left, right] if beyond else [max(left, -size), max(right, -size - max(left, -size))]
    params: dict[str, Any] = {"pad": pad}
    if draw(st.booleans()):
        params["mode"] = "constant"
    value = draw(_fillings(dtype))
    return params if value is None else {**params, "value": value}


def _fillings(dtype: str) -> st.SearchStrategy[Any]:
    """What is padded with; None to leave it out."""
    described = dtype_of(dtype)
    if described.kind == "bool":
        return st.sampled_from((None, True, False))
    if described.kind == "int":
        return st.sampled_from((None, 0, 1, 7, 100, 127))
    infinities = (float("inf"), float("-inf")) if described.has_infinity else ()
    return st.sampled_from((None, 0.0, 1.0, -2.5, -0.0, 0.1, float("nan"), *infinities))


@st.composite
def _within(draw: st.DrawFn, mode: Mode) -> tuple[Shape, list[int]]:
    """A shape and the padding of its last dimensions in a mode that takes what it pads with from the input."""
    spatial = draw(st.integers(1, 3))
    before = draw(st.tuples(*[st.integers(1, 3)] * draw(st.integers(1, 2))))
    sizes = tuple(draw(one_in(8, st.sampled_from(_RUNS), st.integers(1, 7))) for _ in range(spatial))
    beyond = int(draw(one_in(_BEYOND, st.just(True), st.just(False))))
    pad: list[int] = []
    for size in reversed(sizes):
        limit = {"reflect": size - 1, "circular": size}.get(mode, _WIDE) + beyond
        cut = -((size - 1) // 2)  # both sides cut, something must be left
        amounts = st.one_of(st.integers(0, min(limit, 3)), st.sampled_from((limit, 0)), st.integers(cut, limit))
        before_and_after = draw(amounts), draw(amounts)
        pad += _of_what_is_left(before_and_after, size) if mode == "circular" else before_and_after
    return (*before, *sizes), pad


def _of_what_is_left(pads: tuple[int, int], size: int) -> tuple[int, int]:
    """Circular pads of one dimension, no wider than what a negative one leaves.

    Wider, PyTorch copies elements that it never wrote, which gives another result each time. A pad wider than the
    dimension itself is an error, and stays.
    """
    left = size + min(pads[0], 0) + min(pads[1], 0)
    before, after = (pad if pad > size else min(pad, left) for pad in pads)
    return before, after
