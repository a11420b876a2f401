"""Look at the outcome of one call: everything that may be wrong with it, in order of gravity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from conformance.devices.cpu import CpuDevice
from conformance.dtypes import BY_NAME
from conformance.dtypes import dtype as dtype_of
from conformance.findings import Finding
from conformance.layout import lies_within, view_of
from conformance.op import Computation
from conformance.oracle import Judgement, judge
from conformance.worker import run
from conformance.worker.protocol import Call, Outcome, Tensor

if TYPE_CHECKING:
    from conformance.case import Case
    from conformance.known import Entry
    from conformance.op import Op

_UPCAST = {"float": np.float64, "complex": np.complex128, "bool": np.bool_}


@dataclass(frozen=True)
class Examined:
    """A case with its outcome and what was found.

    ``finding`` is what is new; ``known`` names the entries that cover the rest; ``judgement`` is there if values could
    be compared; ``failing`` are the elements outside their bound that no entry covers.
    """

    case: Case
    outcome: Outcome
    finding: Finding | None = None
    judgement: Judgement | None = None
    failing: NDArray[np.bool_] | None = None
    known: tuple[str, ...] = ()

    @property
    def unsupported(self) -> bool:
        """Whether the device has no such op."""
        return self.outcome.status == "unsupported"


@dataclass(frozen=True)
class Expected:
    """What torch's rules make of a call: element type and shape of each result, or the error they raise.

    ``results`` is None where nobody knows. ``strides`` has those of each result.
    """

    results: tuple[tuple[str, tuple[int, ...]], ...] | None = ()
    error: str | None = None
    strides: tuple[tuple[int, ...], ...] = ()


def call_of(op: Op, case: Case) -> Call:
    """The call that a case describes, with its bytes."""
    return Call(op.name, op.function, case.materialise(), dict(case.params))


def upcast(tensor: Tensor) -> NDArray[Any]:
    """The logical values in the widest type of their kind, exactly."""
    dtype = dtype_of(tensor.dtype)
    wide = _UPCAST.get(dtype.kind) or (np.uint64 if dtype.numpy.kind == "u" else np.int64)
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return view_of(tensor).astype(wide)


def examine(op: Op, case: Case, call: Call, outcome: Outcome, known: Sequence[Entry] = ()) -> Examined:
    """Find what is wrong with ``outcome``, less what ``known`` covers."""
    examined = Examined(case, outcome)
    if examined.unsupported:
        return examined
    expected = expected_of(call)
    finding = _gravest(call, outcome, expected)
    if finding is not None:
        return _less_known(replace(examined, finding=finding), known, call)
    if expected.error is not None:
        return examined  # raised where torch raises
    return _judged(op, examined, call, known)


def _gravest(call: Call, outcome: Outcome, expected: Expected) -> Finding | None:
    """Whatever makes the values not worth comparing."""
    if outcome.status in ("crash", "timeout"):
        return Finding(outcome.status, outcome.message or f"the call ended in a {outcome.status}")
    if outcome.diagnostics:
        more = f" (and {len(outcome.diagnostics) - 1} more)" if len(outcome.diagnostics) > 1 else ""
        return Finding("diagnostics", outcome.diagnostics[0] + more)
    if outcome.status == "raised" and expected.error is None:
        return Finding("raised", f"raised {outcome.error}: {outcome.message}")
    if outcome.status == "ok" and expected.error is not None:
        return Finding("raised", f"raised nothing; torch's rules for the call raise {expected.error}")
    if outcome.status == "raised":
        return None
    return _damaged(call, outcome) or _misshapen(call, outcome, expected)


def _damaged(call: Call, outcome: Outcome) -> Finding | None:
    """Operands, gaps and guards must be as they were."""
    for number, (tensor, after) in enumerate(zip(call.tensors, outcome.inputs_after, strict=False)):
        if after == tensor.storage:
            continue
        before = np.frombuffer(tensor.storage, np.uint8)
        offset = int(np.flatnonzero(before != np.frombuffer(after, np.uint8))[0])
        element = offset // dtype_of(tensor.dtype).itemsize
        what = "operand" if element in _elements(tensor) else "memory beside operand"
        return Finding("guard", f"{what} {number} was written to, at element {element} of its storage")
    return None


def _elements(tensor: Tensor) -> NDArray[np.intp]:
    """Places in the storage that belong to the tensor."""
    places = np.array(tensor.offset)
    for size, stride in zip(tensor.shape, tensor.strides, strict=True):
        places = places[..., None] + np.arange(size) * stride
    return places.reshape(-1)


def _misshapen(call: Call, outcome: Outcome, expected: Expected) -> Finding | None:
    got = tuple((output.dtype, output.shape) for output in outcome.outputs)
    if expected.results not in (None, got):
        return Finding("result", f"returned {_results_text(got)}; torch's rules give {_results_text(expected.results)}")
    for output in outcome.outputs:
        if output.dtype in BY_NAME and not lies_within(output):
            return Finding("result", f"returned {_results_text(got)} that reaches past its storage")
    return None if expected.results is None else _restrided(call, outcome, expected)


def _restrided(call: Call, outcome: Outcome, expected: Expected) -> Finding | None:
    """Strides follow rules as shapes do: what comes next takes another path, or fails, if they are not kept."""
    got = tuple(output.strides for output in outcome.outputs)
    shapes = tuple(output.shape for output in outcome.outputs)
    if _telling(shapes, got) == _telling(shapes, expected.strides):
        return None
    # A few rules for ``meta`` are written apart from the CPU's and give others than it (logsigmoid); both are right.
    on_cpu = _expected_of_cpu(call).strides
    if _telling(shapes, got) == _telling(shapes, on_cpu):
        return None
    return Finding("result", f"returned strides {_strides_text(got)}; torch's rules give {_strides_text(on_cpu)}")


def _telling(shapes: Sequence[tuple[int, ...]], strides: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """The strides that place an element: of sizes above 1, and none of a tensor without elements."""
    return [
        [stride for size, stride in zip(shape, steps, strict=True) if size > 1] if prod(shape) else []
        for shape, steps in zip(shapes, strides, strict=False)
    ]


def _strides_text(strides: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(str(list(steps)) for steps in strides)


def _results_text(results: Sequence[tuple[str, tuple[int, ...]]] | None) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for dtype, shape in results or ()) or "nothing"


def _judged(op: Op, examined: Examined, call: Call, known: Sequence[Entry]) -> Examined:
    output = examined.outcome.outputs[0]
    if output.dtype not in BY_NAME or not prod(output.shape):
        return examined
    got = view_of(output)
    inputs = tuple(upcast(tensor) for tensor in call.tensors)
    if not got.shape:  # NumPy's functions turn arrays without dimensions into scalars, so judge one element
        got, inputs = got.reshape(1), tuple(np.atleast_1d(operand) for operand in inputs)
    computation = Computation(
        inputs, tuple(tensor.dtype for tensor in call.tensors), call.params, output.dtype, op.reference.function
    )
    judgement = judge(computation, got, op.bound)
    failing = judgement.failing
    used = []
    for entry in known if failing.any() else ():
        covered = failing & _fitting(entry.covers(examined.case, "value", inputs[0] if inputs else None), failing)
        if covered.any():
            used.append(entry.id)
            failing = failing & ~covered
    finding = value_finding(judgement, failing) if failing.any() else None
    return replace(examined, finding=finding, judgement=judgement, failing=failing, known=tuple(used))


def _fitting(mask: NDArray[np.bool_] | bool, failing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """An entry's mask over operands covers results of the same shape only."""
    covered = np.asarray(mask)
    return covered if covered.shape in ((), failing.shape) else np.zeros(failing.shape, bool)


