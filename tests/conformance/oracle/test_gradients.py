from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy

from conformance.op import Computation
from conformance.oracle import ByKind, InRange, Normwise, Rules, RunningError, judge
from conformance.oracle.units import ulp
from references.gradients import activation, binary, reduction, special, unary
from tests.conformance.oracle.computations import broadcast

Array = np.ndarray[Any, Any]

_KERNEL = RunningError("a test")
_COMPOSED = RunningError("a test", composed=True)
_RANDOM = np.random.default_rng(0)


def _component(vjp: Callable[..., Any], position: int = 0) -> Callable[..., Array]:
    return lambda *given, **params: vjp(*given, **params)[position]


def _silu_case(dtype: str) -> tuple[Array, Computation]:
    g, x = (_RANDOM.normal(size=4000, scale=scale).astype(dtype) for scale in (1.0, 4.0))
    result = (x / (1 + np.exp(-x.astype(np.float32)))).astype(dtype)
    given = broadcast(_component(activation.silu), g, result, x)
    return np.asarray(given.reference(*given.inputs)), given


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_right_gradients_are_accepted(dtype: str) -> None:
    """Each step with float32 rounding, in another order than the formula's."""
    _, given = _silu_case(dtype)
    g, _, x = (part.astype(np.float32) for part in given.inputs)
    s = np.float32(1) / (np.float32(1) + np.exp(-x))
    got = (s * (np.float32(1) + x * (np.float32(1) - s)) * g).astype(dtype)
    judgement = judge(given, got, _KERNEL)
    assert judgement.passed, judgement.message


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_wrong_gradients_are_rejected(dtype: str) -> None:
    value, given = _silu_case(dtype)
    g, result, x = (part.astype(dtype) for part in given.inputs)
    off = np.where(np.abs(x) < 1, 40 if dtype == "float32" else 2, np.nan)
    enlarged = (value + off * ulp(value, dtype)).astype(dtype)
    assert judge(given, enlarged, _KERNEL).failing[np.abs(x) < 1].mean() > 0.9
    s = scipy.special.expit(x.astype(np.float64)).astype(dtype)
    forgotten = g * s * (1 + x * s)
    assert judge(given, forgotten.astype(dtype), _KERNEL).failing.mean() > 0.9
    of_result = g * result
    assert judge(given, of_result.astype(dtype), _KERNEL).failing.mean() > 0.9


def test_gradients_computed_in_half_are_right_only_if_they_are_composed() -> None:
    g, y = (_RANDOM.uniform(0.1, 1, size=4000).astype(np.float16) for _ in range(2))
    given = broadcast(_component(unary.tanh), g, y, y)
    in_half = g * (np.float16(1) - y * y)
    in_float = (g.astype(np.float32) * (1 - y.astype(np.float32) ** 2)).astype(np.float16)
    assert judge(given, in_float, _KERNEL).passed
    assert judge(given, in_half, _COMPOSED).passed
    assert judge(given, in_half, _KERNEL).failing.mean() > 0.2


def test_the_bound_of_one_product_is_one_rounding() -> None:
    g, x = (_RANDOM.normal(size=1000).astype(np.float16) for _ in range(2))
    given = broadcast(_component(binary.mul), g, g, x, x)
    assert judge(given, g * x, _COMPOSED).passed
    beside = np.nextafter(g * x, np.float16(np.inf))
    assert judge(given, beside, _COMPOSED).failing.mean() > 0.95


def test_copies_are_exact() -> None:
    g = _RANDOM.normal(size=100).astype(np.float32)
    given = broadcast(_component(binary.add), g, g, g, g)
    assert judge(given, g, _COMPOSED).passed
    assert judge(given, np.nextafter(g, np.float32(9)), _COMPOSED).failing.all()


def test_a_gradient_that_cancels_may_be_as_wrong_as_its_steps() -> None:
    """1 - tanh(x)**2 from a saved result near 1: half an ulp of the square, however small the difference."""
    y = np.array([0.9997], np.float32)
    one = np.ones(1, np.float32)
    given = broadcast(_component(unary.tanh), one, y, one * 4)
    true = 1 - y.astype(np.float64) ** 2
    assert judge(given, (true + 0.9 * 2.0**-25).astype(np.float32), _COMPOSED).passed
    assert not judge(given, (true + 2.0**-23).astype(np.float32), _COMPOSED).passed


