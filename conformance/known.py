"""Known failures of released builds, as data: TOML files that other packages bring by entry points.

An entry says where a build is wrong, with evidence, and gives witnesses: inputs that fail. What an entry covers does
not count as new; when none of its witnesses fails any more, it is reported as fixed. A file is a list of tables::

    [[failure]]
    id = "erfinv-tail"                  # unique
    build = "2.15.*"                    # glob over the build's version
    device = ["air", "mps"]             # names, or one name
    op = "erfinv"                       # or a list of ops: an entry for each, its id with the op's name behind it
    dtypes = ["float32"]
    properties = ["forward"]            # optional: all
    property = "backward"               # optional: covers gradients and nothing else; without it, no gradient
    operand = 0                         # optional, with property: of this operand only
    kinds = ["value"]                   # optional: kinds of finding, see conformance.findings; of gradients "gradient"
    where = [[0.9, 1.0], ["nan", "nan"]]  # optional: closed intervals of the first tensor's element, broadcast
    others = ["float16", "float"]       # optional: an element type that another tensor has than the first, or the kind
                                        # of Python number that a parameter is: int, float or complex; or "mixed",
                                        # where the operands are not all tensors of one type
    out = ["float16"]                   # optional: element types that the result is stored in, provided as out=
    params = {approximate = ["tanh"]}   # optional: the values a parameter may have
    when = "has_nan"                    # optional: a predicate of the whole case, see PREDICATES
    repeats = false                     # optional: it depends on memory that nobody set, so that a pass tells nothing
    class = "device-only"               # or "shared"
    evidence = "..."                    # text with figures
    link = "https://..."                # optional
    witness = [0.95, "0x3f733333", {shape = [1, 3], values = ["nan", 0, 1], params = {dim = 1}}]
                                        # a complex number is a pair [real, imaginary]; few numbers repeat
    witness = [{tensors = [{values = [1]}, {values = [0, 1], dtype = "bool"}], gradient = [2, 0]}]
                                        # several operands; an incoming gradient other than ones
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import inf
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from conformance.case import Case
from conformance.dtypes import BY_NAME
from conformance.errors import UsageError
from conformance.findings import KINDS, RESULT, Part
from conformance.registry import loaded
from conformance.witness import KEYS, TENSOR_KEYS, tensors_of

FailureClass = Literal["device-only", "shared"]
Bools = NDArray[np.bool_]

PREDICATES: dict[str, Callable[[NDArray[Any]], bool]] = {
    "has_nan": lambda x: bool(np.isnan(x).any()),
    "has_inf": lambda x: bool(np.isinf(x).any()),
    "not_finite": lambda x: not bool(np.isfinite(x).all()),
    "long": lambda x: x.size >= 4096,
}
"""Conditions on the first tensor as a whole, for ops whose elements depend on each other."""

_NUMBERS = ("int", "float", "complex")
_MIXED = "mixed"

_REQUIRED = ("id", "build", "device", "op", "dtypes", "class", "evidence", "witness")
_OF_CASE = ("properties", "property", "operand", "kinds", "where", "others", "params", "when", "out")
_OPTIONAL = (*_OF_CASE, "link", "repeats")


@dataclass(frozen=True)
class Entry:
    """One known failure; the fields are those of the file."""

    id: str
    build: str
    devices: tuple[str, ...]
    op: str
    dtypes: tuple[str, ...]
    failure_class: FailureClass
    evidence: str
    witness: tuple[Any, ...]
    properties: tuple[str, ...] | None = None
    kinds: tuple[str, ...] = ("value",)
    where: tuple[tuple[float, float], ...] | None = None
    params: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    when: str | None = None
    link: str | None = None
    of_backward: bool = False
    operand: int | None = None
    others: tuple[str, ...] | None = None
    out: tuple[str, ...] | None = None
    repeats: bool = True

    def covers(self, case: Case, kind: str, first: NDArray[Any] | None, part: Part = RESULT) -> Bools | bool:
        """Which elements of ``part`` this entry covers: a mask of the first tensor's shape, or all or none.

        ``first`` is the first tensor upcast exactly, None if the case has none.
        """
        if (case.op, kind in self.kinds, case.dtype in self.dtypes) != (self.op, True, True):
            return False
        if self.of_backward != (case.property == "backward" or part.kind == "gradient"):
            return False
        if self.operand is not None and part != Part("gradient", self.operand):
            return False
        if self.properties is not None and case.property not in self.properties:
            return False
        if self.others is not None and not set(self.others) & _types_of_others(case):
            return False
        if self.out is not None and (case.out is None or case.out.dtype not in self.out):
            return False
        if any(case.params.get(name) not in allowed for name, allowed in self.params.items()):
            return False
        if self.when is not None and (first is None or not PREDICATES[self.when](first)):
            return False
        if self.where is None:
            return True
        return False if first is None else _within(first, self.where)


def _types_of_others(case: Case) -> set[str]:
    """The element types of the tensors but the first, and the types of the parameters; whether operands are mixed."""
    types = {spec.dtype for spec in case.tensors[1:]}
    numbers = {type(value).__name__ for value in case.params.values()}
    mixed = {_MIXED} if types != {spec.dtype for spec in case.tensors[:1]} else set()
    return types | numbers | mixed


def entries(build: str, device: str) -> list[Entry]:
    """The known failures of ``build`` on ``device``, from all entry points.

    Raises
    ------
    UsageError
        If a file is no TOML or an entry is malformed, or an id occurs twice; the message names file and entry.
    """
    found: dict[str, Entry] = {}
    for source in loaded("known").values():
        for path in source():
            for entry in parse(path.read_text(encoding="utf-8"), path.name):
                if entry.id in found:
                    raise UsageError(f"{path.name}: known failure {entry.id!r} is listed twice")
                found[entry.id] = entry
    return [e for e in found.values() if fnmatchcase(build, e.build) and device in e.devices]


def parse(text: str, name: str) -> list[Entry]:
    """Read one file's text; ``name`` is for messages. Raises UsageError for whatever is not as documented."""
    try:
        described = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}: no TOML: {error}") from None
    if set(described) - {"failure"}:
        raise UsageError.of(f"{name}: top-level keys", sorted(described), ["failure"])
    tables = enumerate(described.get("failure", []), 1)
    return [_entry(one, f"{name}: failure {number}") for number, table in tables for one in _of_each_op(table)]


