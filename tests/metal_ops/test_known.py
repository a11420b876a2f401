"""The known failures of released builds: well formed, about ops that exist, and still true."""

from __future__ import annotations

import pytest

from conformance import plan
from conformance.engine.checker import Checker
from conformance.known import Entry, entries, parse
from conformance.witness import witness_cases
from metal_ops.catalogue import ops
from metal_ops.device import AirDevice
from metal_ops.known import files

CATALOGUE = {op.name: op for op in ops()}
ENTRIES = [entry for path in files() for entry in parse(path.read_text(encoding="utf-8"), path.name)]
ON_AIR = entries("2.15.0", "air")


def test_there_are_entries_for_the_default_build():
    assert len(ON_AIR) > 50


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_an_entry_is_about_an_op_and_types_of_the_catalogue_and_has_figures(entry: Entry):
    assert set(entry.dtypes) <= set(plan.tested(CATALOGUE[entry.op]))
    assert sum(character.isdigit() for character in entry.evidence) > 5


@pytest.fixture(scope="module")
def judge() -> Checker:
    return Checker(AirDevice("2.15.0"))


@pytest.mark.parametrize("entry", ON_AIR, ids=lambda entry: entry.id)
def test_the_witnesses_fail_on_the_kernels_of_2_15_0(entry: Entry, judge: Checker):
    op = CATALOGUE[entry.op]
    for dtype in entry.dtypes:
        findings = [judge.check(op, case).finding for case in witness_cases(entry, op, dtype)]
        assert any(finding is not None and finding.kind in entry.kinds for finding in findings)
