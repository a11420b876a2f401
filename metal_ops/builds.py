"""Builds: whose kernels are judged. From a version, a wheel, a dylib or a bare Metal library to kernel libraries.

What is taken out of a wheel is kept in the cache folder, and the wheel is not::

    builds/<SHA-256 of the wheel or file>/    manifest.json, and <section>.metallib for each library
    versions/<version>.json                   the hash of the wheel that was fetched for it
    files/<SHA-256 of a path>.json            the hash that the file had, with its size and time
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import shutil
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any, Literal

from conformance.devices.base import Unavailable
from metal_ops import cache
from metal_ops.air import archive, macho

DEFAULT_BUILD = "2.15.0"
DEFAULT_LIBRARY = "metal_basic"
"""The library that a Mac takes on every supported system; a bare Metal library gets this name."""

Source = Literal["wheel", "dylib", "metallib"]

_VERSION = re.compile(r"\d+(\.\d+)+((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9.]+)?", re.ASCII)
_ZIP_MAGIC = b"PK\x03\x04"
_MANIFEST = "manifest.json"
_SCHEMA = 1


@dataclass(frozen=True)
class Build:
    """A build in the cache.

    ``version`` is PyTorch's, or ``local-`` and the start of the hash where the file does not tell; ``sha256`` is that
    of the wheel or file; ``libraries`` are the cached Metal libraries by the name of their section.
    """

    version: str
    sha256: str
    source: Source
    file_name: str
    git_version: str | None
    libraries: dict[str, Path] = field(compare=False)

    def library(self, name: str = DEFAULT_LIBRARY) -> archive.Library:
        """Open one of the build's libraries; its bytes are mapped, not read.

        Raises
        ------
        LookupError
            The build has no library of this name.
        Unavailable
            The cached file is damaged.
        """
        if name not in self.libraries:
            raise LookupError(f"build {self.version} has no library {name!r}, it has {', '.join(self.libraries)}")
        path = self.libraries[name]
        try:
            return archive.open_library(_map(path))
        except (archive.ArchiveError, OSError) as error:
            raise Unavailable(f"library {name} of build {self.version} is damaged: {error}; delete {path}") from error

    def provenance(self) -> dict[str, str | None]:
        """Return what a record says of the build: no path of this machine, the same on every machine."""
        return {
            "version": self.version,
            "sha256": self.sha256,
            "source": self.source,
            "file_name": self.file_name,
            "git_version": self.git_version,
        }


def open_build(spec: str, *, fetch: bool = True) -> Build:
    """Return the build that ``spec`` names, from the cache if it is there.

    Parameters
    ----------
    spec
        A version of PyTorch, such as "2.15.0", whose macOS wheel is fetched with pip once; or the path of a wheel, of a
        ``libtorch_cpu.dylib`` or of a Metal library. What looks like a version is one: write ``./2.15.0`` for a file.
    fetch
        Whether a version that is not cached may be fetched.

    Raises
    ------
    Unavailable
        It cannot be had; the message is one line.
    """
    try:
        if _VERSION.fullmatch(spec):
            return _open_version(spec, fetch=fetch)
        return _open_file(Path(spec))
    except archive.ArchiveError as error:
        raise Unavailable(f"cannot use {spec!r}: {error}") from error
    except OSError as error:
        raise Unavailable(f"cannot use {spec!r}: {error}") from error


def cached_builds() -> list[Build]:
    """Return every build in the cache, oldest version first."""
    folders = cache.folder().glob("builds/*")
    builds = [build for folder in folders if (build := _load(folder.name))]
    return sorted(builds, key=lambda build: ([int(part) for part in re.findall(r"\d+", build.version)], build.sha256))


def _open_version(version: str, *, fetch: bool) -> Build:
    note = cache.folder() / "versions" / f"{version}.json"
    if build := _load(cache.read_note(note).get("sha256")):
        return build
    if not fetch:
        raise Unavailable(f"torch {version} is not cached: fetch it with `conformance builds --fetch {version}`")
    from metal_ops import wheels

    with cache.scratch() as scratch:
        build = _add(wheels.download(version, scratch), scratch)
    cache.write_note(note, {"sha256": build.sha256})
    return build


def _open_file(path: Path) -> Build:
    try:
        state = path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise Unavailable(f"no build {str(path)!r}: not a version such as {DEFAULT_BUILD}, and no such file") from None
    if not path.is_file():
        raise Unavailable(f"no build {str(path)!r}: not a file")
    fingerprint = [state.st_size, state.st_mtime_ns, state.st_ino]
    note = cache.folder() / "files" / f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()}.json"
    noted = cache.read_note(note)
    if noted.get("fingerprint") == fingerprint and (build := _load(noted.get("sha256"))):
        return build
    with cache.scratch() as scratch:
        build = _add(path, scratch)
    cache.write_note(note, {"sha256": build.sha256, "fingerprint": fingerprint})
    return build


def _add(path: Path, scratch: Path) -> Build:
    """Put the build that the file at ``path`` holds into the cache, and return it."""
    image = scratch / "image"
    with path.open("rb") as file:
        source = _source(file)
        described = _unpack_wheel(file, image) if source == "wheel" else _copy(file, image)
    content = memoryview(_map(image))
    sections = {DEFAULT_LIBRARY: content} if source == "metallib" else macho.metal_sections(content)
    if not sections:
        raise archive.ArchiveError("it holds no Metal library")
    folder = scratch / "build"
    folder.mkdir()
    libraries = {name: _keep(folder, name, section) for name, section in sections.items()}
    manifest = {"schema": _SCHEMA, "source": source, "file_name": path.name, **described, "libraries": libraries}
    cache.write_note(folder / _MANIFEST, manifest)
    sha256 = described["sha256"]
    return cache.publish(folder, _folder(sha256), lambda: _load(sha256))


def _source(file: BufferedReader) -> Source:
    start = file.read(4)
    file.seek(0)
    if start == _ZIP_MAGIC:
        return "wheel"
    if start == archive.MAGIC:
        return "metallib"
    if macho.is_macho(start):
        return "dylib"
    raise archive.ArchiveError("neither a wheel nor a Mach-O library nor a Metal library")


def _unpack_wheel(file: BufferedReader, image: Path) -> dict[str, Any]:
    from metal_ops import wheels

    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return {"sha256": sha256, **wheels.unpack(file, image)._asdict()}


def _copy(file: BufferedReader, image: Path) -> dict[str, Any]:
    # Only our own copy is mapped: when a file is cut short while it is mapped, reading it kills the process.
    with image.open("w+b") as copy:
        shutil.copyfileobj(file, copy, 1 << 20)
        copy.seek(0)
        sha256 = hashlib.file_digest(copy, "sha256").hexdigest()
    return {"sha256": sha256, "version": f"local-{sha256[:8]}", "git_version": None}


def _keep(folder: Path, name: str, section: memoryview) -> dict[str, int]:
    """Write a section to ``folder`` if it is a whole Metal library, and return what the manifest says of it."""
    try:
        functions = len(archive.open_library(section).functions)
    except archive.ArchiveError as error:
        raise archive.ArchiveError(f"library {name}: {error}") from error
    with _library_file(folder, name).open("xb") as file:
        file.write(section)
    return {"size": len(section), "functions": functions}


def _load(sha256: str | None) -> Build | None:
    """Return the cached build of this hash, or None if it is not there as a whole."""
    if not sha256:
        return None
    manifest = cache.read_note(_folder(sha256) / _MANIFEST)
    try:
        if manifest["schema"] != _SCHEMA:
            return None
        libraries = {name: _library_file(_folder(sha256), name) for name in manifest["libraries"]}
        if any(path.stat().st_size != manifest["libraries"][name]["size"] for name, path in libraries.items()):
            return None
        described = {key: manifest[key] for key in ("version", "sha256", "source", "file_name", "git_version")}
    except (OSError, KeyError, TypeError):
        return None
    return Build(**described, libraries=libraries)


def _folder(sha256: str) -> Path:
    return cache.folder() / "builds" / sha256


def _library_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.metallib"


def _map(path: Path) -> mmap.mmap | bytes:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""  # cannot be mapped
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
