"""The bound of matrix products and their gradients: sums of products with one factor of each operand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    """

    source: str = (
        "Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.5: |C - fl(AB)| <= n u |A||B|"
    )
    scaled_by: tuple[str, ...] = ()
    stored_steps: int = 0

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
        sizes = self._at(computation, [np.abs(x) for x in given], abs)
        terms = self._at(computation, [np.ones(x.shape) for x in given], lambda number: 1)
        computed = dtype_of(compute_type(result.name))
        factor = _COMPLEX if result.kind == "complex" else 1.0
        roundings = factor * (terms + len(self.scaled_by))
        relative = HIGHER_ORDER * roundings * 2.0**-computed.precision
        relative = relative + self.stored_steps * factor * 2.0**-result.precision
        known = np.isfinite(sizes)
        finite = np.where(known, sizes, 0.0)
        error = relative * finite + roundings * computed.tiny
        error = error + self.stored_steps * factor * dtype_of(result.name).tiny
        tolerance = error + final_rounding(value, error, result.name)
        overflows = known & ~(finite * (1.0 + relative) <= (result.max if self.stored_steps else computed.max))
        if result.kind == "complex":  # which part of an infinite product is NaN is nobody's rule
            overflows = overflows | ~known
        return [Acceptance(value, np.where(overflows, np.inf, tolerance), "conforming")]

    def _at(self, computation: Computation, given: list[NDArray[Any]], scaling: Callable[[Any], float]) -> Float64s:
        """The reference's value at other operands, and at other numbers in place of those that scale."""
        params = parameters(computation)
        scaled = {name: scaling(params[name]) for name in self.scaled_by if name in params}
        return np.asarray(evaluated(computation, {**params, **scaled})(*given)).real.astype(np.float64)
