"""Writers of small valid Metal libraries, Mach-O files and wheels, and of damaged copies of any bytes."""

from __future__ import annotations

import hashlib
import io
import random
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

ARM64 = 0x0100000C
X86_64 = 0x01000007


@dataclass(frozen=True)
class Function:
    """A function to be written; tags None stands for the usual ones in the usual order."""

    name: str
    bitcode: bytes
    kind: int = 2
    versions: tuple[int, int, int, int] = (2, 6, 3, 1)
    tags: Sequence[tuple[bytes, bytes]] | None = None

    def usual_tags(self, offset: int, metadata: int) -> list[tuple[bytes, bytes]]:
        return [
            (b"NAME", self.name.encode() + b"\0"),
            (b"TYPE", bytes([self.kind])),
            (b"HASH", hashlib.sha256(self.bitcode).digest()),
            (b"MDSZ", struct.pack("<Q", len(self.bitcode))),
            (b"OFFT", struct.pack("<3Q", metadata, metadata, offset)),
            (b"VERS", struct.pack("<4H", *self.versions)),
        ]


FUNCTIONS = tuple(Function(f"kernel_{n}_float", bytes(range(n, n + 40 + 8 * n))) for n in range(4))


def entry(tags: Sequence[tuple[bytes, bytes]]) -> bytes:
    body = b"".join(tag + struct.pack("<H", len(data)) + data for tag, data in tags) + b"ENDT"
    return struct.pack("<I", 4 + len(body)) + body


def metallib(functions: Sequence[Function] = FUNCTIONS) -> bytes:
    nothing = entry([])
    entries, bitcode = [], b""
    for index, function in enumerate(functions):
        tags = function.tags
        entries.append(entry(function.usual_tags(len(bitcode), index * len(nothing)) if tags is None else tags))
        bitcode += function.bitcode
    listing, metadata = b"".join(entries), nothing * len(functions)
    public = 88 + 4 + len(listing) + 4  # "ENDT" lies between
    private = public + len(metadata)
    code = private + len(metadata)
    areas = (88, len(listing), public, len(metadata), private, len(metadata), code, len(bitcode))
    header = struct.pack("<4s12sQ8Q", b"MTLB", bytes(12), code + len(bitcode), *areas)
    return header + struct.pack("<I", len(functions)) + listing + b"ENDT" + metadata * 2 + bitcode


def macho(sections: Mapping[str, bytes], *, cpu: int = ARM64) -> bytes:
    """Write a Mach-O file of two segments, the second with ``sections``, and one command that is not a segment."""
    commands_size = 72 + 80 + 72 + 80 * len(sections) + 24
    start = offset = 32 + commands_size
    headers = b""
    for name, content in sections.items():
        headers += struct.pack("<16s16s2Q8I", name.encode(), b"__TEXT", 0, len(content), offset, *[0] * 7)
        offset += len(content)

    def segment(name: bytes, sections: bytes) -> bytes:
        count = len(sections) // 80
        return struct.pack("<2I16s4Q4I", 0x19, 72 + len(sections), name, 0, 0, 0, offset, 5, 5, count, 0) + sections

    zero_filled = struct.pack("<16s16s2Q8I", b"__bss", b"__DATA", 0, 1 << 40, 0, 0, 0, 0, 1, 0, 0, 0)
    identity = struct.pack("<2I16s", 0x1B, 24, bytes(16))
    commands = segment(b"__DATA", zero_filled) + segment(b"__TEXT", headers) + identity
    assert len(commands) == commands_size
    header = struct.pack("<8I", 0xFEEDFACF, cpu, 0, 6, 3, commands_size, 0, 0)
    assert len(header + commands) == start
    return header + commands + b"".join(sections.values())


def universal(parts: Mapping[int, bytes], *, wide: bool = False) -> bytes:
    """Write a universal file; ``wide`` for the form with 64-bit offsets."""
    layout = struct.Struct(">2I2Q2I" if wide else ">5I")
    offset = 8 + layout.size * len(parts)
    header = struct.pack(">2I", 0xCAFEBABF if wide else 0xCAFEBABE, len(parts))
    for cpu, content in parts.items():
        header += layout.pack(cpu, 0, offset, len(content), 0, *[0] * wide)
        offset += len(content)
    return header + b"".join(parts.values())


def dylib() -> bytes:
    return macho({"__text": bytes(16), "metal_basic": metallib(), "metal_40": metallib(FUNCTIONS[:2])})


def wheel(library: bytes | None = None, *, version: str = "9.9.9", compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Write a wheel that pip takes for torch, with ``library`` (default: :func:`dylib`) where torch has it."""
    info = f"torch-{version}.dist-info"
    members = {
        "torch/version.py": f"__version__ = '{version}'\ngit_version = '{'ab' * 20}'\n",
        "torch/lib/libtorch_cpu.dylib": dylib() if library is None else library,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-macosx_14_0_arm64\n",
        f"{info}/RECORD": "",
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name), text, compression)
    return content.getvalue()


def mutations(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Yield ``count`` damaged copies of ``data``: cut short, bits flipped, numbers replaced, pieces moved."""
    draw = random.Random(seed)
    for _ in range(count):
        damaged = bytearray(data)
        for _ in range(draw.choice((1, 1, 1, 2, 5))):
            _damage(damaged, draw)
        yield bytes(damaged)


def _damage(data: bytearray, draw: random.Random) -> None:
    at = draw.randrange(len(data)) if data else 0
    length = draw.randrange(1, 64)
    kind = draw.choice(("cut", "flip", "flip", "number", "number", "remove", "repeat", "zero"))
    if kind == "cut":
        del data[at:]
    elif kind == "flip" and data:
        data[at] ^= 1 << draw.randrange(8)
    elif kind == "number":
        width = draw.choice((2, 4, 8))
        value = draw.choice((0, 1, 4, 87, len(data), len(data) - 1, 1 << 15, 1 << 31, 1 << 63, (1 << 64) - 1))
        data[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, draw.choice(("little", "big")))
    elif kind == "remove":
        del data[at : at + length]
    elif kind == "repeat":
        data[at:at] = data[at : at + length]
    elif kind == "zero":
        data[at : at + length] = bytes(len(data[at : at + length]))