def test_an_overflow_halfway_leaves_no_value_and_nothing_else_does() -> None:
    def vjp(g: Array, result: Array, x: Array) -> tuple[Array]:
        return (g * (x * x) / x,)

    x = np.array([1e30, 1e10, np.inf, np.nan], np.float32)
    one = np.ones(4, np.float32)
    given = broadcast(_component(vjp), one, one, x)
    right = np.array([np.inf, 1e10, np.nan, np.nan], np.float32)
    assert judge(given, right, _KERNEL).passed
    for wrong in ([np.inf, np.nan, np.nan, np.nan], [np.inf, np.inf, np.nan, np.nan]):
        assert judge(given, np.array(wrong, np.float32), _KERNEL).failing.tolist() == [False, True, False, False]
    assert judge(given, one, _KERNEL).failing.tolist() == [False, True, True, True]


def test_an_overflow_that_is_divided_away_leaves_a_value() -> None:
    def vjp(g: Array, result: Array, x: Array) -> tuple[Array]:
        return (g / (1.0 + np.exp(x)),)

    x, one = np.array([100.0], np.float32), np.ones(1, np.float32)
    given = broadcast(_component(vjp), one, one, x)
    assert judge(given, np.zeros(1, np.float32), _KERNEL).passed
    assert not judge(given, np.array([1e-30], np.float32), _KERNEL).passed
    assert not judge(given, np.array([np.nan], np.float32), _KERNEL).passed


def test_an_overflow_counts_in_the_type_of_the_steps() -> None:
    x, one = np.array([300.0], np.float16), np.ones(1, np.float16)
    given = broadcast(_component(lambda g, result, x: (g * (x * x) / x,)), one, one, x)
    infinite = np.array([np.inf], np.float16)
    assert judge(given, infinite, _COMPOSED).passed
    assert not judge(given, infinite, _KERNEL).passed


def test_a_pole_at_an_operand_is_exact() -> None:
    x, one = np.array([1.0, -0.5], np.float32), np.ones(2, np.float32)
    given = broadcast(_component(unary.asin), one, one, x)
    right = np.array([np.inf, 1 / np.sqrt(0.75)], np.float32)
    assert judge(given, right, _COMPOSED).passed
    assert judge(given, np.array([3e38, 1.0], np.float32), _COMPOSED).failing.tolist() == [True, True]


def test_subnormals_may_be_flushed() -> None:
    g, x = np.array([1e-40, 1e-30, 1.0], np.float32), np.array([3.0, 1e-10, 2.0], np.float32)
    given = broadcast(_component(binary.mul), g, g, x, x)
    assert judge(given, g * x, _KERNEL).passed
    assert judge(given, np.array([0, 0, 2], np.float32), _KERNEL).passed
    assert judge(given, np.array([0, 0, 0], np.float32), _KERNEL).failing.tolist() == [False, False, True]


def test_a_subnormal_operand_may_choose_the_other_branch() -> None:
    x, g = np.array([1e-40, 1e-30], np.float32), np.array([2.0, 2.0], np.float32)
    given = broadcast(_component(activation.leaky_relu), g, g, x, negative_slope=0.25)
    assert judge(given, g, _KERNEL).passed
    assert judge(given, g * np.float32(0.25), _KERNEL).failing.tolist() == [False, True]
    assert judge(given, g * np.float32(1.25), _KERNEL).failing.all()


def test_gradients_of_broadcast_operands_are_sums() -> None:
    g = _RANDOM.uniform(0.2, 1.0, size=(4096, 3)).astype(np.float32)
    x, y = np.ones((4096, 3), np.float32), np.full((1, 3), 0.3, np.float32)
    given = broadcast(_component(binary.add, 1), g, x + y, x, y)
    true = g.astype(np.float64).sum(axis=0, keepdims=True)
    assert judge(given, true.astype(np.float32), _COMPOSED).passed
    one_less = true - g[-1:]
    assert judge(given, one_less.astype(np.float32), _COMPOSED).failing.all()
    in_half = np.add.accumulate(g.astype(np.float16), axis=0, dtype=np.float16)[-1:]
    assert judge(given, in_half.astype(np.float32), _COMPOSED).failing.all()


