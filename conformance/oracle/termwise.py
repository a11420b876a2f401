"""The bound of a complex result that is a sum of a few terms, made part by part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import dtype as dtype_of
from conformance.op import Acceptance, Computation
from conformance.oracle.acceptance import anything
from conformance.oracle.operands import compute_type, evaluated, operands, parameters
from conformance.oracle.units import rounding_error


@dataclass(frozen=True)
class Termwise:
    """A complex sum of operands times real factors: as many roundings of what its terms add up to, in modulus.

    With real factors real and imaginary parts have nothing to do with each other, so that a relative error in each is
    one of the modulus (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1). ``sizes`` takes the
    operands' moduli and the op's parameters and gives what the moduli of the terms, of partial sums included, add up
    to. Where that is beyond the type's range some order of the steps overflows, and any result is right; it is as well
    at operands that are not finite. ``native`` names the types whose kernels may compute in the type itself.
    """

    roundings: float
    sizes: Callable[..., NDArray[Any]]
    source: str
    native: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Give the factor."""
        return f"{self.roundings:g} u of the terms' moduli"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept what lies within the limit."""
        given, result = operands(computation), dtype_of(computation.dtype)
        computed = result if result.name in self.native else dtype_of(compute_type(result.name))
        value = np.asarray(evaluated(computation)(*given))
        params = parameters(computation)
        with np.errstate(all="ignore"):
            moduli = [np.abs(x) for x in given]
            size = np.broadcast_to(self.sizes(*moduli, **params), value.shape)
            flushed = computed.tiny * (self.sizes(*(x + 1.0 for x in moduli), **params) - size)
            error = self.roundings * (2.0**-computed.precision * size + flushed)
            if computed != result:
                error = error + np.hypot(*(rounding_error(part, result.name) for part in (value.real, value.imag)))
            open_end = ~(size <= computed.max)
        found = [Acceptance(value, np.where(open_end, 0.0, error), "conforming")]
        return [*found, anything("a term may overflow, or is not finite", open_end)] if open_end.any() else found
