"""Functions of three operands against exact fractions and torch, fills against torch."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch

from references import binary, fill, ternary

_RANDOM = np.random.default_rng(0)
_SPECIAL = (0.0, -0.0, 1.0, -2.0, 3.0, np.inf, -np.inf, np.nan)


def _operands(count: int = 300) -> list[np.ndarray]:
    """Float32 numbers of all sizes up to 1e12."""
    return [
        _RANDOM.normal(size=count).astype(np.float32) * np.float32(10) ** _RANDOM.integers(-12, 12, count)
        for _ in "xyz"
    ]


@pytest.mark.parametrize("value", [1, 2, -1, 0, 0.5, -1.25, 0.125])
def test_products_and_quotients_are_those_of_fractions(value: float) -> None:
    operands = [operand.astype(np.float64) for operand in _operands()]
    multiplied, divided = ternary.addcmul(*operands, value=value), ternary.addcdiv(*operands, value=value)
    for x, first, second, one, two in zip(*operands, multiplied, divided, strict=True):
        a, b, c = map(Fraction, (x, first, second))
        for true, got, term in (
            (a + Fraction(value) * b * c, one, Fraction(value) * b * c),
            (a + Fraction(value) * b / c, two, Fraction(value) * b / c),
        ):
            assert abs(Fraction(got) - true) <= Fraction(2) ** -51 * (abs(a) + abs(term))


def test_integers_wrap_around() -> None:
    x, first, second = (_RANDOM.integers(-(2**62), 2**62, 50) for _ in "xyz")
    for value in (1, 3, -2):
        wanted = torch.addcmul(*map(torch.from_numpy, (x, first, second)), value=value)
        assert ternary.addcmul(x, first, second, value=value).tolist() == wanted.tolist()
    unsigned = np.array([200, 3], np.uint64)
    wrapped = ternary.addcmul(unsigned, unsigned, unsigned, value=-1).astype(np.uint8)
    assert wrapped.tolist() == [(200 - 200 * 200) % 256, (3 - 9) % 256]


def test_complex_numbers() -> None:
    x, first, second = (_RANDOM.normal(size=20) + 1j * _RANDOM.normal(size=20) for _ in "xyz")
    for function, forward in ((ternary.addcmul, torch.addcmul), (ternary.addcdiv, torch.addcdiv)):
        wanted = forward(*map(torch.from_numpy, (x, first, second)), value=-1.25)
        np.testing.assert_allclose(function(x, first, second, value=-1.25), wanted.numpy(), rtol=1e-13)
    np.testing.assert_allclose(
        binary.lerp(x, first, second), torch.lerp(*map(torch.from_numpy, (x, first, second))).numpy(), rtol=1e-13
    )


def test_clamp_keeps_nan_and_prefers_the_upper_limit() -> None:
    x, low, high = (np.array(column) for column in zip(*product(_SPECIAL, repeat=3), strict=True))
    wanted = torch.clamp(*map(torch.from_numpy, (x, low, high))).numpy()
    np.testing.assert_array_equal(ternary.clamp(x, low, high), wanted)
    large = np.array([2**53 + 1, -(2**53) - 1, 0])
    assert ternary.clamp(large, large - 1, large + 1).tolist() == large.tolist()


def test_lerp_of_integers_is_exact() -> None:
    x, end = np.array([2**62 + 1, 5]), np.array([2**62 + 3, 9])
    for weight in (0, 1, 2, -3):
        assert binary.lerp(x, end, np.array(weight)).tolist() == (x + weight * (end - x)).tolist()


@pytest.mark.parametrize("value", [3, -1.5, True, 2 + 1j, float("nan"), 2**63])
def test_a_fill_has_the_shape_and_the_number(value: complex) -> None:
    filled = fill.fill(np.zeros((2, 3)), value)
    np.testing.assert_array_equal(filled, np.full((2, 3), value))
    assert filled.shape == (2, 3)
    assert fill.fill(np.zeros(0), value).shape == (0,)
