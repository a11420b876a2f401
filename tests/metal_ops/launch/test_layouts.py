"""Memory formats, density and strides of new tensors, as torch's own tensors have them."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

from conformance.dtypes import dtype
from metal_ops.launch._layouts import (
    channels_last,
    collapsed,
    contiguous_as_suggested,
    dense,
    empty_in_format,
    empty_like,
    expanded,
    fits,
    narrowed,
    permuted,
)
from metal_ops.launch._walk import output_strides, walk
from tests.metal_ops.launch.recording import view


def tensors(count, seed):
    """Tensors of four or five dimensions in random order, some with gaps, sizes of one, or broadcast dimensions."""
    rng = random.Random(seed)
    for _ in range(count):
        dims = rng.choice((2, 3, 4, 4, 5, 5))
        shape = [rng.choice((1, 1, 2, 3)) for _ in range(dims)]
        order = list(range(dims))
        if dims > 3 and rng.random() < 0.5:
            order = [0, *range(2, dims), 1]
        elif rng.random() < 0.7:
            rng.shuffle(order)
        whole = torch.zeros([shape[dim] + (rng.random() < 0.1) for dim in order])
        made = whole.permute([order.index(dim) for dim in range(dims)])
        made = made[tuple(slice(0, size) for size in shape)]
        dim = rng.randrange(dims)
        if rng.random() < 0.2 and shape[dim] == 1:
            made = made.expand([*shape[:dim], 2, *shape[dim + 1 :]])
        yield made


def seen(tensor):
    return view(tuple(tensor.shape), tensor.stride())


def test_new_tensors_have_the_strides_that_torch_gives_them():
    for tensor in tensors(2000, 1):
        assert empty_like(seen(tensor)).strides == torch.empty_like(tensor).stride()
        wider = torch.constant_pad_nd(tensor, (1, 0))
        made = empty_in_format(dtype("float32"), wider.shape, as_channels_last=channels_last(seen(tensor)))
        assert made.strides == wider.stride()


def test_density_and_memory_formats_are_those_of_torch():
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    for tensor in tensors(2000, 2):
        known = seen(tensor)
        assert dense(known) == torch.ops.aten.is_non_overlapping_and_dense(tensor)
        if tensor.dim() in formats:
            wanted = tensor.is_contiguous(memory_format=formats[tensor.dim()])
            assert contiguous_as_suggested(known, as_channels_last=True) == wanted
            assert channels_last(known) == (torch._prims_common.suggest_memory_format(tensor) == formats[tensor.dim()])


def test_outputs_of_iterations_have_the_strides_of_torch():
    for first, second in itertools.pairwise(tensors(2000, 3)):
        try:
            shape = torch.broadcast_shapes(first.shape, second.shape)
        except RuntimeError:
            continue
        for operands in ((first,), (first, second), (second, first, first)):
            shape = torch.broadcast_shapes(*(operand.shape for operand in operands))
            wanted = {1: torch.neg, 2: torch.add, 3: torch.addcmul}[len(operands)](*operands)
            assert output_strides([seen(operand) for operand in operands], tuple(shape)) == wanted.stride()


def test_an_iteration_joins_what_lies_in_order():
    steps = walk(view((4, 3, 5)), view((4, 3, 5), (30, 10, 2)))
    assert (steps.shape, steps.strides) == ((60,), ((4,), (8,)))
    steps = walk(view((4, 3, 5)), view((4, 3, 5), (1, 20, 4)))
    assert (steps.shape, steps.strides) == ((15, 4), ((4, 60), (16, 4)))
    assert not steps.contiguous
    assert walk(view((4, 3), (1, 4)), view((4, 3), (1, 4))).contiguous


def test_blocks_of_dimensions():
    assert collapsed((2, 3, 4), (12, 4, 1)) == [(24, 1)]
    assert collapsed((2, 1, 3, 4), (20, 9, 4, 1)) == [(2, 20), (12, 1)]
    assert collapsed((1, 1), (3, 3)) == []


def test_index_widths_count_elements_and_offsets():
    assert fits(view((3,), (5,)), 11)
    assert not fits(view((3,), (5,)), 10)
    assert not fits(view((12,), (0,)), 12)


@pytest.mark.parametrize(("start", "length"), [(-1, 2), (0, -1), (2, 2)])
def test_narrowing_beyond_a_dimension_is_refused(start, length):
    with pytest.raises(RuntimeError, match="narrow"):
        narrowed(view((3,)), 0, start, length)


def test_broadcasting_what_does_not_fit_is_refused():
    with pytest.raises(RuntimeError, match="broadcast"):
        expanded(view((2, 3)), (4, 3))
    assert expanded(view((2, 1)), (5, 2, 3)).strides == (0, 1, 0)
    assert permuted(view((2, 3)), (1, 0)).strides == (1, 3)
