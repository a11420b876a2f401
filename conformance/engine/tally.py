"""What a unit adds up while its cases run, and the records made of it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.case import Case, element_text
from conformance.engine.examine import Examined
from conformance.findings import Finding
from conformance.known import FailureClass
from conformance.record import BAD, Record, Verdict, Worst

if TYPE_CHECKING:
    from conformance.op import Op


@dataclass(frozen=True)
class Failure:
    """One failure, minimal: its case, what is wrong, and its class."""

    case: Case
    finding: Finding
    failure_class: FailureClass
    verdict: Verdict = "fail"
    kernels: tuple[str, ...] = ()


@dataclass
class Tally:
    """Adds up the cases of one property of one op and dtype."""

    op: Op
    dtype: str
    property: str
    cases: int = 0
    unsupported: int = 0
    unsupported_message: str | None = None
    kernels: set[str] = field(default_factory=set)
    known: dict[str, None] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _worst: tuple[float, float, Case, int] | None = None
    _started: float = field(default_factory=time.perf_counter)

    def add(self, examined: Examined) -> None:
        """Count one case and remember its error if it is the largest so far."""
        self.cases += 1
        self.kernels.update(examined.outcome.kernels)
        self.known.update(dict.fromkeys(examined.known))
        if examined.unsupported:
            self.unsupported += 1
            self.unsupported_message = self.unsupported_message or examined.outcome.message
        judgement = examined.judgement
        if judgement is None or judgement.worst is None:
            return
        units = float(judgement.units.reshape(-1)[judgement.worst])
        in_ulp = float(judgement.ulp.reshape(-1)[judgement.worst])
        if self._worst is None or (units, in_ulp) > self._worst[:2]:
            self._worst = units, in_ulp, examined.case, judgement.worst

    def verdict(self) -> Verdict:
        """Give the verdict on the property: the gravest of its failures, else what happened to its cases."""
        found = {failure.verdict for failure in self.failures}
        for bad in BAD:
            if bad in found:
                return bad
        if self.known:
            return "known"
        return "unsupported" if self.cases and self.unsupported == self.cases else "pass"

    def records(self, device: str, build: str) -> list[Record]:
        """Give the property's record and one for each failure."""
        common: dict[str, Any] = {
            "op": self.op.name,
            "family": self.op.family,
            "dtype": self.dtype,
            "device": device,
            "build": build,
            "property": self.property,
            "reference": self.op.reference.kind,
            "bound": self.op.bound.name,
        }
        classes = sorted({failure.failure_class for failure in self.failures})
        verdict = self.verdict()
        if 0 < self.unsupported < self.cases:
            self.notes.append(f"{self.unsupported} of {self.cases} cases unsupported: {self.unsupported_message}")
        whole = Record(
            verdict=verdict,
            failure_class=classes[0] if classes else None,  # device-only comes before shared
            cases=self.cases,
            worst=self._worst_record(),
            kernels=tuple(sorted(self.kernels)),
            seconds=time.perf_counter() - self._started,
            known=tuple(self.known),
            message=self.unsupported_message if verdict == "unsupported" else None,
            notes=tuple(self.notes),
            **common,
        )
        return [whole, *(self._failure_record(failure, common) for failure in self.failures)]

    def _failure_record(self, failure: Failure, common: dict[str, Any]) -> Record:
        return Record(
            verdict=failure.verdict,
            failure_class=failure.failure_class,
            cases=1,
            kernels=failure.kernels,
            case=failure.case.to_json(),
            message=f"{failure.case.text()}: {failure.finding.message}",
            **common,
        )

    def _worst_record(self) -> Worst | None:
        if self._worst is None or math.isnan(self._worst[0]):
            return None
        units, in_ulp, case, element = self._worst
        return Worst(units, in_ulp, case.to_json(), element, element_text(case, element))
