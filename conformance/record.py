"""A record: one JSON line about one property of one op and element type, or about one failure of it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal

SCHEMA = 1

Verdict = Literal["pass", "fail", "crash", "timeout", "flaky", "unsupported", "known", "fixed", "error"]

BAD: tuple[Verdict, ...] = ("error", "crash", "timeout", "fail", "flaky")
"""The verdicts that make a run end with exit code 1, gravest first."""


@dataclass(frozen=True)
class Worst:
    """The largest error met: in units of the bound and in ulp, the case, and the flat index and text of its element.

    ``part`` names the result or gradient that has the element, if it is not the first result.
    """

    bound_units: float
    ulp: float
    case: dict[str, Any]
    element: int
    input: str
    part: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON, which has no infinity: ``"inf"`` stands for it."""
        described: dict[str, Any] = {
            "bound_units": _json_number(self.bound_units),
            "ulp": _json_number(self.ulp),
            "case": self.case,
            "element": self.element,
            "input": self.input,
        }
        return described | ({"part": self.part} if self.part else {})

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> Worst:
        """Read what :meth:`to_json` wrote."""
        units, in_ulp = (_number_of_json(described[name]) for name in ("bound_units", "ulp"))
        return cls(units, in_ulp, described["case"], described["element"], described["input"], described.get("part"))


@dataclass(frozen=True)
class Record:
    """One line of ``records.jsonl``; the schema beside this module documents every field."""

    op: str
    family: str
    dtype: str
    device: str
    build: str
    property: str
    verdict: Verdict
    reference: str
    bound: str
    failure_class: str | None = None
    cases: int = 0
    worst: Worst | None = None
    kernels: tuple[str, ...] = ()
    seconds: float = 0.0
    known: tuple[str, ...] = ()
    case: dict[str, Any] | None = None
    message: str | None = None
    features: str | None = None
    script: str | None = None
    notes: tuple[str, ...] = field(default=())
    helpers: Mapping[str, int] = field(default_factory=dict)
    timing: tuple[Mapping[str, Any], ...] = ()
    memory: tuple[Mapping[str, Any], ...] = ()
    work: tuple[Mapping[str, Any], ...] = ()

    @cached_property
    def is_failure(self) -> bool:
        """Whether the line is about one failure, not about a property as a whole."""
        return self.case is not None

    @cached_property
    def name(self) -> str:
        """Give op, dtype and property in one word, as file names and tests use it."""
        return f"{self.op}-{self.dtype}-{self.property}"

    def with_script(self, script: str) -> Record:
        """Give the record with the path of its script, relative to the folder of the records."""
        return replace(self, script=script)

    def to_json(self) -> dict[str, Any]:
        """Give the record as JSON; the last fields only where they say something."""
        described: dict[str, Any] = {
            "schema": SCHEMA,
            "op": self.op,
            "family": self.family,
            "dtype": self.dtype,
            "device": self.device,
            "build": self.build,
            "property": self.property,
            "verdict": self.verdict,
            "class": self.failure_class,
            "cases": self.cases,
            "worst": self.worst and self.worst.to_json(),
            "kernels": list(self.kernels),
            "seconds": round(self.seconds, 3),
            "reference": self.reference,
            "bound": self.bound,
            "known": list(self.known),
        }
        optional = {
            "case": self.case,
            "message": self.message,
            "features": self.features,
            "script": self.script,
            "notes": list(self.notes),
            "helpers": dict(self.helpers),
            "timing": list(self.timing),
            "memory": list(self.memory),
            "work": list(self.work),
        }
        return described | {key: value for key, value in optional.items() if value}

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> Record:
        """Read what :meth:`to_json` wrote, which the schema allows."""
        given = {name: value for name, value in described.items() if name not in ("schema", "class", "worst")}
        lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
        worst = described["worst"] and Worst.from_json(described["worst"])
        return cls(**{**given, **lists, "failure_class": described["class"], "worst": worst})

    def line(self) -> str:
        """Give the record as a line of JSON, with its end."""
        return json.dumps(self.to_json(), allow_nan=False) + "\n"


def _json_number(number: float) -> float | str | None:
    if math.isnan(number):
        return None
    return number if math.isfinite(number) else "inf"


def _number_of_json(number: float | str | None) -> float:
    return math.nan if number is None else float(number)


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a record, as shipped."""
    text = files("conformance").joinpath("schema", "record.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded
