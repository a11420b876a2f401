"""Pointwise ops of three operands against torch, over layouts and types, with the host's choice among kernels."""

from __future__ import annotations

import pytest
import torch

from metal_ops.launch.ternary import LAUNCHES
from tests.metal_ops.launch.recording import Recorder, view
from tests.metal_ops.launch.tensors import layouts, outside, poisoned, same_bits, tensor_of, view_of

SHAPES = [(), (5,), (3, 4), (2, 3, 4, 5)]


def numbers(shape, type_, seed):
    """Small whole numbers above zero: every op on them is exact, or one division."""
    return torch.randint(1, 5, shape, generator=torch.Generator().manual_seed(seed)).to(type_)


def check(launcher, op, expected, *operands, **numbers):
    for strides in (expected.stride(), tuple(2 * step for step in expected.stride())):
        out = poisoned(tuple(expected.shape), expected.dtype, strides, offset=1)
        LAUNCHES[op](launcher, *map(view_of, operands), **numbers, out=out)
        made = tensor_of(out)
        if op == "addcdiv.out":
            assert torch.allclose(made, expected, rtol=torch.finfo(expected.dtype).eps)
        else:
            assert same_bits(made, expected)
        assert (outside(out) == 0xA5).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("type_", [torch.float32, torch.float16, torch.int32, torch.complex64], ids=str)
def test_values_agree_with_torch(launcher, shape, type_):
    third = numbers(shape, type_, 3)
    for first in layouts(numbers(shape, type_, 1)):
        for second in (numbers(shape, type_, 2), numbers(shape[-1:], type_, 2), torch.tensor(2.0)):
            check(launcher, "addcmul.out", torch.addcmul(first, second, third, value=2), first, second, third, value=2)
            if type_.is_floating_point or type_.is_complex:
                wanted = torch.addcdiv(first, second, third, value=2)
                check(launcher, "addcdiv.out", wanted, first, second, third, value=2)
            if not type_.is_complex:
                check(launcher, "clamp.Tensor_out", torch.clamp(first, second, third), first, second, third)
            if second.dtype == type_ and type_ != torch.int32:
                wanted = torch.lerp(first, second.expand(shape), torch.ones(shape, dtype=type_))
                check(launcher, "lerp.Tensor_out", wanted, first, second, torch.ones(shape, dtype=type_))


def test_a_double_of_the_host_is_rounded_to_float(launcher):
    value = torch.tensor(0.1, dtype=torch.float64)
    first, third = torch.ones(3), torch.full((3,), 2.0)
    check(launcher, "addcmul.out", torch.addcmul(first, value, third), first, value, third)


@pytest.mark.parametrize("bound", ["min", "max"])
def test_clamp_with_one_bound_is_a_binary_op(launcher, bound):
    source, limit = torch.arange(6.0), torch.tensor([3.0] * 6)
    out = poisoned((6,), torch.float32)
    minimum, maximum = (view_of(limit), None) if bound == "min" else (None, view_of(limit))
    LAUNCHES["clamp.Tensor_out"](launcher, view_of(source), minimum, maximum, out=out)
    assert torch.equal(tensor_of(out), torch.clamp(source, **{bound: limit}))
    assert launcher.take_names()[0].startswith("maximum" if bound == "min" else "minimum")


def recorded(op, *operands, out, missing=(), **keywords):
    recorder = Recorder(*missing)
    LAUNCHES[op](recorder, *operands, **keywords, out=out)
    (launch,) = recorder.launches
    return launch


def test_dense_operands_have_a_thread_each():
    name, arguments, threads, _, _ = recorded("clamp.Tensor_out", *[view((3, 4), (1, 3))] * 3, out=view((3, 4), (1, 3)))
    assert (name, threads) == ("clamp_dense_float_float", (12, 1, 1))
    assert set(arguments) == {"out", "input", "other1", "other2"}


def test_strided_operands_are_walked_in_three_dimensions():
    source = view((2, 3, 4, 5), (600, 100, 20, 2))
    name, arguments, threads, _, _ = recorded("clamp.Tensor_out", *[source] * 3, out=view((2, 3, 4, 5)))
    assert (name, threads) == ("clamp_strided_float_float", (5, 4, 6))
    assert arguments["sizes"].tolist() == [5, 4, 3, 2]
    assert arguments["input_strides"].tolist() == [8, 80, 400, 2400]
    assert arguments["ndim"] == 4


def test_operands_of_different_types_are_cast_to_the_common_one():
    half, single = view((4,), type_="float16"), view((4,))
    name, arguments, *_ = recorded(
        "clamp.Tensor_out", half, single, half, out=single, missing=["clamp_dense_float_half"]
    )
    assert name == "clamp_dense_cast_float"
    assert arguments["types"] == (5, 6, 5, 6)
    assert arguments["sizes"] == (2, 4, 2, 4)


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        ("float16", "addcmul_dense_half_half_float"),
        ("complex32", "addcmul_dense_half2_half2_float2"),
        ("int8", "addcmul_dense_char_char_char"),
    ],
)
def test_numbers_are_passed_in_the_type_of_the_computation(type_, name):
    operand = view((4,), type_=type_)
    assert recorded("addcmul.out", operand, operand, operand, value=2, out=operand)[0] == name


def test_addcmul_of_bools_is_refused():
    flags = view((4,), type_="bool")
    with pytest.raises(RuntimeError, match="not implemented for bool"):
        recorded("addcmul.out", flags, flags, flags, value=1, out=flags)
