"""Which binary kernel the host launches, and how: both sides of every switch of its rules."""

from __future__ import annotations

import numpy as np
import pytest

from metal_ops.launch._views import View
from tests.metal_ops.launch.recording import view
from tests.metal_ops.launch.test_choices import launches, names


def add(first, second, out, alpha=1):
    ((name, arguments, threads, _, _),) = launches("add.out", first, second, alpha=alpha, out=out)
    return name, arguments, threads


def ints(*shape: int) -> View:
    return view(shape, type_="int32")


@pytest.mark.parametrize(
    ("count", "name", "threads"),
    [(2**18 - 1, "add_dense_float_float", 2**18 - 1), (2**18 + 1, "add_dense_ilp4_float_float", 2**16 + 1)],
)
def test_dense_kernels_change_at_two_to_the_eighteenth(count, name, threads):
    launched, arguments, grid = add(view((count,)), view((count,)), view((count,)))
    assert (launched, grid) == (name, (threads, 1, 1))
    assert arguments.get("numel") == (count if "ilp" in name else None)


def test_other_results_compute_one_a_thread_but_those_of_comparisons():
    count = 2**18
    assert add(ints(count), ints(count), ints(count))[0] == "add_dense_int_int"
    out = view((count,), type_="bool")
    assert names("lt.Tensor_out", ints(count), ints(count), out=out) == ["lt_dense_ilp4_bool_int"]
    assert names("lt.Tensor_out", ints(8), ints(8), out=view((8,), type_="bool")) == ["lt_dense_bool_int"]


@pytest.mark.parametrize(
    ("first", "second", "variant", "buffers"),
    [
        ((2, 3), (), "dense_scalar", {"input", "scalar"}),
        ((1,), (2, 3), "dense_scalar_lhs", {"input", "scalar"}),
        ((2, 3), (3,), "dense_broadcast", {"input", "broadcast"}),
        ((1, 3), (2, 3), "dense_broadcast_rhs", {"input", "broadcast"}),
        ((2, 3), (2, 1), "strided", {"input", "other"}),
        ((2, 1), (1, 3), "strided", {"input", "other"}),
    ],
)
def test_operands_that_repeat_have_kernels_of_their_own(first, second, variant, buffers):
    name, arguments, threads = add(view(first), view(second), view((2, 3)))
    assert (name, threads) == (f"add_{variant}_float_float", (6, 1, 1))
    assert buffers <= set(arguments)
    assert arguments.get("broadcast_numel") == (3 if "broadcast" in variant else None)


@pytest.mark.parametrize("place", ["operand", "out"])
def test_operands_do_not_repeat_into_strided_tensors(place):
    strides = {"operand": None, "out": None, place: (7, 2)}
    name, _, _ = add(view((2, 3), strides["operand"]), view((3,)), view((2, 3), strides["out"]))
    assert name == "add_strided_float_float"


@pytest.mark.parametrize(("inner", "variant"), [(15, "strided"), (16, "inner_contiguous")])
def test_contiguous_runs_of_sixteen_have_a_kernel_of_their_own(inner, variant):
    name, arguments, threads = add(view((3, inner), (100, 1)), view((3, inner)), view((3, inner)))
    assert name == f"add_{variant}_float_float"
    if inner == 16:
        assert (threads, arguments["ndim_outer_inner"]) == ((4, 3, 1), (1, 16))
        assert arguments["input_outer_strides"].tolist() == [400]
        assert arguments["other_outer_strides"].tolist() == [64]
    else:
        assert (threads, arguments["ndim"][0]) == ((45, 1, 1), 2)
        assert arguments["input_strides"].tolist() == [4, 400]


@pytest.mark.parametrize(
    ("first", "second", "variant", "types"),
    [
        ((2, 3), (2, 3), "dense", "sizes_types"),
        ((2, 3), (3,), "dense_broadcast", "sizes_types"),
        ((2, 3), (2, 1), "strided", "ndim_types"),
    ],
)
def test_operands_of_different_types_are_cast_on_load(first, second, variant, types):
    name, arguments, _ = add(view(first, type_="float16"), view(second, type_="int32"), view((2, 3), type_="float16"))
    assert name == f"add_{variant}_cast_half_half"
    assert arguments[types] == ((2, 4, 5, 3) if types == "sizes_types" else (2, 5, 3, 5))


@pytest.mark.parametrize(
    ("type_", "number", "name", "value"),
    [
        ("float32", 2.5, "add_dense_scalar_float_float", np.float32(2.5)),
        ("float32", 2**24 + 1, "add_dense_scalar_float_float", np.float32(2**24)),
        ("float16", 2.5, "add_dense_scalar_cast_half_half", np.float32(2.5)),
        ("float16", 3, "add_dense_scalar_cast_half_half", np.int64(3)),
        ("int64", 3, "add_dense_scalar_long_long", np.int64(3)),
        ("int32", 3, "add_dense_scalar_cast_int_int", np.int64(3)),
        ("float32", 1e300, "add_dense_scalar_float_float", np.float32(np.inf)),
        ("complex64", 1.5, "add_dense_scalar_cast_float2_float2", np.float32(1.5)),
        ("complex64", True, "add_dense_scalar_float2_float2", np.complex64(1)),
    ],
)
def test_numbers_reach_the_kernel_in_the_types_that_the_host_gives_them(type_, number, name, value):
    launched, arguments, _ = add(view((8,), type_=type_), number, view((8,), type_=type_))
    assert launched == name
    assert arguments["scalar"].tobytes() == value.tobytes()


