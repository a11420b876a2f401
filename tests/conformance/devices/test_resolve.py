from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

from conformance.devices import Unavailable, default_name, resolve
from conformance.devices.cpu import CpuDevice
from conformance.devices.cuda import CudaDevice
from conformance.devices.mps import MpsDevice
from conformance.errors import UsageError


@pytest.mark.parametrize(("spec", "kind"), [
    ("cpu", "CpuDevice"),
    ("tiny", "Faulty"),
    ("tiny:Wrong", "Wrong"),
    ("tiny:instance", "Faulty"),
    ("tiny:make", "Faulty"),
])  # fmt: skip
def test_found(tiny: Path, spec: str, kind: str) -> None:
    assert type(resolve(spec)).__name__ == kind


def test_build_goes_to_devices_that_take_one(tiny: Path) -> None:
    assert resolve("tiny:make", "1.2").build == "1.2"  # type: ignore[attr-defined]


@pytest.mark.parametrize("spec", ["cpu", "tiny:Wrong", "tiny:instance"])
def test_build_is_refused_otherwise(tiny: Path, spec: str) -> None:
    with pytest.raises(UsageError, match=f"--build 1.2: device {spec} takes no build"):
        resolve(spec, "1.2")


@pytest.mark.parametrize(("spec", "message"), [
    ("gpu", "--device: given 'gpu'; allowed: .*cpu, cuda, mps, tiny, module:attribute"),
    ("nowhere:Device", "nowhere:Device cannot be imported: No module named 'nowhere'"),
    ("tiny:Nothing", "cannot be imported: .*'Nothing'"),
    ("tiny:", "cannot be imported"),
    ("tiny:nothing", "object is no device, it lacks name, torch_device"),
    ("broken_module:Device", "broken_module:Device cannot be imported: RuntimeError: no luck$"),
])  # fmt: skip
def test_refused(tiny: Path, spec: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_module.py").write_text("raise RuntimeError('no luck\\nat all')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UsageError, match=message):
        resolve(spec)


def test_unavailable(tiny: Path) -> None:
    with pytest.raises(Unavailable, match="only a test"):
        resolve("tiny:Absent")


@pytest.mark.parametrize(("attribute", "message"), [
    ("__init__", "device tiny:Faulty: making it raised RuntimeError: no luck$"),
    ("available", r"device tiny:Faulty: available\(\) raised RuntimeError: no luck$"),
])  # fmt: skip
def test_device_that_raises_cannot_be_had(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, attribute: str, message: str
) -> None:
    import tiny as plugin

    def raising(self: object) -> None:
        raise RuntimeError("no luck\nat all")

    monkeypatch.setattr(plugin.Faulty, attribute, raising)
    with pytest.raises(Unavailable, match=message):
        resolve("tiny:Faulty")


@pytest.mark.parametrize("spec", ["cpu", "tiny:make"])
def test_empty_build_is_no_default(tiny: Path, spec: str) -> None:
    with pytest.raises(UsageError, match="--build: given ''; allowed: a version, or the path"):
        resolve(spec, "")


def test_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_name() == "air"
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    monkeypatch.setattr(MpsDevice, "available", lambda self: None)
    assert default_name() == "mps"
    monkeypatch.setattr(MpsDevice, "available", lambda self: "no GPU")
    assert default_name() == "air"


@pytest.mark.parametrize("device", [CpuDevice(), CudaDevice(), MpsDevice()])
def test_shape(device: CpuDevice) -> None:
    reason = device.available()
    assert reason is None or reason.startswith(f"device {device.name}: ")
    assert device.kernels() == []
    if reason is None:
        device.synchronize()
        assert set(device.memory()) == {"current", "reserved", "driver"}
