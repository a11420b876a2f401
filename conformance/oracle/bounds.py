"""The bounds of elementwise ops with one operand or several, broadcast against each other.

Each is a function with a source; ``docs/oracle.md`` tells how they are derived. In all of them the error is counted in
the type of the computation (:func:`~conformance.oracle.operands.compute_type`) and one final rounding to a narrower
result type is added: a float16 function computed in float with k ulp is within 0.5 + k * 2**-13 ulp of the truth, a
bfloat16 one within 0.5 + k * 2**-16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import DType
from conformance.dtypes import dtype as dtype_of
from conformance.op import Acceptance, Bound, Computation, Params
from conformance.oracle import msl
from conformance.oracle.acceptance import Error, Operands, Rules, alternatives, anything, undefined
from conformance.oracle.intervals import Interval
from conformance.oracle.operands import compute_type, evaluated, in_common_type, operands, parameters
from conformance.oracle.steps import Steps
from conformance.oracle.units import Float64s, nearest, rounding_error, ulp

_NO_RULES = Rules()


@dataclass(frozen=True)
class Exact:
    """Every bit is determined: copies, predicates and integer results. Nothing may be flushed, but in a comparison.

    Integer results wrap around as the result type does; of a float they drop the fraction, and outside their range
    (C leaves it undefined) anything is right. Beyond the range of a format without infinities a result is its largest
    number, and where the device does not say that it ``saturates`` it may be NaN as well.
    """

    source: str
    name: str = "exact"
    rules: Rules = _NO_RULES
    saturates: bool = True

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept the reference rounded to the result type, and nothing else."""
        if computation.dtype == "bool":
            return CorrectlyRounded(self.source, rules=self.rules).accept(computation)
        found = _determined(computation, self.rules, by_part=True)
        if not self.saturates:
            found += _out_of_range(computation)
        return [*found, *undefined(computation, operands(computation), self.rules, found[0].value.shape)]


@dataclass(frozen=True)
class CorrectlyRounded:
    """The true value rounded once; flushing as section 8.5 of the MSL specification allows.

    Integer results of integers are exact. For float16 and bfloat16 results rounding twice, first to float32, gives the
    same (Figueroa 1995: 24 >= 2 * 11 + 2) for +, -, *, / and sqrt, and so does a reference in float64 for float32.
    """

    source: str
    name: str = "correctly rounded"
    rules: Rules = _NO_RULES

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept the correctly rounded result and the flushed ones."""
        found = _determined(computation, self.rules)
        given = operands(computation)
        if all(x.dtype.kind in "iub" for x in given) and dtype_of(computation.dtype).kind in ("int", "bool"):
            return [*found, *undefined(computation, given, self.rules, found[0].value.shape)]
        narrow = in_common_type(computation)
        if narrow is not None and computation.dtype == "bool":
            found += _determined(computation, self.rules, params=narrow)
        elif narrow is not None:  # a scalar has more digits: rounding twice may show
            return _within(computation, msl.CORRECTLY_ROUNDED, self.rules)
        return [*found, *alternatives(computation, lambda params: _no_error, self.rules)[1:]]


@dataclass(frozen=True)
class Neighbour:
    """The next number of the operands' type in the direction of the other operand, exact (``nextafter``)."""

    source: str
    name: str = "exact: the next number"
    rules: Rules = _NO_RULES

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept the next number, and the smallest one of either sign or zero where the operand may be flushed."""
        result = dtype_of(computation.common or computation.dtype)

        def step(x: NDArray[Any], toward: NDArray[Any]) -> NDArray[Any]:
            return np.asarray(np.nextafter(x.astype(result.numpy), toward.astype(result.numpy)).astype(np.float64))

        given = operands(computation)
        exact = Computation(given, (result.name,) * 2, {}, result.name, step, common=result.name)
        found = CorrectlyRounded(self.source, rules=self.rules).accept(exact)
        small = np.broadcast_to(np.abs(given[0]) < dtype_of(compute_type(result.name)).tiny, found[0].value.shape)
        return [*found, Acceptance(np.asarray(0.0), np.asarray(0.0), "operand and result flushed", small)]


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
        """Accept what lies within the row's limit; integer results are exact."""
        return _within(computation, msl.limit(self.function, self.table), self.rules)


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
        """Accept what lies within the limit; integer results are exact."""
        return _within(computation, self.ulps, self.rules)


@dataclass(frozen=True)
class Inherited:
    """An op that is documented as a formula of tabulated functions inherits their errors.

    ``formula`` takes the operands as :class:`~conformance.oracle.intervals.Interval`s and the op's parameters.
    ``native`` names the narrow types whose kernels may evaluate it in the type itself: float16 with the half table 8.3,
    bfloat16 if the formula is arithmetic, which is all that table 8.4 has. A formula whose steps may overflow where the
    result does not has no value there, unless it is ``ranged``: then an infinity or a NaN that comes of the overflow is
    right, as is what comes of flushed steps.
    """

    formula: Callable[..., Interval]
    source: str
    rules: Rules = _NO_RULES
    native: tuple[str, ...] = ()
    ranged: bool = False

    @property
    def name(self) -> str:
        """Say that it is composed."""
        return "inherited"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept whatever a conforming device may make of the formula; integer results are exact."""
        if dtype_of(computation.dtype).kind in ("int", "bool"):
            return CorrectlyRounded(self.source, rules=self.rules).accept(computation)
        computed = computation.dtype if computation.dtype in self.native else compute_type(computation.dtype)
        steps = Steps(computed, computed, self.ranged)

        def error_with(params: Params | None) -> Error:
            bound = parameters(computation) if params is None else params

            def error(given: Operands, value: NDArray[Any]) -> Float64s:
                with np.errstate(all="ignore"):
                    result = self.formula(*(Interval.exact(x, steps) for x in given), **bound)
                    return reach(result, value)

            return error

        return alternatives(computation, error_with, self.rules)


@dataclass(frozen=True)
class ByKind:
    """One bound for real computations and another for those with a complex operand or result."""

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
        """Accept by the bound for the computation's kind."""
        types = (*computation.input_dtypes, computation.dtype)
        is_complex = any(dtype_of(name).kind == "complex" for name in types)
        return (self.complex if is_complex else self.real).accept(computation)


