"""Emulated kernels against torch on the CPU: elementwise functions on 2**20 floats, and softmax.

Both sides alternate in one process, so that a noisy machine is noisy for both; figures are medians. Run with

    OMP_WAIT_POLICY=passive python benchmarks/elementwise.py

(torch's OpenMP threads otherwise spin and slow the other side). Inputs are positive. The fast mode has no checks and
the platform's elementary functions; the judging mode checks every access and rounds elementary functions correctly.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from metal_ops.air import Gpu
from metal_ops.air.program import FAST, JUDGING
from metal_ops.builds import open_build

ELEMENTS = 1 << 20
ROUNDS = 15
TORCH = {
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "neg": torch.neg,
    "tanh": torch.tanh,
    "gelu": torch.nn.functional.gelu,
}


def alternate(*contenders: Callable[[], Any]) -> list[float]:
    """Median seconds of each contender, taken in turn."""
    times: list[list[float]] = [[] for _ in contenders]
    for turn in range(ROUNDS + 2):
        for contender, taken in zip(contenders, times, strict=True):
            started = time.perf_counter()
            contender()
            if turn >= 2:
                taken.append(time.perf_counter() - started)
    return [statistics.median(taken) for taken in times]


def elementwise(gpu: Gpu, name: str, source: np.ndarray[Any, Any]) -> Callable[[], Any]:
    """The kernel that the host launches for a large contiguous tensor: four elements a thread."""
    kernel = gpu.kernel(f"{name}_dense_float_float")
    arguments = {"input": source, "output": np.empty_like(source), "numel": len(source)}
    return lambda: kernel.launch(arguments, threads=(len(source) // 4, 1, 1), group=(1024, 1, 1))


def softmax(gpu: Gpu, source: np.ndarray[Any, Any]) -> Callable[[], Any]:
    """The launches of ``torch.softmax(x, -1)`` through the suite's own launch code."""
    from conformance.dtypes import dtype
    from metal_ops.launch._launcher import Launcher
    from metal_ops.launch._views import View, empty, row_major
    from metal_ops.launch.softmax import LAUNCHES

    launcher = Launcher(gpu)
    view = View(dtype("float32"), source.shape, row_major(source.shape), 0, source.view(np.uint8).reshape(-1))
    out = empty(view.dtype, view.shape)
    return lambda: LAUNCHES["_softmax.out"](launcher, view, -1, False, out=out)


def main() -> None:
    """Print one line a workload: medians in ms and ratios to torch."""
    library = open_build("2.15.0").library()
    fast, judging = Gpu(library, FAST), Gpu(library, JUDGING)
    policy = os.environ.get("OMP_WAIT_POLICY")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, OMP_WAIT_POLICY={policy}")
    print(f"{'workload':24} {'torch ms':>9} {'fast ms':>9} {'judging ms':>11} {'fast/torch':>11} {'judging/torch':>14}")
    values = np.abs(np.random.default_rng(1).standard_normal(ELEMENTS)).astype(np.float32) + np.float32(0.1)
    tensor = torch.from_numpy(values)
    ratios = []

    def report(label: str, *contenders: Callable[[], Any]) -> float:
        base, quick, judged = alternate(*contenders)
        figures = f"{base * 1e3:9.3f} {quick * 1e3:9.3f} {judged * 1e3:11.3f}"
        print(f"{label:24} {figures} {quick / base:11.2f} {judged / base:14.2f}", flush=True)
        return quick / base

    for name, function in TORCH.items():
        contenders = (lambda f=function: f(tensor), elementwise(fast, name, values), elementwise(judging, name, values))
        ratios.append(report(f"{name} 2^20", *contenders))
    print(f"geometric mean of fast/torch: {math.exp(statistics.fmean(map(math.log, ratios))):.2f}")
    for shape in ((1, 128256), (256, 1024)):
        logits = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
        reference = torch.from_numpy(logits)
        report(
            f"softmax {shape[0]} x {shape[1]}",
            lambda r=reference: torch.softmax(r, -1),
            softmax(fast, logits),
            softmax(judging, logits),
        )


if __name__ == "__main__":
    main()
