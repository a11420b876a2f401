"""Arithmetic, comparisons, logic and functions of two operands. To add an op, add one block."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import dtype as dtype_of
from conformance.op import Bound, Op, Reference, ReferenceFunction
from conformance.oracle import (
    ByKind,
    Contract,
    CorrectlyRounded,
    Either,
    Exact,
    HouseRule,
    Inherited,
    Neighbour,
    Normwise,
    Rules,
    Stepwise,
)
from conformance.oracle import functions as steps
from conformance.oracle.intervals import Interval
from metal_ops.catalogue._avoided import least_multiplied, negative_power, subtracts_bool, undivided, unpromoted
from metal_ops.catalogue._blocks import (
    ANY,
    BOOL,
    COMPLEX,
    FLOATS,
    INTS,
    REAL,
    TIES,
    UNSIGNED,
    binary,
    composed,
)
from references import binary as true
from references.gradients import binary as derivative

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.case import Case
    from conformance.oracle.acceptance import Undefined

_ANNEX_F = Rules(signed_zero=True)

_COMPLEX = Normwise(
    8.0, "four products and their sums, each correctly rounded (MSL 8.1); Jeannerod et al., Math. Comp. 86, 2017"
)

_AT_INFINITIES = Rules(unruled=(float("inf"), float("-inf")))

_PREDICATE = CorrectlyRounded("a comparison, before which a subnormal may be flushed (MSL 8.1)")

_CHOICE = CorrectlyRounded("one of the operands, which may be flushed (MSL 8.1)")

_COMPARED = (*ANY, *UNSIGNED)
_ORDERED = (*REAL, *UNSIGNED)

_op = partial(binary, family="binary")


def _true(function: ReferenceFunction) -> Reference:
    return Reference(function, "numpy")


def _rounded(operation: str, complex_bound: Bound = _COMPLEX) -> Bound:
    source = f"Metal Shading Language specification 4.1, table 8.1, {operation}"
    return ByKind(CorrectlyRounded(source, rules=_ANNEX_F), complex_bound)


def _alpha(dtype: str) -> dict[str, SearchStrategy[Any]]:
    """The factor of the second operand: mostly 1, else a number of the operands' kind."""
    from hypothesis import strategies as st

    from conformance.strategies import one_in

    numbers = [2, -1, 0, 3] if dtype_of(dtype).kind in ("int", "bool") else [2, -1, 0, 0.5, -1.25, 0.1]
    return {"alpha": one_in(3, st.sampled_from(numbers), st.just(1))}


def _alphas(dtype: str) -> list[dict[str, Any]]:
    """Without a factor, and with one, for which there are kernels of their own."""
    return [{}, {"alpha": 2}]


def _scaled_sum(formula: Callable[..., Interval]) -> Bound:
    source = "a product and a sum, each correctly rounded (MSL tables 8.1 and 8.3), or fused"
    return ByKind(Inherited(formula, source, _ANNEX_F, native_half=True, ranged=True), _COMPLEX)


def _add(x: Interval, other: Interval | float, alpha: float = 1) -> Interval:
    return x + alpha * Interval.coerced(other, x.steps)


def _sub(x: Interval, other: Interval | float, alpha: float = 1) -> Interval:
    return x - alpha * Interval.coerced(other, x.steps)


def _rsub(x: Interval, other: Interval | float, alpha: float = 1) -> Interval:
    return Interval.coerced(other, x.steps) - alpha * x


def _lerp(x: Interval, end: Interval, weight: float) -> Interval:
    return x + weight * (end - x)


def _lerp_by_the_nearer(x: Interval, end: Interval, weight: float) -> Interval:
    return _lerp(x, end, weight) if abs(weight) < 0.5 else end - (end - x) * (1.0 - weight)


_COMPLEX_FUNCTION = Normwise(
    16.0, "no contract for complex functions; 16 u is the loosest limit MSL table 8.1 gives a real one (pow)"
)


def _weight(dtype: str) -> dict[str, SearchStrategy[Any]]:
    from hypothesis import strategies as st

    return {"weight": st.sampled_from([0.25, 0.0, 1.0, 0.5, 0.75, -0.5, 1.5, 0.1])}


