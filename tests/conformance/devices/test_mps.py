"""Where the three figures of the device mps come from; this needs no Mac."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.devices.mps import MpsDevice


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.mps, "current_allocated_memory", lambda: 1)
    monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: 3)


@pytest.mark.usefixtures("counters")
def test_reserved_is_the_statistic_of_the_allocator(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = {"allocated_bytes.all.current": 1, "reserved_bytes.all.current": 2}
    monkeypatch.setattr(torch.accelerator, "memory_stats", lambda device: statistics)
    assert MpsDevice().memory() == {"current": 1, "reserved": 2, "driver": 3}


@pytest.mark.usefixtures("counters")
@pytest.mark.parametrize(
    "answer",
    [
        {},  # before the first allocation
        RuntimeError("Allocator for mps is not a DeviceAllocator."),
        ValueError("mps doesn't match the current accelerator air."),
    ],
)
def test_reserved_is_none_where_torch_does_not_tell(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    def memory_stats(device: str) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(torch.accelerator, "memory_stats", memory_stats)
    assert MpsDevice().memory() == {"current": 1, "reserved": None, "driver": 3}


@pytest.mark.usefixtures("counters")
def test_reserved_is_none_for_a_torch_without_the_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.accelerator, "memory_stats")
    assert MpsDevice().memory()["reserved"] is None
