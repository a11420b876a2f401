from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from conformance.case import (
    Case,
    TensorSpec,
    element_text,
    exhaustive_case,
    literal,
    literal_of_bits,
    stratified_cases,
)
from conformance.layout import Layout
from conformance.strategies import reduction_cases
from conformance.values import Values


@given(reduction_cases("op", "float16", "forward"))
def test_json_gives_the_same_case_and_bytes(case: Case) -> None:
    again = Case.from_json(json.loads(json.dumps(case.to_json())))
    assert again == case
    assert again.materialise() == case.materialise()


@given(reduction_cases("op", "float32", "layout"))
def test_contiguous_has_the_same_values(case: Case) -> None:
    plain = case.contiguous()
    assert plain.tensors[0].layout == Layout()
    assert plain.tensors[0].logical().tobytes() == case.tensors[0].logical().tobytes()


def test_files(tmp_path: Path) -> None:
    case = Case("exp", "float32", "forward", (literal_of_bits([0x7FC00001], "float32"),), {"dim": -1})
    case.save(tmp_path / "case.json")
    assert Case.load(tmp_path / "case.json") == case


@pytest.mark.parametrize(("text", "message"), [
    ("{", "no JSON"),
    ("[]", "object with schema"),
    ('{"schema": 5}', r"object with schema \(1, 2, 3, 4\)"),
    ('{"schema": 1}', "lacks or mistypes"),
    ('{"schema": 1, "op": "a", "dtype": "b", "property": "c", "tensors": [3]}', "lacks or mistypes"),
])  # fmt: skip
def test_files_that_are_no_case(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "case.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        Case.load(tmp_path / "case.json")


def test_literal_keeps_a_layout_and_nan_payloads() -> None:
    spec = TensorSpec("float32", (2, 3), Layout(order=(1, 0), expanded=(0,)), Values("bits", 5))
    again = literal(spec.logical(), spec.dtype, spec.layout)
    assert again.materialise() == spec.materialise()


@pytest.mark.parametrize(("name", "count"), [("bfloat16", 1 << 16), ("int8", 256), ("bool", 2)])
def test_exhaustive_case(name: str, count: int) -> None:
    (spec,) = exhaustive_case("op", name).tensors
    assert spec.shape == (count,)
    assert len({element.tobytes() for element in spec.logical()}) == count


def test_exhaustive_case_of_a_wide_type() -> None:
    with pytest.raises(ValueError, match="float32 cannot be swept"):
        exhaustive_case("op", "float32")


def test_stratified_cases_hold_what_they_promise() -> None:
    cases = stratified_cases("op", "float32", {"p": 1})
    values = np.concatenate([case.tensors[0].logical() for case in cases])
    assert 1 << 16 <= len(values) <= 1 << 18
    assert all(case.params == {"p": 1} for case in cases)
    found = set(values.view(np.uint32).tolist())
    powers = np.ldexp(np.float32(1), np.arange(-126, 128)).view(np.uint32)
    for step in (-1, 0, 1):
        assert found >= set((powers + np.uint32(step & 0xFFFFFFFF)).tolist())
    assert found >= set(np.arange(-1024, 1024, 0.5, np.float32).view(np.uint32).tolist())
    assert {0x7FC00000, 0x7F800000, 0xFF800000, 0x80000000, 1, 0x7F7FFFFF} <= found
    assert np.float32(np.pi * 3).view(np.uint32) in found
    exponents = np.unique(values.view(np.uint32) >> 23)
    assert len(exponents) == 512


def test_text() -> None:
    case = Case("exp", "float16", "forward", (literal_of_bits([0x3C00], "float16"),), {"dim": 0})
    assert case.text() == "exp(float16[1] = [1.0], dim=0)"
    strided = TensorSpec("float16", (4, 8), Layout(order=(1, 0), offset=2), Values("bits", 3))
    assert Case("exp", "float16", "forward", (strided,)).text() == (
        "exp(float16[4x8] strides (1, 4) offset 2 = bits(seed=3))"
    )
    assert element_text(case, 0, (1,)) == "1.0 (0x3c00)"
