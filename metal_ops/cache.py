"""The cache folder: whole entries that appear by a rename, and small notes that lead to them.

``METAL_CONFORMANCE_CACHE`` names the folder; without it, it is where the platform keeps caches. Any number of processes
may share it: every change is a rename into place, so all of them succeed, and the first one's work is kept. Readers
need no lock; who replaces an entry does, or two would take each other's new one for the damaged one.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

_T = TypeVar("_T")
_ABANDONED_SECONDS = 24 * 3600


def folder() -> Path:
    """Return the cache folder; it need not exist."""
    if chosen := os.environ.get("METAL_CONFORMANCE_CACHE"):
        return Path(chosen)
    import platformdirs

    return platformdirs.user_cache_path("metal-conformance", appauthor=False)


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder for work in progress, and clear away those that killed processes left behind."""
    parent = folder() / "scratch"
    parent.mkdir(parents=True, exist_ok=True)
    for left in parent.iterdir():
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(dir=parent, ignore_cleanup_errors=True) as name:
        yield Path(name)


def publish(work: Path, target: Path, load: Callable[[], _T | None]) -> _T:
    """Rename folder ``work`` to ``target`` and return what ``load`` finds there.

    What another process put there first is kept. Where ``load`` gives None what is there is damaged, and gives way.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with _lock(target.parent):
        if (entry := load()) is None:
            with suppress(FileNotFoundError):
                target.rename(work.with_name("damaged"))
            work.rename(target)
            entry = load()
    if entry is None:
        raise OSError(errno.EIO, "what was written to the cache cannot be read back", str(target))
    return entry


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    """Keep other processes out. The system opens the lock when a process ends, however it ends."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read_note(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of the cache; an empty one if there is none, for it can be made anew."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def write_note(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON object to a file of the cache, as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    unfinished.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)
