"""The property ``exhaustive``: an op's sweep, judged whole, its failing inputs grouped and one of each group shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import DType
from conformance.dtypes import dtype as dtype_of
from conformance.engine.checker import Checker
from conformance.engine.examine import Examined
from conformance.engine.judged import value_finding
from conformance.engine.minimal import minimal
from conformance.engine.minimise import element_case
from conformance.engine.tally import Failure, Tally
from conformance.findings import OF_ELEMENTS, Part
from conformance.formats import bits_of_array, component, number_text
from conformance.known import FailureClass

if TYPE_CHECKING:
    from conformance.op import Op

_RANGES = 4
"""Ranges of failing inputs that a message spells out."""


@dataclass(frozen=True)
class _Group:
    """Failing elements of one class: ``mask`` over the elements of a result of ``examined``."""

    examined: Examined
    part: Part
    mask: NDArray[np.bool_]


def sweep(op: Op, dtype: str, checker: Checker, tally: Tally) -> None:
    """Run the op's sweep and add what it finds to ``tally``: a failure of values for each class, one of other kinds.

    Raises
    ------
    ValueError
        If the op has no sweep.
    """
    if op.sweep is None:
        raise ValueError(f"op {op.name} has no sweep, yet lists the property exhaustive")
    groups: dict[FailureClass, list[_Group]] = {}
    others: dict[str, Examined] = {}
    inputs = 0
    for case in op.sweep(dtype):
        inputs += max(spec.numel for spec in case.tensors)
        examined = checker.check(op, case)
        tally.add(examined)
        if examined.finding is None:
            continue
        if examined.finding.kind not in OF_ELEMENTS:
            others.setdefault(examined.finding.kind, examined)
            continue
        for failure_class, masks in checker.by_class(op, examined).items():
            groups.setdefault(failure_class, []).extend(_Group(examined, part, mask) for part, mask in masks.items())
    tally.failures += [minimal(op, checker, examined) for examined in others.values()]
    for failure_class, group in sorted(groups.items()):
        tally.failures.append(_failure(op, checker, failure_class, group, inputs))


def _failure(op: Op, checker: Checker, failure_class: FailureClass, groups: list[_Group], inputs: int) -> Failure:
    """Show a class of failing inputs by its simplest, run alone; the message says how many there are and where."""
    summary = f"Of the {inputs} inputs of the sweep {_summary(groups)}"
    for group in groups:
        for element in _simplest(group):
            case = element_case(op, group.examined.case, element, group.part)
            if case is None:
                break
            alone = checker.check(op, case).finding
            if alone is not None and alone.kind == group.part.kind:
                return Failure(case, replace(alone, message=f"{alone.message}. {summary}"), failure_class)
    # It fails in company only: show the whole case.
    first = groups[0]
    finding = value_finding(first.examined.judged_part(first.part), first.mask)
    return Failure(first.examined.case, replace(finding, message=f"{finding.message}. {summary}"), failure_class)


def _simplest(group: _Group, tries: int = 8) -> list[int]:
    """Failing elements whose first operand needs the fewest digits, the smallest first."""
    dtype = dtype_of(group.examined.case.tensors[0].dtype)
    bits = _operand_bits(group)
    elements = np.flatnonzero(group.mask)
    # Digits are slow to count: let trailing zero bits choose the few that are worth it.
    zeros = np.array([(int(word) & -int(word)).bit_length() or 65 for word in bits[elements]])
    chosen = elements[np.argsort(-zeros, kind="stable")[:256]]

    def simplicity(element: int) -> tuple[int, int]:
        text = number_text(int(bits[element]), dtype)
        return len(text.strip("-")) + (text.startswith("-")), int(bits[element])

    return sorted((int(element) for element in chosen), key=simplicity)[:tries]


def _operand_bits(group: _Group) -> NDArray[Any]:
    """The first operand at each element of the result, broadcast to it."""
    spec = group.examined.case.tensors[0]
    dtype = dtype_of(spec.dtype)
    numbers = np.broadcast_to(spec.logical(), group.mask.shape)
    return bits_of_array(numbers, dtype)[:: component(dtype).count]


def _summary(groups: list[_Group]) -> str:
    """Say how many inputs fail, and in which ranges of the first operand, over all cases of the sweep that fail."""
    dtype = dtype_of(groups[0].examined.case.tensors[0].dtype)
    bits = np.concatenate([_operand_bits(group) for group in groups])
    failing = np.concatenate([group.mask.reshape(-1) for group in groups])
    ranges = list(_ranges(bits, failing, dtype))
    ranges.sort(key=lambda found: -found[2])
    texts = [f"[{low}, {high}] ({count})" if low != high else f"{low}" for low, high, count in ranges[:_RANGES]]
    more = f" and {len(ranges) - _RANGES} more ranges" if len(ranges) > _RANGES else ""
    return f"{int(failing.sum())} fail this way: {', '.join(texts)}{more}"


def _ranges(bits: NDArray[Any], failing: NDArray[np.bool_], dtype: DType) -> Iterator[tuple[str, str, int]]:
    """Runs of failing inputs between which no input passed, on the number line; NaNs in a range of their own."""
    layout = component(dtype)
    words = bits.astype(np.uint64).astype(object) if layout.width == 64 else bits.astype(np.int64)
    negative = (words & layout.sign) != 0 if layout.is_signed else np.zeros(len(words), bool)
    magnitude = words & (layout.sign - 1)
    ordered = (
        np.where(negative, -magnitude - 1, magnitude)
        if layout.is_float
        else np.where(negative, words - (layout.sign << 1), words)
    )
    order = np.argsort(ordered, kind="stable")
    failing, bits = failing[order], bits[order]
    edges = np.flatnonzero(np.diff(np.concatenate(([0], failing.view(np.int8), [0]))))
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        low, high = int(bits[start]), int(bits[end - 1])
        yield number_text(low, dtype), number_text(high, dtype), int(end - start)
