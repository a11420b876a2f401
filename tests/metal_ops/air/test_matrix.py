"""Matrices of 8 x 8 held by a simdgroup."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from metal_ops.air.lowering.matrix import narrow
from tests.metal_ops.air.modules import module, run

TYPES = {
    "f32": ("float", "float", np.float32),
    "f16": ("half", "half", np.float16),
    "bf16": ("bfloat", "bfloat", ml_dtypes.bfloat16),
}
PREFIX = "air.simdgroup_matrix_8x8"


def product_module(kind: str, transposed: bool) -> str:
    type_, metal, _ = TYPES[kind]
    load = f"{PREFIX}_load.v64{kind}.p1{kind}"
    multiply = f"{PREFIX}_multiply_accumulate.v64f32.v64{kind}.v64{kind}.v64f32"
    flag = "true" if transposed else "false"
    stored = "<64 x float> %d, ptr addrspace(1) %output, i64 8, <2 x i64> zeroinitializer, i1 false"
    body = f"""  %a = call <64 x {type_}> @{load}(ptr addrspace(1) %left, i64 8, <2 x i64> zeroinitializer, i1 {flag})
  %b = call <64 x {type_}> @{load}(ptr addrspace(1) %right, i64 12, <2 x i64> <i64 3, i64 1>, i1 false)
  %c = call <64 x float> @{PREFIX}_init_diag.v64f32.f32(float 1.000000e+02)
  %f = call <64 x float> @{PREFIX}_init_filled.v64f32.f32(float 5.000000e-01)
  %s = fadd <64 x float> %c, %f
  %d = call <64 x float> @{multiply}(<64 x {type_}> %a, <64 x {type_}> %b, <64 x float> %s)
  call void @{PREFIX}_store.v64f32.p1f32({stored})
  ret void"""
    declare = [
        f"<64 x {type_}> @{load}(ptr addrspace(1), i64, <2 x i64>, i1)",
        f"<64 x float> @{PREFIX}_init_diag.v64f32.f32(float)",
        f"<64 x float> @{PREFIX}_init_filled.v64f32.f32(float)",
        f"<64 x float> @{multiply}(<64 x {type_}>, <64 x {type_}>, <64 x float>)",
        f"void @{PREFIX}_store.v64f32.p1f32(<64 x float>, ptr addrspace(1), i64, <2 x i64>, i1)",
    ]
    return module(body, {"left": metal, "right": metal, "output": "float"}, declare=declare)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("kind", TYPES)
def test_a_product_with_offsets_transposition_and_initial_values(kind, transposed):
    dtype = TYPES[kind][2]
    left = np.arange(64).reshape(8, 8).astype(dtype)
    right = (np.arange(120).reshape(10, 12) % 7 - 3).astype(dtype)
    out = np.zeros((8, 8), np.float32)
    report = run(product_module(kind, transposed), {"left": left, "right": right, "output": out}, 32)
    a, b = left.astype(np.float64), right[1:9, 3:11].astype(np.float64)
    np.testing.assert_array_equal(out, (a.T if transposed else a) @ b + 100 * np.eye(8) + 0.5)
    assert report.violation_count == 0


def test_a_load_behind_the_end_is_reported():
    memory = {"left": np.zeros(63, np.float32), "right": np.zeros(120, np.float32), "output": np.zeros(64, np.float32)}
    (violation,) = run(product_module("f32", False), memory, 32).violations
    assert (violation.argument, violation.offset, violation.thread) == ("left", 252, (31, 0, 0))


SHUFFLE = "  %a = shufflevector"


@pytest.mark.parametrize(
    ("line", "want"),
    [
        (
            f"{SHUFFLE} <64 x float> %x, <64 x float> %y, <2 x i32> <i32 0, i32 65>",
            f"{SHUFFLE} <2 x float> %x, <2 x float> %y, <2 x i32> <i32 0, i32 3>",
        ),
        (
            f"{SHUFFLE} <2 x half> %x, <2 x half> poison, <64 x i32> <i32 0, i32 1, i32 poison, i32 poison>",
            f"{SHUFFLE} <2 x half> %x, <2 x half> poison, <2 x i32> <i32 0, i32 1>",
        ),
        ("  store <64 x half> %x, ptr %p, align 128", "  store <2 x half> %x, ptr %p, align 8"),
        ("%m = type { <64 x i32> }\n  %a = alloca %m, align 256", "%m = type { <2 x i32> }\n  %a = alloca %m, align 8"),
    ],
)
def test_vectors_of_64_become_what_a_lane_holds(line, want):
    assert narrow(line) == want


def test_text_without_matrices_is_left_alone():
    assert narrow("  %a = alloca i32, align 256") == "  %a = alloca i32, align 256"