def test_a_double_of_the_host_is_rounded_to_float():
    double = View(view((), type_="float64").dtype, (), (), 0, np.array([0.1]).view(np.uint8))
    name, arguments, _ = add(view((8,)), double, view((8,)))
    assert (name, arguments["scalar"].view(np.float32)[0]) == ("add_dense_scalar_float_float", np.float32(0.1))


def test_comparisons_are_named_for_the_type_in_which_they_compare():
    out = view((8,), type_="bool")
    assert names("eq.Scalar_out", ints(8), 2.5, out=out) == ["eq_dense_scalar_cast_bool_float"]
    assert names("eq.Tensor_out", ints(8), view((8,), type_="int8"), out=out) == ["eq_dense_cast_bool_int"]


def test_results_that_a_comparison_does_not_give_are_cast_on_store():
    ((name, arguments, *_),) = launches("eq.Tensor_out", view((8,)), view((8,)), out=ints(8))
    assert (name, arguments["ndim_types"]) == ("eq_strided_castout_bool_float", (1, 6, 6, 3))


def test_integers_are_divided_in_float():
    assert names("div.out", ints(8), ints(8), out=view((8,))) == ["div_true_dense_float_int"]
    assert names("div.out_mode", ints(8), ints(8), rounding_mode="floor", out=ints(8)) == ["div_floor_dense_int_int"]
    assert names("div.out_mode", ints(8), ints(8), rounding_mode=None, out=view((8,))) == ["div_true_dense_float_int"]


@pytest.mark.parametrize(
    ("op", "alpha", "functor"),
    [("add", 1.0, "add"), ("add", -1, "sub"), ("sub", 1, "sub"), ("sub", -1, "add"), ("add", 2, "add_alpha")],
)
def test_factors_of_one_have_kernels_without(op, alpha, functor):
    suffix = "_float" if functor == "add_alpha" else ""
    expected = [f"{functor}_dense_float_float{suffix}"]
    assert names(f"{op}.out", view((8,)), view((8,)), alpha=alpha, out=view((8,))) == expected


def test_factors_are_rounded_to_the_type_in_which_the_op_computes():
    half = view((8,), type_="float16")
    _, arguments, _ = add(half, half, half, alpha=1 + 2**-11 + 2**-40)
    assert arguments["alpha"].view(np.float16)[0] == 1
    name, arguments, _ = add(half, ints(8), half, alpha=0.1)
    assert (name, arguments["alpha"].size) == ("add_alpha_dense_cast_half_half_half", 2)


def test_weights_ride_in_float():
    half = view((8,), type_="bfloat16")
    ((name, arguments, *_),) = launches("lerp.Scalar_out", half, half, 0.1, out=half)
    assert name == "lerp_alpha_dense_bfloat_bfloat_float"
    assert arguments["alpha"].view(np.float32)[0] == np.float32(0.1)


def test_structs_take_the_dense_or_the_strided_kernel():
    arguments = (0.5, 1, 1, True)
    for shape, variant in [((3,), "strided"), ((2, 3), "dense")]:
        kept, out = view(shape), view((2, 3))
        ((name, bound, *_),) = launches("elu_backward.grad_input", view((2, 3)), *arguments, kept, grad_input=out)
        assert name == f"elu_backward_{variant}_float_float_ELUBackwardParams_float"
        assert bound["alpha"] == {"alpha": 0.5, "scale": 1.0, "input_scale": 1.0, "is_result": True}


def test_gated_units_of_contiguous_tensors_have_a_kernel_of_their_own():
    ((name, arguments, threads, _, _),) = launches("glu.out", view((2, 6, 5)), 1, out=view((2, 3, 5)))
    assert (name, arguments["inner_half"], threads) == ("glu_dense_float", 15, (15, 2, 1))
    assert names("glu.out", view((2, 6, 5), (5, 10, 1)), 1, out=view((2, 3, 5))) == ["glu_strided_float_float"]


@pytest.mark.parametrize(
    ("flavor", "strides", "name"),
    [
        ("ilp", None, "add_dense_ilp4_int_int"),
        ("scalar", None, "add_dense_int_int"),
        ("inner_contiguous", (9, 1), "add_inner_contiguous_int_int"),
        ("strided", (9, 1), "add_strided_int_int"),
    ],
)
def test_the_environment_forces_a_binary_variant(monkeypatch, flavor, strides, name):
    monkeypatch.setenv("PYTORCH_BINARY_FORCE_FLAVOR", flavor)
    assert add(view((3, 2), strides, type_="int32"), ints(3, 2), ints(3, 2))[0] == name
