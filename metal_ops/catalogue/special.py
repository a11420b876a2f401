"""Special functions. To add an op, add one block."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import pi
from typing import TYPE_CHECKING

from conformance.op import Op, Reference, ReferenceFunction
from conformance.oracle import ByKind, HouseRule, Inherited, Normwise, Rules
from conformance.oracle.functions import log, sin
from conformance.oracle.intervals import Interval
from metal_ops.catalogue._blocks import ANY, REAL, elementwise
from metal_ops.catalogue._gradients import composed, conditioned
from references import special as true
from references.gradients import special as derivative

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_HOUSE = HouseRule(
    16.0, "no contract; 16 ulp is the loosest finite limit that OpenCL's conformance suite gives a float function"
)

_HOUSE_HALF = HouseRule(_HOUSE.ulps, f"{_HOUSE.source}, and 4 ulp for one computed in half", native_half=4.0)

_NO_LIMIT = Rules(unruled=(float("-inf"), float("inf")))

_BESSEL = replace(_HOUSE, rules=_NO_LIMIT)

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


def _orders(dtype: str) -> dict[str, SearchStrategy[int]]:
    from hypothesis import strategies as st

    return {"n": st.integers(0, 4)}


OPS: tuple[Op, ...] = (
    # Gamma and its derivatives
    _op(
        "lgamma",
        functor="lgamma",
        reference=_true(true.lgamma),
        bound=_HOUSE,
        domain=(-10, 10),
        gradient=composed(derivative.lgamma),
    ),
    _op(
        "digamma",
        functor="digamma",
        reference=_true(true.digamma),
        bound=_HOUSE,
        domain=(-10, 10),
        gradient=conditioned(derivative.digamma),
    ),
    _op(
        "polygamma",
        function="Tensor.polygamma",
        functor=("trigamma", "polygamma"),
        reference=_true(true.polygamma),
        bound=replace(_HOUSE, rules=replace(_NO_LIMIT, two_sided_poles=True)),
        domain=(-10, 10),
        params=_orders,
        swept=lambda dtype: [{"n": 1}, {"n": 2}],
        stratified=1 << 11,  # below 0 the usual algorithm steps up to 9 one by one: 2**23 steps for one element
        gradient=conditioned(derivative.polygamma),
    ),
    # Error functions and entropy
    _op(
        "erf", functor="erf", reference=_true(true.erf), bound=_HOUSE, domain=(-4, 4), gradient=composed(derivative.erf)
    ),
    _op(
        "erfc",
        functor="erfc",
        reference=_true(true.erfc),
        bound=_HOUSE,
        domain=(-4, 10.1),
        gradient=composed(derivative.erfc),
    ),
    _op(
        "erfinv",
        functor="erfinv",
        reference=_true(true.erfinv),
        bound=_HOUSE,
        domain=(-1, 1),
        gradient=composed(derivative.erfinv),
    ),
    _op(
        "special.erfcx",
        functor="erfcx",
        reference=_true(true.erfcx),
        bound=_HOUSE,
        domain=(-9.4, 60),
        gradient=composed(derivative.erfcx),
    ),
    _op(
        "special.entr",
        functor="entr",
        reference=_true(true.entr),
        bound=Inherited(_entr, "documented as -x log(x); log: MSL table 8.1, 8.3 for half", native=("float16",)),
        domain=(0, 4),
        gradient=composed(derivative.entr),
    ),
    # sin(x) / x
    _op(
        "sinc",
        functor="sinc",
        reference=_true(true.sinc),
        bound=ByKind(
            Inherited(_sinc, "documented as sin(pi x) / (pi x); sin: MSL table 8.1", _NO_LIMIT),
            Normwise(16.0, "no contract for complex functions; as the real house rule"),
        ),
        dtypes=ANY,
        domain=(-8, 8),
        gradient=composed(derivative.sinc),
    ),
    _op(
        "special.spherical_bessel_j0",
        functor="spherical_bessel_j0",
        reference=_true(true.spherical_j0),
        bound=Inherited(
            _spherical_j0, "documented as sin(x) / x; sin: MSL table 8.1, 8.3 for half", _NO_LIMIT, native=("float16",)
        ),
        domain=(-20, 20),
    ),
    # Bessel functions
    _op("special.bessel_j0", functor="bessel_j0_forward", reference=_true(true.j0), bound=_BESSEL, domain=(-40, 40)),
    _op("special.bessel_j1", functor="bessel_j1_forward", reference=_true(true.j1), bound=_BESSEL, domain=(-40, 40)),
    _op("special.bessel_y0", functor="bessel_y0_forward", reference=_true(true.y0), bound=_BESSEL, domain=(0, 40)),
    _op("special.bessel_y1", functor="bessel_y1_forward", reference=_true(true.y1), bound=_BESSEL, domain=(0, 40)),
    # Modified Bessel functions; those of order 0 and 1 of the first kind exist twice
    _op(
        "i0",
        functor="i0",
        reference=_true(true.i0),
        bound=_HOUSE_HALF,
        domain=(-91, 91),
        gradient=composed(derivative.i0),
    ),
    _op(
        "special.i0e",
        functor="i0e",
        reference=_true(true.i0e),
        bound=_HOUSE_HALF,
        domain=(-100, 100),
        gradient=composed(derivative.i0e),
    ),
    _op(
        "special.i1",
        functor="i1",
        reference=_true(true.i1),
        bound=_HOUSE_HALF,
        domain=(-91, 91),
        gradient=composed(derivative.i1),
    ),
    _op(
        "special.i1e",
        functor="i1e",
        reference=_true(true.i1e),
        bound=_HOUSE_HALF,
        domain=(-100, 100),
        gradient=composed(derivative.i1e),
    ),
    _op(
        "special.modified_bessel_i0",
        functor="modified_bessel_i0_forward",
        reference=_true(true.i0),
        bound=_HOUSE_HALF,
        domain=(-91, 91),
    ),
    _op(
        "special.modified_bessel_i1",
        functor="modified_bessel_i1_forward",
        reference=_true(true.i1),
        bound=_HOUSE_HALF,
        domain=(-91, 91),
    ),
    _op(
        "special.modified_bessel_k0",
        functor="modified_bessel_k0_forward",
        reference=_true(true.k0),
        bound=_HOUSE_HALF,
        domain=(0, 88),
    ),
    _op(
        "special.modified_bessel_k1",
        functor="modified_bessel_k1_forward",
        reference=_true(true.k1),
        bound=_HOUSE_HALF,
        domain=(0, 88),
    ),
    _op(
        "special.scaled_modified_bessel_k0",
        functor="scaled_modified_bessel_k0_forward",
        reference=_true(true.k0e),
        bound=_HOUSE_HALF,
        domain=(0, 100),
    ),
    _op(
        "special.scaled_modified_bessel_k1",
        functor="scaled_modified_bessel_k1_forward",
        reference=_true(true.k1e),
        bound=_HOUSE_HALF,
        domain=(0, 100),
    ),
)
