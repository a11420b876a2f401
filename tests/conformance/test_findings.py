from __future__ import annotations

import numpy as np
import pytest

from conformance.engine.coverage import fitted
from conformance.findings import KINDS, RESULT, Finding, Part, exception


def test_each_kind_has_an_exception_of_its_own() -> None:
    assert len({type(exception(Finding(kind, "wrong"))) for kind in KINDS}) == len(KINDS)


def test_parts_in_words() -> None:
    assert (str(RESULT), RESULT.heading) == ("result 0", "")
    assert Part("value", 1).heading == "result 1: "
    assert Part("gradient", 0).heading == "gradient of operand 0: "


@pytest.mark.parametrize(("mask", "shape", "expected"), [
    ([True, False], (2,), [True, False]),
    ([True, False], (2, 2), [[True, False], [True, False]]),
    ([[True, False], [False, False]], (2,), [True, False]),
    ([[True, False], [False, False]], (2, 1), [[True], [False]]),
    ([[True, False], [False, False]], (), True),
    (True, (2,), [True, True]),
    ([False], (0,), []),
])  # fmt: skip
def test_mask_of_what_is_summed_or_broadcast(mask: list[bool], shape: tuple[int, ...], expected: list[bool]) -> None:
    found = fitted(np.asarray(mask), shape)
    assert found is not None
    assert found.tolist() == expected


def test_mask_that_does_not_fit() -> None:
    assert fitted(np.ones(3, bool), (2,)) is None