def test_equal_largest_elements_share_a_gradient_exactly() -> None:
    x = np.array([[1.0, 3.0, 3.0, 2.0]], np.float32)
    g, result = np.array([[7.0]], np.float32), np.array([[3.0]], np.float32)
    given = broadcast(_component(reduction.amax), g, result, x, dim=1, keepdim=True)
    assert judge(given, np.array([[0, 3.5, 3.5, 0]], np.float32), _COMPOSED).passed
    assert not judge(given, np.array([[0, 3.5, 3.5000002, 0]], np.float32), _COMPOSED).passed


def test_the_type_of_a_gradient_may_be_narrower_than_the_computation() -> None:
    g, x, y = np.float32([1.7]), np.array([2.5], np.float16), np.float32([0.3])
    given = broadcast(_component(binary.mul), g, g, x, y, common="float32", result="float16")
    true = g.astype(np.float64) * y
    assert judge(given, true.astype(np.float16), _COMPOSED).passed
    assert not judge(given, np.nextafter(true.astype(np.float16), np.float16(9)), _COMPOSED).passed


def test_scalar_parameters_have_two_readings() -> None:
    g = np.array([1000.0], np.float16)
    given = broadcast(_component(activation.leaky_relu), g, g, -g, negative_slope=0.7)
    for slope, right in ((np.float32(0.7), True), (np.float16(0.7), True), (np.float32(0.71), False)):
        assert judge(given, (g * float(slope)).astype(np.float16), _KERNEL).passed is right


def test_rules_hold_for_gradients_too() -> None:
    g = np.ones(2, np.float32)
    given = broadcast(
        _component(binary.mul), g, g, np.array([-1.0, 2.0], np.float32), np.array([-1.0, 2.0], np.float32)
    )
    anything = RunningError("a test", rules=Rules(undefined=lambda dtype, g, result, x, other: x < 0))
    for bound, failing in ((_KERNEL, [True, False]), (anything, [False, False])):
        assert judge(given, np.array([7.0, 2.0], np.float32), bound).failing.tolist() == failing
    poles = RunningError("a test", rules=Rules(two_sided_poles=True))
    at_zero = broadcast(_component(unary.log), g, g, np.zeros(2, np.float32))
    assert judge(at_zero, np.array([-np.inf, np.inf], np.float32), poles).passed
    assert judge(at_zero, np.array([-np.inf, np.inf], np.float32), _KERNEL).failing.tolist() == [True, False]


def test_complex_gradients_are_judged_by_their_modulus() -> None:
    bound = ByKind(_KERNEL, Normwise(16.0, "a test"))
    g, z = np.array([1 + 2j, -3j], np.complex64), np.array([0.5 - 1j, 2 + 1j], np.complex64)
    given = broadcast(_component(binary.mul), g, g * z, z, z)
    assert judge(given, (g * np.conj(z)).astype(np.complex64), bound).passed
    assert judge(given, (g * z).astype(np.complex64), bound).failing.all()
    assert judge(given, (g * np.conj(z) * (1 + 1e-4)).astype(np.complex64), bound).failing.all()
    with pytest.raises(TypeError, match="complex64, which Normwise judges"):
        _KERNEL.accept(given)


def test_what_has_no_rule_is_named() -> None:
    one = np.ones(1, np.float32)
    with pytest.raises(TypeError, match="'cbrt' has no rule for intervals; allowed: absolute, add"):
        _KERNEL.accept(broadcast(_component(lambda g, result, x: (np.cbrt(x),)), one, one, one))
    with pytest.raises(TypeError, match="'cumsum' has no rule for intervals"):
        _KERNEL.accept(broadcast(_component(lambda g, result, x: (np.cumsum(x),)), one, one, one))
    with pytest.raises(TypeError, match="array of an interval"):
        _KERNEL.accept(broadcast(_component(lambda g, result, x: (np.asarray(x),)), one, one, one))
    with pytest.raises(TypeError, match="takes operands only; given: accumulate"):
        _KERNEL.accept(broadcast(_component(lambda g, result, x: (np.add.accumulate(x),)), one, one, one))


