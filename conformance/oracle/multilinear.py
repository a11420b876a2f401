"""The bound of matrix products and their gradients: sums of products with one factor of each operand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import DType
from conformance.dtypes import dtype as dtype_of
from conformance.op import Acceptance, Computation
from conformance.oracle.acceptance import final_rounding
from conformance.oracle.bounds import Exact
from conformance.oracle.operands import compute_type, evaluated, operands, parameters
from conformance.oracle.summation import HIGHER_ORDER
from conformance.oracle.units import Float64s

_COMPLEX = 2.0
"""A complex product has four real ones: sqrt(2) times the constant of a real product (Higham, lemma 3.5), and one more
addition to each."""


@dataclass(frozen=True)
class MultilinearBound:
    """Each element is a sum of products with one factor of each operand, in any order, then rounded once.

    What is added follows from the reference, which is linear in each operand and subtracts nothing of its own: at the
    absolute values it gives the sum of the sizes, |A||B| for a matrix product, and at ones the number n of terms. With
    u = 2**-24 the error is at most (n + s) u times that sum: n - 1 additions, one rounding for the product, and s for
    the parameters named in ``scaled_by``, numbers that it is multiplied by (``alpha``, ``beta``). That is the worst
    case of one thread that adds term after term, as kernels of matrix products do. A product accumulated in half
    precision shows all the same, for its error grows with 2**-11. Sums of integers are exact and wrap around. Where
    some order of the terms may overflow any value is right.

    ``stored_steps`` counts intermediate results that torch rounds to the tensors' type, as composed backwards do.
    Operands of integers among floats are no factors: they say where the factors lie. An operand's subnormal numbers may
    be flushed (section 8.1 of the MSL specification), however large what they are multiplied by. The ``skipping``
    parameters are factors that BLAS tests for 0 before it reads what they multiply, as alpha of gemm: with 0 any value
    is right where that is infinite or NaN. Beyond the range of a format without infinities a result is its largest
    number.
    """

    source: str = (
        "Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.5: |C - fl(AB)| <= n u |A||B|"
    )
    scaled_by: tuple[str, ...] = ()
    stored_steps: int = 0
    skipping: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Say what kind of bound it is."""
        return "error analysis of a matrix product" + (", composed" if self.stored_steps else "")

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept what lies within the bound."""
        result = dtype_of(computation.dtype)
        if result.kind in ("int", "bool"):
            return Exact(self.source).accept(computation)
        given = operands(computation)
        value = np.asarray(evaluated(computation)(*given))
        sizes = self._at(computation, [_size(x) for x in given], lambda _, number: abs(number))
        terms = self._at(computation, [_one(x) for x in given], lambda name, number: 1)
        computed = dtype_of(compute_type(result.name))
        factor = _COMPLEX if result.kind == "complex" else 1.0
        roundings = factor * (terms + len(self.scaled_by))
        relative = HIGHER_ORDER * roundings * 2.0**-computed.precision
        relative = relative + self.stored_steps * factor * 2.0**-result.precision
        known = np.isfinite(sizes)
        finite = np.where(known, sizes, 0.0)
        error = relative * finite + roundings * computed.tiny
        error = error + self.stored_steps * factor * dtype_of(result.name).tiny
        flushed = self._of_flushing(computation, given, sizes, computed.tiny)
        error = error + np.where(np.isinf(flushed), 0.0, flushed)
        largest = result.max if self.stored_steps else computed.max
        overflows = self._overflows(computation, given, relative, largest) | np.isinf(flushed)
        if result.kind == "complex":  # which part of an infinite product is NaN is nobody's rule
            overflows = overflows | ~known
        if not result.has_infinity:
            return [_saturated(value, error, result, overflows)]
        tolerance = error + final_rounding(value, error, result.name)
        return [Acceptance(value, np.where(overflows, np.inf, tolerance), "conforming")]

    def _overflows(
        self, computation: Computation, given: Sequence[NDArray[Any]], relative: Float64s, largest: float
    ) -> NDArray[np.bool_]:
        """Where finite terms may overflow in some order, before they are scaled; or a factor of 0 meets an infinity."""

        def at_least_1(name: str, number: float) -> float:
            return 0 if number == 0 and name not in self.skipping else max(abs(number), 1)

        reach = self._at(computation, [_finite(_size(x)) for x in given], at_least_1)
        found = ~(reach * (1.0 + relative) <= largest)
        params = parameters(computation)
        if any(params.get(name, 1) == 0 for name in self.skipping):
            found = found | ~np.isfinite(self._at(computation, [_size(x) for x in given], at_least_1))
        return np.asarray(found)

    def _of_flushing(
        self, computation: Computation, given: Sequence[NDArray[Any]], sizes: Float64s, tiny: float
    ) -> Float64s:
        """What is lost of the sums of sizes where subnormal operands are taken for 0; all where that makes a NaN."""
        small = [_small(x, tiny) for x in given]
        if not any(np.any(mask) for mask in small):
            return np.zeros(sizes.shape)
        kept = [np.where(mask, 0, _size(x)) for mask, x in zip(small, given, strict=True)]
        rest = self._at(computation, kept, lambda _, number: abs(number))
        lost = np.where(np.isfinite(rest), np.maximum(sizes - rest, 0.0), 0.0)
        return np.where(np.isnan(rest) & ~np.isnan(sizes), np.inf, lost)

    def _at(
        self, computation: Computation, given: Sequence[NDArray[Any]], scaling: Callable[[str, Any], float]
    ) -> Float64s:
        """The reference's value at other operands, and at other numbers in place of those that scale."""
        params = parameters(computation)
        scaled = {name: scaling(name, params[name]) for name in self.scaled_by if name in params}
        return np.asarray(evaluated(computation, {**params, **scaled})(*given)).real.astype(np.float64)


def _size(x: NDArray[Any]) -> NDArray[Any]:
    return x if x.dtype.kind in "iu" else np.asarray(np.abs(x))


def _finite(sizes: NDArray[Any]) -> NDArray[Any]:
    return np.where(np.isfinite(sizes), sizes, 0)


def _one(x: NDArray[Any]) -> NDArray[Any]:
    return x if x.dtype.kind in "iu" else np.ones(x.shape)


def _small(x: NDArray[Any], tiny: float) -> NDArray[np.bool_]:
    """Where a factor has a part that is subnormal in the type of the computation."""
    if x.dtype.kind in "iu":
        return np.zeros(x.shape, np.bool_)
    found: NDArray[np.bool_] = np.logical_or.reduce([(part != 0) & (np.abs(part) < tiny) for part in (x.real, x.imag)])
    return found


def _saturated(value: NDArray[Any], error: Float64s, result: DType, anything: NDArray[np.bool_]) -> Acceptance:
    """A result of a format without infinities: every number that may be computed, held to the format's range."""
    held = np.clip(value, -result.max, result.max)
    reach = [np.abs(np.clip(value + way * error, -result.max, result.max) - held) for way in (-1.0, 1.0)]
    tolerance = np.maximum(*reach) + final_rounding(held, error, result.name)
    return Acceptance(held, np.where(anything, np.inf, tolerance), "conforming")
