from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.case import Case, TensorSpec
from conformance.devices.cpu import CpuDevice
from conformance.expectation import call_of
from conformance.layout import Layout, view_of
from conformance.op import Op
from conformance.strategies.layouts import layouts
from conformance.values import Values
from conformance.worker import Call, InProcess, Outcome, run
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


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "bool", "complex64", "uint16", "float64", "int8", "float8_e4m3fn", "complex32"]
)
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


class Emulating(CpuDevice):
    """The CPU with findings and helpers of its own: what is listed is told by the next call that runs that far."""

    def __init__(self, **helpers: str) -> None:
        self.helped = helpers
        self._kernels: list[str] = ["stale"]
        self._diagnostics: list[str] = ["stale"]
        self._helpers: list[str] = ["stale"]
        self._synchronized = 0

    def synchronize(self) -> None:
        phase = ("preparing", "forward", "backward")[self._synchronized]
        self._synchronized += 1
        if phase in self.helped:
            self._helpers.append(self.helped[phase])
        self._kernels.append(phase)
        self._diagnostics.append(f"{phase} reads past the end")

    def kernels(self) -> list[str]:
        taken, self._kernels = self._kernels, []
        return taken

    def diagnostics(self) -> list[str]:
        taken, self._diagnostics = self._diagnostics, []
        return taken

    def helpers(self) -> list[str]:
        taken, self._helpers = self._helpers, []
        return taken


def test_helpers_of_preparing_are_told() -> None:
    outcome = run(call(), Emulating(preparing="randn"))
    assert (outcome.status, outcome.helpers) == ("ok", ("randn",))
    assert outcome.kernels == ("forward",)
    assert outcome.diagnostics == ("preparing reads past the end", "forward reads past the end")


@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_what_is_judged_comes_out_of_no_helper(phase: str) -> None:
    outcome = run(differentiated(), Emulating(**{phase: "randn"}))
    assert (outcome.status, outcome.phase) == ("unsupported", phase)
    assert outcome.told == f"in the {phase}: computed by the helper randn, not by a kernel"
    plain = run(call(), Emulating(forward="randn"))
    assert plain.told == "computed by the helper randn, not by a kernel"


def differentiated(function: str = "mul", **params: Any) -> Call:
    """(2, 3) times (3,), both strided, from an incoming gradient that is expanded."""
    row = TensorSpec("float32", (3,), Layout(steps=(2,), offset=1), Values("arange", params={"start": 1}))
    incoming = TensorSpec("float32", (2, 3), Layout(expanded=(0,), offset=2), Values("arange", params={"start": 2}))
    tensors = (SPEC.materialise(), row.materialise())
    return Call("op", function, tensors, params, requires_grad=(0, 1), gradients=(incoming.materialise(),))


@pytest.mark.parametrize("send", [InProcess(CpuDevice()).run, through_the_wire])
def test_gradients_come_back(send: Any) -> None:
    given = differentiated()
    outcome = send(given)
    assert [view_of(gradient).tolist() for gradient in outcome.gradients] == [[[2, 6, 12], [2, 6, 12]], [6, 15, 28]]
    assert view_of(outcome.outputs[0]).tolist() == [[0, 2, 6], [3, 8, 15]]
    assert outcome.inputs_after == tuple(tensor.storage for tensor in (*given.tensors, *given.gradients))


def test_gradients_of_some_operands() -> None:
    given = replace(differentiated(), requires_grad=(1,))
    assert [gradient is not None for gradient in run(given, CpuDevice()).gradients] == [True]
    unused = run(differentiated("broadcast_tensors"), CpuDevice())
    assert (unused.status, unused.error, unused.phase) == ("raised", "ValueError", "backward")
    assert unused.message == "gradients: given 1 for 2 results; allowed: one for each"


def test_operand_without_part_in_the_result_has_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch, "mul", lambda x, y: x + 0)
    one, other = run(differentiated(), CpuDevice()).gradients
    assert one is not None
    assert other is None
    monkeypatch.setattr(torch, "mul", lambda x, y: x > y)
    assert run(differentiated(), CpuDevice()).gradients == (None, None)


def test_gradient_sees_its_layout(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    seen = []

    class Watched(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:  # type: ignore[override]
            seen.append((gradient.stride(), gradient.storage_offset()))
            gradient.as_strided((1,), (1,), 0).fill_(5)
            return gradient, None

    monkeypatch.setattr(torch, "mul", Watched.apply)
    given = differentiated()
    outcome = run(given, CpuDevice())
    assert seen == [((0, 1), 2)]
    assert outcome.inputs_after[2] != given.gradients[0].storage


@pytest.mark.parametrize(
    ("error", "status"), [(NotImplementedError("no\nkernel"), "unsupported"), (OSError("no"), "raised")]
)
def test_errors_of_the_backward(error: Exception, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:  # type: ignore[override]
            raise error

    monkeypatch.setattr(torch, "mul", Failing.apply)
    outcome = run(differentiated(), CpuDevice())
    assert (outcome.status, outcome.phase, outcome.told) == (status, "backward", "in the backward: no")


def test_list_of_tensors_and_element_types() -> None:
    specs = [TensorSpec("float32", (size,), values=Values("arange")) for size in (2, 1)]
    given = Call("cat", "cat", tuple(spec.materialise() for spec in specs), {"dim": 0}, listed=True)
    assert view_of(through_the_wire(given).outputs[0]).tolist() == [0, 1, 0]
    assert run(call("sum", dtype="torch.float64"), CpuDevice()).outputs[0].dtype == "float64"


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
