import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conformance.devices.base import Unavailable
from metal_ops import builds, cache, wheels
from metal_ops.air.archive import ArchiveError
from metal_ops.builds import DEFAULT_BUILD, Build, cached_builds, open_build
from tests.metal_ops.air import synthetic
from tests.metal_ops.air.synthetic import FUNCTIONS

PATIENCE_SECONDS = 5.0
WHEEL_NAME = "torch-9.9.9-cp311-cp311-macosx_14_0_arm64.whl"

SOURCES = {
    "wheel": (synthetic.wheel(), {"metal_basic": 4, "metal_40": 2}),
    "dylib": (synthetic.dylib(), {"metal_basic": 4, "metal_40": 2}),
    "metallib": (synthetic.metallib(), {"metal_basic": 4}),
}


def contents(build: Build) -> dict[str, int]:
    """Read all bitcode of a build, and count the functions of each library."""
    for name in build.libraries:
        library = build.library(name)
        for function in FUNCTIONS[: len(library.functions)]:
            assert library.bitcode(function.name) == function.bitcode
    return {name: len(build.library(name).functions) for name in build.libraries}


def complaint(spec: object) -> str:
    with pytest.raises(Unavailable) as caught:
        open_build(str(spec))
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.fixture
def no_work(monkeypatch):
    """Fail where a build is put into the cache, which is what a second opening must not do."""

    def enable() -> None:
        monkeypatch.setattr(builds, "_add", lambda *_: pytest.fail("the cache was not used"))

    return enable


@pytest.mark.parametrize("source", SOURCES)
def test_a_file_in_place_of_a_version(source, empty_cache, tmp_path, no_work):
    data, functions = SOURCES[source]
    path = tmp_path / "some file"
    path.write_bytes(data)
    build = open_build(str(path))
    assert contents(build) == functions
    assert build.sha256 == hashlib.sha256(data).hexdigest()
    assert build.provenance() == {
        "version": "9.9.9" if source == "wheel" else f"local-{build.sha256[:8]}",
        "sha256": build.sha256,
        "source": source,
        "file_name": "some file",
        "git_version": "ab" * 20 if source == "wheel" else None,
    }
    assert not list((empty_cache / "scratch").iterdir())
    assert cached_builds() == [build]
    no_work()
    assert open_build(str(path)) == build


def test_a_file_that_changed_is_read_again(empty_cache, tmp_path):
    path = tmp_path / "lib.metallib"
    path.write_bytes(synthetic.metallib())
    before = open_build(str(path))
    path.write_bytes(synthetic.metallib(FUNCTIONS[:3]))
    assert contents(before) == {"metal_basic": 4}
    assert contents(open_build(str(path))) == {"metal_basic": 3}


def test_a_library_that_the_build_lacks(empty_cache, tmp_path):
    path = tmp_path / "lib.metallib"
    path.write_bytes(synthetic.metallib())
    with pytest.raises(LookupError, match="no library 'metal_40', it has metal_basic"):
        open_build(str(path)).library("metal_40")


def test_a_version_is_fetched_once(empty_cache, no_index, no_work):
    (no_index / WHEEL_NAME).write_bytes(synthetic.wheel())
    build = open_build("9.9.9")
    assert contents(build) == {"metal_basic": 4, "metal_40": 2}
    assert build.file_name == WHEEL_NAME
    assert build.sha256 == hashlib.sha256(synthetic.wheel()).hexdigest()
    assert not [path for path in empty_cache.rglob("*") if path.suffix == ".whl" or path.name == "image"]
    no_work()
    (no_index / WHEEL_NAME).unlink()
    assert open_build("9.9.9", fetch=False) == build


def test_constraints_do_not_keep_pip_from_fetching(empty_cache, no_index, tmp_path, monkeypatch):
    (no_index / WHEEL_NAME).write_bytes(synthetic.wheel())
    constraint = tmp_path / "constraints.txt"
    constraint.write_text("torch<3\n")
    monkeypatch.setenv("PIP_CONSTRAINT", str(constraint))
    assert open_build("9.9.9").version == "9.9.9"


