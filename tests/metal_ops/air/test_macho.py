import struct
import time

import pytest

from metal_ops.air.archive import ArchiveError, open_library
from metal_ops.air.macho import MachOError, is_macho, metal_sections
from tests.metal_ops.air import synthetic
from tests.metal_ops.air.synthetic import ARM64, FUNCTIONS, X86_64, macho, metallib, universal

PATIENCE_SECONDS = 2.0
FIRST_SECTION = 32 + 72 + 80 + 72


def patched(offset: int, layout: str, *values) -> bytes:
    data = bytearray(macho({"metal_basic": metallib()}))
    struct.pack_into(layout, data, offset, *values)
    return bytes(data)


def test_libraries_are_found_by_content_and_keep_the_names_of_their_sections():
    sections = metal_sections(synthetic.dylib())
    assert {name: bytes(view) for name, view in sections.items()} == {
        "metal_basic": metallib(),
        "metal_40": metallib(FUNCTIONS[:2]),
    }


def test_padding_after_a_library_is_not_part_of_it():
    assert bytes(metal_sections(macho({"metal_x": metallib() + bytes(9)}))["metal_x"]) == metallib()


def test_a_file_without_libraries_has_none():
    assert metal_sections(macho({"__text": b"MTLB"})) == {}


@pytest.mark.parametrize("wide", [False, True])
def test_the_arm64_part_of_a_universal_file_is_read(wide):
    parts = {X86_64: macho({"metal_old": metallib()}, cpu=X86_64), ARM64: synthetic.dylib()}
    assert list(metal_sections(universal(parts, wide=wide))) == ["metal_basic", "metal_40"]
    del parts[ARM64]
    with pytest.raises(MachOError, match="1 architectures, none of them arm64"):
        metal_sections(universal(parts, wide=wide))


@pytest.mark.parametrize("data", [synthetic.dylib(), universal({}), universal({}, wide=True)])
def test_magic_numbers(data):
    assert is_macho(data[:4])
    assert not is_macho(data[1:5])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a Mach-O file"),
        (bytes(100), "not a 64-bit little-endian Mach-O file: starts with 00000000"),
        (patched(0, ">I", 0xFEEDFACF), "not a 64-bit little-endian Mach-O file"),
        (macho({})[:20], "header is cut short"),
        (patched(20, "<I", 0xFFFFFFFF), "the load commands at 32..4294967327 runs over the end"),
        (patched(16, "<I", 0xFFFFFFFF), "load command 3 of 4294967295 is behind the end"),
        (patched(36, "<I", 0), "load command 0 of 3 gives a size of 0"),
        (patched(36, "<I", 1 << 20), "load command 0 of 3 at 0..1048576 runs over"),
        (patched(36, "<I", 60), "load command 0: a segment in 60 bytes"),
        (patched(32 + 64, "<I", 0xFFFFFFFF), "load command 0: 4294967295 sections in 152 bytes"),
        (patched(FIRST_SECTION, "<16s", b"../metal"), "not a plain word"),
        (patched(FIRST_SECTION + 40, "<Q", 1 << 62), "section b'metal_basic' at .* runs over the end"),
        (patched(FIRST_SECTION + 40, "<Q", 100), "section 'metal_basic': its library gives a size"),
        (macho({"metal": metallib(), "metal\0": metallib()}), "section 'metal' .* is there twice"),
        (struct.pack(">2I", 0xCAFEBABE, 0xFFFFFFFF), "4294967295 architectures, too many"),
        (universal({ARM64: synthetic.dylib()})[:-1], "the arm64 part at .* runs over the end"),
    ],
)
def test_malformed(data, message):
    with pytest.raises(MachOError, match=message):
        metal_sections(data)


def test_sections_that_claim_the_same_library_many_times():
    one = macho({f"metal_{n}": b"" for n in range(4)} | {"metal_x": metallib()})
    data = bytearray(one)
    where = struct.unpack_from("<QI", data, FIRST_SECTION + 80 * 4 + 40)
    for n in range(4):
        struct.pack_into("<QI", data, FIRST_SECTION + 80 * n + 40, *where)
    with pytest.raises(MachOError, match="overlap"):
        metal_sections(data)


def complaint(data: bytes) -> str | None:
    """Open the libraries, and return what an ArchiveError says; any other exception gets out."""
    try:
        libraries = [open_library(section) for section in metal_sections(data).values()]
    except ArchiveError as error:
        return str(error)
    return None if libraries else "no library"


def test_cut_short_anywhere():
    data = universal({ARM64: macho({"metal_basic": metallib(FUNCTIONS[:1])})})
    assert complaint(data) is None
    assert all(complaint(data[:length]) for length in range(len(data)))


@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_mutations(seed):
    harmless = 0
    data = macho({"metal_basic": metallib(FUNCTIONS[:1])})
    for damaged in synthetic.mutations(universal({ARM64: data}) if seed == 0 else data, 1000, seed):
        begun = time.perf_counter()
        message = complaint(damaged)
        assert time.perf_counter() - begun < PATIENCE_SECONDS
        assert "\n" not in (message or "")
        harmless += message is None
    assert 20 < harmless < 800
