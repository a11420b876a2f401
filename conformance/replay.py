"""Run one case, or one call on torch tensors, on a device, outside any run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.case import Case, literal
from conformance.devices import resolve
from conformance.dtypes import dtype as dtype_of
from conformance.errors import UsageError
from conformance.expectation import call_of
from conformance.layout import view_of
from conformance.registry import catalogue
from conformance.worker import Call, Outcome, Tensor, run

if TYPE_CHECKING:
    import torch

    from conformance.engine.examine import Examined
    from conformance.op import Op


def _op(name: str) -> Op:
    ops = {op.name: op for op in catalogue()}
    if name not in ops:
        raise UsageError.of("op", name, sorted(ops))
    return ops[name]


def outputs(case: Case, *, device: str, build: str | None = None) -> list[torch.Tensor | None]:
    """The results of a case on a device, then its gradients (None for what has none), as torch tensors on the CPU.

    Raises
    ------
    RuntimeError
        If the call raises or the device does not support it; the message says what.
    UsageError, conformance.devices.base.Unavailable
        If there is no such op or device.
    """
    return _results(run(call_of(_op(case.op), case), resolve(device, build)))


def call(
    name: str,
    *operands: torch.Tensor,
    device: str,
    build: str | None = None,
    requires_grad: Sequence[int] = (),
    gradients: Sequence[torch.Tensor] = (),
    out: torch.Tensor | None = None,
    **params: Any,
) -> list[torch.Tensor | None]:
    """The results of the op ``name`` on a device, for operands on the CPU; gives and raises what :func:`outputs` does.

    Operands, and the incoming ``gradients`` of the results, keep their strides and storage offset. ``requires_grad``
    has the positions of the operands whose gradients are asked for; ``out`` is what the result is stored in. Element
    types among the parameters are texts such as ``"torch.float16"``, or types; tensors there are operands as well, the
    last ones.
    """
    import torch

    op = _op(name)
    named = tuple(key for key, value in params.items() if isinstance(value, torch.Tensor))
    operands = (*operands, *(params.pop(key) for key in named))
    tensors, incoming = (tuple(map(_tensor, given)) for given in (operands, gradients))
    texts = {key: str(value) if type(value).__name__ == "dtype" else value for key, value in params.items()}
    provided = None if out is None else _tensor(out)
    function = op.function if out is None or op.out is None else op.out
    described = Call(name, function, tensors, texts, op.listed, tuple(requires_grad), incoming, provided, named)
    return _results(run(described, resolve(device, build)))


def _tensor(operand: torch.Tensor) -> Tensor:
    import torch

    from conformance.worker.executor import storage_bytes

    dtype = str(operand.dtype).removeprefix("torch.")
    dtype_of(dtype)
    assert isinstance(operand, torch.Tensor)
    return Tensor(dtype, tuple(operand.shape), operand.stride(), int(operand.storage_offset()), storage_bytes(operand))


def _results(outcome: Outcome) -> list[torch.Tensor | None]:
    import torch

    if outcome.status != "ok":
        raise RuntimeError(f"{outcome.status}: {outcome.error or ''} {outcome.told}".rstrip())
    for diagnostic in outcome.diagnostics:
        print(diagnostic)
    results: list[torch.Tensor | None] = []
    for output in (*outcome.outputs, *outcome.gradients):
        if output is None:
            results.append(None)
            continue
        dense = literal(view_of(output), output.dtype).materialise()
        flat = torch.frombuffer(bytearray(dense.storage), dtype=getattr(torch, output.dtype))
        results.append(flat.as_strided(dense.shape, dense.strides, dense.offset))
    return results


def _why(examined: Examined) -> str:
    if examined.judged:
        return ": " + "; ".join(judged.part.heading + judged.judgement.message for judged in examined.judged)
    outcome = examined.outcome
    return f": raised {outcome.error} as it should: {outcome.told}" if outcome.status == "raised" else ""


def replay(path: Path, device: str | None, build: str | None) -> bool:
    """Run a case file, print what is found, and tell whether nothing is.

    Raises
    ------
    UsageError
        If the file is no case, or its op or the device does not exist.
    """
    from conformance.engine import Checker

    try:
        case = Case.load(path)
        case.materialise()
    except OSError as error:
        raise UsageError(f"CASEFILE {path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, MemoryError) as error:
        raise UsageError(f"CASEFILE {path}: {error}") from None
    op = _op(case.op)
    checker = Checker(resolve(device, build))
    examined = checker.check(op, case)
    print(case.text())
    for kernel in examined.outcome.kernels:
        print(f"kernel: {kernel}")
    if examined.unsupported:
        print(f"unsupported: {examined.outcome.told}")
        return True
    if examined.finding is None:
        print(f"pass{_why(examined)}")
        return True
    print(f"fail ({checker.class_of(op, case, examined.finding)}): {examined.finding.message}")
    return False