def value_finding(judgement: Judgement, failing: NDArray[np.bool_]) -> Finding:
    """The finding about the elements ``failing``, of which there is at least one: it shows the worst."""
    units = np.where(failing, judgement.units, -1.0).reshape(-1)
    element = int(np.argmax(units))
    count = int(np.count_nonzero(failing))
    summary = f"{count} of {failing.size} elements outside the bound" if failing.size > 1 else "outside the bound"
    detail = judgement.message if element == judgement.worst else f"{units[element]:.4g} times the bound"
    return Finding("value", f"{summary}; {detail}", element)


def _less_known(examined: Examined, known: Sequence[Entry], call: Call) -> Examined:
    """Drop a finding that is about no element if an entry covers all of the case."""
    assert examined.finding is not None
    first = upcast(call.tensors[0]) if call.tensors else None
    for entry in known:
        if np.all(entry.covers(examined.case, examined.finding.kind, first)):
            return replace(examined, finding=None, known=(entry.id,))
    return examined


def expected_of(call: Call) -> Expected:
    """What torch's rules for shapes, element types and errors make of the call.

    They are asked on the ``meta`` device, which computes nothing; for an op without such rules the CPU runs it.
    """
    import torch

    function: Any = reduce(getattr, call.function.split("."), torch)
    views = [
        torch.empty_strided(t.shape, t.strides, dtype=getattr(torch, t.dtype), device="meta") for t in call.tensors
    ]
    try:
        results = function(*views, **call.params)
    except NotImplementedError:
        return _expected_of_cpu(call)
    except Exception as error:
        return Expected(error=type(error).__name__)
    results = results if isinstance(results, (tuple, list)) else (results,)
    return Expected(
        tuple((str(r.dtype).removeprefix("torch."), tuple(r.shape)) for r in results),
        strides=tuple(r.stride() for r in results),
    )


def _expected_of_cpu(call: Call) -> Expected:
    outcome = run(call, CpuDevice())
    if outcome.status == "ok":
        return Expected(
            tuple((output.dtype, output.shape) for output in outcome.outputs),
            strides=tuple(output.strides for output in outcome.outputs),
        )
    return Expected(error=outcome.error) if outcome.status == "raised" else Expected(results=None)
