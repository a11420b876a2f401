"""Wheels of PyTorch for macOS: getting one with the user's own pip, and taking out what the kernels need."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import IO, NamedTuple

from conformance.devices.base import Unavailable
from metal_ops.air.archive import ArchiveError

_DYLIB = "torch/lib/libtorch_cpu.dylib"
_VERSION_FILE = "torch/version.py"
_LARGEST_DYLIB = 2 << 30  # 2.15.0's has 0.4 GiB; what claims five times that is not worth the disk
_LARGEST_VERSION_FILE = 1 << 16
_CHUNK = 1 << 20

# Kernels do not depend on the Python version: one that releases old and new have wheels for.
_PYTHON = "3.11"
_PLATFORMS = [f"macosx_{major}_0_arm64" for major in (11, 12, 13, 14, 15)]

_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,  # an encrypted member; and NotImplementedError for a feature that zipfile lacks
    ValueError,  # text that is not UTF-8
    OverflowError,  # an offset that no file can have
)


class Version(NamedTuple):
    """What a wheel says it was built from: PyTorch's version and, where given, the git commit."""

    version: str
    git_version: str | None


def download(version: str, folder: Path) -> Path:
    """Download the macOS wheel of torch ``version`` into ``folder`` and return its path.

    The user's own pip does it, with all of their settings but constraints: a cap on the version of the torch that they
    run must not keep them from looking at another one.

    Raises
    ------
    Unavailable
        There is no pip, or it could not get the wheel.
    """
    if importlib.util.find_spec("pip") is None:
        raise Unavailable(f"torch {version} is not cached, and this Python has no pip to fetch its macOS wheel with")
    command = [sys.executable, "-m", "pip", "download", "--no-input", "--progress-bar=off"]
    command += ["--no-deps", "--only-binary=:all:", "--implementation=cp", f"--python-version={_PYTHON}"]
    command += [f"--platform={platform}" for platform in _PLATFORMS]
    command += ["--dest", str(folder), f"torch=={version}"]
    succeeded, output = _run_pip(command, version)
    wheels = list(folder.glob("*.whl"))
    if not succeeded or len(wheels) != 1:
        raise Unavailable(f"torch {version} is not cached, and pip could not get its macOS wheel: {_reason(output)}")
    return wheels[0]


def _run_pip(command: list[str], version: str) -> tuple[bool, list[str]]:
    """Run pip; say so on standard error when the long download begins, not before: it may come to nothing."""
    output = []
    with subprocess.Popen(
        command,
        env=os.environ | {"PIP_CONSTRAINT": os.devnull},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as pip:
        for line in pip.stdout or ():
            output.append(" ".join(line.split()))
            if begun := re.match(r"Downloading \S+\.whl \((.+)\)", output[-1]):
                print(f"fetching the macOS wheel of torch {version} ({begun[1]}, once)", file=sys.stderr, flush=True)
    return pip.returncode == 0, output


def _reason(output: list[str]) -> str:
    """Condense pip's output to why it failed, on one line."""
    errors = [line.removeprefix("ERROR: ") for line in output if line.startswith("ERROR: ")]
    reason = errors[-1][:300] if errors else "it gave no reason"
    # Pip's last word is then "no matching distribution", as if there were no such version.
    unreached = any("after connection broken by" in line for line in output)
    return f"the package index could not be reached ({reason})" if unreached else reason


def unpack(wheel: IO[bytes], dylib: Path) -> Version:
    """Write the library that holds the kernels to ``dylib``, and return what the wheel was built from.

    Raises
    ------
    ArchiveError
        It is not a zip archive that can be read, or not a macOS wheel of torch.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            version = _version(archive)
            with _open(archive, _DYLIB, _LARGEST_DYLIB) as source, dylib.open("wb") as target:
                shutil.copyfileobj(source, target, _CHUNK)
            if dylib.stat().st_size != archive.getinfo(_DYLIB).file_size:
                raise ArchiveError(f"damaged wheel: {_DYLIB} is shorter than the wheel says")
    except ArchiveError:
        raise
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise ArchiveError("damaged wheel: an offset leads out of the file") from error
        raise
    except _ZIP_ERRORS as error:
        raise ArchiveError(f"damaged wheel: {' '.join(str(error).split()) or type(error).__name__}") from error
    return version


def _version(archive: zipfile.ZipFile) -> Version:
    with _open(archive, _VERSION_FILE, _LARGEST_VERSION_FILE) as source:
        text = source.read(_LARGEST_VERSION_FILE).decode("utf-8")
    version = re.search(r"""^__version__ = ['"]([\w.+!-]{1,80})['"]$""", text, re.MULTILINE | re.ASCII)
    if version is None:
        raise ArchiveError(f"{_VERSION_FILE} gives no version")
    commit = re.search(r"""^git_version = ['"]([0-9a-f]{7,64})['"]$""", text, re.MULTILINE)
    return Version(version[1], commit and commit[1])


def _open(archive: zipfile.ZipFile, name: str, largest: int) -> IO[bytes]:
    try:
        member = archive.getinfo(name)
    except KeyError:
        raise ArchiveError(f"not a macOS wheel of torch: it has no {name}") from None
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ArchiveError(f"damaged wheel: {name} has compression method {member.compress_type}, no wheel does")
    if member.file_size > largest:
        raise ArchiveError(f"{name} claims {member.file_size} bytes, at most {largest} are believed")
    return archive.open(member)
