from __future__ import annotations

import math

import numpy as np
import pytest

from references import reduction

_X = np.random.default_rng(0).normal(size=(3, 4, 5))


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [None, [], 1, -1, [0, 2], (1,)])
def test_dimensions_are_given_as_torch_gives_them(dim: int | list[int] | None, keepdim: bool) -> None:
    axes = tuple(range(3)) if dim in (None, []) else tuple(dim) if isinstance(dim, (list, tuple)) else (dim,)
    for name, function in (("sum", np.sum), ("mean", np.mean), ("amax", np.max), ("amin", np.min)):
        value = getattr(reduction, name)(_X, dim, keepdim)
        assert value.shape == function(_X, axis=axes, keepdims=keepdim).shape
        assert value == pytest.approx(function(_X, axis=axes, keepdims=keepdim))


def test_a_sum_is_accurate_where_terms_cancel() -> None:
    x = np.float32(np.random.default_rng(1).normal(size=100000) * 10.0 ** np.arange(100000).clip(0, 30)).astype(float)
    assert abs(float(reduction.sum(x)) - math.fsum(x)) <= 2.0**-50 * math.fsum(np.abs(x))


def test_integers_wrap_and_truths_are_counted() -> None:
    assert int(reduction.sum(np.array([2**63 - 1, 1]))) == -(2**63)
    assert int(reduction.sum(np.array([True, True, False]))) == 2
    assert int(reduction.prod(np.array([2**62, 4, 3]))) == 0
    assert int(reduction.prod(np.array([True, True]))) == 1


def test_terms_take_the_type_that_is_asked_for_before_they_are_added() -> None:
    x = np.array([-0.5, 1.0, 2049.0])
    assert float(reduction.sum(x, dtype="torch.int64")) == 2050
    assert float(reduction.sum(x, dtype="torch.float16")) == 2048.5
    assert float(reduction.sum(x + 1j, dtype="torch.float32")) == 2049.5
    assert reduction.sum(x + 1j, dtype="torch.complex64") == 2049.5 + 3j
    assert int(reduction.sum(np.array([2**31, 1]), dtype="torch.int32")) == 2**31 + 1
    for undefined in ([2.0**31, -(2.0**31)], [np.nan, 1.0], [np.inf, 0.0]):
        assert math.isnan(float(reduction.sum(np.array(undefined), dtype="torch.int32")))
    assert math.isnan(float(reduction.sum(np.full(2, 2.0**52), dtype="torch.int64")))


def test_a_mean_divides_each_part_of_a_complex_number() -> None:
    mean = complex(reduction.mean(np.array([complex(-math.inf, math.inf), 1])))
    assert (mean.real, mean.imag) == (-math.inf, math.inf)
    assert complex(reduction.mean(np.array([1 + 2j, 3 - 4j]))) == 2 - 1j


def test_nan_is_skipped_only_where_the_name_says_so() -> None:
    x = np.array([[1.0, np.nan], [2.0, 3.0]])
    assert reduction.nansum(x, dim=1).tolist() == [1.0, 5.0]
    assert np.isnan(reduction.sum(x, dim=1)[0])
    assert np.isnan(reduction.amax(x, dim=1)[0])
    assert reduction.any(np.array([np.nan])).tolist() is True
    assert reduction.all(np.array([np.nan, 0.0])).tolist() is False
    assert reduction.count_nonzero(np.array([[np.nan, 0.0], [-0.0, 1e-40]]), dim=1).tolist() == [1, 1]


def test_reductions_of_nothing_and_of_a_scalar() -> None:
    nothing = np.zeros((0, 3))
    assert reduction.sum(nothing, dim=0).tolist() == [0.0] * 3
    assert reduction.prod(nothing, dim=0).tolist() == [1.0] * 3
    with np.errstate(invalid="ignore"):
        assert np.isnan(reduction.mean(nothing, dim=0)).all()
    assert float(reduction.sum(np.array(2.5), dim=0)) == 2.5
