"""What a kernel says of itself: its arguments by name, struct fields, thread positions and limits, from AIR metadata.

Launch code packs parameters by field name, never by a counted offset, so a build that moves a field still works and
a build that drops one is an error that names it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from metal_ops.air.archive import ArchiveError

_SCALARS: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(np.uint8),
    "char": np.dtype(np.int8),
    "uchar": np.dtype(np.uint8),
    "short": np.dtype(np.int16),
    "ushort": np.dtype(np.uint16),
    "int": np.dtype(np.int32),
    "uint": np.dtype(np.uint32),
    "long": np.dtype(np.int64),
    "ulong": np.dtype(np.uint64),
    "half": np.dtype(np.float16),
    "bfloat": np.dtype(ml_dtypes.bfloat16),
    "float": np.dtype(np.float32),
}
_SYNONYMS = {"int8_t": "char", "uint8_t": "uchar", "int16_t": "short", "uint16_t": "ushort", "int32_t": "int"}
_SYNONYMS |= {"uint32_t": "uint", "int64_t": "long", "uint64_t": "ulong", "size_t": "ulong", "bfloat16_t": "bfloat"}


@dataclass(frozen=True)
class Field:
    """A member of a parameter struct: ``offset`` and ``size`` in bytes; ``count`` is 0 or an array's length."""

    name: str
    type_name: str
    offset: int
    size: int
    count: int
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel, in the order of the function's parameters.

    ``kind`` is ``buffer`` or ``indirect_buffer``, else the thread position or size that the hardware supplies
    ("thread_position_in_grid"). ``location`` is the buffer index; ``address_space`` is 1 device, 2 constant,
    3 threadgroup (which has an index space of its own). ``size`` is the bytes of one element of ``type_name``.
    """

    name: str
    kind: str
    type_name: str
    location: int = -1
    address_space: int = 0
    writable: bool = False
    size: int = 0
    fields: tuple[Field, ...] = ()

    @property
    def is_buffer(self) -> bool:
        """Whether the caller binds memory to it."""
        return self.kind in ("buffer", "indirect_buffer")

    def pack(self, value: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Lay out ``value`` as the bytes this argument expects.

        A struct takes a mapping from field name to value (every field must be given), a vector or array a sequence,
        a scalar a number. Raises ValueError naming the argument and the field.
        """
        out = np.zeros(self.size, np.uint8)
        if self.fields:
            _pack_struct(self.name, self.fields, value, out)
        else:
            _pack_plain(self.name, self.type_name, value, out)
        return out


