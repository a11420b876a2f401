from __future__ import annotations

import json
import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.dtypes import dtype as dtype_of
from conformance.formats import narrowed
from conformance.op import Computation
from conformance.oracle import Contract, CorrectlyRounded, Exact, Limit, Normwise, Rules, SumBound, judge
from references import unary
from tests.conformance.oracle.computations import computation, judged, operands, rounded

_MAX = np.finfo(np.float32).max


def test_the_worst_element_is_found_and_described() -> None:
    x = np.array([[0.5, 1.0], [2.0, -1.5]], np.float32)
    got = np.exp(x.astype(np.float64)).astype(np.float32)
    got[1, 0] *= np.float32(1.001)
    judgement = judged(np.exp, Contract("exp"), got, x, "float32")
    assert judgement.worst == 2
    assert judgement.failing.tolist() == [[False, False], [True, False]]
    assert not judgement.passed
    assert judgement.worst_units == judgement.units[1, 0] > 1000
    for part in ("[1, 0]", "2.0 [0x40000000]", "7.389056", "MSL 8.1 exp: 4 ulp", "ulp"):
        assert part in judgement.message


def test_patterns_have_no_number_and_stay_json() -> None:
    x = np.array([1.0, np.nan, np.inf, -np.inf], np.float32)
    right = np.exp(x)
    assert judged(np.exp, Contract("exp"), right, x, "float32").passed
    for index in range(4):
        got = right.copy()
        got[index] = np.nan if index != 1 else 1.0
        judgement = judged(np.exp, Contract("exp"), got, x, "float32")
        assert np.flatnonzero(judgement.failing).tolist() == [index]
        assert json.dumps([judgement.worst_units, judgement.worst_ulp]) == "[null, null]"


def test_the_sign_of_an_infinity_counts() -> None:
    x = np.array([0.0], np.float32)
    assert judged(np.log, Contract("log"), np.array([-np.inf], np.float32), x, "float32").passed
    assert not judged(np.log, Contract("log"), np.array([np.inf], np.float32), x, "float32").passed


def test_overflow_is_judged_as_if_the_exponents_went_on() -> None:
    """A limit of 4 ulp, about true values given in ulp from 2**128, which an infinite result stands for."""
    bound = Limit(4.0, "a test")
    ulp_at_end = 2.0**104
    for beyond, finite_is_right, infinite_is_right in (
        (-3.0, True, True),
        (-6.0, False, False),
        (2.5, True, True),
        (9.0, False, True),
    ):

        def near_the_end(x: np.ndarray, beyond: float = beyond, **params: Any) -> np.ndarray:
            return np.full(x.shape, 2.0**128 + beyond * ulp_at_end)

        for got, right in ((_MAX, finite_is_right), (np.inf, infinite_is_right), (-np.inf, False)):
            result = np.array([got], np.float32)
            assert judged(near_the_end, bound, result, np.ones(1, np.float32), "float32").passed is right, (beyond, got)


def test_half_overflow_rounds_at_the_boundary() -> None:
    x = np.array([255.875, 256.0], np.float16)  # squares: 65472 rounds to 65472, 65536 to inf
    assert judged(np.square, CorrectlyRounded("a test"), np.array([65472, np.inf], np.float16), x, "float16").passed
    assert not judged(
        np.square, CorrectlyRounded("a test"), np.array([np.inf, np.inf], np.float16), x, "float16"
    ).passed


def test_integers_beyond_float64_are_compared_exactly() -> None:
    x = np.array([2**62 + 1])
    given = Computation((x,), ("int64",), {}, "int64", unary.absolute)
    assert judge(given, x, Exact("a test")).passed
    assert not judge(given, x - 1, Exact("a test")).passed


def test_predicates() -> None:
    x = np.array([np.inf, 1.0], np.float32)
    given = Computation((x.astype(np.float64),), ("float32",), {}, "bool", unary.isposinf)
    assert judge(given, np.array([True, False]), Exact("a predicate")).passed
    assert judge(given, np.array([True, True]), Exact("a predicate")).failing.tolist() == [False, True]


def test_empty_results_pass() -> None:
    judgement = judged(np.exp, Contract("exp"), np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), "float32")
    assert judgement.passed
    assert (judgement.worst, judgement.worst_units, judgement.message) == (None, 0.0, "")


def test_scalars_are_judged() -> None:
    judgement = judged(np.exp, Contract("exp"), np.array(1.0, np.float32), np.array(0.0, np.float32), "float32")
    assert judgement.passed
    assert judgement.worst == 0
    for got, right in ((-np.inf, True), (np.nan, False)):
        tiny, result = np.array(1e-40, np.float32), np.array(got, np.float32)
        judgement = judged(np.log, Contract("log"), result, tiny, "float32")
        assert judgement.passed is right
        assert judgement.units.shape == ()


def test_the_wrong_type_or_shape_is_named() -> None:
    x = np.ones(3, np.float32)
    with pytest.raises(ValueError, match="dtype float32; given: float64"):
        judged(np.exp, Contract("exp"), np.exp(np.ones(3)), x, "float32")
    with pytest.raises(ValueError, match=r"shape \(3,\); given: \(2,\)"):
        judged(np.exp, Contract("exp"), np.ones(2, np.float32), x, "float32")


def test_all_bfloats_are_judged_within_50_ms() -> None:
    x = operands("bfloat16")
    given = computation(x, "bfloat16", np.exp)
    with np.errstate(all="ignore"):
        got = rounded(np.exp(x.astype(np.float64)), "bfloat16")
    assert got.dtype == ml_dtypes.bfloat16
    durations = []
    for _ in range(5):
        start = time.perf_counter()
        assert judge(given, got, Contract("exp")).passed
        durations.append(time.perf_counter() - start)
    assert min(durations) < 0.05


@pytest.mark.parametrize("dtype", ["complex64", "complex32"])
def test_a_copy_of_a_complex_number_has_both_parts(dtype: str) -> None:
    number_format = dtype_of(dtype)
    largest = number_format.max
    parts = [(largest, np.nan), (np.nan, -largest), (np.inf, 1.0), (np.nan, -0.0), (0.0, -0.0)]
    x = np.array([complex(*pair) for pair in parts])
    copied = Computation((x,), (dtype,), {}, dtype, lambda z: z)
    signed = Exact("a test", rules=Rules(signed_zero=True))
    right = narrowed(x, number_format)
    assert judge(copied, right, signed).passed
    for index, other in enumerate((complex(1, np.nan), complex(np.nan, 3), complex(np.inf, 2), complex(np.nan, 0), 0j)):
        got = x.copy()
        got[index] = other
        assert np.flatnonzero(judge(copied, narrowed(got, number_format), signed).failing).tolist() == [index]


def test_an_undefined_complex_number_may_have_the_largest_part() -> None:
    z = np.array([complex(np.nan, np.finfo(np.float32).max)])
    computed = Computation((z,), ("complex64",), {}, "complex64", lambda z: z)
    bound = Normwise(1.0, "a test")
    assert judge(computed, z.astype(np.complex64), bound).passed
    assert not judge(computed, np.array([1j], np.complex64), SumBound()).passed
