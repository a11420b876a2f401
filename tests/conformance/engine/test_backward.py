"""Gradients: judged where the forward is right, shrunk, classed, and told apart from what the forward gets wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from conformance.case import Case, TensorSpec, literal, ones
from conformance.devices.cpu import CpuDevice
from conformance.engine import Checker, Effort, Unit, run_unit
from conformance.engine.examine import examine
from conformance.expectation import call_of
from conformance.known import parse
from conformance.layout import Layout
from conformance.op import Gradient, Op
from conformance.oracle import Normwise
from conformance.record import Record, schema
from conformance.script import Function, script
from conformance.values import Values
from conformance.worker import run
from references.gradients import binary

EFFORT = Effort(examples=80, seed=1)


def check(device: Any, op: Op, property: str = "backward", known: str = "") -> list[Record]:
    records = run_unit(Unit(op.name, "float32", property), op, Checker(device, parse(known, "f")), "2.0", EFFORT)
    for record in records:
        jsonschema.validate(json.loads(record.line()), schema())
    return records


@pytest.fixture
def backward(tiny: Path) -> Any:
    import tiny_backward

    return tiny_backward


def product(**changes: Any) -> Case:
    """(2, 3) times (3,)."""
    x = TensorSpec("float32", (2, 3), Layout(order=(1, 0)), Values("arange", params={"start": 1}))
    y = TensorSpec("float32", (3,), values=Values("arange", params={"start": 2}))
    case = Case("tiny.mul", "float32", "backward", (x, y), {}, (0, 1), (ones("float32", (2, 3)),))
    return replace(case, **changes)


def test_a_real_operand_of_a_complex_result_has_a_real_gradient(backward: Any) -> None:
    real = literal(np.float32([1.0]), "float32")
    other, gradient = (TensorSpec("complex64", (1,), values=Values("arange", params={"start": n})) for n in (3, 5))
    case = Case("tiny.mul", "float32", "backward", (real, other), {}, (0,), (gradient,))
    op = replace(backward.mul(), gradient=Gradient(binary.mul, "numpy", Normwise(16.0, "a test")))
    examined = Checker(CpuDevice()).check(op, case)
    assert examined.finding is None
    assert [str(judged.part) for judged in examined.judged] == ["gradient of operand 0"]


@pytest.mark.parametrize("name", ["mul", "cat"])
@pytest.mark.parametrize("property", ["forward", "layout", "backward"])
def test_right_device_passes(backward: Any, name: str, property: str) -> None:
    op = getattr(backward, name)()
    (record,) = check(backward.FaultyBackward(), op, property)
    assert record.verdict == "pass", record
    assert record.cases > 30
    judge = op.gradient if property == "backward" else op.reference
    assert record.reference == judge.kind
    assert record.worst is not None
    assert (record.worst.part or "").startswith("gradient of operand ") == (property == "backward")


def test_wrong_gradient_shrinks_to_one_number(backward: Any) -> None:
    whole, failure = check(backward.WrongGradient(), backward.mul())
    assert (whole.verdict, failure.failure_class) == ("fail", "device-only")
    case = Case.from_json(failure.case)
    assert len(case.requires_grad) == 1
    assert [spec.shape for spec in (*case.tensors, *case.gradients)] == [(1,)] * (len(case.tensors) + 1)
    assert failure.message is not None
    assert f"gradient of operand {case.requires_grad[0]}: outside the bound" in failure.message
    assert "expected 1024.0" in failure.message
    assert failure.message.startswith("backward of tiny.mul(")


def test_wrong_gradient_is_nothing_of_the_forward(backward: Any) -> None:
    (record,) = check(backward.WrongGradient(), backward.mul(), "forward")
    assert record.verdict == "pass"
    (record,) = check(backward.WrongForward(), backward.mul())
    assert record.verdict == "pass"
    whole, _ = check(backward.WrongForward(), backward.mul(), "forward")
    assert whole.verdict == "fail"


@pytest.mark.parametrize(("device", "message"), [
    ("PackedGradient", "outside the bound"),
    ("RaisingBackward", "raised RuntimeError: in the backward: no three dimensions here"),
])  # fmt: skip
def test_each_kind_of_failure_is_found(backward: Any, device: str, message: str) -> None:
    whole, *failures = check(getattr(backward, device)(), backward.mul())
    assert whole.verdict == "fail"
    assert any(message in (failure.message or "") for failure in failures), failures
    for failure in failures:
        assert failure.failure_class == "device-only"
        assert all(spec.numel <= 16 for spec in Case.from_json(failure.case).tensors)


def test_layouts_have_gradients_too(backward: Any) -> None:
    """A sixteenth more is right for no gradient; a bit more for strided operands is, yet not the same bits."""

    class Nudged(backward.FaultyBackward):  # type: ignore[misc, name-defined]
        same_bits_in_any_layout = True

        def change_gradient(self, result: Any, args: tuple[Any, ...]) -> Any:
            return result if args[0].is_contiguous() else result.nextafter(result * 2)

    whole, *failures = check(Nudged(), backward.mul(), "layout")
    assert whole.verdict == "fail"
    assert any("gradient of operand" in (f.message or "") and "differ from" in (f.message or "") for f in failures)


def test_no_backward_is_unsupported(backward: Any) -> None:
    (record,) = check(backward.LackingBackward(), backward.mul())
    assert (record.verdict, record.message) == ("unsupported", "in the backward: mul has no backward kernel")


def test_same_failure_on_the_cpu_is_shared(backward: Any) -> None:
    op = backward.mul()
    wrong = Gradient(lambda *args, **params: tuple(2 * g for g in op.gradient.vjp(*args, **params)), "numpy", op.bound)
    _, failure = check(backward.FaultyBackward(), replace(op, gradient=wrong))
    assert failure.failure_class == "shared"


def test_lists_shrink_to_few_tensors(backward: Any) -> None:
    whole, failure = check(backward.Dropping(), backward.cat(), "forward")
    assert whole.verdict == "fail"
    tensors = Case.from_json(failure.case).tensors
    assert len(tensors) == 2
    assert sum(spec.numel for spec in tensors) <= 2


def outcome_of(op: Op, case: Case) -> tuple[Any, Any]:
    call = call_of(op, case)
    return call, run(call, CpuDevice())


def test_gradients_that_do_not_fit(backward: Any) -> None:
    op, case = backward.mul(), product()
    call, outcome = outcome_of(op, case)
    one, other = outcome.gradients

    def message(*gradients: Any) -> str:
        finding = examine(op, case, call, replace(outcome, gradients=gradients)).finding
        return "" if finding is None else f"{finding.kind}: {finding.message}"

    assert message(one, other) == ""
    assert message(one, None) == "result: gradient of operand 1 is missing: torch gives None"
    assert message(other, other) == "result: gradient of operand 0 is float32[3]; the operand is float32[2, 3]"
    double = literal(np.ones((3,)), "float64").materialise()
    assert message(one, double) == "result: gradient of operand 1 is float64[3]; the operand is float32[3]"
    short = replace(other, storage=other.storage[:-4])
    assert message(one, short) == "result: gradient of operand 1: returned float32[3] that reaches past its storage"
    constant = Gradient(lambda g, r, x, y: (op.gradient.vjp(g, r, x, y)[0], None), "numpy", op.bound)
    finding = examine(replace(op, gradient=constant), case, call, outcome).finding
    assert finding is not None
    assert finding.message == "gradient of operand 1 is float32[3]; the operand has none"
    with pytest.raises(ValueError, match="the gradient gives 1 for 2 operands"):
        examine(replace(op, gradient=Gradient(lambda *_: (None,), "numpy", op.bound)), case, call, outcome)


def test_memory_of_gradients_is_watched(backward: Any) -> None:
    op, case = backward.mul(), product(property="forward")
    call, outcome = outcome_of(op, case)
    touched = bytearray(outcome.inputs_after[2])
    touched[-1] ^= 1
    found = examine(op, case, call, replace(outcome, inputs_after=(*outcome.inputs_after[:2], bytes(touched)))).finding
    assert found is not None
    assert (found.kind, found.message) == (
        "guard",
        "memory beside incoming gradient 0 was written to, at element 21 of its storage",
    )


def test_elements_of_a_wrong_forward_are_excused(backward: Any) -> None:
    """The saved result of the second column is wrong, and so may its gradients be; the others' may not."""
    op, case = backward.mul(), product()
    call, outcome = outcome_of(op, case)
    result, (one, other) = outcome.outputs[0], outcome.gradients

    def off(tensor: Any, *elements: int) -> Any:
        numbers = np.frombuffer(tensor.storage, np.float32).copy()
        numbers[list(elements)] += 64
        return replace(tensor, storage=numbers.tobytes())

    def finding(*elements: int, forward: tuple[int, ...] = (1,)) -> Any:
        wrong = replace(outcome, outputs=(off(result, *forward),), gradients=(one, off(other, *elements)))
        return examine(op, case, call, wrong).finding

    assert result.strides == (1, 2)  # so element 1 of its memory is in the first column
    assert finding(0) is None
    assert finding(0, 2).message.startswith("gradient of operand 1: 1 of 3 elements outside the bound")
    assert finding(0, forward=()).kind == "gradient"


