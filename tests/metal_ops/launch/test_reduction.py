"""Reductions against torch on small integers, whose sums are exact, and the plan of passes at every switch."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
import torch

from conformance.devices.base import Unsupported
from metal_ops.launch._reduction_plan import Plan, plan, second_pass
from metal_ops.launch._views import row_major
from metal_ops.launch.reduction import LAUNCHES
from tests.metal_ops.launch.recording import Recorder, view
from tests.metal_ops.launch.tensors import layouts, outside, poisoned, same_bits, tensor_of, view_of

TYPES = [
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
    torch.complex64,
]


def numbers(shape, type_=torch.float32, seed=0):
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(seed)).to(type_)


def check(launcher, op, expected, source, *arguments, **keywords):
    """The launch writes what torch computed to an output with gaps, and nothing beside it."""
    out = poisoned(tuple(expected.shape), expected.dtype, tuple(2 * step for step in expected.stride()), offset=1)
    assert LAUNCHES[op](launcher, view_of(source), *arguments, **keywords, out=out) is None
    assert same_bits(tensor_of(out), expected), (op, source.shape, source.stride(), arguments)
    assert (outside(out) == 0xA5).all()


def dims_of(rng, count):
    """Some dimensions, each from the front or from behind; none stands for all."""
    return [dim - count * rng.randint(0, 1) for dim in range(count) if rng.random() < 0.5]


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_sums_and_counts_agree_with_torch(launcher, type_):
    rng = random.Random(1)
    for shape in ((), (7,), (3, 4), (2, 3, 5), (2, 1, 4, 3)):
        for source in layouts(numbers(shape, type_)):
            dims, keep = dims_of(rng, len(shape)), rng.random() < 0.5
            check(launcher, "sum.IntList_out", source.sum(dims, keep), source, dims, keep)
            made = LAUNCHES["count_nonzero.dim_IntList"](launcher, view_of(source), dims)
            assert same_bits(tensor_of(made), torch.count_nonzero(source, dims or None))


@pytest.mark.parametrize("type_", [t for t in TYPES if t.is_floating_point or t.is_complex], ids=str)
def test_means_divide_once(launcher, type_):
    source = numbers((4, 8), type_)
    for dims in ([0], [1], []):
        check(launcher, "mean.out", source.mean(dims), source, dims)


@pytest.mark.parametrize("type_", [t for t in TYPES if not t.is_complex], ids=str)
def test_extremes_agree_with_torch(launcher, type_):
    for source in layouts(numbers((2, 3, 5), type_)):
        for dims in ([0], [1, 2], [-1], []):
            check(launcher, "amax.out", source.amax(dims), source, dims)
            check(launcher, "amin.out", source.amin(dims, True), source, dims, True)


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_products_and_truth_agree_with_torch(launcher, type_):
    for source in layouts(numbers((2, 3, 4), type_)):
        for dim in (0, 1, -1):
            check(launcher, "all.out", source.all(dim), source, dim)
            check(launcher, "any.out", source.any(dim, True), source, dim, True)
            if type_ not in (torch.complex64, torch.bool):
                check(launcher, "prod.int_out", source.prod(dim), source, dim)
        check(launcher, "all.all_out", source.all(), source)
        check(launcher, "any.all_out", source.any(), source)
        if type_ != torch.complex64:
            assert same_bits(tensor_of(LAUNCHES["prod"](launcher, view_of(source))), source.prod())


def test_truth_of_one_element_is_copied(launcher):
    for value in (0.0, 0.5, math.nan):
        check(launcher, "any.all_out", torch.tensor(value != 0), torch.tensor([[value]]))


def test_nan_is_nothing_to_nansum(launcher):
    source = torch.tensor([[1.0, math.nan, 2.0], [math.nan, math.nan, math.nan]])
    assert tensor_of(LAUNCHES["nansum"](launcher, view_of(source), [1])).tolist() == [3, 0]
    check(launcher, "nansum.out", torch.tensor(3.0), source, None)
    integers = torch.arange(6, dtype=torch.int32).reshape(2, 3)
    assert same_bits(tensor_of(LAUNCHES["nansum"](launcher, view_of(integers), [0], True)), integers.nansum(0, True))
    with pytest.raises(RuntimeError, match="complex"):
        LAUNCHES["nansum"](launcher, view_of(source.to(torch.complex64)))


def test_nan_and_infinities_propagate(launcher):
    source = torch.tensor([[1.0, math.nan], [math.inf, -math.inf], [math.inf, 1.0], [-0.0, -0.0]])
    for op, function in (("sum.IntList_out", torch.sum), ("amax.out", torch.amax), ("amin.out", torch.amin)):
        out = poisoned((4,), torch.float32)
        LAUNCHES[op](launcher, view_of(source), [1], out=out)
        assert torch.equal(tensor_of(out).nan_to_num(7.5), function(source, 1).nan_to_num(7.5))


@pytest.mark.parametrize(
    ("op", "arguments", "value"),
    [
        ("sum.IntList_out", ([1],), 0.0),
        ("mean.out", ([1],), math.nan),
        ("prod.int_out", (1,), 1.0),
        ("all.out", (1,), True),
        ("any.out", (1,), False),
    ],
)
def test_nothing_reduces_to_the_neutral_element(launcher, op, arguments, value):
    type_ = torch.bool if isinstance(value, bool) else torch.float32
    check(launcher, op, torch.full((3,), value, dtype=type_), torch.zeros(3, 0), *arguments)


@pytest.mark.parametrize(("source", "result"), [("int32", "float32"), ("float32", "float16"), ("bool", "int32")])
def test_another_type_of_result_is_cast_to_before_summing(launcher, source, result):
    whole, type_ = numbers((3, 4), getattr(torch, source)), getattr(torch, result)
    check(launcher, "sum.IntList_out", whole.sum(1, dtype=type_), whole, [1], dtype=type_)
    assert [name.split("_")[0] for name in launcher.take_names()] == ["copy", "sum"]


@pytest.mark.parametrize("source", ["int32", "bool", "uint8", "float16", "bfloat16"])
def test_widening_happens_in_the_kernel(launcher, source):
    whole = numbers((3, 4), getattr(torch, source))
    type_ = torch.float32 if whole.is_floating_point() else torch.int64
    check(launcher, "sum.IntList_out", whole.sum(1, dtype=type_), whole, [1], dtype=type_)
    assert len(launcher.take_names()) == 1


def kernels(shape, dims, strides=None):
    """The plan's kernel and segments, for a contiguous output."""
    kept = [1 if dim in dims else size for dim, size in enumerate(shape)]
    made = plan(sketch(shape, strides), sketch(tuple(kept), None))
    return made.kernel, made.segments


