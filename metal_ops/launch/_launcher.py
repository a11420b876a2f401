"""Running kernels for a launch: dispatch rules of PyTorch's host, and what ran and was found along the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.devices.base import Unsupported
from metal_ops.air import Gpu
from metal_ops.air.execution import Kernel, Size
from metal_ops.air.lowering import LoweringError
from metal_ops.air.lowering.counting import Work
from metal_ops.launch._views import View

Launch = Callable[..., View | tuple[View | None, ...] | None]
"""``launch(launcher, *arguments, **keywords)``: an aten overload as PyTorch's host code would serve it.

It gets the overload's own arguments, each of them: a tensor as a :class:`View` (a list of them as a tuple), a number
that torch has wrapped as a Python number, an element type as a :class:`~conformance.dtypes.DType`. It writes into
``out``, or gives new views if the overload has none; None for a result that the caller does not ask for.
"""

MAX_EXTENT = 2**32 - 1
MAX_PACKED = 1 << 14
"""Arguments of launches whose bytes are kept."""
_THREADGROUP = 3


def _key(value: Any) -> Any:
    """Equal for equal values of parameters; zeros of either sign differ."""
    if isinstance(value, int):
        return value
    if isinstance(value, dict):
        return tuple(map(_key, value.values()))
    if isinstance(value, (list, tuple)):
        return tuple(value) if set(map(type, value)) <= {int} else tuple(map(_key, value))
    return repr(value)


class Launcher:
    """One device's queue: launches by kernel name, and keeps names and diagnoses until they are taken."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._names: list[str] = []
        self._diagnoses: list[str] = []
        self._work = Work()
        self._packed: dict[Any, NDArray[np.uint8]] = {}

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
        kernel = self._kernel(name)
        bound = {key: self._bound(kernel, key, value) for key, value in arguments.items()}
        report = kernel.launch(bound, threads=threads, groups=groups, group=group)
        self._names.append(name)
        self._work += report.work
        if report.violation_count:
            more = f" ({report.violation_count} such accesses in this launch)" if report.violation_count > 1 else ""
            self.diagnose(f"{report.violations[0]}{more}")

    def _bound(self, kernel: Kernel, name: str, value: Any) -> Any:
        """Memory, or None for none, as it is; a value as the bytes that the kernel expects.

        These are packed once for all launches that pass it.
        """
        if value is None or isinstance(value, np.ndarray):
            return value
        key = kernel.signature.name, name, _key(value)
        packed = self._packed.get(key)
        if packed is not None:
            return packed
        argument = kernel.signature.argument(name)
        if argument.kind != "buffer" or argument.address_space == _THREADGROUP:
            return value
        packed = argument.pack(value)
        if len(self._packed) >= MAX_PACKED:
            self._packed.clear()
        self._packed[key] = packed
        return packed

    def line(self, name: str, arguments: dict[str, Any], count: int) -> None:
        """Launch ``count`` threads in one dimension, in groups as large as the kernel allows."""
        self.plane(name, arguments, count, 1)

    def plane(self, name: str, arguments: dict[str, Any], inner: int, outer: int) -> None:
        """Launch ``inner`` x ``outer`` threads: groups as wide as the inner extent, filled up with outer rows."""
        self.volume(name, arguments, (inner, outer, 1))

    def volume(self, name: str, arguments: dict[str, Any], threads: Size) -> None:
        """Launch ``threads`` in three dimensions: groups as wide as the first extent, filled up along the others."""
        if max(threads) > MAX_EXTENT:
            raise Unsupported(f"kernel {name}: a grid of {threads} threads exceeds 2**32 - 1")
        limit = self.limit(name)
        width = min(limit, threads[0])
        height = max(1, min(threads[1], limit // width))
        depth = max(1, min(threads[2], limit // (width * height)))
        self.run(name, arguments, threads=threads, group=(width, height, depth))

    def take_names(self) -> list[str]:
        """Names of the kernels run since the last call."""
        taken, self._names = self._names, []
        return taken

    def take_work(self) -> Work:
        """What the kernels executed since the last call; nothing unless they are compiled to count."""
        taken, self._work = self._work, Work()
        return taken

    def diagnose(self, finding: str) -> None:
        """Keep a finding about the launches at hand."""
        self._diagnoses.append(finding)

    def take_diagnoses(self) -> list[str]:
        """Findings made since the last call."""
        taken, self._diagnoses = self._diagnoses, []
        return taken
