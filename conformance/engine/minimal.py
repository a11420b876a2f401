"""From a failing case to the failure that is reported: minimal, and classed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.engine.checker import Checker
from conformance.engine.examine import Examined
from conformance.engine.minimise import minimise
from conformance.engine.tally import Failure
from conformance.findings import Finding
from conformance.known import FailureClass

if TYPE_CHECKING:
    from conformance.case import Case
    from conformance.op import Op


def minimal(op: Op, checker: Checker, examined: Examined, wanted: FailureClass | None = None) -> Failure:
    """Shrink the arrays of a failing case and class what is left, which stays of the class ``wanted`` if given."""
    assert examined.finding is not None

    def retry(case: Case) -> Finding | None:
        tried = checker.check(op, case)
        return (tried if wanted is None else checker.narrowed(op, tried, wanted)).finding

    case, finding = minimise(op, examined.case, examined.finding, retry)
    return Failure(case, finding, checker.class_of(op, case, finding))
