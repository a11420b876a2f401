"""The ladder: every rung is climbed, in every type, and what fails on one of them is found and made small."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from conformance.case import Case
from conformance.dtypes import dtype as dtype_of
from conformance.engine import Checker, Effort, Unit, run_unit
from conformance.ladder import ALONE, LARGE, PAIRED, TRIPLED, rungs, within
from conformance.op import Ladder, Op
from conformance.plan import Selection, plan
from conformance.record import Record, schema
from conformance.values import fill


def climbed(device: Any, op: Op, dtype: str = "float32") -> list[Record]:
    records = run_unit(Unit(op.name, dtype, "variants"), op, Checker(device), "2.0", Effort())
    for record in records:
        jsonschema.validate(json.loads(record.line()), schema())
    return records


@pytest.fixture
def plugin(tiny: Path) -> Any:
    import tiny_out

    return tiny_out


@pytest.mark.parametrize("name", ["negative", "mul"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_right_device_passes(plugin: Any, name: str, dtype: str) -> None:
    op = getattr(plugin, name)()
    (record,) = climbed(plugin.Faultless(), op, dtype)
    assert record.verdict == "pass", record
    assert record.cases == len(list(rungs(op, dtype)))


def test_every_layout_with_types_alike_mixed_and_stored(plugin: Any) -> None:
    cases = list(rungs(plugin.mul(), "float32"))
    alike = [case for case in cases if {spec.dtype for spec in case.tensors} == {"float32"} and case.out is None]
    assert [tuple(spec.shape for spec in case.tensors) for case in alike] == [
        tuple(operand.shape for operand in operands) for operands in PAIRED.values()
    ]
    mixed = [tuple(spec.dtype for spec in case.tensors) for case in cases if case not in alike and case.out is None]
    assert mixed.count(("float32", "float16")) == 5
    assert mixed.count(("float16", "float32")) == 2
    assert [case.out.dtype for case in cases if case.out] == ["float16"]
    alone = list(rungs(plugin.negative(), "float16"))
    assert len(alone) == len(ALONE) + 3
    assert {case.out.dtype for case in alone if case.out} == {"float32"}


def test_three_operands(plugin: Any) -> None:
    ladder = Ladder(domains=(None,) * 3)
    op = replace(plugin.mul(), name="tiny.addcmul", function="addcmul", out="addcmul", ladder=ladder, promotes=None)
    cases = list(rungs(op, "float32"))
    alike = [case for case in cases if {spec.dtype for spec in case.tensors} == {"float32"} and case.out is None]
    assert [tuple(spec.shape for spec in case.tensors) for case in alike] == [
        tuple(operand.shape for operand in operands) for operands in TRIPLED.values()
    ]
    mixed = [tuple(spec.dtype for spec in case.tensors) for case in cases if case not in alike and case.out is None]
    assert {names.index("float16") for names in mixed} == {0, 1, 2}
    assert [case.out.dtype for case in cases if case.out] == ["float16"] * 2


def test_parameters_and_types_of_the_ladder(plugin: Any) -> None:
    ladder = Ladder(params=lambda dtype: [{}, {"dim": 1}], dtypes=("int8",))
    op = replace(plugin.negative(), ladder=ladder, out=None, default_params={"fixed": 1})
    assert {tuple(case.params) for case in rungs(replace(op, function="add"), "int8")} == set()  # torch refuses
    op = replace(op, function="Tensor.clone", default_params={})
    units = plan([op], Selection(properties=("variants",)))
    assert [unit.dtype for unit in units] == ["float32", "float16", "int8"]
    assert [unit.property for unit in plan([op], Selection(dtypes=("int8",)))] == ["variants"]


def test_refused_types_are_unsupported(plugin: Any) -> None:
    (record,) = climbed(plugin.Faultless(), plugin.negative(), "bool")
    assert (record.verdict, record.cases) == ("unsupported", 0)
    assert record.message == "torch's rules refuse the element type"


def test_numbers_that_do_not_promote_as_tensors(plugin: Any) -> None:
    cases = rungs(replace(plugin.mul(), out=None), "uint16")
    mixed = [case for case in cases if len({spec.dtype for spec in case.tensors}) > 1]
    assert [min(len(spec.shape) for spec in case.tensors) for case in mixed] == [0, 0, 0]


def test_one_rung_that_fails_is_found(plugin: Any) -> None:
    whole, failure = climbed(plugin.Wrapping(), plugin.mul())
    assert (whole.verdict, whole.failure_class) == ("fail", "device-only")
    assert "Of the 17 cases of the ladder 4 fail this way" in (failure.message or "")
    shapes = [spec.shape for spec in Case.from_json(failure.case).tensors]
    assert max(map(len, shapes)) > min(map(len, shapes))


def test_one_element_of_many_is_found(plugin: Any) -> None:
    _, failure = climbed(plugin.Large(), plugin.negative())
    assert "1 of 262144 elements outside the bound" in (failure.message or "")
    assert Case.from_json(failure.case).tensors[0].numel == LARGE


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "uint8", "bool", "complex64", "float8_e4m3fn"])
@pytest.mark.parametrize("domain", [None, (-1, 1), (0, 4), (1, 8), (-104, 89)])
def test_values_lie_in_the_domain(dtype: str, domain: tuple[float, float] | None) -> None:
    numbers = fill(within(dtype, domain, 3), dtype_of(dtype), 200)
    parts = numbers.view(np.float32) if dtype == "complex64" else numbers.astype(np.float64)
    low, high = domain or (-8, 8)
    assert len(np.unique(parts)) > (1 if dtype == "bool" or (dtype in ("int64", "uint8") and high > 1) else 0)
    assert parts.max() <= high
    assert parts.min() >= (low if dtype != "bool" else 0)


def test_what_has_no_ladder(plugin: Any) -> None:
    with pytest.raises(ValueError, match=r"tiny\.mul has no ladder, yet lists the property variants"):
        list(rungs(replace(plugin.mul(), ladder=None), "float32"))
    with pytest.raises(ValueError, match="climbed with 1 to 3 operands, given: 4"):
        list(rungs(replace(plugin.mul(), ladder=Ladder(domains=(None,) * 4)), "float32"))
