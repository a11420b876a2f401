"""Functions of two operands against mpmath and exact fractions, where float64 could be too weak."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from references import binary

_UNIT = 2.0**-24
_SLACK = 2.0**-20
"""How much of a float32 rounding (of result and operands together) a reference may be off."""

_RANDOM = np.random.default_rng(0)

Pairs = list[tuple[float, float]]


def _wide(count: int, low: float, high: float) -> list[float]:
    return [float(np.float32(x)) for x in 10.0 ** _RANDOM.uniform(low, high, count)]


def _pairs(x: tuple[float, float], y: tuple[float, float], count: int = 60) -> Pairs:
    return list(zip(_wide(count, *x), _wide(count, *y), strict=True))


def _near(count: int) -> Pairs:
    """Pairs of close numbers, where incomplete gamma functions change from 0 to 1."""
    parameters = np.array(_wide(count, 0, 3))
    ends = np.float32(parameters + 2 * _RANDOM.normal(size=count) * np.sqrt(parameters))
    return list(zip(parameters.tolist(), np.maximum(ends, 0.125).tolist(), strict=True))


_FUNCTIONS: dict[str, tuple[Callable[..., mpmath.mpf], Pairs]] = {
    "pow": (mpmath.power, [*_pairs((-3, 3), (-3, 1)), (1 + 2.0**-23, 7e8), (0.9999999, 1e9), (3e38, 0.9)]),
    "atan2": (mpmath.atan2, _pairs((-40, 38), (-40, 38))),
    "hypot": (mpmath.hypot, [*_pairs((-38, 38), (-38, 38)), (3e38, 1e38), (1e-38, 1e-38)]),
    "logaddexp": (lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)), [*_pairs((-3, 2), (-3, 2)), (-0.7, -0.7)]),
    "logaddexp2": (
        lambda x, y: mpmath.log(mpmath.power(2, x) + mpmath.power(2, y), 2),
        [*_pairs((-3, 2), (-3, 2)), (-1.0000001, -0.9999999)],
    ),
    "xlogy": (lambda x, y: x * mpmath.log(y), [*_pairs((-30, 30), (-30, 30)), (3.0, 1 + 2.0**-23)]),
    "xlog1py": (lambda x, y: x * mpmath.log1p(y), [*_pairs((-30, 30), (-30, 30)), (2.0, -1 + 2.0**-24)]),
    "zeta": (mpmath.zeta, [(1 + s, q) for s, q in _pairs((-6, 1), (-2, 2))] + [(2.0, 1e-20), (2.5, 1e10)]),
    "igamma": (
        lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
        [*_pairs((-2, 1.5), (-2, 1.5)), *_near(30), (1e-20, 0.5)],
    ),
    "igammac": (
        lambda a, x: mpmath.gammainc(a, x, mpmath.inf, regularized=True),
        [*_pairs((-2, 1.5), (-2, 1.5)), *_near(30)],
    ),
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_functions_agree_with_mpmath(name: str) -> None:
    """The error is a small part of what one float32 rounding of the operands and of the result changes."""
    exact, pairs = _FUNCTIONS[name]
    with np.errstate(all="ignore"):
        x, y = np.float32(pairs).astype(np.float64).T
        values = getattr(binary, name)(x, y)
    compared = 0
    for a, b, value in zip(x, y, values, strict=True):
        with mpmath.workdps(50):
            p, q = mpmath.mpf(float(a)), mpmath.mpf(float(b))
            true = exact(p, q)
            if not 1e-38 < abs(true) < 1e38:
                continue
            change = abs(exact(p * (1 + _UNIT), q) - true) + abs(exact(p, q * (1 + _UNIT)) - true)
            assert abs(mpmath.mpf(float(value)) - true) <= _SLACK * (_UNIT * abs(true) + change), (name, a, b)
            compared += 1
    assert compared > len(pairs) // 4


def _fractions(x: float, y: float) -> tuple[Fraction, Fraction]:
    return Fraction(x), Fraction(y)


@pytest.mark.parametrize("name", ["div.floor", "div.trunc", "remainder", "fmod", "add", "mul", "div"])
def test_arithmetic_is_correctly_rounded_to_float32(name: str) -> None:
    """Huge quotients and operands far apart included."""
    signs = _RANDOM.choice([-1.0, 1.0], size=(2, 3000))
    x, y = np.float32(10.0 ** _RANDOM.uniform(-18, 18, size=(2, 3000)) * signs).astype(np.float64)
    x[:500], y[:500] = np.rint(_RANDOM.normal(size=500) * 9), np.rint(_RANDOM.normal(size=500) * 3) + 0.5
    operation, _, mode = name.partition(".")
    with np.errstate(all="ignore"):
        values = getattr(binary, operation)(x, y, **({"rounding_mode": mode} if mode else {}))
    for a, b, value in zip(x, y, values, strict=True):
        p, q = _fractions(float(a), float(b))
        floor = p // q
        truncated = floor if p * q >= 0 or floor == p / q else floor + 1
        true = {
            "div.floor": Fraction(floor),
            "div.trunc": Fraction(truncated),
            "remainder": p - floor * q,
            "fmod": p - truncated * q,
            "add": p + q,
            "mul": p * q,
            "div": p / q,
        }[name]
        assert abs(Fraction(float(value)) - true) <= Fraction(2.0**-51) * abs(true), (name, a, b)


def test_signs_and_infinities_of_quotients_are_those_of_python() -> None:
    with np.errstate(all="ignore"):
        x, y = np.array([-1.0, 1.0, -1.0, 1.0, -7.0, 0.0]), np.array([np.inf, np.inf, 0.0, -0.0, 2.0, -3.0])
        assert binary.div(x, y, rounding_mode="floor").tolist() == [-1.0, 0.0, -np.inf, -np.inf, -4.0, 0.0]
        assert binary.div(x, y, rounding_mode="trunc").tolist() == [0.0, 0.0, -np.inf, -np.inf, -3.0, 0.0]
        assert binary.remainder(x[:5], y[:5])[[0, 1, 4]].tolist() == [np.inf, 1.0, 1.0]
        assert binary.fmod(x, y)[[0, 1, 4]].tolist() == [-1.0, 1.0, -1.0]
        assert np.isnan(binary.div(np.array([0.0]), np.array([0.0]), rounding_mode="floor")).all()


_INTEGERS = np.array([-(2**63), -7, -1, 0, 1, 2, 7, 2**53 + 1, 2**63 - 1])


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("add", lambda a, b: a + b),
        ("sub", lambda a, b: a - b),
        ("rsub", lambda a, b: b - a),
        ("mul", lambda a, b: a * b),
        ("floor_divide", lambda a, b: a // b),
        ("remainder", lambda a, b: a % b),
        ("fmod", lambda a, b: a - b * int(Fraction(a, b))),
        ("bitwise_and", lambda a, b: a & b),
        ("gcd", math.gcd),
        ("maximum", max),
    ],
)
def test_integers_are_exact_modulo_2_to_the_64(name: str, exact: Callable[[int, int], int]) -> None:
    x, y = (part.reshape(-1) for part in np.meshgrid(_INTEGERS, _INTEGERS[_INTEGERS != 0]))
    with np.errstate(all="ignore"):
        values = getattr(binary, name)(x, y)
    assert values.tolist() == [_wrapped(exact(a, b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def test_integer_quotients_toward_zero() -> None:
    x, y = np.array([-7, 7, -7, 7, -6]), np.array([2, -2, -2, 2, 2])
    assert binary.div(x, y, rounding_mode="trunc").tolist() == [-3, -3, 3, 3, -3]
    unsigned = np.array([2**64 - 1], np.uint64)
    assert binary.div(unsigned, np.array([2], np.uint64), rounding_mode="floor").tolist() == [2**63 - 1]


def test_integer_powers_wrap_and_negative_ones_vanish() -> None:
    x, y = np.array([3, -2, 1, -1, -1, 5, 2]), np.array([41, 3, -5, -3, -4, -1, 64])
    assert binary.pow(x, y).tolist() == [_wrapped(3**41), -8, 1, -1, 1, 0, 0]


def test_scalars_take_the_place_of_an_operand() -> None:
    bytes_ = np.array([3, 200], np.uint64)
    assert (binary.sub(bytes_, 1, alpha=4).astype(np.uint8)).tolist() == [255, 196]
    assert (binary.add(bytes_, -1).astype(np.uint8)).tolist() == [2, 199]
    assert binary.rsub(np.array([1.5]), 1.0, alpha=2.0).tolist() == [-2.0]
    assert binary.pow_scalar_self(np.array([3.0]), self=2.0).tolist() == [8.0]
    assert binary.pow_scalar_self(np.array([3]), self=2).tolist() == [8]
    assert binary.remainder_scalar_self(np.array([4.0]), self=-7.0).tolist() == [1.0]
    assert binary.xlogy_scalar_self(np.array([0.0]), self=0.0).tolist() == [0.0]


def test_truths_are_added_and_multiplied_as_truths() -> None:
    x, y = np.array([True, True, False]), np.array([True, False, False])
    assert binary.add(x, y).tolist() == [True, True, False]
    assert binary.mul(x, y).tolist() == [True, False, False]


def test_exceptional_values() -> None:
    nan, inf = np.nan, np.inf
    x, y = np.array([nan, 0.0, 0.0, inf]), np.array([0.0, nan, 0.0, inf])
    with np.errstate(all="ignore"):
        assert np.isnan(binary.maximum(x, y)[:2]).all()
        assert binary.fmax(x, y)[:2].tolist() == [0.0, 0.0]
        assert np.isnan(binary.xlogy(x, y)[[0, 1]]).all()
        assert binary.xlogy(x, y)[2] == 0.0
        assert binary.logaddexp2(np.array([inf, -inf]), np.array([inf, -inf])).tolist() == [inf, -inf]
        assert binary.zeta(np.array([1.0, 2.0]), np.array([2.0, -3.0])).tolist() == [inf, inf]
        assert np.isnan(binary.zeta(np.array([0.5]), np.array([2.0]))).all()


def test_lerp_meets_both_ends() -> None:
    x, end = np.array([1e-20, 3.0]), np.array([1.0, -5.0])
    assert binary.lerp(x, end, 0.0).tolist() == x.tolist()
    assert binary.lerp(x, end, 1.0).tolist() == end.tolist()
    assert binary.lerp(x, end, np.array([0.25, 0.75])).tolist() == [0.25, -3.0]


def test_complex_numbers_are_made_of_parts() -> None:
    made = binary.complex(np.array([np.inf]), np.array([1.0]))
    assert (made.real.tolist(), made.imag.tolist()) == ([np.inf], [1.0])
    turned = binary.polar(np.array([2.0]), np.array([np.pi / 2]))
    assert turned[0] == pytest.approx(2j)


@pytest.mark.parametrize("shift", [0.0, 800.0, -800.0])
def test_complex_logaddexp_does_not_overflow(shift: float) -> None:
    x, y = np.array([1 + 2j]) + shift, np.array([0.5 - 1j]) + shift
    expected: Any = np.log(np.exp(x - shift) + np.exp(y - shift)) + shift
    assert binary.logaddexp(x, y) == pytest.approx(expected)


@pytest.mark.parametrize("exponent", [0.5, np.array([0.5]), np.array([0.5, 0.5, 0.5])])
def test_a_power_of_one_half_is_no_square_root_at_minus_infinity_and_minus_zero(exponent):
    got = binary.pow(np.array([-np.inf, -0.0, 4.0]), exponent)
    np.testing.assert_array_equal(got, [np.inf, 0.0, 2.0])
    assert not np.signbit(got[1])


def test_heaviside_of_integers_is_exact_beyond_the_digits_of_a_double():
    large = -(2**62) - 1
    np.testing.assert_array_equal(binary.heaviside(np.array([0, 5, -5]), np.array([large])), [large, 1, 0])


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or", "bitwise_xor"])
def test_the_second_operand_may_be_a_number_by_torchs_keyword(name):
    x = np.array([0, 1, 2])
    function = getattr(binary, name)
    np.testing.assert_array_equal(function(x, other=1), function(x, np.array([1])))


@pytest.mark.parametrize(("s", "q"), [(2, -3.3), (3, -2.5), (5, -40.25), (2, -0.5), (12, -7.875)])
def test_zeta_sums_terms_with_a_negative_base(s: int, q: float):
    true = mpmath.nsum(lambda k: (k + mpmath.mpf(q)) ** -s, [0, mpmath.inf])
    np.testing.assert_allclose(binary.zeta(np.array([float(s)]), q), [float(true)], rtol=1e-13)


def test_zeta_of_a_large_negative_offset_needs_no_counting():
    quarter = [2.0 * math.pi**2]  # the sum of (k + 1/4)**-2 over all integers
    np.testing.assert_allclose(binary.zeta(np.array([2.0]), np.array([-(2.0**50) + 0.25])), quarter, rtol=1e-13)


@pytest.mark.parametrize(
    ("s", "q", "true"),
    [
        (2.5, -3.5, math.nan),
        (2.0, -4.0, math.inf),
        (3.0, math.nan, math.nan),
        (0.5, 2.0, math.nan),
        (1e20, 0.25, math.inf),
        (1e20, 1e20, 0.0),
        (1e20, -4.75, math.inf),
        (2001.0, -3.6, math.inf),
        (2001.0, -3.4, -math.inf),
    ],
)
def test_zeta_at_poles_and_beyond_its_domain_and_range(s: float, q: float, true: float):
    np.testing.assert_array_equal(binary.zeta(np.array([s]), np.array([q])), [true])
