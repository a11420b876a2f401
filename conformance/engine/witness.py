"""The property ``witness``: run the witnesses of known failures, to see whether they still fail."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.engine.checker import Checker
from conformance.engine.tally import Tally
from conformance.record import Record
from conformance.witness import witness_cases

if TYPE_CHECKING:
    from conformance.known import Entry
    from conformance.op import Op


def witnesses(op: Op, dtype: str, checker: Checker, build: str) -> list[Record]:
    """Give one record for each known failure of the op and dtype: ``known`` while a witness fails, then ``fixed``.

    One that does not repeat stays known: witnesses that pass tell nothing.
    """
    mine = [entry for entry in checker.known if entry.op == op.name and dtype in entry.dtypes]
    return [_witness(op, dtype, entry, checker, build) for entry in mine]


def _witness(op: Op, dtype: str, entry: Entry, checker: Checker, build: str) -> Record:
    unknowing = Checker(checker.device)
    tally = Tally(op, dtype, "witness", of_backward=entry.of_backward)
    fails = False
    for case in witness_cases(entry, op, dtype):
        examined = unknowing.check(op, replace(case, property="layout") if entry.kinds == ("layout",) else case)
        tally.add(examined)
        fails |= examined.finding is not None and examined.finding.kind in entry.kinds
    record = tally.records(checker.device.name, build)[0]
    if record.verdict == "unsupported":
        return replace(record, known=(entry.id,))
    is_known = fails or not entry.repeats
    return replace(
        record,
        verdict="known" if is_known else "fixed",
        failure_class=entry.failure_class,
        known=(entry.id,),
        message=entry.evidence if is_known else f"known failure {entry.id} no longer fails: {entry.evidence}",
    )
