"""Orthogonal polynomials of a whole degree. To add an op, add one block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import dtype as dtype_of
from conformance.op import Acceptance, Bound, Computation, Op, Reference, ReferenceFunction
from conformance.oracle import Either, HouseRule, Inherited, Rules, ulp
from conformance.oracle.acceptance import alternatives
from conformance.oracle.intervals import Interval
from conformance.oracle.operands import compute_type, operand_types, operands, parameters
from metal_ops.catalogue._blocks import REAL, binary
from references import polynomials as true

_DEGREES = (-1, 40)
"""Kernels count up to the degree, so that one of 1e30 never returns."""

_SOURCE = "a recurrence of products and sums; c is the loosest limit that OpenCL's suite sets a float function"

_ANGLE = "documented for higher degrees as a formula of the arc cosine; acos, sin, cos: MSL table 8.1"

_OF_CHEBYSHEV: dict[str, Callable[[Any, Any], Any]] = {
    "t": lambda angle, n: np.cos(n * angle),
    "u": lambda angle, n: np.sin((n + 1.0) * angle) / np.sin(angle),
    "v": lambda angle, n: np.cos((n + 0.5) * angle) / np.cos(angle / 2.0),
    "w": lambda angle, n: np.sin((n + 0.5) * angle) / np.sin(angle / 2.0),
}
"""The four kinds as functions of the arc cosine and the degree."""

_HERMITE = ("hermite_polynomial_h", "hermite_polynomial_he")

_LAGUERRE = "laguerre_polynomial_l"


def _overflowing(function: ReferenceFunction) -> Callable[..., NDArray[np.bool_]]:
    """Where the documented recurrence subtracts infinities: beyond float32, or almost, as it may divide last."""

    def undefined(dtype: str, x: NDArray[Any], n: NDArray[Any] | float) -> NDArray[np.bool_]:
        with np.errstate(all="ignore"):
            value = np.abs(function(x, n=n)) * (np.abs(n) + 1.0)
        return np.asarray(np.isfinite(x) & ~(value <= dtype_of("float32").max))

    return undefined


def _recurring(name: str) -> HouseRule:
    rules = Rules(undefined=_overflowing(getattr(true, name)))
    return HouseRule(16.0, _SOURCE, rules, fixed=(1,))


def _of_angle(kind: str) -> Inherited:
    def formula(x: Interval, n: Interval | float) -> Interval:
        result: Interval = _OF_CHEBYSHEV[kind](np.arccos(x), n)
        return result

    return Inherited(formula, _ANGLE)


@dataclass(frozen=True)
class _Shifted:
    """A polynomial that is documented as another one, ``unshifted``, at 2 x - 1, which is rounded."""

    bound: Bound
    unshifted: ReferenceFunction

    @property
    def name(self) -> str:
        """Say where the bound applies."""
        return f"at 2 x - 1: {self.bound.name}"

    @property
    def source(self) -> str:
        """Give the source of the bound."""
        return self.bound.source

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept what the bound accepts at 2 x - 1."""
        x, *degree = operands(computation)
        inner = replace(
            computation,
            inputs=(2.0 * x - 1.0, *degree),
            input_dtypes=operand_types(computation),
            reference=self.unshifted,
        )
        return self.bound.accept(inner)


@dataclass(frozen=True)
class _Grown:
    """Laguerre's recurrence near 0, where an error e of one step is one of e k log(n / k) of the polynomial.

    The difference of consecutive polynomials shrinks as 1 / k only, so it adds up to that; one ulp at each step adds up
    to n**2 / 4, in ulp of the largest on the way, where the first is 1.
    """

    name = "an ulp a step, which grows to n^2 / 4"
    source = "the recurrence that is documented, linearised at 0"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept what lies within n**2 / 4 ulp."""
        number = parameters(computation).get("n")

        def error(given: Sequence[NDArray[Any]], value: NDArray[Any]) -> NDArray[np.float64]:
            degree = np.asarray(given[1] if number is None else number, np.float64)
            largest = np.maximum(np.abs(value), 1.0)
            return np.asarray(degree**2 / 4.0 * ulp(largest, compute_type(computation.dtype)))

        return alternatives(computation, lambda params: error, Rules())


def _polynomial(name: str, bound: Bound, domain: tuple[float, float]) -> Op:
    return binary(
        f"special.{name}",
        family="polynomials",
        functor=name,
        reference=Reference(getattr(true, name), "numpy"),
        bound=bound,
        dtypes=REAL,
        number="n",
        domains=(domain, (0, 8)),
        whole=_DEGREES,
    )


def _chebyshev(kind: str, *, shifted: bool) -> Op:
    name = f"chebyshev_polynomial_{kind}"
    bound = Either(_recurring(name), _of_angle(kind))
    if not shifted:
        return _polynomial(name, bound, (-1, 1))
    return _polynomial(f"shifted_{name}", _Shifted(bound, getattr(true, name)), (0, 1))


OPS: tuple[Op, ...] = (
    *(_chebyshev(kind, shifted=shifted) for shifted in (False, True) for kind in "tuvw"),
    *(_polynomial(name, _recurring(name), (-4, 4)) for name in _HERMITE),
    _polynomial(_LAGUERRE, Either(_recurring(_LAGUERRE), _Grown()), (-4, 4)),
)
