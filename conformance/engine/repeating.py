"""Large tensors that repeat the same numbers: each is judged once, and the rest only compared.

The cases that make a host choose the kernels for large tensors have a quarter of a million elements, of which the
numbers of the first few hundred come again and again. References and bounds cost far more than a comparison of bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.oracle import Judgement

_LARGE = 1 << 16
"""Elements from which a period is worth looking for."""

_LONGEST = 1 << 12
"""The longest period that is looked for."""


@dataclass(frozen=True)
class Period:
    """The part of an elementwise computation that is to be judged: all of it, or one period."""

    got: NDArray[Any]
    inputs: tuple[NDArray[Any], ...]
    count: int | None = None
    """How many elements there are in all; None where nothing repeats."""

    def extended(self, judgement: Judgement) -> Judgement:
        """The judgement on every element, from that on one period."""
        if self.count is None:
            return judgement
        return replace(
            judgement,
            units=np.resize(judgement.units, self.count),
            ulp=np.resize(judgement.ulp, self.count),
        )


def period(got: NDArray[Any], inputs: tuple[NDArray[Any], ...]) -> Period:
    """Find the period of a result and the operands of an elementwise op, of one dimension and the same size.

    Operands of one element fit any period. Where the result does not repeat as the operands do, all of it is judged.
    """
    whole = Period(got, inputs)
    full = [x for x in inputs if x.size > 1]
    if got.ndim != 1 or got.size < _LARGE or any(x.shape != got.shape for x in full) or not full:
        return whole
    first = _words(full[0])
    candidates = np.flatnonzero((first[1 : _LONGEST + 1] == first[0]).all(axis=-1)) + 1
    for length in map(int, candidates):
        # Small integers return often: what does not repeat at once need not be compared whole.
        if _repeats(first[: 2 * _LONGEST], length) and all(_repeats(_words(x), length) for x in full):
            return _cut(whole, length) if _repeats(_words(got), length) else whole
    return whole


def _cut(whole: Period, length: int) -> Period:
    inputs = tuple(x[:length] if x.size > 1 else x for x in whole.inputs)
    return Period(whole.got[:length], inputs, whole.got.size)


def _words(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of each element."""
    return np.ascontiguousarray(array).view(np.uint8).reshape(array.size, -1)


def _repeats(words: NDArray[np.uint8], length: int) -> bool:
    return bool(np.array_equal(words[length:], words[:-length]))
