from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.dtypes import dtype as dtype_of
from conformance.op import Computation
from conformance.oracle import ProductBound, SumBound, judge
from conformance.oracle.summation import roundings
from references import reduction
from references.gradients import pad as pad_gradient
from tests.conformance.oracle.computations import broadcast

Array = np.ndarray[Any, Any]

_RANDOM = np.random.default_rng(0)
_SUM = SumBound()


def _rows(length: int, dtype: str) -> Array:
    return _RANDOM.uniform(0.1, 1, size=(8, length)).astype(dtype)


def _added_by_threads(x: Array) -> Array:
    total = np.zeros((len(x), 1), np.float32)
    for thread in range(32):
        part = x[:, thread::32].astype(np.float32)
        if part.shape[1]:
            total += np.add.accumulate(part, axis=1, dtype=np.float32)[:, -1:]
    return total


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("length", [1, 7, 31, 500, 5000])
def test_right_sums_are_accepted(length: int, dtype: str) -> None:
    x = _rows(length, dtype)
    given = broadcast(reduction.sum, x, dim=1, keepdim=True)
    judgement = judge(given, _added_by_threads(x).astype(dtype), _SUM)
    assert judgement.passed, judgement.message
    means = broadcast(reduction.mean, x, dim=[1], keepdim=True)
    assert judge(means, (_added_by_threads(x) / np.float32(length)).astype(dtype), SumBound(mean=True)).passed


@pytest.mark.parametrize("length", [7, 31, 500, 5000])
def test_sums_without_a_term_or_in_half_are_rejected(length: int) -> None:
    x = _rows(length, "float16")
    given = broadcast(reduction.sum, x, dim=1, keepdim=True, result="float32", common="float16")
    one_less = _added_by_threads(x[:, :-1])
    assert judge(given, one_less, _SUM).failing.all()
    in_half = np.add.accumulate(x, axis=1, dtype=np.float16)[:, -1:].astype(np.float32)
    assert judge(given, in_half, _SUM).failing.mean() > 0.8


def test_a_sum_of_one_term_is_a_copy() -> None:
    x = np.array([[1.7], [1e-41]], np.float32)
    given = broadcast(reduction.sum, x, dim=1)
    assert judge(given, x[:, 0], _SUM).passed
    assert judge(given, np.nextafter(x[:, 0], np.float32(9)), _SUM).failing.tolist() == [True, True]


def test_sums_of_integers_are_exact_and_wrap() -> None:
    x = np.array([2**63 - 1, 1, 5], np.int64)
    given = broadcast(reduction.sum, x)
    assert judge(given, np.array(-(2**63) + 5), _SUM).passed
    assert not judge(given, np.array(-(2**63) + 6), _SUM).passed
    truths = broadcast(reduction.sum, np.array([True, True, False]), result="int64")
    assert judge(truths, np.array(2), _SUM).passed


def test_sums_of_exceptional_numbers() -> None:
    x = np.array([[np.inf, 1], [np.inf, -np.inf], [np.nan, 1], [3e38, 3e38]], np.float32)
    given = broadcast(reduction.sum, x, dim=1)
    assert judge(given, np.array([np.inf, np.nan, np.nan, np.inf], np.float32), _SUM).passed
    assert judge(given, np.array([1, np.inf, 1, 1], np.float32), _SUM).failing.all()
    nansum = broadcast(reduction.nansum, x[2:3], dim=1)
    assert judge(nansum, np.array([1], np.float32), _SUM).passed


def test_partial_sums_may_overflow_in_some_order() -> None:
    x = np.array([[3e38, 3e38, -3e38]], np.float32)
    given = broadcast(reduction.sum, x, dim=1)
    for got in (np.inf, 3e38):
        assert judge(given, np.array([got], np.float32), _SUM).passed


