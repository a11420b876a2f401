"""What can be wrong with a call, by kind, and an exception for each kind.

Each kind raises a class of its own: Hypothesis shrinks failures of different classes apart, so that a wrong value
never slips into a crash while it shrinks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

KINDS: dict[str, str] = {
    "value": "an element of a result is outside its bound",
    "gradient": "an element of an operand's gradient is outside its bound",
    "result": "the results' or gradients' number, shapes, strides or element types are wrong",
    "raised": "an error where there should be none, or none where there should be one",
    "diagnostics": "the device itself found an access that is not allowed",
    "guard": "memory beside a tensor, or an operand, was written to",
    "layout": "the same values laid out differently give other bits",
    "crash": "the process that held the device died",
    "timeout": "the call did not return in time",
}
"""The kinds of finding, with their meaning."""


OF_ELEMENTS = ("value", "gradient")
"""The kinds that are about single elements judged by a bound."""


@dataclass(frozen=True)
class Part:
    """A tensor that a call gives: a result by its number, or the gradient of an operand by the operand's."""

    kind: Literal["value", "gradient"]
    position: int

    def __str__(self) -> str:
        return f"gradient of operand {self.position}" if self.kind == "gradient" else f"result {self.position}"

    @property
    def heading(self) -> str:
        """What a sentence about the part begins with: nothing for the first result, which is what most ops have."""
        return "" if self == RESULT else f"{self}: "


RESULT = Part("value", 0)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: its kind, a sentence, and for elements the part and the flat index of the worst one."""

    kind: str
    message: str
    element: int | None = None
    part: Part = RESULT


class Failing(AssertionError):  # noqa: N818 - a state of a case, not an error
    """A case failed; raised only as one of its subclasses, one for each kind."""


def exception(finding: Finding) -> Failing:
    """Make the exception of the finding's kind."""
    return _CLASSES[finding.kind](finding.message)


_CLASSES: dict[str, type[Failing]] = {
    kind: type(f"Failing{kind.capitalize()}", (Failing,), {"__doc__": meaning, "kind": kind})
    for kind, meaning in KINDS.items()
}
