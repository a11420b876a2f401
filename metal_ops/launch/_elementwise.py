"""Elementwise launches: what is worked out once for a layout, and what is bound at each call.

How PyTorch's host chooses a kernel depends on element types, shapes and strides only, so the choice is made once for
these (a :class:`Plan`); a call then binds memory and numbers.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.devices.base import Unsupported
from conformance.dtypes import DType, dtype
from metal_ops.launch._launcher import Launcher
from metal_ops.launch._views import View
from metal_ops.launch._walk import Walk

ELEMENTS_PER_THREAD = 4
INNER_CONTIGUOUS_MIN = 16
ILP_THRESHOLD = 1 << 18
"""Elements from which a thread of a dense kernel computes four, unless the op says otherwise."""

Parameter = NDArray[np.uint8] | dict[str, Any]
"""A number as bytes of its Metal type, or the fields of a struct."""
Layout = tuple[str, tuple[int, ...], tuple[int, ...]]
"""Element type, shape and strides: all that choices depend on."""


_NARROW = {"float64": dtype("float32"), "complex128": dtype("complex64")}


@dataclass(frozen=True, slots=True)
class Plan:
    """A launch but for its memory and numbers.

    ``buffers`` names the kernel's arguments that take the operands' memory, in the order of the operands; ``sizes`` are
    the bytes that each of them spans. ``grid`` is in threads.
    """

    kernel: str
    grid: tuple[int, int]
    buffers: tuple[str, ...]
    sizes: tuple[int, ...]
    arguments: dict[str, Any] = field(default_factory=dict)
    narrowed: tuple[int, DType] | None = None
    """An operand (by position) that the host converts before it binds it, and to which type."""
    number: DType | None = None
    """The type to which the host converts the op's number, if it has one."""

    def run(self, launcher: Launcher, operands: tuple[View, ...], parameter: Parameter | None = None) -> None:
        """Launch the kernel on ``operands``, output first."""
        if self.narrowed is not None:
            place, type_ = self.narrowed
            operands = (*operands[:place], converted(operands[place], type_), *operands[place + 1 :])
        arguments = dict(self.arguments)
        for name, view, size in zip(self.buffers, operands, self.sizes, strict=True):
            start = view.offset * view.dtype.itemsize
            arguments[name] = view.storage[start : start + size]
        if parameter is not None:
            arguments["alpha"] = parameter
        launcher.plane(self.kernel, arguments, *self.grid)


def layout(view: View) -> Layout:
    """What choices depend on, of one operand."""
    return view.dtype.name, view.shape, view.strides


def bare(described: Layout) -> View:
    """A tensor of this layout without memory."""
    name, shape, strides = described
    return View(dtype(name), shape, strides, 0, np.empty(0, np.uint8))


def flavor(kind: str) -> str | None:
    """The variant that the user forces by PyTorch's own environment variable, of ``UNARY`` or ``BINARY`` kernels."""
    return os.environ.get(f"PYTORCH_{kind}_FORCE_FLAVOR")


def spans(operands: tuple[View, ...]) -> tuple[int, ...]:
    """Bytes from an operand's first element to behind its last."""
    return tuple(view.extent * view.dtype.itemsize for view in operands)


def tiles(count: int) -> int:
    """Threads that compute ``count`` elements, four each."""
    return -(-count // ELEMENTS_PER_THREAD)


def inner_contiguous(walk: Walk) -> bool:
    """Whether the iteration consists of runs of memory."""
    return len(walk.shape) > 1 and not walk.contiguous and walk.contiguous_inner


def dimensions(walk: Walk, names: tuple[str, ...], *, outer: bool = False) -> dict[str, Any]:
    """Sizes and every operand's strides (bytes), fastest first; with ``outer``, but those of the fastest dimension."""
    first, infix = (1, "outer_") if outer else (0, "")
    described = {f"{infix}sizes": np.array(walk.shape[first:], np.int64)}
    for name, steps in zip(names, walk.strides, strict=True):
        described[f"{name}_{infix}strides"] = np.array(steps[first:], np.int64)
    return described


def on_device(view: View) -> View:
    """A tensor as the host binds it: Metal has no double, which only a tensor of the host can be, so it is rounded."""
    narrow = _NARROW.get(view.dtype.name)
    return view if narrow is None or view.shape else converted(view, narrow)


def refuse_64bit(walk: Walk) -> None:
    """Raise :class:`Unsupported` where the host would split the iteration."""
    if not walk.indexes_32bit:
        raise Unsupported(f"{walk.numel} elements need more than 32-bit indexing, which is not implemented")


def converted(view: View, type_: DType) -> View:
    """A tensor of one element in another type, converted on the host."""
    with np.errstate(over="ignore"):  # beyond the range becomes infinity, as a C cast does
        value = view.array().reshape(1).astype(type_.numpy)
    return View(type_, (), (), 0, value.view(np.uint8))
