from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.op import Computation
from conformance.oracle import Inherited, MultilinearBound, judge
from conformance.oracle.intervals import Interval
from conformance.oracle.steps import Steps

Array = NDArray[Any]


def product(a: Array, b: Array) -> Array:
    return np.asarray(a @ b)


def added(c: Array, a: Array, b: Array, *, alpha: float, beta: float) -> Array:
    return alpha * (a @ b) + (beta * c if beta else 0.0)


def of(reference: Any, *operands: Array, dtype: str = "float32", **params: Any) -> Computation:
    wide = tuple(x.astype(np.complex128 if np.iscomplexobj(x) else np.float64) for x in operands)
    return Computation(wide, (dtype,) * len(operands), params, dtype, reference, dtype)


def random(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def in_turn(a: Array, b: Array, kind: Any) -> Array:
    """Accumulated term after term in a type."""
    total = np.zeros((a.shape[0], b.shape[1]), kind)
    for k in range(a.shape[1]):
        total = (total + (a[:, k : k + 1] * b[k : k + 1]).astype(kind)).astype(kind)
    return total


@pytest.mark.parametrize("inner", [1, 3, 64, 1000])
def test_any_order_of_float32_additions_is_right(inner: int) -> None:
    a, b = random(5, inner), random(inner, 4, seed=1)
    for got in (a @ b, in_turn(a, b, np.float32), in_turn(a[:, ::-1], b[::-1], np.float32)):
        assert judge(of(product, a, b), got, MultilinearBound()).passed


@pytest.mark.parametrize("inner", [3, 64, 1000])
def test_a_dropped_term_is_wrong(inner: int) -> None:
    a, b = np.abs(random(5, inner)) + 1, np.abs(random(inner, 4, seed=1)) + 1
    assert not judge(of(product, a, b), a[:, :-1] @ b[:-1], MultilinearBound()).passed


def test_half_is_accumulated_in_float32_and_rounded_once() -> None:
    a, b = random(5, 300, dtype=np.float16), random(300, 4, seed=1, dtype=np.float16)
    right = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    given = of(product, a, b, dtype="float16")
    assert judge(given, right, MultilinearBound()).passed
    assert not judge(given, in_turn(a, b, np.float16), MultilinearBound()).passed
    assert judge(given, right, MultilinearBound(stored_steps=1)).passed


def test_complex_products_are_judged_by_modulus() -> None:
    a, b = (random(4, 9, seed=s) + 1j * random(4, 9, seed=s + 1) for s in (0, 2))
    a, b = a.astype(np.complex64), b.T.astype(np.complex64)
    assert judge(of(product, a, b, dtype="complex64"), a @ b, MultilinearBound()).passed
    assert not judge(of(product, a, b, dtype="complex64"), a @ b.conj(), MultilinearBound()).passed


def test_numbers_that_scale_count_by_their_size() -> None:
    c, a, b = random(3, 2), random(3, 8), random(8, 2, seed=1)
    bound = MultilinearBound(scaled_by=("alpha", "beta"))
    given = of(added, c, a, b, alpha=-0.3, beta=-1.5)
    assert judge(given, np.float32(-0.3) * (a @ b) + np.float32(-1.5) * c, bound).passed
    assert not judge(given, -0.31 * (a @ b) - np.float32(1.5) * c, bound).passed
    nothing = np.full_like(c, np.nan)
    assert judge(of(added, nothing, a, b, alpha=1.0, beta=0.0), a @ b, bound).passed


def test_what_is_not_finite_stays_where_it_is() -> None:
    a, b = random(2, 3), random(3, 2, seed=1)
    a[0, 1] = np.inf
    with np.errstate(invalid="ignore"):
        got = a @ b
    assert judge(of(product, a, b), got, MultilinearBound()).passed
    wrong = got.copy()
    wrong[0, 0] = 1.0
    assert not judge(of(product, a, b), wrong, MultilinearBound()).passed
    large = np.full((1, 2), 3e38, np.float32)
    assert judge(
        of(product, large, np.array([[1.0], [-1.0]])), np.array([[np.nan]], np.float32), MultilinearBound()
    ).passed


def test_integers_are_exact_and_wrap_around() -> None:
    a = np.array([[2**31 - 1, 1]], np.int64)
    given = Computation((a, a.T), ("int32", "int32"), {}, "int32", product, "int32")
    assert judge(given, np.array([[2]], np.int32), MultilinearBound()).passed
    assert not judge(given, np.array([[3]], np.int32), MultilinearBound()).passed


@pytest.mark.parametrize("inner", [1, 7, 100])
def test_a_product_of_intervals_holds_what_devices_compute(inner: int) -> None:
    a, b, c = random(3, inner), random(inner, 4, seed=1), random(4, 2, seed=2)
    steps = Steps("float32", "float32")
    found = (Interval.exact(a, steps) @ Interval.exact(b, steps)) @ Interval.exact(c, steps)
    got = (a @ b) @ c
    assert (found.low <= got).all()
    assert (got <= found.high).all()
    assert (found.high - found.low < 1e-3 * (np.abs(a) @ np.abs(b) @ np.abs(c))).all()


def test_a_formula_with_a_product_judges_infinities() -> None:
    a, b = random(2, 3), random(3, 2, seed=1)
    a[0, 1] = np.inf
    bound = Inherited(lambda x, y: x @ y, "a formula")
    with np.errstate(invalid="ignore"):
        got = a @ b
    assert judge(of(product, a, b), got, bound).passed
    assert not judge(of(product, a, b), np.zeros((2, 2), np.float32), bound).passed


def test_flushed_operands_may_be_large_products() -> None:
    a, b = np.float32([[1e-40, 1.0]]), np.float32([[1e38], [1.0]])
    given = of(product, a, b)
    assert judge(given, np.float32([[1.0]]), MultilinearBound()).passed
    assert judge(given, (a @ b).astype(np.float32), MultilinearBound()).passed
    assert not judge(given, np.float32([[1.03]]), MultilinearBound()).passed
    infinite = of(product, np.float32([[1e-40]]), np.float32([[np.inf]]))
    assert judge(infinite, np.float32([[np.nan]]), MultilinearBound()).passed
    assert not judge(of(product, np.float32([[1.0]]), b[:1]), np.float32([[0.0]]), MultilinearBound()).passed


def test_finite_terms_that_overflow_beside_an_infinity_leave_it_open() -> None:
    a, b = np.float32([[3e38, 1.0]]), np.float32([[10.0], [-np.inf]])
    assert judge(of(product, a, b), np.float32([[np.nan]]), MultilinearBound()).passed
    small = np.float32([[3e3, 1.0]])
    assert not judge(of(product, small, b), np.float32([[np.nan]]), MultilinearBound()).passed


def test_a_factor_of_zero_may_skip_the_product_but_not_the_addend() -> None:
    bound = MultilinearBound(scaled_by=("alpha", "beta"), skipping=("alpha",))
    c, a, b = np.float32([[5.0]]), np.float32([[np.inf]]), np.float32([[1.0]])
    for got in (5.0, np.nan):
        assert judge(of(added, c, a, b, alpha=0.0, beta=1.0), np.float32([[got]]), bound).passed
    assert not judge(of(added, c, b, b, alpha=0.0, beta=1.0), np.float32([[np.nan]]), bound).passed
    hidden = of(added, a, b, b, alpha=1.0, beta=0.0)
    assert judge(hidden, np.float32([[1.0]]), bound).passed
    assert not judge(hidden, np.float32([[np.nan]]), bound).passed


def test_a_product_may_overflow_before_it_is_scaled() -> None:
    bound = MultilinearBound(scaled_by=("alpha", "beta"))
    c, a, b = np.float32([[0.0]]), np.float32([[3e38]]), np.float32([[10.0]])
    assert judge(of(added, c, a, b, alpha=0.1, beta=1.0), np.float32([[np.inf]]), bound).passed


def test_results_of_a_format_without_infinity_are_held_to_its_range() -> None:
    number = ml_dtypes.float8_e4m3fn
    a, b = np.float64([[100.0, 1.0]]), np.float64([[100.0], [1.0]])
    given = of(product, a, b, dtype="float8_e4m3fn")
    assert judge(given, np.array([[448.0]], number), MultilinearBound()).passed
    for wrong in (416.0, -448.0, np.nan):
        assert not judge(given, np.array([[wrong]], number), MultilinearBound()).passed
    within = of(product, a, b / 100, dtype="float8_e4m3fn")
    assert judge(within, np.array([[104.0]], number), MultilinearBound()).passed
    assert not judge(within, np.array([[112.0]], number), MultilinearBound()).passed


def test_integers_among_floats_are_no_factors() -> None:
    def of_row(a: Array, b: Array, row: Array) -> Array:
        return np.asarray(a[row] @ b)

    a, b, row = random(3, 40), random(40, 2, seed=1), np.array([2])
    given = Computation((a.astype(float), b.astype(float), row), ("float32",) * 2 + ("int32",), {}, "float32", of_row)
    assert judge(given, (a[2:] @ b).astype(np.float32), MultilinearBound()).passed
    assert not judge(given, (a[:1] @ b).astype(np.float32), MultilinearBound()).passed
