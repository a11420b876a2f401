"""Layouts of results and the order of the iteration, against torch's own TensorIterator on the CPU."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from metal_ops.launch._layouts import expanded
from metal_ops.launch._walk import walk
from metal_ops.launch.binary import new_result
from metal_ops.launch.unary import new_like
from tests.metal_ops.launch.tensors import as_view


@st.composite
def strided_tensors(draw, shape: tuple[int, ...] | None = None) -> torch.Tensor:
    """A tensor after a chain of views; with a shape, one that broadcasts to it."""
    if shape is None:
        sizes = draw(st.lists(st.integers(0, 5), max_size=4))
    else:
        sizes = [draw(st.sampled_from([1, size])) for size in shape[draw(st.integers(0, len(shape))) :]]
    order = draw(st.permutations(range(len(sizes))))
    step = draw(st.integers(1, 3))
    padded = [sizes[dim] for dim in order]
    gaps = [size * step if dim == len(padded) - 1 else size for dim, size in enumerate(padded)]
    tensor = torch.arange(int(np.prod(gaps)) + 3, dtype=torch.float32)[3:].reshape(gaps)
    if padded:
        tensor = tensor[..., ::step]
    tensor = tensor.permute([order.index(dim) for dim in range(len(sizes))])
    for dim, size in enumerate(sizes):
        if size > 1 and draw(st.booleans()) and draw(st.booleans()):
            tensor = tensor.narrow(dim, 0, 1).expand(*(sizes[:dim]), size, *sizes[dim + 1 :])
    return tensor


@st.composite
def pairs(draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Two tensors of which one broadcasts to the other."""
    first = draw(strided_tensors())
    second = draw(strided_tensors(tuple(first.shape)))
    return (first, second) if draw(st.booleans()) else (second, first)


@settings(max_examples=1500, deadline=None)
@given(strided_tensors())
def test_a_unary_result_has_the_strides_that_torch_gives_it(tensor):
    result, expected = new_like(as_view(tensor)), torch.neg(tensor)
    assert result.shape == tuple(expected.shape)
    assert result.strides == expected.stride(), (tensor.shape, tensor.stride())


@settings(max_examples=1500, deadline=None)
@given(pairs())
def test_a_binary_result_has_the_strides_that_torch_gives_it(operands):
    result, expected = new_result(*map(as_view, operands)), torch.add(*operands)
    assert result.shape == tuple(expected.shape)
    assert result.strides == expected.stride(), [(t.shape, t.stride()) for t in operands]


@settings(max_examples=300, deadline=None)
@given(pairs(), st.randoms(use_true_random=False))
def test_the_iteration_pairs_the_elements_of_all_operands(operands, random):
    expected = torch.add(*operands)
    order = random.sample(range(expected.dim()), expected.dim())
    out = torch.empty([expected.shape[dim] for dim in order]).permute([order.index(dim) for dim in range(len(order))])
    views = [as_view(out), *(expanded(as_view(tensor), expected.shape) for tensor in operands)]
    steps = walk(*views)
    if not steps.numel:
        return
    assert np.prod(steps.shape) == steps.numel == expected.numel()
    memory = [view.storage[view.offset * 4 :].view(np.float32) for view in views]
    for position in np.ndindex(*reversed(steps.shape)):
        at = [sum(p * s for p, s in zip(position[::-1], own, strict=True)) // 4 for own in steps.strides]
        memory[0][at[0]] = memory[1][at[1]] + memory[2][at[2]]
    np.testing.assert_array_equal(out.numpy(), expected.numpy())


def test_dense_operands_of_one_layout_are_walked_as_one_run():
    tensor = torch.empty(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    steps = walk(as_view(tensor), as_view(tensor))
    assert (steps.shape, steps.contiguous) == ((120,), True)
