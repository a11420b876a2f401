"""Run one case, or one call on torch tensors, on a device, outside any run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.case import Case, literal
from conformance.devices import resolve
from conformance.dtypes import dtype as dtype_of
from conformance.errors import UsageError
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


def outputs(case: Case, *, device: str, build: str | None = None) -> list[torch.Tensor]:
    """The results of a case on a device, as torch tensors on the CPU.

    Raises
    ------
    RuntimeError
        If the call raises or the device does not support it; the message says what.
    UsageError, conformance.devices.base.Unavailable
        If there is no such op or device.
    """
    call = Call(case.op, _op(case.op).function, case.materialise(), dict(case.params))
    return _results(run(call, resolve(device, build)))


def call(
    name: str, *operands: torch.Tensor, device: str, build: str | None = None, **params: Any
) -> list[torch.Tensor]:
    """The results of the op ``name`` on a device, for operands on the CPU; raises as :func:`outputs`.

    Operands keep their strides and storage offset.
    """
    tensors = tuple(_tensor(operand) for operand in operands)
    return _results(run(Call(name, _op(name).function, tensors, params), resolve(device, build)))


def _tensor(operand: torch.Tensor) -> Tensor:
    import torch

    from conformance.worker.executor import storage_bytes

    dtype = str(operand.dtype).removeprefix("torch.")
    dtype_of(dtype)
    assert isinstance(operand, torch.Tensor)
    return Tensor(dtype, tuple(operand.shape), operand.stride(), int(operand.storage_offset()), storage_bytes(operand))


def _results(outcome: Outcome) -> list[torch.Tensor]:
    import torch

    if outcome.status != "ok":
        raise RuntimeError(f"{outcome.status}: {outcome.error or ''} {outcome.message or ''}".rstrip())
    for diagnostic in outcome.diagnostics:
        print(diagnostic)
    results = []
    for output in outcome.outputs:
        dense = literal(view_of(output), output.dtype).materialise()
        flat = torch.frombuffer(bytearray(dense.storage), dtype=getattr(torch, output.dtype))
        results.append(flat.as_strided(dense.shape, dense.strides, dense.offset))
    return results


def _why(examined: Examined) -> str:
    if examined.judgement is not None:
        return f": {examined.judgement.message}"
    outcome = examined.outcome
    return f": raised {outcome.error} as it should: {outcome.message}" if outcome.status == "raised" else ""


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
        print(f"unsupported: {examined.outcome.message}")
        return True
    if examined.finding is None:
        print(f"pass{_why(examined)}")
        return True
    print(f"fail ({checker.class_of(op, case, examined.finding)}): {examined.finding.message}")
    return False
