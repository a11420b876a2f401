from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.op import Computation
from conformance.oracle import (
    ByKind,
    Contract,
    CorrectlyRounded,
    Exact,
    HouseRule,
    Inherited,
    Limit,
    Normwise,
    Rules,
    Stepwise,
    judge,
)
from conformance.oracle.functions import exp
from conformance.oracle.units import ulp
from references import copy
from tests.conformance.oracle.computations import broadcast, computation, judged

_EXP = Contract("exp")


def _halves(*values: float) -> np.ndarray:
    return np.array(values, np.float16)


def _floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_contract_allows_its_ulp_and_not_one_more() -> None:
    x = _floats(0.7, -3.1, 20.0)
    true = np.exp(x.astype(np.float64))
    for ulps, right in ((3.5, True), (-3.5, True), (5.0, False), (-5.0, False)):
        got = (true + ulps * ulp(true, "float32")).astype(np.float32)
        assert judged(np.exp, _EXP, got, x, "float32").passed is right


def test_half_results_are_granted_one_rounding_of_half() -> None:
    x = _halves(0.7, -3.1)
    first = _EXP.accept(computation(x, "float16", np.exp))[0]
    in_ulp = first.tolerance / ulp(first.value, "float16")
    assert in_ulp == pytest.approx(0.5 + 4 * 2.0**-13)


def test_correctly_rounded_accepts_one_value_only() -> None:
    bound = CorrectlyRounded("a test")
    x = _floats(2.0, 3.0)
    right = np.sqrt(x)
    assert judged(np.sqrt, bound, right, x, "float32").passed
    wrong = judged(np.sqrt, bound, np.nextafter(right, np.float32(9)), x, "float32")
    assert wrong.failing.tolist() == [True, True]
    assert wrong.ulp.tolist() == [1.0, 1.0]


def test_correctly_rounded_breaks_ties_to_even() -> None:
    x = _halves(1 + 2.0**-5)  # the square, 1 + 2**-4 + 2**-10, is representable; of the next the last bit is a tie
    y = _halves(1 + 2.0**-10)
    for operand in (x, y):
        right = (operand.astype(np.float64) ** 2).astype(np.float16)
        assert judged(np.square, CorrectlyRounded("a test"), right, operand, "float16").passed
        away = np.nextafter(right, np.float16(2))
        assert not judged(np.square, CorrectlyRounded("a test"), away, operand, "float16").passed


def test_flushed_operands_and_results_of_floats_are_accepted() -> None:
    bound = CorrectlyRounded("a test")
    x = _floats(1e-40, -1e-40)
    for got in (x, _floats(0.0, 0.0), _floats(-0.0, -0.0)):
        assert judged(np.positive, bound, got, x, "float32").passed
    assert not judged(np.positive, Exact("a copy"), _floats(0.0, 0.0), x, "float32").passed


def test_a_flushed_operand_is_carried_through_the_function() -> None:
    got = _floats(-np.inf)
    assert judged(np.log, Contract("log"), got, _floats(1e-40), "float32").passed
    assert not judged(np.log, Contract("log"), got, _floats(1e-30), "float32").passed


def test_half_subnormals_are_never_flushed() -> None:
    x = _halves(-15.0)  # exp(-15) is 3.1e-7, a half subnormal
    assert judged(np.exp, _EXP, np.exp(x.astype(np.float64)).astype(np.float16), x, "float16").passed
    assert not judged(np.exp, _EXP, _halves(0.0), x, "float16").passed


def test_bfloat16_results_below_the_normal_range_are_flushed_as_float_is() -> None:
    import ml_dtypes

    x = np.array([-88.0], ml_dtypes.bfloat16)  # exp(-88) is 6e-39
    assert judged(np.exp, _EXP, np.array([0.0], ml_dtypes.bfloat16), x, "bfloat16").passed


def test_a_sign_of_zero_counts_where_the_rules_say_so() -> None:
    x, got = _floats(-0.0), _floats(0.0)
    assert not judged(np.sin, Contract("sin", Rules(signed_zero=True)), got, x, "float32").passed
    assert judged(np.sin, Contract("sin"), got, x, "float32").passed


def test_unruled_operands_accept_nan_beside_the_limit() -> None:
    bound = Limit(4.0, "a test", Rules(unruled=(-np.inf,)))

    def zero_below(x: np.ndarray, **params: Any) -> np.ndarray:
        return np.where(np.isneginf(x), 0.0, x)

    x = _floats(-np.inf, -np.inf, 1.0)
    assert judged(zero_below, bound, _floats(np.nan, 0.0, 1.0), x, "float32").passed
    assert judged(zero_below, bound, _floats(np.nan, 0.0, np.nan), x, "float32").failing.tolist() == [
        False,
        False,
        True,
    ]
    assert not judged(zero_below, bound, _floats(5.0, 0.0, 1.0), x, "float32").passed


def test_two_sided_poles_accept_either_infinity() -> None:
    bound = HouseRule(16.0, "a test", Rules(two_sided_poles=True))
    x = _floats(0.0)
    for got, right in ((np.inf, True), (-np.inf, True), (np.nan, True), (1e30, False)):
        assert judged(np.reciprocal, bound, _floats(got), x, "float32").passed is right


