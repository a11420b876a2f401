from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.cli import main


@pytest.mark.parametrize(("arguments", "message"), [
    (["--op", "nothing*"], "--op: given 'nothing*'; allowed: "),
    (["--family", "none"], "--family: given 'none'; allowed: "),
    (["--dtype", "float8"], "--dtype: given 'float8'; allowed: "),
    (["--property", "speed"], "--property: given 'speed'; allowed: backward, exhaustive, forward, layout"),
    (["--examples", "0"], "--examples: given 0; allowed: integers from 1"),
    (["--jobs", "-1"], "--jobs: given -1; allowed: integers from 1"),
    (["--build", "2.15.0"], "--build 2.15.0: device cpu takes no build"),
    (["--device", "gpu"], "--device: given 'gpu'; allowed: "),
    (["--op", "tiny.cumsum", "--dtype", "float16"], "nothing to run"),
])  # fmt: skip
def test_wrong_usage(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["run", "--device", "cpu", "--no-known", "--out", str(tmp_path / "out"), *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("conformance: error: ")
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments", [[], ["run", "--examples", "many"], ["walk"], ["replay"]])
def test_wrong_syntax(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "conformance" in capsys.readouterr().err


def test_out_that_cannot_be_written(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    arguments = ["run", "--device", "cpu", "--op", "tiny.*", "--no-known", "--out", str(tmp_path / "file" / "out")]
    assert main(arguments) == 2
    assert "cannot be written: Not a directory" in capsys.readouterr().err


def test_unavailable_device(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--device", "tiny:Absent", "--op", "tiny.*"]) == 3
    assert capsys.readouterr().err == "conformance: device tiny: it is only a test\n"


NO_TENSOR = json.dumps({
    "schema": 1,
    "op": "tiny.abs",
    "dtype": "float32",
    "property": "forward",
    "tensors": [{"dtype": "float32", "shape": [5], "values": {"pattern": "literal", "values": ["1"]}}],
})  # fmt: skip


@pytest.mark.parametrize(("content", "message"), [
    (None, "cannot be read: No such file"),
    ("{}", "object with schema"),
    ('{"schema": 1, "op": "none", "dtype": "float32", "property": "forward", "tensors": []}', "given 'none'"),
    (NO_TENSOR, "case.json: literal has 1 numbers for 5 components"),
])  # fmt: skip
def test_replay_of_no_case(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, message: str
) -> None:
    file = tmp_path / "case.json"
    if content is not None:
        file.write_text(content)
    assert main(["replay", str(file), "--device", "cpu"]) == 2
    assert message in capsys.readouterr().err


def test_list(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    assert "tiny.negative" in capsys.readouterr().out
    assert main(["list", "--json"]) == 0
    listed = {op["op"]: op for op in json.loads(capsys.readouterr().out)}
    assert listed["tiny.cumsum"] == {
        "op": "tiny.cumsum",
        "family": "tiny-rows",
        "dtypes": ["float32"],
        "properties": ["forward"],
        "bound": "2 ulp",
        "reference": "numpy",
        "kernels": [],
    }


def test_list_names_a_wrong_device(tiny: Path) -> None:
    assert main(["list", "--device", "gpu"]) == 2
    assert main(["list", "--device", "tiny:Absent"]) == 3


def test_broken_entry_point_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "broken-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[conformance.catalogues]\nbroken = nowhere:ops\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["list"]) == 2
    assert "conformance.catalogues broken = nowhere:ops cannot be loaded" in capsys.readouterr().err


def test_light_commands_import_nothing_heavy() -> None:
    code = "import sys, conformance.cli as c; c._parser(); print({'numpy', 'torch', 'hypothesis'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
