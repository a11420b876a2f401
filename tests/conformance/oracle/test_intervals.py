from __future__ import annotations

import numpy as np
import pytest

from conformance.oracle.functions import exp, expm1, log, log1p, sin, tanh
from conformance.oracle.intervals import Interval
from conformance.oracle.steps import Steps
from conformance.oracle.units import ulp


def _exact(*values: float) -> Interval:
    return Interval.exact(np.array(values), Steps.of("float32"))


def _in_ulp(result: Interval, true: np.ndarray) -> np.ndarray:
    return result.distance(true) / ulp(true, "float32")


def test_arithmetic_widens_by_one_rounding() -> None:
    x, y = _exact(1.3, -2.7), _exact(0.6, 5.1)
    for result, true in (
        (x + y, x.low + y.low),
        (x - y, x.low - y.low),
        (x * y, x.low * y.low),
        (x / y, x.low / y.low),
    ):
        assert _in_ulp(result, true) == pytest.approx(0.5)


def test_products_may_be_taken_in_any_order() -> None:
    ranged = Steps("float32", "float32", ranged=True)
    large, small = (Interval.exact(np.array([end]), ranged) for end in (2.0**100, 2.0**-100))
    assert not (large * small * large).unknown.any()
    assert large.product(small, large).unknown.all()  # large * large overflows
    flushed = small.product(small, large)
    assert flushed.low <= 0.0 < 2.0**-100 <= flushed.high  # small * small may vanish
    x, y, z = _exact(1.3), _exact(0.6), _exact(5.1)
    assert _in_ulp(x.product(y, z), x.low * y.low * z.low) <= 2.0
    assert _in_ulp(x.product(2.0), 2 * x.low) <= 0.5


def test_constants_carry_their_own_rounding() -> None:
    third = 1.0 / 3.0
    assert _in_ulp(_exact(1.5) * third, np.array([0.5 * 1.0])) > 0.9
    assert _in_ulp(_exact(1.3) * 0.25, np.array([0.325])) == pytest.approx(0.5)


def test_tabulated_functions_widen_by_their_row() -> None:
    x = np.array([0.7, 3.3])
    for function, true, ulps in ((exp, np.exp, 4), (log, np.log, 4), (tanh, np.tanh, 5), (sin, np.sin, 4)):
        assert _in_ulp(function(_exact(*x)), true(x)) == pytest.approx(ulps, rel=1e-3)


def test_half_uses_the_half_table() -> None:
    x = np.array([0.7])
    result = exp(Interval.exact(x, Steps.of("float16")))
    assert result.distance(np.exp(x)) / ulp(np.exp(x), "float16") == pytest.approx(1.0)


def test_a_formula_covers_what_a_conforming_device_computes() -> None:
    """Sigmoid from an exp that errs by 3.5 ulp and a rounding either way, each further step rounded in float32."""
    x = np.random.default_rng(0).uniform(-30, 30, 20000).astype(np.float32)
    result = 1.0 / (1.0 + exp(-Interval.exact(x.astype(np.float64), Steps.of("float32"))))
    true = 1.0 / (1.0 + np.exp(-x.astype(np.float64)))
    largest = 0.0
    for ulps in (-3.5, 3.5):
        e = np.exp(-x.astype(np.float64))
        e = (e + ulps * ulp(e, "float32")).astype(np.float32)
        got = np.float32(1) / (np.float32(1) + e)
        largest = max(largest, float(np.max(np.abs(got - true) / result.distance(true))))
    assert 0.7 < largest <= 1.0


def test_reciprocal_of_an_overflowing_exponential_is_zero() -> None:
    with np.errstate(over="ignore"):
        result = 1.0 / (1.0 + exp(_exact(800.0)))
    assert result.low == pytest.approx(0.0, abs=1e-44)
    assert not np.isnan(result.high)


def test_oscillating_functions_stay_within_their_range() -> None:
    wide = Interval(np.array([0.0]), np.array([100.0]), Steps.of("float32"))
    assert sin(wide).high == pytest.approx(1.0)


def test_log1p_and_expm1_keep_small_results_relative() -> None:
    tiny = np.array([1e-30])
    assert _in_ulp(log1p(_exact(*tiny)), tiny) < 10
    assert _in_ulp(expm1(_exact(*tiny)), tiny) < 6
