"""Softmax and log_softmax: the host's choice at every threshold, and values against torch."""

from __future__ import annotations

import pytest
import torch

from conformance.devices.base import Unsupported
from metal_ops.launch.softmax import LAUNCHES
from tests.metal_ops.launch.recording import Recorder, view
from tests.metal_ops.launch.tensors import layouts, outside, poisoned, tensor_of, view_of


def launches(op, shape, dim=-1, strides=None, type_="float32", out_strides=None):
    recorder = Recorder()
    out = view(shape, out_strides, type_=type_)
    LAUNCHES[f"_{op}.out"](recorder, view(shape, strides, type_=type_), dim, False, out=out)
    return recorder.launches


@pytest.mark.parametrize(
    ("rows", "size", "names"),
    [
        (1, 1024, ["softmax_row_float_u32"]),
        (127, 1025, ["softmax_float_u32"]),
        (128, 1025, ["softmax_row_float_u32"]),
        (128, 2048, ["softmax_row_float_u32"]),
        (1, 2049, ["softmax_partial_float_u32", "softmax_finalize_float_u32"]),
        (256, 2049, ["softmax_partial_float_u32", "softmax_finalize_float_u32"]),
        (257, 2049, ["softmax_float_u32"]),
        (1, 2048, ["softmax_float_u32"]),
    ],
)
def test_contiguous_rows(rows, size, names):
    assert [launch[0] for launch in launches("softmax", (rows, size))] == names


def test_a_vocabulary_is_split_into_63_chunks():
    (_, partial, _, groups, group), (_, finalize, *_) = launches("log_softmax", (1, 128256))
    assert (groups, group) == ((63, 1, 1), (256, 1, 1))
    assert partial["params"]["chunk_size"] == 2036
    assert partial["params"]["n_chunks"] == 63
    assert partial["partials"] is finalize["partials"]
    assert partial["partials"].shape == (1, 63, 2)


@pytest.mark.parametrize(
    ("shape", "type_", "group", "groups"),
    [
        ((3, 5, 33), "float32", (32, 8, 1), (2, 3, 1)),
        ((3, 5, 65), "float16", (64, 8, 1), (2, 3, 1)),
        ((2, 300, 1), "float32", (1, 256, 1), (1, 2, 1)),
    ],
)
def test_another_dimension_tiles_the_columns(shape, type_, group, groups):
    ((name, arguments, _, launched, size),) = launches("softmax", shape, dim=1, type_=type_)
    assert (name.split("_")[0], size, launched) == ("softmax", group, groups)
    assert arguments["params"]["inner_size"] == shape[2]


def test_few_columns_of_a_long_dimension_are_split():
    made = launches("log_softmax", (8192, 4), dim=0, type_="bfloat16")
    assert [name for name, *_ in made] == [
        "softmax_strided_partial_bfloat_u32",
        "log_softmax_strided_finalize_bfloat_u32",
    ]
    (_, arguments, _, groups, group), _ = made
    assert (groups, group) == ((1, 1, 2), (4, 256, 1))
    assert arguments["params"]["chunk_size"] == 4096


def test_strides_of_dimensions_of_one_are_passed_as_zero():
    ((_, arguments, *_),) = launches("softmax", (4, 1, 3), dim=0, strides=(3, 77, 1))
    assert arguments["params"]["strides"] == [3, 0, 1]
    assert arguments["params"]["sizes"] == [4, 1, 3]


def test_an_output_with_gaps_is_written_by_a_copy():
    assert [name for name, *_ in launches("softmax", (3, 4), out_strides=(8, 2))] == [
        "softmax_row_float_u32",
        "copy_identity_strided_float_float",
    ]


def test_what_the_host_refuses_is_unsupported():
    with pytest.raises(Unsupported, match="softmax on int32"):
        launches("softmax", (3,), type_="int32")
    with pytest.raises(Unsupported, match="half_to_float"):
        LAUNCHES["_softmax.out"](Recorder(), view((3,), type_="float16"), 0, True, out=view((3,)))


@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
def test_gradients_are_left_to_mpsgraph(op):
    with pytest.raises(Unsupported, match=f"gradient of {op} by MPSGraph"):
        LAUNCHES[f"_{op}_backward_data.out"](Recorder(), view((3,)), view((3,)), 0, None, grad_input=view((3,)))


def test_empty_and_scalar_tensors_launch_as_little_as_the_host():
    assert launches("softmax", (0, 3)) == []
    ((name, *_),) = launches("softmax", ())
    assert name == "softmax_row_float_u32"


@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (2, 3, 4, 5), (130, 1030), (1, 2100)], ids=str)
def test_values_agree_with_torch_in_every_layout(launcher, op, shape):
    whole = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    for source in layouts(whole) if whole.numel() < 1000 else [whole]:
        dim = len(shape) // 2 if whole.numel() < 1000 else -1
        expected = getattr(torch, op)(source, dim)
        strides = tuple(2 * step for step in expected.contiguous().stride())
        for steps in (None, strides):
            out = poisoned(shape, torch.float32, steps, offset=1)
            LAUNCHES[f"_{op}.out"](launcher, view_of(source), dim, False, out=out)
            assert torch.allclose(tensor_of(out), expected, rtol=1e-5, atol=1e-6)
            assert (outside(out) == 0xA5).all()
