from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.errors import UsageError
from conformance.record import Record
from conformance.reporting.read import latest, read
from tests.conformance.reporting.runs import ALL, CASE, FAILURE, KNOWN, MEASURED, PASS, REPORT, save


@pytest.mark.parametrize("record", ALL, ids=lambda record: f"{record.name}-{record.verdict}")
def test_records_come_back_as_they_were(record: Record) -> None:
    assert Record.from_json(json.loads(record.line())).to_json() == record.to_json()


def test_a_run(tmp_path: Path) -> None:
    run = read(save(tmp_path / "run"))
    assert len(run.records) == len(ALL)
    assert (run.build, run.device, run.warnings) == ("2.15.0", "air", [])
    assert run.failures[0].case == CASE
    assert MEASURED.property not in {record.property for record in run.properties}


def test_a_last_line_that_is_cut_off_is_left_out_and_said_so(tmp_path: Path) -> None:
    run = read(save(tmp_path / "run", [PASS, KNOWN], None, end=PASS.line()[:200]))
    assert len(run.records) == 2
    assert run.truncated
    assert "the run died" in run.warnings[-1]
    assert "no report.json" in run.warnings[0]


def test_a_run_that_was_stopped_says_so(tmp_path: Path) -> None:
    (warning,) = read(save(tmp_path / "run", report=REPORT | {"complete": False})).warnings
    assert "stopped before its end" in warning


@pytest.mark.parametrize(("end", "message"), [
    ('{"schema": 1, \n', "line 2: is no JSON"),
    ("[]\n", "line 2: is no record: [] is not of type 'object'"),
    (json.dumps({**PASS.to_json(), "schema": 2}) + "\n", "line 2: is no record: schema: 1 was expected"),
    (json.dumps({**PASS.to_json(), "colour": 1}), "line 2: is no record: Additional properties"),
    (json.dumps({**PASS.to_json(), "verdict": "fine"}), "line 2: is no record: verdict: 'fine' is not one of"),
    ("\n" + replace(PASS, build="2.14.1").line(), "line 3: is of build 2.14.1 on air, line 1 of 2.15.0 on air"),
    (replace(PASS, device="mps").line(), "line 2: is of build 2.15.0 on mps"),
])  # fmt: skip
def test_what_is_no_record_is_named_by_its_line(tmp_path: Path, end: str, message: str) -> None:
    folder = save(tmp_path / "run", [PASS], end=end)
    with pytest.raises(UsageError) as raised:
        read(folder)
    assert f"records.jsonl, {message}" in str(raised.value)


@pytest.mark.parametrize(("report", "message"), [
    ("{", "cannot be read"),
    ("[]", "is no report of a run"),
    ('{"schema": 1}', "names no build and device"),
    (json.dumps({"schema": 1, "provenance": {"device": "mps", "build": {"version": "2.15.0"}}}), "is of .* on mps, "),
])  # fmt: skip
def test_a_wrong_report(tmp_path: Path, report: str, message: str) -> None:
    folder = save(tmp_path / "run")
    (folder / "report.json").write_text(report)
    with pytest.raises(UsageError, match=message):
        read(folder)


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"allowed: a folder with records\.jsonl: No such file"):
        read(tmp_path)
    with pytest.raises(UsageError, match="has no records"):
        read(save(tmp_path / "run", []))
    with pytest.raises(UsageError, match=r"none given, and .*has no run"):
        latest(tmp_path / "runs")


def test_the_latest_run(tmp_path: Path) -> None:
    for age, name in enumerate(("b", "c", "a")):
        os.utime(save(tmp_path / name) / "records.jsonl", (1000 + age, 1000 + age))
    assert latest(tmp_path) == tmp_path / "a"


def test_files_outside_the_folder_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    run = read(save(tmp_path / "run", [FAILURE]))
    assert run.file(FAILURE.script) is not None
    assert run.file("../secret") is None
    assert run.file("failures/none.py") is None


def test_reports_load_nothing_that_judges(tmp_path: Path) -> None:
    folder = save(tmp_path / "run")
    code = (
        "import sys; from conformance.cli import main; "
        f"assert main(['report', {str(folder)!r}, '--html', '--markdown', '--junit']) == 0; "
        "print([name for name in ('torch', 'hypothesis', 'conformance.engine', 'llvmlite') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
