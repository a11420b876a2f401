"""What torch's rules make of a call: the results' shapes, element types and strides, or the error; and promotion."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from conformance.devices.cpu import CpuDevice
from conformance.dtypes import BY_NAME
from conformance.dtypes import dtype as dtype_of
from conformance.worker import run
from conformance.worker.invoke import differentiate, invoke
from conformance.worker.protocol import Call, Tensor

if TYPE_CHECKING:
    import torch

    from conformance.case import Case, TensorSpec
    from conformance.op import Op

Result = tuple[str, tuple[int, ...]]
"""Element type and shape."""

_LACKING = re.compile("not implemented for|Expected inputs of BF16 type")
"""What torch says of an element type that the CPU kernel lacks; some rules repeat it, though another device may not.
Those of grouped products know bfloat16 alone, which is all that they had at first."""


@dataclass(frozen=True)
class Expected:
    """What torch's rules make of a call: element type and shape of each result, or the error they raise.

    ``results`` is None where nobody knows. ``strides`` has those of each result, none where nobody knows them.
    ``backward_error`` is the error that the backward raises where the forward raises none.
    """

    results: tuple[Result, ...] | None = ()
    error: str | None = None
    strides: tuple[tuple[int, ...], ...] = ()
    backward_error: str | None = None


def call_of(op: Op, case: Case) -> Call:
    """The call that a case describes, with its bytes."""
    return replace(
        _outline(op, case),
        tensors=case.materialise(),
        gradients=tuple(spec.materialise() for spec in case.gradients),
        out=None if case.out is None else case.out.materialise(),
    )


def _outline(op: Op, case: Case) -> Call:
    """The call without its bytes, which rules do not ask for.

    Raises
    ------
    ValueError
        If the case provides the result, and no function of the op takes it.
    """
    if case.out is not None and op.out is None:
        raise ValueError(f"op {op.name} has no function that takes out=, yet the case gives one")
    tensors, gradients = (tuple(map(_outlined, specs)) for specs in (case.tensors, case.gradients))
    function, out = (op.function, None) if case.out is None else (op.out or op.function, _outlined(case.out))
    params = dict(case.params)
    return Call(op.name, function, tensors, params, op.listed, case.requires_grad, gradients, out, case.named)


def _outlined(spec: TensorSpec) -> Tensor:
    return Tensor(spec.dtype, spec.shape, spec.layout.strides(spec.shape), spec.layout.offset, b"")


def expected_of(call: Call) -> Expected:
    """What torch's rules for shapes, element types and errors make of the call.

    They are asked on the ``meta`` device, which computes nothing; for an op without such rules the CPU runs it. About
    ``out`` the CPU is asked first, where it has the types: rules for ``meta`` that are written apart cast into it what
    all backends refuse.
    """
    if call.out is not None:
        on_cpu = expected_on_cpu(call)
        if on_cpu.results is not None:
            return on_cpu
        on_meta = _on_meta(call)
        if on_meta is not None and on_meta.results and on_meta.results[0][1] != call.out.shape:
            return replace(on_meta, strides=())  # of a result that they resize, rules for ``meta`` forget the strides
    return _on_meta(call) or expected_on_cpu(call)


def own_type(op: Op, call: Call) -> str | None:
    """The element type that the one result of a call has where the caller provides none; None if nobody knows."""
    forward = replace(call, function=op.function, requires_grad=(), gradients=(), out=None)
    results = (_on_meta(forward) or expected_on_cpu(forward)).results
    return results[0][0] if results and len(results) == 1 else None


def results_of(op: Op, case: Case) -> tuple[Result, ...] | None:
    """The results that a case's forward makes by itself; None where it raises, or nobody knows."""
    forward = replace(case, requires_grad=(), gradients=(), out=None)
    expected = _on_meta(_outline(op, forward)) or expected_on_cpu(call_of(op, forward))
    return None if expected.error else expected.results


def _forward(call: Call) -> Call:
    return replace(call, requires_grad=(), gradients=())


