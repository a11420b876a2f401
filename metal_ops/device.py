"""The device ``air``: PyTorch's own kernels of one build, on the emulated Metal GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from conformance.devices.base import Unsupported
from metal_ops.builds import DEFAULT_BUILD, open_build

if TYPE_CHECKING:
    from conformance.worker.protocol import Call, Tensor
    from metal_ops.launch._launcher import Launcher


class AirDevice:
    """Runs ops on raw memory through the kernels of ``build`` (a version, or the path of a wheel, dylib or metallib).

    The kernels are those of the Metal 3.1 library, which covers every op; a Mac takes the Metal 4 one from macOS 26.2.
    """

    name = "air"
    torch_device = "air"

    def __init__(self, build: str | None = None) -> None:
        self._build = open_build(build or DEFAULT_BUILD)
        self._queue: Launcher | None = None

    @property
    def _launcher(self) -> Launcher:
        if self._queue is None:
            from metal_ops.air import Gpu
            from metal_ops.launch._launcher import Launcher

            self._queue = Launcher(Gpu(self._build.library()))
        return self._queue

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

        return {
            "build": self._build.provenance(),
            "library": "metal_basic",
            "emulator": emulator_version(),
            "elementary": "correctly rounded",
            "subnormals": "flushed to signed zero in float32 arithmetic",
            "simd_sum": "lanes i and i + 16, then + 8, 4, 2, 1",
            **host.describe(),
        }

    @contextmanager
    def session(self) -> Iterator[None]:
        """Nothing to set up: flush-to-zero is on only while a kernel executes."""
        yield

    def synchronize(self) -> None:
        """Launches are synchronous."""

    def memory(self) -> dict[str, int | None]:
        """An emulated GPU has no allocator of its own."""
        return {"current": None, "reserved": None, "driver": None}

    def kernels(self) -> list[str]:
        """Names of the kernels run since the last call."""
        return self._launcher.take_names()

    def diagnostics(self) -> list[str]:
        """What the emulator found wrong (out-of-bounds accesses, a changed operand) since the last call."""
        return self._launcher.take_diagnoses()

    def run(self, call: Call) -> tuple[Tensor, ...]:
        """Launch one call; raises Unsupported naming the op, the element type and what is missing."""
        from metal_ops.launch import LAUNCHES
        from metal_ops.launch._views import from_tensor, to_tensor

        launch = LAUNCHES.get(call.op)
        if launch is None:
            raise Unsupported(f"{call.op} has no launch on air yet; it has: {', '.join(sorted(LAUNCHES))}")
        (tensor,) = call.tensors
        source = from_tensor(tensor)
        try:
            result = launch(self._launcher, source, call.params)
        except Unsupported as reason:
            raise Unsupported(f"{call.op} on {tensor.dtype}: {reason}") from reason
        if source.storage.tobytes() != tensor.storage:
            self._launcher.diagnose(f"{call.op}: the kernel wrote to its operand")
        return (to_tensor(result),)
