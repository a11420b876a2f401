from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.cli import main
from tests.conformance.reporting.runs import FAILURE, FEATURES, HOSTILE, MESSAGE, REPORT, SCRIPT, WHOLE, save

CASEFILE = "failures/exp-float16-forward-1.json"


def made(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["bugreport", str(folder / CASEFILE)]) == 0
    return capsys.readouterr().out


def test_all_that_the_tracker_asks_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = made(save(tmp_path / "run"), capsys)
    assert text.startswith("# [MPS] `exp`, float16: wrong result\n\n### 🐛 Describe the bug\n")
    for part in (
        f"`{MESSAGE}`",
        FEATURES,
        f"```python\n{SCRIPT}```",
        "- Actual: `inf [0x7f800000]`\n- Expected: `4.489612819174345e+38 +- 1e+32`; the error is inf times",
        "PyTorch's CPU kernel (torch 2.13.0) is right for the same input.",
        "It was not run on a Mac",
        "metal-conformance 0.1.0 at commit c0ffee with seed 7",
        "`conformance replay exp-float16-forward-1.json --device air --build 2.15.0`",
        "### Versions\n\n```\nPyTorch, whose kernels these are: 2.15.0\n",
        "Device: air (emulated)",
    ):
        assert part in text


def test_on_a_mac_it_says_nothing_of_an_emulator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on_mps = replace(FAILURE, device="mps", failure_class="shared", verdict="crash", message="died")
    report = REPORT | {"provenance": REPORT["provenance"] | {"device": "mps"}, "settings": {"device": "mps"}}
    text = made(save(tmp_path / "run", [on_mps], report), capsys)
    assert "emulated" not in text
    assert "--build" not in text
    assert "- Actual" not in text
    assert text.startswith("# [MPS] `exp`, float16: ends the process\n")
    assert "is wrong for the same input as well" in text


def test_without_provenance_it_says_what_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = made(save(tmp_path / "run", report=None), capsys)
    assert "nothing else is known of it" in text
    assert "OS:" not in text


def test_a_script_that_reads_its_case_has_it_beside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save(tmp_path / "run")
    (folder / CASEFILE).with_suffix(".py").write_text('Path(__file__).with_suffix(".json")\n')
    assert json.dumps(FAILURE.case) in made(folder, capsys)


def test_texts_do_not_end_their_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save(tmp_path / "run", [WHOLE, replace(FAILURE, message=HOSTILE)])
    (folder / CASEFILE).with_suffix(".py").write_text("'''```'''\n")
    text = made(folder, capsys)
    assert "````python\n'''```'''\n````" in text
    assert "`` </script>" in text


def test_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save(tmp_path / "run")
    assert main(["bugreport", str(folder / CASEFILE), "--out", str(tmp_path / "bug.md")]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "bug.md").read_text().startswith("# [MPS]")
    assert main(["bugreport", str(folder / CASEFILE), "--out", str(tmp_path / "none" / "bug.md")]) == 2
    assert "cannot be written: No such file" in capsys.readouterr().err


def test_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save(tmp_path / "run")

    def refused(path: Path) -> str:
        assert main(["bugreport", str(path)]) == 2
        return capsys.readouterr().err

    assert "cannot be read: No such file" in refused(folder / "failures" / "none.json")
    assert "is no JSON" in refused(folder / "failures" / "exp-float16-forward-1.py")
    assert "allowed: a file of a run's failures/" in refused(folder / "report.json")
    (folder / "failures" / "other.json").write_text("{}")
    assert "has no failure with this case" in refused(folder / "failures" / "other.json")
    (folder / CASEFILE).with_suffix(".py").unlink()
    assert "a bug report needs one" in refused(folder / CASEFILE)
    (folder / CASEFILE).write_text("{}")
    assert "has no failure with this case" in refused(folder / CASEFILE)
