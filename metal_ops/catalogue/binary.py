"""Arithmetic, comparisons, logic and functions of two operands. To add an op, add one block."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from conformance.op import Bound, Op, Reference, ReferenceFunction
from conformance.oracle import (
    ByKind,
    Contract,
    CorrectlyRounded,
    Exact,
    HouseRule,
    Inherited,
    Neighbour,
    Rules,
)
from conformance.oracle import functions as steps
from metal_ops.catalogue._avoided import least_multiplied, negative_power, subtracts_bool, undivided, unpromoted
from metal_ops.catalogue._binary_bounds import (
    ANNEX_F,
    AT_INFINITIES,
    CHOICE,
    COMPLEX_ARITHMETIC,
    COMPLEX_FUNCTION,
    FLOORED,
    LERP,
    PREDICATE,
    REMAINDER,
    TRUNCATED,
    at_nan,
    beyond_width,
    by_zero,
    from_other,
    from_other_terms,
    infinite_exponent,
    minus,
    no_divisor,
    no_multiple,
    plus,
    rounded,
    scaled_sum,
    without_sign,
)
from metal_ops.catalogue._blocks import ANY, BOOL, COMPLEX, FLOATS, INTS, REAL, UNSIGNED, binary, factor
from metal_ops.catalogue._gradients import TIES, composed
from references import binary as true
from references.gradients import binary as derivative

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.case import Case
    from conformance.oracle.acceptance import Undefined

_COMPARED = (*ANY, *UNSIGNED)
_ORDERED = (*REAL, *UNSIGNED)

_op = partial(binary, family="binary")


def _true(function: ReferenceFunction) -> Reference:
    return Reference(function, "numpy")


def _alphas(dtype: str) -> list[dict[str, Any]]:
    """Without a factor, and with one, for which there are kernels of their own."""
    return [{}, {"alpha": 2}]


def _weight(dtype: str) -> dict[str, SearchStrategy[Any]]:
    from hypothesis import strategies as st

    return {"weight": st.sampled_from([0.25, 0.0, 1.0, 0.5, 0.75, -0.5, 1.5, 0.1])}


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


def _predicate(name: str, dtypes: tuple[str, ...], number: str | None = "other") -> Op:
    reference = _true(getattr(true, name))
    return _op(name, functor=name, reference=reference, bound=PREDICATE, dtypes=dtypes, number=number, avoid=unpromoted)


def _integers(name: str, dtypes: tuple[str, ...], number: str | None = "other") -> Op:
    reference = _true(getattr(true, name))
    return _op(name, functor=name, reference=reference, bound=Exact("integer arithmetic"), dtypes=dtypes, number=number)


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
    bound = Exact("integer arithmetic", rules=Rules(undefined=beyond_width))
    return _op(name, functor=name, reference=_true(getattr(true, name)), bound=bound, dtypes=INTS)


OPS: tuple[Op, ...] = (
    # Arithmetic
    _op(
        "add",
        functor=("add", "add_alpha"),
        reference=_true(true.add),
        bound=scaled_sum(plus),
        dtypes=ANY,
        params=factor("alpha"),
        swept=_alphas,
        gradient=composed(derivative.add),
    ),
    _op(
        "sub",
        functor=("sub", "add_alpha"),
        reference=_true(true.sub),
        bound=scaled_sum(minus),
        dtypes=(*FLOATS, *INTS, *COMPLEX),
        params=factor("alpha"),
        swept=_alphas,
        avoid=subtracts_bool,
        gradient=composed(derivative.sub),
    ),
    _op(
        "rsub",
        functor=("sub", "add_alpha"),
        reference=_true(true.rsub),
        bound=scaled_sum(from_other, from_other_terms),
        dtypes=(*FLOATS, *INTS, *COMPLEX),
        params=factor("alpha"),
        swept=_alphas,
        avoid=subtracts_bool,
        gradient=composed(derivative.rsub),
    ),
    _op(
        "mul",
        functor="mul",
        reference=_true(true.mul),
        bound=rounded("mul"),
        dtypes=ANY,
        gradient=composed(derivative.mul),
    ),
    _op(
        "div",
        functor="div_true",
        reference=_true(true.div),
        bound=rounded("div"),
        dtypes=ANY,
        gradient=composed(derivative.div),
    ),
    _quotient("floor", FLOORED),
    _quotient("trunc", TRUNCATED),
    _op(
        "floor_divide",
        functor="div_floor",
        reference=_true(true.floor_divide),
        bound=FLOORED,
        dtypes=(*FLOATS, *INTS),
        divides=True,
        avoid=undivided,
    ),
    _op(
        "remainder",
        functor="remainder",
        reference=_true(true.remainder),
        bound=CorrectlyRounded(REMAINDER, rules=Rules(undefined=by_zero)),
        dtypes=(*FLOATS, *INTS),
        divides=True,
        avoid=undivided,
        gradient=composed(derivative.remainder),
    ),
    _op(
        "fmod",
        functor="fmod",
        reference=_true(true.fmod),
        bound=CorrectlyRounded(REMAINDER, rules=Rules(undefined=by_zero, signed_zero=True)),
        dtypes=(*FLOATS, *INTS),
        divides=True,
        avoid=undivided,
        gradient=composed(derivative.fmod),
    ),
    _op(
        "pow",
        functor="pow",
        reference=_true(true.pow),
        bound=ByKind(Contract("pow", ANNEX_F), COMPLEX_FUNCTION),
        dtypes=(*FLOATS, *INTS, *COMPLEX),
        number="exponent",
        avoid=negative_power,
        domains=((0, 8), (-8, 8)),
        gradient=composed(derivative.pow, Rules(undefined=infinite_exponent)),
    ),
    # The larger, the smaller, and neighbours
    *(
        _op(
            name,
            functor=name,
            reference=_true(getattr(true, name)),
            bound=CHOICE,
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
            bound=CHOICE,
            number=None,
            gradient=composed(partial(getattr(derivative, name), ties=TIES)),
        )
        for name in ("fmax", "fmin")
    ),
    _op(
        "copysign",
        functor="copysign",
        reference=_true(true.copysign),
        bound=CorrectlyRounded(
            "one operand with a sign bit of the other, which may be flushed (MSL 8.1)",
            rules=Rules(undefined=without_sign),
        ),
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
        bound=CorrectlyRounded("0, 1 or the second operand", rules=Rules(undefined=at_nan)),
        dtypes=REAL,
        others=(),
        number=None,
    ),
    _op(
        "lerp",
        functor="lerp_alpha",
        reference=_true(true.lerp),
        bound=LERP,
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
        bound=Contract("atan2", ANNEX_F),
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
            COMPLEX_FUNCTION,
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
            16.0, "a sum of powers (MSL table 8.1, pow 16 ulp) and its Euler-Maclaurin tail", AT_INFINITIES
        ),
        dtypes=REAL,
        domains=((1, 8), (0, 8)),
    ),
    *(
        _op(
            name,
            functor=name,
            reference=Reference(getattr(true, name), "scipy"),
            bound=HouseRule(16.0, "no contract; the loosest limit OpenCL's suite sets a float function", AT_INFINITIES),
            number=None,
            domains=((0, 20), (0, 30)),
        )
        for name in ("igamma", "igammac")
    ),
    _op(
        "polar",
        functor="polar",
        reference=_true(true.polar),
        bound=COMPLEX_ARITHMETIC,
        dtypes=("float32",),
        others=(),
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
        others=(),
        number=None,
        gradient=composed(derivative.complex),
    ),
    # Comparisons and logic
    *(_predicate(name, _COMPARED) for name in ("eq", "ne")),
    *(_predicate(name, _ORDERED) for name in ("lt", "le", "gt", "ge")),
    *(_predicate(name, _COMPARED, None) for name in ("logical_and", "logical_or", "logical_xor")),
    # Whole numbers
    *(_integers(name, (*INTS, *BOOL)) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")),
    *(_shift(name) for name in ("bitwise_left_shift", "bitwise_right_shift")),
    _multiple("gcd", no_divisor),
    _multiple("lcm", no_multiple, least_multiplied),
)
