"""Elementary functions, rounding, predicates and signs. To add an op, add one block."""

from __future__ import annotations

from functools import partial

from conformance.op import Bound, Op, Reference, ReferenceFunction
from conformance.oracle import ByKind, Contract, CorrectlyRounded, Exact, Inherited, Limit, Normwise, Rules
from conformance.oracle.functions import EXPM1_LIMIT, LOG1P_LIMIT, exp, sqrt
from conformance.oracle.intervals import Interval
from metal_ops.catalogue._blocks import ANY, BOOL, COMPLEX, FLOATS, INTS, elementwise
from metal_ops.catalogue._gradients import by_root, composed, one_kernel
from references import unary as true
from references.gradients import unary as derivative

_ANNEX_F = Rules(signed_zero=True)

_COMPLEX = Normwise(
    16.0, "no contract for complex functions; 16 u is the loosest limit MSL table 8.1 gives a real one (pow)"
)

_NEGATED = Normwise(1.0, "negation changes two bits; subnormal parts may be flushed (MSL 8.1)")

_op = partial(elementwise, family="unary")


def _true(function: ReferenceFunction) -> Reference:
    return Reference(function, "numpy")


_CUDA_RSQRT = "CUDA C++ Programming Guide, standard functions: rsqrtf, 2 ulp of the correctly rounded result"


def _tabulated(function: str) -> Bound:
    return ByKind(Contract(function, _ANNEX_F), _COMPLEX)


def _rounded(operation: str) -> CorrectlyRounded:
    return CorrectlyRounded(f"Metal Shading Language specification 4.1, table 8.1, {operation}", rules=_ANNEX_F)


def _sigmoid(x: Interval) -> Interval:
    return 1.0 / (1.0 + exp(-x))


def _rsqrt(x: Interval) -> Interval:
    return 1.0 / sqrt(x)


