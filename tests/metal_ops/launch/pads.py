"""Generated pads as raw memory, and what np.pad makes of them: shared by the tests and benchmarks/pads.py.

Elements are random bits (bool: 0 and 1), so equality of bits also covers NaN payloads and the signs of zeros.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import DType, dtype
from metal_ops.launch._launcher import Launcher
from metal_ops.launch._views import METAL_NAMES, View
from metal_ops.launch.pad import LAUNCHES

CONSTANT_TYPES = tuple(METAL_NAMES)
SPREAD_TYPES = "float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex32".split()
NUMPY_MODES = {"constant": "constant", "reflection": "reflect", "replication": "edge"}
FILLERS = (0, 1, 3)
LAYOUTS = ("contiguous", "offset", "permuted", "gapped", "expanded", "channels_last")
_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


@dataclass(frozen=True)
class Pad:
    """One pad: ``widths`` as torch has them, last dimension first; ``value`` fills a constant pad."""

    mode: str
    source: View
    widths: tuple[int, ...]
    value: int = 0

    @property
    def op(self) -> str:
        return "constant_pad_nd" if self.mode == "constant" else f"{self.mode}_pad{len(self.widths) // 2}d"


def raw(view: View) -> NDArray[Any]:
    """The elements as unsigned integers of their size, on the view's memory."""
    size = view.dtype.itemsize
    if not view.numel:
        return np.empty(view.shape, _UNSIGNED[size])
    base = view.storage[view.offset * size :][: view.extent * size].view(_UNSIGNED[size])
    return np.lib.stride_tricks.as_strided(base, view.shape, [stride * size for stride in view.strides])


def filler_bits(value: int, type_: DType) -> int:
    """The bits of a small integer as an element."""
    if type_.numpy.names is not None:
        return int(np.array(value, np.float16).view(np.uint16))
    number = bool(value) if type_.kind == "bool" else value
    return int(np.array(number).astype(type_.numpy).reshape(1).view(_UNSIGNED[type_.itemsize])[0])


def expected(pad: Pad) -> NDArray[Any]:
    """What np.pad makes of it.

    Negative widths crop: before a constant pad, so that they never crop its constant; after a reflection or a
    replication, which PyTorch defines on the whole input.
    """
    elements = raw(pad.source)
    count = elements.ndim
    if not count:  # which np.pad does not take
        return elements.copy()
    pairs = [(0, 0)] * count
    for place in range(0, len(pad.widths), 2):
        pairs[count - 1 - place // 2] = pad.widths[place], pad.widths[place + 1]
    widths = [(max(left, 0), max(right, 0)) for left, right in pairs]
    if pad.mode == "constant":
        bits = filler_bits(pad.value, pad.source.dtype)
        return np.pad(_cropped(elements, pairs), widths, "constant", constant_values=bits)
    return _cropped(np.pad(elements, widths, NUMPY_MODES[pad.mode]), pairs)


def _cropped(elements: NDArray[Any], pairs: list[tuple[int, int]]) -> NDArray[Any]:
    return elements[
        tuple(
            slice(max(-left, 0), size + min(right, 0))
            for (left, right), size in zip(pairs, elements.shape, strict=True)
        )
    ]


def laid_out(
    generator: np.random.Generator, rng: random.Random, type_: DType, shape: tuple[int, ...], layout: str
) -> View:
    """Random bits with this shape in one of :data:`LAYOUTS`."""
    count = len(shape)
    order = list(range(count - 1, -1, -1))
    gap = offset = 0
    if layout == "permuted":
        rng.shuffle(order)
    elif layout == "channels_last" and count in (4, 5):
        order = [1, *range(count - 1, 1, -1), 0]
    elif layout == "gapped":
        gap, offset = rng.randint(1, 3), rng.randint(0, 3)
    elif layout == "offset":
        offset = rng.randint(1, 9)
    strides, step = [0] * count, 1 + (gap > 1)
    still = rng.randrange(count) if layout == "expanded" and count else None
    for dim in order:
        if dim != still:
            strides[dim] = step
            step *= shape[dim]
            step += gap
    extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) if 0 not in shape else 0
    storage = generator.integers(0, 256, (offset + extent + 2) * type_.itemsize, np.uint8)
    if type_.kind == "bool":
        storage &= 1
    return View(type_, shape, tuple(strides), offset, storage)


