"""Bounds that measure the conditioning of the function: house rules, jumps, and complex functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import dtype as dtype_of
from conformance.op import Acceptance, Computation, Params
from conformance.oracle.acceptance import Error, Operands, Rules, alternatives, anything
from conformance.oracle.bounds import CorrectlyRounded
from conformance.oracle.conditioning import NEAR, conditional, largest
from conformance.oracle.operands import broadcast_to, compute_type, evaluated, operand_types, operands, parameters
from conformance.oracle.units import Float64s, rounding_error, ulp

_NO_RULES = Rules()

_FLUSHED_PRODUCTS = 4
"""How many products, of the four in a product of complex numbers, may be flushed in a complex result."""

_WILD = 0.01
"""The size of a rounding of a complex operand from which more moves are tried: it may be a whole number of turns."""

_SCATTERED = (0.137, 0.291, 0.473, 0.619, 0.811)
"""By how many ulp a complex operand is moved then."""


@dataclass(frozen=True)
class HouseRule:
    """A function without a contract anywhere: ``ulps`` times (1 + condition).

    The condition is measured without derivatives: how much the true value changes, in its own ulp, when each operand
    moves by one ulp of the computation's type. So an error of that many ulp in operands and result is granted together.
    The conditional part is capped at three times the largest value found that near, so that beyond all conditioning (a
    Bessel function whose operand has an ulp of many periods) a result must still have the right size. ``native_half``
    are ulp of half granted where a float16 kernel may compute in half. Operands at the positions ``fixed`` are not
    moved: the degree of a polynomial is a whole number, whatever its type.
    """

    ulps: float
    source: str
    rules: Rules = _NO_RULES
    native_half: float = 0.0
    fixed: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Give the factor."""
        return f"house rule: {self.ulps:g} ulp x (1 + condition)"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept what lies within the limit."""
        half = self.native_half if computation.dtype == "float16" else 0.0
        computed = "float16" if half else compute_type(computation.dtype)
        ulps = half or self.ulps

        def error_with(params: Params | None) -> Error:
            function = evaluated(computation, params)

            def error(given: Operands, value: NDArray[Any]) -> Float64s:
                change = conditional(function, given, value, ulps, computed, self.fixed)
                return ulps * ulp(value, computed) + change

            return error

        return alternatives(computation, error_with, self.rules)


@dataclass(frozen=True)
class Stepwise:
    """A function with jumps: right within ``ulps``, at the operands or where ``ulps`` of error in one of them lead."""

    ulps: float
    source: str
    rules: Rules = _NO_RULES

    @property
    def name(self) -> str:
        """Give the limit."""
        return f"{self.ulps:g} ulp of operand and result"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept the values at the operands and on both sides of each; of integers the exact one."""
        if dtype_of(computation.dtype).kind in ("int", "bool"):
            return CorrectlyRounded(self.source, rules=self.rules).accept(computation)
        computed = compute_type(computation.dtype)

        def error(given: Operands, value: NDArray[Any]) -> Float64s:
            return self.ulps * ulp(value, computed)

        found = alternatives(computation, lambda params: error, self.rules)
        function, given = evaluated(computation), operands(computation)
        for i, x in enumerate(given):
            if x.dtype.kind != "f":
                continue
            for distance in (-self.ulps * ulp(x, computed), self.ulps * ulp(x, computed)):
                value = function(*given[:i], x + distance, *given[i + 1 :])
                tolerance = error(given, value) + rounding_error(value, computation.dtype)
                found.append(Acceptance(value, tolerance, "the operand's rounding crosses a jump"))
        return found


