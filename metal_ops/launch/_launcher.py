"""Running kernels for a launch: dispatch rules of PyTorch's host, and what ran and was found along the way."""

from __future__ import annotations

from typing import Any

from conformance.devices.base import Unsupported
from metal_ops.air import Gpu
from metal_ops.air.execution import Kernel, Size
from metal_ops.air.lowering import LoweringError

MAX_EXTENT = 2**32 - 1


class Launcher:
    """One device's queue: launches by kernel name, and keeps names and diagnoses until they are taken."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._names: list[str] = []
        self._diagnoses: list[str] = []

    def has(self, name: str) -> bool:
        """Whether the build's library has the kernel: the host asks this to choose a variant."""
        return name in self._gpu

    def limit(self, name: str) -> int:
        """Threads that a group of the kernel may have; raises as :meth:`run`."""
        return self._kernel(name).signature.max_threads

    def _kernel(self, name: str) -> Kernel:
        if name not in self._gpu:
            raise Unsupported(f"this build has no kernel {name}")
        try:
            return self._gpu.kernel(name)
        except LoweringError as error:
            raise Unsupported(f"kernel {name}: {error}") from error

    def run(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        group: Size,
        threads: Size | None = None,
        groups: Size | None = None,
    ) -> None:
        """Launch kernel ``name``; raises :class:`Unsupported` if the build has it not or the emulator cannot run it."""
        report = self._kernel(name).launch(arguments, threads=threads, groups=groups, group=group)
        self._names.append(name)
        if report.violation_count:
            more = f" ({report.violation_count} such accesses in this launch)" if report.violation_count > 1 else ""
            self.diagnose(f"{report.violations[0]}{more}")

    def line(self, name: str, arguments: dict[str, Any], count: int) -> None:
        """Launch ``count`` threads in one dimension, in groups as large as the kernel allows."""
        self.plane(name, arguments, count, 1)

    def plane(self, name: str, arguments: dict[str, Any], inner: int, outer: int) -> None:
        """Launch ``inner`` x ``outer`` threads: groups as wide as the inner extent, filled up with outer rows."""
        if max(inner, outer) > MAX_EXTENT:
            raise Unsupported(f"kernel {name}: a grid of {inner} x {outer} threads exceeds 2**32 - 1")
        limit = self.limit(name)
        width = min(limit, inner)
        height = max(1, min(outer, limit // width))
        self.run(name, arguments, threads=(inner, outer, 1), group=(width, height, 1))

    def take_names(self) -> list[str]:
        """Names of the kernels run since the last call."""
        taken, self._names = self._names, []
        return taken

    def diagnose(self, finding: str) -> None:
        """Keep a finding about the launches at hand."""
        self._diagnoses.append(finding)

    def take_diagnoses(self) -> list[str]:
        """Findings made since the last call."""
        taken, self._diagnoses = self._diagnoses, []
        return taken
