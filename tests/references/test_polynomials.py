"""Orthogonal polynomials against mpmath and against their definitions by angles."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from references import polynomials

_X = np.float32([-1.0, -0.9999, -0.3, 1e-20, 0.5, 0.7, 1.0, 1.5, -4.0]).astype(np.float64)

_FUNCTIONS: dict[str, Callable[[int, mpmath.mpf], mpmath.mpf]] = {
    "chebyshev_polynomial_t": mpmath.chebyt,
    "chebyshev_polynomial_u": lambda n, x: mpmath.chebyu(n, x, zeroprec=400),
    "hermite_polynomial_h": mpmath.hermite,
    "hermite_polynomial_he": lambda n, x: mpmath.power(2, -mpmath.mpf(n) / 2) * mpmath.hermite(n, x / mpmath.sqrt(2)),
    "laguerre_polynomial_l": lambda n, x: mpmath.fsum(
        mpmath.binomial(n, k) * (-x) ** k / mpmath.factorial(k) for k in range(n + 1)
    ),
    "legendre_polynomial_p": mpmath.legendre,
}


@pytest.mark.parametrize("degree", [0, 1, 2, 7, 30])
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_they_agree_with_mpmath(name: str, degree: int) -> None:
    exact = _FUNCTIONS[name]
    values = getattr(polynomials, name)(_X, np.full(_X.shape, float(degree)))
    with mpmath.workdps(50):
        for point, value in zip(_X, values, strict=True):
            x = mpmath.mpf(float(point))
            true = exact(degree, x)
            change = abs(exact(degree, x * (1 + mpmath.mpf(2.0**-24))) - true)
            slack = 2.0**-20 * (2.0**-24 * abs(true) + change) + 1e-14
            assert abs(mpmath.mpf(float(value)) - true) <= slack, (name, degree, point)


@pytest.mark.parametrize("degree", [0, 1, 2, 5, 12])
def test_the_third_and_fourth_kind_are_those_of_angles(degree: int) -> None:
    t = np.linspace(0.1, 3.0, 20)
    x, n = np.cos(t), np.full(20, degree)
    half = (degree + 0.5) * t
    assert polynomials.chebyshev_polynomial_v(x, n) == pytest.approx(np.cos(half) / np.cos(t / 2), abs=1e-11)
    assert polynomials.chebyshev_polynomial_w(x, n) == pytest.approx(np.sin(half) / np.sin(t / 2), abs=1e-11)


@pytest.mark.parametrize("kind", "tuvw")
def test_shifted_ones_are_taken_at_2x_minus_1(kind: str) -> None:
    x, n = np.array([0.25, 0.75, 0.9]), np.array([3, 4, 5])
    plain = getattr(polynomials, f"chebyshev_polynomial_{kind}")(2 * x - 1, n)
    assert np.array_equal(getattr(polynomials, f"shifted_chebyshev_polynomial_{kind}")(x, n), plain)


def test_degrees_broadcast_and_may_be_fractions_or_negative() -> None:
    values = polynomials.chebyshev_polynomial_t(np.array([[0.5], [2.0]]), np.array([2.9, -1.0, 0.0]))
    assert values.tolist() == [[-0.5, 0.0, 1.0], [7.0, 0.0, 1.0]]


@pytest.mark.parametrize("degree", [5000.0, np.inf, np.nan])
def test_endless_degrees_are_refused(degree: float) -> None:
    with pytest.raises(ValueError, match="too large; allowed: up to 4096"):
        polynomials.hermite_polynomial_h(np.array([0.5]), np.array([degree]))
