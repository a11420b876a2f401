"""What SciPy's special functions do to intervals: those with a formula, and those under the house rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.oracle import functions
from conformance.oracle.conditioning import conditional
from conformance.oracle.intervals import SPECIAL, Interval, apply
from conformance.oracle.units import ulp

HOUSE_LIMIT = 16.0
"""The house rule's ulp, in result and operand, for functions with no contract anywhere: see ``HouseRule``."""

HALF_LIMIT = 4.0
"""The same in ulp of half, for a function that a kernel may compute in half: OpenCL's limit of half erf."""

_NATIVE_HALF = frozenset("i0 i0e i1 i1e k0 k0e k1 k1e".split())
"""Functions whose op may be computed in half, of halves; see ``native_half`` of the op's bound."""

_HOUSE = frozenset(
    "erf erfc erfcx erfinv ndtri log_ndtr entr logit exprel psi gammaln gamma loggamma zeta gammainc gammaincc "
    "i0 i0e i1 i1e k0 k0e k1 k1e j0 j1 y0 y1".split()
)


def _conditioned(ufunc: Any) -> Callable[..., Interval]:
    """A function under the house rule, at the middle of its operands and at their corners."""
    may_be_native = getattr(ufunc, "__name__", "") in _NATIVE_HALF

    def house(*operands: Interval) -> Interval:
        steps = operands[0].steps
        middle = tuple(np.where(x.low == x.high, x.low, (x.low + x.high) / 2) for x in operands)
        value = ufunc(*middle)
        corners = [value]
        for i, x in enumerate(operands):
            corners += [ufunc(*middle[:i], end, *middle[i + 1 :]) for end in (x.low, x.high)]
        in_half = may_be_native and steps.stored == "float16"
        limit, computed = (HALF_LIMIT, steps.stored) if in_half else (HOUSE_LIMIT, steps.computed)
        error = conditional(ufunc, middle, value, limit, computed)
        error = limit * ulp(value, computed) + error
        return Interval.hull(corners, *operands).by(error, error)

    return house


def ndtr(x: Interval) -> Interval:
    """erfc(-x / sqrt(2)) / 2."""
    import scipy

    tail: Interval = apply(scipy.special.erfc, [-x * math.sqrt(0.5)], x.steps)
    return tail / 2.0


_FORMULAS: dict[str, Callable[..., Interval]] = {
    "expit": functions.expit,
    "log_expit": functions.log_expit,
    "xlogy": functions.xlogy,
    "xlog1py": functions.xlog1py,
    "ndtr": ndtr,
}


def rule(ufunc: Any) -> Callable[..., Interval] | None:
    """What a ufunc of SciPy does, which is known by its name: loading SciPy takes a while. None if unknown.

    Any other function came by :meth:`Interval.elementwise`.
    """
    if not hasattr(ufunc, "__name__"):
        return _conditioned(ufunc)
    name = ufunc.__name__.removeprefix("_")  # zeta is a function that calls the ufunc _zeta
    return _FORMULAS.get(name) or (_conditioned(ufunc) if name in _HOUSE else None)


SPECIAL.append(rule)
