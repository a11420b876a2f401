"""where, masked_fill and cat against torch, over layouts and types, with the host's choice among kernels."""

from __future__ import annotations

import pytest
import torch

from conformance.devices.base import Unsupported
from metal_ops.launch.select import LAUNCHES
from tests.metal_ops.launch.recording import Recorder, view
from tests.metal_ops.launch.tensors import layouts, outside, poisoned, same_bits, tensor_of, view_of

SHAPES = [(), (5,), (3, 4), (2, 3, 4, 5)]
TYPES = [torch.float32, torch.bfloat16, torch.int8, torch.int64, torch.bool, torch.complex64]


def numbers(shape, type_=torch.float32, seed=0):
    return torch.randint(-4, 5, shape, generator=torch.Generator().manual_seed(seed)).to(type_)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_where_agrees_with_torch_in_values_types_and_strides(launcher, shape):
    for condition in layouts(numbers(shape) > 0):
        for first in layouts(numbers(shape, seed=1)):
            others = (numbers(shape, seed=2), numbers((), seed=3), numbers(shape[-1:], torch.float16, seed=4))
            for other in (*others, numbers(shape, torch.int32, seed=5), numbers((), torch.float64)):
                expected = torch.where(condition, first, other)
                if expected.dtype == torch.float64:  # which the device has not
                    continue
                made = LAUNCHES["where.self"](launcher, view_of(condition), view_of(first), view_of(other))
                assert same_bits(tensor_of(made), expected)
                assert made.strides == expected.stride()


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_where_writes_only_its_elements(launcher, type_):
    first, other, condition = numbers((3, 4), type_), numbers((4,), type_, 1), numbers((3, 1), seed=2) > 0
    out = poisoned((3, 4), type_, (2, 7), offset=3)
    LAUNCHES["where.self_out"](launcher, view_of(condition), view_of(first), view_of(other), out=out)
    assert same_bits(tensor_of(out), torch.where(condition, first, other))
    assert (outside(out) == 0xA5).all()


def test_where_takes_wrapped_numbers_and_bytes_as_condition(launcher):
    condition = torch.tensor([0, 1, 2], dtype=torch.uint8)
    made = LAUNCHES["where.self"](launcher, view_of(condition), view_of(torch.tensor([1, 2, 3])), 0.5)
    assert (made.dtype.name, tensor_of(made).tolist()) == ("float32", [0.5, 2, 3])
    with pytest.raises(RuntimeError, match="condition must be bool"):
        LAUNCHES["where.self"](launcher, view_of(condition.int()), 1, 2)


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize(
    ("shape", "mask"),
    [((), ()), ((5,), (5,)), ((3, 4), (4,)), ((3, 4), (3, 1)), ((2, 3, 4, 5), (1, 3, 4, 5)), ((2, 3, 5), (3, 1))],
)
def test_masked_fill_agrees_with_torch(launcher, type_, shape, mask):
    for target in layouts(numbers(shape, type_)):
        for flags in layouts(numbers(mask, seed=1) > 0):
            changed = view_of(target)
            before = outside(changed).copy()
            LAUNCHES["masked_fill_.Scalar"](launcher, changed, view_of(flags), 3)
            assert same_bits(tensor_of(changed), target.clone().masked_fill_(flags, 3))
            assert (outside(changed) == before).all()


def test_masked_fill_takes_a_tensor_without_dimensions(launcher):
    target = view_of(torch.zeros(3))
    LAUNCHES["masked_fill_.Tensor"](
        launcher, target, view_of(torch.tensor([True, False, True])), view_of(torch.tensor(2))
    )
    assert tensor_of(target).tolist() == [2, 0, 2]
    with pytest.raises(RuntimeError, match="no dimensions"):
        LAUNCHES["masked_fill_.Tensor"](launcher, target, target, target)
    with pytest.raises(RuntimeError, match="mask must be bool"):
        LAUNCHES["masked_fill_.Scalar"](launcher, target, target, 1)


