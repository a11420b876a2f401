"""Orthogonal polynomials of a whole degree. To add an op, add one block."""

from __future__ import annotations

from conformance.op import Op, Reference
from conformance.oracle import HouseRule
from metal_ops.catalogue._blocks import REAL, binary
from references import polynomials as true

_BOUND = HouseRule(
    16.0,
    "a recurrence of two products and a sum a step; c is the loosest limit that OpenCL's suite sets a float function",
    fixed=(1,),
)

_OF_CHEBYSHEV = tuple(f"{shift}chebyshev_polynomial_{kind}" for shift in ("", "shifted_") for kind in "tuvw")

_OTHERS = ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l")


def _polynomial(name: str, domain: tuple[float, float]) -> Op:
    return binary(
        f"special.{name}",
        family="polynomials",
        functor=name,
        reference=Reference(getattr(true, name), "numpy"),
        bound=_BOUND,
        dtypes=REAL,
        number="n",
        domains=(domain, (0, 8)),
    )


OPS: tuple[Op, ...] = (
    *(_polynomial(name, (0, 1) if name.startswith("shifted") else (-1, 1)) for name in _OF_CHEBYSHEV),
    *(_polynomial(name, (-4, 4)) for name in _OTHERS),
)
