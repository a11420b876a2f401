"""Run units in this process or spread over several; the records are the same and come in the same order."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.devices import resolve
from conformance.engine import Checker, Effort, Unit, run_unit
from conformance.engine.tally import common_fields
from conformance.known import Entry, entries
from conformance.provenance import build_name
from conformance.record import Record
from conformance.registry import catalogue

if TYPE_CHECKING:
    from conformance.devices.base import Device
    from conformance.op import Op

Sink = Callable[[Unit, list[Record]], None]


@dataclass(frozen=True)
class Settings:
    """What a process needs to know to run units: it makes its own device."""

    device: str
    build: str | None
    effort: Effort
    use_known: bool = True


class Bench:
    """A device with the ops and the known failures of its build, ready to run units."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.device: Device = resolve(settings.device, settings.build)
        self.build = build_name(self.device)
        self.ops: dict[str, Op] = {op.name: op for op in catalogue()}
        self.known: list[Entry] = entries(self.build, self.device.name) if settings.use_known else []
        self._checker = Checker(self.device, self.known)

    @property
    def pinned_build(self) -> str | None:
        """The version to give a device for the same build again; None for devices that take no build."""
        return self.build if hasattr(self.device, "provenance") else None

    def run(self, unit: Unit) -> list[Record]:
        """Check one unit."""
        with one_thread():
            return run_unit(unit, self.ops[unit.op], self._checker, self.build, self.settings.effort)


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch sums in another order with more threads, so records would depend on the number of cores and of jobs."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def run_units(units: Sequence[Unit], bench: Bench, jobs: int, sink: Sink) -> None:
    """Run ``units`` and pass each unit's records to ``sink``, in the order of the units.

    On KeyboardInterrupt, ``sink`` is given all units that are done, and the interrupt goes on.
    """
    if jobs == 1 or len(units) == 1:
        for unit in units:
            sink(unit, bench.run(unit))
        return
    # Spawned, not forked: a forked child inherits threads of torch and of the device in an undefined state.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(units)), context, _start, (bench.settings,))
    futures = [pool.submit(_run, unit) for unit in units]
    written = 0
    try:
        for unit, future in zip(units, futures, strict=True):
            sink(unit, _records(unit, future, bench))
            written += 1
    except KeyboardInterrupt:
        for unit, future in list(zip(units, futures, strict=True))[written:]:
            if future.done() and not future.cancelled() and future.exception() is None:
                sink(unit, future.result())
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _records(unit: Unit, future: Future[list[Record]], bench: Bench) -> list[Record]:
    """Records of a unit; if its process died, one that says so."""
    try:
        return future.result()
    except BrokenProcessPool:
        message = "a process of --jobs died while this unit or another was running; --jobs 1 shows which one"
        return [
            Record(
                device=bench.device.name,
                build=bench.build,
                verdict="error",
                message=message,
                **common_fields(bench.ops[unit.op], unit.dtype, unit.property),
            )
        ]


_bench: Bench | None = None


def _start(settings: Settings) -> None:
    global _bench
    _bench = Bench(settings)


def _run(unit: Unit) -> list[Record]:
    assert _bench is not None
    return _bench.run(unit)
