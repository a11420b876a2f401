"""Fills: every type at every alignment, gaps untouched, and the rounding and range of the value."""

from __future__ import annotations

import pytest
import torch

from conformance.devices.base import Unsupported
from metal_ops.launch.fill import LAUNCHES, fill
from tests.metal_ops.launch.recording import Recorder, view
from tests.metal_ops.launch.tensors import ALL_TYPES, outside, poisoned, same_bits, tensor_of, view_of


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
@pytest.mark.parametrize("strides", [None, (1, 5), (6, 2), (24, 4)], ids=str)
@pytest.mark.filterwarnings("ignore")
def test_every_element_and_nothing_else_is_set(launcher, type_, strides):
    for offset in range(5):
        target = poisoned((5, 3), type_, strides, offset)
        fill(launcher, target, 2)
        assert same_bits(tensor_of(target), torch.full((5, 3), 2.0).to(type_))
        assert (outside(target) == 0xA5).all()


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (torch.float32, 0.1),
        (torch.float32, float("nan")),
        (torch.float16, 65503.0),
        (torch.bfloat16, 1.00390625000001),
        (torch.float16, float("-inf")),
        (torch.float8_e4m3fn, 447.0),
        (torch.int32, 2.9),
        (torch.int32, -2.9),
        (torch.uint8, -1),
        (torch.int64, -(2**63)),
        (torch.uint64, 2**64 - 1),
        (torch.bool, 0.5),
        (torch.complex64, 0.1 - 0.2j),
        (torch.float32, 3 + 0j),
    ],
    ids=str,
)
def test_values_are_rounded_as_torch_rounds_them(launcher, type_, value):
    target = poisoned((3,), type_)
    LAUNCHES["fill_.Scalar"](launcher, target, value)
    assert same_bits(tensor_of(target), torch.empty(3, dtype=type_).fill_(value))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("int8", 128),
        ("int8", -129),
        ("uint8", -256),
        ("uint8", -0.5e3),
        ("int32", float("nan")),
        ("float16", 65520.0),
        ("float8_e4m3fn", float("inf")),
        ("float32", 1j),
        ("float32", 1e39),
    ],
)
def test_values_outside_of_the_type_are_refused(type_, value):
    with pytest.raises(RuntimeError, match="without overflow"):
        fill(Recorder(), view((2,), type_=type_), value)
    if type_ != "float8_e4m3fn":  # whose infinity torch's CPU kernel makes NaN
        with pytest.raises(RuntimeError):
            torch.empty(2, dtype=getattr(torch, type_)).fill_(value)


def test_a_tensor_fills_by_broadcasting(launcher):
    target = poisoned((2, 3), torch.float32)
    LAUNCHES["fill_.Tensor"](launcher, target, view_of(torch.tensor(7)))
    assert tensor_of(target).tolist() == [[7.0] * 3] * 2
    LAUNCHES["fill_.Tensor"](launcher, target, view_of(torch.tensor(0.5, dtype=torch.float64)))
    assert tensor_of(target).tolist() == [[0.5] * 3] * 2
    LAUNCHES["zero_"](launcher, target)
    assert tensor_of(target).tolist() == [[0.0] * 3] * 2


def test_bytes_are_filled_in_aligned_words():
    recorder = Recorder()
    fill(recorder, view((5,), offset=3, type_="int8"), 1)
    ((name, _, threads, _, _),) = recorder.launches
    assert (name, threads) == ("fill_scalar_dense_char", (2, 1, 1))


def test_float8_is_filled_as_bytes_and_gaps_have_a_kernel_of_their_own():
    recorder = Recorder()
    fill(recorder, view((4,), type_="float8_e4m3fn"), 1)
    fill(recorder, view((4,), (2,)), 1)
    fill(recorder, view((4, 3), (1, 4)), 1)
    fill(recorder, view((0,)), 1)
    assert recorder.names == ["fill_scalar_dense_uchar", "fill_scalar_strided_float", "fill_scalar_dense_float"]


def test_what_metal_has_not_is_unsupported():
    with pytest.raises(Unsupported, match="float64"):
        fill(Recorder(), view((2,), type_="float64"), 1)
