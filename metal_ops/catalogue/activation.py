"""Activation functions, and ops with scalar parameters. To add an op, add one block.

Drawn parameters are numbers that every element type represents, so that their conversion decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import pi
from math import sqrt as square_root
from typing import TYPE_CHECKING, Any

import numpy as np

from conformance.dtypes import dtype as dtype_of
from conformance.op import Op, Reference, ReferenceFunction
from conformance.oracle import Contract, CorrectlyRounded, Either, HouseRule, Inherited, Rules, Stepwise
from conformance.oracle.arrays import clip, where
from conformance.oracle.functions import exp, expit, expm1, log1p, log_expit, tanh
from conformance.oracle.intervals import Interval
from metal_ops.catalogue._blocks import FLOATS, INTS, elementwise
from metal_ops.catalogue._gradients import TIES, composed, one_kernel
from references import activation as true
from references import unary
from references.gradients import activation as derivative
from references.gradients import binary
from references.gradients import unary as elementary

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.case import Case

_AT_MINUS_INFINITY = Rules(unruled=(float("-inf"),))

_MOVES = CorrectlyRounded("the operand, a parameter or 0; a subnormal may be flushed (MSL 8.1)")

_SIXTH = "the same by the rounded reciprocal of 6, as PyTorch's CUDA kernels have it (Activation*Kernel.cu)"

_EXPONENTS = (-2.0, -1.5, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.0)

_op = partial(elementwise, family="activation")


def _true(function: ReferenceFunction) -> Reference:
    return Reference(function, "scipy")


def _silu(x: Interval) -> Interval:
    return x / (1.0 + exp(-x))


def _gelu_tanh(x: Interval, approximate: str) -> Interval:
    return 0.5 * x * (1.0 + tanh(square_root(2.0 / pi) * (x + 0.044715 * (x * x * x))))


def _mish(x: Interval) -> Interval:
    return x * tanh(log1p(exp(x)))


def _hardsigmoid(x: Interval) -> Interval:
    return _relu6(x + 3.0) / 6.0


def _hardsigmoid_by_product(x: Interval) -> Interval:
    return _relu6(x + 3.0) * _sixth(x)


def _hardswish(x: Interval) -> Interval:
    return x * _relu6(x + 3.0) / 6.0


def _hardswish_by_product(x: Interval) -> Interval:
    return x * _relu6(x + 3.0) * _sixth(x)


def _sixth(x: Interval) -> Interval:
    """The reciprocal that stands for a quotient by 6, rounded."""
    return 1.0 / Interval.exact(np.asarray(6.0), x.steps)


def _relu6(x: Interval) -> Interval:
    return clip(x, 0.0, 6.0)


def _elu(x: Interval, alpha: float = 1.0) -> Interval:
    return where(x <= 0, alpha * expm1(x), x)


def _leaky_relu(x: Interval, negative_slope: float = 0.01) -> Interval:
    return where(x < 0, negative_slope * x, x)


def _softshrink(x: Interval, lambd: float = 0.5) -> Interval:
    return where(abs(x) > lambd, where(x > 0, x - lambd, x + lambd), 0.0)


def _softplus(x: Interval, beta: float = 1.0, threshold: float = 20.0) -> Interval:
    scaled = beta * x
    return where(scaled > threshold, x, log1p(exp(scaled)) / beta)


def _glu(x: Interval, dim: int = -1) -> Interval:
    first, second = (Interval.coerced(half, x.steps) for half in np.split(x, 2, axis=dim))
    return first * expit(second)


def _glu_cases(dtype: str, property: str) -> SearchStrategy[Case]:
    """Those of an elementwise op, with one of the dimensions twice as long."""
    from hypothesis import strategies as st

    from conformance.strategies import elementwise_cases

    def doubled(case: Case, dim: int) -> Case:
        (spec,) = case.tensors
        shape = list(spec.shape)
        shape[dim] *= 2
        return replace(case, tensors=(replace(spec, shape=tuple(shape)),), params={"dim": dim})

    def with_dim(case: Case) -> SearchStrategy[Case]:
        rank = len(case.tensors[0].shape)
        return st.integers(-rank, rank - 1).map(partial(doubled, case))

    cases = elementwise_cases("glu", dtype, property, domain=(-104, 20))
    return cases.filter(lambda case: bool(case.tensors[0].shape)).flatmap(with_dim)


def _one_of(**values: Sequence[Any]) -> Callable[[str], dict[str, SearchStrategy[Any]]]:
    """Parameters that are each drawn from a few values."""

    def params(dtype: str) -> dict[str, SearchStrategy[Any]]:
        from hypothesis import strategies as st

        return {name: st.sampled_from(list(choices)) for name, choices in values.items()}

    return params


def _limits(dtype: str) -> tuple[Sequence[float], Sequence[float]]:
    """Lower and upper limits to clamp to."""
    if dtype_of(dtype).kind == "float":
        return (-2.5, -1.0, -0.0, 0.5), (0.0, 1.0, 6.0)
    return ((0, 3) if dtype == "uint8" else (-5, 0, 3)), (2, 7)


def _clamp(name: str, functor: str, *parameters: str) -> Op:
    def params(dtype: str) -> dict[str, SearchStrategy[Any]]:
        from hypothesis import strategies as st

        from conformance.strategies import one_in

        lower, upper = _limits(dtype)
        drawn = _one_of(min=lower, max=upper)(dtype)
        if dtype_of(dtype).kind == "int":  # a float makes floats of integers
            drawn = {name: one_in(12, st.just(limit), drawn[name]) for name, limit in (("min", 0.5), ("max", 2.5))}
        return {parameter: drawn[parameter] for parameter in parameters}

    def swept(dtype: str) -> list[dict[str, Any]]:
        lower, upper = _limits(dtype)
        sides = {"min": lower[0], "max": upper[-1]}
        return [{parameter: sides[parameter] for parameter in parameters}]

    return _op(
        name,
        function="clamp",
        functor=functor,
        reference=_true(true.clamp),
        bound=_MOVES,
        dtypes=(*FLOATS, *INTS),
        params=params,
        swept=swept,
        domain=(-8, 8),
        gradient=composed(partial(derivative.clamp, ties=TIES)),
    )


OPS: tuple[Op, ...] = (
    # Without parameters
    _op(
        "gelu",
        function="nn.functional.gelu",
        functor="gelu",
        reference=_true(true.gelu),
        bound=HouseRule(16.0, "x times erfc(-x / sqrt(2)) / 2; OpenCL's suite: erfc 16 ulp", _AT_MINUS_INFINITY),
        domain=(-13, 5),
        gradient=one_kernel(derivative.gelu),
    ),
    _op(
        "gelu.tanh",
        function="nn.functional.gelu",
        functor="gelu_tanh",
        reference=_true(true.gelu),
        bound=Inherited(_gelu_tanh, "the documented formula; tanh: MSL table 8.1", _AT_MINUS_INFINITY),
        domain=(-13, 5),
        fixed={"approximate": "tanh"},
        gradient=one_kernel(derivative.gelu),
    ),
    _op(
        "silu",
        function="nn.functional.silu",
        functor="silu",
        reference=_true(true.silu),
        bound=Inherited(_silu, "documented as x / (1 + exp(-x)); exp: MSL table 8.1", _AT_MINUS_INFINITY),
        domain=(-104, 20),
        gradient=one_kernel(derivative.silu),
    ),
    _op(
        "mish",
        function="nn.functional.mish",
        functor="mish",
        reference=_true(true.mish),
        bound=Inherited(_mish, "documented as x tanh(log1p(exp(x))); MSL table 8.1", _AT_MINUS_INFINITY),
        domain=(-104, 20),
        gradient=one_kernel(derivative.mish),
    ),
    _op(
        "logsigmoid",
        function="nn.functional.logsigmoid",
        functor="log_sigmoid_forward",
        reference=_true(true.logsigmoid),
        bound=Inherited(log_expit, "min(x, 0) - log1p(exp(-|x|)); exp, log: MSL table 8.1"),
        domain=(-104, 104),
        gradient=one_kernel(derivative.logsigmoid),
    ),
    _op(
        "hardsigmoid",
        function="nn.functional.hardsigmoid",
        functor="hardsigmoid",
        reference=_true(true.hardsigmoid),
        bound=Either(
            Inherited(_hardsigmoid, "relu6(x + 3) / 6, as in the paper that the docs cite"),
            Inherited(_hardsigmoid_by_product, _SIXTH),
        ),
        domain=(-4, 4),
        gradient=one_kernel(derivative.hardsigmoid),
    ),
    _op(
        "hardswish",
        function="nn.functional.hardswish",
        functor="hardswish",
        reference=_true(true.hardswish),
        bound=Either(
            Inherited(_hardswish, "x relu6(x + 3) / 6, as in the paper that the docs cite", _AT_MINUS_INFINITY),
            Inherited(_hardswish_by_product, _SIXTH),
        ),
        domain=(-4, 4),
        gradient=one_kernel(derivative.hardswish),
    ),
    # With parameters
    Op(
        name="glu",
        family="activation",
        function="nn.functional.glu",
        dtypes=FLOATS,
        cases=_glu_cases,
        reference=_true(true.glu),
        bound=Inherited(_glu, "documented as a sigmoid(b), of which the sigmoid may be flushed; MSL 8.1", ranged=True),
        properties=("forward", "layout", "out", "backward"),
        kernels=("glu_*",),
        gradient=one_kernel(derivative.glu),
        out="ops.aten.glu.out",
    ),
    _op(
        "elu",
        function="nn.functional.elu",
        functor="elu",
        reference=_true(true.elu),
        bound=Inherited(_elu, "alpha expm1(x); exp: MSL table 8.1"),
        domain=(-20, 5),
        params=_one_of(alpha=(1.0, 0.5, 2.0, -1.0)),
        gradient=one_kernel(derivative.elu),
    ),
    _op(
        "leaky_relu",
        function="nn.functional.leaky_relu",
        functor="leaky_relu",
        reference=_true(true.leaky_relu),
        bound=Inherited(_leaky_relu, "one product"),
        params=_one_of(negative_slope=(0.25, 0.0, 1.5, -0.5, 0.01)),
        swept=lambda dtype: [{}, {"negative_slope": 0.25}],
        gradient=one_kernel(derivative.leaky_relu),
    ),
    _op(
        "hardshrink",
        function="nn.functional.hardshrink",
        functor="hardshrink",
        reference=_true(true.hardshrink),
        bound=_MOVES,
        domain=(-2, 2),
        params=_one_of(lambd=(0.5, 0.0, 1.0)),
        gradient=one_kernel(derivative.hardshrink),
    ),
    _op(
        "softshrink",
        function="nn.functional.softshrink",
        functor="softshrink",
        reference=_true(true.softshrink),
        bound=Inherited(_softshrink, "one sum"),
        domain=(-2, 2),
        params=_one_of(lambd=(0.5, 0.0, 1.0)),
        gradient=one_kernel(derivative.hardshrink),
    ),
    _op(
        "softplus",
        function="nn.functional.softplus",
        functor="softplus",
        reference=_true(true.softplus),
        bound=Inherited(_softplus, "documented as log1p(exp(beta x)) / beta; exp, log: MSL table 8.1"),
        domain=(-104, 25),
        params=_one_of(beta=(1.0, 0.5, 2.0), threshold=(20.0, 8.0)),
        gradient=one_kernel(derivative.softplus),
    ),
    _clamp("clamp", "clamp_scalar", "min", "max"),
    _clamp("clamp.min", "clamp_min_scalar", "min"),
    _clamp("clamp.max", "clamp_max_scalar", "max"),
    _op(
        "nan_to_num",
        functor="nan_to_num",
        reference=_true(true.nan_to_num),
        bound=_MOVES,
        params=_one_of(nan=(0.0, -1.0), posinf=(1.0, 96.0), neginf=(-2.0, 0.0)),
        swept=lambda dtype: [{"nan": 0.5, "posinf": 96.0, "neginf": -2.0}],
        gradient=composed(derivative.nan_to_num),
    ),
    _op(
        "pow.scalar",
        function="pow",
        functor="pow_scalar",
        reference=Reference(unary.power, "numpy"),
        bound=Contract("pow", Rules(signed_zero=True)),
        domain=(-4, 4),
        params=_one_of(exponent=_EXPONENTS),
        swept=lambda dtype: [{"exponent": exponent} for exponent in (-1.5, 2.5, 3.0)],
        gradient=composed(binary.pow),
    ),
    _op(
        "round.decimals",
        function="round",
        functor="round_decimals",
        reference=Reference(unary.round_decimals, "numpy"),
        bound=Stepwise(2.0, "a product, a rounding and a quotient; a tie may be missed by the product's rounding"),
        domain=(-9, 9),
        params=_one_of(decimals=(1, 2, 3, -1, -2)),
        swept=lambda dtype: [{"decimals": 2}, {"decimals": -1}],
        gradient=composed(elementary.round_decimals),
    ),
)