def _pack_struct(where: str, fields: Sequence[Field], value: Any, out: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
    if not isinstance(value, Mapping):
        raise ValueError(f"argument {where!r} is a struct: give a mapping of its fields, not {type(value).__name__}")
    names = {field.name for field in fields}
    if set(value) != names:
        missing, extra = sorted(names - set(value)), sorted(set(value) - names)
        raise ValueError(f"argument {where!r}: missing fields {missing}, unknown fields {extra}")
    for field in fields:
        part = out[field.offset : field.offset + field.size * max(field.count, 1)]
        inner = field.fields
        if len(inner) == 1 and inner[0].name == "__elems":  # metal::array<T, N> is a struct of one array
            _pack_array(f"{where}.{field.name}", inner[0].type_name, value[field.name], part)
        elif inner:
            _pack_struct(f"{where}.{field.name}", inner, value[field.name], part)
        elif field.count:
            _pack_array(f"{where}.{field.name}", field.type_name, value[field.name], part)
        else:
            _pack_plain(f"{where}.{field.name}", field.type_name, value[field.name], part)


def _pack_array(where: str, type_name: str, value: Any, out: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
    """Write a sequence; a shorter one leaves the rest zero, as the host's value-initialised arrays do."""
    dtype = scalar_type(type_name)
    values = _convert(where, dtype, value)
    if values.nbytes > out.nbytes:
        raise ValueError(f"argument {where!r} holds {out.nbytes // dtype.itemsize} of {type_name}, given {values.size}")
    out[: values.nbytes] = values.view(np.uint8)


def _pack_plain(where: str, type_name: str, value: Any, out: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
    match = re.fullmatch(r"(\w+?)([234])?", type_name)
    if match is None:
        raise ValueError(f"argument {where!r} has type {type_name!r}, which has no plain layout")
    dtype, lanes = scalar_type(match[1]), int(match[2] or 1)
    values = _convert(where, dtype, value)
    if values.size != lanes:
        raise ValueError(f"argument {where!r} of type {type_name} takes {lanes} value(s), given {values.size}")
    out[: values.nbytes] = values.view(np.uint8)  # a 3-vector takes the room of 4: the rest stays zero


def _convert(where: str, dtype: np.dtype[Any], value: Any) -> np.ndarray[Any, Any]:
    try:
        given = np.atleast_1d(np.asarray(value)).ravel()
    except ValueError as error:
        raise ValueError(f"argument {where!r}: {error}") from None
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if given.size == 0:
            given = given.astype(dtype)  # an empty list is float64 to NumPy
        if given.dtype.kind not in "iub" or any(not info.min <= int(item) <= info.max for item in given):
            raise ValueError(f"argument {where!r} takes {dtype.name} from {info.min} to {info.max}, given {value!r}")
    elif not np.can_cast(given.dtype, np.float64):
        raise ValueError(f"argument {where!r} takes {dtype.name}, given {value!r}")
    return np.ascontiguousarray(given, dtype)


def scalar_type(name: str) -> np.dtype[Any]:
    """The NumPy type of a Metal scalar type's name; raises ValueError naming what is known."""
    try:
        return _SCALARS[_SYNONYMS.get(name, name)]
    except KeyError:
        raise ValueError(f"Metal type {name!r} is no scalar type; known: {', '.join(_SCALARS)}") from None


@dataclass(frozen=True)
class Signature:
    """A kernel's function name, arguments and the largest threadgroup it may be launched with (threads)."""

    name: str
    arguments: tuple[Argument, ...]
    max_threads: int

    def argument(self, name: str) -> Argument:
        """The argument called ``name``; raises ValueError listing those there are."""
        for argument in self.arguments:
            if argument.name == name:
                return argument
        raise ValueError(f"kernel {self.name!r} has no argument {name!r}; it has {[a.name for a in self.arguments]}")


# A pipeline without an explicit limit allows the hardware's 1,024 threads a group (Metal feature set tables).
_HARDWARE_MAX_THREADS = 1024

_NODE = re.compile(r"^(![\w.]+) = (?:distinct )?!\{(.*)\}$", re.MULTILINE)
_ITEM = re.compile(r'!"((?:[^"\\]|\\[0-9A-Fa-f]{2}|\\\\)*)"|(![0-9]+)|i\d+ (-?\d+)|ptr @("[^"]+"|[\w.$-]+)|(null)')


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), text)


def _nodes(ir: str) -> dict[str, list[str | int]]:
    """Every metadata node of a printed module: strings stay strings, integers ints, references "!n"."""
    nodes: dict[str, list[str | int]] = {}
    for match in _NODE.finditer(ir):
        items: list[str | int] = []
        for item in _ITEM.finditer(match[2]):
            string, reference, number, function, _ = item.groups()
            if string is not None:
                items.append(_unescape(string))
            elif number is not None:
                items.append(int(number))
            elif function is not None:
                items.append(function.strip('"'))
            else:
                items.append(reference or "")
        nodes[match[1]] = items
    return nodes


def _fields(nodes: Mapping[str, list[str | int]], reference: str) -> tuple[Field, ...]:
    """Decode an ``air.struct_type_info`` node: runs of (offset, size, array length, type, name), nested info before."""
    items, fields, position = nodes[reference], [], 0
    inner: tuple[Field, ...] = ()
    while position < len(items):
        if items[position] == "air.struct_type_info":
            inner = _fields(nodes, str(items[position + 1]))
            position += 2
            continue
        if isinstance(items[position], str):  # other annotations (indirect argument ids) carry one value
            position += 2
            continue
        offset, size, count, type_name, name = items[position : position + 5]
        fields.append(Field(str(name), str(type_name), int(offset), int(size), int(count), inner))
        inner, position = (), position + 5
    return tuple(fields)


def _argument(nodes: Mapping[str, list[str | int]], reference: str) -> Argument:
    items = nodes[reference]
    kind = str(items[1]).removeprefix("air.")

    def after(key: str, default: int | str) -> int | str:
        return items[items.index(key) + 1] if key in items else default

    name, type_name = str(after("air.arg_name", "")), str(after("air.arg_type_name", ""))
    if kind not in ("buffer", "indirect_buffer"):
        return Argument(name, kind, type_name)
    info = str(after("air.struct_type_info", ""))
    return Argument(
        name=name,
        kind=kind,
        type_name=type_name,
        location=int(after("air.location_index", -1)),
        address_space=int(after("air.address_space", 1)),
        writable="air.read_write" in items or "air.write" in items,
        size=int(after("air.buffer_size", 0)) or int(after("air.arg_type_size", 0)),
        fields=_fields(nodes, info) if info else (),
    )


def read_signature(ir: str) -> Signature:
    """Read the signature of the one kernel of a printed AIR module.

    Raises :class:`ArchiveError` if the module declares no kernel or its metadata is not of the known form.
    """
    try:
        nodes = _nodes(ir)
        kernel = nodes[str(nodes["!air.kernel"][0])]
        arguments = tuple(_argument(nodes, str(item)) for item in nodes[str(kernel[2])])
        limit = _HARDWARE_MAX_THREADS
        for attribute in kernel[3:]:
            items = nodes[str(attribute)]
            if items[0] == "air.max_work_group_size":
                limit = int(items[1])
        return Signature(str(kernel[0]), arguments, limit)
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise ArchiveError(f"module has no readable air.kernel metadata: {error}") from error
