"""The property ``variants``: an op's ladder, of whose failures one of each kind and class is shown."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from conformance.engine.checker import Checker
from conformance.engine.examine import Examined
from conformance.engine.minimal import minimal
from conformance.engine.tally import Tally
from conformance.findings import OF_ELEMENTS
from conformance.known import FailureClass
from conformance.ladder import rungs

if TYPE_CHECKING:
    from conformance.op import Op


@dataclass
class _Alike:
    """Cases that fail in the same way: the first, and the kernels of all."""

    first: Examined
    kernels: list[str] = field(default_factory=list)
    count: int = 0


def climb(op: Op, dtype: str, checker: Checker, tally: Tally) -> None:
    """Run the op's ladder and add what it finds to ``tally``: a failure for each kind of finding and class.

    Raises
    ------
    ValueError
        If the op has no ladder.
    """
    found: dict[tuple[str, FailureClass], _Alike] = {}
    count = 0
    for case in rungs(op, dtype):
        count += 1
        examined = checker.check(op, case)
        tally.add(examined)
        for key in _ways(op, checker, examined):
            alike = found.setdefault(key, _Alike(examined))
            alike.count += 1
            alike.kernels += examined.outcome.kernels
    if not count:
        tally.refused = "torch's rules refuse the element type"
    for (_, failure_class), alike in sorted(found.items()):
        failure = minimal(op, checker, alike.first, failure_class)
        message = f"{failure.finding.message}. {_summary(alike, count)}"
        tally.failures.append(replace(failure, finding=replace(failure.finding, message=message)))


def _ways(op: Op, checker: Checker, examined: Examined) -> list[tuple[str, FailureClass]]:
    """The kind of finding, with each class that has failing elements."""
    finding = examined.finding
    if finding is None:
        return []
    if finding.kind in OF_ELEMENTS:
        return [(finding.kind, failure_class) for failure_class in checker.by_class(op, examined)]
    return [(finding.kind, checker.class_of(op, examined.case, finding))]


def _summary(alike: _Alike, count: int) -> str:
    names = list(dict.fromkeys(alike.kernels))
    kernels = f", with the kernels {', '.join(names)}" if names else ""
    return f"Of the {count} cases of the ladder {alike.count} fail this way{kernels}"
