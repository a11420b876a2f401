"""Look at the outcome of one call: everything that may be wrong with it, in order of gravity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import BY_NAME
from conformance.dtypes import dtype as dtype_of
from conformance.engine.coverage import Bools, uncovered
from conformance.engine.judged import Judged, judged_gradients, judged_results, parts_of, upcast, value_finding
from conformance.expectation import Expected, Result, expected_of, expected_on_cpu
from conformance.findings import RESULT, Finding, Part
from conformance.layout import lies_within

if TYPE_CHECKING:
    from conformance.case import Case
    from conformance.known import Entry
    from conformance.op import Op
    from conformance.worker.protocol import Call, Outcome, Tensor

BACKWARD = "backward"
"""The property of gradients: what is wrong with the forward alone is the property ``forward``'s business."""


@dataclass(frozen=True)
class Examined:
    """A case with its outcome and what was found.

    ``finding`` is what is new; ``known`` names the entries that cover the rest; ``judged`` has the results and
    gradients whose values could be compared, with the elements outside their bound that no entry covers.
    """

    case: Case
    outcome: Outcome
    finding: Finding | None = None
    judged: tuple[Judged, ...] = ()
    known: tuple[str, ...] = ()

    @property
    def unsupported(self) -> bool:
        """Whether the device has no such op."""
        return self.outcome.status == "unsupported"

    @property
    def failing(self) -> dict[Part, Bools]:
        """The failing elements of each result and gradient that has any."""
        return {judged.part: judged.failing for judged in self.judged if judged.failing.any()}

    def judged_part(self, part: Part) -> Judged:
        """One of ``judged``."""
        return next(judged for judged in self.judged if judged.part == part)


def examine(op: Op, case: Case, call: Call, outcome: Outcome, known: Sequence[Entry] = ()) -> Examined:
    """Find what is wrong with ``outcome``, less what ``known`` covers."""
    examined = Examined(case, outcome)
    if examined.unsupported:
        return examined
    expected = expected_of(call)
    finding = _gravest(call, outcome, expected)
    if finding is None and outcome.status == "ok" and expected.error is None:
        finding = _misshapen(call, outcome, expected)
    if finding is not None:
        if case.property == BACKWARD and _is_of_forward(finding, outcome):
            return examined
        return _less_known(replace(examined, finding=finding), known, call)
    if outcome.status == "raised":
        return examined  # where torch raises
    return _judged(op, examined, call, known)


def _is_of_forward(finding: Finding, outcome: Outcome) -> bool:
    shapes = finding.kind == "result" and finding.part.kind == "value"
    return shapes or (finding.kind == "raised" and outcome.phase != "backward")


def _gravest(call: Call, outcome: Outcome, expected: Expected) -> Finding | None:
    """Whatever makes the values not worth comparing, shapes and strides apart."""
    if outcome.status in ("crash", "timeout"):
        return Finding(outcome.status, outcome.message or f"the call ended in a {outcome.status}")
    if outcome.diagnostics:
        more = f" (and {len(outcome.diagnostics) - 1} more)" if len(outcome.diagnostics) > 1 else ""
        return Finding("diagnostics", outcome.diagnostics[0] + more)
    if outcome.status == "raised":
        backward = outcome.phase == "backward"
        due = expected.error or (expected.backward_error if backward else None)
        part = Part("gradient", call.requires_grad[0]) if backward else RESULT
        return None if due else Finding("raised", f"raised {outcome.error}: {outcome.told}", part=part)
    if expected.error is not None:
        return Finding("raised", f"raised nothing; torch's rules for the call raise {expected.error}")
    return _damaged(call, outcome)


def _damaged(call: Call, outcome: Outcome) -> Finding | None:
    """Operands and incoming gradients, gaps and guards must be as they were."""
    names = [f"operand {number}" for number in range(len(call.tensors))]
    names += [f"incoming gradient {number}" for number in range(len(call.gradients))]
    everything = (*call.tensors, *call.gradients)
    for name, tensor, after in zip(names, everything, outcome.inputs_after, strict=False):
        if after == tensor.storage:
            continue
        element = int(_changed(tensor, after)[0])
        what = name if element in _elements(tensor) else f"memory beside {name}"
        return Finding("guard", f"{what} was written to, at element {element} of its storage")
    return _beside_out(call.out, outcome.inputs_after[-1]) if call.out is not None and outcome.inputs_after else None


def _beside_out(out: Tensor, after: bytes) -> Finding | None:
    """Only the elements of ``out`` may change; of one without elements, which is resized, anything may."""
    if not prod(out.shape) or after == out.storage:
        return None
    if len(after) != len(out.storage):
        return Finding("guard", f"the storage of out, which has room for the result, now has {len(after)} bytes")
    beside = np.setdiff1d(_changed(out, after), _elements(out))
    if not beside.size:
        return None
    return Finding("guard", f"memory beside out was written to, at element {beside[0]} of its storage")


