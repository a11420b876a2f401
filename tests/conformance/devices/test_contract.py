"""What every device promises, asked of each one that can be had here; one that cannot gives the reason itself.
Calls go through the worker, as in a run; what a call cannot express (who runs backward, what an allocation costs) is
done with torch in a session of the device.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from conformance.case import TensorSpec
from conformance.devices import Device, Unavailable, resolve
from conformance.devices.cuda import CudaDevice
from conformance.devices.mps import MpsDevice
from conformance.layout import Layout, view_of
from conformance.values import Values
from conformance.worker import Call, Outcome, run

MEMORY = ("current", "reserved", "driver")
KNOWN_MEMORY = {"cpu": (), "cuda": MEMORY, "mps": ("current", "driver")}
LAYOUTS = [
    Layout(),
    Layout(offset=5),
    Layout(order=(1, 0)),
    Layout(steps=(2, 3), pads=(1, 2), offset=3),
    Layout(order=(1, 0), pads=(0, 2), offset=1),
]
MEBIBYTE = 1 << 20
GPUS = {"cuda": CudaDevice(), "mps": MpsDevice()}


def resolved(name: str) -> Device:
    try:
        return resolve(name)
    except Unavailable as reason:
        pytest.skip(str(reason))


# Without the GPUs that are not here, or each would skip forty tests with the same words.
@pytest.fixture(scope="module", params=["cpu", "air", *(name for name, gpu in GPUS.items() if not gpu.available())])
def device(request: pytest.FixtureRequest) -> Device:
    return resolved(request.param)


def spec(dtype: str = "float32", layout: Layout = LAYOUTS[0], shape: tuple[int, ...] = (3, 4)) -> TensorSpec:
    return TensorSpec(dtype, shape, layout, Values("arange"))


def called(device: Device, function: str, given: TensorSpec, **params: Any) -> Outcome:
    return run(Call(function, function, (given.materialise(),), params), device)


def negated(device: Device) -> list[float]:
    """What the smallest call gives: it shows that the device works."""
    outcome = called(device, "neg", spec(shape=(3,)))
    assert outcome.status == "ok", outcome.message
    return [float(value) for value in view_of(outcome.outputs[0])]


def on(device: Device, values: list[float], *, requires_grad: bool = False) -> torch.Tensor:
    return torch.tensor(values).to(device.torch_device).requires_grad_(requires_grad)


@pytest.mark.parametrize("name", ["cpu", "air", *GPUS])
def test_it_can_be_had(name: str) -> None:
    device = resolved(name)
    assert device.name == name
    assert device.available() is None
    assert torch.empty(1, device=device.torch_device).device.type == torch.device(device.torch_device).type


def test_after_synchronising_all_work_is_done(device: Device) -> None:
    with device.session():
        values = torch.full((1 << 12,), 0.5, device=device.torch_device)
        for _ in range(50):
            values = values * 1.0
        events = [torch.Event(values.device)] if device.name in ("cuda", "mps") else []  # elsewhere calls return done
        for event in events:
            event.record()
        device.synchronize()
        assert all(event.query() for event in events)
        assert values.cpu().tolist() == [0.5] * (1 << 12)


def test_memory_has_three_figures_and_none_is_no_zero(device: Device) -> None:
    with device.session():
        kept = torch.full((MEBIBYTE,), 1, dtype=torch.uint8, device=device.torch_device)
        device.synchronize()
        memory = device.memory()
        assert tuple(memory) == MEMORY
        known = {name: size for name, size in memory.items() if size is not None}
        assert all(type(size) is int and size >= kept.nbytes for size in known.values()), memory
        assert list(known.values()) == sorted(known.values()), (
            "tensors lie in the allocator's memory, that in the driver's"
        )
        assert set(KNOWN_MEMORY.get(device.name, ())) <= set(known)


def test_a_tensor_costs_what_it_holds(device: Device) -> None:
    with device.session():
        before = device.memory()["current"]
        held = torch.full((MEBIBYTE,), 1, dtype=torch.uint8, device=device.torch_device)
        device.synchronize()
        during = device.memory()["current"]
        del held
        device.synchronize()
        after = device.memory()["current"]
    if before is None:
        assert (during, after) == (None, None)
    else:
        assert during is not None
        assert during >= before + MEBIBYTE
        assert after == before


def test_kernels_are_told_once(device: Device) -> None:
    outcome = called(device, "neg", spec())
    assert all(type(name) is str and name for name in outcome.kernels)
    assert bool(outcome.kernels) == (device.name == "air"), "only the emulated GPU tells"
    assert device.kernels() == []


def test_sessions_nest_and_follow_each_other(device: Device) -> None:
    with device.session():
        with device.session():
            assert negated(device) == [0, -1, -2]
        assert negated(device) == [0, -1, -2]
    with device.session():
        assert negated(device) == [0, -1, -2]


def test_a_session_ends_when_an_error_leaves_it(device: Device) -> None:
    with pytest.raises(KeyError, match="of the caller"), device.session():
        raise KeyError("of the caller")
    assert negated(device) == [0, -1, -2]


def test_gradients_come_back_through_the_worker(device: Device) -> None:
    given = spec(layout=LAYOUTS[3])
    incoming = spec(layout=LAYOUTS[2])
    call = Call("neg", "neg", (given.materialise(),), requires_grad=(0,), gradients=(incoming.materialise(),))
    outcome = run(call, device)
    assert outcome.status == "ok", outcome.message
    (gradient,) = outcome.gradients
    assert gradient is not None
    assert np.array_equal(view_of(gradient), -incoming.logical())
    assert np.array_equal(view_of(outcome.outputs[0]), -given.logical())


def _in_thread(action: Callable[[], object]) -> None:
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


@pytest.mark.parametrize("start", [lambda action: action(), _in_thread], ids=["this thread", "another thread"])
def test_backward_runs_on_any_thread(device: Device, start: Callable[[Callable[[], object]], None]) -> None:
    threads = []
    with device.session():
        operand = on(device, [1.0, 2.0, 3.0], requires_grad=True)
        result = operand * operand
        result.register_hook(lambda gradient: threads.append(threading.get_ident()))  # type: ignore[no-untyped-call]
        incoming = on(device, [1.0, 10.0, 100.0])
        start(lambda: torch.autograd.backward(result, incoming))
        device.synchronize()
        assert operand.grad is not None
        assert operand.grad.device == operand.device
        assert operand.grad.cpu().tolist() == [2.0, 40.0, 600.0]
    assert len(threads) == 1
    if device.name != "cpu":
        assert threads[0] != threading.get_ident(), "autograd has a thread of its own for each accelerator"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_op_sees_the_layout(device: Device, layout: Layout) -> None:
    given = spec(layout=layout).materialise()
    outcome = run(Call("t", "t", (given,)), device)
    assert outcome.status == "ok", outcome.message
    (output,) = outcome.outputs  # a view of the operand, read with the memory that it lies in
    assert (output.strides, output.offset) == (given.strides[::-1], given.offset)
    assert output.storage == given.storage


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_op_in_place_leaves_gaps_and_guards_alone(device: Device, layout: Layout) -> None:
    given = spec(layout=layout)
    placed = given.materialise()
    outcome = called(device, "neg_", given)
    assert outcome.status == "ok", outcome.message
    expected = np.frombuffer(placed.storage, np.float32).copy()
    view = np.lib.stride_tricks.as_strided(expected[placed.offset :], given.shape, [4 * s for s in placed.strides])
    view *= -1
    assert outcome.inputs_after == (expected.tobytes(),)


def test_an_operand_that_is_only_read_comes_back_as_it_was(device: Device) -> None:
    given = spec(layout=LAYOUTS[3])
    outcome = called(device, "neg", given)
    assert outcome.inputs_after == (given.materialise().storage,)


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64"]
)
def test_element_types_keep_their_bits(device: Device, dtype: str) -> None:
    given = TensorSpec(dtype, (7,), values=Values("specials", 3))
    outcome = called(device, "clone", given)
    assert outcome.status == "ok", outcome.message
    assert view_of(outcome.outputs[0]).tobytes() == given.logical().tobytes()


def test_float64_is_there_or_refused_by_name(device: Device) -> None:
    outcome = called(device, "neg", spec("float64"))
    if device.name in ("air", "mps"):
        assert outcome.status in ("raised", "unsupported")
        assert "float64" in (outcome.message or "")
        assert negated(device) == [0, -1, -2]
    else:
        assert outcome.outputs[0].dtype == "float64"


def test_errors_of_an_op_are_outcomes(device: Device) -> None:
    outcome = called(device, "softmax", spec(), dim=7)
    assert (outcome.status, outcome.error) == ("raised", "IndexError")
    assert (outcome.message or "").startswith("Dimension out of range")
    assert negated(device) == [0, -1, -2]
