"""Check one property of one op in one element type."""

from __future__ import annotations

import hashlib
import json
import traceback
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.case import Case
from conformance.engine.checker import Checker
from conformance.engine.examine import Examined
from conformance.engine.hypothesis_run import explore
from conformance.engine.minimal import minimal
from conformance.engine.sweep import sweep
from conformance.engine.tally import Failure, Tally
from conformance.engine.witness import witnesses
from conformance.findings import exception
from conformance.record import Record, Verdict

if TYPE_CHECKING:
    from conformance.op import Op

_SHRINKS = 400
"""Calls that may be made for one property after its first failure, to shrink the recipe."""

_UNSUPPORTED = 8
"""After so many cases that are all unsupported, so is the op."""

_VERDICTS: dict[str, Verdict] = {"crash": "crash", "timeout": "timeout"}
"""Kinds of finding that are a verdict of their own; all others are a fail."""

_REPEATS = 2
"""How often a failure must repeat, or it is flaky."""


@dataclass(frozen=True)
class Unit:
    """The smallest piece of work: a property of an op in an element type."""

    op: str
    dtype: str
    property: str

    @cached_property
    def name(self) -> str:
        """Give the unit in one word, as tests and files use it."""
        return f"{self.op}-{self.dtype}-{self.property}"


@dataclass(frozen=True)
class Effort:
    """How hard to look: ``examples`` drawn for each property, and the run's seed."""

    examples: int
    seed: int

    def seed_of(self, unit: Unit) -> int:
        """Give the unit's own seed, independent of the other units of the run."""
        text = f"{self.seed}/{unit.op}/{unit.dtype}/{unit.property}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def run_unit(unit: Unit, op: Op, checker: Checker, build: str, effort: Effort) -> list[Record]:
    """Check the unit; a fault of the suite itself becomes a record with the verdict ``error``."""
    tally = Tally(op, unit.dtype, unit.property)
    try:
        if unit.property == "witness":
            return witnesses(op, unit.dtype, checker, build)
        if unit.property == "exhaustive":
            sweep(op, unit.dtype, checker, tally)
        else:
            _drawn(unit, op, checker, tally, effort)
        tally.failures = [_confirmed(op, checker, failure) for failure in tally.failures]
        return tally.records(checker.device.name, build)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}, line {where.lineno}"
        message = " ".join((f"{type(error).__name__}: {error} ({place})", *getattr(error, "__notes__", ())))
        tally.failures = []
        whole = tally.records(checker.device.name, build)[0]
        return [replace(whole, verdict="error", message=message)]


def _drawn(unit: Unit, op: Op, checker: Checker, tally: Tally, effort: Effort) -> None:
    """Draw cases, let Hypothesis shrink what fails, then shrink its arrays."""
    found = _Found(op, checker, tally)
    explore(op.cases(unit.dtype, unit.property), found.check, examples=effort.examples, seed=effort.seed_of(unit))
    if found.fault is not None:
        raise found.fault
    tally.failures += [minimal(op, checker, examined) for examined in found.last.values()]


class _Found:
    """The check that Hypothesis calls: it remembers each case, and the last failure of each kind."""

    def __init__(self, op: Op, checker: Checker, tally: Tally) -> None:
        self.last: dict[str, Examined] = {}
        self.fault: Exception | None = None
        self._op = op
        self._checker = checker
        self._tally = tally
        self._seen: dict[str, Examined | None] = {}
        self._shrinks = 0

    def check(self, case: Case) -> None:
        """Run a case unless it ran before; raise the exception of its finding's kind."""
        key = json.dumps(case.to_json())
        if key not in self._seen:
            self._seen[key] = self._run(case)
        examined = self._seen[key]
        if examined is not None and examined.finding is not None:
            self.last[examined.finding.kind] = examined
            raise exception(examined.finding)

    def _run(self, case: Case) -> Examined | None:
        """None for a case that passes, and once the budget for shrinking is spent or nothing is supported."""
        if self._shrinks >= _SHRINKS or self._tally.unsupported == self._tally.cases >= _UNSUPPORTED:
            return None
        self._shrinks += bool(self.last)
        try:
            examined = self._checker.check(self._op, case)
        except Exception as error:
            # Hypothesis would take it for a failure of the op, and shrink it; stop at once instead.
            error.add_note(f"in case {case.text()}")
            self.fault = error
            self._shrinks = _SHRINKS
            return None
        self._tally.add(examined)
        return examined if examined.finding else None


def _confirmed(op: Op, checker: Checker, failure: Failure) -> Failure:
    """Run a failure again, for the kernels it runs; one that does not repeat is flaky."""
    kernels: set[str] = set()
    for _ in range(_REPEATS):
        examined = checker.check(op, failure.case)
        kernels.update(examined.outcome.kernels)
        if examined.finding is None or examined.finding.kind != failure.finding.kind:
            return replace(failure, verdict="flaky", kernels=tuple(sorted(kernels)))
    verdict = _VERDICTS.get(failure.finding.kind, "fail")
    return replace(failure, verdict=verdict, kernels=tuple(sorted(kernels)))
