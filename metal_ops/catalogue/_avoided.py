"""Calls of binary ops that are not drawn: those that torch refuses, and those that may end the process.

Rules for ``meta`` do not tell these: torch looks at the numbers, or checks in the CPU's kernel what others leave out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import DType
from conformance.dtypes import dtype as dtype_of
from conformance.formats import widened
from conformance.oracle.operands import converted

if TYPE_CHECKING:
    from conformance.case import Case, TensorSpec


def undivided(case: Case) -> bool:
    """Whether an integer is divided by zero, which raises on some devices, or the least one by -1.

    C leaves both undefined, and x86 ends the process.
    """
    common = _common(case)
    if common is None or common.kind != "int":
        return False
    dividend, divisor = _integers(case, common)
    least = np.iinfo(common.numpy).min
    return bool((divisor == 0).any() or (least < 0 and ((dividend == least) & (divisor == -1)).any()))


def least_multiplied(case: Case) -> bool:
    """Whether an operand of ``lcm`` is the least integer: its absolute value is none, and x86 may end the process."""
    common = _common(case)
    if common is None or common.kind != "int" or not np.iinfo(common.numpy).min:
        return False
    return any((operand == np.iinfo(common.numpy).min).any() for operand in _integers(case, common))


def subtracts_bool(case: Case) -> bool:
    """Whether an operand is bool, which torch refuses to subtract or to be subtracted from."""
    return isinstance(case.params.get("other"), bool) or any(spec.dtype == "bool" for spec in case.tensors)


def negative_power(case: Case) -> bool:
    """Whether integers are raised to a negative integer number, which torch refuses."""
    common, exponent = _common(case), case.params.get("exponent")
    return common is not None and common.kind in ("int", "bool") and exponent is not None and exponent < 0


def unpromoted(case: Case) -> bool:
    """Whether torch defines no common type of the operands."""
    return _common(case) is None


def _common(case: Case) -> DType | None:
    """The type that torch promotes the operands to; None if it has none."""
    import torch

    try:
        common = torch.result_type(*(_standing(operand) for operand in _operands(case)))
    except RuntimeError:
        return None
    return dtype_of(str(common).removeprefix("torch."))


def _operands(case: Case) -> list[TensorSpec | Any]:
    """The two operands, of which the second may be the case's one number."""
    numbers = [case.params[name] for name in ("other", "exponent", "n") if name in case.params]
    return [*case.tensors, *numbers]


def _standing(operand: TensorSpec | Any) -> Any:
    """What torch needs to know of an operand to promote it."""
    import torch

    if not hasattr(operand, "shape"):
        return operand
    return torch.empty((1,) * min(len(operand.shape), 1), dtype=getattr(torch, operand.dtype), device="meta")


def _integers(case: Case, common: DType) -> tuple[NDArray[Any], NDArray[Any]]:
    """The operands as the integers of type ``common`` that they are converted to."""
    first, second = (_converted(operand, common) for operand in _operands(case))
    return first, second


def _converted(operand: TensorSpec | Any, common: DType) -> NDArray[Any]:
    if not hasattr(operand, "shape"):
        return converted(np.asarray(operand, np.int64), dtype_of("int64"), common)
    source = dtype_of(operand.dtype)
    return converted(widened(operand.logical(), source), source, common)