OPS: tuple[Op, ...] = (
    # Functions with a row in table 8.1
    _op(
        "acos",
        functor="acos",
        reference=_true(true.acos),
        bound=_tabulated("acos"),
        dtypes=ANY,
        domain=(-1, 1),
        gradient=by_root(derivative.acos),
    ),
    _op(
        "asin",
        functor="asin",
        reference=_true(true.asin),
        bound=_tabulated("asin"),
        dtypes=ANY,
        domain=(-1, 1),
        gradient=by_root(derivative.asin),
    ),
    _op(
        "atan",
        functor="atan",
        reference=_true(true.atan),
        bound=_tabulated("atan"),
        dtypes=ANY,
        gradient=composed(derivative.atan),
    ),
    _op(
        "cos",
        functor="cos",
        reference=_true(true.cos),
        bound=_tabulated("cos"),
        dtypes=ANY,
        domain=(-10, 10),
        gradient=composed(derivative.cos),
    ),
    _op(
        "cosh",
        functor="cosh",
        reference=_true(true.cosh),
        bound=_tabulated("cosh"),
        dtypes=ANY,
        domain=(-90, 90),
        gradient=composed(derivative.cosh),
    ),
    _op(
        "exp",
        functor="exp",
        reference=_true(true.exp),
        bound=_tabulated("exp"),
        dtypes=ANY,
        domain=(-104, 89),
        gradient=composed(derivative.exp),
    ),
    _op(
        "exp2",
        functor="exp2",
        reference=_true(true.exp2),
        bound=_tabulated("exp2"),
        dtypes=ANY,
        domain=(-150, 128),
        gradient=composed(derivative.exp2),
    ),
    _op(
        "log",
        functor="log",
        reference=_true(true.log),
        bound=_tabulated("log"),
        dtypes=ANY,
        domain=(0, 4),
        gradient=composed(derivative.log),
    ),
    _op(
        "log10",
        functor="log10",
        reference=_true(true.log10),
        bound=_tabulated("log10"),
        dtypes=ANY,
        domain=(0, 4),
        gradient=composed(derivative.log10),
    ),
    _op(
        "log2",
        functor="log2",
        reference=_true(true.log2),
        bound=_tabulated("log2"),
        dtypes=ANY,
        domain=(0, 4),
        gradient=composed(derivative.log2),
    ),
    _op(
        "sin",
        functor="sin",
        reference=_true(true.sin),
        bound=_tabulated("sin"),
        dtypes=ANY,
        domain=(-10, 10),
        gradient=composed(derivative.sin),
    ),
    _op(
        "sinh",
        functor="sinh",
        reference=_true(true.sinh),
        bound=_tabulated("sinh"),
        dtypes=ANY,
        domain=(-90, 90),
        gradient=composed(derivative.sinh),
    ),
    _op(
        "tan",
        functor="tan",
        reference=_true(true.tan),
        bound=_tabulated("tan"),
        dtypes=ANY,
        domain=(-10, 10),
        gradient=composed(derivative.tan),
    ),
    _op(
        "tanh",
        functor="tanh",
        reference=_true(true.tanh),
        bound=_tabulated("tanh"),
        dtypes=ANY,
        domain=(-10, 10),
        gradient=one_kernel(derivative.tanh),
    ),
    # Correctly rounded arithmetic
    _op(
        "reciprocal",
        functor="reciprocal",
        reference=_true(true.reciprocal),
        bound=ByKind(_rounded("recip"), _COMPLEX),
        dtypes=ANY,
        gradient=composed(derivative.reciprocal),
    ),
    _op(
        "sqrt",
        functor="sqrt",
        reference=_true(true.sqrt),
        bound=ByKind(_rounded("sqrt"), _COMPLEX),
        dtypes=ANY,
        domain=(0, 1e4),
        gradient=composed(derivative.sqrt),
    ),
    _op(
        "square",
        functor="sqr",
        reference=_true(true.square),
        bound=ByKind(_rounded("mul"), _COMPLEX),
        dtypes=(*FLOATS, *INTS, *COMPLEX),
        gradient=composed(derivative.square),
    ),
    # Functions that are made of others
    _op(
        "rsqrt",
        functor="rsqrt",
        reference=_true(true.rsqrt),
        bound=ByKind(Inherited(_rsqrt, "documented as 1 / sqrt(x), both correctly rounded", _ANNEX_F), _COMPLEX),
        documented={"cuda": ByKind(Limit(2.5, _CUDA_RSQRT, _ANNEX_F), _COMPLEX)},
        dtypes=ANY,
        domain=(0, 1e4),
        gradient=composed(derivative.rsqrt),
    ),
    _op(
        "sigmoid",
        functor="sigmoid",
        reference=_true(true.sigmoid),
        bound=ByKind(Inherited(_sigmoid, "documented as 1 / (1 + exp(-x)); exp: MSL table 8.1"), _COMPLEX),
        dtypes=ANY,
        domain=(-104, 104),
        gradient=one_kernel(derivative.sigmoid),
    ),
    _op(
        "expm1",
        functor="expm1",
        reference=_true(true.expm1),
        bound=ByKind(
            Limit(EXPM1_LIMIT, "exp (MSL table 8.1, 4 ulp) and a subtraction; OpenCL's suite asks for 3", _ANNEX_F),
            _COMPLEX,
        ),
        dtypes=ANY,
        domain=(-20, 89),
        gradient=composed(derivative.expm1),
    ),
    _op(
        "log1p",
        functor="log1p",
        reference=_true(true.log1p),
        bound=ByKind(Limit(LOG1P_LIMIT, "Kahan's quotient of log (MSL table 8.1) and 3 roundings", _ANNEX_F), _COMPLEX),
        dtypes=ANY,
        domain=(-1, 4),
        gradient=composed(derivative.log1p),
    ),
    # Rounding, signs and predicates
    _op(
        "abs",
        functor="abs",
        reference=_true(true.absolute),
        bound=ByKind(_rounded("fabs"), _COMPLEX),
        dtypes=(*FLOATS, *INTS, *COMPLEX),
        gradient=composed(derivative.absolute),
    ),
    _op(
        "neg",
        functor="neg",
        reference=_true(true.neg),
        bound=ByKind(_rounded("negation"), _NEGATED),
        dtypes=(*FLOATS, *INTS, *COMPLEX),
        gradient=composed(derivative.neg),
    ),
    _op(
        "ceil",
        functor="ceil",
        reference=_true(true.ceil),
        bound=_rounded("ceil"),
        domain=(-9, 9),
        gradient=composed(derivative.ceil),
    ),
    _op(
        "floor",
        functor="floor",
        reference=_true(true.floor),
        bound=_rounded("floor"),
        domain=(-9, 9),
        gradient=composed(derivative.floor),
    ),
    _op(
        "trunc",
        functor="trunc",
        reference=_true(true.trunc),
        bound=_rounded("trunc"),
        domain=(-9, 9),
        gradient=composed(derivative.trunc),
    ),
    _op(
        "round",
        functor="round",
        reference=_true(true.round_half_even),
        bound=_rounded("rint"),
        dtypes=(*FLOATS, *INTS),
        domain=(-9, 9),
        gradient=composed(derivative.round_half_even),
    ),
    _op(
        "angle",
        functor="angle",
        reference=_true(true.angle),
        bound=ByKind(CorrectlyRounded("documented: pi below 0, 0 otherwise, NaN stays"), _COMPLEX),
        dtypes=ANY,
        gradient=composed(derivative.angle),
    ),
    _op("isneginf", functor="isneginf", reference=_true(true.isneginf), bound=Exact("a predicate")),
    _op("isposinf", functor="isposinf", reference=_true(true.isposinf), bound=Exact("a predicate")),
    _op(
        "logical_not",
        functor="logical_not",
        reference=_true(true.logical_not),
        bound=CorrectlyRounded("a comparison with zero, before which a subnormal may be flushed (MSL 8.1)"),
        dtypes=ANY,
    ),
    _op(
        "bitwise_not",
        functor="bitwise_not",
        reference=_true(true.bitwise_not),
        bound=Exact("integer arithmetic"),
        dtypes=(*INTS, *BOOL),
    ),
)