@dataclass(frozen=True)
class Normwise:
    """A complex function: the modulus of the error is within ``ulps`` roundings of result and operands.

    The components of a complex result are not accurate by themselves (Jeannerod et al., Math. Comp. 86, 2017), so the
    error is measured by its modulus: ``ulps * u * (|f(z)| + |z| * slope)``, with a term for each operand, a Python
    number too: a power is computed as exp(w log z) wherever w is stored. The slope is measured by moving ``z`` along
    both axes (a real operand along its one), away from them so as not to cross a branch cut; a few products that are
    flushed on the way are granted. Operands that are not finite are not judged: C99
    Annex G has rules for some of them, which no GPU library follows. Where torch has ``composed`` the formula of ops,
    a step of a single operand is rounded to that operand's type. ``returning`` takes operands and parameters and gives,
    for each element, the factor by which a flushed product may come back; by default that is the largest operand.
    """

    ulps: float
    source: str
    rules: Rules = _NO_RULES
    composed: bool = False
    returning: Callable[..., Float64s] | None = None

    @property
    def name(self) -> str:
        """Give the factor."""
        return f"normwise {self.ulps:g} u x (1 + condition)"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept what lies within the limit."""
        result = dtype_of(computation.dtype)
        rounded = {computation.dtype, *(computation.input_dtypes if self.composed else ())}
        unit = 2.0 ** -min(precision for name in rounded if (precision := dtype_of(name).precision))

        def error_with(params: Params | None) -> Error:
            function = evaluated(computation, params)
            bound = parameters(computation) if params is None else params

            def error(given: Operands, value: NDArray[Any]) -> Float64s:
                size = np.abs(value)
                floating = [i for i, name in enumerate(types) if dtype_of(name).precision]
                changes = [_change(function, given, i, value, unit) for i in floating]
                change = np.asarray(sum(changes, np.zeros(np.shape(value))))
                if len(given) == 1:
                    change = np.minimum(change, 1.0 + size)
                change = change + _change_by_numbers(computation, bound, given, value, unit)
                granted: Float64s = self.ulps * (unit * size + change)
                scale = _scale(given) if self.returning is None else self.returning(*given, **bound)
                return granted + _FLUSHED_PRODUCTS * result.tiny * scale

            return error

        types = operand_types(computation)
        found = alternatives(computation, error_with, self.rules, whole=True)
        unruled = _not_finite(operands(computation), found[0].value)
        return [*found, anything("no rule for infinite complex operands", unruled)]


def _scale(given: Operands) -> float:
    """The factor by which a flushed product may come back: with several operands, the largest of them."""
    if len(given) == 1:
        return 1.0
    finite = [np.abs(x[np.isfinite(x)]) for x in map(np.asarray, given)]
    return float(max([1.0, *(part.max() for part in finite if part.size)]))


def _not_finite(given: Operands, value: NDArray[Any]) -> NDArray[np.bool_]:
    """Elements with an operand that is not finite; all of them if the op is not elementwise and one is."""
    shape = np.shape(value)
    if not broadcast_to(given, shape):
        return np.asarray(not all(np.isfinite(x).all() for x in given))
    return np.asarray(np.logical_or.reduce(np.broadcast_arrays(*(~np.isfinite(x) for x in given))))


def _change(
    function: Callable[..., NDArray[Any]], given: Operands, position: int, value: NDArray[Any], unit: float
) -> Float64s:
    """How far one rounding of an operand moves the value."""
    change = _change_by(NEAR, function, given, position, value, unit)
    x = given[position]
    if x.shape != np.shape(value):
        return change
    wild = unit * np.abs(x) > _WILD  # a rounding is a part of a turn: two moves may end where they began
    if wild.any():
        scattered = _change_by(_SCATTERED, function, given, position, value, unit)
        change = np.where(wild, np.maximum(change, scattered), change)
    return change


def _change_by_numbers(
    computation: Computation, params: Params, given: Operands, value: NDArray[Any], unit: float
) -> Float64s:
    """How far one rounding of each Python number that is an operand moves the value."""
    total = np.zeros(np.shape(value))
    for name in computation.scalars:

        def function(number: NDArray[Any], name: str = name) -> NDArray[Any]:
            return evaluated(computation, {**params, name: number[()]})(*given)

        total = total + _change_by(NEAR, function, (np.asarray(params[name]),), 0, value, unit)
    return total


def _change_by(
    near: Sequence[float],
    function: Callable[..., NDArray[Any]],
    given: Operands,
    position: int,
    value: NDArray[Any],
    unit: float,
) -> Float64s:
    before, x, after = given[:position], given[position], given[position + 1 :]
    found = []
    for step in (2.0 * d * unit * np.abs(x) for d in near):
        moves = [np.copysign(step, x.real)]
        if np.iscomplexobj(x):
            moves.append(1j * np.copysign(step, x.imag))
        found += [np.abs(function(*before, x + move, *after) - value) for move in moves]
    return largest(found)
