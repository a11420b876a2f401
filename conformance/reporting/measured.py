"""Time, memory and work: tables of their own, there only where a record has such figures, and never folded into one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.record import Record
from conformance.reporting.sections import Table

_ABOUT = ("op", "dtype", "direction", "shapes")
_MEMORY = {
    "current_bytes": "in tensors",
    "reserved_bytes": "reserved",
    "driver_bytes": "driver",
    "resident_bytes": "resident set",
}


def measured(records: Sequence[Record]) -> list[Table]:
    """The tables of what was measured; none for a kind of figure that no record has."""
    return [table for table in (_timing(records), _memory(records), _work(records)) if table.rows]


def overview(records: Sequence[Record]) -> list[Table]:
    """The same for each op's first element type and largest workload alone: what fits a page for all ops."""
    first: dict[str, str] = {}
    for record in records:
        if record.timing or record.memory or record.work:
            first.setdefault(record.op, record.dtype)
    chosen = [
        replace(record, timing=_largest(record.timing), memory=_largest(record.memory), work=_largest(record.work))
        for record in records
        if first.get(record.op) == record.dtype
    ]
    told = " Here: the first element type and the largest workload of each op; an op's page has all."
    return [replace(table, note=table.note + told) for table in measured(chosen)]


def _largest(figures: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    size = max((figure["size"] for figure in figures), default=0)
    return tuple(figure for figure in figures if figure["size"] == size)


def _timing(records: Sequence[Record]) -> Table:
    headers = (*_ABOUT, "median µs", "IQR µs", "samples", "calls each", "baseline")
    rows = _rows(records, lambda record: record.timing, lambda figure: (
        f"{figure['median_us']:.4g}", f"{figure['iqr_us']:.2g}", str(figure["blocks"]), f"{figure['calls']:,}",
        figure["baseline"],
    ))  # fmt: skip
    note = (
        "Microseconds a call, after synchronising. Figures of other baselines, builds, devices or days do not compare."
    )
    return Table("Time", headers, rows, frozenset(headers[4:8]), note)


def _memory(records: Sequence[Record]) -> Table:
    """Only the columns that the device tells; a figure of its own peak counter is exact, others were polled."""
    told = [name for name in _MEMORY if any(f[name] is not None for record in records for f in record.memory)]
    headers = (*_ABOUT, *(_MEMORY[name] for name in told), "polled at")

    def figures(figure: Mapping[str, Any]) -> tuple[str, ...]:
        counted = {f"{name}_bytes" for name in figure["counters"]}
        polled = f"{figure['sampling_hz']:.0f} Hz" if set(told) - counted else ""
        return (*(_bytes(figure[name]) for name in told), polled)

    rows = _rows(records, lambda record: record.memory, figures)
    note = "Peaks beyond what was held before the operands were made. Polled figures miss a peak between two samples."
    counters = sorted({name for record in records for figure in record.memory for name in figure["counters"]})
    if counters:
        names = ", ".join(_MEMORY[f"{name}_bytes"] for name in counters)
        note += f" By the device's own peak counters, not polled: {names}."
    return Table("Memory", headers, rows, frozenset(headers[4:]), note)


def _work(records: Sequence[Record]) -> Table:
    names = dict.fromkeys(name for record in records for figure in record.work for name in figure)
    counted = [name for name in names if name not in ("size", *_ABOUT)]
    headers = (*_ABOUT, *(name.replace("_", " ") for name in counted))
    rows = _rows(
        records,
        lambda record: record.work,
        lambda figure: tuple(f"{figure[name]:,}" if name in figure else "" for name in counted),
    )
    note = "Exact counts of what the emulated kernels execute, equal on every machine. They are no time."
    return Table("Work", headers, rows, frozenset(headers[4:]), note)


def _rows(
    records: Sequence[Record],
    figures: Callable[[Record], Sequence[Mapping[str, Any]]],
    shown: Callable[[Mapping[str, Any]], tuple[str, ...]],
) -> list[tuple[str, ...]]:
    return [
        (record.op, record.dtype, figure["direction"], figure["shapes"], *shown(figure))
        for record in records
        for figure in figures(record)
    ]


def _bytes(count: int | None) -> str:
    """Bytes exactly, as people group digits; nothing for what the device does not tell."""
    return "" if count is None else f"{count:,}"
