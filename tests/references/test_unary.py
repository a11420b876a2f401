"""Elementary references against mpmath: the oracle's truth must be far better than any bound."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from references import unary

_PRECISION = 50
_RELATIVE = 2.0**-48

_HUGE = [1e5, 1.5e9, 2.0**62, 1.0e22, 3.0e38, -2.5e30]
_NEAR_ONE = [1 + 2.0**-23, 1 - 2.0**-24, 1 + 2.0**-12, 0.75, 2.5, 1e-38, 1e38]
_SMALL = [1e-40, -1e-30, 2.0**-24, -(2.0**-13), 0.1, -0.7]

_FUNCTIONS: dict[str, tuple[Callable[[mpmath.mpf], mpmath.mpf], list[float]]] = {
    "sin": (mpmath.sin, [*_SMALL, *_HUGE, 3.1415927, 1.5707964 * 2001]),
    "cos": (mpmath.cos, [*_SMALL, *_HUGE, 1.5707964, 4.712389]),
    "tan": (mpmath.tan, [*_SMALL, *_HUGE, 1.5707964]),
    "exp": (mpmath.exp, [*_SMALL, -103.0, 88.7]),
    "exp2": (lambda x: mpmath.power(2, x), [*_SMALL, -149.5, 127.9]),
    "expm1": (mpmath.expm1, [*_SMALL, -103.0, 88.7, 0.34657]),
    "log": (mpmath.log, _NEAR_ONE),
    "log2": (lambda x: mpmath.log(x, 2), _NEAR_ONE),
    "log10": (mpmath.log10, _NEAR_ONE),
    "log1p": (mpmath.log1p, [*_SMALL, -1 + 2.0**-24, 1e38, -0.29]),
    "sinh": (mpmath.sinh, [*_SMALL, 89.0, -80.0]),
    "cosh": (mpmath.cosh, [*_SMALL, 89.0, -80.0]),
    "tanh": (mpmath.tanh, [*_SMALL, 9.0, -0.55]),
    "asin": (mpmath.asin, [*_SMALL, 1 - 2.0**-24]),
    "acos": (mpmath.acos, [*_SMALL, 1 - 2.0**-24, -1 + 2.0**-24]),
    "atan": (mpmath.atan, [*_SMALL, *_HUGE]),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), [*_SMALL, -103.0, -20.0, 20.0]),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), _NEAR_ONE),
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_real_functions_agree_with_mpmath(name: str) -> None:
    exact, points = _FUNCTIONS[name]
    x = np.float32(points).astype(np.float64)
    computed = getattr(unary, name)(x)
    with mpmath.workdps(_PRECISION):
        for point, value in zip(x, computed, strict=True):
            true = exact(mpmath.mpf(float(point)))
            assert abs(mpmath.mpf(float(value)) - true) <= _RELATIVE * abs(true), (name, point)


@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "tan", "tanh", "acos", "expm1", "log1p"])
def test_complex_functions_agree_with_mpmath(name: str) -> None:
    exact = getattr(mpmath, name) if name != "log1p" else lambda z: mpmath.log(1 + z)
    z = np.array([0.3 + 0.4j, -1e-9 + 1e-12j, 2.5 - 3j, 1e-20 - 0.7j, -0.9 + 1e-8j])
    computed = getattr(unary, name)(z)
    with mpmath.workdps(_PRECISION):
        for point, value in zip(z, computed, strict=True):
            true = exact(mpmath.mpc(complex(point)))
            assert abs(mpmath.mpc(complex(value)) - true) <= 2.0**-44 * abs(true), (name, point)


def test_exceptional_values_follow_annex_f() -> None:
    with np.errstate(all="ignore"):
        assert np.signbit(unary.sin(np.array(-0.0)))
        assert np.signbit(unary.sqrt(np.array(-0.0)))
        assert unary.reciprocal(np.array([0.0, -0.0])).tolist() == [np.inf, -np.inf]
        assert unary.rsqrt(np.array([0.0, -0.0])).tolist() == [np.inf, -np.inf]
        assert unary.sigmoid(np.array([-np.inf, np.inf])).tolist() == [0.0, 1.0]
        assert np.isnan(unary.log(np.array(-1.0)))


def test_angle_is_pi_below_zero_only() -> None:
    values = unary.angle(np.array([-2.0, -0.0, 0.0, 3.0, np.nan]))
    assert values[:4].tolist() == [np.pi, 0.0, 0.0, 0.0]
    assert np.isnan(values[4])


def test_rounding_breaks_ties_to_even() -> None:
    assert unary.round_half_even(np.array([0.5, 1.5, 2.5, -0.5])).tolist() == [0.0, 2.0, 2.0, -0.0]
    assert unary.round_half_even(np.array([3, -4])).tolist() == [3, -4]
    assert unary.round_decimals(np.array([0.125, 0.375]), 2).tolist() == [0.12, 0.38]
    assert unary.round_decimals(np.array([25.0, 35.0]), -1).tolist() == [20.0, 40.0]


def test_integers_stay_exact_and_wrap() -> None:
    extreme = np.array([np.iinfo(np.int64).min])
    assert unary.absolute(extreme)[0] == np.iinfo(np.int64).min
    assert unary.square(np.array([3_037_000_499]))[0] == 3_037_000_499**2
    assert unary.bitwise_not(np.array([True, False])).tolist() == [False, True]
