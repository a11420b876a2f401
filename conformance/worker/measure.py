"""Measure a call on a device: its time, its memory and, on an emulated device, its work. Nothing here judges.

The three are measured in runs of their own, so that none disturbs another, and each says how it was obtained.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from conformance.devices.base import Counted, Peaks
from conformance.worker.executor import placed
from conformance.worker.invoke import differentiate, invoke

if TYPE_CHECKING:
    import torch

    from conformance.devices.base import Device
    from conformance.worker.protocol import Call

Direction = Literal["forward", "backward"]

BLOCKS = 15
"""Blocks of calls, of each of which the mean is one sample."""
_FEWEST_BLOCKS = 5
_BLOCK_SECONDS = 2e-3
"""A block lasts at least as long, so that reading the clock and synchronising cost little of it."""
_MOST_SECONDS = 0.3
"""Blocks are no longer begun once all of them have taken so long."""
_MOST_CALLS = 1000
_WARMING = 3
_POLLING_SECONDS = 5e-4


@dataclass(frozen=True)
class Timing:
    """Seconds a call, after synchronising: the median and the interquartile range of ``blocks`` means of ``calls``."""

    median: float
    iqr: float
    blocks: int
    calls: int


@dataclass(frozen=True)
class Memory:
    """Peaks in bytes beyond what was held before the operands were made; None where the device does not tell.

    ``current`` is in tensors, ``reserved`` in the allocator, ``driver`` in the GPU's driver, ``resident`` the process's
    resident set. Those named in ``counters`` come from the device's own peak counters, the others from polling at
    ``sampling_hz``: a peak between two samples is missed.
    """

    current: int | None
    reserved: int | None
    driver: int | None
    resident: int | None
    counters: tuple[str, ...]
    sampling_hz: float


class _Prepared:
    """A call with its operands on the device, ready to be made again and again."""

    def __init__(self, call: Call, device: Device, direction: Direction) -> None:
        self._call = call
        self._device = device
        self._direction = direction
        self._views = placed(call.tensors, device.torch_device)
        self._incoming = placed(call.gradients, device.torch_device)
        self._leaves: list[torch.Tensor] = []
        self._results: Sequence[torch.Tensor] = ()
        if direction == "backward":
            self._leaves = [self._views[position].requires_grad_() for position in call.requires_grad]
            self._results = invoke(call, self._views)

    def once(self) -> object:
        """Make the call, or go back through it; gives what must live as long as a caller would keep it."""
        import torch

        if self._direction == "backward":
            return differentiate(self._results, self._leaves, self._incoming, retain=True)
        with torch.no_grad():
            return invoke(self._call, self._views)


def timing(call: Call, device: Device, direction: Direction) -> Timing:
    """Time a call, or its backward; raises whatever the call raises."""
    with device.session():
        prepared = _Prepared(call, device, direction)
        for _ in range(_WARMING):
            prepared.once()
        calls = _calls_a_block(prepared.once, device)
        samples: list[float] = []
        began = time.perf_counter()
        while len(samples) < BLOCKS:
            if len(samples) >= _FEWEST_BLOCKS and time.perf_counter() - began > _MOST_SECONDS:
                break
            samples.append(_block(prepared.once, calls, device) / calls)
    low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
    return Timing(median, high - low, len(samples), calls)


def _calls_a_block(once: Callable[[], object], device: Device) -> int:
    calls = 1
    while (seconds := _block(once, calls, device)) < _BLOCK_SECONDS and calls < _MOST_CALLS:
        calls = min(_MOST_CALLS, max(2 * calls, int(calls * _BLOCK_SECONDS / max(seconds, 1e-9))))
    return calls


def _block(once: Callable[[], object], calls: int, device: Device) -> float:
    device.synchronize()
    started = time.perf_counter()
    for _ in range(calls):
        once()
    device.synchronize()
    return time.perf_counter() - started


def memory(call: Call, device: Device, direction: Direction) -> Memory:
    """Measure the memory of one call, or of one with its backward; raises whatever the call raises."""
    with device.session():
        device.synchronize()
        counters = device if isinstance(device, Peaks) else None
        if counters is not None:
            counters.reset_peaks()
        before = _held(device)
        with _Polling(device) as polling:
            prepared = _Prepared(call, device, direction)
            kept = prepared.once()
            device.synchronize()
            polling.look()
            exact = counters.peaks() if counters is not None else {}
            del kept
    peaks = {**polling.peaks, **{name: value for name, value in exact.items() if value is not None}}

    def beyond(name: str) -> int | None:
        first, most = before[name], peaks[name]
        return None if first is None or most is None else max(0, most - first)

    counted = tuple(name for name, value in exact.items() if value is not None)
    figures = {name: beyond(name) for name in ("current", "reserved", "driver", "resident")}
    return Memory(**figures, counters=counted, sampling_hz=polling.rate)


def _held(device: Device) -> dict[str, int | None]:
    import psutil

    return {**device.memory(), "resident": psutil.Process().memory_info().rss}


class _Polling:
    """A thread that looks at the memory until it is told to stop, and keeps the most that it saw."""

    def __init__(self, device: Device) -> None:
        self.peaks = _held(device)
        self.rate = 0.0
        self._device = device
        self._looks = 0
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> _Polling:
        self._began = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()
        self.rate = self._looks / max(time.perf_counter() - self._began, 1e-9)

    def look(self) -> None:
        """Take one sample now."""
        held = _held(self._device)
        with self._lock:
            self._looks += 1
            for name, value in held.items():
                most = self.peaks[name]
                self.peaks[name] = value if most is None or (value is not None and value > most) else most

    def _poll(self) -> None:
        while not self._stop.wait(_POLLING_SECONDS):
            self.look()


def work(call: Call, device: Device, direction: Direction) -> dict[str, int] | None:
    """Count the work of one call, or of its backward; None on a device that does not count. Raises as the call does."""
    if not isinstance(device, Counted):
        return None
    with device.counting(), device.session():
        prepared = _Prepared(call, device, direction)
        device.work()
        prepared.once()
        return device.work()