def test_no_index_and_no_cache(empty_cache, no_index, capfd):
    message = complaint("9.9.9")
    assert message.startswith("torch 9.9.9 is not cached, and pip could not get its macOS wheel: ")
    assert "torch==9.9.9" in message.split("wheel: ")[1]
    assert capfd.readouterr() == ("", "")


def test_no_pip(empty_cache, monkeypatch):
    monkeypatch.setattr(wheels.importlib.util, "find_spec", lambda _: None)
    assert "no pip" in complaint("9.9.9")


def test_fetching_may_be_forbidden(empty_cache, no_index):
    (no_index / WHEEL_NAME).write_bytes(synthetic.wheel())
    with pytest.raises(Unavailable, match=r"torch 9\.9\.9 is not cached: fetch it with"):
        open_build("9.9.9", fetch=False)


def test_a_wheel_that_arrives_damaged(empty_cache, no_index):
    (no_index / WHEEL_NAME).write_bytes(synthetic.wheel(b"not a dylib, long enough to have a header" * 2))
    assert "not a 64-bit little-endian Mach-O file" in complaint("9.9.9")
    assert cached_builds() == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "neither a wheel nor a Mach-O library nor a Metal library"),
        (b"hello there", "neither a wheel nor a Mach-O library nor a Metal library"),
        (synthetic.wheel()[:-200], "damaged wheel: File is not a zip file"),
        (synthetic.wheel().replace(b"libtorch_cpu", b"libtorch_gpu"), "it has no torch/lib/libtorch_cpu.dylib"),
        (synthetic.wheel(version="../../up"), "torch/version.py gives no version"),
        (synthetic.wheel(compression=zipfile.ZIP_BZIP2), "has compression method 12"),
        (synthetic.macho({"__text": b"code"}), "it holds no Metal library"),
        (
            synthetic.macho({"metal_basic": synthetic.metallib()[:-1]}),
            "section 'metal_basic': its library gives a size",
        ),
        (synthetic.metallib()[:-1], "library metal_basic: header gives a size"),
    ],
)
def test_files_that_are_no_builds(data, message, empty_cache, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(data)
    found = complaint(path)
    assert message in found
    assert repr(str(path)) in found
    assert cached_builds() == []
    assert not list((empty_cache / "scratch").iterdir())


@pytest.mark.parametrize("spec", ["nope", "2", "2.15.0/", "", "\0", "x" * 5000, "no\nsuch"])
def test_specs_that_name_nothing(spec, empty_cache):
    assert complaint(spec)


def test_a_folder_is_no_build(empty_cache, tmp_path):
    assert "not a file" in complaint(tmp_path)


def test_an_encrypted_wheel(empty_cache, tmp_path):
    data = bytearray(synthetic.wheel())
    for magic, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := data.find(magic, at + 1)) >= 0:
            data[at + flags] |= 1
    (tmp_path / "w.whl").write_bytes(data)
    assert "encrypted" in complaint(tmp_path / "w.whl")


def central_entry(data: bytes, name: bytes) -> int:
    """Where the central directory's entry of a member starts."""
    return data.rfind(b"PK\x01\x02", 0, data.rfind(name))


def test_a_wheel_with_an_offset_out_of_the_file(empty_cache, tmp_path):
    data = bytearray(synthetic.wheel())
    struct.pack_into("<I", data, data.rfind(b"PK\x05\x06") + 16, len(data))
    (tmp_path / "w.whl").write_bytes(data)
    assert "damaged wheel: an offset leads out of the file" in complaint(tmp_path / "w.whl")


