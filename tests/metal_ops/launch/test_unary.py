"""Unary kernels over random layouts, types and results, against torch on the CPU."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.metal_ops.launch.layouts import Laid, untouched
from tests.metal_ops.launch.tensors import as_view
from tests.metal_ops.launch.test_choices import LAUNCHES

FLOATS = [torch.float32, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
OPS = {
    "abs.out": (torch.abs, [*FLOATS, *INTEGERS]),
    "bitwise_not.out": (torch.bitwise_not, [*INTEGERS, torch.bool]),
    "ceil.out": (torch.ceil, [*FLOATS, *INTEGERS]),
    "exp.out": (torch.exp, [*FLOATS, *INTEGERS, torch.bool]),
    "isposinf.out": (torch.isposinf, FLOATS),
    "logical_not.out": (torch.logical_not, [*FLOATS, *INTEGERS, torch.bool]),
    "neg.out": (torch.neg, [*FLOATS, *INTEGERS, torch.complex64]),
    "sigmoid.out": (torch.sigmoid, [*FLOATS, *INTEGERS]),
    "silu.out": (torch.nn.functional.silu, [*FLOATS, torch.complex64]),
    "special_i0e.out": (torch.special.i0e, FLOATS),
    "tan.out": (torch.tan, [torch.float32, torch.complex64]),
}
NUMBERS = {
    "clamp.out": (torch.clamp, (-1, 1.5)),
    "elu.out": (lambda x, *p: torch.ops.aten.elu(x, *p), (1.5, 2.0, 0.5)),
    "hardshrink.out": (torch.nn.functional.hardshrink, (0.75,)),
    "leaky_relu.out": (torch.nn.functional.leaky_relu, (0.3,)),
    "nan_to_num.out": (torch.nan_to_num, (1.0, None, None)),
    "pow.Tensor_Scalar_out": (torch.pow, (3,)),
    "softplus.out": (torch.nn.functional.softplus, (1.5, 2.0)),
}
CONVERTED = [torch.float32, torch.float16, torch.bfloat16]
SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def values(shape, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if dtype.is_floating_point or dtype.is_complex:
        parts = torch.randn((*shape, 2), generator=generator) * 2
        return torch.view_as_complex(parts) if dtype.is_complex else parts[..., 0].to(dtype)
    low = 0 if dtype == torch.uint8 else -9
    return torch.randint(low, 10, shape, generator=generator).to(dtype)


_DIGITS = {torch.float16: 2**-9, torch.bfloat16: 2**-6}


def assert_close(result, expected):
    """Equal but for the last places of the coarser of the types in which the op and the result are rounded."""
    if not result.dtype.is_floating_point and not result.dtype.is_complex:
        assert torch.equal(result, expected.to(result.dtype))
        return
    digits = max(_DIGITS.get(type_, 4e-6) for type_ in (result.dtype, expected.dtype))
    torch.testing.assert_close(result, expected.to(result.dtype), rtol=digits, atol=digits, equal_nan=True)


shapes = st.lists(st.integers(0, 5), max_size=4).map(tuple) | st.sampled_from([(3, 40), (2, 17, 3)])


@pytest.mark.parametrize("op", OPS)
@SETTINGS
@given(data=st.data(), shape=shapes, seed=st.integers(0, 2**32), random=st.randoms())
def test_values_over_layouts_and_types(launcher, op, data, shape, seed, random):
    function, types = OPS[op]
    given = values(shape, data.draw(st.sampled_from(types)), seed)
    expected = function(given)
    castable = [t for t in CONVERTED if torch.can_cast(expected.dtype, t) and not expected.dtype.is_complex]
    result_type = data.draw(st.sampled_from([expected.dtype, *castable]))
    source, out = Laid(given, random), Laid(torch.zeros(shape, dtype=result_type), random)
    LAUNCHES[op](launcher, as_view(source.tensor), out=as_view(out.tensor))
    assert_close(out.tensor, expected)
    assert torch.equal(source.tensor, given)
    assert untouched(source, out)


@pytest.mark.parametrize("op", NUMBERS)
@SETTINGS
@given(dtype=st.sampled_from(FLOATS), shape=shapes, seed=st.integers(0, 2**32), random=st.randoms())
def test_parameters_over_layouts_and_types(launcher, op, dtype, shape, seed, random):
    function, numbers = NUMBERS[op]
    given = values(shape, dtype, seed)
    source, out = Laid(given, random), Laid(torch.zeros(shape, dtype=dtype), random)
    LAUNCHES[op](launcher, as_view(source.tensor), *numbers, out=as_view(out.tensor))
    assert_close(out.tensor, function(given, *numbers))
    assert untouched(source, out)


@SETTINGS
@given(dtype=st.sampled_from(FLOATS), shape=shapes, seed=st.integers(0, 2**32), random=st.randoms())
def test_in_place(launcher, dtype, shape, seed, random):
    given = values(shape, dtype, seed)
    target = Laid(given, random)
    view = as_view(target.tensor)
    LAUNCHES["neg.out"](launcher, view, out=view)
    LAUNCHES["hardtanh_"](launcher, view, -0.5, 1)
    assert torch.equal(target.tensor, torch.neg(given).clamp(-0.5, 1))
    assert untouched(target)


def test_broadcast_operands_and_channels_last(launcher):
    expanded = torch.randn(3, 1).expand(3, 4)
    images = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    for source in (expanded, images):
        out = torch.empty_like(source)
        LAUNCHES["exp.out"](launcher, as_view(source), out=as_view(out))
        assert_close(out, torch.exp(source))


def test_a_new_angle(launcher):
    for source in (values((3, 4), torch.complex64, 1), values((3, 4), torch.int32, 2).t()):
        made, expected = LAUNCHES["angle"](launcher, as_view(source)), torch.angle(source)
        assert made.strides == expected.stride()
        assert_close(torch.from_numpy(made.array().copy()), expected)


def test_magnitudes_of_complex_numbers(launcher):
    source = values((3, 4), torch.complex64, 3)
    out = torch.empty(4, 3).t()
    LAUNCHES["abs.out"](launcher, as_view(source), out=as_view(out))
    assert_close(out, source.abs())


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 0.5, -0.5, 2.5])
def test_powers_of_integers_and_floats(launcher, exponent):
    for source in (torch.arange(1, 8, dtype=torch.int32), torch.linspace(0.5, 2, 7)):
        if exponent == -1 and not source.is_floating_point():
            continue  # torch refuses it
        expected = torch.pow(source, exponent)
        out = torch.empty_like(expected)
        LAUNCHES["pow.Tensor_Scalar_out"](launcher, as_view(source), exponent, out=as_view(out))
        assert_close(out, expected)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_polygamma_of_integers(launcher, order):
    source, out = torch.arange(1, 6), torch.empty(5)
    LAUNCHES["polygamma.out"](launcher, order, as_view(source), out=as_view(out))
    torch.testing.assert_close(out, torch.polygamma(order, source), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", ["dense", "strided"])
def test_mantissa_and_exponent(launcher, layout):
    source = values((3, 4), torch.float32, 4) if layout == "dense" else values((4, 3), torch.float32, 4).t()
    mantissa, exponent = torch.empty(3, 4), torch.empty(3, 4, dtype=torch.int32)
    LAUNCHES["frexp.Tensor_out"](launcher, as_view(source), mantissa=as_view(mantissa), exponent=as_view(exponent))
    expected = torch.frexp(source)
    assert torch.equal(mantissa, expected.mantissa)
    assert torch.equal(exponent, expected.exponent)


@pytest.mark.parametrize("layout", ["dense", "strided"])
def test_gated_units(launcher, layout):
    dense = values((3, 8, 2), torch.float32, 5)
    source = dense if layout == "dense" else values((8, 3, 2), torch.float32, 5).transpose(0, 1)
    grad, out, grad_input = values((3, 4, 2), torch.float32, 6), torch.empty(3, 4, 2), torch.empty(3, 8, 2)
    LAUNCHES["glu.out"](launcher, as_view(source), 1, out=as_view(out))
    assert_close(out, torch.nn.functional.glu(source, 1))
    LAUNCHES["glu_backward.grad_input"](launcher, as_view(grad), as_view(source), 1, grad_input=as_view(grad_input))
    assert_close(grad_input, torch.ops.aten.glu_backward(grad, source, 1))


def test_log_sigmoid_gives_no_buffer(launcher):
    source = values((3, 4), torch.float32, 7)
    output, buffer = LAUNCHES["log_sigmoid_forward"](launcher, as_view(source))
    assert_close(torch.from_numpy(output.array().copy()), torch.nn.functional.logsigmoid(source))
    assert buffer.shape == (0,)
