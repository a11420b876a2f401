"""What torch asks of a device: hooks, a guard, the module ``torch.air``; and which build's kernels are in use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.utils import backend_registration

from metal_ops.air import Gpu
from metal_ops.backend.memory import DEVICE_TYPE, Allocation
from metal_ops.builds import DEFAULT_BUILD, open_build
from metal_ops.launch._launcher import Launcher

# Backward runs on a thread of torch's own, so what is in use is the process's, never a thread's.
_in_use: list[Launcher] = []
_default: list[Launcher] = []


def queue() -> Launcher:
    """The launcher whose kernels run now: that of the innermost :func:`using`, else of the default build."""
    if _in_use:
        return _in_use[-1]
    if not _default:
        _default.append(Launcher(Gpu(open_build(DEFAULT_BUILD).library())))
    return _default[0]


@contextmanager
def using(launcher: Launcher) -> Iterator[None]:
    """Run the kernels of another build, in all threads, until the context ends."""
    _in_use.append(launcher)
    try:
        yield
    finally:
        _in_use.remove(launcher)


class Module:
    """``torch.air``: what torch and its users expect of a device module."""

    generator = torch.Generator()
    """Random numbers are a helper's, drawn on the host."""

    def is_available(self) -> bool:
        """Whether the device is there: always, for it is software."""
        return True

    def is_initialized(self) -> bool:
        """Whether it is set up; there is nothing to set up."""
        return True

    def _lazy_init(self) -> None:
        """Nothing to set up."""

    def _is_in_bad_fork(self) -> bool:
        return False

    def device_count(self) -> int:
        """One."""
        return 1

    def current_device(self) -> int:
        """The only one."""
        return 0

    def set_device(self, device: Any) -> None:
        """Accept the only one; raises ValueError for another."""
        index = device if isinstance(device, int) else torch.device(device).index
        if index not in (None, 0):
            raise ValueError(f"device {device} does not exist; allowed: {DEVICE_TYPE}:0")

    def device(self, device: Any) -> AbstractContextManager[None]:
        """The context in which a device is current: nothing changes."""
        self.set_device(device)
        return nullcontext()

    def synchronize(self, device: Any = None) -> None:
        """Launches are synchronous."""

    def memory_allocated(self, device: Any = None) -> int:
        """Bytes in live storages."""
        return Allocation.live

    def manual_seed(self, seed: int) -> None:
        """Seed the random numbers."""
        self.generator.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Seed the random numbers."""
        self.generator.manual_seed(seed)

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        """The generator's state."""
        return self.generator.get_state()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        """Set the generator's state."""
        self.generator.set_state(state)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        """Types of automatic mixed precision, as on device ``mps``."""
        return [torch.float16, torch.bfloat16]


class _Hooks(torch._C._acc.PrivateUse1Hooks):
    def is_available(self) -> bool:
        return True

    def has_primary_context(self, dev_id: int) -> bool:
        return True

    def is_built(self) -> bool:
        return True


class _Guard(torch._C._acc.DeviceGuard):
    def type_(self) -> Any:
        return torch._C._autograd.DeviceType.PrivateUse1


def announce() -> None:
    """Make the device known to torch."""
    backend_registration._setup_privateuseone_for_python_backend(DEVICE_TYPE, Module(), _Hooks(), _Guard())
