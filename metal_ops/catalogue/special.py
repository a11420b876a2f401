"""Special functions. To add an op, add one block."""

from __future__ import annotations

from functools import partial
from math import pi

from conformance.op import Op, Reference, ReferenceFunction
from conformance.oracle import ByKind, HouseRule, Inherited, Normwise, Rules
from conformance.oracle.intervals import Interval, log, sin
from metal_ops.catalogue._blocks import ANY, REAL, elementwise
from references import special as true

_HOUSE = HouseRule(
    16.0, "no contract; 16 ulp is the loosest finite limit that OpenCL's conformance suite gives a float function"
)

_HOUSE_HALF = HouseRule(_HOUSE.ulps, f"{_HOUSE.source}, and 4 ulp for one computed in half", native_half=4.0)

_op = partial(elementwise, family="special", dtypes=REAL)


def _true(function: ReferenceFunction) -> Reference:
    return Reference(function, "scipy")


def _entr(x: Interval) -> Interval:
    return -x * log(x)


def _sinc(x: Interval) -> Interval:
    turned = pi * x
    return sin(turned) / turned


def _spherical_j0(x: Interval) -> Interval:
    return sin(x) / x


OPS: tuple[Op, ...] = (
    # Gamma and its derivatives
    _op("lgamma", functor="lgamma", reference=_true(true.lgamma), bound=_HOUSE, domain=(-10, 10)),
    _op("digamma", functor="digamma", reference=_true(true.digamma), bound=_HOUSE, domain=(-10, 10)),
    _op(
        "polygamma.trigamma",
        function="special.polygamma",
        functor="trigamma",
        reference=_true(true.polygamma),
        bound=_HOUSE,
        domain=(-10, 10),
        fixed={"n": 1},
    ),
)
