"""The oracle is neither blind nor noisy: wrong kernels are rejected, right ones accepted.

The kernels are simulated in NumPy: the true value in float64, and what a good or a bad kernel makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.dtypes import dtype as dtype_of
from conformance.op import Bound, Computation
from conformance.oracle import SoftmaxBound, judge
from conformance.oracle.units import ulp
from metal_ops.catalogue import ops
from references import softmax as true_softmax
from tests.conformance.oracle.computations import computation, judged, operands, rounded

Array = NDArray[Any]

_OPS = {op.name: op for op in ops()}
_FIVE = ("sigmoid", "exp", "tanh", "silu", "log")
_SMALL = ("float16", "bfloat16")


def _true(name: str, x: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(_OPS[name].reference.function(x.astype(np.float64)))


def _truncated(value: Array, dtype: str) -> Array:
    """Rounded toward zero instead of to nearest."""
    with np.errstate(all="ignore"):
        nearest = value.astype(dtype_of(dtype).numpy)
        toward_zero = np.nextafter(nearest, dtype_of(dtype).numpy.type(0))
    return np.where(np.abs(nearest.astype(np.float64)) > np.abs(value), toward_zero, nearest)


def _enlarged(value: Array, dtype: str) -> Array:
    return rounded(value * (1 + 2.0**-7), dtype)


def _flushed(value: Array, dtype: str) -> Array:
    stored = rounded(value, dtype)
    subnormal = np.abs(stored.astype(np.float64)) < dtype_of(dtype).tiny
    return np.where(subnormal, np.copysign(np.zeros_like(stored), stored), stored)


@pytest.mark.parametrize("dtype", ["float32", *_SMALL])
@pytest.mark.parametrize("name", _FIVE)
def test_right_kernels_are_accepted(name: str, dtype: str) -> None:
    """Correctly rounded, and with errors in float32 of the size that even good libraries have."""
    op, x = _OPS[name], operands(dtype)
    value = _true(name, x)
    assert judged(op.reference.function, op.bound, rounded(value, dtype), x, dtype).passed
    normal = np.isfinite(value) & (np.abs(value) > 2.0**-125)
    for ulps in (-0.4, 0.4):
        off = np.where(normal, value + ulps * ulp(value, "float32"), value)
        judgement = judged(op.reference.function, op.bound, rounded(off, dtype), x, dtype)
        assert judgement.passed, judgement.message


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        (name, wrong)
        for name in _FIVE
        for wrong in (_truncated, _enlarged, _flushed)
        if (name, wrong) != ("log", _flushed)  # log has no subnormal half result
    ],
)
def test_wrong_half_kernels_are_rejected(name: str, wrong: Callable[[Array, str], Array]) -> None:
    op, x = _OPS[name], operands("float16")
    got = wrong(_true(name, x), "float16")
    assert not judged(op.reference.function, op.bound, got, x, "float16").passed


@pytest.mark.parametrize("name", ["sigmoid", "silu"])
def test_kernels_that_compute_in_half_are_rejected(name: str) -> None:
    op, x = _OPS[name], operands("float16")
    with np.errstate(all="ignore"):
        denominator = np.float16(1) + np.exp(-x)
        got = (np.float16(1) if name == "sigmoid" else x) / denominator
    assert judged(op.reference.function, op.bound, got, x, "float16").failing.sum() > 1000


def test_the_share_of_detected_errors_is_high() -> None:
    """Of the halves that truncating changes, nearly all are outside the bound."""
    op, x = _OPS["tanh"], operands("float16")
    value = _true("tanh", x)
    right, wrong = rounded(value, "float16"), _truncated(value, "float16")
    changed = (right != wrong) & ~np.isnan(x)
    failing = judged(op.reference.function, op.bound, wrong, x, "float16").failing
    assert failing[changed].mean() > 0.99


@pytest.mark.parametrize(
    ("name", "limit"), [("exp", 4), ("log", 4), ("tan", 6), ("atan", 5), ("tanh", 5), ("expm1", 5), ("sqrt", 0.5)]
)
def test_two_ulp_beyond_the_limit_are_rejected(name: str, limit: float) -> None:
    op, x = _OPS[name], np.array([0.3, 0.71, 2.9], np.float32)
    value = _true(name, x)
    got = (value + (limit + 2) * ulp(value, "float32")).astype(np.float32)
    assert judged(op.reference.function, op.bound, got, x, "float32").failing.all()


def test_right_results_of_every_op_are_accepted() -> None:
    """The true value, rounded once: whatever the op, nobody can do better."""
    for op in _OPS.values():
        if not op.sweep:
            continue
        for dtype in {"float32", "float16", "bfloat16"}.intersection(op.dtypes):
            cases = op.sweep(dtype)
            for case in cases[:3] if dtype == "float32" else cases[:1]:
                x = np.ascontiguousarray(case.tensors[0].logical())
                given = computation(x, dtype, op.reference.function, **case.params)
                with np.errstate(all="ignore"):
                    value = np.asarray(op.reference.function(given.inputs[0], **case.params))
                result = "bool" if value.dtype == np.bool_ else dtype
                given = Computation(given.inputs, (dtype,), case.params, result, op.reference.function)
                got = value if result == "bool" else rounded(value, dtype)
                judgement = judge(given, got, op.bound)
                assert judgement.passed, (op.name, dtype, case.params, judgement.message)


def test_tolerances_are_numbers_wherever_the_value_is() -> None:
    for op in _OPS.values():
        if not op.sweep or "float16" not in op.dtypes:
            continue
        (case, *_) = op.sweep("float16")
        x = np.ascontiguousarray(case.tensors[0].logical())
        with np.errstate(all="ignore"):
            first = op.bound.accept(computation(x, "float16", op.reference.function, **case.params))[0]
        tolerance = np.broadcast_to(first.tolerance, first.value.shape)
        assert np.isfinite(tolerance[np.isfinite(first.value)]).all(), op.name


# --- softmax ---

_ROWS = [(4, 7), (3, 200), (2, 1000), (1, 5000)]


def _softmax_case(shape: tuple[int, int], dtype: str, *, logarithm: bool = False) -> tuple[Array, Computation, Bound]:
    x = np.random.default_rng(shape[1]).normal(size=shape, scale=2.0).astype(dtype_of(dtype).numpy)
    function = true_softmax.log_softmax if logarithm else true_softmax.softmax
    return x, computation(x, dtype, function, dim=1), SoftmaxBound(logarithm=logarithm)


def _float_softmax(x: Array, terms: slice = slice(None), *, logarithm: bool = False) -> Array:
    shifted = x.astype(np.float32) - x.astype(np.float32).max(axis=1, keepdims=True)
    e = np.exp(shifted)
    total = np.zeros((len(x), 1), np.float32)
    for lane in range(32):  # 32 threads, then a tree
        of_thread = e[:, terms][:, lane::32]
        if of_thread.shape[1]:
            total += np.add.accumulate(of_thread, axis=1, dtype=np.float32)[:, -1:]
    return shifted - np.log(total) if logarithm else e * (np.float32(1) / total)


@pytest.mark.parametrize("dtype", ["float32", *_SMALL])
@pytest.mark.parametrize("shape", _ROWS)
@pytest.mark.parametrize("logarithm", [False, True])
def test_right_softmax_is_accepted(shape: tuple[int, int], dtype: str, logarithm: bool) -> None:
    x, given, bound = _softmax_case(shape, dtype, logarithm=logarithm)
    got = _float_softmax(x, logarithm=logarithm).astype(dtype_of(dtype).numpy)
    judgement = judge(given, got, bound)
    assert judgement.passed, judgement.message


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", _ROWS)
@pytest.mark.parametrize("logarithm", [False, True])
def test_softmax_without_its_last_term_is_rejected(shape: tuple[int, int], dtype: str, logarithm: bool) -> None:
    x, given, bound = _softmax_case(shape, dtype, logarithm=logarithm)
    x[:, -1] = x.max(axis=1)
    given = computation(x, dtype, given.reference, dim=1)
    got = _float_softmax(x, slice(0, -1), logarithm=logarithm).astype(dtype_of(dtype).numpy)
    assert not judge(given, got, bound).passed


@pytest.mark.parametrize("shape", _ROWS[1:])
def test_softmax_that_adds_in_half_is_rejected(shape: tuple[int, int]) -> None:
    x, given, bound = _softmax_case(shape, "float16")
    e = np.exp(x.astype(np.float32) - x.astype(np.float32).max(axis=1, keepdims=True))
    total = np.add.accumulate(e.astype(np.float16), axis=1, dtype=np.float16)[:, -1:]
    assert not judge(given, (e / total.astype(np.float32)).astype(np.float16), bound).passed


def test_softmax_of_exceptional_rows() -> None:
    x = np.array([[-np.inf, -np.inf], [np.nan, 1.0], [-np.inf, 1.0]], np.float32)
    given = computation(x, "float32", true_softmax.softmax, dim=1)
    nan = np.nan
    assert judge(given, np.array([[nan, nan], [nan, nan], [0, 1]], np.float32), SoftmaxBound()).passed
    got = np.array([[0.5, 0.5], [nan, nan], [0, 1]], np.float32)
    assert judge(given, got, SoftmaxBound()).failing.tolist() == [[True, True], [False, False], [False, False]]


def test_softmax_bound_needs_one_operand() -> None:
    two = Computation((np.ones(1), np.ones(1)), ("float32", "float32"), {"dim": 0}, "float32", np.add)
    with pytest.raises(ValueError, match="1 operand; given: 2"):
        SoftmaxBound().accept(two)


@pytest.mark.parametrize(("length", "right", "wrong"), [(64, 20, 60), (5000, 300, 1000)])
def test_softmax_grants_the_roundings_of_a_tree_and_no_more(length: int, right: int, wrong: int) -> None:
    """A sum that is off by some roundings; equal terms, so that nothing else adds to the bound."""
    x = np.zeros((1, length), np.float32)
    given = computation(x, "float32", true_softmax.softmax, dim=1)
    for roundings, accepted in ((right, True), (wrong, False)):
        got = np.full(x.shape, (1 + roundings * 2.0**-24) / length, np.float32)
        assert judge(given, got, SoftmaxBound()).passed is accepted
