"""Bounds of ops with two operands: what a good kernel computes is accepted, what a bad one does is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.op import Bound
from conformance.oracle import (
    ByKind,
    Contract,
    CorrectlyRounded,
    Exact,
    HouseRule,
    Inherited,
    Neighbour,
    Normwise,
    Rules,
    Stepwise,
    judge,
)
from conformance.oracle import functions as made
from conformance.oracle.intervals import Interval
from conformance.oracle.units import ulp
from references import activation, binary, copy, polynomials, select
from tests.conformance.oracle.computations import broadcast, rounded

Array = np.ndarray[Any, Any]

_ROUNDED = CorrectlyRounded("a test")
_HOUSE = HouseRule(16.0, "a test")
_RANDOM = np.random.default_rng(0)
_TYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}

_BOUNDS: dict[str, tuple[Bound, float]] = {
    "add": (_ROUNDED, 0.5),
    "sub": (_ROUNDED, 0.5),
    "mul": (_ROUNDED, 0.5),
    "div": (_ROUNDED, 0.5),
    "remainder": (_ROUNDED, 0.5),
    "fmod": (_ROUNDED, 0.5),
    "maximum": (_ROUNDED, 0.5),
    "fmin": (_ROUNDED, 0.5),
    "copysign": (Exact("a test"), 0.5),
    "pow": (Contract("pow"), 16),
    "atan2": (Contract("atan2"), 6),
    "hypot": (Inherited(made.hypot, "a test"), made.HYPOT_LIMIT),
    "logaddexp": (Inherited(made.logaddexp, "a test"), 25),
    "logaddexp2": (Inherited(made.logaddexp2, "a test"), 25),
    "xlogy": (Inherited(made.xlogy, "a test"), 300),
    "xlog1py": (Inherited(made.xlog1py, "a test"), 30),
    "igamma": (_HOUSE, 1e4),
    "igammac": (_HOUSE, 1e4),
    "zeta": (_HOUSE, 1e4),
}
"""For each function its bound, and an error in ulp of float32 beyond which nothing of moderate operands is right."""


def _operands(name: str, dtype: str) -> tuple[Array, Array]:
    x, y = _RANDOM.uniform(0.5, 4.0, size=(2, 3000))
    offset = 1.0 if name == "zeta" else 0.0
    return (x + offset).astype(_TYPES[dtype]), y.astype(_TYPES[dtype])


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("name", _BOUNDS)
def test_the_true_value_rounded_once_is_right_and_its_neighbours_are_not(name: str, dtype: str) -> None:
    bound, limit = _BOUNDS[name]
    function = getattr(binary, name)
    x, y = _operands(name, dtype)
    given = broadcast(function, x, y)
    value = function(*given.inputs)
    judgement = judge(given, rounded(value, dtype), bound)
    assert judgement.passed, judgement.message
    beyond = value + (1.2 * limit + 0.5) * ulp(value, "float32")
    if dtype != "float32":
        beyond = np.nextafter(rounded(value, dtype), np.asarray(np.inf, _TYPES[dtype])).astype(np.float64)
    failing = judge(given, rounded(beyond, dtype), bound).failing
    assert failing.mean() > 0.9


@pytest.mark.parametrize("dtype", _TYPES)
def test_special_values_of_arithmetic(dtype: str) -> None:
    with np.errstate(over="ignore"):
        numbers = np.array([0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan, 3e38, 1e-40]).astype(_TYPES[dtype])
    x, y = (part.reshape(-1) for part in np.meshgrid(numbers, numbers))
    bound = CorrectlyRounded("a test", rules=Rules(signed_zero=True))
    with np.errstate(all="ignore"):
        for name, operator in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)):
            got = rounded(operator(x.astype(np.float32), y.astype(np.float32)), dtype)
            judgement = judge(broadcast(getattr(binary, name), x, y), got, bound)
            assert judgement.passed, (name, judgement.message)


def _scaled_sum(x: Interval, other: Interval, alpha: float = 1.0) -> Interval:
    return x + alpha * other


def test_a_scaled_sum_is_rounded_once_or_twice() -> None:
    bound = Inherited(_scaled_sum, "a test", ranged=True)
    x, y = (_RANDOM.normal(size=5000).astype(np.float32) for _ in range(2))
    given = broadcast(binary.add, x, y, alpha=0.3)
    alpha = np.float32(0.3)
    fused = (x.astype(np.float64) + float(alpha) * y.astype(np.float64)).astype(np.float32)
    assert judge(given, x + alpha * y, bound).passed
    assert judge(given, fused, bound).passed
    assert judge(given, x + np.float32(0.30001) * y, bound).failing.mean() > 0.9
    infinite = broadcast(binary.add, np.float32([-3e38]), np.float32([3e38]), alpha=2.0)
    for got, right in ((np.inf, True), (3e38, True)):
        assert judge(infinite, np.array([got], np.float32), bound).passed is right


def test_a_rounded_quotient_may_reach_the_next_whole_number_and_no_other() -> None:
    bound = Stepwise(1.0, "a test")
    x, y = np.float32([1.0, 7.0, 7.0]), np.float32([0.1, 2.0, 2.0])
    given = broadcast(binary.div, x, y, rounding_mode="floor")
    for got, right in (([9, 3, 3], True), ([10, 3, 3], True), ([8, 3, 3], False), ([9, 3, 4], False)):
        assert judge(given, np.array(got, np.float32), bound).passed is right
    integers = broadcast(binary.div, np.array([-7]), np.array([2]), rounding_mode="floor")
    for each in (bound, Inherited(made.hypot, "a test")):
        assert judge(integers, np.array([-4]), each).passed
        assert not judge(integers, np.array([-3]), each).passed


def test_what_is_not_documented_is_not_judged() -> None:
    bound = CorrectlyRounded("a test", rules=Rules(undefined=lambda dtype, x, other: other == 0))
    given = broadcast(binary.remainder, np.array([5, 5]), np.array([0, 3]))
    assert judge(given, np.array([99, 2]), bound).passed
    assert judge(given, np.array([99, 1]), bound).failing.tolist() == [False, True]
    width = Rules(undefined=lambda dtype, x, other: (other < 0) | (other >= np.dtype(dtype).itemsize * 8))
    shifted = broadcast(binary.bitwise_left_shift, np.array([1, 1], np.int8), np.array([7, 9], np.int8))
    assert judge(shifted, np.array([-128, 55], np.int8), Exact("a test", rules=width)).passed
    assert not judge(shifted, np.array([127, 55], np.int8), Exact("a test", rules=width)).passed


@pytest.mark.parametrize("dtype", _TYPES)
def test_the_next_number_is_that_of_the_type(dtype: str) -> None:
    x = np.array([1.0, -2.0, 0.0, 5.0, np.nan]).astype(_TYPES[dtype])
    toward = np.array([2.0, np.inf, -1.0, 5.0, 1.0]).astype(_TYPES[dtype])
    given = broadcast(binary.nextafter, x, toward)
    right = np.nextafter(x, toward)
    assert judge(given, right, Neighbour("a test")).passed
    failing = judge(given, np.nextafter(right, np.asarray(9, right.dtype)), Neighbour("a test")).failing
    assert failing[[0, 1, 3]].all()


def test_the_degree_of_a_polynomial_is_not_moved() -> None:
    x, n = _RANDOM.uniform(-1, 1, size=2000).astype(np.float32), _RANDOM.integers(0, 8, 2000).astype(np.float32)
    given = broadcast(polynomials.chebyshev_polynomial_t, x, n)
    bound = HouseRule(16.0, "a test", fixed=(1,))
    value = given.reference(*given.inputs)
    assert judge(given, value.astype(np.float32), bound).passed
    next_degree = given.reference(given.inputs[0], given.inputs[1] + 1)
    assert judge(given, next_degree.astype(np.float32), bound).failing.mean() > 0.9


def test_the_house_rule_grants_an_error_in_every_operand() -> None:
    """x**y near (3, 30), where one ulp of either changes the result by many."""

    def power(x: Array, y: Array) -> Array:
        return np.power(x, y)

    x, y = np.float32([3.0]), np.float32([30.0])
    given = broadcast(power, x, y)
    for dx, dy, right in ((8e-7, 0, True), (0, 6e-6, True), (8e-7, 6e-6, True), (1e-4, 0, False), (0, 1e-3, False)):
        got = np.power(3.0 + dx, 30.0 + dy)
        assert judge(given, np.float32([got]), _HOUSE).passed is right
    fixed = HouseRule(16.0, "a test", fixed=(0, 1))
    assert not judge(given, np.float32([np.power(3.0 + 8e-7, 30.0)]), fixed).passed


def test_jumps_in_either_operand_are_seen() -> None:
    def steps(x: Array, y: Array) -> Array:
        return np.rint(x) + 10.0 * np.rint(y)

    half = np.nextafter(np.float32(0.5), np.float32(1))
    given = broadcast(steps, np.full(4, half), np.float32([0.1, 0.1, half, half]))
    got = np.float32([1, 0, 1, 11])
    assert judge(given, got, Stepwise(2.0, "a test")).passed
    assert not judge(given, np.float32([2, 0, 1, 11]), Stepwise(2.0, "a test")).passed


@pytest.mark.parametrize("name", ["add", "mul", "div", "pow", "logaddexp"])
def test_complex_functions_of_two_operands(name: str) -> None:
    function: Callable[..., Array] = getattr(binary, name)
    bound = ByKind(_ROUNDED, Normwise(16.0, "a test"))
    x, y = ((a + 1j * b).astype(np.complex64) for a, b in _RANDOM.uniform(0.3, 2.0, size=(2, 2, 1000)))
    given = broadcast(function, x, y)
    value = function(*given.inputs)
    assert judge(given, value.astype(np.complex64), bound).passed
    assert judge(given, (value * (1 + 1e-3)).astype(np.complex64), bound).failing.mean() > 0.9
    assert judge(given, np.conj(value).astype(np.complex64), bound).failing.mean() > 0.9


def test_complex_functions_of_real_operands() -> None:
    bound = ByKind(_ROUNDED, Normwise(16.0, "a test"))
    x, y = (_RANDOM.uniform(0.3, 2.0, size=1000).astype(np.float32) for _ in range(2))
    given = broadcast(binary.polar, x, y, result="complex64")
    value = binary.polar(*given.inputs)
    assert judge(given, value.astype(np.complex64), bound).passed
    assert judge(given, np.conj(value).astype(np.complex64), bound).failing.mean() > 0.9
    infinite = broadcast(binary.polar, np.float32([np.inf]), np.float32([1.0]), result="complex64")
    assert judge(infinite, np.complex64([0]), bound).passed


def test_selection_is_exact() -> None:
    condition, x = np.array([True, False]), np.float32([1e-40, 2.0])
    given = broadcast(select.where, condition, x, x[::-1], common="float32")
    assert judge(given, np.float32([1e-40, 1e-40]), Exact("a test")).passed
    assert judge(given, np.float32([0, 2]), Exact("a test")).failing.all()


@pytest.mark.parametrize(
    ("source", "target", "right", "wrong"),
    [
        (np.float32([2.9, -2.9, 300.0, np.nan]), "int8", [2, -2, 7, 7], [3, -3, 7, 7]),
        (np.float32([2.9]), "uint64", [2], [3]),
        (np.array([2**24 + 1, 3]), "float32", [2**24, 3], [2**24 + 2, 4]),
        (np.array([300, -1]), "uint8", [44, 255], [255, 0]),
        (np.float32([0.5, 0.0, np.nan]), "bool", [True, False, True], [False, True, False]),
        (np.float32([1 + 2.0**-11, 1e6]), "float16", [1, np.inf], [1 + 2.0**-10, 65504]),
        (np.complex64([3 + 4j]), "float32", [3], [5]),
        (np.array([True]), "float16", [1], [0]),
        (np.float32([2.5]), "complex64", [2.5], [2.5j]),
    ],
)
def test_conversions(source: Array, target: str, right: list[Any], wrong: list[Any]) -> None:
    given = broadcast(copy.cast, source, result=target)
    assert judge(given, np.array(right).astype(target), Exact("a test")).passed
    failing = judge(given, np.array(wrong).astype(target), Exact("a test")).failing
    assert failing[: len(right) - 2 * (target == "int8")].all()


def test_parts_of_a_copied_complex_number_are_exact() -> None:
    z = np.complex64([1 + 1e-10j])
    given = broadcast(copy.cast, z)
    assert judge(given, z, Exact("a test")).passed
    assert not judge(given, np.complex64([1]), Exact("a test")).passed


def test_formulas_over_halves_of_an_operand() -> None:
    def glu(x: Any, dim: int) -> Any:
        first, second = np.split(x, 2, axis=dim)
        return first / (1.0 + np.exp(-second))

    x = _RANDOM.normal(size=(50, 8)).astype(np.float32)
    x[0, 0] = 1e-40
    given = broadcast(activation.glu, x, dim=1)
    value = activation.glu(given.inputs[0], dim=1)
    assert judge(given, value.astype(np.float32), Inherited(glu, "a test")).passed
    flushed = np.where(np.abs(value) < 2.0**-126, 0.0, value)
    assert judge(given, flushed.astype(np.float32), Inherited(glu, "a test")).passed
    assert judge(given, (value * (1 + 1e-5)).astype(np.float32), Inherited(glu, "a test")).failing.mean() > 0.95


def test_tensors_of_several_shapes_are_joined_exactly() -> None:
    x, y = np.float32([[1, 2]]), np.float32([[3, 4], [1e-40, 5]])
    given = broadcast(select.cat, x, y, dim=0)
    assert judge(given, np.concatenate([x, y]), Exact("a test")).passed
    assert judge(given, np.concatenate([x, y * 0]), Exact("a test")).failing.any(axis=1).tolist() == [False, True, True]


def test_a_comparison_may_take_its_number_in_either_type() -> None:
    """0.1 is beside the half that is nearest to it, or is that half."""
    x = np.array([0.1, 0.5], np.float16)
    given = replace(broadcast(binary.eq, x, result="bool", common="float16", other=0.1), scalars=("other",))
    for got, right in (([True, False], True), ([False, False], True), ([False, True], False)):
        assert judge(given, np.array(got), _ROUNDED).passed == right


def test_a_complex_power_may_err_in_the_exponent_wherever_that_is_stored() -> None:
    z = np.array([-5.820766e-11j], np.complex64)
    off = (z.astype(np.complex128) ** 3 * (1 - 1e-5)).astype(np.complex64)
    by_number = replace(broadcast(binary.pow, z, exponent=3.0), scalars=("exponent",))
    by_tensor = broadcast(binary.pow, z, np.array([3.0], np.complex64))
    bound = Normwise(16.0, "a test")
    for given in (by_number, by_tensor):
        assert judge(given, off, bound).passed
        assert not judge(given, (off * np.complex64(1 + 1e-3)).astype(np.complex64), bound).passed
