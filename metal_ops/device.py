"""The device ``air``: PyTorch's own kernels of one build, on the emulated Metal GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from metal_ops.builds import DEFAULT_BUILD, open_build

if TYPE_CHECKING:
    from metal_ops.launch._launcher import Launcher


class AirDevice:
    """Runs ops through the kernels of ``build`` (a version, or the path of a wheel, dylib or metallib).

    It is the torch device that :mod:`metal_ops.backend` makes, with the kernels of one build in use during a session.
    They are those of the Metal 3.1 library, which covers every op; a Mac takes the Metal 4 one from macOS 26.2.
    """

    name = "air"
    torch_device = "air"

    def __init__(self, build: str | None = None) -> None:
        from metal_ops import backend

        backend.register()  # at once: it has to come before any backward of the process, the CPU's too
        self._build = open_build(build or DEFAULT_BUILD)
        self._queues: dict[bool, Launcher] = {}
        self._counting = False

    @property
    def _launcher(self) -> Launcher:
        """The queue in use: kernels that count their work are compiled apart."""
        if self._counting not in self._queues:
            from metal_ops.air import Gpu
            from metal_ops.air.program import COUNTING, JUDGING
            from metal_ops.launch import Launcher

            self._queues[self._counting] = Launcher(Gpu(self._build.library(), COUNTING if self._counting else JUDGING))
        return self._queues[self._counting]

    def available(self) -> str | None:
        """None if this host can execute kernels, else why it cannot."""
        from metal_ops.air import host
        from metal_ops.air.lowering.fp_mode import floating_point_mode

        try:
            floating_point_mode(host.processor())
        except ValueError as error:
            return str(error)
        return None

    def provenance(self) -> dict[str, Any]:
        """The build, the emulator and the choices it makes where AIR cannot tell what hardware does."""
        from metal_ops.air import host
        from metal_ops.air.program import emulator_version
        from metal_ops.launch import product

        return {
            "build": self._build.provenance(),
            "library": "metal_basic",
            "emulator": emulator_version(),
            "elementary": "correctly rounded",
            "subnormals": "flushed to signed zero in float32 arithmetic",
            "simd_sum": "lanes i and i + 16, then + 8, 4, 2, 1",
            "matmul": "Metal kernels preferred" if product.prefers_metal() else "floats left to Apple's library",
            **host.describe(),
        }

    def session(self) -> AbstractContextManager[None]:
        """Launch the kernels of this build, in all threads; flush-to-zero is on only while a kernel executes."""
        from metal_ops import backend

        return backend.using(self._launcher)

    def synchronize(self) -> None:
        """Launches are synchronous."""

    def memory(self) -> dict[str, int | None]:
        """Bytes in live storages; an emulated GPU has no allocator that reserves more, and no driver."""
        from metal_ops.backend.memory import Allocation

        return {"current": Allocation.live, "reserved": None, "driver": None}

    def reset_peaks(self) -> None:
        """Let the peak of live storages be what lives now."""
        from metal_ops.backend.memory import Allocation

        Allocation.peak = Allocation.live

    def peaks(self) -> dict[str, int | None]:
        """The most bytes in live storages since the last reset."""
        from metal_ops.backend.memory import Allocation

        return {"current": Allocation.peak}

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Run kernels that count meanwhile."""
        self._counting = True
        try:
            yield
        finally:
            self._counting = False

    def work(self) -> dict[str, int]:
        """What the kernels executed since the last call: instructions of AIR, loads, stores, bytes, barriers."""
        return asdict(self._launcher.take_work())

    def kernels(self) -> list[str]:
        """Names of the kernels run since the last call."""
        return self._launcher.take_names()

    def diagnostics(self) -> list[str]:
        """What the emulator found wrong, such as accesses out of bounds, since the last call."""
        return self._launcher.take_diagnoses()

    def helpers(self) -> list[str]:
        """Names of what was computed on the host since the last call, for want of a kernel."""
        from metal_ops.backend.helpers import take_used

        return take_used()