def sketch(shape, strides):
    """A view that only has a layout."""
    return replace(view((1,)), shape=shape, strides=strides or row_major(shape))


@pytest.mark.parametrize(
    ("shape", "dims", "strides", "kernel", "segments"),
    [
        ((8192,), (0,), None, "", 1),
        ((8194,), (0,), None, "_flat", 2),
        ((8209,), (0,), None, "", 1),  # a prime: no equal segments
        ((8192 * 600,), (0,), None, "_flat", 512),
        ((5, 2000), (0, 1), (2001, 1), "_flat_strided", 5),
        ((4, 2500), (0, 1), (2501, 1), "_flat_strided", 5),
        ((4, 2501), (0, 1), (2502, 1), "_flat", 2),  # too few runs, which cannot be cut
        ((20, 20, 30), (0, 1, 2), (2000, 50, 1), "_flat", 2),  # three blocks
        ((2, 2047), (1,), None, "_innermost", 1),
        ((2, 2048), (1,), None, "_innermost_chunk", 32),
        ((504, 2048), (1,), None, "_innermost_chunk", 17),
        ((505, 2048), (1,), None, "_innermost", 1),
        ((256, 255), (1,), None, "_innermost", 1),
        ((256, 256), (1,), None, "_innermost_chunk", 1),
        ((256, 257), (1,), None, "_innermost", 1),
        ((4, 5), (1,), (6, 1), "", 1),
        ((4, 5, 6), (0, 2), None, "", 1),
        ((4, 5, 6), (1, 2), None, "_innermost", 1),
        ((4, 5, 6), (0, 1), None, "_outer", 1),
        ((64, 256, 32), (1,), None, "_outer_small_dim", 1),
        ((63, 256, 32), (1,), None, "_outer", 1),
        ((64, 257, 32), (1,), None, "_outer", 1),
        ((64, 127, 9), (1,), None, "_outer_small_dim", 1),
        ((64, 128, 9), (1,), None, "_narrow", 1),
        ((1, 4096, 15), (1,), None, "_outer", 8),
        ((1, 4095, 15), (1,), None, "_outer", 1),
        ((1, 4096, 16), (1,), None, "_narrow", 8),
        ((1, 4096, 992), (1,), None, "_outer", 8),
        ((1, 4096, 993), (1,), None, "_outer", 1),
        ((1, 4096, 40), (1,), (0, 50, 1), "_outer", 128),
        ((2, 3, 4, 5), (1,), (1000, 200, 7, 1), "", 1),
    ],
)
def test_shape_and_layout_choose_kernel_and_segments(shape, dims, strides, kernel, segments):
    assert kernels(shape, dims, strides) == (kernel, segments)


