"""Matrix products: which kernels the host picks either side of each of its switches, and values against the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from conformance.devices.base import Unsupported
from metal_ops.launch.product import LAUNCHES, PREFERENCE
from tests.metal_ops.launch.recording import Recorder, view
from tests.metal_ops.launch.tensors import layouts, outside, poisoned, tensor_of, view_of


@pytest.fixture(autouse=True)
def _no_preference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PREFERENCE, raising=False)


def mm(left, right, *, type_="float32", out_strides=None, offset=0):
    """Launches of a product of shapes, of which the right one may have strides."""
    (a, a_steps), (b, b_steps) = (shape if isinstance(shape[0], tuple) else (shape, None) for shape in (left, right))
    recorder = Recorder()
    views = view(a, a_steps, type_=type_), view(b, b_steps, offset, type_=type_)
    LAUNCHES["mm.out"](recorder, *views, out=view((a[0], b[1]), out_strides, type_=type_))
    return recorder.launches


def name(*arguments: Any, **options: Any) -> str:
    ((launched, *_),) = mm(*arguments, **options)
    return launched


@pytest.mark.parametrize(
    ("left", "right", "type_", "kernel"),
    [
        ((1, 64), (64, 1024), "float32", "gemv_t2d_float_16_4_none"),
        ((1, 64), (64, 1028), "float32", "gemv_t_float_4_2_none"),
        ((1, 64), (64, 1025), "float32", "gemv_t_float_4_1_none"),
        ((1, 64), (64, 1022), "float32", "gemv_t_float_16_1_none"),
        ((1, 255), (255, 2048), "float32", "gemv_t_float_4_2_none"),
        ((1, 256), (256, 1120), "float32", "gemv_t_float_8_2_none"),
        ((1, 1024), (1024, 1120), "float32", "gemv_t_float_32_2_none"),
        ((1, 1024), (1024, 1122), "float32", "gemv_t_float_16_2_none"),
        ((1, 16383), (16383, 1026), "float32", "gemv_t_float_32_2_none"),
        ((1, 16384), (16384, 1026), "float32", "gemv_t_float_32_1_none"),
        ((1, 64), (64, 1024), "float16", "gemv_t2d_half_16_8_none"),
        ((1, 1023), (1023, 1026), "float16", "gemv_t_half_16_2_none"),
        ((1, 1024), (1024, 1026), "bfloat16", "gemv_t_bfloat_32_2_none"),
        ((1, 64), (64, 1020), "bfloat16", "gemv_t_bfloat_16_1_none"),
        ((2047, 64), (64, 1), "float32", "gemv_nt_float_16_4_none_xc"),
        ((2048, 64), (64, 1), "float32", "gemv_nt_float_4_4_none_xc"),
        ((8, 62), (62, 1), "float32", "gemv_nt_float_16_2_none_xc"),
        ((8, 63), (63, 1), "float32", "gemv_nt_float_16_1_none_xs"),
        ((8191, 8), (8, 1), "float16", "gemv_nt_half_4_8_none_xc"),
        ((8192, 8), (8, 1), "float16", "gemv_nt_half_8_8_none_xc"),
        ((8, 12), (12, 1), "bfloat16", "gemv_nt_bfloat_4_4_none_xc"),
    ],
)
def test_rows_and_columns_of_floats(left, right, type_, kernel):
    assert name(left, right, type_=type_) == kernel


def test_the_other_kernel_serves_a_transposed_matrix():
    assert name((1, 64), ((64, 32), (1, 64))) == "gemv_nt_float_16_4_none_xc"
    assert name(((32, 64), (1, 32)), (64, 1)) == "gemv_t2d_float_16_4_none"
    assert name((1, 64), ((64, 32), (64, 2))) == "gemv_t_float_16_1_none_strided"
    assert name(((32, 64), (256, 2)), (64, 1)) == "gemv_nt_float_16_4_none_xc_strided"


def test_loads_are_as_wide_as_everything_is_aligned():
    assert name((1, 64), (64, 32), offset=4) == "gemv_t2d_float_16_4_none"
    assert name((1, 64), (64, 32), offset=2) == "gemv_t_float_16_1_none"
    assert name((1, 64), ((64, 32), (1, 64)), offset=2) == "gemv_nt_float_16_2_none_xc"
    assert name((8, 64), (64, 1), offset=2) == "gemv_nt_float_16_4_none_xs"
    assert name((8, 64), ((64, 1), (2, 1))) == "gemv_nt_float_16_4_none_xs"


def test_matrices_beyond_32_bits_have_kernels_of_their_own():
    wide = 1 << 26
    assert name((1, 64), ((64, 32), (wide, 1))) == "gemv_t_float_16_2_none_i64"
    assert name(((64, 32), (wide, 1)), (32, 1), type_="float16") == "gemv_nt_half_8_8_none_xc_i64"


@pytest.mark.parametrize(
    ("left", "right", "groups", "group", "dims"),
    [
        ((1, 64), (64, 33), (3, 1, 1), (512, 1, 1), (33, 64, 33, 1, 1)),
        ((1, 64), (64, 36), (1, 1, 1), (512, 1, 1), (36, 64, 36, 1, 1)),
        ((33, 64), (64, 1), (3, 1, 1), (512, 1, 1), (33, 64, 64, 1, 1)),
    ],
)
def test_each_group_makes_a_block_of_results(left, right, groups, group, dims):
    ((kernel, arguments, _, launched, size),) = mm(left, right)
    expected = {"gemv_t_": 32, "gemv_t2d": 32, "gemv_nt": 16}
    block = next(count for prefix, count in expected.items() if kernel.startswith(prefix))
    assert launched == (-(-max(left[0], right[1]) // block), 1, 1)
    assert size == group
    assert tuple(arguments["gP"].values())[:5] == dims


def test_other_floats_are_apples_unless_metal_is_preferred(monkeypatch):
    for shapes in (((2, 3), (3, 2)), ((1, 3), (3, 2), (4, 2))):
        with pytest.raises(Unsupported, match=f"MPSGraph, which is not in the wheel; with {PREFERENCE} set"):
            mm(*shapes[:2], out_strides=shapes[2] if len(shapes) > 2 else None)
    monkeypatch.setenv(PREFERENCE, "")
    assert name((2, 3), (3, 2)) == "matmul_float"
    assert name((1, 3), (3, 2)) == "matmul_float"


@pytest.mark.parametrize(("type_", "kernel"), [("int64", "matmul_long"), ("uint8", "matmul_uchar")])
def test_integers_take_the_kernels(type_, kernel):
    assert name((2, 3), (3, 2), type_=type_) == kernel


@pytest.mark.parametrize(("inner", "served"), [(2048, False), (2049, True)])
def test_complex_products_change_at_2048_terms(inner, served):
    if served:
        assert name((2, inner), (inner, 2), type_="complex64") == "matmul_float2"
        return
    with pytest.raises(Unsupported, match="MPSGraph"):
        mm((2, inner), (inner, 2), type_="complex64")


def added(overload, shapes, *, type_="float32", **factors):
    recorder = Recorder()
    addend, left, right, out = (view(shape, type_=type_) for shape in shapes)
    LAUNCHES[overload](recorder, addend, left, right, out=out, **factors)
    return recorder.launches


def test_the_addend_of_a_vector_is_fused():
    ((kernel, arguments, *_),) = added("addmm.out", [(33,), (1, 8), (8, 33), (1, 33)], alpha=2, beta=0.5)
    assert kernel == "gemv_t_float_16_1_ab"
    assert arguments["alpha_beta"].tolist() == [2, 0.5]
    assert (arguments["gP"]["bias_r"], arguments["gP"]["bias_c"]) == (0, 1)
    ((kernel, arguments, *_),) = added("addmm.out", [(33, 1), (33, 8), (8, 1), (33, 1)])
    assert (kernel, arguments["gP"]["bias_r"], arguments["gP"]["bias_c"]) == ("gemv_nt_float_16_4_ab_xc", 1, 0)
    ((_, arguments, *_),) = added("addmm.out", [(), (33, 8), (8, 1), (33, 1)])
    assert arguments["gP"]["bias_r"] == 0


def test_complex_products_with_an_addend_take_the_kernels():
    ((kernel, *_),) = added("addmm.out", [(3, 2), (3, 4), (4, 2), (3, 2)], type_="complex64")
    assert kernel == "addmm_float2"
    ((kernel, *_),) = added("addmm.out", [(3, 2), (3, 4), (4, 2), (3, 2)], type_="complex64", alpha=1.0, beta=0.0)
    assert kernel == "matmul_float2"
    ((kernel, *_),) = added("baddbmm.out", [(1, 3, 2), (1, 3, 4), (1, 4, 2), (1, 3, 2)], type_="complex64")
    assert kernel == "naive_baddbmm_float2"


def test_without_products_the_addend_is_scaled():
    names = [launch[0] for launch in added("addmm.out", [(3, 2), (3, 0), (0, 2), (3, 2)], beta=0.5)]
    assert names == ["contiguous_byte_copy", "mul_dense_scalar_float_float"]
    names = [launch[0] for launch in added("addmm.out", [(3, 2), (3, 0), (0, 2), (3, 2)], beta=0)]
    assert names == ["fill_scalar_dense_float"]
    names = [launch[0] for launch in added("baddbmm.out", [(1, 3, 2), (1, 3, 0), (1, 0, 2), (1, 3, 2)], beta=0)]
    assert names == ["mul_dense_scalar_float_float"]


@pytest.mark.parametrize("overload", ["bmm.out", "baddbmm.out", "addmv.out", "dot"])
def test_what_apples_library_computes_is_said(overload):
    shapes = {
        "bmm.out": [(1, 2, 3), (1, 3, 2), (1, 2, 2)],
        "dot": [(3,), (3,), ()],
        "addmv.out": [(2,), (2, 3), (3,), (2,)],
    }
    *given, out = [view(shape) for shape in shapes.get(overload, [(1, 2, 2), (1, 2, 3), (1, 3, 2), (1, 2, 2)])]
    with pytest.raises(Unsupported, match="MPSGraph"):
        LAUNCHES[overload](Recorder(), *given, **({} if overload == "dot" else {"out": out}))


def linear(shape, weight, bias=None):
    recorder = Recorder()
    operands = view(shape), view(weight), None if bias is None else view(bias)
    return LAUNCHES["linear"](recorder, *operands), recorder.names


@pytest.mark.parametrize("shape", [(8,), (1, 8), (1, 1, 8)])
def test_a_layer_of_one_row_is_a_vectors(shape):
    out, names = linear(shape, (3, 8), (3,))
    assert (out.shape, names) == ((*shape[:-1], 3), ["gemv_nt_float_16_4_ab_xc"])
    out, names = linear(shape, (3, 8), (1, 3) if len(shape) > 1 else None)
    assert names[0] == "gemv_nt_float_16_4_none_xc"
    assert len(names) == (2 if len(shape) > 1 else 1)
    out, names = linear(shape, (8,))
    assert out.shape == shape[:-1]


def test_a_layer_of_more_rows_is_apples():
    with pytest.raises(Unsupported, match=r"MPSGraph, which is not in the wheel$"):
        linear((2, 8), (3, 8))
    assert linear((0, 8), (3, 8))[1] == []
    assert linear((2, 0), (3, 0))[1] == ["fill_scalar_dense_float"]
    assert linear((2, 0), (3, 0), (3,))[1] == ["copy_identity_strided_float_float"]
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        linear((1, 8), (3, 7))


def grouped(left, right, groups, *, type_="float32", strides=None):
    recorder = Recorder()
    steps = {"strides": strides} if strides else {}
    out = LAUNCHES["_grouped_mm"](
        recorder, view(left, type_=type_), view(right, type_=type_, **steps), view((groups,), type_="int32"), None, None
    )
    return out, recorder.launches


@pytest.mark.parametrize(
    ("rows", "groups", "kernel"),
    [
        (4, 4, "few_rows_float_u32"),
        (5, 4, "rows_float_bm16_u32"),
        (32, 40, "few_rows_float_u32"),
        (33, 40, "rows_float_bm16_u32"),
        (96, 4, "rows_float_bm16_u32"),
        (100, 4, "rows_float_bm32_u32"),
        (192, 4, "rows_float_bm32_u32"),
        (196, 4, "rows_float_bm64_u32"),
    ],
)
def test_groups_of_rows(rows, groups, kernel):
    _, ((name, _, _, grid, group),) = grouped((rows, 16), (groups, 16, 8), groups, strides=(128, 1, 16))
    assert name == f"grouped_mm_{kernel}"
    height = {"few": 1, "bm16": 16, "bm32": 32, "bm64": 64}[name.split("_")[2 if "few" in name else 4]]
    assert grid == ((1, rows, 1) if height == 1 else (1, -(-rows // height) + groups, 1))
    assert group == ((512 if height == 1 else 128 if height == 64 else 64), 1, 1)


def test_few_rows_want_columns_of_the_weights_dense():
    assert grouped((2, 16), (3, 16, 8), 3)[1][0][0] == "grouped_mm_rows_float_bm16_u32"


def test_groups_of_columns_are_rows_of_the_transposed_product():
    out, ((name, arguments, *_),) = grouped((3, 5, 16), (16, 12), 3)
    assert name == "grouped_mm_rows_float_bm16_u32"
    params = arguments["params"]
    assert (params["m"], params["n"], params["out_stride_m"], params["out_stride_n"]) == (12, 5, 1, out.strides[0])


def test_groups_of_sums_make_a_matrix_each():
    out, ((name, arguments, _, grid, _),) = grouped((30, 16), (16, 70), 3, type_="float16", strides=(72, 1))
    assert (name, grid) == ("grouped_mm_k_half_bm32_u32", (2, 1, 3))
    assert (out.shape, out.strides) == ((3, 30, 70), (30 * 72, 72, 1))
    assert arguments["params"]["batch_stride"] == 30 * 72


def test_empty_groups_launch_nothing():
    assert grouped((0, 16), (3, 16, 8), 3)[1] == []
    out, launches = grouped((4, 16), (0, 16, 8), 0)
    assert (out.shape, launches) == ((4, 8), [])


@pytest.mark.parametrize(
    ("left", "right", "offs", "message"),
    [
        (view((2, 6)), view((1, 6, 8)), view((1,), type_="int32"), "multiples of 16 bytes"),
        (view((2, 8), offset=1), view((1, 8, 8)), view((1,), type_="int32"), "multiples of 16 bytes"),
        (view((2, 8), (16, 2)), view((1, 8, 8)), view((1,), type_="int32"), "neither of rows nor of columns"),
        (view((2, 8)), view((1, 8, 8)), None, "offsets are given"),
        (view((1, 2, 8)), view((1, 8, 8)), view((1,), type_="int32"), "offsets are given"),
        (view((2, 8)), view((1, 8, 8)), view((1,), type_="int64"), "offsets must be int32"),
        (view((2, 8)), view((3, 8, 8)), view((1,), type_="int32"), "1 groups"),
        (view((2, 8)), view((1, 4, 8)), view((1,), type_="int32"), "differ in the dimension"),
        (view((2, 8), type_="int32"), view((1, 8, 8)), view((1,), type_="int32"), "must be float32"),
        (view((8,)), view((1, 8, 8)), view((1,), type_="int32"), "2 or 3 dimensions"),
    ],
)
def test_groups_that_the_host_refuses(left, right, offs, message):
    with pytest.raises(RuntimeError, match=message):
        LAUNCHES["_grouped_mm"](Recorder(), left, right, offs, None, None)


def scaled(rows, inner, columns, *, kind="float16", strides=None, by_row=False, bias=None):
    recorder = Recorder()
    left = view((rows, inner), type_="float8_e4m3fn")
    right = view((inner, columns), strides or (1, inner), type_="float8_e4m3fn")
    scales = (view((rows, 1)), view((1, columns))) if by_row else (view(()), view(()))
    recipe = (int(by_row),)
    added = None if bias is None else view((columns,), type_=bias)
    LAUNCHES["_scaled_mm_v2.out"](
        recorder,
        left,
        right,
        (scales[0],),
        recipe,
        (),
        (scales[1],),
        recipe,
        (),
        added,
        None,
        out=view((rows, columns), type_=kind),
    )
    return recorder.launches


@pytest.mark.parametrize(
    ("rows", "columns", "strides", "kernel", "grid"),
    [
        (1, 48, None, "scaled_mm_few_rows_1_half", (12, 1, 1)),
        (4, 48, None, "scaled_mm_few_rows_4_half", (12, 1, 1)),
        (5, 48, None, "scaled_mm_half", (2, 1, 1)),
        (33, 48, None, "scaled_mm_half", (2, 2, 1)),
        (4, 48, (48, 1), "scaled_mm_half", (2, 1, 1)),
    ],
)
def test_scaled_products(rows, columns, strides, kernel, grid):
    ((name, arguments, _, launched, group),) = scaled(rows, 32, columns, strides=strides)
    assert (name, launched, group) == (kernel, grid, (128, 1, 1))
    assert not arguments["p"]["has_bias"]


def test_scaled_products_say_how_they_are_scaled():
    ((_, arguments, *_),) = scaled(3, 16, 32, by_row=True, bias="float16")
    assert [arguments["p"][key] for key in ("rowwise", "has_bias", "bias_bfloat16")] == [True, True, False]
    ((_, arguments, *_),) = scaled(3, 16, 32, kind="float8_e4m3fn", bias="bfloat16")
    assert [arguments["p"][key] for key in ("rowwise", "has_bias", "bias_bfloat16")] == [False, True, True]
    assert [launch[0] for launch in scaled(3, 0, 32)] == ["fill_scalar_dense_half"]
    assert scaled(0, 16, 32) == []


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        ((3, 24, 32), {}, ValueError),
        ((3, 16, 24), {}, ValueError),
        ((3, 16, 32), {"strides": (2, 64)}, ValueError),
        ((3, 16, 32), {"kind": "float32", "bias": "bfloat16"}, ValueError),
        ((3, 16, 32), {"kind": "float16", "bias": "bfloat16"}, ValueError),
        ((3, 16, 32), {"kind": "int32"}, TypeError),
    ],
)
def test_scaled_products_that_the_host_refuses(arguments, options, error):
    with pytest.raises(error, match="_scaled_mm_v2"):
        scaled(*arguments, **options)


def random(*shape: int, seed: int = 1, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(1, 70, 37), (37, 70, 1), (1, 33, 1030), (1, 40, 40), (1, 1, 1)]
)
def test_vectors_agree_with_torch_in_every_layout(launcher, dtype, rows, inner, columns):
    a, b = random(rows, inner, dtype=dtype), random(inner, columns, seed=2, dtype=dtype)
    expected = a.double() @ b.double()
    close = {"rtol": 2 * torch.finfo(dtype).eps, "atol": 64 * torch.finfo(dtype).eps}
    for left in layouts(a):
        for right in layouts(b):
            out = poisoned((rows, columns), dtype, offset=1)
            LAUNCHES["mm.out"](launcher, view_of(left), view_of(right), out=out)
            assert torch.allclose(tensor_of(out).double(), expected, **close)
            assert (outside(out) == 0xA5).all()
    assert {name.split("_")[0] for name in launcher.take_names()} == {"gemv"}


@pytest.mark.parametrize("addend", [(1, 37), (37,), (1, 1), ()], ids=str)
def test_addends_of_vectors_agree_with_torch(launcher, addend):
    x, a, b = random(*addend, seed=3), random(1, 40), random(40, 37, seed=2)
    for right in layouts(b):
        for left, other in ((a, right), (right.t(), a.t())):
            given = x if left is a or x.dim() < 2 else x.t()
            given = given[:, None] if left is not a and given.dim() == 1 else given
            expected = torch.addmm(given, left, other, alpha=-2.0, beta=0.5)
            out = poisoned(tuple(expected.shape), torch.float32)
            LAUNCHES["addmm.out"](
                launcher, view_of(given), view_of(left), view_of(other), alpha=-2.0, beta=0.5, out=out
            )
            assert torch.allclose(tensor_of(out), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("rows", "groups"), [(3, 4), (20, 3), (120, 3), (200, 3)])
@pytest.mark.parametrize("transposed", [False, True])
def test_groups_agree_with_torch(launcher, rows, groups, transposed):
    ends = torch.linspace(0, rows, groups + 1).int()[1:]
    ends[0] = 0
    x, weights = random(rows, 20), random(groups, 20, 72, seed=2)
    weights = weights.transpose(1, 2).contiguous().transpose(1, 2) if transposed else weights
    out = LAUNCHES["_grouped_mm"](launcher, view_of(x), view_of(weights), view_of(ends), None, None)
    assert torch.allclose(tensor_of(out), functional.grouped_mm(x, weights, offs=ends), rtol=1e-5, atol=1e-4)
    left, right = (weights.transpose(1, 2), x.t()) if transposed else (random(groups, 70, 20), random(20, rows, seed=3))
    right = right if rows % 4 == 0 or transposed else random(rows, 20, seed=3).t()
    out = LAUNCHES["_grouped_mm"](launcher, view_of(left), view_of(right), view_of(ends), None, None)
    assert torch.allclose(tensor_of(out), functional.grouped_mm(left, right, offs=ends), rtol=1e-5, atol=1e-4)
    y = random(rows, 24, seed=4)
    out = LAUNCHES["_grouped_mm"](launcher, view_of(x.t()), view_of(y), view_of(ends), None, None)
    assert torch.allclose(tensor_of(out), functional.grouped_mm(x.t(), y, offs=ends), rtol=1e-5, atol=1e-4)


def test_layers_and_their_gradients_agree_with_torch(launcher):
    x, weight, gradient = random(1, 1, 40), random(7, 40, seed=2), random(1, 1, 7, seed=3)
    out = LAUNCHES["linear"](launcher, view_of(x), view_of(weight), view_of(gradient[0, 0]))
    assert torch.allclose(tensor_of(out), functional.linear(x, weight, gradient[0, 0]), atol=1e-5)
    of_x, of_weight, of_bias = LAUNCHES["linear_backward"](
        launcher, view_of(x), view_of(gradient), view_of(weight), (True, False, False)
    )
    assert torch.allclose(tensor_of(of_x), gradient @ weight, atol=1e-5)
    assert (of_weight, of_bias) == (None, None)


def test_gradients_of_layers_where_metal_is_preferred(launcher, monkeypatch):
    monkeypatch.setenv(PREFERENCE, "1")
    x, weight, gradient = random(2, 3, 5), random(7, 5, seed=2), random(2, 3, 7, seed=3)
    made = LAUNCHES["linear_backward"](launcher, view_of(x), view_of(gradient), view_of(weight), (True, True, True))
    rows = gradient.reshape(6, 7)
    for got, due in zip(made, (gradient @ weight, rows.t() @ x.reshape(6, 5), rows.sum(0)), strict=True):
        assert torch.allclose(tensor_of(got), due, atol=1e-5)
    empty = LAUNCHES["linear_backward"](
        launcher, view_of(x[:0]), view_of(gradient[:0]), view_of(weight), (True, True, True)
    )
    assert [view.shape for view in empty] == [(0, 3, 5), (7, 5), (7,)]
    assert not np.concatenate([view.array().ravel() for view in empty]).any()
