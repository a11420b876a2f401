"""The program in ``docs/torch-device.md`` runs as it stands."""

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[3] / "docs" / "torch-device.md").read_text(encoding="utf-8")


def test_the_program_prints_a_gradient(capsys: pytest.CaptureFixture[str]) -> None:
    program = re.search(r"\n((?:    .*\n|\n)+)", TEXT)
    assert program is not None
    exec("\n".join(line[4:] for line in program[1].splitlines()))
    printed = capsys.readouterr().out
    assert printed.startswith("tensor([[")
    assert printed.endswith("device='air:0')\n")
