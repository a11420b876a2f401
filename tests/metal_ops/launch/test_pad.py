"""Pads equal np.pad bit for bit; their gradients are exact counts; both sides of every switch of the host's rules."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import torch

from conformance.devices.base import Unsupported
from conformance.dtypes import dtype
from metal_ops.launch._views import METAL_NAMES, View
from metal_ops.launch.pad import LAUNCHES
from tests.metal_ops.launch import pads
from tests.metal_ops.launch.recording import Recorder, view
from tests.metal_ops.launch.tensors import layouts, outside, poisoned, tensor_of, view_of

SPREADS = [(mode, dims) for mode in ("reflection", "replication") for dims in (1, 2, 3)]
GRADIENT_TYPES = ("float32", "float16", "bfloat16", "complex64")


def test_generated_pads_equal_numpy_in_every_type_and_layout(launcher):
    """benchmarks/pads.py runs the same with as many cases as one likes."""
    ran = pads.check(launcher, seed=0, count=2000)
    families = pads.families(ran)
    expected = {"constant_pad_nd_dense", "constant_pad_nd_u32", "contiguous_byte_copy", "fill_scalar_dense"}
    expected |= {f"{mode}_pad{dims}d_forward_i32" for mode, dims in SPREADS} - {"replication_pad1d_forward_i32"}
    assert expected | {"replication_pad1d_forward"} <= set(families)
    for metal in METAL_NAMES.values():
        assert {f"constant_pad_nd_dense_{metal}", f"constant_pad_nd_{metal}_u32"} <= set(ran)


def sparse(shape: tuple[int, ...], strides: tuple[int, ...]) -> View:
    """Bytes far apart in memory that is reserved only, but for the elements themselves."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    made = View(dtype("uint8"), shape, strides, 0, np.zeros(extent, np.uint8))
    pads.raw(made)[...] = np.arange(1, 1 + made.numel, dtype=np.uint8).reshape(shape)
    return made


@pytest.mark.parametrize(
    ("mode", "widths", "distance", "kernel"),
    [
        ("constant", (1, 2), 2**32 - 2, "constant_pad_nd_uchar_u32"),
        ("constant", (1, 2), 2**32 - 1, "constant_pad_nd_uchar_u64"),
        ("reflection", (1, 2), 2**29 - 1, "reflection_pad1d_forward_uchar_i32"),
        ("reflection", (1, 2), 2**29, "reflection_pad1d_forward_uchar_i64"),
        ("replication", (1, 2, 0, 1), 2**29 - 1, "replication_pad2d_forward_uchar_i32"),
        ("replication", (1, 2, 0, 1), 2**29, "replication_pad2d_forward_uchar_i64"),
        ("reflection", (1, 2, 1, 0, 0, 0), 2**29, "reflection_pad3d_forward_uchar_i64"),
    ],
)
def test_wide_indices_are_used_where_offsets_need_them(launcher, mode, widths, distance, kernel):
    inner = {2: (2, 3), 4: (2, 3, 3), 6: (2, 2, 2, 3)}[len(widths)]
    strides = (distance - sum(size - 1 for size in inner[1:]), *[1] * (len(inner) - 1))
    pad = pads.Pad(mode, sparse(inner, strides), widths, 7)
    result = pads.run(launcher, pad)
    assert launcher.take_names() == [kernel]
    assert np.array_equal(pads.raw(result), pads.expected(pad))


def constant(shape, pad, strides=None, type_="float32"):
    recorder = Recorder()
    result = LAUNCHES["constant_pad_nd"](recorder, view(shape, strides, type_=type_), pad, 2)
    return recorder, result


def test_a_dense_pad_has_a_thread_for_four_of_a_row():
    recorder, result = constant((2, 3, 4, 5), (1, 2, 3, 4))
    ((name, arguments, threads, _, group),) = recorder.launches
    assert (name, threads, group) == ("constant_pad_nd_dense_float", (2, 11, 6), (2, 11, 6))
    assert arguments["params"] == {"input_sizes": [5, 4, 1], "output_sizes": [8, 11, 1], "left_pad": [1, 3, 0]}
    assert result.shape == (2, 3, 11, 8)


@pytest.mark.parametrize(
    ("shape", "pad", "strides", "name"),
    [
        ((2, 2, 2, 2), (1,) * 6, None, "constant_pad_nd_dense_float"),
        ((2, 2, 2, 2), (1,) * 8, None, "constant_pad_nd_float_u32"),
        ((2, 3), (1, 1), (3, 1), "constant_pad_nd_dense_float"),
        ((2, 3), (1, 1), (4, 1), "constant_pad_nd_float_u32"),
        ((2, 3), (-1, 1), (3, 1), "constant_pad_nd_float_u32"),
        ((2, 3), (0, 0, -1, 0), None, "contiguous_byte_copy"),
        ((2, 3), (-1, 0), None, "constant_pad_nd_float_u32"),
        ((2, 0), (1, 1), None, "fill_scalar_dense_float"),
    ],
)
def test_the_layout_and_the_widths_choose_the_kernel(shape, pad, strides, name):
    recorder, _ = constant(shape, pad, strides)
    assert recorder.names == [name]