def test_a_wheel_with_an_offset_that_no_file_can_have(empty_cache, tmp_path):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        member = zipfile.ZipInfo("torch/version.py")
        member.extra = struct.pack("<HHQ", 1, 8, (1 << 64) - 1)  # where 64-bit offsets are kept
        archive.writestr(member, "")
    data = bytearray(content.getvalue())
    struct.pack_into("<I", data, central_entry(data, b"version.py") + 42, 0xFFFFFFFF)
    (tmp_path / "w.whl").write_bytes(data)
    assert "damaged wheel" in complaint(tmp_path / "w.whl")


@pytest.mark.parametrize(
    ("claim", "message"), [(1 << 31, "is shorter than the wheel says"), ((1 << 31) + 1, "claims 2147483649 bytes")]
)
def test_a_wheel_that_claims_more_than_it_holds(claim, message, empty_cache, tmp_path):
    data = bytearray(synthetic.wheel())
    struct.pack_into("<I", data, central_entry(data, b"libtorch_cpu") + 24, claim)
    (tmp_path / "w.whl").write_bytes(data)
    assert message in complaint(tmp_path / "w.whl")


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "blocked").write_text("a file where the cache's folder should be")
    monkeypatch.setenv("METAL_CONFORMANCE_CACHE", str(tmp_path / "blocked"))
    (tmp_path / "lib").write_bytes(synthetic.metallib())
    assert "blocked" in complaint(tmp_path / "lib")


@pytest.mark.parametrize("damage", ["manifest", "library", "note"])
def test_a_damaged_cache_is_mended(damage, empty_cache, tmp_path):
    path = tmp_path / "lib"
    path.write_bytes(synthetic.dylib())
    build = open_build(str(path))
    if damage == "manifest":
        next(empty_cache.glob("builds/*/manifest.json")).write_text('{"schema": 1}')
    elif damage == "library":
        build.libraries["metal_40"].unlink()
    else:
        next(empty_cache.glob("files/*.json")).write_text("[]")
    assert contents(open_build(str(path))) == {"metal_basic": 4, "metal_40": 2}
    assert not list((empty_cache / "scratch").iterdir())


def test_a_cached_library_that_was_changed_is_not_believed(empty_cache, tmp_path):
    path = tmp_path / "lib"
    path.write_bytes(synthetic.metallib())
    build = open_build(str(path))
    cached = build.libraries["metal_basic"]
    data = bytearray(cached.read_bytes())
    data[-1] ^= 1
    cached.write_bytes(data)
    with pytest.raises(ArchiveError, match=FUNCTIONS[-1].name):
        build.library().bitcode(FUNCTIONS[-1].name)
    cached.write_bytes(data[:50])
    with pytest.raises(Unavailable, match=r"metal_basic .* is damaged"):
        build.library()


def publish_to(target: Path, work: Path, text: str) -> str:
    work.mkdir(parents=True)
    (work / "file").write_text(text)

    def load() -> str | None:
        found = (target / "file").read_text() if (target / "file").exists() else None
        time.sleep(0.01)  # what was found may be no longer so
        return found

    return cache.publish(work, target, load)


def test_who_publishes_first_is_kept(tmp_path):
    target = tmp_path / "entries" / "entry"
    assert publish_to(target, tmp_path / "a" / "work", "ours") == "ours"
    assert publish_to(target, tmp_path / "b" / "work", "theirs") == "ours"
    (target / "file").unlink()
    assert publish_to(target, tmp_path / "c" / "work", "mended") == "mended"


def test_publishing_never_takes_away_what_another_process_just_published(tmp_path):
    """Threads stand for processes: each opens the folder for itself, which is what its lock goes by."""
    target = tmp_path / "entries" / "entry"
    with ThreadPoolExecutor(8) as pool:
        results = set(pool.map(lambda n: publish_to(target, tmp_path / n / "work", n), "abcdefgh"))
    assert results == {(target / "file").read_text()}


