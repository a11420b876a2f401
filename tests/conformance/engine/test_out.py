"""The property ``out``: results stored in a tensor of the caller's, of another layout and element type."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.case import Case, TensorSpec, literal
from conformance.devices.cpu import CpuDevice
from conformance.engine import Checker, Effort, Unit, run_unit
from conformance.engine.minimise import element_case
from conformance.engine.stored import Stored
from conformance.expectation import call_of, results_of
from conformance.layout import Layout
from conformance.op import Computation
from conformance.oracle import CorrectlyRounded, Exact, judge
from conformance.record import Record
from conformance.script import Function, script
from conformance.strategies.out import castable, with_out


@pytest.fixture
def plugin(tiny: Path) -> Any:
    import tiny_out

    return tiny_out


def checked(device: Any, op: Any, dtype: str = "float32") -> list[Record]:
    return run_unit(Unit(op.name, dtype, "out"), op, Checker(device), "2.0", Effort(examples=80, seed=1))


def negative(out: TensorSpec, values: Any = (1.0, 2.0)) -> Case:
    operand = literal(np.array(values, np.float32), "float32")
    return Case("tiny.negative", "float32", "out", (operand,), out=out)


@pytest.mark.parametrize("name", ["negative", "mul"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_right_device_passes(plugin: Any, name: str, dtype: str) -> None:
    (record,) = checked(plugin.Faultless(), getattr(plugin, name)(), dtype)
    assert record.verdict == "pass", record
    assert record.cases > 30


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("Spilling", "memory beside out was written to"),
        ("Unscaled", "outside the bound"),
    ],
)
def test_wrong_devices_are_found(plugin: Any, device: str, message: str) -> None:
    whole, *failures = checked(getattr(plugin, device)(), plugin.mul())
    assert whole.verdict == "fail"
    assert any(message in (failure.message or "") for failure in failures)
    assert all(Case.from_json(failure.case).out is not None for failure in failures)


def test_another_tensor_than_the_one_given(plugin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    negate = torch.negative
    monkeypatch.setattr(torch, "negative", lambda x, out: negate(x, out=out).clone())
    examined = Checker(plugin.Faultless()).check(plugin.negative(), negative(TensorSpec("float32", (2,))))
    assert examined.finding is not None
    assert examined.finding.message == "returned another tensor than the one given as out"


def test_drawn_tensors_fit_the_result(plugin: Any) -> None:
    from hypothesis import Phase, given, settings

    op = plugin.mul()
    seen: list[TensorSpec] = []

    @settings(database=None, phases=[Phase.generate], max_examples=200)
    @given(with_out(op, op.cases("float16", "out")))
    def draw(case: Case) -> None:
        assert case.out is not None
        ((dtype, shape),) = results_of(op, case) or ()
        assert case.out.shape in (shape, (0,))
        assert case.out.dtype in (dtype, *castable(dtype))
        assert Case.from_json(case.to_json()) == case
        seen.append(case.out)

    draw()
    assert {spec.dtype for spec in seen} >= {"float16", "float32", "complex64"}
    assert any(not spec.layout.is_contiguous for spec in seen)
    assert any(spec.shape == (0,) for spec in seen)


def test_castable_types_are_torchs() -> None:
    assert castable("complex64") == ("complex32",)
    assert "int8" not in castable("float32")
    assert {"uint8", "float16", "complex64"} <= set(castable("bool"))


def test_case_in_words_contiguous_and_of_one_element(plugin: Any) -> None:
    case = negative(TensorSpec("float16", (2,), Layout(steps=(2,), offset=1)))
    assert case.text() == "tiny.negative(float32[2] = [1.0, 2.0], out=float16[2] strides (2,) offset 1)"
    plain = case.contiguous()
    assert plain.out is not None
    assert plain.out.layout == Layout()
    alone = element_case(plugin.negative(), case, 1)
    assert alone is not None
    assert alone.text() == "tiny.negative(float32[1] = [2.0], out=float16[1])"
    unsized = element_case(plugin.negative(), replace(case, out=TensorSpec("float16", (0,))), 1)
    assert unsized is not None
    assert unsized.out == TensorSpec("float16", (0,))


def test_resized_tensor_is_judged(plugin: Any) -> None:
    case = negative(TensorSpec("float32", (0,), Layout(guard=0)))
    examined = Checker(CpuDevice()).check(plugin.negative(), case)
    assert examined.finding is None
    assert examined.outcome.outputs[0].shape == (2,)


def test_refused_types_are_refused_by_both(plugin: Any) -> None:
    examined = Checker(CpuDevice()).check(plugin.negative(), negative(TensorSpec("int32", (2,))))
    assert (examined.outcome.status, examined.finding) == ("raised", None)


def test_op_without_out(plugin: Any) -> None:
    op = replace(plugin.negative(), out=None)
    with pytest.raises(ValueError, match=r"tiny\.negative has no function that takes out="):
        call_of(op, negative(TensorSpec("float32", (2,))))


def computation(dtype: str, value: Any) -> Computation:
    array = np.array([value])
    name = {"f": "float32", "i": "int32", "c": "complex64", "b": "bool"}[array.dtype.kind]
    return Computation((array,), (name,), {}, dtype, lambda x: x)


@pytest.mark.parametrize(
    ("own", "dtype", "value", "got", "right"),
    [
        ("float32", "float16", 1.0 + 2.0**-11, 1.0, True),
        ("float32", "float16", 1.0 + 2.0**-11, 1.0 + 2.0**-10, True),
        ("float32", "float16", 1.0 + 2.0**-11, 1.0 - 2.0**-11, False),
        ("float16", "float32", 1.0 + 2.0**-12, 1.0, True),  # rounded to its own type, then stored as it is
        ("float16", "float32", 1.0 + 2.0**-12, 1.0 + 2.0**-10, False),
        ("int32", "float32", 2**24 + 1, 2.0**24, True),
        ("int32", "float32", 2**24 + 1, 2.0**24 + 4, False),
        ("int32", "float32", 7, 8.0, False),
        ("int32", "int8", 300, 44, True),
        ("int32", "int8", 300, 127, False),
        ("bool", "float32", True, 1.0, True),
        ("bool", "float32", True, 0.0, False),
        ("float32", "float16", 1e6, np.inf, True),
        ("float32", "float16", 1e4, np.inf, False),
        ("float32", "complex64", 2.5, 2.5 + 0j, True),
        ("float32", "complex64", 2.5, 2.5 + 1j, False),
    ],
)
def test_bound_of_what_is_stored(own: str, dtype: str, value: Any, got: Any, right: bool) -> None:
    exact = own in ("int32", "bool")
    bound = Stored(Exact("integers") if exact else CorrectlyRounded("one rounding"), own)
    stored = np.array([got]).astype(
        {"float16": np.float16, "float32": np.float32, "int8": np.int8}.get(dtype, np.complex64)
    )
    judgement = judge(computation(dtype, value), stored, bound)
    assert judgement.passed is right, judgement.message


def test_script_shows_the_tensor(plugin: Any) -> None:
    case = negative(TensorSpec("float16", (2,), Layout(offset=1)))
    record = Record(
        "tiny.negative", "tiny", "float32", "cpu", "2.0", "out", "fail", "numpy", "b", cases=1, case=case.to_json()
    )
    text = script(record, Function("negative", out="negative"), device="cpu", build=None, torch_device="cpu")
    assert "torch.negative(x, out=out.clone().as_strided((2,), (1,), 1))" in text
    assert "torch.negative(x.double()))" in text
