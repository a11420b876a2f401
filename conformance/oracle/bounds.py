"""The bounds of elementwise ops. Each is a function with a source; ``docs/oracle.md`` tells how they are derived.

In all of them the error is counted in the type of the computation (:func:`~conformance.oracle.acceptance.compute_type`)
and one final rounding to a narrower result type is added: a float16 function computed in float with k ulp is within
0.5 + k * 2**-13 ulp of the truth, a bfloat16 one within 0.5 + k * 2**-16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import dtype as dtype_of
from conformance.op import Acceptance, Bound, Computation
from conformance.oracle import msl
from conformance.oracle.acceptance import Rules, alternatives, compute_type, operand
from conformance.oracle.intervals import Interval
from conformance.oracle.units import Float64s, nearest, rounding_error, ulp

_NO_RULES = Rules()

_NEAR = (71 / 128, 88 / 128)
"""By how many ulp an operand is moved to measure conditioning. Not whole ones, and two of them: the ulp of a large
operand can be close to a whole number of a function's periods, and a step by that shows no change at all. For the
period 2 pi one of these two is always at least 0.3 pi from a multiple of it, for each power of two from 2**4 to 2**105;
multiples of 1/128 so that the moved operand is exact in float64."""

_FLUSHED_PRODUCTS = 4
"""How many products, of the four in a product of complex numbers, may be flushed in a complex result."""

_AROUND = (1.3, 2.9, 5.7, 11.3)
"""How many ulp away the size of a badly conditioned function is looked up."""

_WILD = 0.01
"""The size of a rounding of a complex operand from which more moves are tried: it may be a whole number of turns."""

_SCATTERED = (0.137, 0.291, 0.473, 0.619, 0.811)
"""By how many ulp a complex operand is moved then."""

_CAP = 3.0
"""The largest conditional error, in units of that size: two waves of one amplitude differ by two, and the sampled size
may be somewhat less than the amplitude."""


@dataclass(frozen=True)
class Exact:
    """Every bit is determined: copies, predicates and integer results. Nothing may be flushed.

    Integer results wrap around as the result type does.
    """

    source: str
    name: str = "exact"
    rules: Rules = _NO_RULES

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept the reference rounded to the result type, and nothing else."""
        return [_determined(computation, self.rules)]


@dataclass(frozen=True)
class CorrectlyRounded:
    """The true value rounded once; flushing as section 8.5 of the MSL specification allows.

    Integer results are exact. For float16 and bfloat16 results rounding twice, first to float32, gives the same
    (Figueroa 1995: 24 >= 2 * 11 + 2) for +, -, *, / and sqrt.
    """

    source: str
    name: str = "correctly rounded"
    rules: Rules = _NO_RULES

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept the correctly rounded result and the flushed ones."""
        first = _determined(computation, self.rules)
        if dtype_of(computation.dtype).kind in ("int", "bool") and computation.input_dtypes[0] == computation.dtype:
            return [first]
        return [first, *alternatives(computation, _no_error, self.rules)[1:]]


@dataclass(frozen=True)
class Contract:
    """A function with a row in the accuracy tables of the Metal Shading Language specification."""

    function: str
    rules: Rules = _NO_RULES
    table: msl.Table = "8.1"

    @property
    def name(self) -> str:
        """Give function and limit."""
        return f"MSL {self.table} {self.function}: {msl.limit(self.function, self.table):g} ulp"

    @property
    def source(self) -> str:
        """Give the table."""
        return f"Metal Shading Language specification 4.1, table {self.table}, {self.function}"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept what lies within the row's limit."""
        limit, computed = msl.limit(self.function, self.table), compute_type(computation.dtype)
        return alternatives(computation, lambda x, value: limit * ulp(value, computed), self.rules)