def test_what_killed_processes_left_is_cleared_away(empty_cache):
    old, new = empty_cache / "scratch" / "old", empty_cache / "scratch" / "new"
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "image").write_text("half")
    os.utime(old, (time.time() - 2 * 24 * 3600,) * 2)
    with cache.scratch():
        assert not old.exists()
        assert new.exists()


@pytest.mark.parametrize("spec", ["9.9.9", "local"])
def test_processes_may_share_an_empty_cache(spec, empty_cache, no_index):
    """Two processes open the same build at once, three times over; all of them get it."""
    wheel = no_index / WHEEL_NAME
    wheel.write_bytes(synthetic.wheel())
    code = (
        "import sys; from metal_ops.builds import open_build; sys.stdin.read(); build = open_build(sys.argv[1]);"
        "print(build.sha256, [len(build.library(name).functions) for name in build.libraries])"
    )
    expected = f"{hashlib.sha256(synthetic.wheel()).hexdigest()} [4, 2]\n"
    for _ in range(3):
        shutil.rmtree(empty_cache, ignore_errors=True)
        command = [sys.executable, "-c", code, str(wheel) if spec == "local" else spec]
        both = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for process in both:
            process.stdin.close()
        assert [process.stdout.read() for process in both] == [expected] * 2
        assert [process.wait() for process in both] == [0, 0]
        assert len(list(empty_cache.glob("builds/*"))) == 1


def test_builds_are_listed_by_version(empty_cache, tmp_path):
    for version in ("2.15.0", "2.9.1", "2.10.0"):
        path = tmp_path / version
        path.write_bytes(synthetic.wheel(version=version))
        open_build(str(path))
    (empty_cache / "builds" / "unfinished").mkdir()
    assert [build.version for build in cached_builds()] == ["2.9.1", "2.10.0", "2.15.0"]


@pytest.mark.parametrize("source", SOURCES)
def test_cut_short_anywhere(source, empty_cache, tmp_path):
    path = tmp_path / "file"
    data = SOURCES[source][0]
    for length in range(0, len(data), 3):
        path.write_bytes(data[:length])
        assert complaint(path)


@pytest.mark.parametrize("source", SOURCES)
def test_mutations(source, empty_cache, tmp_path):
    """Two thousand damaged files, of every kind: a build whose libraries open, or Unavailable."""
    opened = 0
    path = tmp_path / "file"
    for data in synthetic.mutations(SOURCES[source][0], 667, seed=len(source)):
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        begun = time.perf_counter()
        try:
            build = open_build(str(path))
        except Unavailable as error:
            message = str(error)
        else:
            message = ""
            opened += 1
            for name in build.libraries:
                read_all(build, name)
        assert "\n" not in message
        assert time.perf_counter() - begun < PATIENCE_SECONDS
    assert 20 < opened < 500


def read_all(build: Build, name: str) -> None:
    library = build.library(name)
    for function, entry in library.functions.items():
        try:
            assert hashlib.sha256(library.bitcode(function)).digest() == entry.sha256
        except ArchiveError:
            continue


def test_the_default_build():
    """The real wheel, from the user's cache or fetched into it: what is known of it, and a sample of its bitcode."""
    try:
        build = open_build(DEFAULT_BUILD)
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert build.version == DEFAULT_BUILD
    assert build.git_version == "d0f2af8b66b20da4baa50644c0cd3f887a2eae2e"
    for name, count, air in (("metal_basic", 18_563, (2, 6)), ("metal_40", 19_455, (2, 8))):
        library = build.library(name)
        assert len(library.functions) == count
        assert {entry.air_version for entry in library.functions.values()} == {air}
        for function in list(library.functions)[::97]:
            assert library.bitcode(function).startswith(b"\xde\xc0\x17\x0b")
    manifest = json.loads((build.libraries["metal_40"].parent / "manifest.json").read_text())
    assert manifest["libraries"]["metal_40"] == {"size": 130_798_882, "functions": 19_455}
