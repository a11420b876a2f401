"""What is right: units of error, bounds with their sources, and the judge. The primer is ``docs/oracle.md``."""

from conformance.oracle.acceptance import Rules
from conformance.oracle.bounds import (
    ByKind,
    Contract,
    CorrectlyRounded,
    Exact,
    HouseRule,
    Inherited,
    Limit,
    Normwise,
    Stepwise,
)
from conformance.oracle.judge import Judgement, judge
from conformance.oracle.softmax import SoftmaxBound
from conformance.oracle.units import ulp

__all__ = [
    "ByKind",
    "Contract",
    "CorrectlyRounded",
    "Exact",
    "HouseRule",
    "Inherited",
    "Judgement",
    "Limit",
    "Normwise",
    "Rules",
    "SoftmaxBound",
    "Stepwise",
    "judge",
    "ulp",
]
