"""Known failures of released builds, as data: TOML files that other packages bring by entry points.

An entry says where a build is wrong, with evidence, and gives witnesses: inputs that fail. What an entry covers does
not count as new; when none of its witnesses fails any more, it is reported as fixed. A file is a list of tables::

    [[failure]]
    id = "erfinv-tail"                  # unique
    build = "2.15.*"                    # glob over the build's version
    device = ["air", "mps"]             # names, or one name
    op = "erfinv"
    dtypes = ["float32"]
    properties = ["forward"]            # optional: all
    kinds = ["value"]                   # optional: kinds of finding, see conformance.findings
    where = [[0.9, 1.0], ["nan", "nan"]]  # optional: closed intervals of the first tensor's element
    params = {approximate = ["tanh"]}   # optional: the values a parameter may have
    when = "has_nan"                    # optional: a predicate of the whole case, see PREDICATES
    class = "device-only"               # or "shared"
    evidence = "..."                    # text with figures
    link = "https://..."                # optional
    witness = [0.95, "0x3f733333", {shape = [1, 3], values = ["nan", 0, 1], params = {dim = 1}}]
                                        # a complex number is a pair [real, imaginary]; few numbers repeat
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import inf, prod
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from conformance.case import Case, TensorSpec, literal_of_bits
from conformance.dtypes import BY_NAME
from conformance.dtypes import dtype as dtype_of
from conformance.errors import UsageError
from conformance.findings import KINDS
from conformance.formats import bits_of, component
from conformance.registry import loaded

if TYPE_CHECKING:
    from conformance.op import Op

FailureClass = Literal["device-only", "shared"]
Bools = NDArray[np.bool_]

PREDICATES: dict[str, Callable[[NDArray[Any]], bool]] = {
    "has_nan": lambda x: bool(np.isnan(x).any()),
    "has_inf": lambda x: bool(np.isinf(x).any()),
    "not_finite": lambda x: not bool(np.isfinite(x).all()),
    "long": lambda x: x.size >= 4096,
}
"""Conditions on the first tensor as a whole, for ops whose elements depend on each other."""

_REQUIRED = ("id", "build", "device", "op", "dtypes", "class", "evidence", "witness")
_OPTIONAL = ("properties", "kinds", "where", "params", "when", "link")


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

    def covers(self, case: Case, kind: str, first: NDArray[Any] | None) -> Bools | bool:
        """Which elements of a case's result this entry covers: a mask of the first tensor's shape, or all or none.

        ``first`` is the first tensor upcast exactly, None if the case has none.
        """
        if (case.op, kind in self.kinds, case.dtype in self.dtypes) != (self.op, True, True):
            return False
        if self.properties is not None and case.property not in self.properties:
            return False
        if any(case.params.get(name) not in allowed for name, allowed in self.params.items()):
            return False
        if self.when is not None and (first is None or not PREDICATES[self.when](first)):
            return False
        if self.where is None:
            return True
        return False if first is None else _within(first, self.where)

    def cases(self, op: Op, dtype: str) -> list[Case]:
        """Build the witnesses as cases: the bare numbers together in one tensor, each table as one of its own."""
        numbers = [number for number in self.witness if not isinstance(number, Mapping)]
        tables = [table for table in self.witness if isinstance(table, Mapping)]
        fixed = {**op.default_params, **{name: allowed[0] for name, allowed in self.params.items()}}
        cases = [Case(op.name, dtype, "witness", (_tensor(dtype, numbers, None),), fixed)] if numbers else []
        for table in tables:
            tensor = _tensor(dtype, table["values"], table.get("shape"))
            cases.append(Case(op.name, dtype, "witness", (tensor,), {**fixed, **table.get("params", {})}))
        return cases


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
    return [_entry(table, f"{name}: failure {number}") for number, table in enumerate(described.get("failure", []), 1)]


def _entry(table: Mapping[str, Any], place: str) -> Entry:
    place = f"{place} ({table['id']})" if isinstance(table.get("id"), str) else place
    if missing := [key for key in _REQUIRED if key not in table]:
        raise UsageError(f"{place}: lacks {', '.join(missing)}")
    if unknown := sorted(set(table) - {*_REQUIRED, *_OPTIONAL}):
        raise UsageError.of(f"{place}: keys", unknown, [*_REQUIRED, *_OPTIONAL])
    _one_of(f"{place}: class", [table["class"]], get_args(FailureClass))
    _one_of(f"{place}: dtypes", table["dtypes"], BY_NAME)
    _one_of(f"{place}: kinds", table.get("kinds", ["value"]), KINDS)
    _one_of(f"{place}: when", [table["when"]] if "when" in table else [], PREDICATES)
    for key in ("build", "op", "evidence", *(["link"] if "link" in table else [])):
        if not isinstance(table[key], str) or not table[key].strip():
            raise UsageError.of(f"{place}: {key}", table[key], "a text")
    if not table["witness"]:
        raise UsageError(f"{place}: witness is empty; allowed: numbers, bit patterns, or tables with values")
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
        kinds=tuple(table.get("kinds", ["value"])),
        where=_intervals(table["where"], place) if "where" in table else None,
        params=dict(table.get("params", {})),
        when=table.get("when"),
        link=table.get("link"),
    )
    _check_witness(entry, place)
    return entry


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


def _tensor(dtype: str, numbers: Sequence[Any], shape: Sequence[int] | None) -> TensorSpec:
    described = dtype_of(dtype)
    count = component(described).count
    repeats = prod(shape) // len(numbers) if shape is not None and numbers else 1
    elements = [*numbers] * max(repeats, 1)
    bits = [bits_of(part, described) for number in elements for part in _parts(number, count)]
    return literal_of_bits(bits, dtype, None if shape is None else tuple(shape))


def _parts(number: Any, count: int) -> Sequence[Any]:
    """The components of an element: of a complex one a pair, or a real number."""
    if isinstance(number, list):
        if len(number) != count:
            raise ValueError(f"{number} has {len(number)} parts, an element has {count}")
        return number
    return [number, *[0] * (count - 1)]


def _check_witness(entry: Entry, place: str) -> None:
    for dtype in entry.dtypes:
        for witness in entry.witness:
            table = witness if isinstance(witness, Mapping) else {"values": [witness]}
            if "values" not in table or set(table) - {"values", "shape", "params"}:
                raise UsageError.of(f"{place}: witness keys", sorted(table), ["values", "shape", "params"])
            try:
                _tensor(dtype, table["values"], table.get("shape")).logical()
            except (TypeError, ValueError) as error:
                raise UsageError(f"{place}: witness {witness!r} is no {dtype} tensor: {error}") from None
