"""The bounds of sums and products: reductions, gradients of what was broadcast or padded, and copies that meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import dtype as dtype_of
from conformance.op import Acceptance, Computation
from conformance.oracle.acceptance import final_rounding
from conformance.oracle.bounds import Exact
from conformance.oracle.operands import compute_type, evaluated, operands
from conformance.oracle.summation import HIGHER_ORDER, roundings
from conformance.oracle.units import Float64s

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class SumBound:
    """Each element of the result is a sum of elements of one operand, in any order, then rounded once.

    With u = 2**-24 and h(n) roundings on the longest path through the summation (:mod:`~conformance.oracle.summation`)
    the error is at most h(n) u sum|x|; sums of integers are exact and wrap around. What is added follows from the
    reference, which is linear: sum|x| is its value at |x|, and the number of terms its value at ones. A sum of one term
    is a copy, or zero where the term is subnormal and may be flushed. Where partial sums overflow in some order there
    is no value, unless they can only go where the sum itself lies, beyond the range.

    ``mean`` divides by the number of terms, one rounding more. ``composed`` is for a sum that torch composes of
    additions of whole tensors: partial sums are rounded to the tensors' type, and complex ones with a term that is not
    finite are not judged, as those of ``add`` are not. ``in_turn`` is for a sum that one thread
    may gather, term after term, with n - 1 roundings: a term that is dropped shows among up to 4,096 (n**2 u < 1).
    ``operand`` is the position of the operand that is added, 0 for a gradient.
    """

    source: str = "Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapter 4, for a tree of threads"
    mean: bool = False
    composed: bool = False
    in_turn: bool = False
    operand: int = 0

    @property
    def name(self) -> str:
        """Say what kind of bound it is."""
        return "error analysis of a " + ("mean" if self.mean else "sum") + (", composed" if self.composed else "")

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept what lies within the bound, and zeros where subnormal terms may be flushed."""
        result = dtype_of(computation.dtype)
        if result.kind in ("int", "bool"):
            return Exact(self.source).accept(computation)
        function, given = evaluated(computation), list(operands(computation))
        value = np.asarray(function(*given))
        x = given[self.operand]
        terms = self._terms(function, given, x, value)
        sizes = np.asarray(self._at(function, given, np.abs(x))).real
        computed = dtype_of(compute_type(result.name))
        partial = result if self.composed else computed
        count = np.maximum(terms - 1.0, 0.0) if self.in_turn else roundings(terms)
        count = count + (1.0 if self.mean else 0.0)
        relative = HIGHER_ORDER * count * 2.0**-partial.precision
        error = relative * np.where(np.isfinite(sizes), sizes, 0.0)
        error = error + np.where(terms > 1, self._flushed(function, given, x, terms, computed.tiny), 0.0)
        tolerance = error + final_rounding(value, error, result.name)
        most = partial.max / (1.0 + relative) / (terms if self.mean else 1.0)
        some_order = self._overflowing(function, given, x, most) & (terms > 1)
        if self.composed and np.iscomplexobj(x):
            some_order |= ~np.isfinite(sizes) & (terms > 1)
        conforming = Acceptance(value, np.where(some_order, np.inf, tolerance), "conforming")
        return [conforming, _flushed_copy(value, computed.tiny, terms == 1)]

    def _overflowing(self, function: Any, given: list[NDArray[Any]], x: NDArray[Any], most: Float64s) -> Bools:
        """Where the terms of one sign add up to more than ``most``, and the value itself is not there."""
        beyond = np.inf if self.mean else most
        found = np.zeros(np.shape(most), np.bool_)
        for part in (x.real, x.imag) if np.iscomplexobj(x) else (x,):
            finite = np.where(np.isfinite(part), part, 0.0)
            for sign in (1.0, -1.0):
                total = sign * np.asarray(self._at(function, given, part)).real
                of_sign = np.asarray(self._at(function, given, np.maximum(sign * finite, 0.0))).real
                found |= (of_sign > most) & ~(total >= beyond) & ~np.isnan(total)
        return found

    def _at(self, function: Any, given: list[NDArray[Any]], x: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(function(*given[: self.operand], x, *given[self.operand + 1 :]))

    def _terms(self, function: Any, given: list[NDArray[Any]], x: NDArray[Any], value: NDArray[Any]) -> Float64s:
        """How many terms each element has."""
        if self.mean:
            return np.full(value.shape, x.size / max(value.size, 1))
        return self._at(function, given, np.ones_like(x)).real.astype(np.float64)

    def _flushed(
        self, function: Any, given: list[NDArray[Any]], x: NDArray[Any], terms: Float64s, tiny: float
    ) -> Float64s:
        """What the subnormal terms of each element add up to, and as many subnormal partial sums as there are sums."""
        parts = [np.abs(part) for part in ((x.real, x.imag) if np.iscomplexobj(x) else (x,))]
        small = sum(np.where(part < tiny, part, 0.0) for part in parts)
        return np.asarray(self._at(function, given, np.asarray(small))).real + len(parts) * (terms - 1.0) * tiny


def _flushed_copy(value: NDArray[Any], tiny: float, where: Bools | bool) -> Acceptance:
    """The sum or product of one number that may be flushed, for it is added to 0 or multiplied by 1."""
    return Acceptance(_without_subnormals(value, tiny), np.zeros(value.shape), "operand flushed", np.asarray(where))


def _without_subnormals(value: NDArray[Any], tiny: float) -> NDArray[Any]:
    """Zeros for subnormal numbers, of complex ones for each part."""
    if np.iscomplexobj(value):
        parts: NDArray[Any] = np.empty_like(value)
        parts.real, parts.imag = (_without_subnormals(part, tiny) for part in (value.real, value.imag))
        return parts
    return np.where(np.abs(value) < tiny, 0.0, value)


@dataclass(frozen=True)
class ProductBound:
    """Each element of the result is a product of elements of one operand, in any order: one rounding a factor.

    Some orders overflow or are flushed: where the product of all factors above 1, or of all below, leaves the
    range of float32, there is no value that every order gives, and any is right. Integer products are exact and wrap.
    """

    source: str = "Higham, Accuracy and Stability of Numerical Algorithms, 2002, lemma 3.1"

    @property
    def name(self) -> str:
        """Say what kind of bound it is."""
        return "error analysis of a product"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept what lies within the bound."""
        result = dtype_of(computation.dtype)
        if result.kind in ("int", "bool"):
            return Exact(self.source).accept(computation)
        function, (x, *others) = evaluated(computation), operands(computation)
        value = np.asarray(function(x, *others))
        size = np.abs(x)
        factors = x.size / max(value.size, 1)
        computed = dtype_of(compute_type(result.name))
        error = HIGHER_ORDER * np.maximum(factors - 1.0, 0.0) * 2.0**-computed.precision * np.abs(value)
        largest = np.abs(function(np.maximum(size, 1.0), *others))
        least = np.abs(function(np.minimum(size, 1.0), *others))
        some_order = ~(largest <= computed.max) | (least < computed.tiny)
        known = np.isnan(value) | ((value == 0) & (largest <= computed.max))
        tolerance = error + final_rounding(value, error, result.name)
        conforming = Acceptance(value, np.where(some_order & ~known & (factors > 1), np.inf, tolerance), "conforming")
        return [conforming, _flushed_copy(value, computed.tiny, factors == 1)]
