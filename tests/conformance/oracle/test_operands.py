from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from conformance.op import Computation
from conformance.oracle import CorrectlyRounded, Exact, judge
from conformance.oracle.operands import compute_type, in_common_type, operands, parameters
from references import binary
from tests.conformance.oracle.computations import broadcast

_ROUNDED = CorrectlyRounded("a test")


def test_operands_are_converted_to_the_common_type() -> None:
    integers, halves = np.array([2**24 + 1, -3], np.int64), np.array([1.5, 2.5], np.float16)
    x, y = operands(broadcast(np.add, integers, halves, common="float32"))
    assert x.tolist() == [2.0**24, -3.0]
    assert y.tolist() == [1.5, 2.5]
    (wrapped, truth) = operands(broadcast(np.add, np.array([300, -1]), np.array([True, False]), common="uint8"))
    assert wrapped.tolist() == [44, 255]
    assert truth.tolist() == [1, 0]
    (narrow, _) = operands(broadcast(np.add, np.array([0.1, 1e6], np.float32), halves, common="float16"))
    assert narrow.tolist() == [float(np.float16(0.1)), np.inf]
    (parts, _) = operands(broadcast(np.add, np.array([True]), np.array([1j], np.complex64), common="complex64"))
    assert parts.dtype == np.complex128


def test_integers_become_bfloat_by_way_of_float32() -> None:
    given = broadcast(np.add, np.array([2**24 + 2**16 + 1]), np.ones(1, ml_dtypes.bfloat16), common="bfloat16")
    assert operands(given)[0].tolist() == [2.0**24]


def test_without_a_common_type_nothing_is_converted() -> None:
    condition, x = np.array([True]), np.array([2.0], np.float32)
    given = Computation((condition, x, x), ("bool", "float32", "float32"), {}, "float32", np.where)
    assert operands(given)[0].dtype == np.bool_


def test_scalars_are_taken_in_the_type_of_the_computation() -> None:
    x = np.ones(1, np.float16)
    given = broadcast(binary.add, x, x, alpha=0.1, dim=-1)
    assert parameters(given) == {"alpha": float(np.float32(0.1)), "dim": -1}
    assert in_common_type(given) == {"alpha": float(np.float16(0.1)), "dim": -1}
    assert in_common_type(broadcast(binary.add, x, x, alpha=0.5)) is None
    assert in_common_type(broadcast(binary.add, np.ones(1, np.float32), alpha=0.1)) is None


def test_integer_scalars_that_are_operands_wrap() -> None:
    given = broadcast(np.equal, np.array([255], np.uint8), result="bool", other=-1, dim=-1)
    assert parameters(given) == {"other": -1, "dim": -1}
    assert parameters(replace(given, scalars=("other",))) == {"other": 255, "dim": -1}
    large = replace(broadcast(np.add, np.ones(1, np.float32), other=2**24 + 1), scalars=("other",))
    assert parameters(large) == {"other": 2.0**24}


def test_a_half_may_be_multiplied_by_either_reading_of_a_scalar_and_by_nothing_else() -> None:
    x = np.array([1000.0], np.float16)
    for factor, right in ((np.float32(0.7), True), (np.float16(0.7), True), (np.float32(0.701), False)):
        got = (x.astype(np.float64) * float(factor)).astype(np.float32).astype(np.float16)
        assert judge(broadcast(binary.mul, x, other=0.7), got, _ROUNDED).passed is right


@pytest.mark.parametrize(
    ("dtype", "computed"),
    [("float16", "float32"), ("bfloat16", "float32"), ("complex32", "complex64"), ("int8", "int8"), ("float32",) * 2],
)
def test_small_types_are_computed_in_single_precision(dtype: str, computed: str) -> None:
    assert compute_type(dtype) == computed


def test_operands_broadcast() -> None:
    x, y = np.arange(3, dtype=np.float32).reshape(3, 1), np.array([0.5, 1e-40], np.float32)
    given = broadcast(binary.mul, x, y)
    assert judge(given, x * y, _ROUNDED).passed
    flushed = x * np.array([0.5, -0.0], np.float32)
    assert judge(given, flushed, _ROUNDED).passed
    assert judge(given, x * np.array([0.5000001, 0], np.float32), _ROUNDED).failing.any(axis=0).tolist() == [
        True,
        False,
    ]


def test_any_of_the_subnormal_operands_may_be_flushed() -> None:
    x, y = np.array([2e-40, -2e-40], np.float32), np.array([1e-40, 1e-40], np.float32)
    for got in (x - y, x, -y, 0 * x, -0.0 * x):
        assert judge(broadcast(binary.sub, x, y), got, _ROUNDED).passed
    assert judge(broadcast(binary.sub, x, y), x + y, _ROUNDED).failing.all()


def test_a_subnormal_may_compare_as_zero() -> None:
    x, y = np.array([1e-40, 1.0], np.float32), np.array([0.0, 0.0], np.float32)
    given = broadcast(binary.gt, x, y, result="bool")
    for bound in (_ROUNDED, Exact("a comparison")):
        for got, right in (([True, True], True), ([False, True], True), ([True, False], False)):
            assert judge(given, np.array(got), bound).passed is right


def test_integers_beyond_2_to_the_53_are_exact() -> None:
    x = np.array([2**62 + 1, 2**53 + 1], np.int64)
    given = broadcast(binary.add, x, np.array([1], np.int64))
    assert judge(given, x + 1, _ROUNDED).passed
    assert judge(given, x + 2, _ROUNDED).failing.all()
    large = np.array([2**64 - 1], np.uint64)
    assert judge(broadcast(binary.add, large, np.array([2], np.uint64)), np.array([1], np.uint64), _ROUNDED).passed
