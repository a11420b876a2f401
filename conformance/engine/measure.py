"""The property ``measure``: how long an op takes, what memory and, on an emulated device, what work; no judgement."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from math import prod
from typing import TYPE_CHECKING, Any

from conformance.case import differentiable, ones
from conformance.devices.base import Counted, Emulated, Unsupported
from conformance.engine.tally import Tally
from conformance.expectation import call_of, results_of
from conformance.ladder import workloads as of_ladder
from conformance.worker.measure import Direction, memory, timing, work

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.case import Case
    from conformance.devices.base import Device
    from conformance.op import Op
    from conformance.record import Record

MEASURE = "measure"
_LARGEST_EMULATED = 1 << 16
"""Elements of the largest operand that is measured on an emulated device, whose counts grow in proportion."""


def is_measured(op: Op) -> bool:
    """Whether the op has workloads to be measured with."""
    return op.workloads is not None or op.ladder is not None


def measured(op: Op, dtype: str, device: Device, build: str) -> list[Record]:
    """Give one record with what was measured of the op's workloads, forward and backward.

    Its verdict is ``pass``: it was measured. It is ``unsupported`` if the device cannot run the first workload.
    """
    tally = Tally(op, dtype, MEASURE)
    found: dict[str, list[dict[str, Any]]] = {"timing": [], "memory": [], "work": []}
    started = time.perf_counter()
    cases = 0
    for case in (op.workloads or (lambda name: of_ladder(op, name)))(dtype):
        if isinstance(device, Emulated) and max(spec.numel for spec in case.tensors) > _LARGEST_EMULATED:
            continue
        for direction, call_case in _directions(op, case):
            try:
                _measure(op, call_case, direction, device, found)
            except (Unsupported, NotImplementedError) as error:
                if not cases:
                    message = str(error).partition("\n")[0]
                    return [replace(tally.records(device.name, build)[0], verdict="unsupported", message=message)]
                continue
            cases += 1
    record = tally.records(device.name, build)[0]
    return [
        replace(
            record,
            verdict="pass",
            cases=cases,
            seconds=time.perf_counter() - started,
            timing=tuple(found["timing"]),
            memory=tuple(found["memory"]),
            work=tuple(found["work"]),
        )
    ]


def _threads() -> str:
    import torch

    count = torch.get_num_threads()
    return f"{count} host thread{'s' if count > 1 else ''}"


def _directions(op: Op, case: Case) -> Iterator[tuple[Direction, Case]]:
    yield "forward", case
    results = results_of(op, case)
    if op.gradient is None or not case.differentiable() or not results or not differentiable(results[0][0]):
        return
    gradients = tuple(ones(dtype, shape) for dtype, shape in results)
    yield "backward", replace(case, requires_grad=case.differentiable(), gradients=gradients)


def _measure(op: Op, case: Case, direction: Direction, device: Device, found: dict[str, list[dict[str, Any]]]) -> None:
    call = call_of(op, case)
    shapes = ", ".join("x".join(map(str, tensor.shape)) or "scalar" for tensor in call.tensors)
    about = {"size": max(prod(tensor.shape) for tensor in call.tensors), "shapes": shapes, "direction": direction}
    if isinstance(device, Counted):
        found["work"].append({**about, **(work(call, device, direction) or {})})
    else:
        taken = timing(call, device, direction)
        in_microseconds = {"median_us": taken.median * 1e6, "iqr_us": taken.iqr * 1e6}
        baseline = f"eager, {_threads()}"
        found["timing"].append(
            {**about, **in_microseconds, "blocks": taken.blocks, "calls": taken.calls, "baseline": baseline}
        )
    held = asdict(memory(call, device, direction))
    named = {f"{name}_bytes": held.pop(name) for name in ("current", "reserved", "driver", "resident")}
    found["memory"].append({**about, **named, "counters": list(held["counters"]), "sampling_hz": held["sampling_hz"]})