@pytest.mark.parametrize(
    ("terms", "right", "wrong"),
    [
        ([3e38, -3e38, 3e38, 3e38, -1e38], [np.nan, np.inf], []),
        ([3e38, 3e38], [np.inf], [np.nan, -np.inf, 3e38]),
        ([3e38, 3e38, -1e38], [np.inf], [np.nan, -np.inf]),
        ([3e38, 3e38, 3e38, -3e38, -3e38], [np.inf, -np.inf, np.nan, 3e38], []),
        ([2e38, 1e38, -1e38], [2e38], [np.nan, np.inf, 3e38]),
        ([np.inf, 3e38, 3e38], [np.inf], [np.nan, -np.inf]),
        ([np.inf, -3e38, -3e38], [np.inf, np.nan], []),
    ],
)
def test_a_sum_has_no_value_where_one_order_overflows_and_another_does_not(
    terms: list[float], right: list[float], wrong: list[float]
) -> None:
    given = broadcast(reduction.sum, np.array([terms], np.float32), dim=1)
    for got in (*right, *wrong):
        assert judge(given, np.array([got], np.float32), _SUM).passed == (got in right), got


def test_a_mean_may_be_infinite_whose_sum_is_beyond_the_range() -> None:
    given = broadcast(reduction.mean, np.array([[3e38, 3e38]], np.float32), dim=1)
    for got in (np.inf, 3e38):
        assert judge(given, np.array([got], np.float32), SumBound(mean=True)).passed


def test_a_part_that_may_overflow_is_excused_beside_one_that_is_nan() -> None:
    z = np.array([[complex(3e38, np.nan), complex(3e38, 0), complex(-3e38, 0)]], np.complex64)
    given = broadcast(reduction.sum, z, dim=1)
    assert judge(given, np.array([complex(np.inf, np.nan)], np.complex64), _SUM).passed


def test_one_term_may_be_flushed_but_a_half_may_not() -> None:
    for dtype, passes in (("float32", True), ("bfloat16", True), ("float16", False)):
        described = dtype_of(dtype)
        x = np.array([[described.tiny / 4]]).astype(described.numpy)
        for reference, bound in ((reduction.sum, _SUM), (reduction.prod, ProductBound())):
            given = broadcast(reference, x, dim=1)
            assert judge(given, np.zeros(1, described.numpy), bound).passed == passes
            assert judge(given, x[0], bound).passed


def test_every_partial_sum_may_be_flushed() -> None:
    tiny = float(np.finfo(np.float32).tiny)
    x = np.array([[1.75, -1.0, 1.75, -1.0]], np.float32) * np.float32(tiny)
    given = broadcast(reduction.sum, x, dim=1)  # (1.75 - 1) + (1.75 - 1), twice subnormal
    assert judge(given, np.zeros(1, np.float32), _SUM).passed
    assert not judge(given, np.array([8 * tiny], np.float32), _SUM).passed


def test_one_thread_may_gather_many_terms_in_turn_but_drops_none() -> None:
    x = np.array([[2.0**24, *[1.0] * 400]], np.float32)
    given = broadcast(reduction.sum, x, dim=1)
    in_turn = np.add.accumulate(x, axis=1)[:, -1]
    assert judge(given, in_turn, SumBound(in_turn=True)).passed
    assert not judge(given, in_turn, _SUM).passed
    evenly = broadcast(reduction.sum, np.ones((1, 400), np.float32), dim=1)
    assert not judge(evenly, np.array([399], np.float32), SumBound(in_turn=True)).passed


def test_composed_sums_round_each_step_to_the_tensors_type_in_any_order() -> None:
    given = broadcast(reduction.sum, np.array([[2048, 1, 1, 1]], np.float16), dim=1)
    for got, right in ((2048, True), (2052, True), (2060, False)):
        assert judge(given, np.array([got], np.float16), SumBound(composed=True)).passed == right
    assert not judge(given, np.array([2048], np.float16), _SUM).passed


def test_atomic_additions_may_stagnate_and_overflow_in_the_tensors_type() -> None:
    atomic = SumBound(composed=True, in_turn=True)
    ones = broadcast(reduction.sum, np.ones((1, 400), ml_dtypes.bfloat16), dim=1)
    assert judge(ones, np.array([256], ml_dtypes.bfloat16), atomic).passed
    assert not judge(ones, np.array([256], ml_dtypes.bfloat16), SumBound(in_turn=True)).passed
    beyond = broadcast(reduction.sum, np.array([[60000, 60000, -np.inf]], np.float16), dim=1)
    assert judge(beyond, np.array([np.nan], np.float16), atomic).passed


