"""What a failure depends on, on devices that are wrong in one way each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.case import Case, TensorSpec, literal_of_bits
from conformance.engine import Checker, Effort, Unit, run_unit
from conformance.engine.features import features
from conformance.engine.tally import Failure
from conformance.layout import Layout
from conformance.script import Function, script
from conformance.values import Values

LARGE = TensorSpec("float32", (1,), values=Values("constant", params={"value": "1024"}))
GAPS = TensorSpec("float32", (4,), Layout(steps=(2,)), Values("arange", params={"start": 1}))


def sentence(device: Any, case: Case, op: int = 0) -> str:
    import tiny as plugin

    checker, judged = Checker(device), plugin.ops()[op]
    finding = checker.check(judged, case).finding
    assert finding is not None
    return features(judged, checker, Failure(case, finding, checker.class_of(judged, case, finding)))


def tiny_device(name: str) -> Any:
    import tiny as plugin

    return getattr(plugin, name)()


def test_values(tiny: Path) -> None:
    case = Case("tiny.negative", "float32", "forward", (LARGE,))
    assert sentence(tiny_device("Wrong"), case) == (
        "It depends on the values, not on the layout, the size or the element type (float16 fails too)."
    )


def test_a_number_that_another_type_lacks_tells_nothing_of_the_type(tiny: Path) -> None:
    case = Case("tiny.negative", "float32", "forward", (literal_of_bits([0x447FF001], "float32"),))
    assert "the element type" not in sentence(tiny_device("Wrong"), case)


def test_layout(tiny: Path) -> None:
    case = Case("tiny.negative", "float32", "forward", (GAPS,))
    text = sentence(tiny_device("Packed"), case)
    assert text.startswith("It depends on the layout"), text
    assert "contiguous" not in text


@pytest.mark.parametrize("values", [Values("arange", params={"start": 1}), Values("constant", params={"value": "1"})])
def test_shape_alone(tiny: Path, values: Values) -> None:
    case = Case("tiny.negative", "float32", "forward", (TensorSpec("float32", (1, 2, 1), values=values),))
    text = sentence(tiny_device("Raising"), case)
    assert "depends on the shape, not on the values" in text, text


def test_parameters_and_values_with_other_classes(tiny: Path) -> None:
    """A parameter that the op cannot do without is not spoken of."""
    case = Case("tiny.cumsum", "float32", "forward", (replace(LARGE, shape=(2,)),), {"dim": 0})
    text = sentence(tiny_device("Wrong"), case, op=2)
    assert "dim" not in text
    assert text.startswith("It depends on the values"), text


def test_large_tensors_are_not_looked_into(tiny: Path) -> None:
    case = Case("tiny.negative", "float32", "forward", (replace(LARGE, shape=(1 << 18,)),))
    assert sentence(tiny_device("Wrong"), case) == "It was met with large tensors and not looked into."


def test_failures_of_a_unit_come_with_the_sentence(tiny: Path) -> None:
    import tiny as plugin

    op = plugin.ops()[0]
    device = tiny_device("Wrong")
    whole, failure = run_unit(Unit(op.name, "float32", "forward"), op, Checker(device), "2.0", Effort(60, 1))
    assert whole.features is None
    assert failure.features is not None
    assert failure.features.startswith("It depends on the values, not on the layout")
    text = script(failure, Function("negative"), device="tiny", build=None, torch_device="cpu")
    assert "It depends on the values" in text
