"""A kernel compiled for this host: from verified bitcode to object code, kept in the cache between processes."""

from __future__ import annotations

import functools
import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metal_ops import cache
from metal_ops.air.archive import Library
from metal_ops.air.kernel import Signature, read_signature

if TYPE_CHECKING:
    from metal_ops.air.lowering.counting import Work


@dataclass(frozen=True)
class Mode:
    """How kernels are compiled: ``judging`` checks every access and rounds elementary functions correctly."""

    name: str
    checked: bool
    exact: bool
    level: int
    counted: bool = False


JUDGING = Mode("judging", checked=True, exact=True, level=0)
"""Bounds checks on every access, correctly rounded elementary functions. Compiled without optimisation: that takes an
eighth of the time, the checks leave little to optimise, and cases are small."""
FAST = Mode("fast", checked=False, exact=False, level=3)
"""No checks, the platform's elementary functions, vectorised."""
COUNTING = Mode("counting", checked=True, exact=True, level=0, counted=True)
"""As for judging, and every launch reports its work."""


@dataclass(frozen=True)
class Program:
    """A kernel's signature and its object code for this host and ``mode``; of a counted one what its blocks do."""

    signature: Signature
    object_code: bytes
    mode: Mode
    blocks: tuple[Work, ...] = ()


def disassemble(bitcode: bytes) -> str:
    """The textual AIR of a kernel's bitcode, which must have been checked against the archive's hash before."""
    import llvmlite.binding as llvm

    return str(llvm.parse_bitcode(bitcode))


def signature(library: Library, name: str) -> Signature:
    """The signature of kernel ``name``; nothing is compiled."""
    return read_signature(disassemble(library.bitcode(name)))


@functools.cache
def emulator_version() -> str:
    """A hash of the emulator's own sources and of LLVM's version: compiled kernels of another emulator are not used."""
    import llvmlite.binding as llvm

    digest = hashlib.sha256(repr(llvm.llvm_version_info).encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def compile_kernel(library: Library, name: str, mode: Mode) -> Program:
    """Compile kernel ``name``, or take its object code from the cache.

    Raises :class:`~metal_ops.air.archive.ArchiveError` if the archive's kernel is damaged and
    :class:`~metal_ops.air.lowering.LoweringError` if it uses something that is not implemented.
    """
    bitcode = library.bitcode(name)
    ir = disassemble(bitcode)
    path = _object_path(hashlib.sha256(bitcode).hexdigest(), mode)
    with suppress(OSError):
        return _program(ir, read_signature(ir), path.read_bytes(), mode)
    program = compile_ir(ir, mode)
    _keep(path, program.object_code)
    return program


def compile_ir(ir: str, mode: Mode) -> Program:
    """Compile the kernel of a printed AIR module; raises as :func:`compile_kernel`."""
    from metal_ops.air import host
    from metal_ops.air.lowering import Options, lower

    described = read_signature(ir)
    vectors = not mode.exact and host.vector_library() is not None
    lowered = lower(ir, described, Options(mode.checked, mode.exact, host.processor(), vectors, mode.counted))
    return _program(ir, described, host.optimise(lowered, mode.level), mode)


def _program(ir: str, described: Signature, object_code: bytes, mode: Mode) -> Program:
    from metal_ops.air.lowering import blocks

    return Program(described, object_code, mode, tuple(blocks(ir)) if mode.counted else ())


def _object_path(sha256: str, mode: Mode) -> Path:
    from metal_ops.air import host

    vectors = "v" if host.vector_library() is not None else "s"
    machine = hashlib.sha256(f"{host.processor()} {host.features()} {vectors}".encode()).hexdigest()[:16]
    return cache.folder() / "objects" / f"{emulator_version()}-{machine}" / mode.name / f"{sha256}.o"


def _keep(path: Path, data: bytes) -> None:
    """Write by a rename, so that others see a whole file or none. A cache that cannot be written is no error."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        unfinished.write_bytes(data)
        unfinished.replace(path)


def loaded(program: Program) -> tuple[Any, int]:
    """A fresh copy of the program in memory, as (engine to keep alive, address of its entry)."""
    from metal_ops.air import host

    engine = host.load(program.object_code)
    return engine, int(engine.get_function_address("air.run"))
