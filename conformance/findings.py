"""What can be wrong with a call, by kind, and an exception for each kind.

Each kind raises a class of its own: Hypothesis shrinks failures of different classes apart, so that a wrong value
never slips into a crash while it shrinks.
"""

from __future__ import annotations

from dataclasses import dataclass

KINDS: dict[str, str] = {
    "value": "an element is outside its bound",
    "result": "the results' number, shapes, strides or element types are wrong",
    "raised": "an error where there should be none, or none where there should be one",
    "diagnostics": "the device itself found an access that is not allowed",
    "guard": "memory beside a tensor, or an operand, was written to",
    "layout": "the same values laid out differently give other bits",
    "crash": "the process that held the device died",
    "timeout": "the call did not return in time",
}
"""The kinds of finding, with their meaning."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: its kind, a sentence, and for elements the flat index of the worst one."""

    kind: str
    message: str
    element: int | None = None


class Failing(AssertionError):  # noqa: N818 - a state of a case, not an error
    """A case failed; raised only as one of its subclasses, one for each kind."""


def exception(finding: Finding) -> Failing:
    """Make the exception of the finding's kind."""
    return _CLASSES[finding.kind](finding.message)


_CLASSES: dict[str, type[Failing]] = {
    kind: type(f"Failing{kind.capitalize()}", (Failing,), {"__doc__": meaning, "kind": kind})
    for kind, meaning in KINDS.items()
}
