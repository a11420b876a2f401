"""The engine on devices that are wrong in one way each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from conformance.case import Case
from conformance.devices.cpu import CpuDevice
from conformance.engine import Checker, Effort, Unit, run_unit
from conformance.known import Entry, parse
from conformance.op import Op
from conformance.record import Record, schema
from tests.conformance.test_known import ENTRY

EFFORT = Effort(examples=60, seed=1)


def check(
    device: Any,
    op: str = "tiny.negative",
    dtype: str = "float32",
    property: str = "forward",
    known: tuple[Entry, ...] = (),
) -> list[Record]:
    import tiny as plugin

    ops: dict[str, Op] = {op.name: op for op in plugin.ops()}
    records = run_unit(Unit(op, dtype, property), ops[op], Checker(device, known), "2.0", EFFORT)
    for record in records:
        jsonschema.validate(json.loads(record.line()), schema())
    return records


def tiny_device(name: str) -> Any:
    import tiny as plugin

    return getattr(plugin, name)()


@pytest.mark.parametrize("property", ["forward", "exhaustive", "layout"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_right_device_passes(tiny: Path, dtype: str, property: str) -> None:
    (record,) = check(tiny_device("Faulty"), dtype=dtype, property=property)
    assert (record.verdict, record.failure_class, record.device) == ("pass", None, "tiny")
    assert record.worst is not None
    assert record.worst.bound_units == 0
    assert record.cases > {"exhaustive": 0, "forward": 30, "layout": 15}[property]


@pytest.mark.parametrize("property", ["forward", "exhaustive", "layout"])
def test_wrong_values_shrink_to_one_simple_number(tiny: Path, property: str) -> None:
    whole, failure = check(tiny_device("Wrong"), property=property)
    assert (whole.verdict, failure.verdict, failure.failure_class) == ("fail", "fail", "device-only")
    (spec,) = Case.from_json(failure.case).tensors
    assert spec.shape == (1,)
    assert spec.logical().tolist() == [1024.0]
    assert failure.message is not None
    assert "got -1088.0" in failure.message


def test_sweep_says_how_many_fail_and_where(tiny: Path) -> None:
    _, failure = check(tiny_device("Wrong"), dtype="float16", property="exhaustive")
    assert failure.message is not None
    assert "Of the 65536 inputs of the sweep 6189 fail this way: [1000.5, 65440.0] (6189)" in failure.message


@pytest.mark.parametrize(("device", "property", "kinds"), [
    ("Packed", "layout", ["outside the bound"]),
    ("Raising", "forward", ["raised RuntimeError: no three dimensions here"]),
    ("Misshapen", "forward", ["; torch's rules give float32[1, "]),
    ("Restrided", "forward", ["returned strides [1, 2]; torch's rules give [2, 1]"]),
    ("Writing", "forward", ["memory beside operand 0 was written to"]),
    ("Writing", "exhaustive", ["memory beside operand 0 was written to"]),
])  # fmt: skip
def test_each_kind_of_failure_is_found(tiny: Path, device: str, property: str, kinds: list[str]) -> None:
    whole, *failures = check(tiny_device(device), property=property)
    assert whole.verdict == "fail"
    messages = [failure.message or "" for failure in failures]
    for kind in kinds:
        assert any(kind in message for message in messages), messages
    for failure in failures:
        assert failure.failure_class == "device-only"
        assert all(spec.numel <= 40 for spec in Case.from_json(failure.case).tensors)


def test_same_failure_on_the_cpu_is_shared(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference that disagrees with the CPU makes both devices wrong at the same elements."""
    import tiny as plugin

    op = plugin.ops()[1]
    object.__setattr__(op.reference, "function", lambda x: abs(x) * (1 + (x == 3)))
    (_, failure) = run_unit(Unit(op.name, "float32", "forward"), op, Checker(plugin.Faulty()), "2.0", EFFORT)
    assert failure.failure_class == "shared"
    assert Case.from_json(failure.case).tensors[0].logical().tolist() == [3.0]
    (_, failure) = run_unit(Unit(op.name, "float32", "exhaustive"), op, Checker(plugin.Faulty()), "2.0", EFFORT)
    assert failure.failure_class == "shared"
    (_, failure) = run_unit(Unit(op.name, "float32", "forward"), op, Checker(CpuDevice()), "2.0", EFFORT)
    assert failure.failure_class == "shared"


