"""Metal library archives (``MTLB``): which functions one holds, and the LLVM bitcode of each.

The layout, as far as compute kernels need it; all numbers are little-endian::

    header    "MTLB", 12 bytes of platform and versions, u64 size of the archive,
              then offset and size (u64 each) of: function list, public metadata, private metadata, bitcode
    function  u32 count, then an entry a function: u32 size of the entry, then tags up to "ENDT";
    list      a tag is 4 characters, u16 length, data
    tags      NAME text ending in NUL         TYPE u8, 2 is a kernel           HASH SHA-256 of the bitcode
              MDSZ u64 size of the bitcode    VERS u16 x 4: AIR, language      OFFT u64 x 3: public metadata, private
                                                                               metadata and bitcode, within their areas

Nothing is trusted: every length and offset is checked before it is used, and work is bounded by the size of the
input, never by a count read from it. The bitcode is not copied until it is asked for.
"""

from __future__ import annotations

import hashlib
import mmap
import re
import struct
from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview | mmap.mmap

MAGIC = b"MTLB"
KERNEL = 2
"""The :attr:`FunctionEntry.kind` of a compute kernel."""

_HEADER = struct.Struct("<4s12sQ8Q")
_U32 = struct.Struct("<I")
_U16 = struct.Struct("<H")
_AREAS = ("function list", "public metadata", "private metadata", "bitcode")
_END = b"ENDT"
_SMALLEST_ENTRY = _U32.size + len(_END)
# The tags that matter, with the size of their data; and the data of all but the name, one after the other.
_TAGS = {b"NAME": None, b"TYPE": 1, b"HASH": 32, b"MDSZ": 8, b"OFFT": 24, b"VERS": 8}
_FIXED = struct.Struct("<B32sQ3Q4H")
# An entry as compilers write it. With two lists of 19,000 entries to read whenever kernels are listed, it pays to match
# this first; entries with other tags, or in another order, are walked.
_USUAL_ENTRY = re.compile(
    rb"NAME(?P<length>..)(?P<NAME>[^\0]+\0)TYPE\x01\0(.)HASH\x20\0(.{32})"
    rb"MDSZ\x08\0(.{8})OFFT\x18\0(.{24})VERS\x08\0(.{8})ENDT",
    re.DOTALL,
)


class ArchiveError(ValueError):
    """The bytes are not what they should be; the message says what is wrong, and where."""


class FunctionEntry(NamedTuple):
    """A function of a library.

    ``kind`` is 2 for a kernel. ``sha256`` is what the archive says of the function's bitcode, which lies ``size`` bytes
    long at ``offset`` from the start of the archive. The versions are (major, minor).
    """

    name: str
    kind: int
    sha256: bytes
    size: int
    offset: int
    air_version: tuple[int, int]
    language_version: tuple[int, int]


class Library:
    """A parsed archive. Make one with :func:`open_library`."""

    def __init__(self, data: memoryview, functions: Mapping[str, FunctionEntry]) -> None:
        self._data = data
        self._functions = MappingProxyType(dict(functions))

    @property
    def functions(self) -> Mapping[str, FunctionEntry]:
        """The functions by name, in the archive's order."""
        return self._functions

    def bitcode(self, name: str) -> bytes:
        """Return the LLVM bitcode of the module that holds function ``name``, its hash checked.

        Raises
        ------
        LookupError
            The library has no function of this name.
        ArchiveError
            The bitcode is not the one whose SHA-256 the archive gives.
        """
        entry = self._functions.get(name)
        if entry is None:
            raise LookupError(f"the library has no function {name!r} (it has {len(self._functions)})")
        code = bytes(self._data[entry.offset : entry.offset + entry.size])
        found = hashlib.sha256(code)
        if found.digest() != entry.sha256:
            raise ArchiveError(
                f"bitcode of {name!r}: SHA-256 is {found.hexdigest()}, the archive says {entry.sha256.hex()}"
            )
        return code


def library_size(data: Buffer) -> int | None:
    """Return the size in bytes that a library at the start of ``data`` claims, or None if there is none."""
    if len(data) < _HEADER.size or bytes(data[:4]) != MAGIC:
        return None
    size: int = _HEADER.unpack_from(data)[2]
    return size


def open_library(data: Buffer) -> Library:
    """Parse the archive that ``data`` holds, from its first byte to its last.

    ``data`` is kept, not copied, and must not change. Bitcode is checked when it is asked for.

    Raises
    ------
    ArchiveError
        It is not a Metal library, is cut short, or contradicts itself.
    """
    view = memoryview(data).toreadonly()
    areas = _areas(view)
    return Library(view, _functions(view, areas))


class _Area(NamedTuple):
    name: str
    start: int
    end: int


