"""Work on the emulated GPU, through the engine: exact, of the call alone, and the same again."""

from __future__ import annotations

import jsonschema
import pytest

from conformance.engine.measure import measured
from conformance.op import Op
from conformance.plan import Selection, plan
from conformance.record import schema
from metal_ops.catalogue import ops
from metal_ops.device import AirDevice

CATALOGUE: dict[str, Op] = {op.name: op for op in ops()}


@pytest.fixture(scope="module")
def device() -> AirDevice:
    return AirDevice()


def test_add_reads_two_numbers_and_writes_one(device: AirDevice) -> None:
    (record,) = measured(CATALOGUE["add"], "float32", device, "2.15.0")
    jsonschema.validate(record.to_json(), schema())
    forward = [row for row in record.work if row["direction"] == "forward"]
    assert [row["size"] for row in forward] == [1 << 10, 1 << 16]
    for row in forward:
        assert (row["loads"], row["stores"], row["flops"]) == (2 * row["size"], row["size"], row["size"])
        assert (row["loaded_bytes"], row["stored_bytes"]) == (8 * row["size"], 4 * row["size"])
    assert record.timing == ()  # a time of the emulator would say nothing of a GPU
    assert record.memory[0]["current_bytes"] >= 3 * 4096
    assert record.memory[0]["driver_bytes"] is None
    (again,) = measured(CATALOGUE["add"], "float32", device, "2.15.0")
    assert again.work == record.work


def test_threads_that_cooperate_meet_at_barriers(device: AirDevice) -> None:
    """And a backward that has no kernel is left out."""
    (record,) = measured(CATALOGUE["softmax"], "float32", device, "2.15.0")
    assert record.verdict == "pass"
    assert {row["direction"] for row in record.work} == {"forward"}
    assert record.work[-1]["barriers"] > 0


@pytest.mark.parametrize("name", sorted(name for name, op in CATALOGUE.items() if op.workloads is not None))
def test_workloads_of_their_own_grow(name: str) -> None:
    op = CATALOGUE[name]
    assert op.workloads is not None
    cases = op.workloads(op.dtypes[0])
    sizes = [max(spec.numel for spec in case.tensors) for case in cases]
    assert sizes == sorted(set(sizes))
    assert sizes[0] <= 1 << 16
    assert {case.op for case in cases} == {name}


def test_a_run_measures_last_and_only_when_asked() -> None:
    chosen = Selection(ops=("exp", "add"), dtypes=("float32",))
    plain = plan(list(CATALOGUE.values()), chosen)
    units = plan(list(CATALOGUE.values()), chosen, measure=True)
    assert units[: len(plain)] == plain
    assert [unit.name for unit in units[len(plain) :]] == ["exp-float32-measure", "add-float32-measure"]
    only = plan(list(CATALOGUE.values()), Selection(ops=("exp",), dtypes=("float32",), properties=("measure",)))
    assert [unit.name for unit in only] == ["exp-float32-measure"]
