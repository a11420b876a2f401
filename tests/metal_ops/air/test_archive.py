import hashlib
import struct
import time

import pytest

from metal_ops.air.archive import ArchiveError, FunctionEntry, open_library
from tests.metal_ops.air import synthetic
from tests.metal_ops.air.synthetic import FUNCTIONS, Function, metallib

PATIENCE_SECONDS = 2.0


def patched(offset: int, layout: str, *values: int) -> bytes:
    data = bytearray(metallib())
    struct.pack_into(layout, data, offset, *values)
    return bytes(data)


def with_tags(change) -> bytes:
    """A library with one function, whose tags (a dict) are changed by ``change``."""
    function = FUNCTIONS[0]
    tags = dict(function.usual_tags(0, 0))
    change(tags)
    return metallib([Function(function.name, function.bitcode, tags=list(tags.items()))])


def test_functions_keep_the_order_of_the_archive_and_say_what_it_says():
    library = open_library(metallib())
    assert list(library.functions) == [function.name for function in FUNCTIONS]
    for function in FUNCTIONS:
        entry = library.functions[function.name]
        assert entry == FunctionEntry(
            function.name,
            2,
            hashlib.sha256(function.bitcode).digest(),
            len(function.bitcode),
            entry.offset,
            (2, 6),
            (3, 1),
        )
        assert library.bitcode(function.name) == function.bitcode


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_will_do(kind):
    assert open_library(kind(metallib())).bitcode(FUNCTIONS[1].name) == FUNCTIONS[1].bitcode


def test_an_empty_library_is_one():
    assert not open_library(metallib([])).functions


def test_unknown_tags_and_another_order_are_read_over():
    function = FUNCTIONS[0]
    tags = [(b"SOFF", bytes(8)), *reversed(function.usual_tags(0, 0))]
    library = open_library(metallib([Function(function.name, function.bitcode, tags=tags)]))
    assert library.functions[function.name] == open_library(metallib()).functions[function.name]._replace(
        offset=library.functions[function.name].offset
    )
    assert library.bitcode(function.name) == function.bitcode


def test_functions_may_share_a_module():
    shared = dict(FUNCTIONS[0].usual_tags(0, 0))
    shared[b"NAME"] = b"other\0"
    library = open_library(metallib([FUNCTIONS[0], Function("other", b"", tags=list(shared.items()))]))
    assert library.bitcode("other") == library.bitcode(FUNCTIONS[0].name)


def test_unknown_function_is_a_lookup_error_with_its_name():
    with pytest.raises(LookupError, match="'nope'"):
        open_library(metallib()).bitcode("nope")


