from __future__ import annotations

import mpmath
import numpy as np
import pytest

from references.softmax import log_softmax, softmax


def test_values_agree_with_mpmath_where_naive_formulas_overflow() -> None:
    row = np.array([1000.0, 999.5, 700.0, 1000.25])
    with mpmath.workdps(50):
        total = mpmath.fsum(mpmath.exp(mpmath.mpf(float(x))) for x in row)
        for x, y, logarithm in zip(row, softmax(row, 0), log_softmax(row, 0), strict=True):
            true = mpmath.exp(mpmath.mpf(float(x))) / total
            assert abs(mpmath.mpf(float(y)) - true) <= 2.0**-50 * true
            assert abs(mpmath.mpf(float(logarithm)) - mpmath.log(true)) <= 2.0**-50 * (1 + abs(mpmath.log(true)))


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
def test_every_dimension_sums_to_one(dim: int) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    assert softmax(x, dim).sum(axis=dim) == pytest.approx(1.0)
    assert np.exp(log_softmax(x, dim)) == pytest.approx(softmax(x, dim))


def test_exceptional_rows() -> None:
    inf, nan = np.inf, np.nan
    rows = np.array([[-inf, -inf], [nan, 1.0], [inf, 1.0], [-inf, 1.0]])
    assert np.isnan(softmax(rows, 1)[:3]).all()
    assert np.isnan(log_softmax(rows, 1)[:3]).all()
    assert softmax(rows, 1)[3].tolist() == [0.0, 1.0]
    assert log_softmax(rows, 1)[3].tolist() == [-inf, 0.0]


def test_scalars_and_empty_tensors_keep_their_shape() -> None:
    assert softmax(np.array(3.0), 0).shape == ()
    assert float(log_softmax(np.array(3.0), -1)) == 0.0
    assert softmax(np.zeros((0, 3)), 1).shape == (0, 3)
    assert softmax(np.zeros((3, 0)), 1).shape == (3, 0)
