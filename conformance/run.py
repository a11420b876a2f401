"""``conformance run``: plan, run, write, show."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conformance.devices import default_name
from conformance.effort import EXAMPLES
from conformance.engine import Effort, Unit
from conformance.engine.measure import MEASURE
from conformance.errors import UsageError
from conformance.jobs import Bench, Settings, run_units
from conformance.plan import Selection, plan, unused
from conformance.provenance import provenance
from conformance.record import BAD, Record
from conformance.reporting import Progress, RunFiles, summary, table
from conformance.script import Function

INTERRUPTED = 130


@dataclass(frozen=True)
class Options:
    """What ``conformance run`` is asked to do; a device of None is the default one, jobs of None all cores."""

    selection: Selection = Selection()  # noqa: RUF009 - frozen, so sharing it is safe
    device: str | None = None
    build: str | None = None
    examples: int = EXAMPLES
    seed: int = 0
    jobs: int | None = None
    use_known: bool = True
    out: Path | None = None
    quiet: bool = False
    measure: bool = False


def execute(options: Options) -> int:
    """Run, write the files, print the table; gives the exit code.

    Raises
    ------
    UsageError
        If an option is wrong.
    conformance.devices.base.Unavailable
        If the device or the build cannot be had.
    """
    for name, value in (("--examples", options.examples), ("--jobs", options.jobs)):
        if value is not None and value < 1:
            raise UsageError.of(name, value, "integers from 1")
    settings = Settings(
        options.device or default_name(), options.build, Effort(options.examples, options.seed), options.use_known
    )
    bench = Bench(settings)
    ops = list(bench.ops.values())
    units = plan(ops, options.selection, bench.known, measure=options.measure)
    out = options.out or Path("runs") / re.sub(r"[^\w.+-]", "_", f"{bench.build}-{bench.device.name}")
    progress = Progress(len(units), quiet=options.quiet)
    functions = {op.name: Function(op.function, op.listed, op.out) for op in ops}
    complete = False
    with RunFiles(
        out, functions, device=settings.device, build=bench.pinned_build, torch_device=bench.device.torch_device
    ) as files:

        def sink(unit: Unit, records: list[Record]) -> None:
            files.write(records)
            progress.unit(unit.name, records)

        try:
            judging = [unit for unit in units if unit.property != MEASURE]
            run_units(judging, bench, options.jobs or os.cpu_count() or 1, sink)
            run_units(units[len(judging) :], bench, 1, sink)  # one at a time: others would take its time and memory
            complete = True
        except KeyboardInterrupt:
            print(f"interrupted after {len(files.records)} records, which are kept", file=sys.stderr)
        finally:
            progress.close()
            files.report(provenance(bench.device), _settings(options, settings), complete=complete)
    _show(files.records, unused(bench.known, ops), out)
    return _exit_code(files.records) if complete else INTERRUPTED


def _settings(options: Options, settings: Settings) -> dict[str, Any]:
    """The options as the report states them: a build that is a path by its last part only."""
    return {
        "device": settings.device,
        "build": settings.build and Path(settings.build).name,
        "selection": asdict(options.selection),
        "examples": options.examples,
        "seed": options.seed,
        "known": options.use_known,
    }


def _exit_code(records: Sequence[Record]) -> int:
    return int(any(record.verdict in BAD for record in records))


def _show(records: Sequence[Record], unused_entries: Sequence[str], out: Path) -> None:
    """Print the table, then failures, then what became of the known ones, then the count."""
    print(table(records))
    for record in records:
        if record.is_failure:
            print(f"\n{record.verdict.upper()} ({record.failure_class}) {record.name}\n  {record.message}")
            print(f"  {out / (record.script or '')}")
        elif record.verdict == "error":
            print(f"\nERROR of the suite {record.name}\n  {record.message}")
    for record in records:
        if record.verdict == "fixed":
            print(f"\nFIXED {record.op} {record.dtype}: {record.message}\n  Remove the entry, or narrow its build.")
    for sentence in unused_entries:
        print(f"\nUNUSED {sentence}")
    print(f"\n{summary(records)}\nrecords and report: {out}")
