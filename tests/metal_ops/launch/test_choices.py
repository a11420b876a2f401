"""Which kernel the host launches, and how: both sides of every switch of its rules."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.devices.base import Unsupported
from conformance.dtypes import dtype
from metal_ops.launch import LAUNCHES
from metal_ops.launch.unary import execute
from tests.metal_ops.launch.recording import Recorder, view


def unary(shape, strides=None, type_="float32", result=None, missing=()):
    recorder = Recorder(*missing)
    execute(recorder, "exp", view(shape, strides, type_=type_), dtype(result or type_))
    return recorder.launches


def test_dense_kernels_change_at_two_to_the_eighteenth():
    (name, arguments, threads, _, group), *_ = unary((2**18 - 1,))
    assert (name, threads, group) == ("exp_dense_scalar_float_float", (2**18 - 1, 1, 1), (1024, 1, 1))
    assert set(arguments) == {"input", "output"}
    (name, arguments, threads, _, _), *_ = unary((2**18,))
    assert (name, threads, arguments["numel"]) == ("exp_dense_float_float", (2**16, 1, 1), 2**18)
    ((_, _, threads, _, _),) = unary((2**18 + 1,))
    assert threads == (2**16 + 1, 1, 1)


def test_integer_results_keep_one_element_a_thread():
    assert unary((2**18,), type_="int32")[0][0] == "exp_dense_scalar_int_int"


@pytest.mark.parametrize(("inner", "name"), [(15, "exp_strided_half_half"), (16, "exp_inner_contiguous_half_half")])
def test_contiguous_runs_of_sixteen_have_a_kernel_of_their_own(inner, name):
    (launched, arguments, threads, _, _), *_ = unary((3, inner), (100, 1), type_="float16")
    assert launched == name
    if inner == 16:
        assert threads == (4, 3, 1)
        assert arguments["ndim_outer_inner"] == (1, 16)
        assert arguments["outer_sizes"].tolist() == [3]
        assert arguments["input_outer_strides"].tolist() == [200]
    else:
        assert threads == (15, 3, 1)
        assert arguments["sizes"].tolist() == [15, 3]
        assert arguments["input_strides"].tolist() == [2, 200]
        assert arguments["output_strides"].tolist() == [2, 30]


def test_gaps_in_the_innermost_dimension_are_strided():
    assert unary((4, 100), (400, 2))[0][0] == "exp_strided_float_float"


@pytest.mark.parametrize(
    ("shape", "strides", "variant"),
    [
        ((5,), None, "dense_castout"),
        ((3, 16), (100, 1), "inner_contiguous_castout"),
        ((3, 2), (9, 2), "strided_castout"),
    ],
)
def test_a_missing_pair_of_types_is_cast_on_store(shape, strides, variant):
    names = [f"exp_{kind}_bfloat_float" for kind in ("dense_scalar", "inner_contiguous", "strided")]
    recorder = Recorder(*names)
    execute(recorder, "exp", view(shape, strides), dtype("bfloat16"))
    ((name, arguments, *_),) = recorder.launches
    assert name == f"exp_{variant}_float"
    assert 15 in [np.atleast_1d(value)[-1] for key, value in arguments.items() if key not in ("input", "output")]


def softmax(op, shape, dim=-1, strides=None, type_="float32"):
    recorder = Recorder()
    LAUNCHES[op](recorder, view(shape, strides, type_=type_), {"dim": dim})
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
def test_softmax_over_contiguous_rows(rows, size, names):
    assert [launch[0] for launch in softmax("softmax", (rows, size))] == names


def test_softmax_splits_a_vocabulary_into_63_chunks():
    (_, partial, _, groups, group), (_, finalize, *_) = softmax("log_softmax", (1, 128256))
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
def test_softmax_over_another_dimension_tiles_the_columns(shape, type_, group, groups):
    ((name, arguments, _, launched, size),) = softmax("softmax", shape, dim=1, type_=type_)
    assert (name.split("_")[0], size, launched) == ("softmax", group, groups)
    assert arguments["params"]["inner_size"] == shape[2]


def test_softmax_over_few_columns_of_a_long_dimension_is_split():
    launches = softmax("log_softmax", (8192, 4), dim=0, type_="bfloat16")
    assert [name for name, *_ in launches] == [
        "softmax_strided_partial_bfloat_u32",
        "log_softmax_strided_finalize_bfloat_u32",
    ]
    (_, arguments, _, groups, group), _ = launches
    assert group == (4, 256, 1)
    assert groups == (1, 1, 2)
    assert arguments["params"]["chunk_size"] == 4096


def test_strides_of_dimensions_of_one_are_passed_as_zero():
    ((_, arguments, *_),) = softmax("softmax", (4, 1, 3), dim=0, strides=(3, 77, 1))
    assert arguments["params"]["strides"] == [3, 0, 1]
    assert arguments["params"]["sizes"] == [4, 1, 3]


def test_softmax_refuses_what_the_host_refuses():
    with pytest.raises(Unsupported, match="softmax on int32"):
        softmax("softmax", (3,), type_="int32")


def test_empty_and_scalar_softmax_launch_as_little_as_the_host():
    assert softmax("softmax", (0, 3)) == []
    ((name, *_),) = softmax("softmax", ())
    assert name == "softmax_row_float_u32"


@pytest.mark.parametrize(
    ("op", "params", "name", "alpha"),
    [
        ("hardshrink", {}, "hardshrink_dense_float_float_float", 0.5),
        ("leaky_relu", {"negative_slope": 0.25}, "leaky_relu_dense_float_float_float", 0.25),
        ("clamp", {"min": 1}, "clamp_min_scalar_dense_float_float_float", 1),
        ("clamp", {"max": 1}, "clamp_max_scalar_dense_float_float_float", 1),
        ("clamp", {"min": 1, "max": 2}, "clamp_scalar_dense_float_float_ClampScalarParams_float", {"min": 1, "max": 2}),
        ("softplus", {"beta": 2.0}, "softplus_dense_float_float_SoftplusParams", {"beta": 2.0, "threshold": 20.0}),
        ("pow.scalar", {"exponent": 3}, "pow_scalar_dense_float_float_float", 3),
        ("round.decimals", {"decimals": 2}, "round_decimals_dense_float_float_long", 2),
        ("polygamma", {"n": 2}, "polygamma_dense_float_float_int", 2),
    ],
)
def test_parameters_choose_and_reach_the_kernel(op, params, name, alpha):
    recorder = Recorder()
    LAUNCHES[op](recorder, view((8,)), params)
    ((launched, arguments, *_),) = recorder.launches
    assert (launched, arguments["alpha"]) == (name, alpha)


@pytest.mark.parametrize(
    ("exponent", "functor"), [(2, "sqr"), (2.0, "sqr"), (-1, "reciprocal"), (0.5, "sqrt"), (-0.5, "rsqrt")]
)
def test_some_exponents_have_kernels_of_their_own(exponent, functor):
    recorder = Recorder()
    LAUNCHES["pow.scalar"](recorder, view((8,)), {"exponent": exponent})
    assert recorder.names == [f"{functor}_dense_scalar_float_float"]


def test_nan_to_num_defaults_to_the_limits_of_the_type():
    recorder = Recorder()
    LAUNCHES["nan_to_num"](recorder, view((8,), type_="float16"), {})
    fields = recorder.launches[0][1]["alpha"]
    assert fields == {"nan": 0.0, "posinf": 65504.0, "neginf": -65504.0}


def test_real_part_keeps_the_layout_of_the_operand():
    result = LAUNCHES["abs"](Recorder(), view((2, 3), (1, 2), type_="complex64"), {})
    assert (result.dtype.name, result.strides) == ("float32", (1, 2))


def test_integers_clamped_to_a_float_are_no_integers():
    with pytest.raises(Unsupported, match="which give floats"):
        LAUNCHES["clamp.min"](Recorder(), view((2,), type_="int32"), {"min": 0.5})
