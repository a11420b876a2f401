"""From a failing case to the failure that is reported: minimal, and classed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.engine.checker import Checker
from conformance.engine.examine import Examined
from conformance.engine.minimise import minimise
from conformance.engine.tally import Failure

if TYPE_CHECKING:
    from conformance.op import Op


def minimal(op: Op, checker: Checker, examined: Examined) -> Failure:
    """Shrink the arrays of a failing case and class what is left."""
    assert examined.finding is not None
    case, finding = minimise(examined.case, examined.finding, lambda case: checker.check(op, case).finding)
    return Failure(case, finding, checker.class_of(op, case, finding))