def test_house_rule_adds_the_condition_near_a_zero() -> None:
    """sin near pi, by a function with a constant of pi that is off by one ulp."""
    bound = HouseRule(4.0, "a test")
    x = _floats(3.1415927, 3.1415925, 0.5)
    got = np.sin(x.astype(np.float64) + np.array([2.0**-22, 2.0**-22, 0.0])).astype(np.float32)
    assert judged(np.sin, bound, got, x, "float32").passed
    far = np.sin(x.astype(np.float64) + np.array([2.0**-19, 0.0, 2.0**-19])).astype(np.float32)
    assert judged(np.sin, bound, far, x, "float32").failing.tolist() == [True, False, True]


def test_house_rule_is_capped_by_the_size_of_the_function() -> None:
    bound = HouseRule(16.0, "a test")
    x = _floats(1e30)
    assert judged(np.sin, bound, _floats(-1.0), x, "float32").passed
    assert not judged(np.sin, bound, _floats(10.0), x, "float32").passed


def test_house_rule_grants_half_arithmetic_where_it_is_native() -> None:
    x = _halves(0.7)
    true = np.exp(x.astype(np.float64))
    got = (true + 3 * ulp(true, "float16")).astype(np.float16)
    assert judged(np.exp, HouseRule(16.0, "a test", native_half=4.0), got, x, "float16").passed
    assert not judged(np.exp, HouseRule(16.0, "a test"), got, x, "float16").passed


def test_inherited_rejects_a_result_lost_to_an_overflow_halfway() -> None:
    def silu(x: np.ndarray, **params: Any) -> np.ndarray:
        return x / (1.0 + np.exp(-x))

    bound = Inherited(lambda x: x / (1.0 + exp(-x)), "a test")
    x = _floats(-90.0)
    assert not judged(silu, bound, _floats(-0.0), x, "float32").passed
    assert judged(silu, bound, silu(x.astype(np.float64)).astype(np.float32), x, "float32").passed


def test_stepwise_accepts_both_sides_of_a_jump_within_reach() -> None:
    bound = Stepwise(2.0, "a test")
    x = _floats(np.nextafter(np.float32(2.5), np.float32(3)), 2.6)
    assert judged(np.rint, bound, _floats(2.0, 3.0), x, "float32").passed
    assert judged(np.rint, bound, _floats(3.0, 3.0), x, "float32").passed
    assert judged(np.rint, bound, _floats(2.0, 2.0), x, "float32").failing.tolist() == [False, True]


def test_integers_convert_once_and_wrap() -> None:
    large = np.array([2**24 + 1], np.int64)
    converted = Computation((large,), ("int64",), {}, "float32", np.sqrt)
    assert judge(converted, np.sqrt(np.float32(2**24)).reshape(1), CorrectlyRounded("a test")).passed
    wrapped = Computation((np.array([100]),), ("int8",), {}, "int8", np.square)
    assert judge(wrapped, np.array([16], np.int8), CorrectlyRounded("a test")).passed
    assert not judge(wrapped, np.array([17], np.int8), CorrectlyRounded("a test")).passed


def test_complex_results_are_judged_by_their_modulus() -> None:
    bound = ByKind(Contract("exp"), Normwise(16.0, "a test"))
    z = np.array([1.0 + 1.5707963j], np.complex64)
    true = np.exp(z.astype(np.complex128))
    given = Computation((z.astype(np.complex128),), ("complex64",), {}, "complex64", np.exp)
    assert judge(given, (true + 1e-7).astype(np.complex64), bound).passed
    assert not judge(given, (true * (1 + 2.0**-16)).astype(np.complex64), bound).passed
    lost = Computation((np.array([1e-40 + 1j]),), ("complex64",), {}, "complex64", np.log)
    assert judge(lost, np.array([1.5707964j], np.complex64), bound).passed
    end = Computation((np.array([128.0 + 0j]),), ("complex64",), {}, "complex64", np.exp2)
    assert judge(end, np.array([np.inf + 0j], np.complex64), bound).passed
    unbounded = Computation((np.array([np.inf + 1j]),), ("complex64",), {}, "complex64", np.exp)
    assert judge(unbounded, np.array([np.nan + 3j], np.complex64), bound).passed


def test_every_bound_has_a_name_and_a_source() -> None:
    normwise = Normwise(16.0, "a test")
    for bound in (_EXP, Exact("a test"), CorrectlyRounded("a test"), Limit(5.0, "a test"), normwise):
        assert bound.name
        assert bound.source
    assert "4 ulp" in _EXP.name
    assert "table 8.1" in _EXP.source
    assert "complex" in ByKind(_EXP, normwise).name


def test_beyond_a_format_without_infinities_some_devices_give_nan() -> None:
    target = ml_dtypes.float8_e4m3fn
    x = np.array([464.0, 512.0, -np.inf], np.float32)
    given = broadcast(copy.cast, x, result="float8_e4m3fn", dtype="torch.float8_e4m3fn")
    saturated, nan = np.array([448, 448, -448], target), np.array([448, np.nan, np.nan], target)
    for bound, passing in ((Exact("a test"), False), (Exact("a test", saturates=False), True)):
        assert judge(given, saturated, bound).passed
        assert judge(given, nan, bound).passed == passing
    all_nan = judge(given, np.full(3, np.nan, target), Exact("a test", saturates=False))
    assert all_nan.failing.tolist() == [True, False, False]
