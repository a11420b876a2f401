"""Binary kernels over random layouts, types and results, against torch on the CPU."""

from __future__ import annotations

import operator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.metal_ops.launch.layouts import Laid, untouched
from tests.metal_ops.launch.tensors import as_view
from tests.metal_ops.launch.test_choices import LAUNCHES
from tests.metal_ops.launch.test_unary import FLOATS, INTEGERS, SETTINGS, assert_close, values

REALS = [*FLOATS, *INTEGERS]
OPS = {
    "add.out": (lambda a, b: torch.add(a, b, alpha=3), [*REALS, torch.complex64], {"alpha": 3}),
    "sub.out": (torch.sub, [*REALS, torch.complex64], {"alpha": 1}),
    "mul.out": (torch.mul, [*REALS, torch.bool, torch.complex64], {}),
    "div.out": (torch.div, [*FLOATS, torch.complex64], {}),
    "maximum.out": (torch.maximum, REALS, {}),
    "fmin.out": (torch.fmin, REALS, {}),
    "atan2.out": (torch.atan2, REALS, {}),
    "hypot.out": (torch.hypot, FLOATS, {}),
    "eq.Tensor_out": (torch.eq, [*REALS, torch.bool], {}),
    "lt.Tensor_out": (torch.lt, [*REALS, torch.bool], {}),
    "logical_xor.out": (torch.logical_xor, [*REALS, torch.bool], {}),
    "bitwise_and.Tensor_out": (torch.bitwise_and, [*INTEGERS, torch.bool], {}),
    "bitwise_left_shift.Tensor_out": (torch.bitwise_left_shift, [torch.uint8], {}),
    "gcd.out": (torch.gcd, INTEGERS, {}),
    "copysign.out": (torch.copysign, REALS, {}),
}
BACKWARD = {
    "hardsigmoid_backward.grad_input": (),
    "hardshrink_backward.grad_input": (0.5,),
    "leaky_relu_backward.grad_input": (0.1, False),
    "logit_backward.grad_input": (None,),
    "sigmoid_backward.grad_input": (),
    "silu_backward.grad_input": (),
    "softplus_backward.grad_input": (1.5, 2.0),
    "softshrink_backward.grad_input": (0.5,),
    "tanh_backward.grad_input": (),
}
COMPARISONS = ("eq.Tensor_out", "lt.Tensor_out", "logical_xor.out")


