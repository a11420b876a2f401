"""Check one property of one op in one element type."""

from __future__ import annotations

import hashlib
import json
import traceback
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.case import Case, differentiable
from conformance.effort import Effort
from conformance.engine.checker import Checker
from conformance.engine.examine import BACKWARD, Examined
from conformance.engine.features import features
from conformance.engine.hypothesis_run import Enough, explore
from conformance.engine.measure import MEASURE, measured
from conformance.engine.minimal import minimal
from conformance.engine.sweep import sweep
from conformance.engine.tally import Failure, Tally
from conformance.engine.variants import climb
from conformance.engine.witness import witnesses
from conformance.findings import exception
from conformance.known import FailureClass
from conformance.record import Record, Verdict

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.op import Op

_DRAWN = 3
"""Cases drawn for each one asked for: Hypothesis repeats itself, and a repeated call tells nothing new."""

_SHRINKS = 400
"""Calls that may be made for one property after its first failure, to shrink the recipe."""

_UNSUPPORTED = 8
"""After so many cases that are all unsupported, so is the op."""

_VERDICTS: dict[str, Verdict] = {"crash": "crash", "timeout": "timeout"}
"""Kinds of finding that are a verdict of their own; all others are a fail."""

_LOOKS: tuple[FailureClass, ...] = ("device-only", "shared", "device-only")
"""The classes of failure in the order in which drawn cases look for them."""

_DIFFERENTIATED = 4
"""One case about layouts of so many has a backward, whose operands and incoming gradients are strided too."""

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


def run_unit(unit: Unit, op: Op, checker: Checker, build: str, effort: Effort) -> list[Record]:
    """Check the unit; a fault of the suite itself becomes a record with the verdict ``error``."""
    op = op.on(checker.device.name)
    tally = Tally(op, unit.dtype, unit.property)
    try:
        if unit.property == "witness":
            return witnesses(op, unit.dtype, checker, build)
        if unit.property == MEASURE:
            return measured(op, unit.dtype, checker.device, build)
        if unit.property == "exhaustive":
            sweep(op, unit.dtype, checker, tally)
        elif unit.property == "variants":
            climb(op, unit.dtype, checker, tally)
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
    wished = effort.cases_of(unit.property)
    found = _Found(op, checker, tally, wished)
    strategy = _cases(unit, op)
    # What the CPU gets wrong as well is met often, and would hide what only the device does: it comes second. While it
    # shrinks, what only the device gets wrong may still be met for the first time.
    for wanted in _LOOKS:
        if any(failure.failure_class == wanted for failure in tally.failures):
            continue
        found.look_for(wanted)
        explore(strategy, found.check, examples=_DRAWN * wished, seed=effort.seed_of(unit.name))
        if found.fault is not None:
            raise found.fault
        tally.failures += [minimal(op, checker, examined, wanted) for examined in found.last.values()]
        if found.other is None:
            break


def _cases(unit: Unit, op: Op) -> SearchStrategy[Case]:
    """The op's cases; about the backward, and a part of those about layouts, with gradients; about ``out`` with one."""
    cases = op.cases(unit.dtype, unit.property)
    if unit.property == "out":
        from conformance.strategies import with_out

        return with_out(op, cases)
    if op.gradient is None and unit.property == BACKWARD:
        raise ValueError(f"op {op.name} has no gradient, yet lists the property {BACKWARD}")
    if op.gradient is None or not differentiable(unit.dtype) or unit.property not in (BACKWARD, "layout"):
        return cases
    from conformance.strategies import one_in, with_gradients

    backward = with_gradients(op, cases)
    return backward if unit.property == BACKWARD else one_in(_DIFFERENTIATED, backward, cases)


class _Found:
    """The check that Hypothesis calls: it remembers each call, and the last failure of each kind.

    ``last`` has those of the class looked for, ``other`` is a failure of the other class.
    """

    def __init__(self, op: Op, checker: Checker, tally: Tally, examples: int) -> None:
        self.last: dict[str, Examined] = {}
        self.other: Examined | None = None
        self.fault: Exception | None = None
        self._op = op
        self._checker = checker
        self._tally = tally
        self._left = examples
        self._seen: dict[str, Examined | None] = {}
        self._wanted: FailureClass = "device-only"

    def look_for(self, wanted: FailureClass) -> None:
        """Start again, with failures of this class; one that was met before is there already."""
        self._wanted = wanted
        self.last = {}
        met, self.other = self.other, None
        if met is not None:
            kept = self._checker.narrowed(self._op, met, wanted)
            self.last = {kept.finding.kind: kept} if kept.finding else {}
            self._left = _SHRINKS

    def check(self, case: Case) -> None:
        """Run a case unless the same call ran before; raise the exception of its finding's kind."""
        key = _identity(case)
        if key not in self._seen:
            self._seen[key] = self._run(case)
        failing = self._seen[key]
        if failing is None:
            return
        examined = self._checker.narrowed(self._op, failing, self._wanted)
        if examined.finding is None:
            self.other = failing
            return
        if not self.last:
            self._left = _SHRINKS
        self.last[examined.finding.kind] = examined
        raise exception(examined.finding)

    def _run(self, case: Case) -> Examined | None:
        """None for a case that passes, and once the budget for shrinking is spent."""
        enough = self._left <= 0 or self._tally.unsupported == self._tally.cases >= _UNSUPPORTED
        if enough and not self.last:
            raise Enough
        if enough:
            return None
        self._left -= 1
        try:
            examined = self._checker.check(self._op, case)
        except Exception as error:
            # Hypothesis would take it for a failure of the op, and shrink it.
            error.add_note(f"in case {case.text()}")
            self.fault = error
            raise Enough from error
        self._tally.add(examined)
        return examined if examined.finding else None


def _identity(case: Case) -> str:
    """A digest of the call that a case makes: recipes that differ may build the same bytes."""
    head = [dict(case.params), case.requires_grad, len(case.tensors), case.out is None, case.named]
    digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    others = (*case.gradients, *(() if case.out is None else (case.out,)))
    for tensor in (*case.materialise(), *(spec.materialise() for spec in others)):
        digest.update(f"{tensor.dtype} {tensor.shape}".encode())
        if prod(tensor.shape):
            digest.update(f"{tensor.strides} {tensor.offset}".encode() + tensor.storage)
    return digest.hexdigest()


def _confirmed(op: Op, checker: Checker, failure: Failure) -> Failure:
    """Run a failure again, for the kernels it runs, and look into it; one that does not repeat is flaky."""
    kernels: set[str] = set()
    for _ in range(_REPEATS):
        examined = checker.check(op, failure.case)
        kernels.update(examined.outcome.kernels)
        if examined.finding is None or examined.finding.kind != failure.finding.kind:
            return replace(failure, verdict="flaky", kernels=tuple(sorted(kernels)))
    failure = replace(failure, kernels=tuple(sorted(kernels)))
    if failure.finding.kind in _VERDICTS:
        return replace(failure, verdict=_VERDICTS[failure.finding.kind])
    return replace(failure, features=features(op, checker, failure))
