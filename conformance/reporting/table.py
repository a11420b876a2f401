"""The table at the end of a run: what is not fine line by line, what passed in groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from conformance.record import BAD, Record

_GROUPS = 30
"""Lines of passing ops up to which each op has one; beyond, each family has."""

_HEADERS = ("op", "dtype", "property", "cases", "verdict", "worst/bound", "ulp", "at input")


def table(records: Iterable[Record]) -> str:
    """Lay the records of properties out for a terminal; records of single failures are left out."""
    from tabulate import tabulate

    properties = [record for record in records if not record.is_failure]
    passing = [record for record in properties if record.verdict == "pass"]
    rows = _grouped(passing) + [_row(record) for record in properties if record.verdict != "pass"]
    return tabulate(rows, headers=_HEADERS, disable_numparse=True, colalign=_ALIGNMENT if rows else None)


_ALIGNMENT = ("left", "left", "left", "right", "left", "right", "right", "left")


def summary(records: Sequence[Record]) -> str:
    """Count the verdicts on properties in one line, gravest first."""
    counts = Counter(record.verdict for record in records if not record.is_failure)
    failures = Counter(record.failure_class for record in records if record.is_failure)
    order = [*BAD, "fixed", "known", "unsupported", "pass"]
    parts = [f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict]]
    classes = [f"{count} {failure_class}" for failure_class, count in sorted(failures.items(), key=str)]
    cases = sum(record.cases for record in records if not record.is_failure)
    shown = f"; failures: {', '.join(classes)}" if classes else ""
    return f"{sum(counts.values())} properties, {cases} cases: {', '.join(parts) or 'nothing ran'}{shown}"


def _grouped(passing: Sequence[Record]) -> list[tuple[str, ...]]:
    """A line for each op if there are few, else for each family, with the largest error of the group."""
    by_op = {record.op for record in passing}
    groups: dict[str, list[Record]] = {}
    for record in passing:
        groups.setdefault(record.op if len(by_op) <= _GROUPS else record.family, []).append(record)
    rows: list[tuple[str, ...]] = []
    for name, group in groups.items():
        ops = len({record.op for record in group})
        worst = max(group, key=_error)
        *_, units, in_ulp, at_input = _row(worst)
        if ops > 1 or name not in by_op:
            name, at_input = f"{name} ({ops} ops)", f"{worst.op} {worst.dtype} {at_input}"
        elif len(group) > 1:
            at_input = f"{worst.dtype} {at_input}"
        cases = str(sum(record.cases for record in group))
        rows.append((name, _joined(r.dtype for r in group), _joined(r.property for r in group), cases, "pass",
                     units, in_ulp, _short(at_input)))  # fmt: skip
    return rows


def _row(record: Record) -> tuple[str, ...]:
    verdict = f"{record.verdict} ({record.failure_class})" if record.failure_class else record.verdict
    head = (record.op, record.dtype, record.property, str(record.cases), verdict)
    if record.worst is None:
        return (*head, "-", "-", _short(record.message or "-"))
    return (*head, _number(record.worst.bound_units), _number(record.worst.ulp), _short(record.worst.input))


def _error(record: Record) -> float:
    return record.worst.bound_units if record.worst else -1.0


def _joined(names: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(names))


def _number(number: float) -> str:
    return f"{number:.3g}"


def _short(text: str, width: int = 44) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