KNOWN = """
[[failure]]
id = "big-gradient"
build = "2.*"
device = "tiny"
op = "tiny.mul"
dtypes = ["float32"]
property = "backward"
class = "device-only"
evidence = "the gradient 1024 gives 1088"
witness = [
  {tensors = [{values = [1]}, {values = [1024]}]},
  {tensors = [{values = [1]}, {values = [1]}], gradient = [2048]},
]
"""


def test_known_gradients(backward: Any) -> None:
    (record,) = check(backward.WrongGradient(), backward.mul(), known=KNOWN)
    assert (record.verdict, record.known) == ("known", ("big-gradient",))
    whole, _ = check(backward.WrongForward(), backward.mul(), "forward", known=KNOWN)
    assert whole.verdict == "fail"
    whole, *_ = check(
        backward.WrongGradient(), backward.mul(), known=KNOWN.replace('"backward"', '"backward"\noperand = 0')
    )
    assert whole.verdict == "fail"
    (record,) = check(backward.WrongGradient(), backward.mul(), "witness", known=KNOWN)
    assert (record.verdict, record.bound, record.cases) == ("known", "64 roundings", 2)
    (record,) = check(backward.FaultyBackward(), backward.mul(), "witness", known=KNOWN)
    assert record.verdict == "fixed"