def test_special_functions_stand_under_the_house_rule() -> None:
    g, x = np.ones(3, np.float32), np.array([0.4, 2.2, 7.5], np.float32)
    given = broadcast(_component(lambda g, result, x: (g * scipy.special.psi(x),)), g, g, x)
    value = scipy.special.psi(x.astype(np.float64))
    for ulps, right in ((10, True), (200, False)):
        got = (value + ulps * ulp(value, "float32")).astype(np.float32)
        assert judge(given, got, _KERNEL).passed is right
    zeta = broadcast(_component(lambda g, result, x: (g * scipy.special.zeta(x + 1.0, 2.0),)), g, g, x)
    assert judge(zeta, scipy.special.zeta(x.astype(np.float64) + 1, 2.0).astype(np.float32), _KERNEL).passed


def test_shapes_that_do_not_broadcast_are_no_hindrance() -> None:
    x = _RANDOM.normal(size=(5, 8)).astype(np.float32)
    g = _RANDOM.normal(size=(5, 4)).astype(np.float32)
    for rules in (Rules(), Rules(undefined=lambda dtype, *given: np.asarray(False), two_sided_poles=True)):
        given = broadcast(_component(activation.glu), g, g, x, dim=1)
        value = given.reference(*given.inputs, dim=1)
        bound = RunningError("a test", rules=rules)
        assert judge(given, value.astype(np.float32), bound).passed
        assert judge(given, (value * 1.001).astype(np.float32), bound).failing.all()


def test_complex_gradients_of_reductions_with_subnormal_parts() -> None:
    z = np.array([[1 + 2j, 1e-40 + 1j, 3 - 1j]], np.complex64)
    result = z.astype(np.complex128).prod(axis=1, keepdims=True).astype(np.complex64)
    g = np.array([[1 + 0j]], np.complex64)
    given = broadcast(_component(reduction.prod), g, result, z, dim=1, keepdim=True)
    value = given.reference(*given.inputs, dim=1, keepdim=True)
    bound = Normwise(16.0, "a test")
    assert judge(given, value.astype(np.complex64), bound).passed
    assert judge(given, (value * 1.001).astype(np.complex64), bound).failing.all()


def test_a_comparison_with_nan_may_choose_either_branch() -> None:
    g, x = np.full(5, 3.0, np.float32), np.array([np.nan] * 4 + [1.0], np.float32)
    given = broadcast(_component(activation.hardswish), g, g, x)
    got = np.array([np.nan, 0.0, 3.0, 2.0, np.nan], np.float32)
    assert judge(given, got, _KERNEL).failing.tolist() == [False, False, False, True, True]
    undefined = broadcast(_component(activation.hardswish), g * np.float32(np.nan), g, x)
    assert judge(undefined, got, _KERNEL).failing.tolist() == [False, False, True, True, False]
    product = broadcast(_component(unary.square), g, g, x)
    assert judge(product, got, _KERNEL).failing.tolist() == [False, True, True, True, True]


def test_a_product_of_three_factors_is_rounded_twice_in_some_order() -> None:
    """(1 - y) y is a float32 number here, but in another order both products are rounded."""
    g, y = np.array([1.4768145], np.float32), np.array([1 - 3 * 2.0**-16], np.float32)
    given = broadcast(_component(unary.sigmoid), g, y, y)
    assert judge(given, g * (np.float32(1) - y) * y, _KERNEL).passed
    assert judge(given, g * ((np.float32(1) - y) * y), _KERNEL).passed
    wrong = g * ((np.float32(1) - y) * y) + 4 * ulp(np.asarray(given.reference(g, y, y)), "float32")
    assert not judge(given, wrong.astype(np.float32), _KERNEL).passed


def test_a_composed_constant_may_be_rounded_to_the_type_of_the_tensors() -> None:
    """erfcx'(1) = 2 erfcx(1) - 2 / sqrt(pi) of halves, the constant as a float32 or as a half."""
    one, result = np.ones(1, np.float16), np.array([0.4275], np.float16)
    given = broadcast(_component(special.erfcx), one, result, one)
    constant = 2.0 / np.sqrt(np.pi)
    for scalar in (np.float16(constant), np.float32(constant)):
        assert judge(given, (2 * result - scalar).astype(np.float16), _COMPOSED).passed
    assert not judge(given, np.array([-0.2715], np.float16), _COMPOSED).passed


