"""Intervals in place of arrays: conditions, array functions, and functions with branches, poles and cuts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy

from conformance.oracle.intervals import UFUNCS, Interval
from conformance.oracle.steps import Steps
from conformance.oracle.truth import Truth

_PLAIN = Steps.of("float32")
_RANGED = Steps("float32", "float32", ranged=True)
_HALVES = Steps("float32", "float16", ranged=True)


def _interval(low: list[float], high: list[float] | None = None, steps: Steps = _PLAIN) -> Any:
    return Interval(np.array(low), np.array(low if high is None else high), steps)


def _ends(x: Any) -> list[tuple[float, float]]:
    return [(round(float(a), 5), round(float(b), 5)) for a, b in zip(x.low.ravel(), x.high.ravel(), strict=True)]


def test_a_condition_may_be_undecided_and_then_both_branches_are_possible() -> None:
    x = _interval([1.0, -1.0, -3.0, np.nan], [2.0, 1.0, -2.0, np.nan])
    chosen = np.where(x > 0, 10.0, -10.0)
    assert _ends(chosen) == [(10, 10), (-10, 10), (-10, -10), (-10, -10)]
    assert _ends((x > 0) * 5.0) == [(5, 5), (0, 5), (0, 0), (0, 0)]
    assert _ends(np.where((x > 0) & (x < 5), 1.0, 0.0)) == [(1, 1), (0, 1), (0, 0), (0, 0)]
    assert _ends(np.where(~(x <= 0), 1.0, 0.0)) == [(1, 1), (0, 1), (0, 0), (1, 1)]
    plain = np.array([True, False, True, False])
    assert _ends(np.where(plain | (x > 0), 1.0, 0.0)) == [(1, 1), (0, 1), (1, 1), (0, 0)]
    assert _ends(np.where(np.isnan(x), 0.0, x)) == [(1, 2), (-1, 1), (-3, -2), (0, 0)]


def test_equality_is_certain_of_points_only() -> None:
    x, y = _interval([1.0, 1.0, 1.0], [1.0, 2.0, 1.0]), _interval([1.0, 1.5, 3.0])
    equal, unequal = x == y, x != y
    assert (equal.surely.tolist(), equal.maybe.tolist()) == ([True, False, False], [True, True, False])
    assert (unequal.surely.tolist(), unequal.maybe.tolist()) == ([False, False, True], [False, True, True])


def test_conditions_have_no_truth_and_no_array() -> None:
    condition = _interval([1.0]) > 0
    for misuse in (bool, np.asarray):
        with pytest.raises(TypeError, match="condition on intervals"):
            misuse(condition)
    assert isinstance(condition ^ condition, Truth)
    assert not (condition ^ condition).maybe.any()


def test_constants_and_points_that_are_representable_stay_exact() -> None:
    x = _interval([3.0])
    assert _ends(x * 2.0 + 1.0 - x / 4.0) == [(6.25, 6.25)]
    assert (x * 0.1).low < (x * 0.1).high


def test_array_functions_move_ends_alike() -> None:
    x = _interval([1.0, 2.0, 3.0, 4.0], [1.5, 2.5, 3.5, 4.5])
    assert _ends(x.reshape(2, 2)[:, 1]) == [(2, 2.5), (4, 4.5)]
    assert _ends(np.concatenate([x[2:], np.zeros(1)])) == [(3, 3.5), (4, 4.5), (0, 0)]
    first, second = np.split(x, 2)
    assert _ends(np.flip(first)) + _ends(second) == [(2, 2.5), (1, 1.5), (3, 3.5), (4, 4.5)]
    assert np.broadcast_to(x, (3, 4)).shape == np.shape(np.stack([x, x, x])) == (3, 4)
    assert np.zeros_like(x).tolist() == [0.0] * 4
    assert _ends(np.clip(x, 2.25, 4.0)) == [(2.25, 2.25), (2.25, 2.5), (3, 3.5), (4, 4)]
    assert (x.ndim, x.size, np.iscomplexobj(x)) == (1, 4, False)
    assert _ends(np.real(x) + np.imag(x)) == _ends(np.conj(x))


def test_sums_count_the_roundings_of_a_tree() -> None:
    x = _interval([0.1] * 400).reshape(4, 100)
    total = np.sum(x, axis=1)
    assert total.shape == (4,)
    assert (total.high - total.low) / 2 == pytest.approx(31 * 2.0**-24 * 10, rel=0.02)
    halves = np.sum(_interval([0.1] * 100, steps=_HALVES))
    assert (halves.high - halves.low) / 2 > 2.0**-9
    whole = np.sum(_interval([1.0, 2.0, 3.0]), keepdims=True)
    assert _ends(whole) == [(6, 6)]
    assert _ends(np.mean(_interval([1.0, 2.0, 3.0]))) == [(2, 2)]


def test_steps_that_may_overflow_reach_infinity() -> None:
    x = _interval([3e38, 1e30], steps=_RANGED)
    squared = x * x
    assert np.isfinite(squared.high).all()  # a result may yet be judged as if the exponents went on
    assert np.isinf((squared + 1.0).high).all()
    assert _ends(1.0 / squared) == [(0, 0)] * 2
    lost = squared - squared
    assert lost.loose.all()
    assert lost.unknown.all()
    assert np.isfinite((_interval([3e38]) * 2.0 / 4.0).high).all()


def test_zero_times_what_is_not_known_is_not_known() -> None:
    entire = _interval([1.0], steps=_RANGED) / _interval([-1e-9], [1e-9], steps=_RANGED)
    assert _ends(entire) == [(-np.inf, np.inf)]
    assert (entire * 0.0).unknown.all()
    assert np.isnan((_interval([np.inf], steps=_RANGED) * 0.0).low).all()
    assert not (_interval([np.inf], steps=_RANGED) * 0.0).loose.any()


def test_half_steps_are_rounded_and_overflow_as_halves() -> None:
    x = _interval([300.0], steps=_HALVES)
    assert np.isinf((x * x + 1.0).high).all()
    third = x / 7.0
    assert (third.high - third.low) / 2 == pytest.approx(2.0**-6, rel=0.01)


@pytest.mark.parametrize(
    ("function", "low", "high", "expected"),
    [
        (np.abs, -2.0, 1.0, (0.0, 2.0)),
        (np.square, -2.0, 1.0, (0.0, 4.0)),
        (np.cosh, -1.0, 1.0, (1.0, 1.54308)),
        (np.floor, 1.9, 2.1, (1.0, 2.0)),
        (np.sign, -1.0, 1.0, (-1.0, 1.0)),
        (np.tan, 1.5, 1.6, (-np.inf, np.inf)),
        (np.tan, 1.0, 1.1, (1.55741, 1.96476)),
        (np.sqrt, -1e-9, 4.0, (-np.inf, np.inf)),
        (np.reciprocal, -1.0, 1.0, (-np.inf, np.inf)),
        (np.arccos, 0.0, 1.0, (0.0, 1.5708)),
        (scipy.special.expit, 0.0, 1.0, (0.5, 0.73106)),
        (scipy.special.log_expit, 0.0, 1.0, (-0.69315, -0.31326)),
        (scipy.special.ndtr, 0.0, 1.0, (0.5, 0.84134)),
    ],
)
def test_functions_of_wide_intervals(
    function: Callable[..., Any], low: float, high: float, expected: tuple[float, float]
) -> None:
    (ends,) = _ends(function(_interval([low], [high])))
    assert ends == pytest.approx(expected, abs=1e-4) or ends[0] <= expected[0] <= expected[1] <= ends[1]
    assert ends[1] - ends[0] <= 1.4 * (expected[1] - expected[0]) + 1e-4 or np.isinf(expected[1])


@pytest.mark.parametrize(
    ("base", "exponent", "expected"),
    [
        ((-2.0, 1.0), (2.0, 2.0), (0.0, 4.0)),
        ((-2.0, -1.0), (3.0, 3.0), (-8.0, -1.0)),
        ((2.0, 3.0), (1.0, 2.0), (2.0, 9.0)),
        ((-1.0, 1.0), (-1.0, -1.0), (-np.inf, np.inf)),
        ((-2.0, -2.0), (2.9, 3.1), (-np.inf, np.inf)),
        ((0.0, 0.0), (-1.0, -1.0), (np.inf, np.inf)),
    ],
)
def test_powers(base: tuple[float, float], exponent: tuple[float, float], expected: tuple[float, float]) -> None:
    power = np.power(_interval([base[0]], [base[1]]), _interval([exponent[0]], [exponent[1]]))
    assert _ends(power)[0] == pytest.approx(expected, abs=1e-4)


def test_powers_by_operators_are_products_for_2_and_3() -> None:
    x = _interval([1.1])
    assert (x**2 - x * x).high == pytest.approx(0.0, abs=1e-6)
    narrow, wide = x**3, np.power(x, 3.0)
    assert (narrow.high - narrow.low) < 0.2 * (wide.high - wide.low)
    assert _ends(2.0 ** _interval([3.0]))[0] == pytest.approx((8.0, 8.0), abs=1e-4)
    assert np.isnan(np.power(_interval([-2.0]), 0.5).low).all()


def test_the_angle_of_a_box_across_the_cut_is_any() -> None:
    def angle(y: tuple[float, float], x: tuple[float, float]) -> tuple[float, float]:
        return _ends(np.arctan2(_interval([y[0]], [y[1]]), _interval([x[0]], [x[1]])))[0]

    assert angle((-1e-9, 1e-9), (-2.0, -1.0)) == pytest.approx((-np.pi, np.pi), abs=1e-5)
    assert angle((1.0, 1.0), (0.0, 1.0)) == pytest.approx((np.pi / 4, np.pi / 2), abs=1e-5)
    assert angle((0.0, 0.0), (-1.0, -1.0)) == pytest.approx((np.pi, np.pi), abs=1e-5)


def test_signs_and_maxima_are_exact() -> None:
    x, y = _interval([-1.0, 2.0], [1.0, 3.0]), _interval([0.5, np.nan])
    assert _ends(np.maximum(x, y)[:1]) == [(0.5, 1.0)]
    assert np.isnan(np.maximum(x, y).low[1])
    assert _ends(np.fmin(x, y)) == [(-1.0, 0.5), (2.0, 3.0)]
    assert _ends(np.copysign(2.0, x)) == [(-2.0, 2.0), (2.0, 2.0)]
    assert _ends(np.copysign(x, -1.0)) == [(-1.0, 0.0), (-3.0, -2.0)]
    assert _ends(np.heaviside(x, 0.25)) == [(0.0, 1.0), (1.0, 1.0)]


def test_every_rule_gives_a_point_back_within_its_limit() -> None:
    """No rule is about another function than the ufunc it stands for."""
    points = {1: (np.array([1.37]),), 2: (np.array([0.61]), np.array([1.37]))}
    for ufunc in UFUNCS:
        given = points[ufunc.nin]
        if ufunc in (np.arcsin, np.arccos, np.arctanh):
            given = (np.array([0.37]),)
        got = ufunc(*(Interval.exact(x, _PLAIN) for x in given))
        value = ufunc(*given)
        if isinstance(got, Truth):
            assert got.surely == got.maybe == value, ufunc
        else:
            assert got.low <= value <= got.high, ufunc
            assert got.high - got.low <= 64 * 2.0**-24 * abs(value) + 1e-300, ufunc


@pytest.mark.parametrize("name", ["erf", "erfc", "psi", "gammaln", "i0", "i1e", "k1", "j0", "y1", "log_ndtr"])
def test_special_functions_err_by_the_house_rule(name: str) -> None:
    function = getattr(scipy.special, name)
    x = np.array([0.7, 2.9])
    got = function(_interval(x.tolist()))
    slope = np.abs(function(x * (1 + 2.0**-20)) - function(x)) * 2.0**20
    allowed = 16 * 2.0**-23 * (np.abs(function(x)) + slope)
    assert ((got.high - function(x)) <= 1.3 * allowed).all()
    assert ((got.high - function(x)) >= 0.2 * allowed).all()
