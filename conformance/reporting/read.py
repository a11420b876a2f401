"""What a run left in its folder, read back: the records, and the report's provenance and settings if it has one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.errors import UsageError
from conformance.record import BAD, Record, schema

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

RECORDS = "records.jsonl"
REPORT = "report.json"
FAILURES = "failures"
_MEASURE = "measure"
"""The property that measures and judges nothing: its verdict says no more than that there are figures."""


@dataclass(frozen=True)
class Run:
    """The records of one build on one device, and what is known of where they come from.

    ``truncated`` tells that the last line was cut off, which is left out: the run died while it wrote it.
    """

    folder: Path
    records: tuple[Record, ...]
    report: Mapping[str, Any]
    truncated: bool = False

    @property
    def build(self) -> str:
        """Version of the build whose kernels were judged."""
        return self.records[0].build

    @property
    def device(self) -> str:
        """What ran the ops."""
        return self.records[0].device

    @property
    def title(self) -> str:
        """Build and device in a few words."""
        return f"PyTorch {self.build} on {self.device}"

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where the records come from; empty if the run wrote no report."""
        return dict(self.report.get("provenance", {}))

    @property
    def judged(self) -> list[Record]:
        """The records that tell of a judgement, or of a fault of the suite."""
        return [record for record in self.records if record.property != _MEASURE or record.verdict in BAD]

    @property
    def properties(self) -> list[Record]:
        """Those of properties, not of single failures."""
        return [record for record in self.judged if not record.is_failure]

    @property
    def failures(self) -> list[Record]:
        """The records of single failures."""
        return [record for record in self.records if record.is_failure]

    @property
    def warnings(self) -> list[str]:
        """What a reader must know before any figure."""
        told = []
        if not self.report:
            told.append(f"There is no {REPORT}: the run did not end, and where its records come from is not known.")
        elif not self.report.get("complete", False):
            told.append("The run was stopped before its end: what is not here was not judged.")
        if self.truncated:
            told.append(f"The last line of {RECORDS} is cut off and left out: the run died while it was written.")
        return told

    def file(self, relative: str | None) -> str | None:
        """The text of a file that a record names; None if it names none in this folder, or that is gone."""
        if not relative:
            return None
        path = self.folder / relative
        if not path.resolve().is_relative_to(self.folder.resolve()):
            return None
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None


def latest(runs: Path = Path("runs")) -> Path:
    """The folder of the run whose records were written last.

    Raises
    ------
    UsageError
        If there is none.
    """
    found = sorted(runs.glob(f"*/{RECORDS}"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UsageError(f"DIR: none given, and {runs}/ has no run; allowed: a folder with {RECORDS}")
    return found[-1].parent


def read(folder: Path) -> Run:
    """Read the folder of a run.

    Raises
    ------
    UsageError
        If it is none, a line is no record of this version, or the records are of more than one build or device.
    """
    path = folder / RECORDS
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"DIR: given {str(folder)!r}; allowed: a folder with {RECORDS}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is no UTF-8 text: {error}") from None
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    records: list[Record] = []
    validator = _validator()
    truncated = False
    for number, line in lines:
        try:
            described = json.loads(line)
        except ValueError as error:
            if number == lines[-1][0] and not text.endswith("\n"):
                truncated = True
                break
            raise UsageError(f"{path}, line {number}: is no JSON: {error}") from None
        if wrong := _wrong(validator, described):
            raise UsageError(f"{path}, line {number}: is no record: {wrong}")
        record = Record.from_json(described)
        if records and (record.build, record.device) != (records[0].build, records[0].device):
            raise UsageError(
                f"{path}, line {number}: is of build {record.build} on {record.device}, line {lines[0][0]} of "
                f"{records[0].build} on {records[0].device}; allowed: one build on one device a report"
            )
        records.append(record)
    if not records:
        raise UsageError(f"{path}: has no records")
    return Run(folder, tuple(records), _report(folder / REPORT, records[0]), truncated)


def _report(path: Path, first: Record) -> dict[str, Any]:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    if not isinstance(report, dict) or report.get("schema") != 1:
        raise UsageError(f"{path}: is no report of a run; allowed: a JSON object with schema 1")
    try:
        about = report["provenance"]["build"]["version"], report["provenance"]["device"]
    except (KeyError, TypeError):
        raise UsageError(f"{path}: names no build and device in its provenance") from None
    if about != (first.build, first.device):
        raise UsageError(
            f"{path}: is of build {about[0]} on {about[1]}, {RECORDS} beside it of {first.build} on {first.device}; "
            "allowed: one build on one device a report"
        )
    return report


def _validator() -> Validator:
    """Of a record as the schema has it, but for cases: what renders them takes them as they are, and they are most."""
    from jsonschema import Draft202012Validator

    loose = {**schema()["$defs"], "case": {"type": "object"}}
    return Draft202012Validator({**schema(), "$defs": loose})


def _wrong(validator: Validator, described: Any) -> str | None:
    """The first thing that keeps a line from being a record, if anything does."""
    errors: Iterator[Any] = validator.iter_errors(described)
    error = next(errors, None)
    if error is None:
        return None
    place = ".".join(map(str, error.absolute_path))
    message = str(error.message)
    return f"{place + ': ' if place else ''}{message if len(message) <= 200 else message[:200] + '...'}"
