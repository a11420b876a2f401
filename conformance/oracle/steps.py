"""How the steps of a formula are computed: their type, what they are rounded to, and whether they overflow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from conformance.dtypes import dtype as dtype_of
from conformance.oracle import msl
from conformance.oracle.units import Float64s, rounding_error

_TABLES: dict[str, msl.Table] = {"float16": "8.3", "bfloat16": "8.4"}


@dataclass(frozen=True)
class Steps:
    """The arithmetic in which a formula is evaluated step by step.

    Attributes
    ----------
    computed
        The type in which each function is evaluated: its ulp count the errors that the tables permit.
    stored
        The type to which each step is rounded: the tensor's where a formula is composed of ops, else ``computed``.
    ranged
        Whether a step may overflow and be flushed as its type does. If not, only the result may.
    reordered
        Whether a kernel may make the steps in another order, a product of three factors say. Then a rounding counts as
        u times the value, which is the same in every order, and not as half an ulp, which is up to half of that.
    """

    computed: str
    stored: str
    ranged: bool = False
    reordered: bool = False

    @classmethod
    def of(cls, dtype: str) -> Steps:
        """The arithmetic of one type, with an exponent range that has no end."""
        return cls(dtype, dtype)

    @property
    def largest(self) -> float:
        """The magnitude beyond which a step is infinite."""
        return dtype_of(self.stored).max

    @property
    def tiny(self) -> float:
        """The magnitude below which a step may be flushed."""
        return dtype_of(self.computed).tiny

    def rounding(self, value: Float64s) -> Float64s:
        """The largest error of one step's rounding to the type in which it is computed."""
        error = rounding_error(value, self.computed)
        if not self.reordered:
            return error
        size = np.abs(value)
        error = np.where(size < self.tiny, 2.0 * error, error)  # a factor may have been subnormal as well
        return np.maximum(error, 2.0 ** -dtype_of(self.computed).precision * size)

    def limit(self, function: str) -> float:
        """The largest error of a Metal function in ulp of ``computed``; raises ValueError if it has no row."""
        return msl.limit(function, _TABLES.get(self.computed, "8.1"))
