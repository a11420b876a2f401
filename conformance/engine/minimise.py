"""The second stage of shrinking: from a recipe to a literal of a handful of numbers.

Hypothesis shrinks the recipe. Here the concrete arrays shrink: a plainer layout, fewer elements, simpler numbers, as
long as the failure stays of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod

import numpy as np

from conformance.case import Case, TensorSpec, literal
from conformance.dtypes import DType
from conformance.dtypes import dtype as dtype_of
from conformance.findings import Finding
from conformance.formats import array_of_bits, bits_of, bits_of_array, component

Retry = Callable[[Case], Finding | None]
"""Runs a case; gives what is wrong with it, None if nothing is (or nothing of the kind in question)."""

_BUDGET = 300
"""Calls that may be spent on one failure."""

_LITERAL = 4096
"""Elements up to which a tensor is spelled out in a report."""

_SLICED = 1 << 18
"""Elements up to which smaller tensors are tried at all."""


def minimise(case: Case, finding: Finding, retry: Retry) -> tuple[Case, Finding]:
    """The simplest case found that fails as ``case`` does, with its finding."""
    search = _Search(case, finding, retry)
    search.take(case.contiguous())
    if not search.take_element():
        recipe = search.case, search.finding
        search.exhaust(_smaller)
        if any(spec.numel > _LITERAL for spec in search.case.tensors):
            search.case, search.finding = recipe  # a recipe says more than so many numbers
    search.exhaust(_simpler)
    return search.case, search.finding


class _Search:
    """Greedy descent with a budget of calls."""

    def __init__(self, case: Case, finding: Finding, retry: Retry) -> None:
        self.case = case
        self.finding = finding
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
        candidate = element_case(self.case, self.finding.element)
        return candidate is not None and self.take(candidate)

    def exhaust(self, candidates: Callable[[Case], Iterator[Case]]) -> None:
        """Take candidates until none is left that fails."""
        while self._left > 0 and any(self.take(candidate) for candidate in candidates(self.case)):
            pass


def element_case(case: Case, element: int | None) -> Case | None:
    """The case of one element alone, as a literal; None if the tensors' shapes differ or are all of one element."""
    shapes = {spec.shape for spec in case.tensors}
    if element is None or len(shapes) != 1 or element >= prod(next(iter(shapes))):
        return None
    specs = (literal(spec.logical().reshape(-1)[element].reshape(1), spec.dtype) for spec in case.tensors)
    return replace(case, tensors=tuple(specs))


def _smaller(case: Case) -> Iterator[Case]:
    """The first and the second half of each dimension, then all but its last place, of all tensors alike."""
    shapes = {spec.shape for spec in case.tensors}
    if len(shapes) != 1 or prod(shape := next(iter(shapes))) > _SLICED:
        return
    for dim, size in enumerate(shape):
        cuts = [slice(0, size // 2), slice(size // 2, size), slice(0, size - 1)] if size > 1 else []
        for cut in cuts:
            index = tuple(cut if d == dim else slice(None) for d in range(len(shape)))
            specs = (literal(spec.logical()[index], spec.dtype, spec.layout) for spec in case.tensors)
            yield replace(case, tensors=tuple(specs))


def _simpler(case: Case) -> Iterator[Case]:
    """Simpler numbers: runs of elements replaced by 0 or 1, then single ones rounded to fewer bits."""
    for position, spec in enumerate(case.tensors):
        if spec.numel <= _LITERAL:
            for simpler in _simpler_tensors(spec):
                yield replace(case, tensors=tuple(simpler if p == position else s for p, s in enumerate(case.tensors)))


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
