"""The output's layout and the coalesced iteration, against torch's own TensorIterator on the CPU."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.dtypes import dtype
from metal_ops.launch._iterator import unary
from metal_ops.launch._views import View


@st.composite
def strided_tensors(draw) -> torch.Tensor:
    """A tensor after a chain of views."""
    shape = draw(st.lists(st.integers(0, 5), max_size=4))
    tensor = torch.arange(int(np.prod(shape)), dtype=torch.float32).reshape(shape)
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["permute", "slice", "expand", "unsqueeze", "select"]))
        if kind == "permute" and tensor.dim():
            tensor = tensor.permute(draw(st.permutations(range(tensor.dim()))))
        elif kind == "slice" and tensor.dim():
            dim = draw(st.integers(0, tensor.dim() - 1))
            tensor = tensor[(slice(None),) * dim + (slice(draw(st.integers(0, 2)), None, draw(st.integers(1, 3))),)]
        elif kind == "expand":
            tensor = tensor.unsqueeze(0).expand(draw(st.integers(1, 3)), *tensor.shape)
        elif kind == "unsqueeze":
            tensor = tensor.unsqueeze(draw(st.integers(0, tensor.dim())))
        elif kind == "select" and tensor.dim() and tensor.shape[0]:
            tensor = tensor[draw(st.integers(0, tensor.shape[0] - 1))]
    return tensor


def as_view(tensor: torch.Tensor) -> View:
    storage = np.frombuffer(bytes(tensor.untyped_storage()), np.uint8)
    return View(dtype("float32"), tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()), storage)


@settings(max_examples=2000, deadline=None)
@given(strided_tensors())
def test_the_output_has_the_strides_that_torch_gives_it(tensor):
    result = unary(as_view(tensor), dtype("float32")).output
    expected = torch.neg(tensor)
    assert result.shape == tuple(expected.shape)
    assert result.strides == expected.stride(), (tensor.shape, tensor.stride())


@settings(max_examples=300, deadline=None)
@given(strided_tensors())
def test_the_iteration_visits_every_element_of_both_operands_once(tensor):
    source = as_view(tensor)
    iteration = unary(source, dtype("float32"))
    if not iteration.numel:
        return
    output = np.zeros(iteration.numel, np.float32)
    base = source.storage[source.offset * 4 :].view(np.float32)
    walked = 0
    for position in np.ndindex(*reversed(iteration.shape)):
        at = position[::-1]
        to = sum(p * s for p, s in zip(at, iteration.output_strides, strict=True)) // 4
        output[to] = base[sum(p * s for p, s in zip(at, iteration.input_strides, strict=True)) // 4]
        walked += 1
    assert walked == iteration.numel
    laid = np.lib.stride_tricks.as_strided(
        output, iteration.output.shape, [stride * 4 for stride in iteration.output.strides]
    )
    np.testing.assert_array_equal(laid, tensor.numpy())
