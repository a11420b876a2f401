"""What a dispatched op costs on device ``air`` beyond its kernels: torch's dispatch, views, the host's rules.

Each op is timed on tiny tensors, and in turn with it the bare launches that it makes, recorded once and repeated on
copies of their arguments. Figures are microseconds a call: the median of blocks and, after it, their interquartile
range. The overhead is the difference of two neighbouring blocks, so that a noisy machine is noisy for both. Run with

    OMP_WAIT_POLICY=passive python benchmarks/dispatch.py
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import metal_ops.backend
from metal_ops.air.execution import Kernel, Report

ELEMENTS = 16
CALLS = 200
BLOCKS = 25

Action = Callable[[], Any]


def workloads() -> dict[str, Action]:
    """The ops, on tensors that are on the device already."""
    on_host = torch.linspace(-1, 1, ELEMENTS)
    x, y = on_host.to("air"), on_host.to("air")
    across = torch.linspace(-1, 1, 4 * ELEMENTS).to("air").reshape(4, ELEMENTS)[:, ::4]
    return {
        "add": lambda: torch.add(x, y),
        "add scalar": lambda: torch.add(x, 1.5),
        "add strided": lambda: torch.add(across, across),
        "exp": lambda: torch.exp(x),
        "pad": lambda: torch.nn.functional.pad(x, (1, 1)),
        "sum": lambda: torch.sum(x),
        "copy to device": lambda: on_host.to("air"),
        "copy to host": lambda: x.cpu(),
        "empty": lambda: torch.empty(ELEMENTS, device="air"),
        "view": lambda: x.reshape(4, -1).t(),
    }


def launches(action: Action) -> list[Action]:
    """The launches that an op makes, each of them to be repeated on memory of its own."""
    recorded: list[Action] = []
    launch = Kernel.launch

    def recording(kernel: Kernel, arguments: Any, **grid: Any) -> Report:
        own = copy.deepcopy(arguments)
        recorded.append(lambda: launch(kernel, own, **grid))
        return launch(kernel, arguments, **grid)

    with patch.object(Kernel, "launch", recording):
        action()
    return recorded


def microseconds(actions: list[Action]) -> float:
    """Time of one round of all actions, over a block."""
    started = time.perf_counter()
    for _ in range(CALLS):
        for action in actions:
            action()
    return (time.perf_counter() - started) / CALLS * 1e6


def spread(times: list[float]) -> str:
    """Median and interquartile range."""
    first, median, third = np.percentile(times, [25, 50, 75])
    return f"{median:8.1f} {third - first:6.1f}"


def measure(action: Action) -> tuple[int, list[float], list[float]]:
    """How many launches an op makes, and the times of its blocks and of those of its launches, taken in turn."""
    bare = launches(action)
    times = [(microseconds([action]), microseconds(bare)) for _ in range(BLOCKS + 1)][1:]
    return len(bare), [op for op, _ in times], [kernel for _, kernel in times]


def main() -> None:
    """Print a line an op."""
    metal_ops.backend.register()
    print(f"torch {torch.__version__}, {ELEMENTS} elements, {BLOCKS} blocks of {CALLS} calls; microseconds a call")
    print(f"{'op':16} {'launches':>8} {'call':>8} {'IQR':>6} {'kernels':>8} {'IQR':>6} {'overhead':>8} {'IQR':>6}")
    for name, action in workloads().items():
        count, calls, kernels = measure(action)
        overheads = [call - kernel for call, kernel in zip(calls, kernels, strict=True)]
        print(f"{name:16} {count:8} {spread(calls)} {spread(kernels)} {spread(overheads)}", flush=True)


if __name__ == "__main__":
    main()
