"""Run units in this process or spread over several; the records are the same and come in the same order."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
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

    A unit that ends the process it runs in is an ``error``; nothing else is lost. On KeyboardInterrupt, ``sink`` is
    given all units that are done, and the interrupt goes on.
    """
    if jobs == 1 or len(units) == 1:
        for unit in units:
            sink(unit, bench.run(unit))
        return
    spread = _Spread(units, bench, sink)
    try:
        while spread.left:
            for place in spread.run(spread.left, jobs):
                # It was running when a process died; the one that ended it will do so again.
                if spread.run([place], 1):
                    spread.deliver(place, spread.died(place))
    except KeyboardInterrupt:
        spread.flush()
        raise


class _Spread:
    """Units spread over processes, whose records are delivered in the order of the units."""

    def __init__(self, units: Sequence[Unit], bench: Bench, sink: Sink) -> None:
        self.left = list(range(len(units)))
        """Places of the units without records, in order."""
        self._units = units
        self._bench = bench
        self._sink = sink
        self._waiting: dict[int, list[Record]] = {}

    def run(self, places: Sequence[int], jobs: int) -> list[int]:
        """Run the units at ``places`` in processes of their own; give those that were running when one of these died.

        The others that have no records yet are still left.
        """
        # Spawned, not forked: a forked child inherits threads of torch and of the device in an undefined state.
        context = multiprocessing.get_context("spawn")
        workers = min(jobs, len(places))
        pool = ProcessPoolExecutor(workers, context, _start, (self._bench.settings,))
        queue = deque(places)
        running: dict[Future[list[Record]], int] = {}
        try:
            while queue or running:
                # No more than there are processes, so that it is known which units are in them.
                while queue and len(running) < workers:
                    place = queue.popleft()
                    running[pool.submit(_run, self._units[place])] = place
                wait(running, return_when=FIRST_COMPLETED)
                for future in [future for future in running if future.done()]:
                    self.deliver(running[future], future.result())
                    del running[future]
        except BrokenProcessPool:
            pass  # what is left of ``running`` tells
        finally:
            self._deliver_done(running)
            pool.shutdown(wait=False, cancel_futures=True)
        return [*running.values()]

    def _deliver_done(self, running: dict[Future[list[Record]], int]) -> None:
        for future, place in list(running.items()):
            if future.done() and not future.cancelled() and future.exception() is None:
                self.deliver(place, future.result())
                del running[future]

    def deliver(self, place: int, records: list[Record]) -> None:
        """Take the records of a unit, and pass on what is complete up to the first unit that is not."""
        self.left.remove(place)
        self._waiting[place] = records
        first = self.left[0] if self.left else len(self._units)
        for done in sorted(self._waiting):
            if done < first:
                self._pass_on(done)

    def flush(self) -> None:
        """Pass on everything that there is, in order."""
        for place in sorted(self._waiting):
            self._pass_on(place)

    def _pass_on(self, place: int) -> None:
        self._sink(self._units[place], self._waiting.pop(place))

    def died(self, place: int) -> list[Record]:
        """The record of a unit that ended its process."""
        unit, bench = self._units[place], self._bench
        return [
            Record(
                device=bench.device.name,
                build=bench.build,
                verdict="error",
                message="the process of --jobs that ran this unit died, and died again with this unit alone",
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
