"""What is made of a run: tables, Markdown, JUnit XML; and the command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.cli import main
from conformance.record import Record
from conformance.reporting.junit import junit
from conformance.reporting.read import Run, read
from conformance.reporting.text import markdown, terminal
from tests.conformance.reporting.runs import (
    ALL,
    CRASH,
    FAILURE,
    FEATURES,
    HOSTILE,
    KNOWN,
    MEASURED,
    MESSAGE,
    PASS,
    WHOLE,
    save,
)  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return read(save(tmp_path / "run"))


def test_terminal(run: Run) -> None:
    text = terminal(run)
    assert text.startswith("PyTorch 2.15.0 on air\n")
    for title in (
        "Verdicts",
        "Failures",
        "Known failures",
        "Unsupported",
        "Largest errors that passed",
        "Time",
        "Work",
    ):
        assert f"\n\n{title}\n\n" in text
    assert "10 properties, 200 cases: 1 error, 1 crash, 1 timeout, 1 fail, 1 flaky, 1 fixed, 1 known, 2 unsupp" in text


def test_figures_that_were_not_measured_have_no_table(tmp_path: Path) -> None:
    text = terminal(read(save(tmp_path / "run", [PASS])))
    assert not {"Time", "Memory", "Work", "Failures"} & set(text.splitlines())


def test_each_figure_has_a_table_of_its_own(run: Run) -> None:
    tables = terminal(run)
    time, memory, work = (tables.index(f"\n{title}\n") for title in ("Time", "Memory", "Work"))
    assert "12.5" in tables[time:memory]
    assert "eager, 1 host thread" in tables[time:memory]
    assert "8,192" in tables[memory:work]
    assert "reserved" not in tables[memory:work], "what the device does not tell is no zero"
    assert "43,008" in tables[work:]


def test_an_error_above_the_bound_that_passed_is_explained(tmp_path: Path) -> None:
    assert "follows from a result" not in markdown(read(save(tmp_path / "right", [PASS])))
    assert PASS.worst is not None
    excused = replace(PASS, property="backward", worst=replace(PASS.worst, bound_units=3.0))
    assert "follows from a result of the forward that is wrong" in markdown(read(save(tmp_path / "run", [excused])))


def test_markdown(run: Run) -> None:
    text = markdown(run)
    assert text.startswith("# PyTorch 2.15.0 on air\n")
    assert "| device-only | fail | exp | float16 | forward | exp(float32" in text
    assert "| 2 | dot | float32 float16 | dot on float32/float16: no |" in text, "one reason, one line"
    assert "| exp-overflow | known | exp | complex64 | is so |" in text
    assert "- build sha256: ab12" in text
    assert "Time" not in text, "a thread has no room for what was measured"


def test_markdown_shows_hostile_texts_as_they_are(tmp_path: Path) -> None:
    text = markdown(read(save(tmp_path / "run", [WHOLE, replace(FAILURE, message=HOSTILE)])))
    (row,) = [line for line in text.splitlines() if "onerror" in line]
    assert "\\<img" in row
    assert row.count("|") - row.count("\\|") == 7


def outcomes(text: str) -> dict[str, list[str]]:
    root = ElementTree.fromstring(text)
    return {
        f"{case.get('classname')}.{case.get('name')}": [child.tag for child in case] for case in root.iter("testcase")
    }


def test_junit(run: Run) -> None:
    text = junit(run)
    assert outcomes(text) == {
        "unary.exp.float32-forward": [],
        "unary.exp.float16-forward": ["failure"],
        "unary.exp.complex64-witness[exp-overflow]": ["skipped"],
        "unary.exp.complex64-witness[exp-old]": ["system-out"],
        "blas.dot.float32-forward": ["skipped"],
        "blas.dot.float16-forward": ["skipped"],
        # Four records of one name stand here for four units.
        "blas.dot.int8-forward": ["error"],
    }
    root = ElementTree.fromstring(text)
    assert [suite.get("name") for suite in root] == ["dot", "exp"]
    counts = [root.get(name) for name in ("tests", "failures", "errors", "skipped", "time")]
    assert counts == ["10", "2", "3", "3", "2.500"]
    failure = root.find(".//testcase[@name='float16-forward']/failure")
    assert failure is not None
    assert failure.get("type") == "fail"
    assert MESSAGE in (failure.get("message") or "")
    assert FEATURES in (failure.text or "")
    assert "failures/exp-float16-forward-1.py" in (failure.text or "")


def test_junit_of_hostile_texts_parses(tmp_path: Path) -> None:
    records = [replace(WHOLE, op=HOSTILE), replace(FAILURE, op=HOSTILE, message=HOSTILE, features=HOSTILE)]
    root = ElementTree.fromstring(junit(read(save(tmp_path / "run", records))))
    assert "onerror" in (root[0].get("name") or "")


def test_command_writes_beside_the_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save(tmp_path / "run")
    assert main(["report", str(folder), "--html", "--markdown", "--junit"]) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert written == [folder / "report.md", folder / "junit.xml", folder / "html" / "index.html"]
    assert all(path.is_file() for path in written)


def test_command_prints_tables_of_the_latest_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path / "runs" / "one")
    monkeypatch.chdir(tmp_path)
    assert main(["report"]) == 0
    assert "Verdicts" in capsys.readouterr().out
    assert main(["report", "--markdown", "elsewhere.md"]) == 0
    assert (tmp_path / "elsewhere.md").read_text().startswith("# PyTorch 2.15.0 on air")


@pytest.mark.parametrize(("arguments", "message"), [
    (["run", "run"], "allowed: one folder, for figures of different runs are never combined"),
    (["--html", "run"], "--html: given 'run', the folder of a run; allowed: DIR before --html"),
    (["run", "--junit", "none/x.xml"], "--junit none/x.xml: cannot be written: No such file"),
    (["run", "--html", "run/records.jsonl/x"], "--html run/records.jsonl/x: cannot be written: Not a directory"),
    (["none"], "DIR: given 'none'; allowed: a folder with records.jsonl"),
    ([], "DIR: none given, and runs/ has no run"),
])  # fmt: skip
def test_wrong_usage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    save(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    assert main(["report", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_every_verdict_is_counted_once() -> None:
    run = Run(Path(), tuple(ALL), {})
    assert len(run.properties) == len(ALL) - len([FAILURE, MEASURED])
    assert {record.verdict for record in CRASH} <= {record.verdict for record in run.properties}
    assert KNOWN in run.judged
    assert isinstance(run.records[0], Record)