def test_channels_last_stays():
    channels_last = (60, 1, 15, 3)
    recorder, result = constant((2, 3, 4, 5), (1, 1), channels_last)
    assert result.strides == (84, 1, 21, 3)
    ((_, arguments, threads, _, _),) = recorder.launches
    assert threads == (1, 56, 1)
    assert arguments["params"]["output_sizes"] == [3, 7, 4, 2]
    assert arguments["params"]["left_pad"] == [0, 1, 0, 0]
    assert arguments["params"]["input_strides"] == [1, 3, 15, 60]


def test_nothing_is_launched_for_an_empty_result():
    recorder, result = constant((2, 3), (-1, -2))
    assert (recorder.names, result.shape) == ([], (2, 0))


@pytest.mark.parametrize(
    ("shape", "pad", "message"),
    [
        ((2, 3), (1,), "even number"),
        ((2,), (1, 1, 1, 1), "at most two a dimension"),
        ((2, 3), (-2, -2), "narrow"),
    ],
)
def test_constant_pads_that_torch_refuses(shape, pad, message):
    with pytest.raises(RuntimeError, match=message):
        constant(shape, pad)
    with pytest.raises(RuntimeError):
        torch.constant_pad_nd(torch.zeros(shape), pad)


def test_a_value_outside_of_the_type_is_refused():
    with pytest.raises(RuntimeError, match="without overflow"):
        LAUNCHES["constant_pad_nd"](Recorder(), view((2,), type_="int8"), (1, 1), 300)


@pytest.mark.parametrize(("mode", "dims"), SPREADS)
@pytest.mark.parametrize("change", ["dimensions", "widths", "empty"])
def test_spreading_pads_that_torch_refuses(mode, dims, change):
    shape, pad = [2, 3, 4, 5, 6][: dims + 2], [1] * (2 * dims)
    if change == "dimensions":
        shape = shape[:dims]
    elif change == "widths":
        pad[0] = 40 if mode == "reflection" else -40
    else:
        shape[-1] = 0
    with pytest.raises(RuntimeError, match=f"{mode}_pad{dims}d"):
        LAUNCHES[f"{mode}_pad{dims}d"](Recorder(), view(tuple(shape)), pad)
    with pytest.raises(RuntimeError):
        getattr(torch.ops.aten, f"{mode}_pad{dims}d")(torch.zeros(shape), pad)


def multiplicities(mode: str, shape: tuple[int, ...], widths: tuple[int, ...], gradient: torch.Tensor) -> torch.Tensor:
    """Sums of the gradient over all positions that an element was copied to: exact for small integers."""
    places = np.arange(np.prod(shape)).reshape(shape)
    pairs = [(0, 0)] * (len(shape) - len(widths) // 2)
    pairs += [(widths[i], widths[i + 1]) for i in range(len(widths) - 2, -1, -2)]
    spread = np.pad(places, pairs, pads.NUMPY_MODES[mode])
    sums = torch.zeros(places.size, dtype=torch.complex128 if gradient.is_complex() else torch.float64)
    sums.index_add_(0, torch.from_numpy(spread.ravel()), gradient.to(sums.dtype).contiguous().ravel())
    return sums.reshape(shape)


@pytest.mark.parametrize(("mode", "dims"), SPREADS)
@pytest.mark.parametrize("type_", GRADIENT_TYPES)
def test_gradients_are_exact_sums(launcher, mode, dims, type_):
    rng, generator = random.Random(dims), torch.Generator().manual_seed(dims)
    element = getattr(torch, type_)
    for batched, size in itertools.product((False, True), (2, 3, 5)[: 5 - dims]):
        shape = (*((2,) if batched else ()), 3, *([size] * dims))
        widths = tuple(rng.randint(0, size - 1) for _ in range(2 * dims))
        large = [*shape]
        for place in range(dims):
            large[-1 - place] += widths[2 * place] + widths[2 * place + 1]
        whole = torch.randint(-3, 4, large, generator=generator)
        expected = multiplicities(mode, shape, widths, whole).to(element)
        source = view_of(torch.zeros(shape, dtype=element))
        for gradient in layouts(whole.to(element)):
            result = LAUNCHES[f"{mode}_pad{dims}d_backward"](launcher, view_of(gradient), source, widths)
            assert torch.equal(tensor_of(result), expected)
        strides = tuple(2 * step for step in source.strides)
        out = poisoned(shape, element, strides, offset=1)
        LAUNCHES[f"{mode}_pad{dims}d_backward.grad_input"](
            launcher, view_of(whole.to(element)), source, widths, grad_input=out
        )
        assert torch.equal(tensor_of(out), expected)
        assert (outside(out) == 0xA5).all()


@pytest.mark.parametrize(("mode", "dims"), SPREADS)
def test_out_may_be_strided(launcher, mode, dims):
    source = torch.arange(2.0 * 3**dims).reshape(2, *[3] * dims)
    expected = getattr(torch.ops.aten, f"{mode}_pad{dims}d")(source, [1, 2] * dims)
    strides = tuple(3 * step for step in expected.stride())
    out = poisoned(tuple(expected.shape), torch.float32, strides, offset=2)
    assert LAUNCHES[f"{mode}_pad{dims}d.out"](launcher, view_of(source), [1, 2] * dims, out=out) is None
    assert torch.equal(tensor_of(out), expected)
    assert (outside(out) == 0xA5).all()


def test_a_result_of_another_shape_is_unsupported():
    with pytest.raises(Unsupported, match="resized"):
        LAUNCHES["reflection_pad1d.out"](Recorder(), view((1, 3)), (1, 1), out=view((1, 4)))