@dataclass(frozen=True)
class ByParameter:
    """One bound where a parameter has its default, which makes no step of the formula, and another where it has not."""

    parameter: str
    default: Any
    plain: Bound
    other: Bound

    @property
    def name(self) -> str:
        """Give the name of the bound with the default."""
        return self.plain.name

    @property
    def source(self) -> str:
        """Give both sources."""
        return f"{self.plain.source}; with {self.parameter} other than {self.default}: {self.other.source}"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept by the bound for the parameter's value."""
        plain = computation.params.get(self.parameter, self.default) == self.default
        return (self.plain if plain else self.other).accept(computation)


@dataclass(frozen=True)
class Either:
    """A function of which two ways to compute it are documented: right is what either bound accepts.

    The unit of the report is the tolerance of the first.
    """

    first: Bound
    second: Bound

    @property
    def name(self) -> str:
        """Give both names."""
        return f"{self.first.name}; or {self.second.name}"

    @property
    def source(self) -> str:
        """Give both sources."""
        return f"{self.first.source}; or {self.second.source}"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept by either bound."""
        return [*self.first.accept(computation), *self.second.accept(computation)]


@dataclass(frozen=True)
class Written:
    """The bound of a formula as the reference writes it in another way, on a keyword of its own."""

    keyword: str
    bound: Bound

    @property
    def name(self) -> str:
        """That of the bound, and which way."""
        return f"{self.bound.name}, {self.keyword}"

    @property
    def source(self) -> str:
        """That of the bound."""
        return self.bound.source

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept by the bound, with the reference written so."""
        return self.bound.accept(replace(computation, params={**computation.params, self.keyword: True}))


def reach(result: Interval, value: Float64s) -> Float64s:
    """How far from the true value a formula may lead.

    Without end where its steps may overflow; where the formula has no value the true one is a definition, and 0.
    """
    distance = np.broadcast_to(result.distance(value), np.shape(value))
    open_end = result.unknown if result.steps.ranged else np.False_
    return np.where(open_end, np.inf, np.where(np.isfinite(distance), distance, 0.0))


def _within(computation: Computation, ulps: float, rules: Rules) -> list[Acceptance]:
    if dtype_of(computation.dtype).kind in ("int", "bool"):
        found = _determined(computation, rules)
        return [*found, *undefined(computation, operands(computation), rules, found[0].value.shape)]
    computed = compute_type(computation.dtype)
    return alternatives(computation, lambda params: lambda given, value: ulps * ulp(value, computed), rules)


def _determined(
    computation: Computation, rules: Rules, *, by_part: bool = False, params: Params | None = None
) -> list[Acceptance]:
    """The one right result. Its tolerance, too small to reach a neighbour, makes one ulp of error two units."""
    value = np.asarray(evaluated(computation, params)(*operands(computation)))
    result = dtype_of(computation.dtype)
    if np.iscomplexobj(value) and result.kind in ("float", "int"):
        value = value.real
    if result.kind == "bool":
        return [Acceptance(value != 0, np.asarray(0.5), "exact")]
    if result.kind == "int":
        return _integers(value, result)
    if value.dtype.kind in "iub":
        value = value.astype(np.float32).astype(np.float64)
    if np.iscomplexobj(value) or result.kind == "complex":
        rounded = value.astype(np.complex128)
        rounded.real, rounded.imag = nearest(rounded.real, result.name), nearest(rounded.imag, result.name)
        parts = [rounding_error(part, result.name) for part in (rounded.real, rounded.imag)]
        return [Acceptance(rounded, np.fmin(*parts), "exact", signed_zero=rules.signed_zero, by_part=by_part)]
    value = nearest(value, result.name)
    return [Acceptance(value, rounding_error(value, result.name), "exact", signed_zero=rules.signed_zero)]


def _out_of_range(computation: Computation) -> list[Acceptance]:
    """NaN, where a format without infinities has no number near the result."""
    result = dtype_of(computation.dtype)
    if result.kind != "float" or result.has_infinity:
        return []
    value = np.asarray(evaluated(computation)(*operands(computation))).real.astype(np.float64)
    beyond = np.abs(value) > result.max + rounding_error(np.asarray(result.max), result.name)
    if not beyond.any():
        return []
    return [Acceptance(np.asarray(np.nan), np.asarray(0.0), "beyond a format without infinities", beyond)]


def _integers(value: NDArray[Any], result: DType) -> list[Acceptance]:
    """Integers, wrapped; of floats the whole part."""
    if value.dtype.kind != "f":
        return [Acceptance(value.astype(result.numpy), np.asarray(0.5), "exact")]
    limits = np.iinfo(result.numpy)
    whole = np.trunc(value)
    outside = ~((whole >= limits.min) & (whole < float(limits.max) + 1.0))
    exact = np.where(outside, 0.0, whole).astype(result.numpy)
    found = [Acceptance(exact, np.asarray(0.5), "exact")]
    if outside.any():
        found.append(anything("outside the integers' range", outside))
    return found


def _no_error(given: Operands, value: NDArray[Any]) -> Float64s:
    return np.zeros(np.shape(value))