def test_long_runs_are_cut_into_pieces():
    made = plan(sketch((4, 2500), (2501, 1)), sketch((1, 1), None))
    assert made.runs == (4, 1250, 2, 2501, 1)


def test_the_second_pass_folds_the_segments():
    first = Plan("_outer", 1, 4096, 40, (40, 1, 0), segments=8)
    assert second_pass(first) == Plan("_outer", 1, 8, 40, (40, 1, 320))
    assert second_pass(Plan("_innermost_chunk", 3, 2048, segments=32)).kernel == "_innermost"
    assert second_pass(Plan("_flat", 1, 9000, segments=3)).kernel == ""


@pytest.mark.parametrize(
    ("shape", "dims", "order", "kernels"),
    [
        ((8194,), [0], None, ["_flat", ""]),
        ((81, 103), [0, 1], "sliced", ["_flat_strided", ""]),
        ((2, 2050), [1], None, ["_innermost_chunk", "_innermost"]),
        ((256, 256), [1], None, ["_innermost_chunk"]),
        ((4100, 3), [0], None, ["_outer", "_outer"]),
        ((66, 5, 3), [1], None, ["_outer_small_dim"]),
        ((2, 11000, 3), [1], None, ["_narrow"]),
        ((1, 4096, 16), [1], None, ["_narrow", "_narrow"]),
        ((4100, 3), [0], "sliced", ["_outer", "_outer"]),
        ((3, 4100), [1], "transposed", ["_outer", "_outer"]),
    ],
)
def test_every_kernel_gives_exact_sums(launcher, shape, dims, order, kernels):
    source = numbers(shape)
    if order == "sliced":
        source = torch.nn.functional.pad(source, (0, 2))[..., :-2]
    elif order == "transposed":
        source = source.t().contiguous().t()
    out = poisoned(tuple(source.sum(dims).shape), torch.float32)
    LAUNCHES["sum.IntList_out"](launcher, view_of(source), dims, out=out)
    assert launcher.take_names() == [f"sum_reduction{kernel}_float_float" for kernel in kernels]
    assert same_bits(tensor_of(out), source.sum(dims))


def test_partial_results_have_the_type_of_the_computation():
    recorder = Recorder()
    LAUNCHES["sum.IntList_out"](recorder, view((8194,), type_="float16"), [0], out=view((), type_="float16"))
    LAUNCHES["any.all_out"](recorder, view((8194,), type_="float16"), out=view((), type_="bool"))
    LAUNCHES["count_nonzero.dim_IntList"](recorder, view((8194,)), [0])
    LAUNCHES["amax.out"](recorder, view((8194,), type_="bool"), [0], out=view((), type_="bool"))
    assert recorder.names == [
        "sum_reduction_flat_half_float",
        "sum_reduction_float_half",
        "any_reduction_flat_half_uchar",
        "max_reduction_uchar_uchar",
        "count_nonzero_reduction_flat_float_long",
        "sum_reduction_long_long",
        "max_reduction_flat_char_char",
        "max_reduction_char_char",
    ]


def test_a_mean_divides_in_the_last_pass():
    recorder = Recorder()
    LAUNCHES["mean.out"](recorder, view((4, 5)), [1], out=view((4,)))
    LAUNCHES["mean.out"](recorder, view((2, 2048)), [1], out=view((2,)))
    assert [launch[1]["param"] for launch in recorder.launches] == [5.0, 0.0, 2048.0]


def test_a_type_without_kernels_is_unsupported(launcher):
    with pytest.raises(Unsupported, match="no kernel sum_reduction_innermost_ushort_long"):
        LAUNCHES["sum.IntList_out"](launcher, view((2, 3), type_="uint16"), [1], out=view((2,), type_="int64"))
