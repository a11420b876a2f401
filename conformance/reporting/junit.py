"""A report as JUnit XML: a suite an op, a test case a property in one element type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from xml.etree import ElementTree

from conformance.record import Record, Verdict
from conformance.reporting.read import Run
from conformance.reporting.sections import facts

_OUTCOMES: dict[Verdict, str] = {
    "fail": "failure",
    "flaky": "failure",
    "crash": "error",
    "timeout": "error",
    "error": "error",
    "unsupported": "skipped",
    "known": "skipped",
}
"""The element that a verdict becomes; a listed failure is skipped, as pytest has its expected failures."""

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, escaped or not."""


def junit(run: Run) -> str:
    """The report as JUnit XML."""
    root = ElementTree.Element("testsuites", name=_text(run.title))
    for op, units in groupby(sorted(_units(run.judged), key=lambda unit: unit[0].op), key=lambda unit: unit[0].op):
        suite = ElementTree.SubElement(root, "testsuite", name=_text(op))
        if not len(root) - 1:
            _add_facts(suite, run)
        for unit in units:
            _add_case(suite, unit)
        _count(suite)
    _count(root)
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _units(records: Sequence[Record]) -> Iterator[list[Record]]:
    """Each record of a property with those of its failures, which follow it."""
    unit: list[Record] = []
    for record in records:
        if unit and not record.is_failure:
            yield unit
            unit = []
        unit.append(record)
    if unit:
        yield unit


def _add_case(suite: ElementTree.Element, unit: Sequence[Record]) -> None:
    whole, *failures = unit
    name = f"{whole.dtype}-{whole.property}" + (f"[{whole.known[0]}]" if whole.property == "witness" else "")
    case = ElementTree.SubElement(
        suite, "testcase", classname=_text(f"{whole.family}.{whole.op}"), name=_text(name), time=f"{whole.seconds:.3f}"
    )
    told = [record for record in failures if record.message] or [whole]
    message = "; ".join(record.message for record in told if record.message) or ", ".join(whole.known)
    outcome = _OUTCOMES.get(whole.verdict)
    if outcome:
        kind = whole.verdict + (f" ({whole.failure_class})" if whole.failure_class else "")
        found = ElementTree.SubElement(case, outcome, message=_text(f"{kind}: {message}"), type=_text(whole.verdict))
        found.text = "\n".join(_text(line) for record in failures for line in _lines(record)) or None
    elif whole.verdict == "fixed":
        ElementTree.SubElement(case, "system-out").text = _text(f"fixed: {message}")


def _lines(record: Record) -> Iterator[str]:
    yield f"{record.verdict} ({record.failure_class}): {record.message}"
    if record.features:
        yield record.features
    if record.script:
        yield record.script


def _add_facts(suite: ElementTree.Element, run: Run) -> None:
    properties = ElementTree.SubElement(suite, "properties")
    for name, text in facts(run):
        ElementTree.SubElement(properties, "property", name=_text(name), value=_text(text))


def _count(element: ElementTree.Element) -> None:
    """Add what readers want to know of a suite: how many cases, of which outcome, and their time."""
    cases = list(element.iter("testcase"))
    element.set("tests", str(len(cases)))
    for attribute, outcome in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(case.find(outcome) is not None for case in cases)))
    element.set("time", f"{sum(float(case.get('time', 0)) for case in cases):.3f}")


def _text(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