def test_changed_bitcode_is_refused_by_name():
    data = bytearray(metallib())
    data[-1] ^= 1
    library = open_library(data)
    with pytest.raises(ArchiveError, match=f"{FUNCTIONS[-1].name}.*SHA-256"):
        library.bitcode(FUNCTIONS[-1].name)
    assert library.bitcode(FUNCTIONS[0].name) == FUNCTIONS[0].bitcode


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a Metal library"),
        (b"MTLX" + bytes(200), "not a Metal library"),
        (metallib()[:80], "header is cut short"),
        (metallib() + b"\0", "header gives a size"),
        (patched(16, "<Q", 1 << 63), "header gives a size of 9223372036854775808"),
        (patched(24, "<Q", 1 << 63), "function list .* lies outside"),
        (patched(24, "<Q", 8), "function list .* lies outside"),
        (patched(32, "<Q", 1 << 63), "function list .* lies outside"),
        (patched(40, "<Q", 90), "function list .* overlaps public metadata"),
        (patched(80, "<Q", 1 << 40), "bitcode .* lies outside"),
        (patched(88, "<I", 0xFFFFFFFF), "count of 4294967295, too many"),
        (patched(88, "<I", 5), "function 4 of 5, at .*beyond the end"),
        (patched(88, "<I", 3), "bytes left after its 3 functions"),
        (patched(92, "<I", 0), "function 0 of 4, at 92: entry gives a size of 0"),
        (patched(92, "<I", 0x7FFFFFFF), "function 0 of 4, at 92: entry gives a size of 2147483647"),
        (patched(100, "<H", 0xFFFF), "tag b'NAME' runs over"),
        (patched(102, "<B", 0xFF), "printable ASCII"),
        (patched(102, "<B", 10), "printable ASCII"),
    ],
)
def test_header_and_list_that_contradict_themselves(data, message):
    with pytest.raises(ArchiveError, match=message):
        open_library(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *[
            (lambda tags, tag=tag: tags.pop(tag), f"tag {tag!r} is missing")
            for tag in (b"NAME", b"TYPE", b"HASH", b"MDSZ", b"OFFT", b"VERS")
        ],
        (lambda tags: tags.update({b"HASH": bytes(31)}), "tag b'HASH' has 31 bytes of data, 32 expected"),
        (lambda tags: tags.update({b"NAME": b"\0"}), "printable ASCII"),
        (lambda tags: tags.update({b"NAME": b""}), "printable ASCII"),
        (lambda tags: tags.update({b"NAME": b"abc"}), "printable ASCII with a closing NUL"),
        (lambda tags: tags.update({b"NAME": b"a\0b\0"}), "printable ASCII"),
        (lambda tags: tags.update({b"MDSZ": struct.pack("<Q", 41)}), "runs over the end of its area"),
        (lambda tags: tags.update({b"MDSZ": struct.pack("<Q", 2**64 - 1)}), "runs over the end of its area"),
        (lambda tags: tags.update({b"OFFT": struct.pack("<3Q", 9, 0, 0)}), "metadata .* starts behind"),
        (lambda tags: tags.update({b"OFFT": struct.pack("<3Q", 0, 2**63, 0)}), "metadata .* starts behind"),
    ],
)
def test_tags_that_are_missing_or_wrong(change, message):
    with pytest.raises(ArchiveError, match=message):
        open_library(with_tags(change))


def test_tags_and_names_that_are_there_twice():
    function = FUNCTIONS[0]
    tags = function.usual_tags(0, 0)
    with pytest.raises(ArchiveError, match="b'TYPE' is there twice"):
        open_library(metallib([Function(function.name, function.bitcode, tags=[*tags, tags[1]])]))
    with pytest.raises(ArchiveError, match=r"function 1 of 2.*name 'kernel_0_float' is there twice"):
        open_library(metallib([function, function]))


def test_modules_that_overlap():
    overlapping = Function("other", b"", tags=Function("other", bytes(30)).usual_tags(4, 0))
    with pytest.raises(ArchiveError, match=r"bitcode of 'kernel_0_float' .* overlaps 'other'"):
        open_library(metallib([FUNCTIONS[0], overlapping]))


def complaints(data: bytes) -> list[str]:
    """Open and read everything, and return what ArchiveErrors say; any other exception gets out."""
    try:
        library = open_library(data)
    except ArchiveError as error:
        return [str(error)]
    found = []
    for name in library.functions:
        try:
            assert isinstance(library.bitcode(name), bytes)
        except ArchiveError as error:
            found.append(str(error))
    return found


def test_cut_short_anywhere():
    data = metallib()
    assert not complaints(data)
    assert all(complaints(data[:length]) for length in range(len(data)))


@pytest.mark.parametrize("seed", range(5))
def test_a_thousand_mutations(seed):
    harmless = 0
    for data in synthetic.mutations(metallib(), 1000, seed):
        begun = time.perf_counter()
        found = complaints(data)
        assert time.perf_counter() - begun < PATIENCE_SECONDS
        assert not any("\n" in message for message in found)
        harmless += not found
    assert 20 < harmless < 500  # mutations that all fail, or that change nothing, would test little
