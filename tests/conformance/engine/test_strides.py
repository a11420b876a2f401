"""Strides of a result: fixed by rules where the operands have an order in memory, free of gaps where they have none."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.engine.examine import _restrided
from conformance.expectation import Expected
from conformance.worker.protocol import Call, Outcome, Tensor


def tensor(shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    extent = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    return Tensor("float32", shape, strides, 0, np.zeros(extent, np.float32).tobytes())


@pytest.mark.parametrize(
    ("operand", "got", "accepted"),
    [
        ((2, 1), (2, 1), True),
        ((1, 2), (1, 2), True),
        ((2, 1), (1, 2), False),  # the operands are row-major
        ((0, 1), (1, 2), True),  # one is expanded: it has no order
        ((0, 1), (3, 1), False),  # gaps are never due
    ],
)
def test_strides(operand: tuple[int, int], got: tuple[int, int], accepted: bool) -> None:
    plain = operand if 0 not in operand else (2, 1)
    call = Call("add", "add", (tensor((2, 2), operand), tensor((2, 2), plain)))
    outcome = Outcome("ok", (tensor((2, 2), got),))
    expected = Expected((("float32", (2, 2)),), strides=(plain,))
    assert (_restrided(call, outcome, expected) is None) == accepted