def test_op_without_gradient_cannot_list_the_property(backward: Any) -> None:
    (record,) = check(CpuDevice(), replace(backward.mul(), gradient=None))
    assert record.verdict == "error"
    assert "op tiny.mul has no gradient, yet lists the property backward" in (record.message or "")


EXPANDED = TensorSpec("float32", (2, 3), Layout(expanded=(0,), offset=1), Values("arange"))


@pytest.mark.parametrize("case", [
    product(),
    product(requires_grad=(1,), gradients=(EXPANDED,)),
])  # fmt: skip
def test_scripts_of_a_backward_run(tmp_path: Path, case: Case) -> None:
    record = Record(
        "tiny.mul", "tiny", "float32", "cpu", "2.0", "backward", "fail", "numpy", "b", "shared", case=case.to_json()
    )
    text = script(record, Function("mul"), device="cpu", build=None, torch_device="cpu")
    assert "torch.autograd.grad(" in text
    (tmp_path / "shown.py").write_text(text)
    done = subprocess.run([sys.executable, tmp_path / "shown.py"], capture_output=True, text=True, check=True)
    import torch

    x, y, g = (torch.tensor(spec.logical()) for spec in (*case.tensors, *case.gradients))
    true = ((g * y), (g * x).sum(0))
    expected = tuple(true[position] for position in case.requires_grad)
    assert done.stdout == f"cpu {expected}\nfloat64 {tuple(gradient.double() for gradient in expected)}\n"
