"""Where records come from: suite, build, host and machine, without any path of it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conformance.devices.base import Device

_PACKAGE = "metal-conformance"
_LIBRARIES = ("torch", "numpy", "scipy", "mpmath", "ml_dtypes", "hypothesis", "llvmlite")


def build_name(device: Device) -> str:
    """The version of the build under test; on torch's own devices that is the host torch's."""
    return str(_of_device(device)["build"]["version"])


def provenance(device: Device) -> dict[str, Any]:
    """All that a reader needs to judge or repeat a run, but its settings."""
    return {
        "suite": {"version": _version(_PACKAGE), "commit": _commit()},
        "device": device.name,
        **_of_device(device),
        "libraries": {name: found for name in _LIBRARIES if (found := _version(name))},
        "python": platform.python_version(),
        "os": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
    }


def _of_device(device: Device) -> dict[str, Any]:
    """What a device says of itself, above all its build.

    A device that judges another build than the host torch has a method ``provenance() -> dict`` whose ``build`` is a
    dict with at least ``version``.
    """
    if hasattr(device, "provenance"):
        return dict(device.provenance())
    import torch

    return {"build": {"version": torch.__version__, "git_version": torch.version.git_version, "source": "host"}}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def _commit() -> str | None:
    """The commit of the suite's own checkout, with ``+`` if files differ from it; None outside one."""
    for start in (Path(__file__).parent, Path.cwd()):
        top = _git("rev-parse", "--show-toplevel", cwd=start)
        if top is None or not _is_ours(Path(top)):
            continue
        head = _git("rev-parse", "HEAD", cwd=start)
        return head and head + ("+" if _git("status", "--porcelain", cwd=start) else "")
    return None


def _is_ours(top: Path) -> bool:
    """Whether a checkout is the suite's: an installed copy may lie in the checkout of something else."""
    try:
        return f'name = "{_PACKAGE}"' in (top / "pyproject.toml").read_text(encoding="utf-8")
    except OSError:
        return False


def _git(*arguments: str, cwd: Path) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    """The processor's name as its maker writes it."""
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