@dataclass(frozen=True)
class Limit:
    """A function whose error no table limits, but whose making from tabulated functions does, in ulp."""

    ulps: float
    source: str
    rules: Rules = _NO_RULES

    @property
    def name(self) -> str:
        """Give the limit."""
        return f"{self.ulps:g} ulp"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept what lies within the limit."""
        computed = compute_type(computation.dtype)
        return alternatives(computation, lambda x, value: self.ulps * ulp(value, computed), self.rules)


@dataclass(frozen=True)
class Inherited:
    """An op that is documented as a formula of tabulated functions inherits their errors.

    ``formula`` takes the operand as an :class:`~conformance.oracle.intervals.Interval` and the op's parameters.
    ``native_half`` says that a float16 kernel may evaluate it in half precision, with the half table 8.3.
    """

    formula: Callable[..., Interval]
    source: str
    rules: Rules = _NO_RULES
    native_half: bool = False

    @property
    def name(self) -> str:
        """Say that it is composed."""
        return "inherited"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept whatever a conforming device may make of the formula."""
        half = self.native_half and computation.dtype == "float16"
        computed = "float16" if half else compute_type(computation.dtype)

        def error(x: NDArray[Any], value: NDArray[Any]) -> Float64s:
            result = self.formula(Interval.exact(x, computed), **computation.params).distance(value)
            return np.where(np.isfinite(result), result, 0.0)  # where the formula has no value, it is a definition

        return alternatives(computation, error, self.rules)


@dataclass(frozen=True)
class HouseRule:
    """A function without a contract anywhere: ``ulps`` times (1 + condition).

    The condition is measured without derivatives: how much the true value changes, in its own ulp, when the operand
    moves by one ulp of the computation's type. So an error of that many ulp in operand and result is granted together.
    The conditional part is capped at three times the largest value found that near, so that beyond all conditioning (a
    Bessel function whose operand has an ulp of many periods) a result must still have the right size. ``native_half``
    are ulp of half granted where a float16 kernel may compute in half.
    """

    ulps: float
    source: str
    rules: Rules = _NO_RULES
    native_half: float = 0.0

    @property
    def name(self) -> str:
        """Give the factor."""
        return f"house rule: {self.ulps:g} ulp x (1 + condition)"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept what lies within the limit."""
        half = self.native_half if computation.dtype == "float16" else 0.0
        computed = "float16" if half else compute_type(computation.dtype)
        ulps = half or self.ulps

        def error(x: NDArray[Any], value: NDArray[Any]) -> Float64s:
            step = ulp(x, computed)
            slopes = [np.abs(other - value) / d for d in _NEAR for other in _moved(computation, x, d * step)]
            conditional = ulps * _largest(slopes)
            wild = conditional > np.abs(value)
            if np.any(wild):
                distances = [d * step[wild] for d in _AROUND if d <= ulps]
                nearby = [np.abs(other) for d in distances for other in _moved(computation, x[wild], d)]
                size = np.maximum(np.abs(value[wild]), _largest(nearby))
                conditional[wild] = np.minimum(conditional[wild], _CAP * size)
            return ulps * ulp(value, computed) + conditional

        return alternatives(computation, error, self.rules)


@dataclass(frozen=True)
class Stepwise:
    """A function with jumps: right within ``ulps``, at the operand or where ``ulps`` of error in the operand lead."""

    ulps: float
    source: str
    rules: Rules = _NO_RULES

    @property
    def name(self) -> str:
        """Give the limit."""
        return f"{self.ulps:g} ulp of operand and result"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept the values at the operand and on both sides of it."""
        computed = compute_type(computation.dtype)

        def error(x: NDArray[Any], value: NDArray[Any]) -> Float64s:
            return self.ulps * ulp(value, computed)

        found = alternatives(computation, error, self.rules)
        x = operand(computation)
        for moved in (x - self.ulps * ulp(x, computed), x + self.ulps * ulp(x, computed)):
            value = computation.reference(moved, **computation.params)
            tolerance = error(moved, value) + rounding_error(value, computation.dtype)
            found.append(Acceptance(value, tolerance, "the operand's rounding crosses a jump"))
        return found


