"""A report as text: for a terminal, and as Markdown for a release's thread."""

from __future__ import annotations

import re

from conformance.reporting.measured import measured
from conformance.reporting.read import Run
from conformance.reporting.sections import Table, facts, shortened, tables
from conformance.reporting.table import summary

_FOLDED = 12
"""Rows from which a table of Markdown is folded away, that of the verdicts and that of the failures excepted."""

_OPEN = ("Verdicts", "Failures")
_CELL = 160
"""Characters of a cell of Markdown: a comment on GitHub has room for 65,536."""

_SHOWN = 40
"""Rows of figures that were measured up to which a terminal shows them."""


def terminal(run: Run) -> str:
    """The tables of a run for a terminal."""
    from tabulate import tabulate

    parts = [run.title, *(f"Note: {warning}" for warning in run.warnings)]
    figures = measured(run.records)
    shown = [table for table in figures if len(table.rows) <= _SHOWN]
    for table in (*tables(run), *shown):
        rows = shortened(table.rows, 72)
        laid = tabulate(rows, headers=table.headers, disable_numparse=True, colalign=table.alignment)
        parts.append(f"{table.title}\n\n{laid}")
    parts += [f"{t.title}: {len(t.rows)} rows, which --html shows" for t in figures if t not in shown]
    return "\n\n".join([*parts, summary(run.judged)]) + "\n"


def markdown(run: Run) -> str:
    """The tables of a run as Markdown."""
    stated = "\n".join(f"- {escaped(name)}: {escaped(text)}" for name, text in facts(run))
    parts = [f"# {escaped(run.title)}", summary(run.judged) + "."]
    parts += [f"**{escaped(warning)}**" for warning in run.warnings]
    parts += [_section(table) for table in tables(run)]
    return "\n\n".join([*parts, _folded("Where this comes from", stated)]) + "\n"


def _section(table: Table) -> str:
    from tabulate import tabulate

    rows = [tuple(map(escaped, row)) for row in shortened(table.rows, _CELL)]
    laid = tabulate(rows, headers=table.headers, disable_numparse=True, colalign=table.alignment, tablefmt="pipe")
    laid = re.sub("  +", " ", re.sub("(?m)(?<=[|:])-{3,}(?=[|:])", "---", laid))  # a comment has room for little
    body = f"{table.note}\n\n{laid}" if table.note else laid
    if table.title not in _OPEN and len(rows) > _FOLDED:
        body = _folded(f"{len(rows)} rows", body)
    return f"## {table.title}\n\n{body}"


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, in one line, also within a table."""
    return re.sub(r"([\\`*_{}\[\]<>|#~$@])", r"\\\1", " ".join(text.split()))
