"""The tables of a report, as data: the terminal, Markdown and HTML show the same ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.record import BAD, Record, Verdict
from conformance.reporting.read import Run

ORDER: tuple[Verdict, ...] = (*BAD, "fixed", "known", "unsupported", "pass")
"""The verdicts, gravest first, as all tables have them."""

EXCUSED = (
    "An error above 1 that passed is one of a gradient that follows from a result of the forward that is wrong itself, "
    "which other properties judge."
)

_WORST = 20
_ANY = "{dtype}"


@dataclass(frozen=True)
class Table:
    """A table with its heading; ``numbers`` has the headers of the columns that are numbers."""

    title: str
    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numbers: frozenset[str] = field(default_factory=frozenset)
    note: str = ""

    @property
    def alignment(self) -> list[str]:
        """``right`` for a column of numbers, ``left`` for others."""
        return ["right" if header in self.numbers else "left" for header in self.headers]


def facts(run: Run) -> list[tuple[str, str]]:
    """Where the records come from, as names and texts: all that the report states of it."""
    shown = {**_flat(run.provenance), **{f"settings: {key}": text for key, text in _flat(_settings(run)).items()}}
    return [("build", run.build), ("device", run.device)] + [
        (key, text) for key, text in shown.items() if key not in ("build version", "device")
    ]


def _settings(run: Run) -> dict[str, Any]:
    return dict(run.report.get("settings", {}))


def _flat(described: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested mappings by the names along the way; nothing for what is empty."""
    flat: dict[str, str] = {}
    for key, value in described.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{name} ")
        elif isinstance(value, list | tuple):
            flat |= {name: ", ".join(map(str, value))} if value else {}
        elif isinstance(value, bool):
            flat[name] = "yes" if value else "no"
        elif value is not None:
            flat[name] = str(value)
    return flat


def counts(run: Run) -> Table:
    """Properties by family and verdict."""
    found = Counter((record.family, record.verdict) for record in run.properties)
    used = [verdict for verdict in ORDER if any(found[family, verdict] for family, _ in found)]
    rows = []
    families = dict.fromkeys(record.family for record in run.properties)
    for family in sorted(families):
        mine = [record for record in run.properties if record.family == family]
        numbers = [found[family, verdict] for verdict in used]
        ops, cases = len({record.op for record in mine}), sum(record.cases for record in mine)
        rows.append((family, str(ops), *(str(number or "") for number in numbers), f"{cases:,}"))
    if len(rows) > 1:
        totals = [str(sum(found[family, verdict] for family in families)) for verdict in used]
        ops, cases = len({record.op for record in run.properties}), sum(record.cases for record in run.properties)
        rows.append(("all", str(ops), *totals, f"{cases:,}"))
    headers = ("family", "ops", *used, "cases")
    return Table(
        "Verdicts",
        headers,
        rows,
        frozenset(headers[1:]),
        "Properties of ops, each in one element type, and their calls.",
    )


def failures(run: Run) -> Table:
    """Each failure in a line, those of the device only first; faults of the suite too."""
    rows = []
    for record in sorted((r for r in run.failures if r.verdict in BAD), key=_gravity):
        rows.append(
            (record.failure_class or "", record.verdict, record.op, record.dtype, record.property, said(record))
        )
    for record in run.properties:
        if record.verdict == "error":
            rows.append(("", "error", record.op, record.dtype, record.property, said(record)))
    return Table("Failures", ("class", "verdict", "op", "dtype", "property", "what is wrong"), rows)


def said(record: Record) -> str:
    """A record's message in one line."""
    return " ".join((record.message or "no message").split())


def _gravity(record: Record) -> tuple[str, int, str]:
    return record.failure_class or "", ORDER.index(record.verdict), record.op


def known(run: Run) -> Table:
    """The listed failures that were met, with their evidence where a witness was run."""
    met: dict[str, list[Record]] = {}
    for record in run.properties:
        for name in record.known:
            met.setdefault(name, []).append(record)
    rows = []
    for name, records in sorted(met.items()):
        witness = next((record for record in records if record.property == "witness"), None)
        fixed = any(record.verdict == "fixed" for record in records)
        evidence = said(witness) if witness and witness.message else ""
        dtypes = " ".join(dict.fromkeys(record.dtype for record in records))
        rows.append((name, "fixed" if fixed else "known", records[0].op, dtypes, evidence))
    note = "Listed with evidence; they do not fail a run. One that is fixed is to be taken off the list."
    return Table("Known failures", ("id", "verdict", "op", "dtypes", "evidence"), rows, note=note if rows else "")


def unsupported(run: Run) -> Table:
    """What the device does not run, a line a reason: those that differ in the element type alone are one."""
    reasons: dict[str, list[Record]] = {}
    for record in run.properties:
        if record.verdict == "unsupported":
            reasons.setdefault(said(record).replace(f" {record.dtype}", f" {_ANY}"), []).append(record)
    rows = []
    for reason, records in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
        ops, dtypes = (
            " ".join(dict.fromkeys(names)) for names in zip(*((r.op, r.dtype) for r in records), strict=True)
        )
        rows.append((str(len(records)), ops, dtypes, reason.replace(_ANY, dtypes.replace(" ", "/"))))
    return Table("Unsupported", ("properties", "ops", "dtypes", "reason"), rows, frozenset({"properties"}))


def worst(run: Run, *, most: int = _WORST) -> Table:
    """The largest error of each op and element type whose properties all passed: how near to the bound it came."""
    passing: dict[tuple[str, str], Record] = {}
    for record in run.properties:
        if record.verdict == "pass" and record.worst is not None:
            best = passing.get((record.op, record.dtype))
            if best is None or error_of(record) > error_of(best):
                passing[record.op, record.dtype] = record
    rows = []
    for record in sorted(passing.values(), key=error_of, reverse=True)[:most]:
        rows.append((record.op, record.dtype, record.property, *errors(record), record.bound))
    headers = ("op", "dtype", "property", "error / bound", "ulp", "at input", "bound")
    note = "In units of the bound: 1 is the most that a right implementation may have."
    if any(error_of(record) > 1 for record in passing.values()):
        note += f" {EXCUSED}"
    return Table("Largest errors that passed", headers, rows, frozenset({"error / bound", "ulp"}), note)


def error_of(record: Record) -> float:
    """A record's largest error in units of the bound; -1 if no values were compared."""
    return record.worst.bound_units if record.worst else -1.0


def errors(record: Record) -> tuple[str, str, str]:
    """A record's largest error in units of the bound and in ulp, and the input that has it."""
    if record.worst is None:
        return "", "", ""
    part = f"{record.worst.part}: " if record.worst.part else ""
    return f"{record.worst.bound_units:.3g}", f"{record.worst.ulp:.3g}", part + record.worst.input


def tables(run: Run) -> list[Table]:
    """The tables about numbers that say something, in the order of a report."""
    made = (counts(run), failures(run), known(run), unsupported(run), worst(run))
    return [table for table in made if table.rows]


def shortened(rows: Sequence[tuple[str, ...]], width: int) -> list[tuple[str, ...]]:
    """The rows with no text longer than ``width``."""
    return [tuple(text if len(text) <= width else text[: width - 1] + "…" for text in row) for row in rows]
