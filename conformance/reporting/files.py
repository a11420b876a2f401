"""The files of a run: ``records.jsonl`` as it goes, ``report.json`` at its end, ``failures/`` with case and script."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from conformance.case import Case
from conformance.errors import UsageError
from conformance.record import Record
from conformance.reporting.table import summary
from conformance.script import Function, script

_RECORDS = "records.jsonl"
_REPORT = "report.json"
_FAILURES = "failures"


class RunFiles:
    """Writes a run's files into a folder, in place of those of an earlier run.

    Parameters
    ----------
    out
        The folder; it is made.
    functions
        What each op calls, for scripts.
    device, build, torch_device
        As :func:`conformance.script.script` takes them.

    Raises
    ------
    UsageError
        If the folder cannot be made or written to.
    """

    def __init__(
        self, out: Path, functions: Mapping[str, Function], *, device: str, build: str | None, torch_device: str
    ) -> None:
        self.out = out
        self.records: list[Record] = []
        self._functions = functions
        self._script = partial(script, device=device, build=build, torch_device=torch_device)
        self._names: Counter[str] = Counter()
        try:
            (out / _FAILURES).mkdir(parents=True, exist_ok=True)
            for old in (*(out / _FAILURES).glob("*.json"), *(out / _FAILURES).glob("*.py"), out / _REPORT):
                old.unlink(missing_ok=True)
            self._stream = (out / _RECORDS).open("w", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--out {out}: cannot be written: {error.strerror or error}") from None

    def __enter__(self) -> RunFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def write(self, records: list[Record]) -> None:
        """Append a unit's records; they are on disk when this returns."""
        for record in records:
            written = self._with_script(record) if record.is_failure else record
            self.records.append(written)
            self._stream.write(written.line())
        self._stream.flush()

    def report(self, provenance: dict[str, Any], settings: dict[str, Any], *, complete: bool) -> Path:
        """Write the report: provenance, settings, and what the records say in short."""
        properties = [record for record in self.records if not record.is_failure]
        described = {
            "schema": 1,
            "complete": complete,
            "provenance": provenance,
            "settings": settings,
            "references": dict(Counter(record.reference for record in properties)),
            "verdicts": dict(Counter(record.verdict for record in properties)),
            "cases": sum(record.cases for record in properties),
            "kernels": sorted({kernel for record in properties for kernel in record.kernels}),
            "summary": summary(self.records),
            "failures": [_failure(record) for record in self.records if record.is_failure],
        }
        path = self.out / _REPORT
        path.write_text(json.dumps(described, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        return path

    def _with_script(self, record: Record) -> Record:
        """Save a failure's case and script, under a name of their own."""
        self._names[record.name] += 1
        stem = f"{record.name}-{self._names[record.name]}"
        Case.from_json(record.case).save(self.out / _FAILURES / f"{stem}.json")
        text = self._script(record, self._functions[record.op])
        (self.out / _FAILURES / f"{stem}.py").write_text(text, encoding="utf-8")
        return record.with_script(f"{_FAILURES}/{stem}.py")


def _failure(record: Record) -> dict[str, Any]:
    described = record.to_json()
    return {key: described.get(key) for key in ("op", "dtype", "property", "verdict", "class", "message", "script")}
