from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conformance.case import TensorSpec
from conformance.dtypes import dtype
from conformance.formats import poison_bits
from conformance.layout import GUARD, Layout, lies_within, view_of
from conformance.strategies import layouts
from conformance.values import Values
from conformance.worker.protocol import Tensor


@st.composite
def specs(draw: st.DrawFn) -> TensorSpec:
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=5)))
    layout = draw(layouts(len(shape)))
    return TensorSpec(
        draw(st.sampled_from(("float32", "int8", "complex64"))),
        shape,
        layout,
        Values("integers", 1, {"low": -9, "high": 9}),
    )


@given(specs())
def test_view_has_the_logical_values_and_the_rest_is_poison(spec: TensorSpec) -> None:
    tensor = spec.materialise()
    assert np.array_equal(view_of(tensor), spec.logical())
    described = dtype(spec.dtype)
    words = np.frombuffer(tensor.storage, f"u{described.itemsize // (2 if described.kind == 'complex' else 1)}")
    poison = np.count_nonzero(words == poison_bits(described))
    stored = np.prod(spec.layout.stored_shape(spec.shape), dtype=int)
    assert len(tensor.storage) // described.itemsize >= stored + spec.layout.offset + spec.layout.guard
    assert poison == len(words) - stored * (2 if described.kind == "complex" else 1)


@given(specs())
def test_torch_sees_the_same_tensor(spec: TensorSpec) -> None:
    tensor = spec.materialise()
    base = torch.frombuffer(bytearray(tensor.storage), dtype=getattr(torch, spec.dtype))
    view = base.as_strided(tensor.shape, tensor.strides, tensor.offset)
    assert np.array_equal(view.numpy(), spec.logical())


@pytest.mark.parametrize(("layout", "shape", "strides"), [
    (Layout(), (2, 3), (3, 1)),
    (Layout(order=(1, 0)), (2, 3), (1, 2)),
    (Layout(order=(0, 2, 3, 1)), (2, 3, 4, 5), (60, 1, 15, 3)),
    (Layout(steps=(1, 2)), (2, 3), (6, 2)),
    (Layout(pads=(0, 4)), (2, 3), (7, 1)),
    (Layout(expanded=(0,)), (2, 3), (0, 1)),
    (Layout(steps=(3,)), (1,), (3,)),
])  # fmt: skip
def test_strides(layout: Layout, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    assert layout.strides(shape) == strides


def test_guards() -> None:
    tensor = TensorSpec("float32", (2,), Layout(offset=3)).materialise()
    assert np.isnan(np.frombuffer(tensor.storage, np.float32)).tolist() == [True] * 3 + [False] * 2 + [True] * GUARD


@pytest.mark.parametrize(("layout", "message"), [
    (Layout(order=(0, 0)), "no permutation"),
    (Layout(steps=(1,)), "steps"),
    (Layout(pads=(0, -1)), "pads"),
    (Layout(expanded=(2,)), "expands"),
    (Layout(offset=-1), "offset"),
])  # fmt: skip
def test_layouts_that_do_not_fit(layout: Layout, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TensorSpec("float32", (2, 3), layout)


def test_unknown_field() -> None:
    with pytest.raises(ValueError, match=r"\['stride'\]; allowed: order"):
        Layout.from_json({"stride": [1]})


@pytest.mark.parametrize(("shape", "strides", "offset", "fits"), [
    ((4,), (1,), 0, True),
    ((4,), (1,), 1, False),
    ((2, 2), (3, 1), 0, False),
    ((2,), (-3,), 3, True),
    ((3,), (-2,), 3, False),
    ((5,), (0,), 3, True),
    ((0,), (1,), 9, True),
    ((), (), 4, False),
])  # fmt: skip
def test_view_stays_in_its_storage(shape: tuple[int, ...], strides: tuple[int, ...], offset: int, fits: bool) -> None:
    tensor = Tensor("float32", shape, strides, offset, bytes(16))
    assert lies_within(tensor) is fits
    if fits:
        assert view_of(tensor).tolist() == np.zeros(shape).tolist()
    else:
        with pytest.raises(ValueError, match="reaches past its storage of 16 bytes"):
            view_of(tensor)
