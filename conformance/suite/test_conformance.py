"""One test for each property of each op and element type."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conformance.engine import Unit
    from conformance.jobs import Bench
    from conformance.record import Record


def test_conformance(conformance_unit: Unit, conformance_bench: Bench) -> None:
    """Run the unit: skipped if the device does not support it, an expected failure if all that fails is known."""
    records = conformance_bench.run(conformance_unit)
    bad = [record for record in records if record.is_failure or record.verdict == "error"]
    if bad:
        pytest.fail("\n\n".join(_described(record, conformance_bench) for record in bad), pytrace=False)
    verdicts = {record.verdict for record in records}
    for record in records:
        if record.verdict == "fixed":
            warnings.warn(f"FIXED: {record.message}", stacklevel=1)
    if verdicts == {"unsupported"}:
        pytest.skip(records[0].message or "unsupported")
    if "known" in verdicts:
        pytest.xfail("known: " + ", ".join(dict.fromkeys(name for record in records for name in record.known)))


def _described(record: Record, bench: Bench) -> str:
    """The failure in words, its script, and its case if it is not long."""
    from conformance.script import Function, script

    if not record.is_failure:
        return f"{record.verdict}: {record.message}"
    op = bench.ops[record.op]
    settings = bench.settings
    text = script(
        record,
        Function(op.function, op.listed, op.out),
        device=settings.device,
        build=bench.pinned_build,
        torch_device=bench.device.torch_device,
    )
    return f"{record.verdict} ({record.failure_class})\n{text}\ncase: {json.dumps(record.case)[:2000]}"