def cases(seed: int, count: int) -> Iterator[Pad]:
    """Random pads of small tensors, with every mode, type and layout."""
    rng, generator = random.Random(seed), np.random.default_rng(seed)
    for _ in range(count):
        mode = rng.choice(("constant", "constant", "reflection", "replication"))
        yield (_constant if mode == "constant" else _spread)(generator, rng, mode)


def _constant(generator: np.random.Generator, rng: random.Random, mode: str) -> Pad:
    dims = rng.choice((0, 1, 2, 3, 3, 4, 4, 5, 6, 7))
    shape = tuple(rng.choice((0, 1, 1, 2, 3, 4, 5, 7, 9)) if rng.random() < 0.9 else 17 for _ in range(dims))
    shape = tuple(max(size, 1) if rng.random() < 0.9 else size for size in shape)
    while np.prod(shape) > 4000:
        shape = tuple(max(1, size // 2) for size in shape)
    padded = rng.randint(0, dims)
    widths: list[int] = []
    style = rng.random()
    for place in range(padded):
        size = shape[dims - 1 - place]
        if style < 0.15:  # only crops
            left = -rng.randint(0, size)
            right = -rng.randint(0, size + left)
        elif style < 0.45:
            left = rng.randint(-(size // 2), 3)
            right = rng.randint(-(size // 2), 3)
        else:
            left, right = rng.randint(0, 4), rng.randint(0, 4)
        widths += [left, right]
    view = laid_out(generator, rng, dtype(rng.choice(CONSTANT_TYPES)), shape, rng.choice(LAYOUTS))
    return Pad(mode, view, tuple(widths), rng.choice(FILLERS))


def _spread(generator: np.random.Generator, rng: random.Random, mode: str) -> Pad:
    dims = rng.choice((1, 2, 3))
    sizes = tuple(rng.choice((1, 2, 3, 4, 5, 6, 9)) for _ in range(dims))
    outer = (rng.randint(1, 3),) if rng.random() < 0.4 else (rng.randint(1, 2), rng.randint(1, 3))
    widths: list[int] = []
    for size in reversed(sizes):
        most = size - 1 if mode == "reflection" else 4
        least = -((size - 1) // 2) if rng.random() < 0.3 else 0
        widths += [rng.randint(least, most), rng.randint(least, most)]
    view = laid_out(generator, rng, dtype(rng.choice(SPREAD_TYPES)), (*outer, *sizes), rng.choice(LAYOUTS))
    return Pad(mode, view, tuple(widths))


def run(launcher: Launcher, pad: Pad) -> View:
    """The pad by its launch."""
    value = (pad.value,) if pad.mode == "constant" else ()
    result = LAUNCHES[pad.op](launcher, pad.source, pad.widths, *value)
    assert isinstance(result, View)
    return result


def check(launcher: Launcher, seed: int, count: int) -> Counter[str]:
    """Run ``count`` generated pads; raises AssertionError with the first that differs. Gives the kernels that ran."""
    ran: Counter[str] = Counter()
    for pad in cases(seed, count):
        before = pad.source.storage.tobytes()
        result, wanted = run(launcher, pad), expected(pad)
        ran.update(launcher.take_names())
        elements = raw(result)
        described = pad.op, pad.source.dtype.name, pad.source.shape, pad.source.strides, pad.widths
        assert elements.shape == wanted.shape, described
        assert np.array_equal(elements, wanted), described
        assert pad.source.storage.tobytes() == before, described
        assert not np.shares_memory(result.storage, pad.source.storage), described
    return ran


def families(ran: Counter[str]) -> Counter[str]:
    """How often each family of kernels ran, whatever the element type."""
    counted: Counter[str] = Counter()
    types = sorted(set(METAL_NAMES.values()), key=len, reverse=True)
    for name, times in ran.items():
        parts = [part for part in types if f"_{part}_" in f"{name}_"]
        counted[f"{name}_".replace(f"_{parts[0]}_", "_").strip("_") if parts else name] += times
    return counted