def _areas(view: memoryview) -> list[_Area]:
    """Read the header: the four areas, in the order of ``_AREAS``."""
    if bytes(view[:4]) != MAGIC:
        raise ArchiveError(f"not a Metal library: starts with {bytes(view[:4])!r}, not {MAGIC!r}")
    if len(view) < _HEADER.size:
        raise ArchiveError(f"header is cut short: {len(view)} bytes of {_HEADER.size}")
    _, _, size, *numbers = _HEADER.unpack_from(view)
    if size != len(view):
        raise ArchiveError(f"header gives a size of {size} bytes, there are {len(view)}")
    areas = []
    for name, start, length in zip(_AREAS, numbers[::2], numbers[1::2], strict=True):
        # The function list's count is not part of its length.
        end = start + length + (_U32.size if name == "function list" else 0)
        if start < _HEADER.size or end > size:
            raise ArchiveError(f"{name} at {start}..{end} lies outside the archive's {_HEADER.size}..{size}")
        areas.append(_Area(name, start, end))
    in_order = sorted(areas, key=lambda area: (area.start, area.end))
    for before, after in pairwise(in_order):
        if before.end > after.start:
            raise ArchiveError(f"{before.name} (to {before.end}) overlaps {after.name} (from {after.start})")
    return areas


def _functions(view: memoryview, areas: list[_Area]) -> dict[str, FunctionEntry]:
    listing, *others = areas
    # A copy of the list alone: slices of bytes are much cheaper than slices of a view, and there are 100,000 of them.
    data = bytes(view[listing.start : listing.end])
    (count,) = _U32.unpack_from(data)
    if count * _SMALLEST_ENTRY > len(data):
        raise ArchiveError(f"function list gives a count of {count}, too many for its {len(data)} bytes")
    functions: dict[str, FunctionEntry] = {}
    at = _U32.size
    for index in range(count):
        try:
            end = _entry_end(data, at)
            entry = _entry(_tags(data, at + _U32.size, end), *others)
            if entry.name in functions:
                raise ArchiveError(f"name {entry.name!r} is there twice")
        except ArchiveError as error:
            raise ArchiveError(f"function {index} of {count}, at {listing.start + at}: {error}") from None
        functions[entry.name] = entry
        at = end
    if at != len(data):
        raise ArchiveError(f"function list has {len(data) - at} bytes left after its {count} functions")
    _refuse_overlaps(functions)
    return functions


def _entry_end(data: bytes, at: int) -> int:
    if at + _SMALLEST_ENTRY > len(data):
        raise ArchiveError("is beyond the end of the function list")
    size: int = _U32.unpack_from(data, at)[0]
    if not _SMALLEST_ENTRY <= size <= len(data) - at:
        raise ArchiveError(f"entry gives a size of {size} bytes, {len(data) - at} are left in the function list")
    return at + size


def _tags(data: bytes, at: int, end: int) -> tuple[bytes, ...]:
    """Return the data of the tags that ``_TAGS`` names, in its order, of the entry at ``at``..``end``."""
    usual = _USUAL_ENTRY.match(data, at, end)
    if usual and usual.end() == end and usual["length"] == _U16.pack(len(usual["NAME"])):
        return usual.groups()[1:]
    found = dict(_walk(data, at, end))
    for tag, size in _TAGS.items():
        if tag not in found:
            raise ArchiveError(f"tag {tag!r} is missing")
        if size is not None and len(found[tag]) != size:
            raise ArchiveError(f"tag {tag!r} has {len(found[tag])} bytes of data, {size} expected")
    return tuple(found[tag] for tag in _TAGS)


def _walk(data: bytes, at: int, end: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the tags of an entry, in any order, up to the end tag, which must end at ``end``."""
    last = end - len(_END)
    seen = set()
    while (tag := data[at : at + 4]) != _END:
        start = at + 6
        if start > last:
            raise ArchiveError("its tags run over its end")
        at = start + _U16.unpack_from(data, start - 2)[0]
        if at > last:
            raise ArchiveError(f"tag {tag!r} runs over its end")
        if tag in seen:
            raise ArchiveError(f"tag {tag!r} is there twice")
        seen.add(tag)
        yield tag, data[start:at]
    if at != last:
        raise ArchiveError(f"{last - at} bytes follow its end tag")


def _entry(tags: tuple[bytes, ...], public: _Area, private: _Area, code: _Area) -> FunctionEntry:
    raw_name, *fixed = tags
    name = raw_name[:-1].decode("ascii", "replace")
    if raw_name[-1:] != b"\0" or not name or not name.isascii() or not name.isprintable():
        raise ArchiveError(f"name {raw_name[:80]!r} is not printable ASCII with a closing NUL")
    kind, sha256, size, in_public, in_private, in_code, *versions = _FIXED.unpack(b"".join(fixed))
    start = code.start + in_code
    if start + size > code.end:
        raise ArchiveError(f"bitcode of {name!r} at {start}..{start + size} runs over the end of its area, {code.end}")
    if public.start + in_public > public.end or private.start + in_private > private.end:
        raise ArchiveError(f"metadata of {name!r} at {in_public} and {in_private} starts behind the end of its area")
    return FunctionEntry(name, kind, sha256, size, start, (versions[0], versions[1]), (versions[2], versions[3]))


def _refuse_overlaps(functions: Mapping[str, FunctionEntry]) -> None:
    """Functions may share a module, but two modules may not share bytes."""
    spans = sorted((entry.offset, entry.size, entry.name) for entry in functions.values())
    for (start, size, name), (next_start, next_size, next_name) in pairwise(spans):
        if start + size > next_start and (start, size) != (next_start, next_size):
            raise ArchiveError(f"bitcode of {name!r} ({start}..{start + size}) overlaps {next_name!r} ({next_start})")
