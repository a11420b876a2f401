"""Judge what a call gave: each result by the op's reference and bound, each gradient by its vector-Jacobian product."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import BY_NAME
from conformance.dtypes import dtype as dtype_of
from conformance.engine.coverage import Bools, fitted
from conformance.engine.repeating import Period, period
from conformance.engine.stored import Stored
from conformance.expectation import common_type, number_operands, own_type
from conformance.findings import Finding, Part
from conformance.formats import widened
from conformance.layout import view_of
from conformance.op import Computation
from conformance.oracle import Judgement, judge

if TYPE_CHECKING:
    from conformance.op import Gradient, Op, ReferenceFunction
    from conformance.worker.protocol import Call, Outcome, Tensor


@dataclass(frozen=True)
class Judged:
    """A result or gradient with its judgement; ``failing`` are the elements outside the bound that count."""

    part: Part
    judgement: Judgement
    failing: Bools


def upcast(tensor: Tensor) -> NDArray[Any]:
    """The logical values in the widest type of their kind, exactly."""
    return widened(view_of(tensor), dtype_of(tensor.dtype))


def value_finding(judged: Judged, failing: Bools) -> Finding:
    """The finding about the elements ``failing``, of which there is at least one: it shows the worst."""
    judgement = judged.judgement
    units = np.where(failing, judgement.units, -1.0).reshape(-1)
    element = int(np.argmax(units))
    count = int(np.count_nonzero(failing))
    summary = f"{count} of {failing.size} elements outside the bound" if failing.size > 1 else "outside the bound"
    detail = judgement.message if element == judgement.worst else f"{units[element]:.4g} times the bound"
    return Finding(judged.part.kind, f"{judged.part.heading}{summary}; {detail}", element, judged.part)


def judged_results(op: Op, call: Call, outcome: Outcome) -> list[Judged]:
    """Judge every result that has elements of a type that can be judged.

    A result that the caller had stored in a type of its choice is judged by the type that it has by itself.
    """
    inputs, dtypes, numbers = _operands(call), _dtypes(call.tensors), number_operands(op, call)
    found = []
    for position, output in enumerate(outcome.outputs):
        if output.dtype not in BY_NAME or not prod(output.shape):
            continue
        reference = _reference(op, call, position if len(outcome.outputs) > 1 else None)
        own = output.dtype if call.out is None else own_type(op, call) or output.dtype
        bound = op.bound if own == output.dtype else Stored(op.bound, own)
        common = common_type(op, call, own)
        got = np.atleast_1d(view_of(output))
        repeating = period(got, inputs) if op.ladder is not None else Period(got, inputs)
        computation = Computation(repeating.inputs, dtypes, call.params, output.dtype, reference, common, numbers)
        judgement = repeating.extended(judge(computation, repeating.got, bound))
        found.append(Judged(Part("value", position), judgement, judgement.failing))
    return found


def judged_gradients(op: Op, call: Call, outcome: Outcome, results: Sequence[Judged]) -> list[Judged] | Finding:
    """Judge every gradient, or say what makes the gradients not worth comparing.

    The vector-Jacobian product gets the result as the device computed and saved it. Elements that follow from an
    element of ``results`` that is wrong do not count.

    Raises
    ------
    ValueError
        If the op has no gradient, or it gives not one for each operand.
    """
    if op.gradient is None:
        raise ValueError(f"op {op.name} has no gradient, yet case and call ask for some")
    incoming, result = _differentiable(op, call, outcome)
    inputs, dtypes = _saved(op, call, incoming, result), _dtypes((incoming, result, *call.tensors))
    common, numbers = common_type(op, call, result.dtype), number_operands(op, call)
    with np.errstate(all="ignore"):
        true = _taking(op.gradient.vjp, call)(*inputs, **call.params)
    if len(true) != len(call.tensors):
        raise ValueError(f"op {op.name}: the gradient gives {len(true)} for {len(call.tensors)} operands")
    found = []
    for position, gradient in zip(call.requires_grad, outcome.gradients, strict=True):
        if finding := _misfit(call, position, gradient, due=true[position] is not None):
            return finding
        if gradient is None or not prod(gradient.shape):
            continue
        reference = _component(op.gradient, call, position, gradient.dtype)
        computation = Computation(inputs, dtypes, call.params, gradient.dtype, reference, common, numbers)
        judgement = judge(computation, np.atleast_1d(view_of(gradient)), op.gradient.bound)
        excused = _excused(results, judgement.failing)
        found.append(Judged(Part("gradient", position), judgement, judgement.failing & ~excused))
    return found


def _operands(call: Call) -> tuple[NDArray[Any], ...]:
    """The operands upcast; one without dimensions as one of one element, since NumPy would make scalars of them."""
    return tuple(np.atleast_1d(upcast(tensor)) for tensor in call.tensors)


def _dtypes(tensors: Sequence[Tensor]) -> tuple[str, ...]:
    return tuple(tensor.dtype for tensor in tensors)


def _taking(function: Callable[..., Any], call: Call) -> Callable[..., Any]:
    """The function with the call's operands all in order, those that the call names included."""
    if not call.named:
        return function

    def taking(*inputs: NDArray[Any], **params: Any) -> Any:
        positional = len(inputs) - len(call.named)
        named = dict(zip(call.named, inputs[positional:], strict=True))
        return function(*inputs[:positional], **named, **params)

    return taking


