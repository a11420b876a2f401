"""Mach-O files, as far as it takes to find the Metal libraries that a ``.dylib`` carries as sections.

PyTorch links each of its libraries in as a section of ``__TEXT``, one a language version; the names differ between
releases (``metal_basic``, ``metal_bfloat``, ``metal_40``). Sections are found by what they hold, and keep their names.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from metal_ops.air.archive import ArchiveError, Buffer, library_size

_HEADER = struct.Struct("<8I")
_MAGIC = 0xFEEDFACF
_COMMAND = struct.Struct("<2I")
_SEGMENT = 0x19
_SEGMENT_COMMAND = struct.Struct("<2I16s4Q4I")
_SECTION = struct.Struct("<16s16s2Q8I")
_ZERO_FILLED = {0x1, 0xC, 0x12}  # section types without bytes in the file: zero fill, its 4 GB and thread-local kinds

_FAT_HEADER = struct.Struct(">2I")
_FAT_SLICES = {0xCAFEBABE: struct.Struct(">5I"), 0xCAFEBABF: struct.Struct(">2I2Q2I")}
_ARM64 = 0x0100000C

_MAGICS = {_MAGIC.to_bytes(4, "little"), *(magic.to_bytes(4, "big") for magic in _FAT_SLICES)}


class MachOError(ArchiveError):
    """The bytes are not a Mach-O file that can be read; the message says what is wrong, and where."""


def is_macho(data: bytes) -> bool:
    """Say whether ``data``, the first bytes of a file, begins a Mach-O file of a kind that can be read here."""
    return data[:4] in _MAGICS


def metal_sections(data: Buffer) -> dict[str, memoryview]:
    """Return the Metal libraries in a 64-bit Mach-O file, by the name of the section that holds each.

    Of a universal file the arm64 part is read. The views are of ``data``, nothing is copied; each is as long as the
    library in it says. The libraries themselves are not parsed.

    Raises
    ------
    MachOError
        It is not a Mach-O file, is cut short, contradicts itself, or is universal without arm64.
    """
    view = _thin(memoryview(data).toreadonly())
    libraries: dict[str, memoryview] = {}
    for raw_name, content in _sections(view):
        size = library_size(content)
        if size is None:
            continue
        name = raw_name.rstrip(b"\0").decode("ascii", "replace")
        if not re.fullmatch(r"[A-Za-z0-9_]+", name):
            raise MachOError(f"a section with a Metal library has the name {raw_name!r}, not a plain word")
        if name in libraries:
            raise MachOError(f"section {name!r} with a Metal library is there twice")
        if size > len(content):
            raise MachOError(f"section {name!r}: its library gives a size of {size} bytes, there are {len(content)}")
        libraries[name] = content[:size]
    if sum(map(len, libraries.values())) > len(view):
        # Or a small file could claim any number of large libraries, all in the same place.
        raise MachOError("its sections with Metal libraries overlap")
    return libraries


def _thin(view: memoryview) -> memoryview:
    """Return the arm64 part of a universal file, any other file as it is."""
    if len(view) < _FAT_HEADER.size:
        raise MachOError(f"not a Mach-O file: {len(view)} bytes long")
    magic, count = _FAT_HEADER.unpack_from(view)
    layout = _FAT_SLICES.get(magic)
    if layout is None:
        return view
    if _FAT_HEADER.size + count * layout.size > len(view):
        raise MachOError(f"universal header gives {count} architectures, too many for {len(view)} bytes")
    for index in range(count):
        cpu, _, offset, size, *_ = layout.unpack_from(view, _FAT_HEADER.size + index * layout.size)
        if cpu == _ARM64:
            return _part(view, offset, size, "the arm64 part")
    raise MachOError(f"universal file of {count} architectures, none of them arm64")


def _sections(view: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Yield name and content of every section that has bytes in the file."""
    if len(view) < _HEADER.size:
        raise MachOError(f"header is cut short: {len(view)} bytes of {_HEADER.size}")
    magic, _, _, _, count, commands_size, *_ = _HEADER.unpack_from(view)
    if magic != _MAGIC:
        raise MachOError(f"not a 64-bit little-endian Mach-O file: starts with {bytes(view[:4]).hex()}")
    commands = _part(view, _HEADER.size, commands_size, "the load commands")
    at = 0
    for index in range(count):
        if at + _COMMAND.size > len(commands):
            raise MachOError(f"load command {index} of {count} is behind the end of the load commands")
        kind, size = _COMMAND.unpack_from(commands, at)
        if size < _COMMAND.size:
            raise MachOError(f"load command {index} of {count} gives a size of {size} bytes")
        command = _part(commands, at, size, f"load command {index} of {count}")
        if kind == _SEGMENT:
            yield from _segment_sections(view, command, index)
        at += size


def _segment_sections(view: memoryview, command: memoryview, index: int) -> Iterator[tuple[bytes, memoryview]]:
    if len(command) < _SEGMENT_COMMAND.size:
        raise MachOError(f"load command {index}: a segment in {len(command)} bytes, too few")
    count = _SEGMENT_COMMAND.unpack_from(command)[-2]
    if _SEGMENT_COMMAND.size + count * _SECTION.size > len(command):
        raise MachOError(f"load command {index}: {count} sections in {len(command)} bytes, too many")
    for number in range(count):
        section = _SECTION.unpack_from(command, _SEGMENT_COMMAND.size + number * _SECTION.size)
        name, _, _, size, offset, _, _, _, flags, *_ = section
        if flags & 0xFF not in _ZERO_FILLED:
            yield name, _part(view, offset, size, f"section {name.rstrip(bytes(1))!r}")


def _part(view: memoryview, start: int, size: int, what: str) -> memoryview:
    if start + size > len(view):
        raise MachOError(f"{what} at {start}..{start + size} runs over the end, {len(view)}")
    return view[start : start + size]
