"""Matrix products against sums of products in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from references import product

Array = np.ndarray[Any, np.dtype[Any]]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-20, 20, shape) / 8.0


def exact(a: Array, b: Array) -> Array:
    """One matrix by another, term by term."""
    rows = [[sum(Fraction(x) * Fraction(y) for x, y in zip(row, column, strict=True)) for column in b.T] for row in a]
    return np.array(rows, np.float64).reshape(a.shape[0], b.shape[1])


@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 4, 5), (2, 0, 3), (0, 2, 3)], ids=str)
def test_products_are_sums_of_products(sizes: tuple[int, int, int]) -> None:
    rows, inner, columns = sizes
    a, b, x = numbers(rows, inner), numbers(inner, columns, seed=1), numbers(rows, columns, seed=2)
    np.testing.assert_array_equal(product.mm(a, b), exact(a, b))
    np.testing.assert_array_equal(product.addmm(x, a, b, beta=0.5, alpha=-2), 0.5 * x - 2 * exact(a, b))
    np.testing.assert_array_equal(product.linear(a, b.T), exact(a, b))
    np.testing.assert_array_equal(product.linear(a, b.T, x[:1].sum(axis=0)), exact(a, b) + x[:1].sum(axis=0))


def test_batches_broadcast_and_vectors_lose_their_dimension() -> None:
    a, b = numbers(2, 1, 3, 4), numbers(5, 4, 2, seed=1)
    made = product.mm(a, b)
    assert made.shape == (2, 5, 3, 2)
    np.testing.assert_array_equal(made[1, 4], exact(a[1, 0], b[4]))
    assert product.mm(numbers(4), numbers(4)).shape == ()
    np.testing.assert_array_equal(product.linear(numbers(3, 4), numbers(4, seed=1)), numbers(3, 4) @ numbers(4, seed=1))


def test_a_beta_of_zero_keeps_the_addend_out() -> None:
    a, b = numbers(2, 3), numbers(3, 2, seed=1)
    np.testing.assert_array_equal(product.addmm(np.full((2, 2), np.nan), a, b, beta=0), exact(a, b))
    assert np.isnan(product.addmm(np.full((2, 2), np.nan), a, b)).all()


def test_integers_wrap_around() -> None:
    assert product.mm(np.array([[2**62]]), np.array([[6]]))[0, 0] == np.int64(-(2**63))


_ENDS = np.array([2, 2, 5])


def test_groups_of_rows_columns_and_sums() -> None:
    parts = [slice(0, 2), slice(2, 2), slice(2, 5)]
    a, b = numbers(5, 4), numbers(3, 4, 6, seed=1)
    made = product.grouped_mm(a, b, _ENDS)
    for number, part in enumerate(parts):
        np.testing.assert_array_equal(made[part], exact(a[part], b[number]))
    a, b = numbers(3, 4, 6), numbers(6, 5, seed=1)
    made = product.grouped_mm(a, b, _ENDS)
    for number, part in enumerate(parts):
        np.testing.assert_array_equal(made[:, part], exact(a[number], b[:, part]))
    a, b = numbers(4, 5), numbers(5, 6, seed=1)
    made = product.grouped_mm(a, b, _ENDS)
    assert made.shape == (3, 4, 6)
    for number, part in enumerate(parts):
        np.testing.assert_array_equal(made[number], exact(a[:, part], b[part]))
    assert not made[1].any()


def test_without_ends_groups_are_a_batch() -> None:
    a, b = numbers(2, 3, 4), numbers(2, 4, 5, seed=1)
    np.testing.assert_array_equal(product.grouped_mm(a, b), np.stack([exact(x, y) for x, y in zip(a, b, strict=True)]))


def test_nobody_says_what_belongs_to_no_group() -> None:
    made = product.grouped_mm(numbers(7, 4), numbers(3, 4, 6), _ENDS)
    assert np.isnan(made[5:]).all()
    assert np.isfinite(made[:5]).all()


def test_scaled_products_of_every_8_bit_number() -> None:
    codes = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    rows = codes.reshape(16, 16)
    finite = np.where(np.isnan(rows), 0.0, rows)
    scale_a, scale_b = 2.0 ** np.arange(-8, 8).reshape(16, 1), -0.5 * np.ones((1, 16))
    bias = np.arange(16.0)
    made = product.scaled_mm(finite, finite.T, scale_a, scale_b, bias, output_dtype="torch.float16")
    np.testing.assert_array_equal(made, exact(finite * scale_a, finite.T * scale_b) + bias)
    hidden = np.isnan(product.scaled_mm(rows, finite.T, np.ones(1), np.ones(1)))
    np.testing.assert_array_equal(hidden.all(axis=1), np.isnan(rows).any(axis=1))