def test_complex_sums_are_judged_by_their_modulus() -> None:
    z = (_RANDOM.normal(size=(1, 200)) + 1j * _RANDOM.normal(size=(1, 200))).astype(np.complex64)
    given = broadcast(reduction.sum, z, dim=1)
    true = z.astype(np.complex128).sum(axis=1)
    assert judge(given, true.astype(np.complex64), _SUM).passed
    assert not judge(given, (true - z[:, 0]).astype(np.complex64), _SUM).passed


def test_gradients_of_pads_are_sums_of_few_terms() -> None:
    x, g = np.zeros(4, np.float32), _RANDOM.uniform(0.5, 1, size=9).astype(np.float32)
    reference = lambda *given, **params: pad_gradient.pad(*given, **params)[0]  # noqa: E731
    for mode, terms in (("constant", [1, 1, 1, 1]), ("circular", [2, 2, 3, 2])):
        given = broadcast(reference, g, g, x, pad=[2, 3], mode=mode)
        copies = reference(np.ones(9), None, x, pad=[2, 3], mode=mode)
        assert copies.tolist() == terms
        right = reference(g, g, x, pad=[2, 3], mode=mode)
        assert judge(given, right.astype(np.float32), _SUM).passed
        off = right.astype(np.float32) * np.float32(1 + 2.0**-18)
        assert judge(given, off, _SUM).failing.all()


def test_the_height_of_the_tree_takes_the_place_of_the_number_of_terms() -> None:
    assert roundings(np.array([0, 1, 2, 32, 400, 16000])).tolist() == [0, 0, 1, 31, 33, 1008]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_products_count_a_rounding_a_factor(dtype: str) -> None:
    x = _RANDOM.uniform(0.7, 1.4, size=(8, 40)).astype(dtype)
    given = broadcast(reduction.prod, x, dim=1)
    got = np.multiply.accumulate(x[:, ::-1].astype(np.float32), axis=1)[:, -1]
    assert judge(given, got.astype(dtype), ProductBound()).passed
    assert judge(given, (got * np.float32(1 + 1e-2)).astype(dtype), ProductBound()).failing.all()


def test_products_whose_order_matters_have_no_value() -> None:
    product = partial(broadcast, reduction.prod)
    over = product(np.array([1e30, 1e30, 1e-30], np.float32))
    for got in (np.inf, 1e30, 0.0):
        assert judge(over, np.array(got, np.float32), ProductBound()).passed
    certain = product(np.array([1e10, 0.0, 1e10], np.float32))
    assert judge(certain, np.array(0.0, np.float32), ProductBound()).passed
    assert not judge(certain, np.array(1.0, np.float32), ProductBound()).passed
    integers = product(np.array([3, 2**62, 4], np.int64))
    assert judge(integers, np.array(0), ProductBound()).passed
    assert not judge(integers, np.array(4), ProductBound()).passed


def test_bounds_of_sums_have_names_and_sources() -> None:
    assert "sum" in SumBound().name
    assert "mean" in SumBound(mean=True).name
    assert all("Higham" in bound.source for bound in (SumBound(), ProductBound()))


def test_the_operand_that_is_added_may_be_another_one() -> None:
    def scattered(index: Array, x: Array) -> Array:
        return np.stack([np.where(index == i, x, 0.0).sum() for i in range(2)])

    index, x = np.array([0, 1, 1]), np.array([1.5, 2.5, 3.1], np.float32)
    given = Computation((index, x.astype(np.float64)), ("int64", "float32"), {}, "float32", scattered)
    bound = SumBound(operand=1)
    assert judge(given, np.array([1.5, 5.6], np.float32), bound).passed
    assert judge(given, np.array([1.5000001, 5.600002], np.float32), bound).failing.all()


def test_composed_complex_sums_with_infinite_terms_are_not_judged() -> None:
    z = np.array([[1, complex(0, np.inf)]], np.complex64)
    given = broadcast(reduction.sum, z, dim=1)
    got = np.array([complex(np.nan, np.nan)], np.complex64)
    assert judge(given, got, SumBound(composed=True)).passed
    assert not judge(given, got, _SUM).passed
