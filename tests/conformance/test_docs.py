"""What ``docs/plugins.md`` shows is run here, with a fault of our own in place of somebody's collection."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.cli import main
from conformance.known import parse

TEXT = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")

FAULTS = """
import contextlib
import tiny

@contextlib.contextmanager
def inject(number, on_abort="abort"):
    assert number == 7 and on_abort == "raise"
    with tiny.Wrong().session():
        yield
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_device_of_the_documentation(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mydevice.py").write_text(blocks("python")[0])
    (tmp_path / "faults.py").write_text(FAULTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("FAULT", "7")
    arguments = ["run", "--device", "mydevice:Faulty", "--op", "tiny.abs", "--no-known", "--jobs", "1", "--quiet"]
    assert main([*arguments, "--examples", "40", "--out", str(tmp_path / "out")]) == 1
    assert "FAIL (device-only) tiny.abs-float32-forward" in capsys.readouterr().out


def test_op_of_the_documentation() -> None:
    from conformance.devices.cpu import CpuDevice
    from conformance.engine import Checker, Effort, Unit, run_unit

    space: dict[str, object] = {}
    exec(blocks("python")[1], space)
    (op,) = space["ops"]()  # type: ignore[operator]
    for property in op.properties:
        records = run_unit(Unit(op.name, "float32", property), op, Checker(CpuDevice()), "2.0", Effort(30, 0))
        assert [record.verdict for record in records] == ["pass"], records


def test_known_failure_of_the_documentation() -> None:
    (entry,) = parse(blocks("toml")[1], "plugins.md")
    assert entry.id == "square-overflow"
