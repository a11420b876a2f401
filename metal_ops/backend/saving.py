"""``torch.load`` of what was saved from this device: torch would make the storage through an allocator it has not."""

from __future__ import annotations

from typing import Any

import torch

from metal_ops.backend.memory import DEVICE_TYPE, Allocation, storage_on

_BEFORE_TORCHS_OWN = 15  # a priority that no other package has; torch sorts by it, and its own start at 10 (cpu)


def install() -> None:
    """Tell torch how a storage comes back to the device; how one is saved it knows."""
    torch.serialization.register_package(_BEFORE_TORCHS_OWN, _location, _restore)


def _location(storage: Any) -> str | None:
    return f"{DEVICE_TYPE}:0" if storage.device.type == DEVICE_TYPE else None


def _restore(storage: Any, location: str) -> Any:
    if not location.startswith(DEVICE_TYPE):
        return None
    on_host = torch.empty(0, dtype=torch.uint8).set_(storage)
    return storage_on(Allocation.of(on_host.numpy().copy()))
