"""Names and arguments of torch's Metal interfaces that this project uses, by the sources in the macOS wheels.

No machine of this project's tests has a Mac: a wrong name would first be found by a user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.metal_ops.torch_definitions import Definitions
from tests.metal_ops.torch_uses import Use, uses
from tests.metal_ops.wheel_sources import python_sources

VERSIONS = ("2.14.1", "2.15.0")
ROOT = Path(__file__).parents[2]
FOLDERS = ("conformance", "metal_ops", "references", "benchmarks", "tests")

OLD = {
    "torch/mps/__init__.py": "from .event import Event\ndef wait(): ...\ndef save(path, *, force=False): ...\n",
    "torch/mps/event.py": "class Event:\n def __init__(self, timing=False): ...\n def record(self): ...\n",
    "torch/accelerator/__init__.py": "from torch._C import _where as where\nfrom .memory import (stats,)\n",
    "torch/accelerator/memory.py": "def stats(device=None, /): ...\n",
    "torch/_C/__init__.pyi": "def _where(a: int) -> int: ...\ndef _where(a: int, b: int) -> int: ...\n",
    "torch/backends/mps/__init__.py": "import torch\nif torch:\n    name = 'M'\n",
}
NEW = OLD | {"torch/mps/__init__.py": OLD["torch/mps/__init__.py"] + "def stream(s): ...\n"}


def own_uses() -> list[Use]:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")) if path != Path(__file__)]
    return [use for path in paths for use in uses(path.read_text("utf-8"), str(path.relative_to(ROOT)))]


def problems(found: Iterable[Use], versions: Mapping[str, Mapping[str, str]]) -> list[str]:
    """What is wrong with uses; the last version must have every name, an earlier one may lack one that is guarded."""
    newest = [*versions][-1]
    lines = []
    for version, sources in versions.items():
        definitions = Definitions(sources)
        for use in found:
            is_missing = not definitions.find(use.name)
            if is_missing and use.guarded and version != newest:
                continue
            if complaint := definitions.complaint(use):
                lines.append(f"{use.where}: torch {version}: {complaint}")
    return lines


def test_the_wheels_have_what_this_project_uses() -> None:
    found = own_uses()
    assert {"torch.mps.synchronize", "torch.accelerator.memory_stats"} <= {use.name for use in found if use.arguments}
    assert any("template" in use.where for use in found), "scripts ask whether there is a Mac"
    assert problems(found, {version: python_sources(version) for version in VERSIONS}) == []


def test_the_wheels_differ_as_their_release_notes_say() -> None:
    older, newer = (Definitions(python_sources(version)) for version in VERSIONS)
    assert not older.find("torch.mps.Stream")
    assert newer.find("torch.mps.Stream")
    elapsed = Use("torch.mps.Event.elapsed_time", "here", guarded=False, arguments=(2, ()))
    assert newer.complaint(elapsed) is None


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.mps.wait()",
        "import torch as t\nt.mps.save('x', force=True)",
        "from torch import mps\nmps.Event(timing=True)",
        "from torch.mps import Event as E\nE(True)",
        "import torch.backends.mps\ntorch.backends.mps.name",
        "import torch\ntorch.accelerator.stats('mps')\ntorch.accelerator.where(1, 2)\ntorch.accelerator.where(1)",
        "import torch\nif hasattr(torch.mps, 'stream'):\n    torch.mps.stream(1)",
        "import torch\ntorch.mps.stream(1) if hasattr(torch.mps, 'stream') else None",
        "import torch\nhasattr(torch.mps, 'stream') and torch.mps.stream(1)",
        "import torch\ntry:\n    torch.mps.stream(1)\nexcept (KeyError, AttributeError):\n    pass",
        "import torch\ngetattr(torch.mps, 'stream', None)",
        "import torch\ntorch.cuda.nothing()",
    ],
)
def test_right_uses(source: str) -> None:
    assert problems(uses(source, "x.py"), {"1": OLD, "2": NEW}) == []


@pytest.mark.parametrize(
    ("source", "complaints"),
    [
        ("import torch\ntorch.mps.wiat()", ["1: there is no torch.mps.wiat", "2: there is no torch.mps.wiat"]),
        ("import torch\ntorch.mps.stream(1)", ["1: there is no torch.mps.stream"]),
        ("from torch.mps import stream", ["1: there is no torch.mps.stream"]),
        ("import torch\nif hasattr(torch.mps, 'save'):\n    torch.mps.stream(1)", ["1: there is no torch.mps.stream"]),
        ("import torch\nif hasattr(torch.mps, 'stream'): pass\nelse: torch.mps.stream(1)", ["1: there is no"]),
        ("import torch\ntry: torch.mps.stream(1)\nexcept RuntimeError: pass", ["1: there is no torch.mps.stream"]),
        ("import torch\ngetattr(torch.mps, 'stream')", ["1: there is no torch.mps.stream"]),
        ("import torch\nif hasattr(torch.mps, 'sterm'): pass", ["2: there is no torch.mps.sterm"]),
        ("import torch\nif hasattr(torch.mps, 'stream'): torch.mps.stream()", ["2: torch.mps.stream(s): missing a"]),
        ("import torch\ntorch.mps.wait(1)", ["1: torch.mps.wait(): too many", "2: torch.mps.wait(): too many"]),
        ("import torch\ntorch.mps.save(1, force=1, gently=1)", ["1: torch.mps.save(", "2: torch.mps.save("]),
        ("import torch\ntorch.accelerator.stats(device=0)", ["1: torch.accelerator.stats(", "2: torch.accelerator"]),
        ("import torch\ntorch.accelerator.where(1, 2, 3)", ["1: torch.accelerator.where(", "2: torch.accelerator"]),
        ("from torch.mps import Event\nEvent(1, 2)", ["1: torch.mps.Event(self", "2: torch.mps.Event(self"]),
        ("import torch\ntorch.mps.Event.play", ["1: there is no", "2: there is no"]),
        ("import torch\ntorch.backends.mps.name()", ["1: torch.backends.mps.name is no f", "2: torch.backends.mps.n"]),
        ("TEXT = 'import torch\\nx = {y!r}\\ntorch.mps.wiat({z})'", ["1: there is no", "2: there is no"]),
    ],
)
def test_wrong_uses(source: str, complaints: list[str]) -> None:
    found = problems(uses(source, "x.py"), {"1": OLD, "2": NEW})
    assert len(found) == len(complaints), found
    for line, complaint in zip(found, complaints, strict=True):
        assert f"torch {complaint}" in line


def test_arguments_that_are_unpacked_cannot_be_checked() -> None:
    with pytest.raises(ValueError, match=r"x\.py:2: the call unpacks its arguments"):
        uses("import torch\ntorch.mps.wait(*[])", "x.py")
