"""The second stage of shrinking: from a recipe to a literal of a handful of numbers.

Hypothesis shrinks the recipe. Here the concrete arrays shrink: a plainer backward and layout, fewer elements, simpler
numbers, as long as the failure stays of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import takewhile
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from conformance.case import Case, TensorSpec, literal, ones
from conformance.dtypes import DType
from conformance.dtypes import dtype as dtype_of
from conformance.expectation import results_of
from conformance.findings import RESULT, Finding, Part
from conformance.formats import array_of_bits, bits_of, bits_of_array, component

if TYPE_CHECKING:
    from conformance.op import Op

Retry = Callable[[Case], Finding | None]
"""Runs a case; gives what is wrong with it, None if nothing is (or nothing of the kind in question)."""

Candidates = Callable[["Op", Case], Iterator[Case]]

_BUDGET = 300
"""Calls that may be spent on one failure."""

_LITERAL = 4096
"""Elements up to which a tensor is spelled out in a report."""

_SLICED = 1 << 18
"""Elements from which no smaller tensors are tried: what fails there but not alone is about large tensors."""


def minimise(op: Op, case: Case, finding: Finding, retry: Retry) -> tuple[Case, Finding]:
    """The simplest case found that fails as ``case`` does, with its finding."""
    search = _Search(op, case, finding, retry)
    search.exhaust(_plainer_backward)
    search.exhaust(_plainer_out)
    search.take(search.case.contiguous())
    if not search.take_element():
        recipe = search.case, search.finding
        search.exhaust(_smaller)
        if any(spec.numel > _LITERAL for spec in search.case.tensors):
            search.case, search.finding = recipe  # a recipe says more than so many numbers
    search.exhaust(_simpler)
    return search.case, search.finding


class _Search:
    """Greedy descent with a budget of calls."""

    def __init__(self, op: Op, case: Case, finding: Finding, retry: Retry) -> None:
        self.case = case
        self.finding = finding
        self._op = op
        self._retry = retry
        self._left = _BUDGET

    def take(self, candidate: Case) -> bool:
        """Move to ``candidate`` if it still fails in the same way."""
        if self._left <= 0 or candidate == self.case:
            return False
        self._left -= 1
        found = self._retry(candidate)
        if found is None or found.kind != self.finding.kind:
            return False
        self.case, self.finding = candidate, found
        return True

    def take_element(self) -> bool:
        """Try the failing element alone, which is enough for an elementwise op."""
        candidate = element_case(self._op, self.case, self.finding.element, self.finding.part)
        return candidate is not None and self.take(candidate)

    def exhaust(self, candidates: Candidates) -> None:
        """Take candidates until none is left that fails."""
        while self._left > 0 and any(map(self.take, self._affordable(candidates(self._op, self.case)))):
            pass

    def _affordable(self, candidates: Iterator[Case]) -> Iterator[Case]:
        """The candidates for which there are calls left: of many numbers there may be a hundred thousand."""
        return takewhile(lambda _: self._left > 0, candidates)


def element_case(op: Op, case: Case, element: int | None, part: Part = RESULT) -> Case | None:
    """The case of one element of ``part`` alone, as a literal; None if the results are not as large as the operands.

    Operands are broadcast; of the gradient of one that is, the first of the elements summed into it is taken.
    """
    try:
        shape = np.broadcast_shapes(*(spec.shape for spec in case.tensors))
    except ValueError:
        return None
    target = shape if part.kind == "value" else case.tensors[part.position].shape
    results = results_of(op, case)
    if element is None or element >= prod(target) or not results or any(size != shape for _, size in results):
        return None
    index = (0,) * (len(shape) - len(target)) + tuple(map(int, np.unravel_index(element, target)))
    tensors, gradients = (
        tuple(literal(np.broadcast_to(spec.logical(), shape)[index].reshape(1), spec.dtype) for spec in specs)
        for specs in (case.tensors, case.gradients)
    )
    out = case.out and _resized(case.out, (1,))
    return replace(case, tensors=tensors, gradients=gradients, out=out)


def _plainer_out(op: Op, case: Case) -> Iterator[Case]:
    """No tensor for the result, then one that fits, of the result's own type or as it was."""
    if case.out is None:
        return
    yield replace(case, out=None)
    results = results_of(op, case)
    if results is not None and len(results) == 1:
        dtype, shape = results[0]
        yield replace(case, out=TensorSpec(dtype, shape, values=case.out.values))
        yield replace(case, out=TensorSpec(case.out.dtype, shape, values=case.out.values))


def _resized(out: TensorSpec, shape: tuple[int, ...]) -> TensorSpec:
    """A dense tensor for a result of another shape; one without elements stays, for it is resized."""
    return out if not out.numel else TensorSpec(out.dtype, shape, values=out.values)


def _plainer_backward(op: Op, case: Case) -> Iterator[Case]:
    """No backward, then the gradient of one operand or of all but one, then incoming gradients of ones."""
    if not case.requires_grad:
        return
    yield replace(case, requires_grad=(), gradients=())
    if len(case.requires_grad) > 1:
        for position in case.requires_grad:
            yield replace(case, requires_grad=(position,))
        for position in case.requires_grad:
            yield replace(case, requires_grad=tuple(p for p in case.requires_grad if p != position))
    yield replace(case, gradients=tuple(ones(spec.dtype, spec.shape) for spec in case.gradients))


