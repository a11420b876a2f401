"""What a run consists of: the units that a selection of ops, types and properties gives, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from conformance.case import differentiable
from conformance.engine.measure import MEASURE, is_measured
from conformance.engine.unit import Unit
from conformance.errors import UsageError

if TYPE_CHECKING:
    from conformance.known import Entry
    from conformance.op import Op

WITNESS = "witness"
"""The property of known failures; it runs whenever their op and type do."""


@dataclass(frozen=True)
class Selection:
    """What to run; an empty tuple selects everything. ``ops`` are globs."""

    families: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()

    def chosen(self, ops: Sequence[Op]) -> list[Op]:
        """Give the ops selected, in the catalogue's order.

        Raises
        ------
        UsageError
            If a family, glob, type or property selects nothing; it says what there is.
        """
        _check_names("--family", self.families, {op.family for op in ops})
        for glob in self.ops:
            if not any(fnmatchcase(op.name, glob) for op in ops):
                raise UsageError.of("--op", glob, sorted(op.name for op in ops))
        _check_names("--dtype", self.dtypes, {dtype for op in ops for dtype in tested(op)})
        _check_names("--property", self.properties, {MEASURE, *(name for op in ops for name in op.properties)})
        return [
            op
            for op in ops
            if (not self.families or op.family in self.families)
            and (not self.ops or any(fnmatchcase(op.name, glob) for glob in self.ops))
        ]


def plan(ops: Sequence[Op], selection: Selection, known: Iterable[Entry] = (), *, measure: bool = False) -> list[Unit]:
    """The units of a run, in the order in which their records are written.

    With ``measure``, or where the property is selected, ops are measured, after all the rest.

    Raises
    ------
    UsageError
        If the selection is empty.
    """
    witnessed = {(entry.op, dtype) for entry in known for dtype in entry.dtypes}
    units = []
    for op in selection.chosen(ops):
        for dtype in tested(op):
            if selection.dtypes and dtype not in selection.dtypes:
                continue
            names = [name for name in op.properties if not selection.properties or name in selection.properties]
            if dtype not in op.dtypes:
                names = [name for name in names if name == "variants"]
            elif op.sweep is not None and not op.sweep(dtype):
                names = [name for name in names if name != "exhaustive"]
            if not differentiable(dtype):
                names = [name for name in names if name != "backward"]
            names += [WITNESS] if (op.name, dtype) in witnessed and selection.properties != (MEASURE,) else []
            units += [Unit(op.name, dtype, name) for name in names]
    if measure or MEASURE in selection.properties:
        units += [
            Unit(op.name, dtype, MEASURE)
            for op in selection.chosen(ops)
            if is_measured(op)
            for dtype in op.dtypes
            if not selection.dtypes or dtype in selection.dtypes
        ]
    if not units:
        raise UsageError(
            "nothing to run: no selected op has the selected element types and properties "
            f"(--family {list(selection.families)} --op {list(selection.ops)} --dtype {list(selection.dtypes)} "
            f"--property {list(selection.properties)})"
        )
    return units


def tested(op: Op) -> tuple[str, ...]:
    """All element types with which an op is tested, be it by one property only."""
    return (*op.dtypes, *(op.ladder.dtypes if op.ladder is not None else ()))


def unused(known: Iterable[Entry], ops: Sequence[Op]) -> list[str]:
    """Sentences about known failures that apply to nothing, whatever is selected: no op is tested that they name."""
    by_name = {op.name: op for op in ops}
    sentences = []
    for entry in known:
        if entry.op not in by_name:
            sentences.append(f"known failure {entry.id}: op {entry.op} is in no catalogue")
        elif missing := sorted(set(entry.dtypes) - set(tested(by_name[entry.op]))):
            sentences.append(f"known failure {entry.id}: op {entry.op} is not tested with {', '.join(missing)}")
    return sentences


def _check_names(argument: str, given: Iterable[str], allowed: set[str]) -> None:
    for name in given:
        if name not in allowed:
            raise UsageError.of(argument, name, sorted(allowed))
