"""Large tensors that repeat: one period is judged, and nothing is overlooked."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.engine.repeating import period
from conformance.op import Computation
from conformance.oracle import Exact, judge

COUNT = 1 << 17


def tiled(length: int, low: int = 0, high: int = 1000) -> np.ndarray:
    return np.resize(np.random.default_rng(1).integers(low, high, length).astype(np.float64), COUNT)


@pytest.mark.parametrize("high", [3, 1000])
def test_one_period_stands_for_all(high: int) -> None:
    x, y = tiled(509, high=high), np.array([2.0])
    found = period((x + y).astype(np.float32), (x, y))
    assert found.count == COUNT
    assert COUNT > 509 * 2 > len(found.got)
    assert np.array_equal(np.resize(found.got, COUNT), x + y)
    computation = Computation(found.inputs, ("float32",) * 2, {}, "float32", np.add)
    judgement = found.extended(judge(computation, found.got, Exact("a sum")))
    assert judgement.units.shape == (COUNT,)
    assert judgement.passed


@pytest.mark.parametrize("place", [0, 508, 509, COUNT - 1])
def test_result_that_does_not_repeat_is_judged_whole(place: int) -> None:
    x = tiled(509)
    got = x.astype(np.float32)
    got[place] += 1
    assert period(got, (x,)).count is None


def test_operands_that_repeat_differently_are_judged_whole() -> None:
    assert period(tiled(509), (tiled(509), tiled(512))).count is None


def test_small_or_several_dimensions_are_judged_whole() -> None:
    x = tiled(509)
    assert period(x[:1024], (x[:1024],)).count is None
    assert period(x.reshape(2, -1), (x.reshape(2, -1),)).count is None


def test_nan_repeats() -> None:
    x = np.resize(np.array([np.nan, 1.0, -0.0]), COUNT)
    assert len(period(x, (x,)).got) == 3
