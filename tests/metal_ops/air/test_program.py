from __future__ import annotations

import hashlib

import numpy as np
import pytest

from metal_ops.air import Gpu, program
from metal_ops.air.archive import ArchiveError, Library
from metal_ops.air.program import FAST, JUDGING, compile_kernel, emulator_version
from metal_ops.builds import open_build


@pytest.fixture(scope="session")
def library() -> Library:
    """The Metal 3.1 library of the official 2.15.0 wheel, from the cache or fetched."""
    return open_build("2.15.0").library()


def test_object_code_is_kept_by_hash_and_used_again(library, tmp_path, monkeypatch):
    monkeypatch.setenv("METAL_CONFORMANCE_CACHE", str(tmp_path))
    first = compile_kernel(library, "neg_dense_scalar_float_float", JUDGING)
    (kept,) = tmp_path.rglob("*.o")
    assert kept.stem == hashlib.sha256(library.bitcode("neg_dense_scalar_float_float")).hexdigest()
    assert emulator_version() in str(kept)
    monkeypatch.setattr(program, "compile_ir", lambda *_: pytest.fail("compiled again"))
    again = compile_kernel(library, "neg_dense_scalar_float_float", JUDGING)
    assert again.object_code == first.object_code


def test_a_cache_that_cannot_be_written_is_no_error(library, tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("METAL_CONFORMANCE_CACHE", str(blocked))
    assert compile_kernel(library, "neg_dense_scalar_float_float", JUDGING).object_code


@pytest.mark.parametrize("mode", [JUDGING, FAST])
def test_a_kernel_of_the_wheel_computes(library, mode):
    values = np.linspace(-5, 5, 1001, dtype=np.float32)
    output = np.empty_like(values)
    kernel = Gpu(library, mode).kernel("exp_dense_float_float")
    report = kernel.launch({"input": values, "output": output, "numel": 1001}, threads=(251, 1, 1), group=(251, 1, 1))
    assert report.violation_count == 0
    np.testing.assert_allclose(output, np.exp(values.astype(np.float64)), rtol=5e-7)


def test_a_buffer_one_element_short_is_reported_at_its_end(library):
    values = np.zeros(1001, np.float32)
    kernel = Gpu(library).kernel("exp_dense_float_float")
    arguments = {"input": values[:1000], "output": np.empty_like(values), "numel": 1001}
    (violation,) = kernel.launch(arguments, threads=(251, 1, 1), group=(251, 1, 1)).violations
    assert str(violation) == (
        "kernel exp_dense_float_float: out-of-bounds read of 4 bytes at byte 4000 of argument 'input' of 4000 bytes "
        "by thread (250, 0, 0)"
    )


def test_unknown_kernels_and_damaged_bitcode_are_refused(library):
    gpu = Gpu(library)
    assert "exp_dense_float_float" in gpu
    assert "no_such_kernel" not in gpu
    with pytest.raises(LookupError, match="no_such_kernel"):
        gpu.kernel("no_such_kernel")
    damaged = Library(memoryview(bytes(len(library._data))), library.functions)
    with pytest.raises(ArchiveError, match="exp_dense_float_float"):
        Gpu(damaged).kernel("exp_dense_float_float")


def test_both_modes_agree_where_nothing_is_approximate(library):
    values = np.random.default_rng(1).standard_normal(4099).astype(np.float32)
    results = []
    for mode in (JUDGING, FAST):
        output = np.empty_like(values)
        Gpu(library, mode).kernel("sqrt_dense_scalar_float_float").launch(
            {"input": values, "output": output}, threads=(4099, 1, 1), group=(1024, 1, 1)
        )
        results.append(output)
    np.testing.assert_array_equal(*results)
