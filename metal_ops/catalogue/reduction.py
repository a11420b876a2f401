"""Sums and other reductions. To add an op, add one block."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.op import Bound, Gradient, Op, Reference, ReferenceFunction
from conformance.oracle import CorrectlyRounded, ManyFactors, ProductBound, SumBound
from metal_ops.catalogue._blocks import ANY, COMPLEX, FLOATS, INTS, REAL
from metal_ops.catalogue._gradients import composed, copied, moved
from metal_ops.catalogue._workloads import ROWS, alone, workloads
from references import reduction as true
from references.gradients import reduction as derivative

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.case import Case

_CHOICE = CorrectlyRounded("one of the elements, which may be flushed (MSL 8.1)")
_LOGIC = CorrectlyRounded("logic; a subnormal number may be flushed before it is compared (MSL 8.1)")


_COMPOSED = composed(derivative.prod)
_PROD = replace(_COMPOSED, bound=ManyFactors(_COMPOSED.bound))


def _reduction(
    name: str,
    reference: ReferenceFunction,
    bound: Bound,
    dtypes: tuple[str, ...],
    gradient: Gradient | None = None,
    *,
    several: bool = True,
    keepdim: bool = True,
    results: tuple[str, ...] = (),
) -> Op:
    """An op along dimensions; ``results`` are the types that its parameter ``dtype`` may ask for."""

    def cases(dtype: str, property: str) -> SearchStrategy[Case]:
        from conformance.strategies import reduction_cases

        return reduction_cases(name, dtype, property, several=several, keepdim=keepdim, dtypes=results)

    return Op(
        name=name,
        family="reduction",
        function=name,
        dtypes=dtypes,
        cases=cases,
        reference=Reference(reference, "numpy"),
        bound=bound,
        properties=("forward", "backward") if gradient else ("forward",),
        kernels=(f"{name}_reduction_*",),
        gradient=gradient,
        workloads=workloads(name, alone(ROWS), {"dim": -1}),
    )


OPS: tuple[Op, ...] = (
    _reduction(
        "sum",
        true.sum,
        SumBound(),
        ANY,
        copied(derivative.sum),
        results=("float32", "float16", "int64", "int32"),
    ),
    _reduction("nansum", true.nansum, SumBound(), FLOATS, moved(derivative.nansum)),
    _reduction("mean", true.mean, SumBound(mean=True), (*FLOATS, *COMPLEX), composed(derivative.mean)),
    _reduction("prod", true.prod, ProductBound(), (*FLOATS, *INTS), _PROD, several=False),
    _reduction("amax", true.amax, _CHOICE, REAL, composed(derivative.amax)),
    _reduction("amin", true.amin, _CHOICE, REAL, composed(derivative.amax)),
    _reduction("any", true.any, _LOGIC, (*REAL, *COMPLEX)),
    _reduction("all", true.all, _LOGIC, (*REAL, *COMPLEX)),
    _reduction("count_nonzero", true.count_nonzero, _LOGIC, (*REAL, *COMPLEX), keepdim=False),
)
