"""What crosses the worker boundary: a call, its outcome, and their versioned form as JSON plus bytes.

The worker needs only the standard library, NumPy and torch: a call carries the bytes of its tensors, not the recipe
they were made from, so a child process may run another Python and another torch than the parent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

SCHEMA = 4

Status = Literal["ok", "raised", "unsupported", "crash", "timeout"]
Phase = Literal["forward", "backward"]


@dataclass(frozen=True)
class Tensor:
    """A tensor as data: the whole storage, and how the logical tensor lies in it.

    ``shape``, ``strides`` and ``offset`` count elements. ``storage`` holds every element of the allocation, gaps and
    guards included, in the element type's native little-endian format.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    storage: bytes = field(repr=False)


@dataclass(frozen=True)
class Call:
    """One concrete call of an op: the dotted torch function, its tensors in order, its parameters by keyword.

    ``listed`` says that the function takes its tensors as one list. ``requires_grad`` has the positions of the tensors
    whose gradients are asked for, ``gradients`` the incoming gradient of each result. ``out`` is the tensor that the
    function is given for its result, as it is before the call. ``named`` has the keywords of the last tensors.
    """

    op: str
    function: str
    tensors: tuple[Tensor, ...]
    params: dict[str, Any] = field(default_factory=dict)
    listed: bool = False
    requires_grad: tuple[int, ...] = ()
    gradients: tuple[Tensor, ...] = ()
    out: Tensor | None = None
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What a device made of a call.

    ``inputs_after`` are the storages of the operands, of the incoming gradients, then of ``out``, read back, so that
    the parent can see whether guards, gaps and operands are untouched. ``returns_out`` says whether the function
    returned the very tensor it was given as ``out``; True for other calls. ``diagnostics`` are a device's own findings
    (an out-of-bounds access, say). ``seconds`` is the duration of the call, backward included, after synchronising.
    ``error`` is the exception's class name when ``status`` is "raised". ``gradients`` has one entry for each of the
    call's ``requires_grad``: None where torch gives none. ``helpers`` names what the device computed without a kernel
    of its own while the call was prepared (random numbers, say). ``phase`` says where a call that asks for gradients
    was when it raised or was not supported; None before, and for other calls.
    """

    status: Status
    outputs: tuple[Tensor, ...] = ()
    gradients: tuple[Tensor | None, ...] = ()
    helpers: tuple[str, ...] = ()
    inputs_after: tuple[bytes, ...] = field(default=(), repr=False)
    kernels: tuple[str, ...] = ()
    diagnostics: tuple[str, ...] = ()
    seconds: float | None = None
    error: str | None = None
    message: str | None = None
    phase: Phase | None = None
    returns_out: bool = True

    @property
    def told(self) -> str:
        """The message, with the phase of the call that it is about."""
        text = self.message or ""
        return f"in the {self.phase}: {text}" if self.phase else text


def _strip(tensors: Sequence[Tensor], blobs: list[bytes]) -> list[dict[str, Any]]:
    """Describe tensors as JSON, moving their storages to ``blobs``."""
    described = []
    for tensor in tensors:
        described.append({**asdict(replace(tensor, storage=b"")), "storage": len(blobs)})
        blobs.append(tensor.storage)
    return described


def _restore(described: Sequence[dict[str, Any]], blobs: Sequence[bytes]) -> tuple[Tensor, ...]:
    return tuple(
        Tensor(d["dtype"], tuple(d["shape"]), tuple(d["strides"]), d["offset"], blobs[d["storage"]]) for d in described
    )


def _checked(text: str, kind: str) -> dict[str, Any]:
    message = json.loads(text)
    if not isinstance(message, dict) or message.get("schema") != SCHEMA or message.get("kind") != kind:
        raise ValueError(f"worker message is no {kind} of schema {SCHEMA}: {text[:80]!r}")
    return message


def dump_call(call: Call) -> tuple[str, list[bytes]]:
    """The wire form of a call: a JSON text and the byte strings it refers to by index."""
    blobs: list[bytes] = []
    message = {
        "schema": SCHEMA,
        "kind": "call",
        "op": call.op,
        "function": call.function,
        "tensors": _strip(call.tensors, blobs),
        "params": call.params,
        "listed": call.listed,
        "requires_grad": list(call.requires_grad),
        "gradients": _strip(call.gradients, blobs),
        "out": _strip([] if call.out is None else [call.out], blobs),
        "named": list(call.named),
    }
    return json.dumps(message), blobs


def load_call(text: str, blobs: Sequence[bytes]) -> Call:
    """The inverse of :func:`dump_call`; raises ValueError for another kind or schema version."""
    message = _checked(text, "call")
    return Call(
        op=message["op"],
        function=message["function"],
        tensors=_restore(message["tensors"], blobs),
        params=message["params"],
        listed=message["listed"],
        requires_grad=tuple(message["requires_grad"]),
        gradients=_restore(message["gradients"], blobs),
        out=next(iter(_restore(message["out"], blobs)), None),
        named=tuple(message["named"]),
    )


def dump_outcome(outcome: Outcome) -> tuple[str, list[bytes]]:
    """The wire form of an outcome: a JSON text and the byte strings it refers to by index."""
    blobs: list[bytes] = []
    message = {
        "schema": SCHEMA,
        "kind": "outcome",
        "status": outcome.status,
        "outputs": _strip(outcome.outputs, blobs),
        "gradients": [_strip([gradient], blobs) if gradient else None for gradient in outcome.gradients],
        "inputs_after": list(range(len(blobs), len(blobs) + len(outcome.inputs_after))),
        "kernels": list(outcome.kernels),
        "diagnostics": list(outcome.diagnostics),
        "helpers": list(outcome.helpers),
        "seconds": outcome.seconds,
        "error": outcome.error,
        "message": outcome.message,
        "phase": outcome.phase,
        "returns_out": outcome.returns_out,
    }
    return json.dumps(message), [*blobs, *outcome.inputs_after]


def load_outcome(text: str, blobs: Sequence[bytes]) -> Outcome:
    """The inverse of :func:`dump_outcome`; raises ValueError for another kind or schema version."""
    message = _checked(text, "outcome")
    return Outcome(
        status=message["status"],
        outputs=_restore(message["outputs"], blobs),
        gradients=tuple(_restore(described, blobs)[0] if described else None for described in message["gradients"]),
        inputs_after=tuple(blobs[index] for index in message["inputs_after"]),
        kernels=tuple(message["kernels"]),
        diagnostics=tuple(message["diagnostics"]),
        helpers=tuple(message["helpers"]),
        seconds=message["seconds"],
        error=message["error"],
        message=message["message"],
        phase=message["phase"],
        returns_out=message["returns_out"],
    )
