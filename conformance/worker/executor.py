"""Run one call on one device, in the process that holds the device."""

from __future__ import annotations

import ctypes
import time
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from conformance.devices.base import RawDevice, Unsupported
from conformance.worker.protocol import Call, Outcome, Tensor

if TYPE_CHECKING:
    import torch

    from conformance.devices.base import Device


def run(call: Call, device: Device) -> Outcome:
    """Run ``call`` on ``device`` and bring back all that it did.

    Nothing that the op does is an exception here: an error it raises is the outcome ``raised`` with the exception's
    class and message; an op, or a type of it, that the device does not have is ``unsupported``. A device that asks the
    process to exit does not end the run either.
    """
    device.kernels()  # forget what ran before
    if isinstance(device, RawDevice):
        device.diagnostics()
    started = time.perf_counter()
    try:
        outcome = _run_raw(call, device) if isinstance(device, RawDevice) else _run_torch(call, device)
    except (Unsupported, NotImplementedError) as error:
        outcome = Outcome("unsupported", message=_first_line(error))
    except (Exception, SystemExit) as error:
        outcome = Outcome("raised", error=type(error).__name__, message=_first_line(error))
    if outcome.seconds is None:
        outcome = replace(outcome, seconds=time.perf_counter() - started)
    diagnostics = tuple(device.diagnostics()) if isinstance(device, RawDevice) else ()
    return replace(outcome, kernels=tuple(device.kernels()), diagnostics=diagnostics)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _run_raw(call: Call, device: Any) -> Outcome:
    with device.session():
        outputs = tuple(device.run(call))
    for output in outputs:
        if not isinstance(output, Tensor):
            raise TypeError(f"the device returned a {type(output).__name__} where a tensor was expected")
    return Outcome("ok", outputs)


def _run_torch(call: Call, device: Device) -> Outcome:
    import torch

    function = reduce(getattr, call.function.split("."), torch)
    with device.session():
        bases = [_allocate(tensor, device.torch_device) for tensor in call.tensors]
        views = [
            base.as_strided(tensor.shape, tensor.strides, tensor.offset)
            for base, tensor in zip(bases, call.tensors, strict=True)
        ]
        device.synchronize()
        started = time.perf_counter()
        result = function(*views, **call.params)  # type: ignore[operator]
        device.synchronize()
        seconds = time.perf_counter() - started
        outputs = tuple(_read(output) for output in _tensors(result))
        after = tuple(storage_bytes(base) for base in bases)
    return Outcome("ok", outputs, after, seconds=seconds)


def _allocate(tensor: Tensor, torch_device: str) -> torch.Tensor:
    """Put the whole storage on the device; a strided tensor copied there would arrive contiguous."""
    import torch

    dtype = getattr(torch, tensor.dtype)
    if not tensor.storage:
        return torch.empty(0, dtype=dtype, device=torch_device)
    return torch.frombuffer(bytearray(tensor.storage), dtype=dtype).to(torch_device)


def _tensors(result: Any) -> list[torch.Tensor]:
    import torch

    results = list(result) if isinstance(result, (tuple, list)) else [result]
    for item in results:
        if not isinstance(item, torch.Tensor):
            raise TypeError(f"the op returned a {type(item).__name__} where a tensor was expected")
    return results


def _read(output: torch.Tensor) -> Tensor:
    """Read an output with the whole storage that it lies in."""
    output = output.detach().resolve_conj().resolve_neg()
    dtype = str(output.dtype).removeprefix("torch.")
    try:
        offset = int(output.storage_offset())
        return Tensor(dtype, tuple(output.shape), output.stride(), offset, storage_bytes(output))
    except NotImplementedError as error:  # of a sparse or meta tensor; the op itself is there, so it is not unsupported
        raise TypeError(f"the op returned a tensor without memory: {_first_line(error)}") from error


def storage_bytes(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor's whole storage, of any element type: the device copies them plainly, never its strides."""
    import torch

    storage = tensor.untyped_storage()
    if storage.device.type != "cpu":
        storage = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage).cpu().untyped_storage()
    return ctypes.string_at(storage.data_ptr(), storage.nbytes()) if storage.nbytes() else b""