@st.composite
def shape_pairs(draw) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes of which one broadcasts to the other, or both to a third."""
    whole = draw(st.sampled_from([(), (5,), (3, 4), (2, 3, 4), (3, 40), (2, 1, 3), (0, 3)]))
    parts = []
    for _ in range(2):
        part = tuple(draw(st.sampled_from([size, size, size, 1])) for size in whole)
        parts.append(part[draw(st.sampled_from([0, 0, 0, *range(len(part) + 1)])) :])
    return parts[0], parts[1]


@pytest.mark.parametrize("op", OPS)
@SETTINGS
@given(data=st.data(), shapes=shape_pairs(), seed=st.integers(0, 2**32), random=st.randoms())
def test_values_over_layouts_and_types(launcher, op, data, shapes, seed, random):
    function, types, keywords = OPS[op]
    given = [values(shape, data.draw(st.sampled_from(types)), seed + place) for place, shape in enumerate(shapes)]
    expected = function(*given)
    result_type = expected.dtype
    if op in COMPARISONS:
        result_type = data.draw(st.sampled_from([torch.bool, torch.float32, torch.int32]))
    operands = [Laid(tensor, random) for tensor in given]
    out = Laid(torch.zeros(expected.shape, dtype=result_type), random)
    views = [as_view(operand.tensor) for operand in operands]
    LAUNCHES[op](launcher, *views, **keywords, out=as_view(out.tensor))
    assert_close(out.tensor, expected)
    assert untouched(*operands, out)


@pytest.mark.parametrize("number", [True, 3, 2.5, -1])
@SETTINGS
@given(dtype=st.sampled_from([*REALS, torch.complex64]), seed=st.integers(0, 2**32), random=st.randoms())
def test_numbers_on_either_side(launcher, number, dtype, seed, random):
    given = values((3, 4), dtype, seed)
    tensor = Laid(given, random)
    for op, function, operands in (
        ("mul.out", operator.mul, (given, number)),
        ("sub.out", operator.sub, (number, given) if not isinstance(number, bool) else (given, given)),
    ):
        expected = function(*operands)
        out = Laid(torch.zeros(expected.shape, dtype=expected.dtype), random)
        views = [as_view(tensor.tensor) if isinstance(each, torch.Tensor) else each for each in operands]
        keywords = {"alpha": 1} if op == "sub.out" else {}
        LAUNCHES[op](launcher, *views, **keywords, out=as_view(out.tensor))
        assert_close(out.tensor, expected)
        assert untouched(tensor, out)


@pytest.mark.parametrize("op", BACKWARD)
@SETTINGS
@given(dtype=st.sampled_from(FLOATS), shape=st.sampled_from([(5,), (3, 4), (3, 40)]), random=st.randoms())
def test_gradients_of_activations(launcher, op, dtype, shape, random):
    grad, kept = values(shape, dtype, 1), values(shape, dtype, 2)
    if op.startswith("logit"):
        kept = kept.abs().clamp(0.1, 0.9)
    expected = getattr(torch.ops.aten, op.removesuffix(".grad_input"))(grad, kept, *BACKWARD[op])
    laid = [Laid(grad, random), Laid(kept, random), Laid(torch.zeros(shape, dtype=dtype), random)]
    views = [as_view(each.tensor) for each in laid]
    LAUNCHES[op](launcher, *views[:2], *BACKWARD[op], grad_input=views[2])
    assert_close(laid[2].tensor, expected)
    assert untouched(*laid)


def test_gradients_with_parameters_in_other_places(launcher):
    grad, kept = values((3, 4), torch.float32, 1), values((3, 4), torch.float32, 2)
    views, out = (as_view(grad), as_view(kept)), torch.empty(3, 4)
    for approximate in ("none", "tanh"):
        LAUNCHES["gelu_backward.grad_input"](launcher, *views, approximate=approximate, grad_input=as_view(out))
        assert_close(out, torch.ops.aten.gelu_backward(grad, kept, approximate=approximate))
    numbers = (1.5, 2.0, 0.5, False)
    LAUNCHES["elu_backward.grad_input"](launcher, views[0], *numbers, views[1], grad_input=as_view(out))
    assert_close(out, torch.ops.aten.elu_backward(grad, *numbers, kept))
    made = LAUNCHES["mish_backward"](launcher, *views)
    assert_close(torch.from_numpy(made.array().copy()), torch.ops.aten.mish_backward(grad, kept))
    made = LAUNCHES["log_sigmoid_backward"](launcher, *views, as_view(torch.empty(0)))
    expected = torch.ops.aten.log_sigmoid_backward(grad, kept, torch.exp(-kept.abs()))
    assert_close(torch.from_numpy(made.array().copy()), expected)


def test_in_place_on_an_operand(launcher):
    target, other = torch.randn(4, 3).t(), torch.randn(3, 4)
    expected = target + 2 * other
    LAUNCHES["add.out"](launcher, as_view(target), as_view(other), alpha=2, out=as_view(target))
    assert torch.equal(target, expected)


@pytest.mark.parametrize("mode", [None, "floor", "trunc"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_rounded_division(launcher, mode, dtype):
    first, second = values((50,), dtype, 1), values((50,), dtype, 2)
    second[second == 0] = 3
    expected = torch.div(first, second, rounding_mode=mode)
    out = torch.empty_like(expected)
    LAUNCHES["div.out_mode"](launcher, as_view(first), as_view(second), rounding_mode=mode, out=as_view(out))
    assert_close(out, expected)


def test_results_that_the_launch_allocates(launcher):
    first, second = torch.arange(1, 7, dtype=torch.int32).reshape(2, 3), torch.tensor([1, 2, 3], dtype=torch.int16)
    for op, function in (("__lshift__.Tensor", operator.lshift), ("floor_divide", operator.floordiv)):
        made, expected = LAUNCHES[op](launcher, as_view(first), as_view(second)), function(first, second)
        assert (made.dtype.name, made.strides) == ("int32", expected.stride())
        assert torch.equal(torch.from_numpy(made.array().copy()), expected)
    made = LAUNCHES["rsub.Tensor"](launcher, as_view(first), as_view(second), alpha=2)
    assert torch.equal(torch.from_numpy(made.array().copy()), torch.rsub(first, second, alpha=2))
    made = LAUNCHES["remainder.Scalar_Tensor"](launcher, 7, as_view(first))
    assert torch.equal(torch.from_numpy(made.array().copy()), torch.remainder(7, first))


def test_complex_numbers_of_parts(launcher):
    first, second = values((3, 4), torch.float32, 1), values((4,), torch.float32, 2)
    out = torch.empty(3, 4, dtype=torch.complex64)
    for op, function in (("complex.out", torch.complex), ("polar.out", torch.polar)):
        LAUNCHES[op](launcher, as_view(first), as_view(second), out=as_view(out))
        assert_close(out, function(first, second.expand(3, 4)))


def test_interpolation_takes_its_weight_in_float(launcher):
    start, end = values((3, 4), torch.float16, 1), values((3, 4), torch.float16, 2)
    out = torch.empty_like(start)
    LAUNCHES["lerp.Scalar_out"](launcher, as_view(start), as_view(end), 0.3, out=as_view(out))
    assert_close(out, torch.lerp(start, end, 0.3))
