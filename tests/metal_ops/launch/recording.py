"""A launcher that records what a launch would run, without kernels: for testing the host's choices."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import Any

import numpy as np

from conformance.dtypes import dtype
from metal_ops.air.execution import Size
from metal_ops.launch._launcher import Launcher
from metal_ops.launch._views import View, row_major


class Recorder(Launcher):
    """Keeps (kernel, arguments, threads, groups, group).

    ``missing`` are kernels that the build shall lack; with a ``library``, it has just the kernels in that.
    """

    def __init__(self, *missing: str, library: Container[str] | None = None) -> None:
        self._missing = missing
        self._library = library
        self.launches: list[tuple[str, dict[str, Any], Size | None, Size | None, Size]] = []

    def has(self, name: str) -> bool:
        return name not in self._missing if self._library is None else name in self._library

    def limit(self, name: str) -> int:
        return 1024

    def run(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        group: Size,
        threads: Size | None = None,
        groups: Size | None = None,
    ) -> None:
        self.launches.append((name, arguments, threads, groups, group))

    @property
    def names(self) -> list[str]:
        return [launch[0] for launch in self.launches]


def view(
    shape: tuple[int, ...], strides: tuple[int, ...] | None = None, offset: int = 0, type_: str = "float32"
) -> View:
    """A view of zeros, large enough."""
    element = dtype(type_)
    steps = strides if strides is not None else row_major(shape)
    bare = View(element, shape, steps, offset, np.empty(0, np.uint8))
    return replace(bare, storage=np.zeros((offset + bare.extent) * element.itemsize, np.uint8))
