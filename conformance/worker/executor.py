"""Run one call on one device, in the process that holds the device."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.devices.base import Emulated, Unsupported
from conformance.worker.invoke import differentiate, invoke
from conformance.worker.protocol import Call, Outcome, Phase, Tensor

if TYPE_CHECKING:
    import torch

    from conformance.devices.base import Device


def run(call: Call, device: Device) -> Outcome:
    """Run ``call`` on ``device``, its backward too if it asks for gradients, and bring back all that it did.

    Nothing that the op does is an exception here: an error it raises is the outcome ``raised`` with the exception's
    class and message; an op, or a type of it, that the device does not have is ``unsupported``. A device that asks the
    process to exit does not end the run either.
    """
    device.kernels()  # forget what ran before
    if isinstance(device, Emulated):
        device.diagnostics()
        device.helpers()
    running = _Running(call, device)
    started = time.perf_counter()
    try:
        outcome = running.run()
    except (Unsupported, NotImplementedError) as error:
        outcome = Outcome("unsupported", message=_first_line(error), phase=running.phase)
    except (Exception, SystemExit) as error:
        outcome = Outcome("raised", error=type(error).__name__, message=_first_line(error), phase=running.phase)
    if outcome.seconds is None:
        outcome = replace(outcome, seconds=time.perf_counter() - started)
    return replace(
        outcome,
        kernels=tuple(device.kernels() if running.kernels is None else running.kernels),
        diagnostics=tuple(device.diagnostics()) if isinstance(device, Emulated) else (),
        helpers=tuple(running.take_helpers()),
    )


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


class _Running:
    """One call under way. ``phase`` is where it is, for calls that have a backward.

    ``kernels`` are those of the call itself, without what its preparation ran; None until it is over.
    """

    def __init__(self, call: Call, device: Device) -> None:
        self.phase: Phase | None = None
        self.kernels: list[str] | None = None
        self._call = call
        self._device = device
        self._helpers: list[str] = []

    def run(self) -> Outcome:
        """Place the operands, call, differentiate, and read everything back."""
        call, device = self._call, self._device
        with device.session():
            bases, views = self._placed(call.tensors)
            gradient_bases, incoming = self._placed(call.gradients)
            out_bases, outs = self._placed(() if call.out is None else (call.out,))
            leaves = [views[position].requires_grad_() for position in call.requires_grad]
            device.synchronize()
            self.take_helpers()
            device.kernels()
            started = time.perf_counter()
            results = self._forward(views, *outs)
            gradients = self._backward(results, leaves, incoming) if call.requires_grad else ()
            seconds = time.perf_counter() - started
            self.kernels = device.kernels()
            # What the caller was given back may be another tensor; what it provided has the result.
            outputs = tuple(_read(result) for result in outs or results)
            returned = tuple(None if gradient is None else _read(gradient) for gradient in gradients)
            after = tuple(storage_bytes(base) for base in (*bases, *gradient_bases, *out_bases))
            same = not outs or (len(results) == 1 and results[0] is outs[0])
        return Outcome("ok", outputs, returned, inputs_after=after, seconds=seconds, returns_out=same)

    def take_helpers(self) -> list[str]:
        """Ask the device for its helpers, which count as those of preparing; give all so far."""
        if isinstance(self._device, Emulated):
            self._helpers += self._device.helpers()
        return self._helpers

    def _placed(self, tensors: Sequence[Tensor]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Each whole storage on the device, and the view in it."""
        bases = [_allocate(tensor, self._device.torch_device) for tensor in tensors]
        return bases, list(map(_view, bases, tensors))

    def _forward(self, views: Sequence[torch.Tensor], out: torch.Tensor | None = None) -> list[torch.Tensor]:
        self.phase = "forward" if self._call.requires_grad else None
        results = invoke(self._call, views, out)
        self._device.synchronize()
        self._refuse_helpers()
        return results

    def _backward(
        self, results: Sequence[torch.Tensor], leaves: Sequence[torch.Tensor], incoming: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor | None, ...]:
        self.phase = "backward"
        gradients = differentiate(results, leaves, incoming)
        self._device.synchronize()
        self._refuse_helpers()
        return gradients

    def _refuse_helpers(self) -> None:
        """What is judged must come out of kernels."""
        if isinstance(self._device, Emulated) and (names := self._device.helpers()):
            several = ", ".join(dict.fromkeys(names))
            raise Unsupported(f"computed by the helper {several}, not by a kernel")


def placed(tensors: Sequence[Tensor], torch_device: str) -> list[torch.Tensor]:
    """The tensors on a device, each a view in a storage of its own."""
    return [_view(_allocate(tensor, torch_device), tensor) for tensor in tensors]


def _view(base: torch.Tensor, tensor: Tensor) -> torch.Tensor:
    return base.as_strided(tensor.shape, tensor.strides, tensor.offset)


def _allocate(tensor: Tensor, torch_device: str) -> torch.Tensor:
    """Put the whole storage on the device; a strided tensor copied there would arrive contiguous."""
    import torch

    dtype = getattr(torch, tensor.dtype)
    if not tensor.storage:
        return torch.empty(0, dtype=dtype, device=torch_device)
    # A copy even on the CPU: memory that torch did not allocate cannot be resized, as out may have to be.
    return torch.frombuffer(bytearray(tensor.storage), dtype=dtype).to(torch_device, copy=True)


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
