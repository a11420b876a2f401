"""Kernels of the official 2.15.0 wheel that exercise hard parts of the emulator, against NumPy, in both modes.

Each case is a function that returns the kernel, its arguments, the grid, and what must be in which argument afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from metal_ops.air import Gpu
from metal_ops.air.archive import Library
from metal_ops.air.program import FAST, JUDGING
from metal_ops.builds import open_build

BFLOAT = ml_dtypes.bfloat16
FP8 = ml_dtypes.float8_e4m3fn


@dataclass
class Case:
    """A launch; ``want`` holds (argument, expected values, largest error relative to the largest value)."""

    kernel: str
    arguments: dict[str, Any]
    grid: dict[str, Any]
    want: list[tuple[str, Any, float]]


CASES: list[Callable[[np.random.Generator], Case]] = []


def case(function: Callable[[np.random.Generator], Case]) -> Callable[[np.random.Generator], Case]:
    CASES.append(function)
    return function


def normal(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


def line(threads: int, group: int = 256) -> dict[str, Any]:
    return {"threads": (threads, 1, 1), "group": (min(threads, group), 1, 1)}


@case
def broadcast_add(rng):
    x, row, out = normal(rng, 40, 13, dtype=BFLOAT), normal(rng, 13, dtype=BFLOAT), np.zeros((40, 13), BFLOAT)
    arguments = {"out": out, "input": x, "broadcast": row, "broadcast_numel": 13}
    return Case("add_dense_broadcast_bfloat_bfloat", arguments, line(520), [("out", x + row, 0)])


@case
def strided_atan2(rng):
    """A transposed operand and one expanded along the rows; strides in bytes."""
    y, x, out = normal(rng, 16, 16), normal(rng, 32), np.zeros((16, 16), np.float32)
    strides = {
        "output_strides": np.array([4, 64]),
        "input_strides": np.array([64, 4]),
        "other_strides": np.array([8, 0]),
    }
    arguments = {"output": out, "input": y, "other": x, "sizes": np.array([16, 16]), "ndim": [2, 0, 0], **strides}
    return Case("atan2_strided_float_float", arguments, line(256), [("output", np.arctan2(y.T, x[::2]), 2e-7)])


@case
def remainder_by_zero(rng):
    x = rng.integers(-100, 100, 300)
    y = rng.integers(-3, 4, 300)
    want = np.where(y == 0, x, np.remainder(x, np.where(y == 0, 1, y)))
    arguments = {"out": np.zeros(300, np.int64), "input": x, "other": y}
    return Case("remainder_dense_long_long", arguments, line(300), [("out", want, 0)])


@case
def constant_pad_of_a_permuted_tensor(rng):
    memory = normal(rng, 3, 4, 5)
    x = memory.transpose(1, 0, 2)
    want = np.pad(x, ((1, 0), (0, 2), (3, 1)), constant_values=-2)
    out = np.zeros(want.shape, np.float32)
    params = {
        "output_sizes": want.shape[::-1],
        "input_sizes": x.shape[::-1],
        "input_strides": [stride // 4 for stride in x.strides[::-1]],
        "output_strides": [stride // 4 for stride in out.strides[::-1]],
        "left_pad": [3, 0, 1],
        "ndim": 3,
    }
    arguments = {"input": memory, "output": out, "params": params, "fill_value": -2.0}
    grid = {"threads": (3, 25, 1), "group": (3, 25, 1)}
    return Case("constant_pad_nd_float_u32", arguments, grid, [("output", want, 0)])


@case
def sum_of_long(rng):
    """64-bit sums shuffle from lanes that take no part, and rely on reading 0 there."""
    x = rng.integers(-(2**40), 2**40, (3, 333))
    params = {"p": 0.0, "reduction_size": 333, "ndim": 2, "input_sizes": [3, 333], "input_strides": [333, 1]}
    params |= {"output_sizes": [3, 1], "output_strides": [1, 1]}
    arguments = {"input": x, "output": np.zeros(3, np.int64), "params": params}
    grid = {"groups": (3, 1, 1), "group": (256, 1, 1)}
    return Case("sum_reduction_long_long", arguments, grid, [("output", x.sum(1), 0)])


@case
def decoupled_cumsum(rng):
    """Tiles that wait for the tiles before them, over all cores."""
    x, tiles = normal(rng, 100_003), 7
    unset = np.full(tiles + 32, 0xFFFFFFFF, np.uint32)
    arguments = {"in": x, "out": np.zeros_like(x), "tile_counter": np.zeros(1, np.uint32)}
    arguments |= {"aggregates": unset.copy(), "inclusive": unset.copy(), "axis_size": len(x), "num_tiles": tiles}
    grid = {"groups": (tiles, 1, 1), "group": (1024, 1, 1)}
    return Case("cumsum_contig_decoupled_float", arguments, grid, [("out", np.cumsum(x, dtype=np.float64), 3e-6)])


@case
def sort(rng):
    x = normal(rng, 4, 200)
    x[0, 7], x[2, 3] = np.nan, np.inf
    arguments = {"inp": x, "out_vals": np.zeros_like(x), "out_idx": np.zeros(x.shape, np.int64), "size": 200}
    arguments |= {"strides": [1, 200], "desc": False}
    want = [("out_vals", np.sort(x), 0), ("out_idx", np.argsort(x, kind="stable"), 0)]
    return Case("sort_block_float_tptg64", arguments, {"groups": (1, 4, 1), "group": (64, 1, 1)}, want)


@case
def layer_norm(rng):
    x, weight, bias = normal(rng, 3, 513) * 3 + 2, normal(rng, 513), normal(rng, 513)
    wide = x.astype(np.float64)
    mean, deviation = wide.mean(1), np.sqrt(wide.var(1) + 1e-5)
    arguments = {"input": x, "output": np.zeros_like(x), "weight": weight, "bias": bias, "axis_size": 513}
    arguments |= {"meanOut": np.zeros(3, np.float32), "rstdTensor": np.zeros(3, np.float32), "epsilon": 1e-5}
    want = (wide - mean[:, None]) / deviation[:, None] * weight + bias
    grid = {"groups": (3, 1, 1), "group": (160, 1, 1)}
    return Case("layer_norm_single_row_i32_float", arguments, grid, [("output", want, 1e-6), ("meanOut", mean, 1e-6)])


@case
def accumulate_halves_at_an_odd_offset(rng):
    """Atomics on 16-bit values share 32-bit words: at both ends of the view with bytes that are none of its own."""
    rows, columns, count = 11, 5, 400
    output = np.zeros(rows * columns + 2, np.float16)[1:-1].reshape(rows, columns)
    index, values = rng.integers(-rows, rows, count), rng.integers(-3, 4, (count, columns)).astype(np.float16)
    want = np.zeros((rows, columns))
    np.add.at(want, index, values)
    strides = {"output_strides": [2, 0], "input_strides": [2, 2 * columns], "indices_strides": [0, 8]}
    arguments = {"output": output, "input": values, "indices": [index], "sizes": np.array([columns, count])}
    arguments |= {name: np.array(value) for name, value in strides.items()}
    arguments |= {"index_sizes": np.array([rows]), "index_strides": np.array([2 * columns])}
    arguments |= {"ndim_nindices_numel": [2, 1, count * columns, 0], "error_buffer": np.zeros(15364, np.uint8)}
    return Case("index_put_accumulate_half", arguments, line(count * columns), [("output", want, 0)])


def grouped(x: np.ndarray, weights: np.ndarray, ends: np.ndarray) -> np.ndarray:
    parts = np.split(x.astype(np.float64), ends[:-1])
    return np.concatenate([part @ weight for part, weight in zip(parts, weights.astype(np.float64), strict=True)])


@case
def grouped_matmul_of_few_rows(rng):
    x, weights = normal(rng, 5, 512, dtype=BFLOAT), normal(rng, 6, 35, 512, dtype=BFLOAT)
    ends = np.array([0, 2, 2, 3, 5, 5], np.int32)
    params = {"m": 5, "n": 35, "k": 512, "groups": 6, "a_stride_m": 512, "a_stride_k": 1, "b_stride_k": 1}
    params |= {"b_stride_n": 512, "out_stride_m": 35, "out_stride_n": 1, "batch_stride": 35 * 512}
    arguments = {"mat_a": x, "mat_b": weights, "offsets": ends, "output": np.zeros((5, 35), BFLOAT), "params": params}
    want = grouped(x, weights.transpose(0, 2, 1), ends)
    grid = {"groups": (3, 5, 1), "group": (512, 1, 1)}
    return Case("grouped_mm_few_rows_bfloat_u32", arguments, grid, [("output", want, 4e-3)])


@case
def grouped_matmul_with_simdgroup_matrices(rng):
    x, weights, ends = normal(rng, 50, 72), normal(rng, 4, 72, 100), np.array([17, 17, 40, 50], np.int32)
    params = {"m": 50, "n": 100, "k": 72, "groups": 4, "a_stride_m": 72, "a_stride_k": 1, "b_stride_k": 100}
    params |= {"b_stride_n": 1, "out_stride_m": 100, "out_stride_n": 1, "batch_stride": 7200}
    output = np.zeros((50, 100), np.float32)
    arguments = {"mat_a": x, "mat_b": weights, "offsets": ends, "output": output, "params": params}
    grid = {"groups": (2, 8, 1), "group": (64, 1, 1)}
    return Case("grouped_mm_rows_float_bm16_u32", arguments, grid, [("output", grouped(x, weights, ends), 1e-6)])


@case
def scaled_matmul_of_fp8(rng):
    m, n, k = 3, 48, 160
    a, b = normal(rng, m, k, dtype=FP8), normal(rng, n, k, dtype=FP8)
    scale_a, scale_b, bias = np.abs(normal(rng, m)), np.abs(normal(rng, n)), normal(rng, n, dtype=np.float16)
    params = {"m": m, "n": n, "k": k, "a_row_stride": k, "a_col_stride": 1, "b_row_stride": 1, "b_col_stride": k}
    params |= {"out_row_stride": n, "out_col_stride": 1, "rowwise": True, "has_bias": True, "bias_bfloat16": False}
    arguments = {"a": a, "b": b, "out": np.zeros((m, n), np.float16), "scale_a": scale_a, "scale_b": scale_b}
    arguments |= {"bias": bias, "p": params}
    want = a.astype(np.float64) @ b.T.astype(np.float64) * scale_a[:, None] * scale_b + bias
    grid = {"groups": (n // 4, 1, 1), "group": (128, 1, 1)}
    return Case("scaled_mm_few_rows_3_half", arguments, grid, [("out", want, 1e-3)])


@case
def causal_attention(rng):
    heads, queries, keys, width = 2, 3, 37, 64
    q, k, v = (normal(rng, heads, count, width) for count in (queries, keys, keys))
    scores = q.astype(np.float64) @ k.transpose(0, 2, 1) / 8
    scores[:, np.arange(queries)[:, None] < np.arange(keys)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v
    arguments = {"queries": q, "keys": k, "values": v, "out": np.zeros_like(q), "gqa_factor": 1, "N": keys}
    arguments |= {"qkv_head_strides": [queries * width, keys * width, keys * width], "scale": 0.125}
    arguments |= {"qkv_seq_strides": [width] * 3, "mask": np.zeros(1, np.float32), "mask_strides": [0] * 4}
    arguments |= {"qkv_batch_strides_heads": [0, 0, 0, heads]}
    grid = {"groups": (heads, queries, 1), "group": (1024, 1, 1)}
    return Case("sdpa_vector_float_64_64_masknone_causal", arguments, grid, [("out", want, 1e-6)])


@case
def lu_panel(rng):
    """Partial pivoting in complex arithmetic; pivots count from 1 and go by |re| + |im|."""
    m, n = 50, 20
    a = normal(rng, m, n) + 1j * normal(rng, m, n)
    lu, pivots = a.astype(np.complex128), np.zeros(n, np.int32)
    for j in range(n):
        pivot = j + int(np.argmax(np.abs(lu[j:, j].real) + np.abs(lu[j:, j].imag)))
        pivots[j] = pivot + 1
        lu[[j, pivot]] = lu[[pivot, j]]
        lu[j + 1 :, j] /= lu[j, j]
        lu[j + 1 :, j + 1 :] -= np.outer(lu[j + 1 :, j], lu[j, j + 1 :])
    arguments = {"A": a.astype(np.complex64), "pivots": np.zeros(n, np.int32), "info": np.zeros(1, np.int32)}
    arguments |= {"dims": [m, n], "params": [0, n, 0, 0]}
    want = [("A", lu, 1e-5), ("pivots", pivots, 0)]
    return Case("factorPanelLU_float2_1_32", arguments, {"groups": (1, 1, 1), "group": (128, 1, 1)}, want)


@case
def triangular_solve_with_threadgroup_memory(rng):
    """Threadgroup memory as arguments, of which every worker needs its own."""
    n, k, batch = 32, 2, 100
    a, b = np.tril(normal(rng, batch, n, n) / n) + 4 * np.eye(n, dtype=np.float32), normal(rng, batch, n, k)
    params = {"nbatch": batch, "n": n, "k": k, **dict.fromkeys(["upper", "transpose", "conj", "unit"], False)}
    params |= {"b_col_major": False, "x_col_major": False}
    arguments = {"A": a, "B": b, "X": np.zeros_like(b), "p": params, "xs": 4 * n, "red": 16}
    want = np.linalg.solve(a.astype(np.float64), b.astype(np.float64))
    grid = {"groups": (batch * k, 1, 1), "group": (32, 1, 1)}
    return Case("triangular_solve_float", arguments, grid, [("X", want, 1e-6)])


@case
def eigenvalues(rng):
    """Lanes that rotate a matrix whose elements all of them have just read: right only in lockstep."""
    n = 9
    half = normal(rng, 2, n, n)
    a = half + half.transpose(0, 2, 1)
    params = {"n": n, "max_sweeps": 80, "tol": 1e-6, "compute_v": True, "upper": False}
    arguments = {"A": a.copy(), "W": np.zeros((2, n), np.float32), "Q": np.zeros_like(a), "params": params}
    arguments |= {"info": np.zeros(2, np.int32), "Atg": 4 * n * n, "Qtg": 4 * n * n}
    want = [("W", np.linalg.eigvalsh(a.astype(np.float64)), 2e-6), ("info", np.zeros(2), 0)]
    return Case("eigh_jacobi_float", arguments, {"groups": (2, 1, 1), "group": (160, 1, 1)}, want)


@case
def convolution_with_simdgroup_matrices(rng):
    x, weights, bias = normal(rng, 4, 6, 7, 8), normal(rng, 3, 3, 3, 8, 16), normal(rng, 16)
    padded = np.pad(x.astype(np.float64), ((1, 1), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3, 3), (0, 1, 2))
    want = np.einsum("dhwcxyz,xyzco->dhwo", windows, weights) + bias
    plane = {"N": 1, "C_in": 8, "C_out": 16, "H": 6, "W": 7, "outH": 6, "outW": 7, "kH": 3, "kW": 3, "sH": 1, "sW": 1}
    plane |= {"padH": 1, "padW": 1, "dH": 1, "dW": 1, "C_in_per_group": 8, "C_out_per_group": 16, "has_bias": True}
    params = {"conv2d": plane, "D": 4, "outD": 4, "kD": 3, "sD": 1, "padD": 1, "dD": 1, "out_ncdhw": False}
    arguments = {"act": x, "wts": weights, "dst": np.zeros((4, 6, 7, 16), np.float32), "gP": params, "bias": bias}
    grid = {"groups": (1, 1, 4), "group": (128, 1, 1)}
    return Case("conv3d_simd_float_64_64_2_2", arguments, grid, [("dst", want, 1e-6)])


@case
def histogram(rng):
    x, edges = np.abs(normal(rng, 5000)), np.linspace(0, 3, 11, dtype=np.float32)
    arguments = {"input": x, "counts": np.zeros(10, np.uint32), "input_stride": 1, "num_elements": 5000, "num_bins": 10}
    arguments |= {"bin_edges": edges, "total_threads": 1024, "local_counts": 40}
    want = np.histogram(x, edges)[0]
    return Case("histc_atomic_threadgroup_float", arguments, line(1024), [("counts", want, 0)])


@pytest.fixture(scope="module")
def library() -> Library:
    return open_build("2.15.0").library()


@pytest.mark.parametrize("mode", [JUDGING, FAST], ids=lambda mode: mode.name)
@pytest.mark.parametrize("build", CASES, ids=lambda function: function.__name__)
def test_kernel_agrees_with_numpy(library, build, mode):
    made = build(np.random.default_rng(7))
    report = Gpu(library, mode).kernel(made.kernel).launch(made.arguments, **made.grid)
    assert report.violations == ()
    for name, want, tolerance in made.want:
        got = made.arguments[name]
        if not tolerance:
            np.testing.assert_array_equal(got, np.asarray(want).astype(got.dtype))
            continue
        wide = np.complex128 if np.iscomplexobj(got) else np.float64
        error = np.abs(got.astype(wide) - want).max() / np.abs(want).max()
        assert error <= tolerance, f"{name} is off by {error:.2g} of its largest value"


def test_random_numbers_are_uniform_and_the_same_in_both_modes(library):
    """Four a thread, from a counter-based generator in integer arithmetic."""
    outputs = []
    for mode in (JUDGING, FAST):
        output = np.zeros(1000, np.float32)
        arguments = {"output": output, "params": [1.0, 3.0], "seed_base_offset": [12345678901, 3], "numel": 1000}
        Gpu(library, mode).kernel("uniform_dist_float").launch(arguments, **line(250))
        outputs.append(output)
    np.testing.assert_array_equal(*outputs)
    assert 1 <= outputs[0].min() < 1.02
    assert 2.98 < outputs[0].max() < 3
    assert abs(outputs[0].mean() - 2) < 0.06