@pytest.mark.parametrize("property", ["forward", "exhaustive", "layout"])
def test_shared_failure_hides_no_other(tiny: Path, property: str) -> None:
    """Most inputs fail on both devices, large ones on one only: both are found."""
    import tiny as plugin

    op = plugin.ops()[0]
    object.__setattr__(op.reference, "function", lambda x: -x * (1 + (abs(x) > 2) * (x < 1000) / 16))
    records = run_unit(Unit(op.name, "float32", property), op, Checker(plugin.Wrong()), "2.0", EFFORT)
    failures = {record.failure_class: Case.from_json(record.case) for record in records[1:]}
    assert sorted(failures, key=str) == ["device-only", "shared"]
    assert failures["device-only"].tensors[0].logical().tolist() == [1024.0]
    assert records[0].failure_class == "device-only"


def test_layout_dependence_within_the_bound_is_found(tiny: Path) -> None:
    """One ulp more for strided operands is right for each element, yet not the same bits."""
    import tiny as plugin

    class Nudged(plugin.Faulty):  # type: ignore[misc, name-defined]
        same_bits_in_any_layout = True

        def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
            if args[0].is_contiguous():
                return result
            return result.nextafter(result * 2)

    whole, failure = check(Nudged(), property="layout")
    assert whole.verdict == "fail"
    assert failure.message is not None
    assert "differ from the contiguous call" in failure.message
    (spec,) = Case.from_json(failure.case).tensors
    assert spec.numel <= 2
    assert not spec.layout.is_contiguous
    Nudged.same_bits_in_any_layout = False
    assert check(Nudged(), property="layout")[0].verdict == "pass"


def test_flaky(tiny: Path) -> None:
    whole, failure = check(tiny_device("Flaky"))
    assert (whole.verdict, failure.verdict) == ("flaky", "flaky")


@pytest.mark.parametrize("property", ["forward", "exhaustive", "layout"])
def test_unsupported(tiny: Path, property: str) -> None:
    (record,) = check(tiny_device("Lacking"), property=property)
    assert record.verdict == "unsupported"
    assert record.message == "the operator 'aten::neg' is not implemented for this device"
    assert record.cases < 10


def test_fault_of_the_suite_is_an_error_and_names_the_case(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tiny as plugin

    def broken(x: Any) -> Any:
        raise ZeroDivisionError("in the reference")

    op = plugin.ops()[0]
    object.__setattr__(op.reference, "function", broken)
    (record,) = run_unit(Unit(op.name, "float32", "forward"), op, Checker(CpuDevice()), "2.0", EFFORT)
    assert record.verdict == "error"
    assert record.message is not None
    assert record.message.startswith("ZeroDivisionError: in the reference (test_unit.py, line ")
    assert "in case tiny.negative(float32[" in record.message


def test_operations_along_a_dimension(tiny: Path) -> None:
    whole, failure = check(tiny_device("Wrong"), op="tiny.cumsum")
    assert whole.verdict == "fail"
    assert sum(spec.numel for spec in Case.from_json(failure.case).tensors) <= 4


@pytest.mark.parametrize("property", ["forward", "exhaustive", "layout"])
def test_known_failures_are_no_failures(tiny: Path, property: str) -> None:
    (record,) = check(tiny_device("Wrong"), property=property, known=tuple(parse(ENTRY, "f")))
    assert (record.verdict, record.known) == ("known", ("big",))
    assert record.worst is not None
    assert record.worst.bound_units > 1


def test_known_failures_cover_no_others(tiny: Path) -> None:
    narrow = ENTRY.replace('[1000.00001, "inf"]', "[1000.00001, 1e6]")
    whole, failure = check(tiny_device("Wrong"), known=tuple(parse(narrow, "f")))
    assert whole.verdict == "fail"
    assert Case.from_json(failure.case).tensors[0].logical().tolist() == [2.0**20]


def test_known_kinds_without_elements(tiny: Path) -> None:
    entry = ENTRY.replace("where", "kinds = ['raised']\n# where")
    (record,) = check(tiny_device("Raising"), known=tuple(parse(entry, "f")))
    assert record.verdict == "known"


def test_witnesses(tiny: Path) -> None:
    known = tuple(parse(ENTRY, "f"))
    (record,) = check(tiny_device("Wrong"), property="witness", known=known)
    assert (record.verdict, record.known, record.failure_class) == ("known", ("big",), "device-only")
    assert record.cases == 2
    (record,) = check(tiny_device("Faulty"), property="witness", known=known)
    assert record.verdict == "fixed"
    assert record.message == "known failure big no longer fails: negative(1024) gives -1088"
    chance = tuple(parse(f"{ENTRY}\nrepeats = false", "f"))
    (record,) = check(tiny_device("Faulty"), property="witness", known=chance)
    assert (record.verdict, record.message) == ("known", "negative(1024) gives -1088")
