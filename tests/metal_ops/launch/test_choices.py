"""Which kernel the host launches, and how: both sides of every switch of its rules."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.devices.base import Unsupported
from metal_ops.launch import activation, activation_backward, binary, special, unary
from tests.metal_ops.launch.recording import Recorder, view

LAUNCHES = {
    **unary.LAUNCHES,
    **special.LAUNCHES,
    **activation.LAUNCHES,
    **activation_backward.LAUNCHES,
    **binary.LAUNCHES,
}


def launches(op, *arguments, missing=(), **keywords):
    recorder = Recorder(*missing)
    LAUNCHES[op](recorder, *arguments, **keywords)
    return recorder.launches


def names(op, *arguments, **keywords):
    return [name for name, *_ in launches(op, *arguments, **keywords)]


def exp(shape, strides=None, type_="float32", result=None, **options):
    out = view(shape, type_=result or type_)
    return launches("exp.out", view(shape, strides, type_=type_), out=out, **options)


def test_dense_kernels_change_at_two_to_the_eighteenth():
    ((name, arguments, threads, _, group),) = exp((2**18 - 1,))
    assert (name, threads, group) == ("exp_dense_scalar_float_float", (2**18 - 1, 1, 1), (1024, 1, 1))
    assert set(arguments) == {"input", "output"}
    ((name, arguments, threads, _, _),) = exp((2**18,))
    assert (name, threads, arguments["numel"]) == ("exp_dense_float_float", (2**16, 1, 1), 2**18)
    ((_, _, threads, _, _),) = exp((2**18 + 1,))
    assert threads == (2**16 + 1, 1, 1)


def test_integer_results_keep_one_element_a_thread():
    assert names("neg.out", view((2**18,), type_="int32"), out=view((2**18,), type_="int32")) == [
        "neg_dense_scalar_int_int"
    ]


@pytest.mark.parametrize(("count", "variant"), [(2**18 - 1, "dense_scalar"), (2**18, "dense")])
def test_tests_of_numbers_compute_four_a_thread_for_their_bools(count, variant):
    out = view((count,), type_="bool")
    assert names("isposinf.out", view((count,), type_="float16"), out=out) == [f"isposinf_{variant}_bool_half"]


@pytest.mark.parametrize(("count", "variant"), [(2**18 - 1, "dense_castout"), (2**18, "dense_castout_ilp")])
def test_tests_of_numbers_cast_their_bools_four_a_thread(count, variant):
    missing = [f"logical_not_{kind}_int_float" for kind in ("dense", "dense_scalar")]
    out = view((count,), type_="int32")
    ((name, arguments, *_),) = launches("logical_not.out", view((count,)), out=out, missing=missing)
    assert name == f"logical_not_{variant}_float"
    expected = {"size_outtype": (4, 3)} if variant == "dense_castout" else {"size_outtype_numel": (4, 3, count)}
    assert {key: arguments[key] for key in expected} == expected


@pytest.mark.parametrize(("inner", "name"), [(15, "exp_strided_half_half"), (16, "exp_inner_contiguous_half_half")])
def test_contiguous_runs_of_sixteen_have_a_kernel_of_their_own(inner, name):
    ((launched, arguments, threads, _, _),) = exp((3, inner), (100, 1), type_="float16")
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


@pytest.mark.parametrize(("inner", "variant"), [(15, "strided"), (16, "inner_contiguous")])
def test_contiguous_runs_with_a_number_but_not_with_a_struct(inner, variant):
    source, out = view((3, inner), (100, 1)), view((3, inner))
    ((name, arguments, *_),) = launches("leaky_relu.out", source, 0.5, out=out)
    assert (name, arguments["alpha"].view(np.float32)[0]) == (f"leaky_relu_{variant}_float_float_float", 0.5)
    assert names("softplus.out", source, 1, 20, out=out) == ["softplus_strided_float_float_SoftplusParams"]


def test_gaps_in_the_innermost_dimension_are_strided():
    assert exp((4, 100), (400, 2))[0][0] == "exp_strided_float_float"


def test_memory_is_bound_from_the_first_to_the_last_element():
    out = view((2, 3), (10, 2), offset=5)
    ((_, arguments, *_),) = launches("exp.out", view((2, 3), offset=7), out=out)
    assert arguments["output"].size == 4 * (10 + 4 + 1)
    assert arguments["input"].size == 4 * 6
    assert np.shares_memory(arguments["output"], out.storage[20:24])


@pytest.mark.parametrize(
    ("shape", "strides", "variant"),
    [
        ((5,), None, "dense_castout"),
        ((3, 16), (100, 1), "inner_contiguous_castout"),
        ((3, 2), (9, 2), "strided_castout"),
    ],
)
def test_a_missing_pair_of_types_is_cast_on_store(shape, strides, variant):
    missing = [f"exp_{kind}_bfloat_float" for kind in ("dense_scalar", "inner_contiguous", "strided")]
    ((name, arguments, *_),) = exp(shape, strides, result="bfloat16", missing=missing)
    assert name == f"exp_{variant}_float"
    assert 15 in [np.atleast_1d(value)[-1] for key, value in arguments.items() if key not in ("input", "output")]


@pytest.mark.parametrize(
    ("flavor", "shape", "strides", "name"),
    [
        ("ilp", (8,), None, "exp_dense_float_float"),
        ("scalar", (2**18,), None, "exp_dense_scalar_float_float"),
        ("inner_contiguous", (3, 2), (9, 1), "exp_inner_contiguous_float_float"),
        ("strided", (3, 16), (99, 1), "exp_strided_float_float"),
    ],
)
def test_the_environment_forces_a_unary_variant(monkeypatch, flavor, shape, strides, name):
    monkeypatch.setenv("PYTORCH_UNARY_FORCE_FLAVOR", flavor)
    assert exp(shape, strides)[0][0] == name


def test_nothing_is_launched_for_no_element():
    assert exp((0, 3)) == []
    assert launches("add.out", view((0, 3)), view((3,)), alpha=1, out=view((0, 3))) == []
    assert launches("leaky_relu.out", view((0,)), 0.1, out=view((0,))) == []


@pytest.mark.parametrize(
    ("op", "arguments", "name", "alpha"),
    [
        ("hardshrink", (0.5,), "hardshrink_dense_float_float_float", 0.5),
        ("leaky_relu", (0.25,), "leaky_relu_dense_float_float_float", 0.25),
        ("clamp", (1, None), "clamp_min_scalar_dense_float_float_float", 1),
        ("clamp", (None, 1), "clamp_max_scalar_dense_float_float_float", 1),
        ("clamp", (1, 2), "clamp_scalar_dense_float_float_ClampScalarParams_float", {"min": 1, "max": 2}),
        ("softplus", (2.0, 20), "softplus_dense_float_float_SoftplusParams", {"beta": 2.0, "threshold": 20.0}),
        ("pow.Tensor_Scalar", (3,), "pow_scalar_dense_float_float_float", 3),
    ],
)
def test_parameters_choose_and_reach_the_kernel(op, arguments, name, alpha):
    overload = f"{op}_out" if "." in op else f"{op}.out"
    ((launched, bound, *_),) = launches(overload, view((8,)), *arguments, out=view((8,)))
    given = bound["alpha"]
    assert launched == name
    assert (given if isinstance(given, dict) else given.view(np.float32)[0]) == alpha


def test_integral_parameters_reach_the_kernel_in_their_own_types():
    ((name, bound, *_),) = launches("round.decimals_out", view((8,)), decimals=-2, out=view((8,)))
    assert (name, bound["alpha"].view(np.int64)[0]) == ("round_decimals_dense_float_float_long", -2)
    ((name, bound, *_),) = launches("polygamma.out", 2, view((8,), type_="uint8"), out=view((8,)))
    assert (name, bound["alpha"].view(np.int32)[0]) == ("polygamma_dense_float_uchar_int", 2)


def test_half_parameters_are_rounded_by_way_of_float():
    twice = 1 + 2**-11 + 2**-40  # to half directly: 1 + 2**-10; by way of float it becomes a tie, and goes to 1
    out, source = view((8,), type_="float16"), view((8,), type_="float16")
    ((_, bound, *_),) = launches("leaky_relu.out", source, twice, out=out)
    assert bound["alpha"].view(np.float16)[0] == 1
    ((_, bound, *_),) = launches("elu.out", source, twice, 1, 1, out=out)
    assert bound["alpha"]["alpha"] == 1


@pytest.mark.parametrize(
    ("exponent", "functor"),
    [(2, "sqr"), (2.0, "sqr"), (2 + 1e-9, "sqr"), (-1, "reciprocal"), (0.5, "sqrt"), (-0.5, "rsqrt")],
)
def test_some_exponents_have_kernels_of_their_own(exponent, functor):
    out = view((8,))
    assert names("pow.Tensor_Scalar_out", view((8,)), exponent, out=out) == [f"{functor}_dense_scalar_float_float"]


def test_exponents_0_and_1_fill_and_copy():
    out = view((8,))
    assert names("pow.Tensor_Scalar_out", view((8,)), 0, out=out) == ["fill_scalar_dense_float"]
    assert names("pow.Tensor_Scalar_out", view((8,)), 1.0, out=out) == ["contiguous_byte_copy"]


def test_integers_with_a_float_exponent_are_converted_first():
    source, out = view((8,), type_="int32"), view((8,))
    missing = ("copy_identity_dense_scalar_float_int",)
    first, second = names("pow.Tensor_Scalar_out", source, 0.5, out=out, missing=missing)
    assert first == "copy_identity_dense_castout_int"
    assert second == "sqrt_dense_scalar_float_float"


@pytest.mark.parametrize(("count", "variant"), [(2**18 - 1, "dense"), (2**18, "dense_ilp")])
def test_nan_to_num_defaults_to_the_limits_of_the_type(count, variant):
    out = view((count,), type_="float16")
    ((name, arguments, *_),) = launches("nan_to_num.out", view((count,), type_="float16"), None, None, 7.0, out=out)
    assert name == f"nan_to_num_{variant}_half_half_NanToNumParams_float"
    assert arguments["alpha"] == {"nan": 0.0, "posinf": 65504.0, "neginf": 7.0}


@pytest.mark.parametrize(("op", "type_"), [("ceil", "int32"), ("round", "uint8"), ("trunc", "int64")])
def test_whole_numbers_are_rounded_by_copying(op, type_):
    out = view((8,), type_=type_)
    assert names(f"{op}.out", view((8,), type_=type_), out=out) == ["contiguous_byte_copy"]


def test_the_real_part_of_a_complex_result_is_copied():
    source = view((2, 3), (1, 2), type_="complex64")
    assert names("abs.out", source, out=view((2, 3), (1, 2))) == [
        "abs_dense_scalar_float2_float2",
        "copy_identity_strided_float_float",
    ]


def test_clamp_bounds_beyond_the_type():
    source, out = view((2,), type_="uint8"), view((2,), type_="uint8")
    assert names("clamp.out", source, -1, 300, out=out) == ["contiguous_byte_copy"]
    assert names("clamp.out", source, -1, 200, out=out) == ["clamp_max_scalar_dense_uchar_uchar_uchar"]
    with pytest.raises(RuntimeError, match="min value 300 is outside the representable range of uint8"):
        launches("clamp.out", source, 300, None, out=out)


def test_clamp_bounds_that_are_nan_fill_with_nan():
    assert names("clamp_min.out", view((2,)), float("nan"), out=view((2,))) == ["fill_scalar_dense_float"]


@pytest.mark.parametrize(
    ("op", "count"), [("acosh.out", 1), ("sign.out", 1), ("threshold_backward.grad_input", 3), ("logit", 2)]
)
def test_what_pytorch_leaves_to_mpsgraph_is_said(op, count):
    with pytest.raises(Unsupported, match="MPSGraph"):
        LAUNCHES[op](Recorder(), *[view((2,))] * count)
