"""``conformance report``: what is made of the records of one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from conformance.errors import UsageError
from conformance.reporting.html import write_pages
from conformance.reporting.junit import junit
from conformance.reporting.read import RECORDS, Run, latest, read
from conformance.reporting.text import markdown, terminal

Output = Path | Literal[True] | None
"""Where an output goes: True is beside the records, under a name of its own; None for one that is not asked for."""


@dataclass(frozen=True)
class Outputs:
    """The files and the folder that are asked for."""

    markdown: Output = None
    html: Output = None
    junit: Output = None


def report(folders: Sequence[Path], outputs: Outputs) -> None:
    """Write what is asked for and say where it is; print the tables if nothing is.

    Raises
    ------
    UsageError
        If there is more than one folder, it is none of a run, or an output cannot be written.
    """
    if len(folders) > 1:
        raise UsageError(
            f"DIR: given {', '.join(map(str, folders))}; allowed: one folder, for figures of different runs are never "
            "combined"
        )
    _check(outputs)
    run = read(folders[0] if folders else latest())
    written = []
    for name, path, make in (("markdown", outputs.markdown, markdown), ("junit", outputs.junit, junit)):
        if path is not None:
            default = run.folder / {"markdown": "report.md", "junit": "junit.xml"}[name]
            written.append(_write(run, make, default if path is True else path, f"--{name}"))
    if outputs.html is not None:
        written.append(write_pages(run, run.folder / "html" if outputs.html is True else outputs.html))
    if not written:
        print(terminal(run), end="")
    for path in written:
        print(path)


def _check(outputs: Outputs) -> None:
    """Refuse the folder of a run as an output: an option took it for its own."""
    for name in ("markdown", "html", "junit"):
        path = getattr(outputs, name)
        if isinstance(path, Path) and (path / RECORDS).exists():
            raise UsageError(f"--{name}: given {str(path)!r}, the folder of a run; allowed: DIR before --{name}")


def _write(run: Run, make: Callable[[Run], str], path: Path, option: str) -> Path:
    try:
        path.write_text(make(run), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{option} {path}: cannot be written: {error.strerror or error}") from None
    return path
