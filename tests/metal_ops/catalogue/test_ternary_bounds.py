"""The bounds of ternary ops reject what no order of their steps leads to, and accept what some order does."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.op import Computation
from conformance.oracle import judge
from metal_ops.catalogue import ops

_OPS = {op.name: op for op in ops()}
_RANDOM = np.random.default_rng(3)


def _judged(name, got, operands, **params):
    given = tuple(operand.astype(np.complex128 if np.iscomplexobj(operand) else np.float64) for operand in operands)
    dtype, op = str(operands[0].dtype), _OPS[name]
    return judge(Computation(given, (dtype,) * 3, params, dtype, op.reference.function, dtype), got, op.bound)


def _drawn(dtype, count=200):
    drawn = [
        _RANDOM.normal(size=count) + (1j * _RANDOM.normal(size=count) if dtype == "complex64" else 0) for _ in "xyz"
    ]
    return [operand.astype(dtype) for operand in drawn]


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
def test_every_order_of_the_products_is_right_and_a_wrong_factor_is_not(dtype):
    x, first, second = _drawn(dtype)
    value = first.dtype.type(0.75)
    for got in (x + value * first * second, x + value * (first * second), x + first * (value * second)):
        assert _judged("addcmul", got, (x, first, second), value=0.75).passed
    for got in (x + value * first / second, x + value * (first / second)):
        assert _judged("addcdiv", got, (x, first, second), value=0.75).passed
    assert _judged("addcmul", x + first * second, (x, first, second), value=0.75).failing.mean() > 0.9
    assert _judged("addcdiv", x - value * first / second, (x, first, second), value=0.75).failing.mean() > 0.9


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_lerp_may_start_from_either_end(dtype):
    x, end, weight = _drawn(dtype)
    for got in (
        x + weight * (end - x),
        np.where(np.abs(weight) < 0.5, x + weight * (end - x), end - (end - x) * (1 - weight)),
    ):
        assert _judged("lerp.tensor", got, (x, end, weight)).passed
    assert _judged("lerp.tensor", x + weight * end, (x, end, weight)).failing.mean() > 0.9


def test_a_float32_result_that_was_computed_in_half_is_wrong():
    x, first, second = (operand.astype(np.float32) for operand in _drawn("float16"))
    halves = [operand.astype(np.float16) for operand in (x, first, second)]
    for name, got in (
        ("addcmul", halves[0] + halves[1] * halves[2]),
        ("addcdiv", halves[0] + halves[1] / halves[2]),
        ("lerp.tensor", halves[0] + halves[2] * (halves[1] - halves[0])),
    ):
        assert _judged(name, got.astype(np.float32), (x, first, second)).failing.mean() > 0.9


def test_an_overflow_of_some_order_is_excused_and_no_other():
    largest = np.float32(3e38)
    x, first, second = (np.array([number], np.float32) for number in (1.0, largest, 1e-3))
    assert _judged("addcmul", np.float32([np.inf]), (x, first, second), value=2).passed
    assert _judged("addcmul", x + np.float32(2) * (first * second), (x, first, second), value=2).passed
    assert not _judged("addcmul", np.float32([np.inf]), (x, first / 8, second), value=2).passed


def test_an_overflow_of_some_order_of_complex_numbers_is_excused_too():
    x, first, second = (np.array([number], np.complex64) for number in (0.0, 8.5e37, 7.0))
    infinite = np.array([complex(np.inf, np.nan)], np.complex64)
    assert _judged("addcmul", infinite, (x, first, second), value=0.1).passed
    assert not _judged("addcmul", infinite, (x, first / 8, second), value=0.1).passed
    tiny = np.array([1.2e-38j], np.complex64)
    assert _judged("addcdiv", infinite, (x + 1, x + 8j, tiny), value=0).passed
    assert not _judged("addcdiv", infinite, (x + 1, x + 8j, tiny * 8), value=0).passed


def test_clamp_is_exact():
    x, low, high = np.float32([[0.5], [-2.0], [1.0]])
    for wrong, passed in ((0.5, True), (np.nextafter(np.float32(0.5), np.float32(1)), False), (1.0, False)):
        assert _judged("clamp.tensor", np.float32([wrong]), (x, low, high)).passed is passed