def _at_nan(dtype: str, x: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """PyTorch documents no step at NaN."""
    return np.asarray(np.isnan(x))


def _infinite_exponent(
    dtype: str, gradient: NDArray[Any], result: NDArray[Any], x: NDArray[Any], exponent: Any
) -> NDArray[np.bool_]:
    """A power of infinity is constant but for a jump, and PyTorch documents no derivative of it."""
    return np.asarray(np.broadcast_to(np.isinf(exponent), np.shape(result)))


def _by_zero(dtype: str, x: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Integers have no quotient by zero, and PyTorch documents none."""
    return np.asarray((other == 0) & (dtype_of(dtype).kind == "int"))


def _beyond_width(dtype: str, x: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """C has no shift by a negative amount, or by the type's width and more."""
    return np.asarray((other < 0) | (other >= 8 * dtype_of(dtype).itemsize))


_QUOTIENT = "a quotient and its rounding to a whole number, across which the quotient's own may lead"

_FLOORED = Stepwise(1.0, _QUOTIENT, Rules(undefined=_by_zero, unruled=(float("inf"), float("-inf"))))
"""Python and NumPy have no inf // y, mathematics has."""

_TRUNCATED = Stepwise(1.0, _QUOTIENT, Rules(undefined=_by_zero))

_REMAINDER = "fmod is exact (MSL table 8.1, 0 ulp); Python's remainder adds the divisor, one rounding"


def _quotient(rounding: str, bound: Bound) -> Op:
    return _op(
        f"div.{rounding}",
        function="div",
        functor=f"div_{rounding}",
        reference=_true(true.div),
        bound=bound,
        dtypes=(*FLOATS, *INTS),
        divides=True,
        avoid=undivided,
        fixed={"rounding_mode": rounding},
        gradient=composed(derivative.div),
    )


def _comparison(name: str, dtypes: tuple[str, ...]) -> Op:
    reference = _true(getattr(true, name))
    return _op(name, functor=name, reference=reference, bound=_PREDICATE, dtypes=dtypes, avoid=unpromoted)


def _logic(name: str) -> Op:
    reference = _true(getattr(true, name))
    return _op(
        name,
        functor=name,
        reference=reference,
        bound=_PREDICATE,
        dtypes=_COMPARED,
        number=None,
        avoid=unpromoted,
    )


def _integers(name: str, dtypes: tuple[str, ...], number: str | None = "other") -> Op:
    reference = _true(getattr(true, name))
    return _op(name, functor=name, reference=reference, bound=Exact("integer arithmetic"), dtypes=dtypes, number=number)


def _no_divisor(dtype: str, x: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """The greatest divisor of the least integer and itself, or 0, is beyond the type."""
    return _beyond(dtype, np.gcd(x, other))


def _no_multiple(dtype: str, x: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Where the least multiple is beyond the type, PyTorch documents none."""
    divisor = np.maximum(np.gcd(x, other), 1)
    return _beyond(dtype, (x // divisor).astype(np.float64) * other)


def _beyond(dtype: str, number: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(np.abs(number.astype(np.float64)) >= np.iinfo(dtype_of(dtype).numpy).max + 1.0)


def _multiple(name: str, undefined: Undefined, avoid: Callable[[Case], bool] | None = None) -> Op:
    return _op(
        name,
        functor=name,
        reference=_true(getattr(true, name)),
        bound=Exact("integer arithmetic", rules=Rules(undefined=undefined)),
        dtypes=INTS,
        number=None,
        avoid=avoid,
    )


def _shift(name: str) -> Op:
    bound = Exact("integer arithmetic", rules=Rules(undefined=_beyond_width))
    return _op(name, functor=name, reference=_true(getattr(true, name)), bound=bound, dtypes=INTS)


OPS: tuple[Op, ...] = (
    # Arithmetic
    _op(
        "add",
        functor=("add", "add_alpha"),
        reference=_true(true.add),
        bound=_scaled_sum(_add),
        dtypes=ANY,
        params=_alpha,
        swept=_alphas,
        gradient=composed(derivative.add),
    ),
    _op(
        "sub",
        functor=("sub", "add_alpha"),
        reference=_true(true.sub),
        bound=_scaled_sum(_sub),
        dtypes=(*FLOATS, *INTS, *COMPLEX),
        params=_alpha,
        swept=_alphas,
        avoid=subtracts_bool,
        gradient=composed(derivative.sub),
    ),
    _op(
        "rsub",
        functor=("sub", "add_alpha"),
        reference=_true(true.rsub),
        bound=_scaled_sum(_rsub),
        dtypes=(*FLOATS, *INTS, *COMPLEX),
        params=_alpha,
        swept=_alphas,
        avoid=subtracts_bool,
        gradient=composed(derivative.rsub),
    ),
    _op(
        "mul",
        functor="mul",
        reference=_true(true.mul),
        bound=_rounded("mul"),
        dtypes=ANY,
        gradient=composed(derivative.mul),
    ),
    _op(
        "div",
        functor="div_true",
        reference=_true(true.div),
        bound=_rounded("div"),
        dtypes=ANY,
        gradient=composed(derivative.div),
    ),
    _quotient("floor", _FLOORED),
    _quotient("trunc", _TRUNCATED),
    _op(
        "floor_divide",
        functor="div_floor",
        reference=_true(true.floor_divide),
        bound=_FLOORED,
        dtypes=(*FLOATS, *INTS),
        divides=True,
        avoid=undivided,
    ),
    _op(
        "remainder",
        functor="remainder",
        reference=_true(true.remainder),
        bound=CorrectlyRounded(_REMAINDER, rules=Rules(undefined=_by_zero)),
        dtypes=(*FLOATS, *INTS),
        divides=True,
        avoid=undivided,
        gradient=composed(derivative.remainder),
    ),
    _op(
        "fmod",
        functor="fmod",
        reference=_true(true.fmod),
        bound=CorrectlyRounded(_REMAINDER, rules=Rules(undefined=_by_zero, signed_zero=True)),
        dtypes=(*FLOATS, *INTS),
        divides=True,
        avoid=undivided,
        gradient=composed(derivative.fmod),
    ),
    _op(
        "pow",
        functor="pow",
        reference=_true(true.pow),
        bound=ByKind(Contract("pow", _ANNEX_F), _COMPLEX_FUNCTION),
        dtypes=(*FLOATS, *INTS, *COMPLEX),
        number="exponent",
        avoid=negative_power,
        domains=((0, 8), (-8, 8)),
        gradient=composed(derivative.pow, Rules(undefined=_infinite_exponent)),
    ),
    # The larger, the smaller, and neighbours
    *(
        _op(
            name,
            functor=name,
            reference=_true(getattr(true, name)),
            bound=_CHOICE,
            dtypes=REAL,
            number=None,
            gradient=composed(getattr(derivative, name)),
        )
        for name in ("maximum", "minimum")
    ),
    *(
        _op(
            name,
            functor=name,
            reference=_true(getattr(true, name)),
            bound=_CHOICE,
            number=None,
            gradient=composed(partial(getattr(derivative, name), ties=TIES)),
        )
        for name in ("fmax", "fmin")
    ),
    _op(
        "copysign",
        functor="copysign",
        reference=_true(true.copysign),
        bound=CorrectlyRounded("one operand with a sign bit of the other, which may be flushed (MSL 8.1)"),
        dtypes=REAL,
        gradient=composed(derivative.copysign),
    ),
    _op(
        "nextafter",
        functor="nextafter",
        reference=_true(true.nextafter),
        bound=Neighbour("IEEE 754-2019, 5.3.1, nextUp and nextDown"),
        number=None,
        gradient=composed(derivative.nextafter),
    ),
    _op(
        "heaviside",
        functor="heaviside",
        reference=_true(true.heaviside),
        bound=CorrectlyRounded("0, 1 or the second operand", rules=Rules(undefined=_at_nan)),
        dtypes=REAL,
        others=(),
        number=None,
    ),
    _op(
        "lerp",
        functor="lerp_alpha",
        reference=_true(true.lerp),
        bound=ByKind(
            Either(
                Inherited(_lerp, "documented as x + weight (end - x)", _AT_INFINITIES, ranged=True),
                Inherited(_lerp_by_the_nearer, "of large weights from the end, so that it is met", ranged=True),
            ),
            _COMPLEX,
        ),
        dtypes=(*FLOATS, *COMPLEX),
        others=(),
        number=None,
        params=_weight,
        swept=lambda dtype: [{"weight": 0.25}],
        gradient=composed(derivative.lerp),
    ),
    # Functions
    _op(
        "atan2",
        functor="atan2",
        reference=_true(true.atan2),
        bound=Contract("atan2", _ANNEX_F),
        dtypes=REAL,
        number=None,
        gradient=composed(derivative.atan2),
    ),
    _op(
        "hypot",
        functor="hypot",
        reference=_true(true.hypot),
        bound=Inherited(steps.hypot, "documented as sqrt(x^2 + y^2), each step correctly rounded"),
        others=FLOATS,
        number=None,
        gradient=composed(derivative.hypot),
    ),
    _op(
        "logaddexp",
        functor="logaddexp",
        reference=_true(true.logaddexp),
        bound=ByKind(
            Inherited(steps.logaddexp, "max + log1p(exp(-|x - y|)); exp, log: MSL table 8.1", ranged=True),
            _COMPLEX_FUNCTION,
        ),
        dtypes=FLOATS,
        number=None,
        gradient=composed(derivative.logaddexp),
    ),
    _op(
        "logaddexp2",
        functor="logaddexp2",
        reference=_true(true.logaddexp2),
        bound=Inherited(steps.logaddexp2, "max + log2(1 + 2^-|x - y|); exp2, log2: MSL table 8.1", ranged=True),
        dtypes=FLOATS,
        number=None,
        gradient=composed(derivative.logaddexp2),
    ),
    _op(
        "xlogy",
        functor="xlogy",
        reference=_true(true.xlogy),
        bound=Inherited(steps.xlogy, "documented as x log(y); log: MSL table 8.1"),
        dtypes=REAL,
        domains=(None, (0, 4)),
        gradient=composed(derivative.xlogy),
    ),
    _op(
        "special.xlog1py",
        functor="xlog1py",
        reference=_true(true.xlog1py),
        bound=Inherited(steps.xlog1py, "documented as x log1p(y); log: MSL table 8.1"),
        dtypes=REAL,
        domains=(None, (-1, 4)),
        gradient=composed(derivative.xlog1py),
    ),
    _op(
        "special.zeta",
        functor="zeta",
        reference=Reference(true.zeta, "scipy"),
        bound=HouseRule(
            16.0, "a sum of powers (MSL table 8.1, pow 16 ulp) and its Euler-Maclaurin tail", _AT_INFINITIES
        ),
        dtypes=REAL,
        domains=((1, 8), (0, 8)),
    ),
    *(
        _op(
            name,
            functor=name,
            reference=Reference(getattr(true, name), "scipy"),
            bound=HouseRule(
                16.0, "no contract; the loosest limit OpenCL's suite sets a float function", _AT_INFINITIES
            ),
            number=None,
            domains=((0, 20), (0, 30)),
        )
        for name in ("igamma", "igammac")
    ),
    _op(
        "polar",
        functor="polar",
        reference=_true(true.polar),
        bound=_COMPLEX,
        dtypes=("float32",),
        number=None,
        domains=(None, (-10, 10)),
        gradient=composed(derivative.polar),
    ),
    _op(
        "complex",
        functor="make_complex",
        reference=_true(true.complex),
        bound=Exact("two moves"),
        dtypes=("float32",),
        number=None,
        gradient=composed(derivative.complex),
    ),
    # Comparisons and logic
    *(_comparison(name, _COMPARED) for name in ("eq", "ne")),
    *(_comparison(name, _ORDERED) for name in ("lt", "le", "gt", "ge")),
    *(_logic(name) for name in ("logical_and", "logical_or", "logical_xor")),
    # Whole numbers
    *(_integers(name, (*INTS, *BOOL)) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")),
    *(_shift(name) for name in ("bitwise_left_shift", "bitwise_right_shift")),
    _multiple("gcd", _no_divisor),
    _multiple("lcm", _no_multiple, least_multiplied),
)
