"""The device air, end to end on the kernels of the 2.15.0 wheel, against torch on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from conformance.devices.base import Emulated, Unavailable
from conformance.devices.cpu import CpuDevice
from conformance.dtypes import dtype
from conformance.worker.executor import run
from conformance.worker.protocol import Call, Tensor
from metal_ops.device import AirDevice


@pytest.fixture(scope="module")
def air() -> AirDevice:
    return AirDevice()


def tensor(array: torch.Tensor) -> Tensor:
    name = str(array.dtype).removeprefix("torch.")
    return Tensor(name, tuple(array.shape), array.stride(), array.storage_offset(), bytes(array.untyped_storage()))


def values(outcome) -> np.ndarray:
    (output,) = outcome.outputs
    element = dtype(output.dtype)
    base = np.frombuffer(output.storage, element.numpy)[output.offset :]
    steps = [stride * element.itemsize for stride in output.strides]
    return np.lib.stride_tricks.as_strided(base, output.shape, steps).astype(np.float64)


def test_it_says_what_it_is(air):
    assert isinstance(air, Emulated)
    assert air.available() is None
    memory = air.memory()
    assert memory["current"] >= 0
    assert (memory["reserved"], memory["driver"]) == (None, None)
    provenance = air.provenance()
    assert provenance["build"]["version"] == "2.15.0"
    assert len(provenance["build"]["sha256"]) == 64
    assert provenance["elementary"] == "correctly rounded"


@pytest.mark.parametrize("dtype_", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
def test_every_softmax_kernel_agrees_with_torch(air, op, dtype_):
    shapes = [
        ((5, 100), -1, None),
        ((130, 1500), -1, None),
        ((1, 4100), -1, None),
        ((4, 60, 40), 1, None),
        ((8192, 4), 0, None),
        ((300, 7), 0, (0, 1)),
    ]
    ran = set()
    generator = torch.Generator().manual_seed(3)
    for shape, dim, order in shapes:
        source = torch.randn(shape, generator=generator).to(dtype_)
        source = source.permute(order) if order else source
        outcome = run(Call(op, op, (tensor(source),), {"dim": dim}), air)
        assert (outcome.status, outcome.diagnostics) == ("ok", ())
        expected = getattr(torch, op)(source.double(), dim).numpy()
        tolerance = {torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}[dtype_]
        np.testing.assert_allclose(values(outcome), expected, rtol=tolerance, atol=tolerance)
        ran.update(outcome.kernels)
    suffix = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat"}[dtype_]
    own = {f"{op}_{name}_{suffix}_u32" for name in ("row", "finalize", "strided_finalize")} | {f"{op}_{suffix}_u32"}
    assert ran == own | {f"softmax_partial_{suffix}_u32", f"softmax_strided_partial_{suffix}_u32"}


@pytest.mark.parametrize(
    ("source", "kernel"),
    [
        (torch.linspace(-3, 3, 24).reshape(4, 6), "tanh_dense_scalar_float_float"),
        (torch.linspace(-3, 3, 24).reshape(4, 6).t(), "tanh_dense_scalar_float_float"),
        (torch.linspace(-3, 3, 96).reshape(4, 24)[:, 2:20], "tanh_inner_contiguous_float_float"),
        (torch.linspace(-3, 3, 96).reshape(4, 24)[:, ::3], "tanh_strided_float_float"),
        (torch.linspace(-3, 3, 5).expand(3, 5), "tanh_strided_float_float"),
        (torch.tensor(0.5), "tanh_dense_scalar_float_float"),
    ],
)
def test_layouts_reach_the_kernel_and_the_output_has_torchs_strides(air, source, kernel):
    outcome = run(Call("tanh", "tanh", (tensor(source),), {}), air)
    on_cpu = run(Call("tanh", "tanh", (tensor(source),), {}), CpuDevice())
    assert outcome.kernels == (kernel,)
    assert outcome.outputs[0].strides == on_cpu.outputs[0].strides
    np.testing.assert_allclose(values(outcome), values(on_cpu), rtol=1e-6)


def test_what_is_missing_is_unsupported_with_op_type_and_reason(air):
    outcome = run(Call("softmax", "softmax", (tensor(torch.zeros(3, dtype=torch.int32)),), {"dim": 0}), air)
    assert outcome.status == "unsupported"
    assert "softmax on int32" in outcome.message
    outcome = run(Call("cumsum", "cumsum", (tensor(torch.zeros(3)),), {"dim": 0}), air)
    assert "cumsum.out on float32: device air has no launch for it" in outcome.message


def test_a_build_that_cannot_be_had_is_unavailable(tmp_path):
    missing = tmp_path / "libtorch_cpu.dylib"
    missing.write_bytes(b"not a library")
    with pytest.raises(Unavailable, match=r"libtorch_cpu\.dylib"):
        AirDevice(str(missing))


def test_a_launch_leaves_subnormals_of_the_host_alone(air):
    run(Call("exp", "exp", (tensor(torch.full((70000,), 1e-40)),), {}), air)
    assert float(torch.tensor(1e-40) * 2) > 0
