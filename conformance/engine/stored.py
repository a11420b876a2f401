"""How a result is judged that the caller had stored in a tensor of another element type (``out=``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import DType
from conformance.dtypes import dtype as dtype_of
from conformance.op import Acceptance, Bound, Computation
from conformance.oracle.acceptance import anything, final_rounding
from conformance.oracle.operands import compute_type


@dataclass(frozen=True)
class Stored:
    """The op's bound in the element type that the result has by itself, then one conversion to that of ``out``.

    PyTorch documents that an op computes in the type its operands promote to and casts what it stores. A conversion
    to a type that represents the number is exact; to a narrower float it adds one rounding; integers wrap around. Of a
    type that is computed in a wider one the result may be stored without being rounded to it: that is nearer the truth.
    """

    bound: Bound
    own: str
    """The element type of the result without ``out=``."""

    @property
    def name(self) -> str:
        """Give the op's bound and what follows."""
        return f"{self.bound.name}, stored from {self.own}"

    @property
    def source(self) -> str:
        """Give the op's source and that of the conversion."""
        return f"{self.bound.source}; PyTorch's promotion rules, then one conversion to the type of out"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept what the op may make in its own type, converted."""
        target = dtype_of(computation.dtype)
        accepted = self.bound.accept(replace(computation, dtype=self.own))
        found = [*(self._converted(one, target) for one in accepted), *self._overflowed(accepted[0], target)]
        computed = compute_type(self.own)
        if computed != self.own and target.kind in ("float", "complex"):
            unrounded = replace(self, own=computed)
            found += [
                unrounded._converted(one, target) for one in self.bound.accept(replace(computation, dtype=computed))
            ]
        return found

    def _overflowed(self, conforming: Acceptance, target: DType) -> list[Acceptance]:
        """Infinity where the result overflows in its own type, though ``out`` could hold it."""
        own = dtype_of(self.own)
        if own.kind not in ("float", "complex") or own.max >= target.max:
            return []
        value = _as_float(conforming.value, target)
        parts = (value.real, value.imag) if np.iscomplexobj(value) else (value,)
        largest = np.maximum.reduce([np.abs(part) for part in parts]) + conforming.tolerance
        where = np.isfinite(value) & (largest > own.max)
        if not where.any():
            return []
        if len(parts) == 2:
            return [anything("a part overflows in the result's own type", where)]
        return [replace(conforming, value=np.copysign(np.inf, value), tolerance=np.asarray(0.0), where=where)]

    def _converted(self, accepted: Acceptance, target: DType) -> Acceptance:
        if target.kind in ("int", "bool"):
            value = accepted.value != 0 if target.kind == "bool" else accepted.value.astype(target.numpy)
            return replace(accepted, value=value)
        value = _as_float(accepted.value, target)
        tolerance = np.asarray(accepted.tolerance, np.float64)
        if dtype_of(self.own).kind in ("int", "bool"):
            # Its tolerance keeps neighbouring integers apart; what counts now is whether rounding may tell them apart.
            tolerance = np.where(np.isfinite(tolerance), 0.0, tolerance)
        return replace(accepted, value=value, tolerance=tolerance + _conversion(value, tolerance, self.own, target))


def _as_float(value: NDArray[Any], target: DType) -> NDArray[Any]:
    return np.asarray(value).astype(np.complex128 if target.kind == "complex" else np.float64)


def _conversion(value: NDArray[Any], error: NDArray[np.float64], own: str, target: DType) -> NDArray[np.float64]:
    """The rounding of one conversion: none to a float format that has all numbers of the result's own."""
    source = dtype_of(own)
    if source.precision and source.precision <= target.precision and source.emin >= target.emin:
        return np.zeros(np.shape(value))
    parts = (value.real, value.imag) if np.iscomplexobj(value) else (value,)
    # Of a complex number both parts are rounded, and errors are distances in the plane.
    each = np.stack([final_rounding(part, error, target.name) for part in parts])
    return np.where(np.isfinite(error), np.sqrt((each * each).sum(axis=0)), 0.0)