@dataclass(frozen=True)
class Normwise:
    """A complex function: the modulus of the error is within ``ulps`` roundings of result and operand.

    The components of a complex result are not accurate by themselves (Jeannerod et al., Math. Comp. 86, 2017), so the
    error is measured by its modulus: ``ulps * u * (|f(z)| + |z| * slope)``. The slope is measured by moving ``z`` along
    both axes, away from them so as not to cross a branch cut; a few products that are flushed on the way are granted.
    Operands that are not finite are not judged: C99 Annex G has rules for some of them, which no GPU library follows.
    """

    ulps: float
    source: str
    rules: Rules = _NO_RULES

    @property
    def name(self) -> str:
        """Give the factor."""
        return f"normwise {self.ulps:g} u x (1 + condition)"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept what lies within the limit."""
        result = dtype_of(computation.dtype)
        unit = 2.0**-result.precision

        def error(z: NDArray[Any], value: NDArray[Any]) -> Float64s:
            def change_by(near: Sequence[float], at: NDArray[Any], value: NDArray[Any]) -> Float64s:
                steps = [2.0 * d * unit * np.abs(at) for d in near]
                moves = [move for d in steps for move in (np.copysign(d, at.real), 1j * np.copysign(d, at.imag))]
                return _largest(
                    np.abs(computation.reference(at + move, **computation.params) - value) for move in moves
                )

            change = change_by(_NEAR, z, value)
            wild = unit * np.abs(z) > _WILD  # a rounding is a part of a turn: two moves may end where they began
            if wild.any():
                change = np.array(change)
                change[wild] = np.maximum(change[wild], change_by(_SCATTERED, z[wild], value[wild]))
            size = np.abs(value)
            granted: Float64s = self.ulps * (unit * size + np.minimum(change, 1.0 + size))
            return granted + _FLUSHED_PRODUCTS * result.tiny

        unruled = ~np.isfinite(computation.inputs[0])
        anything = Acceptance(np.asarray(0.0), np.asarray(np.inf), "no rule for infinite complex operands", unruled)
        return [*alternatives(computation, error, self.rules), anything]


@dataclass(frozen=True)
class ByKind:
    """One bound for real results and another for complex ones."""

    real: Bound
    complex: Bound

    @property
    def name(self) -> str:
        """Give both names."""
        return f"{self.real.name}; complex: {self.complex.name}"

    @property
    def source(self) -> str:
        """Give both sources."""
        return f"{self.real.source}; complex: {self.complex.source}"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept by the bound for the operand's kind."""
        is_complex = dtype_of(computation.input_dtypes[0]).kind == "complex"
        return (self.complex if is_complex else self.real).accept(computation)


def _determined(computation: Computation, rules: Rules) -> Acceptance:
    """The one right result. Its tolerance, too small to reach a neighbour, makes one ulp of error two units."""
    x = operand(computation)
    value = computation.reference(x, **computation.params)
    result = dtype_of(computation.dtype)
    if result.kind in ("int", "bool"):
        return Acceptance(value.astype(result.numpy), np.asarray(0.5), "exact")
    value = nearest(value, result.name)
    return Acceptance(value, rounding_error(value, result.name), "exact", signed_zero=rules.signed_zero)


def _no_error(x: NDArray[Any], value: NDArray[Any]) -> Float64s:
    return np.zeros(np.shape(value))


def _moved(computation: Computation, x: NDArray[Any], distance: Float64s) -> list[NDArray[Any]]:
    """The true values at operands a distance away, on both sides."""
    return [computation.reference(x + d, **computation.params) for d in (-distance, distance)]


def _largest(sizes: Iterable[Float64s]) -> Float64s:
    """The largest of several, elementwise; what is not finite, because it is outside the domain, does not count."""
    largest: Float64s = np.maximum.reduce([np.where(np.isfinite(size), size, 0.0) for size in sizes])
    return largest
