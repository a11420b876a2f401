"""The few Python sources of a macOS wheel of torch that tests read; the cache has them in ``sources/<version>.zip``."""

from __future__ import annotations

import fnmatch
import zipfile
from pathlib import Path

from metal_ops import cache, wheels

_MEMBERS = ("torch/mps/*.py", "torch/accelerator/*.py", "torch/backends/mps/*.py", "torch/_C/__init__.pyi")


def python_sources(version: str) -> dict[str, str]:
    """Give the texts by path inside the wheel; the wheel is fetched with pip unless they are cached.

    Raises
    ------
    Unavailable
        Pip cannot get the wheel.
    """
    kept = cache.folder() / "sources" / f"{version}.zip"
    if not kept.exists():
        with cache.scratch() as scratch:
            _keep(wheels.download(version, scratch), scratch / "sources.zip")
            kept.parent.mkdir(parents=True, exist_ok=True)
            (scratch / "sources.zip").replace(kept)
    with zipfile.ZipFile(kept) as archive:
        return {name: archive.read(name).decode("utf-8") for name in archive.namelist()}


def _keep(wheel: Path, target: Path) -> None:
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in source.namelist():
            if any(fnmatch.fnmatch(name, pattern) for pattern in _MEMBERS):
                archive.writestr(name, source.read(name))
