"""The whole command, in this process and in others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from conformance.case import Case
from conformance.cli import main
from conformance.record import schema

SMALL = ("--op", "tiny.*", "--dtype", "float32", "--examples", "8", "--quiet", "--no-known")


def records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]


def run(out: Path, *arguments: str, device: str = "tiny:Wrong", jobs: str = "1") -> int:
    return main(["run", "--device", device, "--out", str(out), "--jobs", jobs, *arguments])


def test_jobs_give_the_same_records_in_the_same_order(tiny: Path, tmp_path: Path) -> None:
    for jobs in ("1", "2"):
        assert run(tmp_path / jobs, *SMALL, jobs=jobs) == 1
    one, two = ([{**record, "seconds": 0} for record in records(tmp_path / jobs)] for jobs in ("1", "2"))
    assert one == two
    assert len(one) >= 10


def test_only_what_ends_its_process_is_lost(tiny: Path, tmp_path: Path) -> None:
    arguments = ("--op", "tiny.*", "--property", "forward", "--examples", "3", "--quiet", "--no-known")
    assert run(tmp_path / "out", *arguments, device="tiny:Deadly", jobs="2") == 1
    found = records(tmp_path / "out")
    deadly = [(record["op"], record["dtype"]) for record in found if record["verdict"] == "error"]
    assert deadly == [("tiny.negative", "float32"), ("tiny.negative", "float16")]
    assert all("died again with this unit alone" in record["message"] for record in found if "error" in record.values())
    others = {record["op"]: record["verdict"] for record in found if record["op"] != "tiny.negative"}
    assert others == {"tiny.abs": "pass", "tiny.cumsum": "pass"}


def test_files_of_a_run(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run(out, *SMALL, "--property", "exhaustive") == 1
    written = records(out)
    for record in written:
        jsonschema.validate(record, schema())
    failures = [record for record in written if "case" in record]
    assert [failure["class"] for failure in failures] == ["device-only"] * 2
    for failure in failures:
        script = out / failure["script"]
        assert script.name == f"{failure['op']}-float32-exhaustive-1.py"
        assert Case.load(script.with_suffix(".json")).to_json() == failure["case"]
    report = json.loads((out / "report.json").read_text())
    assert report["complete"] is True
    assert report["verdicts"] == {"fail": 2}
    assert report["references"] == {"numpy": 2}
    assert report["provenance"]["device"] == "tiny"
    assert report["provenance"]["build"]["source"] == "host"
    assert report["settings"]["seed"] == 0
    assert len(report["failures"]) == 2
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "FAIL (device-only) tiny.negative-float32-exhaustive" in printed.out
    assert "2 properties, 12 cases: 2 fail; failures: 2 device-only" in printed.out.splitlines()[-2]


def test_no_absolute_path_is_written(tiny: Path, tmp_path: Path) -> None:
    assert run(tmp_path / "out", *SMALL, device="tiny:Packed") == 1
    for file in (tmp_path / "out").rglob("*.*"):
        for place in (str(Path.home()), str(Path.cwd()), str(tmp_path), sys.prefix):
            assert place not in file.read_text(), file


def test_second_run_replaces_the_first(tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(out, *SMALL) == 1
    (out / "mine.txt").write_text("kept")
    assert run(out, *SMALL, device="tiny:Faulty") == 0
    assert not list((out / "failures").iterdir())
    assert json.loads((out / "report.json").read_text())["failures"] == []
    assert (out / "mine.txt").read_text() == "kept"


def test_default_folder(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--device", "tiny:Faulty", "--op", "tiny.abs", "--property", "exhaustive", "--jobs", "1"]) == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.endswith("-tiny")


def test_progress(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--op", "tiny.abs", "--dtype", "float16", "--examples", "5", "--no-known")
    assert run(tmp_path / "out", *arguments, device="tiny:Faulty") == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("[1/3] tiny.abs-float16-forward: pass, 5 cases, ")


def test_known_fixed_and_unused(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.conformance.test_known import ENTRY

    file = tmp_path / "known.toml"
    monkeypatch.setenv("TINY_KNOWN", str(file))
    file.write_text(ENTRY + ENTRY.replace('"big"', '"gone"').replace('"tiny.negative"', '"tiny.gone"'))
    arguments = ("--op", "tiny.negative", "--dtype", "float32", "--examples", "30", "--quiet")
    assert run(tmp_path / "out", *arguments) == 0
    verdicts = [(record["property"], record["verdict"]) for record in records(tmp_path / "out")]
    assert verdicts == [("forward", "known"), ("exhaustive", "known"), ("layout", "known"), ("witness", "known")]
    assert "UNUSED known failure gone: op tiny.gone is in no catalogue" in capsys.readouterr().out
    assert run(tmp_path / "out", *arguments, "--no-known") == 1
    assert run(tmp_path / "out", *arguments, device="tiny:Faulty") == 0
    assert "FIXED tiny.negative float32: known failure big no longer fails" in capsys.readouterr().out
    assert records(tmp_path / "out")[-1]["verdict"] == "fixed"
    other = ("--op", "tiny.negative", "--dtype", "float16", "--examples", "5", "--quiet")
    assert run(tmp_path / "out", *other, device="tiny:Faulty") == 0
    assert "known failure big" not in capsys.readouterr().out  # not selected, which is not unused
    file.write_text(ENTRY.replace('dtypes = ["float32"]', 'dtypes = ["float32", "float64"]'))
    assert run(tmp_path / "out", *arguments) == 0
    assert "UNUSED known failure big: op tiny.negative is not tested with float64" in capsys.readouterr().out


def test_unsupported_ends_0(tiny: Path, tmp_path: Path) -> None:
    assert run(tmp_path / "out", *SMALL, device="tiny:Lacking") == 0
    assert {record["verdict"] for record in records(tmp_path / "out")} == {"unsupported"}


def test_flaky_ends_1(tiny: Path, tmp_path: Path) -> None:
    arguments = ("--op", "tiny.negative", "--dtype", "float32", "--property", "forward", "--examples", "30", "--quiet")
    assert run(tmp_path / "out", *arguments, device="tiny:Flaky") == 1
    assert {record["verdict"] for record in records(tmp_path / "out")} == {"flaky"}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interrupt_keeps_what_is_done(tiny: Path, tmp_path: Path, jobs: str) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "conformance.cli", "run", "--device", "tiny:Slow", "--out", str(out)]
    command += ["--op", "tiny.*", "--examples", "20", "--jobs", jobs, "--no-known"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    lines = out / "records.jsonl"
    until = time.monotonic() + 60
    while time.monotonic() < until and not (lines.exists() and lines.read_text()):
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "records, which are kept" in errors
    assert "Traceback" not in errors
    assert 1 <= len(records(out)) < 13
    assert json.loads((out / "report.json").read_text())["complete"] is False


def test_replay(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run(out, *SMALL, "--property", "exhaustive") == 1
    case = str(next((out / "failures").glob("tiny.abs*.json")))
    capsys.readouterr()
    assert main(["replay", case, "--device", "tiny:Wrong"]) == 1
    assert "fail (device-only): outside the bound" in capsys.readouterr().out
    assert main(["replay", case, "--device", "cpu"]) == 0
    assert "\npass: " in capsys.readouterr().out


@pytest.mark.parametrize("device", ["tiny:Wrong", "cpu"])
def test_scripts_run(tiny: Path, tmp_path: Path, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device of ours needs the package; torch's own devices need torch only."""
    import tiny as plugin

    if device == "cpu":
        op = plugin.ops()[1]
        object.__setattr__(op.reference, "function", lambda x: abs(x) + 1)
        monkeypatch.setattr(plugin, "ops", lambda: [op])
    arguments = ("--op", "tiny.abs", "--dtype", "float32", "--property", "exhaustive", "--quiet", "--no-known")
    assert run(tmp_path / "out", *arguments, device=device) == 1
    (script,) = (tmp_path / "out" / "failures").glob("*.py")
    assert len(script.read_text().splitlines()) <= 20
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if device == "cpu":
        assert "conformance" not in script.read_text()
        assert "cpu tensor([0.])\nfloat64 tensor([0.], dtype=torch.float64)" in done.stdout
    else:
        assert "got tensor([1088.])\ncpu tensor([1024.])" in done.stdout