def _reference(op: Op, call: Call, position: int | None) -> ReferenceFunction:
    """The reference of one result; of several the reference gives a tuple."""
    function = _taking(op.reference.function, call)

    def reference(*inputs: NDArray[Any], **params: Any) -> NDArray[Any]:
        true: Any = function(*inputs, **params)
        return np.atleast_1d(true if position is None else true[position])

    return reference


def _component(gradient: Gradient, call: Call, position: int, dtype: str) -> Callable[..., NDArray[Any]]:
    """The gradient of one operand; of a real one, whatever the op made of it, the real part."""
    is_real = dtype_of(dtype).kind != "complex"
    vjp = _taking(gradient.vjp, call)

    def reference(*inputs: NDArray[Any], **params: Any) -> NDArray[Any]:
        component = vjp(*inputs, **params)[position]
        assert component is not None
        return np.atleast_1d(component.real if is_real else component)

    return reference


def _differentiable(op: Op, call: Call, outcome: Outcome) -> tuple[Tensor, Tensor]:
    """The one differentiable result with its incoming gradient, the gradient first."""
    places = [
        position
        for position, output in enumerate(outcome.outputs)
        if output.dtype in BY_NAME and dtype_of(output.dtype).kind in ("float", "complex")
    ]
    if len(places) != 1:
        raise ValueError(f"op {op.name}: a gradient is judged of one differentiable result; the call has {len(places)}")
    return call.gradients[places[0]], outcome.outputs[places[0]]


def _saved(op: Op, call: Call, incoming: Tensor, result: Tensor) -> tuple[NDArray[Any], ...]:
    """The incoming gradient, the saved result, then the operands."""
    inputs = _operands(call)
    shape = result.shape
    if not shape:
        # Of operands raised to one dimension some references make a result of one dimension, some of none.
        with np.errstate(all="ignore"):
            shape = np.shape(_taking(op.reference.function, call)(*inputs, **call.params))
    return upcast(incoming).reshape(shape), upcast(result).reshape(shape), *inputs


def _misfit(call: Call, position: int, gradient: Tensor | None, *, due: bool) -> Finding | None:
    """A gradient is there if the operand has one, and is of the operand's element type and shape."""
    part, operand = Part("gradient", position), call.tensors[position]
    if gradient is None:
        return Finding("result", f"{part} is missing: torch gives None", part=part) if due else None
    got = f"{gradient.dtype}{list(gradient.shape)}"
    if not due:
        return Finding("result", f"{part} is {got}; the operand has none", part=part)
    if (gradient.dtype, gradient.shape) == (operand.dtype, operand.shape):
        return None
    return Finding("result", f"{part} is {got}; the operand is {operand.dtype}{list(operand.shape)}", part=part)


def _excused(results: Sequence[Judged], failing: Bools) -> Bools:
    """Elements of a gradient that follow from wrong elements of a result; all, if nobody knows which do."""
    excused = np.zeros_like(failing)
    for wrong in (judged.judgement.failing for judged in results):
        if wrong.any():
            fitting = fitted(wrong, failing.shape)
            excused |= True if fitting is None else fitting
    return excused


def parts_of(outcome: Outcome, requires_grad: Sequence[int]) -> Iterator[tuple[Part, Tensor]]:
    """Every tensor that a call gave: its results, then the gradients that are there."""
    for position, output in enumerate(outcome.outputs):
        yield Part("value", position), output
    for position, gradient in zip(requires_grad, outcome.gradients, strict=False):
        if gradient is not None:
            yield Part("gradient", position), gradient