def _of_each_op(table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The table itself or, where it lists ops, one for each."""
    if not isinstance(table.get("op"), list):
        return [table]
    return [{**table, "op": op, "id": f"{table.get('id')}-{op}"} for op in table["op"]]


def _entry(table: Mapping[str, Any], place: str) -> Entry:
    place = f"{place} ({table['id']})" if isinstance(table.get("id"), str) else place
    if missing := [key for key in _REQUIRED if key not in table]:
        raise UsageError(f"{place}: lacks {', '.join(missing)}")
    if unknown := sorted(set(table) - {*_REQUIRED, *_OPTIONAL}):
        raise UsageError.of(f"{place}: keys", unknown, [*_REQUIRED, *_OPTIONAL])
    _one_of(f"{place}: class", [table["class"]], get_args(FailureClass))
    _one_of(f"{place}: dtypes", table["dtypes"], BY_NAME)
    _one_of(f"{place}: others", table.get("others", []), [*BY_NAME, *_NUMBERS, _MIXED])
    _one_of(f"{place}: out", table.get("out", []), BY_NAME)
    _one_of(f"{place}: kinds", table.get("kinds", ["value"]), KINDS)
    _one_of(f"{place}: when", [table["when"]] if "when" in table else [], PREDICATES)
    for key in ("build", "op", "evidence", *(["link"] if "link" in table else [])):
        if not isinstance(table[key], str) or not table[key].strip():
            raise UsageError.of(f"{place}: {key}", table[key], "a text")
    if not isinstance(table.get("repeats", True), bool):
        raise UsageError.of(f"{place}: repeats", table["repeats"], "true or false")
    if not table["witness"]:
        raise UsageError(f"{place}: witness is empty; allowed: numbers, bit patterns, or tables with values")
    of_backward = _of_backward(table, place)
    devices = table["device"]
    entry = Entry(
        id=table["id"],
        build=table["build"],
        devices=(devices,) if isinstance(devices, str) else tuple(devices),
        op=table["op"],
        dtypes=tuple(table["dtypes"]),
        failure_class=table["class"],
        evidence=table["evidence"].strip(),
        witness=tuple(table["witness"]),
        properties=tuple(table["properties"]) if "properties" in table else None,
        kinds=tuple(table.get("kinds", ["gradient" if of_backward else "value"])),
        where=_intervals(table["where"], place) if "where" in table else None,
        params=dict(table.get("params", {})),
        when=table.get("when"),
        link=table.get("link"),
        of_backward=of_backward,
        operand=table.get("operand"),
        others=tuple(table["others"]) if "others" in table else None,
        out=tuple(table["out"]) if "out" in table else None,
        repeats=table.get("repeats", True),
    )
    _check_witness(entry, place)
    return entry


def _of_backward(table: Mapping[str, Any], place: str) -> bool:
    if "property" not in table:
        if "operand" in table:
            raise UsageError(f'{place}: operand is given without property = "backward"')
        return False
    _one_of(f"{place}: property", [table["property"]], ["backward"])
    operand = table.get("operand", 0)
    if type(operand) is not int or operand < 0:
        raise UsageError.of(f"{place}: operand", operand, "integers from 0")
    return True


def _one_of(argument: str, given: Iterable[Any], allowed: Iterable[str]) -> None:
    allowed = list(allowed)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError.of(argument, given, "a list of texts")
    for item in given:
        if item not in allowed:
            raise UsageError.of(argument, item, allowed)


def _intervals(described: Any, place: str) -> tuple[tuple[float, float], ...]:
    intervals = []
    for pair in described:
        try:
            low, high = (float(end) for end in pair)
        except (TypeError, ValueError):
            raise UsageError.of(
                f"{place}: where", pair, 'pairs [low, high] of numbers, "nan", "inf" or "-inf"'
            ) from None
        if low > high or (low != low) != (high != high):
            raise UsageError.of(f"{place}: where", pair, 'low at most high; ["nan", "nan"] for NaN')
        intervals.append((low, high))
    return tuple(intervals)


def _within(first: NDArray[Any], intervals: Sequence[tuple[float, float]]) -> Bools:
    if np.iscomplexobj(first):
        first = np.abs(first)
    mask = np.zeros(first.shape, bool)
    for low, high in intervals:
        if low != low:
            mask |= np.isnan(first)
        elif (low, high) == (-inf, inf):
            mask |= ~np.isnan(first)
        else:
            mask |= (first >= low) & (first <= high)
    return mask


def _check_witness(entry: Entry, place: str) -> None:
    for dtype in entry.dtypes:
        for witness in entry.witness:
            table = witness if isinstance(witness, Mapping) else {"values": [witness]}
            tensors = table.get("tensors", [{"values": table.get("values")}])
            for keys, allowed in ((table, KEYS), *((tensor, TENSOR_KEYS) for tensor in tensors)):
                if set(keys) - set(allowed) or not {"values", "tensors"} & set(keys):
                    raise UsageError.of(f"{place}: witness keys", sorted(keys), allowed)
            try:
                for tensor in tensors_of(table, dtype):
                    tensor.logical()
            except (TypeError, ValueError) as error:
                raise UsageError(f"{place}: witness {witness!r} is no {dtype} tensor: {error}") from None