def _on_meta(call: Call) -> Expected | None:
    """None where ``meta`` has no rules."""
    views = [_meta(tensor) for tensor in call.tensors]
    try:
        leaves = [views[position].requires_grad_() for position in call.requires_grad]
        results = invoke(call, views, None if call.out is None else _meta(call.out))
    except NotImplementedError:
        return None
    except Exception as error:
        if _LACKING.search(str(error)):
            return None
        return Expected(error=type(error).__name__)
    backward_error = None
    if leaves:
        try:
            differentiate(results, leaves, [_meta(tensor) for tensor in call.gradients])
        except Exception:
            # Formulas may look at numbers, which ``meta`` has none of; the CPU tells.
            backward_error = expected_on_cpu(call).backward_error
    return Expected(
        tuple((_name(result.dtype), tuple(result.shape)) for result in results),
        strides=tuple(result.stride() for result in results),
        backward_error=backward_error,
    )


def expected_on_cpu(call: Call) -> Expected:
    """What torch's CPU kernels make of the call."""
    outcome = run(call, CpuDevice())
    if outcome.status == "ok":
        return Expected(
            tuple((output.dtype, output.shape) for output in outcome.outputs),
            strides=tuple(output.strides for output in outcome.outputs),
        )
    if outcome.phase == "backward":
        forward = expected_on_cpu(_forward(call))
        return replace(forward, backward_error=outcome.error or "NotImplementedError")
    return Expected(error=outcome.error) if outcome.status == "raised" else Expected(results=None)


def common_type(op: Op, call: Call, result: str) -> str | None:
    """The element type that torch promotes the operands to for a result of type ``result``; None if it promotes none.

    Where torch promotes to an integer type or bool and the result is floating, operands become floats first, of the
    default type.
    """
    import torch

    promoted = _promoted(op, call)
    floating = dtype_of(result).kind in ("float", "complex") if result in BY_NAME else False
    if promoted is None or not floating or dtype_of(promoted).kind in ("float", "complex"):
        return promoted
    return _name(torch.get_default_dtype())


def _promoted(op: Op, call: Call) -> str | None:
    """The type that the operands have in common; None if none take part, or torch cannot promote them.

    Torch decides: :func:`torch.result_type` takes two, and of more it is the same by its three ranks. Tensors with
    dimensions come before those without, these before Python numbers; a lower rank counts only by its kind.
    """
    import torch

    everything = range(len(call.tensors))
    taking_part: Sequence[int | str] = everything if op.promotes is None else op.promotes
    tensors = [call.tensors[item] for item in taking_part if isinstance(item, int) and item < len(call.tensors)]
    numbers = [call.params[name] for name in number_operands(op, call)]
    ranked: list[Any] = [_meta(tensor) for tensor in tensors if tensor.shape]
    scalars: list[Any] = [_meta(tensor) for tensor in tensors if not tensor.shape]
    try:
        high, low = _folded(ranked, (1,)), _folded(scalars, ())
        number = max(numbers, key=lambda value: _KINDS.index(type(value)), default=None)
        present = [item for item in (high, low, number) if item is not None]
        if not present:
            return None
        if len(present) > 2:  # the lower two first, as one tensor without dimensions: to the highest they are alike
            present[1:] = [torch.empty((), dtype=torch.result_type(*present[1:]), device="meta")]
        return _name(torch.result_type(present[0], present[-1]))
    except RuntimeError:
        return None


_KINDS = [bool, int, float, complex]


def number_operands(op: Op, call: Call) -> tuple[str, ...]:
    """The parameters that are Python numbers in place of an operand: those of the call that take part in promotion."""
    names = (name for name in op.promotes or () if isinstance(name, str))
    return tuple(name for name in names if type(call.params.get(name)) in _KINDS)


def _folded(tensors: Sequence[torch.Tensor], shape: tuple[int, ...]) -> torch.Tensor | None:
    """One tensor of the type that tensors of one rank are promoted to."""
    import torch

    if not tensors:
        return None
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return torch.empty(shape, dtype=dtype, device="meta")


def _meta(tensor: Tensor) -> torch.Tensor:
    import torch

    dtype = getattr(torch, tensor.dtype)
    return torch.empty_strided(tensor.shape, tensor.strides, dtype=dtype, device="meta")


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
