"""Special functions against mpmath, where float64 libraries are known to be weak."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from references import special

_PRECISION = 80
_UNIT = 2.0**-24
_SLACK = 2.0**-20
"""How much of a float32 rounding (of result and operand together) a reference may be off: then a bound of 16 ulp is
judged right to a millionth."""

_GAMMA = [1 + 2.0**-23, 1 - 2.0**-24, 2 + 2.0**-22, 1e-30, 0.5, 171.0, 3e37, 1.4616321]
_NEGATIVE = [-0.25, -1.0000001, -2.457024738, -2.9999998, -9.5, -1000.75, -0.504083]
_OSCILLATING = [1e-30, 0.3, 2.4048256, 3.8317060, 0.8935770, 2.1971413, 25.0, 1e3, 9999.5, 1e4, 1e6, 1e10, 3e30, 3.4e38]
_MODIFIED = [1e-30, 1e-6, 0.5, 1.999, 2.001, 7.99, 8.01, 60.0]
_ERROR = [1e-40, 1e-9, 0.4, 0.93, 2.5, 4.0, 9.0]

_FUNCTIONS: dict[str, tuple[Callable[..., mpmath.mpf], list[float]]] = {
    "digamma": (lambda x: mpmath.digamma(x), _GAMMA + _NEGATIVE),
    "lgamma": (lambda x: mpmath.log(abs(mpmath.gamma(x))), _GAMMA[:-2] + _NEGATIVE),
    "erf": (mpmath.erf, _ERROR),
    "erfc": (mpmath.erfc, [*_ERROR, -2.0]),
    "erfcx": (lambda x: mpmath.exp(x * x) * mpmath.erfc(x), [*_ERROR, -2.0, -9.0]),
    "erfinv": (mpmath.erfinv, [1e-40, 1e-4, 0.0099, 0.0101, 0.4999, 0.5001, 0.9, 1 - 2.0**-24, -0.7]),
    "entr": (lambda x: -x * mpmath.log(x), [1e-38, 0.3, 0.9999999, 1.0000001, 1e30]),
    "sinc": (lambda x: mpmath.sin(mpmath.pi * x) / (mpmath.pi * x), [1e-20, 0.5, 0.9999999, 1e5 + 0.25]),
    "spherical_j0": (lambda x: mpmath.sin(x) / x, [1e-20, 0.5, 3.1415927, 1e10, 3e38]),
    "i0": (lambda x: mpmath.besseli(0, x), _MODIFIED),
    "i1": (lambda x: mpmath.besseli(1, x), [*_MODIFIED, -3.0]),
    "i0e": (lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x), _MODIFIED),
    "i1e": (lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(1, x), [*_MODIFIED, -3.0]),
    "k0": (lambda x: mpmath.besselk(0, x), _MODIFIED),
    "k1": (lambda x: mpmath.besselk(1, x), _MODIFIED),
    "k0e": (lambda x: mpmath.exp(x) * mpmath.besselk(0, x), _MODIFIED),
    "k1e": (lambda x: mpmath.exp(x) * mpmath.besselk(1, x), _MODIFIED),
    "j0": (lambda x: mpmath.besselj(0, x), _OSCILLATING),
    "j1": (lambda x: mpmath.besselj(1, x), _OSCILLATING),
    "y0": (lambda x: mpmath.bessely(0, x), _OSCILLATING),
    "y1": (lambda x: mpmath.bessely(1, x), _OSCILLATING),
}


def _assert_close(name: str, point: float, value: float, exact: Callable[[mpmath.mpf], mpmath.mpf]) -> None:
    """The error is a small part of what one float32 rounding of the operand and of the result changes."""
    with mpmath.workdps(_PRECISION):
        x = mpmath.mpf(point)
        true = exact(x)
        conditional = abs(exact(x * (1 + mpmath.mpf(_UNIT))) - true)
        assert abs(mpmath.mpf(value) - true) <= _SLACK * (_UNIT * abs(true) + conditional), (name, point)


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_functions_agree_with_mpmath(name: str) -> None:
    exact, points = _FUNCTIONS[name]
    x = np.float32(points).astype(np.float64)
    for point, value in zip(x, getattr(special, name)(x), strict=True):
        _assert_close(name, float(point), float(value), exact)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_polygamma_agrees_with_mpmath(n: int) -> None:
    x = np.float32([1e-3, 0.5, 1.0, 30.0, 1e5, *_NEGATIVE]).astype(np.float64)
    for point, value in zip(x, special.polygamma(x, n), strict=True):
        _assert_close(f"polygamma {n}", float(point), float(value), lambda p: mpmath.polygamma(n, p))


def test_polygamma_of_large_negative_arguments_is_quick() -> None:
    assert special.polygamma(np.array([-8355433.5]), 1)[0] == pytest.approx(np.pi**2, rel=1e-6)


def test_values_at_poles_and_infinities() -> None:
    with np.errstate(all="ignore"):
        assert special.digamma(np.array([0.0, -0.0])).tolist() == [-np.inf, np.inf]
        assert np.isnan(special.digamma(np.array(-3.0)))
        assert special.lgamma(np.array([0.0, -2.0, -np.inf, np.inf])).tolist() == [np.inf] * 4
        assert special.polygamma(np.array([0.0, -4.0]), 1).tolist() == [np.inf, np.inf]
        assert special.erfinv(np.array([1.0, -1.0])).tolist() == [np.inf, -np.inf]
        assert np.isnan(special.erfinv(np.array(1.5)))
        assert special.j0(np.array([np.inf, -np.inf, 0.0])).tolist() == [0.0, 0.0, 1.0]
        assert special.y1(np.array([np.inf, 0.0])).tolist() == [0.0, -np.inf]
        assert np.isnan(special.y0(np.array([-1.0, np.nan]))).all()
        assert special.sinc(np.array([0.0, np.inf, 7.0])).tolist() == [1.0, 0.0, 0.0]


def test_bessel_functions_of_the_first_kind_keep_their_symmetry() -> None:
    x = np.array([0.5, 20.0, 1e9])
    assert np.array_equal(special.j0(-x), special.j0(x))
    assert np.array_equal(special.j1(-x), -special.j1(x))
