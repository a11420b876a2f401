"""Measurements of calls whose cost is known, on devices that say what they are asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch

from conformance.case import literal, ones
from conformance.devices.cpu import CpuDevice
from conformance.worker import Call, measure


def call_of(count: int = 4, function: str = "exp") -> Call:
    x = literal(np.ones(count, np.float32), "float32").materialise()
    gradient = ones("float32", (count,)).materialise()
    return Call("op", function, (x,), requires_grad=(0,), gradients=(gradient,))


class Slow(CpuDevice):
    """Whose work is done when it is waited for, 3 milliseconds a synchronisation."""

    def synchronize(self) -> None:
        time.sleep(3e-3)


def test_a_block_ends_when_the_work_is_done() -> None:
    taken = measure.timing(call_of(), Slow(), "forward")
    assert taken.median * taken.calls >= 3e-3
    assert taken.blocks >= 5
    assert taken.iqr >= 0


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_longer_call_takes_longer(direction: measure.Direction) -> None:
    short, long = (measure.timing(call_of(count), CpuDevice(), direction) for count in (4, 1 << 21))
    assert long.median > 5 * short.median
    assert long.calls < short.calls


class Counting(CpuDevice):
    """With a peak counter of its own, and an account of work."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def memory(self) -> dict[str, int | None]:
        return {"current": 100, "reserved": 1000, "driver": None}

    def reset_peaks(self) -> None:
        self.asked.append("reset")

    def peaks(self) -> dict[str, int | None]:
        return {"current": 164, "reserved": None}

    @contextmanager
    def counting(self) -> Iterator[None]:
        self.asked.append("begin")
        yield
        self.asked.append("end")

    def work(self) -> dict[str, int]:
        self.asked.append("work")
        return {"instructions": 7}


def test_peaks_are_beyond_what_was_held_and_say_where_they_come_from() -> None:
    device = Counting()
    held = measure.memory(call_of(), device, "forward")
    assert (held.current, held.reserved, held.driver) == (64, 0, None)
    assert held.counters == ("current",)
    assert held.sampling_hz > 0
    assert device.asked == ["reset"]


def test_polling_sees_the_resident_set_grow() -> None:
    held = measure.memory(call_of(1 << 24), CpuDevice(), "forward")
    assert held.current is None
    assert held.resident is not None
    assert held.resident > 32 << 20


def test_work_is_that_of_the_call_alone() -> None:
    device = Counting()
    assert measure.work(call_of(), device, "backward") == {"instructions": 7}
    assert device.asked == ["begin", "work", "work", "end"]
    assert measure.work(call_of(), CpuDevice(), "forward") is None


def test_what_the_call_raises_comes_through() -> None:
    broken = replace(call_of(), params={"nothing": 1})
    with pytest.raises(TypeError, match="nothing"):
        measure.timing(broken, CpuDevice(), "forward")


def test_a_backward_can_be_repeated() -> None:
    x = torch.ones(3, requires_grad=True)
    results = [x.exp()]
    from conformance.worker.invoke import differentiate

    for _ in range(2):
        (gradient,) = differentiate(results, [x], [torch.ones(3)], retain=True)
        assert gradient is not None
