"""The shape of a device under test, and the errors with which it says that it cannot serve."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable


class Unsupported(Exception):  # noqa: N818 - a verdict, not an error
    """The device has no implementation of this call; the message says which op, dtype and what is missing."""


class Unavailable(Exception):  # noqa: N818 - a state of the machine, not an error of the suite
    """The device or the build cannot be had here; the message is one clear line. The CLI exits with 3."""


class Device(Protocol):
    """What runs an op.

    ``torch_device`` is the string torch knows the device by ("cpu", "mps", "cuda:0"). ``session`` surrounds all
    device-side calls, and nothing else. ``memory`` gives ``current``, ``reserved`` and ``driver`` bytes, None where
    unknown. ``kernels`` lists the names run since it was last called.
    """

    name: str
    torch_device: str

    def available(self) -> str | None:
        """Give None, or why the device cannot be had here."""
        ...

    def session(self) -> AbstractContextManager[None]:
        """Surround all device-side calls, and nothing else."""
        ...

    def synchronize(self) -> None:
        """Wait until all work is done."""
        ...

    def memory(self) -> dict[str, int | None]:
        """Give ``current``, ``reserved`` and ``driver`` bytes, None where unknown."""
        ...

    def kernels(self) -> list[str]:
        """Name the kernels run since the last call."""
        ...


@runtime_checkable
class Peaks(Protocol):
    """What a device may have beside: counters of peaks, which polling would miss."""

    def reset_peaks(self) -> None:
        """Let the peaks be what is held now."""
        ...

    def peaks(self) -> dict[str, int | None]:
        """Give the peaks, in bytes, of any of the figures of ``memory``; None for one that is not there after all."""
        ...


@runtime_checkable
class Counted(Protocol):
    """What a device may have beside: an exact account of what it executes, where a time would say nothing."""

    def counting(self) -> AbstractContextManager[None]:
        """Count the work of all calls that are made meanwhile."""
        ...

    def work(self) -> dict[str, int]:
        """Give what was executed since the last call, in numbers by name."""
        ...


@runtime_checkable
class Emulated(Protocol):
    """What a device may have beside: findings of its own, and an account of what no kernel computed.

    Both forget what they have told.
    """

    def diagnostics(self) -> list[str]:
        """Say what the device found wrong since the last call, such as an access out of bounds."""
        ...

    def helpers(self) -> list[str]:
        """Name what the device computed without a kernel of its own since the last call, such as random numbers."""
        ...
