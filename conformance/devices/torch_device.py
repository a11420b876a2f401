"""What the devices that torch itself knows have in common."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext


class TorchDevice:
    """A device of the host torch; the build that is judged is the host torch itself.

    ``same_bits_in_any_layout`` says whether one algorithm computes an element wherever it lies, so that the property
    ``layout`` may ask for equal bits; devices that do not say are taken to.
    """

    name: str
    torch_device: str
    same_bits_in_any_layout = True

    def available(self) -> str | None:
        """Give None, or why the device cannot be had."""
        return None

    def session(self) -> AbstractContextManager[None]:
        """Surround all device-side calls; a plain torch device has nothing to set up."""
        return nullcontext()

    def synchronize(self) -> None:
        """Wait until all work is done; a no-op where calls return when they are."""

    def memory(self) -> dict[str, int | None]:
        """Give ``current``, ``reserved`` and ``driver`` bytes, None where unknown."""
        return {"current": None, "reserved": None, "driver": None}

    def kernels(self) -> list[str]:
        """Name the kernels run since the last call; torch does not tell."""
        return []
