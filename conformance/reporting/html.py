"""A report as a set of static pages: an index with the matrix, and a page an op. Nothing is fetched from anywhere."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.errors import UsageError
from conformance.record import Record, Verdict
from conformance.reporting.measured import measured, overview
from conformance.reporting.read import Run
from conformance.reporting.sections import (
    EXCUSED,
    ORDER,
    counts,
    error_of,
    errors,
    facts,
    failures,
    known,
    said,
    unsupported,
    worst,
)

if TYPE_CHECKING:
    from jinja2 import Environment

_GLYPHS: dict[Verdict, str] = {
    "pass": "✓",
    "fail": "✗",
    "crash": "!",
    "timeout": "…",
    "flaky": "≈",
    "unsupported": "–",
    "known": "◆",
    "fixed": "★",
    "error": "?",
}
"""A sign for each verdict, since not everybody tells colours apart."""

_LETTERS = {
    "forward": "F",
    "exhaustive": "E",
    "variants": "V",
    "layout": "L",
    "out": "O",
    "backward": "B",
    "witness": "W",
}
_FOLDED = 25
_LONG = 20_000
"""Characters up to which a case is spelled out on a page."""

_OURS = '<meta name="generator" content="conformance report">'


class _Group(NamedTuple):
    """The properties of a cell of the matrix that have one verdict."""

    verdict: Verdict
    letters: str
    told: str


class _Cell(NamedTuple):
    anchor: str
    groups: list[_Group]


class _Row(NamedTuple):
    op: str
    verdicts: list[Verdict]
    cells: list[_Cell]


def write_pages(run: Run, folder: Path) -> Path:
    """Write the pages into a folder, in place of those of an earlier report, and give that of the index.

    Raises
    ------
    UsageError
        If the folder cannot be written to.
    """
    environment = _environment()
    pages = _pages(run)
    written = {"index.html": _index(environment, run, pages)}
    for op, page in pages.items():
        written[page] = _op_page(environment, run, op)
    try:
        (folder / "ops").mkdir(parents=True, exist_ok=True)
        for old in (folder / "ops").glob("*.html"):
            if _OURS in old.read_text(encoding="utf-8", errors="replace")[:1000]:
                old.unlink()
        for page, text in written.items():
            (folder / page).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--html {folder}: cannot be written: {error.strerror or error}") from None
    return folder / "index.html"


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("conformance.reporting"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(glyphs=_GLYPHS, zip=zip, anchor=_anchor, folded=_FOLDED)
    return environment


def _pages(run: Run) -> dict[str, str]:
    """A page for each op, whose name no file system takes for another's."""
    pages: dict[str, str] = {}
    taken: Counter[str] = Counter()
    for op in sorted({record.op for record in run.records}):
        stem = _anchor(op)
        taken[stem.lower()] += 1
        again = taken[stem.lower()]
        pages[op] = f"ops/{stem}{f'~{again}' if again > 1 else ''}.html"
    return pages


def _anchor(text: str) -> str:
    return re.sub(r"[^\w.-]", "-", text, flags=re.ASCII)


def _index(environment: Environment, run: Run, pages: dict[str, str]) -> str:
    found = Counter(record.verdict for record in run.properties)
    dtypes = _in_order(record.dtype for record in run.properties)
    names = _in_order(record.property for record in run.properties)
    sections = [counts(run), failures(run), known(run), unsupported(run), worst(run), *overview(run.records)]
    matrix = _matrix(run, dtypes)
    return environment.get_template("index.html").render(
        run=run,
        pages=pages,
        facts=facts(run),
        tables=[section for section in sections if section.rows],
        dtypes=dtypes,
        matrix=matrix,
        families=[family for family, _ in matrix],
        letters=[
            (_letter(name), name) for name in [*_LETTERS, *(n for n in names if n not in _LETTERS)] if name in names
        ],
        counts_of={
            "ops": len({record.op for record in run.properties}),
            "properties": len(run.properties),
            "cases": sum(record.cases for record in run.properties),
            "verdicts": [(verdict, found[verdict]) for verdict in ORDER if found[verdict]],
        },
    )


def _matrix(run: Run, dtypes: Sequence[str]) -> list[tuple[str, list[_Row]]]:
    """The families, each with its ops in the order of the records."""
    by_op: dict[tuple[str, str], dict[str, list[Record]]] = {}
    for record in run.properties:
        by_op.setdefault((record.family, record.op), {}).setdefault(record.dtype, []).append(record)
    families: dict[str, list[_Row]] = {}
    for (family, op), by_dtype in by_op.items():
        found = {record.verdict for records in by_dtype.values() for record in records}
        cells = [_Cell(_anchor(dtype), _groups(by_dtype.get(dtype, []))) for dtype in dtypes]
        families.setdefault(family, []).append(_Row(op, [verdict for verdict in ORDER if verdict in found], cells))
    return sorted(families.items())


def _groups(records: Sequence[Record]) -> list[_Group]:
    groups = []
    for verdict in ORDER:
        names = _in_order(record.property for record in records if record.verdict == verdict)
        if names:
            groups.append(_Group(verdict, "".join(map(_letter, names)), f"{verdict}: {', '.join(names)}"))
    return groups


def _letter(property: str) -> str:
    return _LETTERS.get(property, property[:2])


def _in_order(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _op_page(environment: Environment, run: Run, op: str) -> str:
    mine = Run(run.folder, tuple(record for record in run.records if record.op == op), run.report, run.truncated)
    dtypes = _in_order(record.dtype for record in mine.properties)
    listed = known(mine)
    return environment.get_template("op.html").render(
        run=mine,
        op=op,
        excused=EXCUSED if any(r.verdict == "pass" and error_of(r) > 1 for r in mine.properties) else "",
        family=mine.records[0].family,
        bounds=_bounds(mine),
        failures=[_shown(mine, record) for record in mine.failures],
        properties=[(d, [_line(r) for r in mine.properties if r.dtype == d]) for d in dtypes],
        dtype_anchors={dtype: _anchor(dtype) for dtype in dtypes},
        known=listed if listed.rows else None,
        measured=measured(mine.records),
        kernels=sorted({kernel for record in mine.records for kernel in record.kernels}),
    )


def _bounds(run: Run) -> list[dict[str, Any]]:
    """What each property was judged by."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for record in run.properties:
        found.setdefault((record.bound, record.reference), {})[record.property] = None
    return [{"name": name, "reference": kind, "properties": list(names)} for (name, kind), names in found.items()]


def _shown(run: Run, record: Record) -> dict[str, Any]:
    case = json.dumps(record.case, indent=1)
    return {"record": record, "script": run.file(record.script), "case": case if len(case) <= _LONG else None}


def _line(record: Record) -> dict[str, Any]:
    units, in_ulp, at_input = errors(record)
    told = said(record) if record.message and record.property != "witness" else ", ".join(record.known)
    return {"record": record, "units": units, "ulp": in_ulp, "input": at_input, "told": told}
