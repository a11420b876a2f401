"""What a unit adds up while its cases run, and the records made of it."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.case import Case, element_text
from conformance.engine.examine import BACKWARD, Examined
from conformance.findings import RESULT, Finding, Part
from conformance.known import FailureClass
from conformance.record import BAD, Record, Verdict, Worst

if TYPE_CHECKING:
    from conformance.op import Op


@dataclass(frozen=True)
class Failure:
    """One failure, minimal: its case, what is wrong, its class, and in a sentence which of its features matter."""

    case: Case
    finding: Finding
    failure_class: FailureClass
    verdict: Verdict = "fail"
    kernels: tuple[str, ...] = ()
    features: str | None = None


@dataclass
class Tally:
    """Adds up the cases of one property of one op and dtype; ``of_backward`` says that it is about gradients."""

    op: Op
    dtype: str
    property: str
    of_backward: bool = False
    cases: int = 0
    unsupported: int = 0
    unsupported_message: str | None = None
    kernels: set[str] = field(default_factory=set)
    helpers: Counter[str] = field(default_factory=Counter)
    known: dict[str, None] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refused: str | None = None
    """Why there is no case at all, if torch's rules are why."""
    _worst: tuple[float, float, Case, int, tuple[int, ...], Part] | None = None
    _started: float = field(default_factory=time.perf_counter)

    def add(self, examined: Examined) -> None:
        """Count one case and remember its error if it is the largest so far."""
        self.cases += 1
        self.kernels.update(examined.outcome.kernels)
        self.helpers.update(examined.outcome.helpers)
        self.known.update(dict.fromkeys(examined.known))
        if examined.unsupported:
            self.unsupported += 1
            self.unsupported_message = self.unsupported_message or examined.outcome.told
        for judged in examined.judged:
            judgement, worst = judged.judgement, judged.judgement.worst
            if worst is None:
                continue
            units, in_ulp = (float(errors.reshape(-1)[worst]) for errors in (judgement.units, judgement.ulp))
            if self._worst is None or (units, in_ulp) > self._worst[:2]:
                self._worst = units, in_ulp, examined.case, worst, judgement.units.shape, judged.part

    def verdict(self) -> Verdict:
        """Give the verdict on the property: the gravest of its failures, else what happened to its cases."""
        found = {failure.verdict for failure in self.failures}
        for bad in BAD:
            if bad in found:
                return bad
        if self.known:
            return "known"
        nothing_ran = self.cases and self.unsupported == self.cases
        return "unsupported" if nothing_ran or self.refused else "pass"

    def records(self, device: str, build: str) -> list[Record]:
        """Give the property's record and one for each failure."""
        common = common_fields(self.op, self.dtype, self.property, of_backward=self.of_backward)
        common |= {"device": device, "build": build}
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
            message=self.refused or self.unsupported_message if verdict == "unsupported" else None,
            notes=tuple(self.notes),
            helpers=dict(sorted(self.helpers.items())),
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
            features=failure.features,
            **common,
        )

    def _worst_record(self) -> Worst | None:
        if self._worst is None or math.isnan(self._worst[0]):
            return None
        units, in_ulp, case, element, shape, part = self._worst
        text = element_text(case, element, shape)
        return Worst(units, in_ulp, case.to_json(), element, text, None if part == RESULT else str(part))


def common_fields(op: Op, dtype: str, property: str, *, of_backward: bool = False) -> dict[str, Any]:
    """What the records of a unit have in common, device and build apart: who judged it, for one."""
    judge = op.gradient if op.gradient is not None and (of_backward or property == BACKWARD) else None
    return {
        "op": op.name,
        "family": op.family,
        "dtype": dtype,
        "property": property,
        "reference": judge.kind if judge else op.reference.kind,
        "bound": judge.bound.name if judge else op.bound.name,
    }