@pytest.mark.parametrize(
    ("target", "mask", "name"),
    [
        (view((3, 4)), view((3, 4), type_="bool"), "masked_fill_scalar_dense_32bit"),
        (view((3, 4), type_="int8"), view((4,), type_="bool"), "masked_fill_scalar_broadcast_8bit"),
        (view((3, 4), type_="complex64"), view((1, 4), type_="bool"), "masked_fill_scalar_broadcast_64bit"),
        (view((3, 4), type_="float16"), view((3, 1), type_="bool"), "masked_fill_scalar_strided_16bit"),
        (view((3, 4), (1, 3)), view((3, 4), type_="bool"), "masked_fill_scalar_strided_32bit"),
    ],
)
def test_the_layouts_choose_the_kernel_of_masked_fill(target, mask, name):
    recorder = Recorder()
    LAUNCHES["masked_fill_.Scalar"](recorder, target, mask, 1)
    assert recorder.names == [name]


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize(
    "types",
    [
        [torch.float32] * 3,
        [torch.float16, torch.int32, torch.bool],
        [torch.int64, torch.uint8, torch.int16],
        [torch.complex64] * 2,
    ],
    ids=str,
)
def test_cat_agrees_with_torch(launcher, dim, types):
    pieces = []
    for place, type_ in enumerate(types):
        shape = [2, 3, 4, 5]
        shape[dim] = place + 1
        pieces.append(list(layouts(numbers(shape, type_, place))))
    for choice in range(5):
        tensors = [options[(choice + place * (choice > 0)) % 5] for place, options in enumerate(pieces)]
        tensors.insert(1, torch.empty(0, dtype=types[0]))
        expected = torch.cat(tensors, dim)
        for strides in (expected.stride(), tuple(3 * step for step in expected.stride())):
            out = poisoned(tuple(expected.shape), expected.dtype, strides, offset=choice)
            LAUNCHES["cat.out"](launcher, tuple(map(view_of, tensors)), dim, out=out)
            assert same_bits(tensor_of(out), expected)
            assert (outside(out) == 0xA5).all()


def cat(*tensors, dim=0, out):
    recorder = Recorder()
    LAUNCHES["cat.out"](recorder, tensors, dim, out=out)
    return recorder.launches


def test_contiguous_tensors_of_one_type_go_in_runs_of_bytes():
    (_, first, threads, *_), (name, second, *_) = cat(view((2, 3)), view((2, 2)), dim=1, out=view((2, 5)))
    assert (name, threads) == ("inner_contiguous_scatter_u32", (2, 1, 1))
    assert first["params"] == {
        "chunk_base": 0,
        "slice_bytes": 12,
        "out_stride_bytes": 20,
        "off_bytes": 0,
        "nbytes": 24,
    }
    assert (second["params"]["off_bytes"], second["params"]["slice_bytes"]) == (12, 8)


@pytest.mark.parametrize(
    ("tensor", "out", "name"),
    [
        (view((2, 3), (1, 2)), view((2, 3)), "cat_int32_t_float_float"),
        (view((2, 3)), view((2, 3), (1, 2)), "cat_int32_t_float_float"),
        (view((2, 3), type_="int8"), view((2, 3)), "cat_int32_t_char_float"),
        (view((2, 3, 4, 5), (60, 1, 15, 3)), view((2, 3, 4, 5), (60, 1, 15, 3)), "cat_int32_t_float_float"),
    ],
)
def test_everything_else_is_concatenated_by_elements(tensor, out, name):
    assert [launch[0] for launch in cat(tensor, out=out)] == [name]


def test_the_kernel_of_a_pair_of_types_may_be_missing(launcher):
    with pytest.raises(Unsupported, match="no kernel cat_int32_t_float_half2"):
        LAUNCHES["cat.out"](launcher, (view((2,)),), 0, out=view((2,), type_="complex32"))