def _changed(tensor: Tensor, after: bytes) -> NDArray[np.intp]:
    """The elements of the storage that are not as they were, in order."""
    before, now = np.frombuffer(tensor.storage, np.uint8), np.frombuffer(after, np.uint8)
    return np.unique(np.flatnonzero(before != now) // dtype_of(tensor.dtype).itemsize)


def _elements(tensor: Tensor) -> NDArray[np.intp]:
    """Places in the storage that belong to the tensor."""
    places = np.array(tensor.offset)
    for size, stride in zip(tensor.shape, tensor.strides, strict=True):
        places = places[..., None] + np.arange(size) * stride
    return places.reshape(-1)


def _misshapen(call: Call, outcome: Outcome, expected: Expected) -> Finding | None:
    if not outcome.returns_out:
        return Finding("result", "returned another tensor than the one given as out")
    got = tuple((output.dtype, output.shape) for output in outcome.outputs)
    if expected.results not in (None, got):
        return Finding("result", f"returned {_results_text(got)}; torch's rules give {_results_text(expected.results)}")
    for part, tensor in parts_of(outcome, call.requires_grad):
        if tensor.dtype in BY_NAME and not lies_within(tensor):
            text = _results_text([(tensor.dtype, tensor.shape)])
            return Finding("result", f"{part.heading}returned {text} that reaches past its storage", part=part)
    return None if expected.results is None else _restrided(call, outcome, expected)


def _restrided(call: Call, outcome: Outcome, expected: Expected) -> Finding | None:
    """Strides follow rules as shapes do: what comes next takes another path, or fails, if they are not kept."""
    got = tuple(output.strides for output in outcome.outputs)
    shapes = tuple(output.shape for output in outcome.outputs)
    if not expected.strides or _telling(shapes, got) == _telling(shapes, expected.strides):
        return None
    # A few rules for ``meta`` are written apart from the CPU's and give others than it (logsigmoid); both are right.
    on_cpu = expected_on_cpu(call).strides
    if _telling(shapes, got) == _telling(shapes, on_cpu):
        return None
    if _unordered(call) and all(map(_packed, shapes, got)):
        return None
    due = _strides_text(on_cpu or expected.strides)
    return Finding("result", f"returned strides {_strides_text(got)}; torch's rules give {due}")


def _unordered(call: Call) -> bool:
    """Whether an operand leaves the order of dimensions open: one that is expanded has no order in memory there.

    Torch's implementations settle it differently: an operand that is cast first is a new tensor on the CPU, with
    strides of its own, and is not on a GPU.
    """
    expanded = (0 in [step for size, step in zip(t.shape, t.strides, strict=True) if size > 1] for t in call.tensors)
    return any(expanded) or len({t.shape for t in call.tensors}) > 1


def _packed(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether a tensor has no gaps, in some order of its dimensions."""
    expected = 1
    for step, size in sorted((step, size) for size, step in zip(shape, strides, strict=True) if size > 1):
        if step != expected:
            return False
        expected *= size
    return True


def _telling(shapes: Sequence[tuple[int, ...]], strides: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """The strides that place an element: of sizes above 1, and none of a tensor without elements."""
    return [
        [stride for size, stride in zip(shape, steps, strict=True) if size > 1] if prod(shape) else []
        for shape, steps in zip(shapes, strides, strict=False)
    ]


def _strides_text(strides: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(str(list(steps)) for steps in strides)


def _results_text(results: Sequence[Result] | None) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for dtype, shape in results or ()) or "nothing"


def _judged(op: Op, examined: Examined, call: Call, known: Sequence[Entry]) -> Examined:
    """Compare the values: of the results and, of a call with a backward, of the gradients."""
    results = judged_results(op, call, examined.outcome)
    judged = [] if examined.case.property == BACKWARD else list(results)
    if call.requires_grad:
        gradients = judged_gradients(op, call, examined.outcome, results)
        if isinstance(gradients, Finding):
            return _less_known(replace(examined, finding=gradients), known, call)
        judged += gradients
    used: dict[str, None] = {}
    first = upcast(call.tensors[0]) if call.tensors else None
    for number, item in enumerate(judged):
        failing, ids = uncovered(known, examined.case, item.part.kind, item.part, item.failing, first)
        judged[number] = replace(item, failing=failing)
        used.update(dict.fromkeys(ids))
    finding = next((value_finding(item, item.failing) for item in judged if item.failing.any()), None)
    return replace(examined, finding=finding, judged=tuple(judged), known=tuple(used))


def _less_known(examined: Examined, known: Sequence[Entry], call: Call) -> Examined:
    """Drop a finding that is about no element if an entry covers all of the case."""
    finding = examined.finding
    assert finding is not None
    first = upcast(call.tensors[0]) if call.tensors else None
    for entry in known:
        if np.all(entry.covers(examined.case, finding.kind, first, finding.part)):
            return replace(examined, finding=None, known=(entry.id,))
    return examined