def test_a_function_that_is_no_ufunc_stands_under_the_house_rule_in_each_type() -> None:
    g, x = np.array([-1.607], np.float16), np.array([1.0], np.float16)
    given = broadcast(_component(special.digamma), g, x, x)
    twice_rounded = g * np.float16(np.pi**2 / 6)
    assert judge(given, twice_rounded, _COMPOSED).passed
    assert not judge(given, twice_rounded * np.float16(1.004), _COMPOSED).passed


def test_a_function_that_may_be_computed_in_half_is_granted_ulp_of_half() -> None:
    one, x = np.ones(1, np.float16), np.array([0.1251], np.float16)
    given = broadcast(_component(special.i0), one, one, x)
    value = np.asarray(given.reference(one, one, x.astype(np.float64)))
    for steps, right in ((1.0, True), (12.0, False)):
        off = (value + steps * ulp(value, "float16")).astype(np.float16)
        assert judge(given, off, _COMPOSED).passed is right


def test_complex_gradients_are_not_judged_after_an_overflow() -> None:
    bound = InRange(Normwise(16.0, "a test"))
    x = np.array([1e28 + 1e10j, 2.0 + 1.0j], np.complex64)
    one = np.ones(2, np.complex64)
    given = broadcast(_component(unary.atan), one, one, x)
    nothing = np.full(2, np.nan, np.complex64)
    assert judge(given, nothing, bound).failing.tolist() == [False, True]
    right = np.asarray(given.reference(one, one, x.astype(np.complex128))).astype(np.complex64)
    assert judge(given, right, bound).passed


@pytest.mark.parametrize("at", [2.0, 1e38])
def test_a_quotient_of_complex_numbers_may_overflow_in_its_sums(at: float) -> None:
    bound = InRange(Normwise(16.0, "a test"))
    g = np.array([-at + 3 * at * 1j], np.complex64)
    one = np.ones(1, np.complex64) * (1 + 1j)
    given = broadcast(_component(unary.log10), g, one, one)
    assert judge(given, np.array([-np.inf], np.complex64), bound).passed is (at > 2.0)


def test_a_large_quotient_may_lose_one_when_it_is_made_whole() -> None:
    """As in the op itself: of a float32 quotient of 15,747,714 the next whole number is the next number."""
    g, x, y = (np.array([number], np.float32) for number in (0.5620855, 8.863571e32, -5.628481e25))
    given = broadcast(_component(binary.remainder, 1), g, np.zeros_like(g), x, y)
    (true,) = given.reference(*given.inputs)
    for lost, right in ((0, True), (1, True), (3, False)):
        assert judge(given, np.array([true - lost * g[0]], np.float32), _COMPOSED).passed == right
    small = broadcast(_component(binary.remainder, 1), g, np.zeros_like(g), np.array([7.5], np.float32), 2 + 0 * g)
    assert not judge(small, np.array([-4 * g[0]], np.float32), _COMPOSED).passed


def test_a_factor_that_a_device_documents_may_err_more() -> None:
    g, x = np.array([-414.95944], np.float32), np.array([-0.08711085], np.float32)
    given = broadcast(_component(unary.acos), g, np.arccos(x), x)
    off = np.array([given.reference(*given.inputs)[0] * (1 + 2.0**-22)], np.float32)
    assert not judge(given, off, _COMPOSED).passed
    assert judge(given, off, RunningError("a test", composed=True, factor=2.0**-22)).passed


def test_a_power_that_overflows_even_in_the_reference_is_not_judged() -> None:
    vjp = _component(binary.pow)
    gradient, z = np.ones(1, np.complex64), np.array([-2.1474836e9j], np.complex64)
    for exponent, right in ((3.4028233e38 - 3.4028233e38j, True), (2.0 + 0j, False)):
        given = broadcast(vjp, gradient, np.zeros_like(gradient), z, np.array([exponent], np.complex64))
        assert judge(given, np.zeros(1, np.complex64), InRange(Normwise(16.0, "a test", composed=True))).passed == right
