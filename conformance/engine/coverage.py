"""Which failing elements the known failures of a build cover."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from conformance.case import Case
    from conformance.findings import Part
    from conformance.known import Entry

Bools = NDArray[np.bool_]


def uncovered(
    known: Sequence[Entry], case: Case, kind: str, part: Part, failing: Bools, first: NDArray[Any] | None
) -> tuple[Bools, list[str]]:
    """The elements of ``part`` that fail and that no entry covers, and the ids of the entries that cover others.

    ``first`` is the first operand upcast exactly, None if there is none.
    """
    used = []
    for entry in known if failing.any() else ():
        mask = np.asarray(entry.covers(case, kind, first, part))
        fitting = fitted(mask, failing.shape)
        covered = failing & fitting if fitting is not None else np.zeros_like(failing)
        if covered.any():
            used.append(entry.id)
            failing = failing & ~covered
    return failing, used


def fitted(mask: Bools, shape: tuple[int, ...]) -> Bools | None:
    """A mask over an operand as one over a tensor of ``shape`` that broadcasts with it; None if it does not.

    Where ``shape`` is the smaller one, an element stands for all that were summed into it, as in the gradient of an
    operand that was broadcast: it is in the mask if one of them is.
    """
    try:
        common = np.broadcast_shapes(mask.shape, shape)
    except ValueError:
        return None
    padded = (1,) * (len(common) - len(shape)) + shape
    summed = tuple(dim for dim, (size, full) in enumerate(zip(padded, common, strict=True)) if size != full)
    reduced = np.asarray(np.any(np.broadcast_to(mask, common), axis=summed, keepdims=True), bool)
    return reduced.reshape(shape) if prod(shape) else np.zeros(shape, bool)