def _smaller(op: Op, case: Case) -> Iterator[Case]:
    """Without one of a list of tensors; the first and the second half of a dimension, then all but its last place."""
    if op.listed and len(case.tensors) > 1:
        yield from filter(None, (_without(op, case, position) for position in range(len(case.tensors))))
    if max((spec.numel for spec in case.tensors), default=0) >= _SLICED:
        return
    for dim in range(-max((len(spec.shape) for spec in case.tensors), default=0), 0):
        for alike in _groups(case, dim):
            size = case.tensors[alike[0]].shape[dim]
            for cut in (slice(0, size // 2), slice(size // 2, size), slice(0, size - 1)):
                candidate = _cut(op, case, alike, dim, cut)
                if candidate is not None:
                    yield candidate


def _groups(case: Case, dim: int) -> list[tuple[int, ...]]:
    """The tensors whose dimension ``dim`` (from the last) is cut together: those of one size, then each alone."""
    sizes = {p: spec.shape[dim] for p, spec in enumerate(case.tensors) if len(spec.shape) >= -dim}
    alike = [tuple(p for p in sizes if sizes[p] == size) for size in dict.fromkeys(sizes.values()) if size > 1]
    return [*alike, *((p,) for group in alike if len(group) > 1 for p in group)]


def _cut(op: Op, case: Case, positions: tuple[int, ...], dim: int, cut: slice) -> Case | None:
    """The case with less of one dimension of some tensors; None if it has gradients, yet no results."""
    tensors = tuple(_sliced(spec, dim, cut) if p in positions else spec for p, spec in enumerate(case.tensors))
    return _refitted(op, replace(case, tensors=tensors), [_sliced(spec, dim, cut) for spec in case.gradients])


def _sliced(spec: TensorSpec, dim: int, cut: slice) -> TensorSpec:
    if len(spec.shape) < -dim:
        return spec
    rank = len(spec.shape)
    index = tuple(cut if d == rank + dim else slice(None) for d in range(rank))
    return literal(spec.logical()[index], spec.dtype, spec.layout)


def _without(op: Op, case: Case, position: int) -> Case | None:
    tensors = tuple(spec for p, spec in enumerate(case.tensors) if p != position)
    left = tuple(p - (p > position) for p in case.requires_grad if p != position)
    return _refitted(op, replace(case, tensors=tensors, requires_grad=left), []) if left or not case.gradients else None


def _refitted(op: Op, case: Case, sliced: list[TensorSpec]) -> Case | None:
    """What goes with the results, in their new shapes: gradients as they were, cut alike, or else ones; and ``out``."""
    if not case.gradients and case.out is None:
        return case
    results = results_of(op, case)
    if results is None:
        return None
    if case.out is not None:
        return replace(case, out=_resized(case.out, results[0][1]))
    given = {(spec.dtype, spec.shape): spec for spec in (*sliced, *case.gradients)}
    return replace(case, gradients=tuple(given.get(result, ones(*result)) for result in results))


def _simpler(op: Op, case: Case) -> Iterator[Case]:
    """Simpler numbers: runs of elements replaced by 0 or 1, then single ones rounded to fewer bits."""
    everything = (*case.tensors, *case.gradients)
    count = len(case.tensors)
    for position, spec in enumerate(everything):
        for simpler in _simpler_tensors(spec) if spec.numel <= _LITERAL else ():
            specs = (*everything[:position], simpler, *everything[position + 1 :])
            yield replace(case, tensors=specs[:count], gradients=specs[count:])


def _simpler_tensors(spec: TensorSpec) -> Iterator[TensorSpec]:
    dtype = dtype_of(spec.dtype)
    bits = bits_of_array(spec.logical(), dtype)
    simple = [bits_of(number, dtype) for number in ("0", "1")]
    run = len(bits)
    while run:
        for start in range(0, len(bits), run):
            chunk = bits[start : start + run]
            if np.isin(chunk, simple).all():
                continue
            for word in simple if len(bits) > 1 else ():
                yield _with_bits(spec, start, np.full_like(chunk, word))
            if run == 1:
                yield from (
                    _with_bits(spec, start, np.array([word], bits.dtype)) for word in _rounded(int(chunk[0]), dtype)
                )
        run //= 2


def _rounded(word: int, dtype: DType) -> Iterator[int]:
    """The number cut to fewer significant bits, fewest first; then numbers of a magnitude nearer to 1."""
    layout = component(dtype)
    width = layout.mantissa or layout.width - 1
    if layout.is_float and word & (layout.sign - 1) >= layout.infinity:
        return
    for kept in range(width):
        shorter = word >> (width - kept) << (width - kept)
        if shorter == word:
            break
        yield shorter
    if layout.is_float:
        yield from _nearer_one(word, dtype)


def _nearer_one(word: int, dtype: DType) -> Iterator[int]:
    """The number with its exponent half way to that of 1, then one step nearer to it."""
    layout = component(dtype)
    exponent = (word & (layout.sign - 1)) >> layout.mantissa
    distance = exponent - (1 - dtype.emin)
    for step in (distance - int(distance / 2), (distance > 0) - (distance < 0)):
        if step and exponent:
            yield word - (step << layout.mantissa)


def _with_bits(spec: TensorSpec, start: int, words: np.ndarray) -> TensorSpec:
    dtype = dtype_of(spec.dtype)
    bits = bits_of_array(spec.logical(), dtype).copy()
    bits[start : start + len(words)] = words
    return literal(array_of_bits(bits, dtype).reshape(spec.shape), spec.dtype, spec.layout)
