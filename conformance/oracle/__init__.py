"""What is right: units of error, bounds with their sources, and the judge. The primer is ``docs/oracle.md``."""

from conformance.oracle import arithmetic as _arithmetic
from conformance.oracle import arrays as _arrays
from conformance.oracle import functions as _functions
from conformance.oracle import special as _special
from conformance.oracle.acceptance import Rules
from conformance.oracle.bounds import (
    ByKind,
    ByParameter,
    Contract,
    CorrectlyRounded,
    Either,
    Exact,
    Inherited,
    Limit,
    Neighbour,
    Written,
)
from conformance.oracle.conditioned import HouseRule, Normwise, Stepwise
from conformance.oracle.gradients import InRange, ManyFactors, RunningError
from conformance.oracle.judge import Judgement, judge
from conformance.oracle.multilinear import MultilinearBound
from conformance.oracle.softmax import SoftmaxBound
from conformance.oracle.sums import ProductBound, SumBound
from conformance.oracle.termwise import Termwise
from conformance.oracle.units import ulp

_RULES_FOR_INTERVALS = (_arithmetic, _arrays, _functions, _special)

__all__ = [
    "ByKind",
    "ByParameter",
    "Contract",
    "CorrectlyRounded",
    "Either",
    "Exact",
    "HouseRule",
    "InRange",
    "Inherited",
    "Judgement",
    "Limit",
    "ManyFactors",
    "MultilinearBound",
    "Neighbour",
    "Normwise",
    "ProductBound",
    "Rules",
    "RunningError",
    "SoftmaxBound",
    "Stepwise",
    "SumBound",
    "Termwise",
    "Written",
    "judge",
    "ulp",
]
