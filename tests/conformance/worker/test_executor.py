from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.case import Case, TensorSpec
from conformance.devices.base import Unsupported
from conformance.devices.cpu import CpuDevice
from conformance.engine.examine import call_of
from conformance.layout import Layout, view_of
from conformance.op import Op
from conformance.strategies.layouts import layouts
from conformance.values import Values
from conformance.worker import Call, InProcess, Outcome, Tensor, run
from conformance.worker.protocol import dump_call, dump_outcome, load_call, load_outcome

SPEC = TensorSpec("float32", (2, 3), Layout(order=(1, 0), pads=(0, 2), offset=3), Values("arange"))


def call(function: str = "neg", spec: TensorSpec = SPEC, **params: Any) -> Call:
    return Call("op", function, (spec.materialise(),), params)


def through_the_wire(given: Call) -> Outcome:
    """What an out-of-process transport does: both ways as JSON and bytes."""
    text, blobs = dump_call(given)
    outcome = run(load_call(text, blobs), CpuDevice())
    text, blobs = dump_outcome(outcome)
    return load_outcome(text, blobs)


@pytest.mark.parametrize("send", [InProcess(CpuDevice()).run, through_the_wire])
def test_result_and_operands_come_back(send: Any) -> None:
    outcome = send(call())
    (output,) = outcome.outputs
    assert outcome.status == "ok"
    assert (output.dtype, output.shape) == ("float32", (2, 3))
    assert view_of(output).tolist() == [[0, -1, -2], [-3, -4, -5]]
    assert outcome.inputs_after == (call().tensors[0].storage,)
    assert outcome.seconds > 0


def test_wire_form_is_the_same_outcome() -> None:
    direct, wired = run(call("frexp"), CpuDevice()), through_the_wire(call("frexp"))
    assert [output.dtype for output in wired.outputs] == ["float32", "int32"]
    assert wired.outputs == direct.outputs


def test_the_device_sees_the_layout() -> None:
    seen = []

    class Watching(CpuDevice):
        def synchronize(self) -> None:
            seen.append(1)

    outcome = run(call("clone"), Watching())
    assert outcome.outputs[0].strides == (1, 2)  # clone keeps a dense operand's strides
    assert seen == [1, 1]


def test_output_with_strides_of_its_own() -> None:
    outcome = run(Call("t", "t", (SPEC.materialise(),)), CpuDevice())
    assert outcome.outputs[0].shape == (3, 2)
    assert view_of(outcome.outputs[0]).tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("dtype", ["bfloat16", "bool", "complex64", "uint16", "float64", "int8"])
def test_element_types(dtype: str) -> None:
    spec = TensorSpec(dtype, (3,), values=Values("specials", 3))
    outcome = run(call("clone", spec), CpuDevice())
    assert view_of(outcome.outputs[0]).tobytes() == spec.logical().tobytes()


@pytest.mark.parametrize("shape", [(0,), (3, 0), ()])
def test_empty_and_scalar(shape: tuple[int, ...]) -> None:
    outcome = run(call("neg", TensorSpec("float32", shape, Layout(guard=0))), CpuDevice())
    assert outcome.outputs[0].shape == shape


def test_errors_are_outcomes() -> None:
    raised = run(call("softmax", dim=7), CpuDevice())
    assert (raised.status, raised.error) == ("raised", "IndexError")
    assert raised.message is not None
    assert raised.message.startswith("Dimension out of range")
    assert "\n" not in raised.message
    missing = run(call("bitwise_not"), CpuDevice())
    assert missing.status == "unsupported"
    assert run(call("equal"), CpuDevice()).error == "TypeError"


class Raw:
    """A device without torch: negates the storage; keeps findings of its own."""

    name = torch_device = "raw"

    def __init__(self) -> None:
        self.inside = False
        self._kernels: list[str] = ["stale"]
        self._found: list[str] = ["stale"]

    def available(self) -> str | None:
        return None

    def session(self) -> Raw:
        return self

    def __enter__(self) -> None:
        self.inside = True

    def __exit__(self, *_: object) -> None:
        self.inside = False

    def synchronize(self) -> None: ...

    def memory(self) -> dict[str, int | None]:
        return {}

    def kernels(self) -> list[str]:
        taken, self._kernels = self._kernels, []
        return taken

    def diagnostics(self) -> list[str]:
        taken, self._found = self._found, []
        return taken

    def run(self, call: Call) -> tuple[Tensor, ...]:
        assert self.inside
        self._kernels, self._found = ["neg_dense"], ["read past the end"]
        if call.function != "neg":
            raise Unsupported(f"{call.function} has no kernel")
        (given,) = call.tensors
        return (Tensor(given.dtype, given.shape, given.strides, 0, (-view_of(given)).tobytes()),)


def test_raw_device() -> None:
    outcome = run(call("neg", TensorSpec("float32", (3,), values=Values("arange"))), Raw())
    assert view_of(outcome.outputs[0]).tolist() == [0, -1, -2]
    assert (outcome.kernels, outcome.diagnostics) == (("neg_dense",), ("read past the end",))
    refused = run(call("exp"), Raw())
    assert (refused.status, refused.message, refused.kernels) == ("unsupported", "exp has no kernel", ("neg_dense",))


def test_faults_inside_the_session_only(tiny: Path) -> None:
    import tiny as plugin
    import torch

    outcome = run(
        call("neg", TensorSpec("float32", (2,), values=Values("constant", params={"value": "2000"}))), plugin.Wrong()
    )
    assert view_of(outcome.outputs[0]).tolist() == [-2125.0, -2125.0]
    assert torch.neg(torch.tensor([2000.0])).item() == -2000.0


def test_call_of_a_case(tiny: Path) -> None:
    import tiny as plugin

    op: Op = plugin.ops()[0]
    case = Case(op.name, "float32", "forward", (SPEC,), {"out": None})
    given = call_of(op, case)
    assert (given.op, given.function, given.params) == ("tiny.negative", "negative", {"out": None})
    assert np.array_equal(view_of(given.tensors[0]), SPEC.logical())
    assert layouts(2) is layouts(2)


@pytest.mark.parametrize("error", [SystemExit(5), MemoryError(), RecursionError("deep")])
def test_no_device_ends_the_run(error: BaseException) -> None:
    class Leaving(CpuDevice):
        def synchronize(self) -> None:
            raise error

    assert run(call(), Leaving()).error == type(error).__name__


def test_result_without_memory_is_not_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch, "neg", lambda x: x.to("meta"))
    outcome = run(call(), CpuDevice())
    assert (outcome.status, outcome.error) == ("raised", "TypeError")
    assert "a tensor without memory" in (outcome.message or "")


def test_raw_device_must_return_tensors() -> None:
    class Raw(CpuDevice):
        def run(self, call: Call) -> Any:
            return ("text",)

        def diagnostics(self) -> list[str]:
            return []

    outcome = run(call(), Raw())
    assert (outcome.status, outcome.message) == ("raised", "the device returned a str where a tensor was expected")
