"""A case: one concrete call as data, which rebuilds the same bytes on any machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import dtype as dtype_of
from conformance.formats import bits_of_array, component, hexadecimal, number_text
from conformance.layout import Layout
from conformance.values import Values, fill
from conformance.worker.protocol import Tensor

SCHEMA = 4
_READABLE = (1, 2, 3, 4)
"""Schema 2 added ``requires_grad`` and ``gradients``, and parameters that are no numbers of JSON; schema 3 ``out``;
schema 4 ``named``."""

_NO_JSON = "float"
"""JSON has no infinity and no NaN: ``{"float": "inf"}`` stands for them among the parameters."""


@dataclass(frozen=True)
class TensorSpec:
    """A tensor as a recipe: element type, logical shape, memory layout and values."""

    dtype: str
    shape: tuple[int, ...]
    layout: Layout = Layout()  # noqa: RUF009 - frozen, so sharing it is safe
    values: Values = Values("constant", params={"value": "0"})  # noqa: RUF009

    def __post_init__(self) -> None:
        dtype_of(self.dtype)
        if any(size < 0 for size in self.shape):
            raise ValueError(f"shape {self.shape} has a negative size")
        self.layout.check(self.shape)

    @property
    def numel(self) -> int:
        """How many logical elements there are."""
        return prod(self.shape)

    def logical(self) -> NDArray[Any]:
        """Give the logical values, a read-only array of ``shape``."""
        return np.broadcast_to(self._stored(), self.shape)

    def _stored(self) -> NDArray[Any]:
        stored = self.layout.stored_shape(self.shape)
        return fill(self.values, dtype_of(self.dtype), prod(stored)).reshape(stored)

    def materialise(self) -> Tensor:
        """Build the bytes: the storage with gaps and guards poisoned, and the view in it."""
        return self.layout.place(self._stored(), self.shape, dtype_of(self.dtype))

    def to_json(self) -> dict[str, Any]:
        """Give the recipe as JSON."""
        return {
            "dtype": self.dtype,
            "shape": list(self.shape),
            "layout": self.layout.to_json(),
            "values": self.values.to_json(),
        }

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> TensorSpec:
        """Read what :meth:`to_json` wrote."""
        return cls(
            str(described["dtype"]),
            tuple(int(size) for size in described["shape"]),
            Layout.from_json(described.get("layout", {})),
            Values.from_json(described["values"]),
        )


@dataclass(frozen=True)
class Case:
    """One concrete call: the op and property it belongs to, its tensors in order, its parameters by keyword.

    ``requires_grad`` has the positions of the tensors whose gradients are asked for, ``gradients`` the incoming
    gradient of each result; both are empty for a call without a backward. ``out`` is the tensor that the caller
    provides for the result, as it is before the call; None where the op makes its own. ``named`` has the keywords of
    the last tensors, for functions that take those by keyword only, or after parameters (``weight`` of ``layer_norm``).
    """

    op: str
    dtype: str
    property: str
    tensors: tuple[TensorSpec, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    requires_grad: tuple[int, ...] = ()
    gradients: tuple[TensorSpec, ...] = ()
    out: TensorSpec | None = None
    named: tuple[str, ...] = ()

    def differentiable(self) -> tuple[int, ...]:
        """Give the positions of the tensors whose element type may have a gradient."""
        return tuple(position for position, spec in enumerate(self.tensors) if differentiable(spec.dtype))

    def materialise(self) -> tuple[Tensor, ...]:
        """Build the bytes of every tensor, in order."""
        return tuple(spec.materialise() for spec in self.tensors)

    def contiguous(self) -> Case:
        """Give the same logical values, each tensor dense and row-major at offset 0."""
        tensors, gradients = (tuple(map(_contiguous, specs)) for specs in (self.tensors, self.gradients))
        out = None if self.out is None else replace(self.out, layout=Layout())
        return replace(self, tensors=tensors, gradients=gradients, out=out)

    def to_json(self) -> dict[str, Any]:
        """Give the case as JSON, versioned."""
        described: dict[str, Any] = {
            "schema": SCHEMA,
            "op": self.op,
            "dtype": self.dtype,
            "property": self.property,
            "tensors": [spec.to_json() for spec in self.tensors],
            "params": {name: _param_to_json(value) for name, value in self.params.items()},
        }
        if self.requires_grad:
            described["requires_grad"] = list(self.requires_grad)
            described["gradients"] = [spec.to_json() for spec in self.gradients]
        if self.out is not None:
            described["out"] = self.out.to_json()
        if self.named:
            described["named"] = list(self.named)
        return described

    @classmethod
    def from_json(cls, described: Any) -> Case:
        """Read what :meth:`to_json` wrote.

        Raises
        ------
        ValueError
            If it is no case of this schema version; the message says what is wrong.
        """
        if not isinstance(described, dict) or described.get("schema") not in _READABLE:
            raise ValueError(f"a case is a JSON object with schema {_READABLE}; given: {str(described)[:80]}")
        try:
            return cls(
                str(described["op"]),
                str(described["dtype"]),
                str(described["property"]),
                tuple(TensorSpec.from_json(tensor) for tensor in described["tensors"]),
                {name: _param_from_json(value) for name, value in described.get("params", {}).items()},
                tuple(int(position) for position in described.get("requires_grad", ())),
                tuple(TensorSpec.from_json(tensor) for tensor in described.get("gradients", ())),
                TensorSpec.from_json(described["out"]) if "out" in described else None,
                tuple(map(str, described.get("named", ()))),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"case lacks or mistypes a field: {error!r}") from None

    def save(self, path: Path) -> None:
        """Write the case as JSON."""
        path.write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Case:
        """Read a case file; raises ValueError if it is none, OSError if it cannot be read."""
        try:
            described = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"case file {path.name} is no JSON: {error}") from None
        return cls.from_json(described)

    def text(self) -> str:
        """Describe the case in one line, such as ``exp(float32[1] = [88.5])``."""
        arguments = by_keyword(map(_tensor_text, self.tensors), self.named)
        arguments += [f"{name}={value!r}" for name, value in self.params.items()]
        arguments += [f"out={_place_text(self.out)}"] if self.out is not None else []
        call = f"{self.op}({', '.join(arguments)})"
        if not self.requires_grad:
            return call
        incoming = ", ".join(_tensor_text(spec) for spec in self.gradients)
        return f"backward of {call} from {incoming} to operand{_listing(self.requires_grad)}"


def by_keyword(operands: Iterable[str], named: Sequence[str]) -> list[str]:
    """The arguments of a call in Python: operands in order, the last of them by the keywords ``named``."""
    texts = list(operands)
    positional = len(texts) - len(named)
    keywords = [f"{name}={text}" for name, text in zip(named, texts[positional:], strict=True)]
    return [*texts[:positional], *keywords]


def _listing(positions: Sequence[int]) -> str:
    return ("s " if len(positions) > 1 else " ") + ", ".join(map(str, positions))


def _param_to_json(value: Any) -> Any:
    return {_NO_JSON: str(value)} if isinstance(value, float) and not isfinite(value) else value


def _param_from_json(value: Any) -> Any:
    return float(value[_NO_JSON]) if isinstance(value, dict) and set(value) == {_NO_JSON} else value


def differentiable(dtype: str) -> bool:
    """Whether torch's ops have gradients in an element type."""
    described = dtype_of(dtype)
    return described.kind in ("float", "complex") and described.itemsize > 1


def ones(dtype: str, shape: tuple[int, ...]) -> TensorSpec:
    """A contiguous tensor of ones: the plainest incoming gradient."""
    return TensorSpec(dtype, shape, values=Values("constant", params={"value": "1"}))


def literal(array: NDArray[Any], dtype: str, layout: Layout | None = None) -> TensorSpec:
    """A tensor spelled out by its exact bits; ``array`` has the logical shape and ``dtype``'s NumPy type."""
    layout = layout or Layout()
    stored = array[tuple(slice(0, 1) if d in layout.expanded else slice(None) for d in range(array.ndim))]
    words = [hexadecimal(int(bits), dtype_of(dtype)) for bits in bits_of_array(stored, dtype_of(dtype))]
    return TensorSpec(dtype, array.shape, layout, Values("literal", params={"values": words}))


def literal_of_bits(bits: Sequence[int], dtype: str, shape: tuple[int, ...] | None = None) -> TensorSpec:
    """A contiguous tensor of the given bit patterns, 1-D unless ``shape`` says otherwise."""
    words = [hexadecimal(word, dtype_of(dtype)) for word in bits]
    count = len(bits) // component(dtype_of(dtype)).count
    return TensorSpec(dtype, (count,) if shape is None else shape, values=Values("literal", params={"values": words}))


def exhaustive_case(op: str, dtype: str, params: Mapping[str, Any] | None = None) -> Case:
    """All bit patterns of a type of at most 16 bits (of bool both values), in order, as one contiguous 1-D tensor.

    Raises
    ------
    ValueError
        If the type is wider.
    """
    kind = dtype_of(dtype).kind
    width = 1 if kind == "bool" else component(dtype_of(dtype)).width
    if width > 16 or kind == "complex":
        raise ValueError(f"dtype {dtype} cannot be swept exhaustively; allowed: real types of at most 16 bits")
    return _swept(op, dtype, 1 << width, Values("sweep"), params)


def stratified_cases(
    op: str, dtype: str, params: Mapping[str, Any] | None = None, *, count: int = 1 << 17, seed: int = 0
) -> list[Case]:
    """Contiguous 1-D cases that stand for all of a 32- or 64-bit type.

    ``count`` elements stratified over both signs and all exponents (bit lengths of integers), then the specials,
    all powers of two and their neighbours, integers and halves about zero and, for floats, multiples of pi/4.
    """
    layout = component(dtype_of(dtype))
    width_powers = (layout.dtype.emax - layout.dtype.emin + 1) if layout.is_float else layout.width
    recipes = [
        (1024, Values("specials", seed)),
        (6 * width_powers, Values("all_powers")),
        (4096, Values("arange", params={"start": -2048})),
        (count, Values("stratified", seed)),
    ]
    if layout.is_float:
        recipes += [
            (4096, Values("halves", params={"start": -2048})),
            (4096, Values("quarter_turns", params={"start": -2048})),
        ]
    return [_swept(op, dtype, n, values, params) for n, values in recipes]


def _swept(op: str, dtype: str, count: int, values: Values, params: Mapping[str, Any] | None) -> Case:
    return Case(op, dtype, "exhaustive", (TensorSpec(dtype, (count,), values=values),), dict(params or {}))


def _contiguous(spec: TensorSpec) -> TensorSpec:
    expanded = spec.layout.expanded
    if not expanded:
        return replace(spec, layout=Layout())
    repeated = {"of": spec.values.to_json(), "shape": list(spec.shape), "along": list(expanded)}
    return replace(spec, layout=Layout(), values=Values("repeated", params=repeated))


def _tensor_text(spec: TensorSpec) -> str:
    return f"{_place_text(spec)} = {values_text(spec)}"


def _place_text(spec: TensorSpec) -> str:
    """Element type, shape and layout."""
    shape = "x".join(map(str, spec.shape)) or "scalar"
    head = f"{spec.dtype}[{shape}]"
    if not spec.layout.is_contiguous:
        head += f" strides {spec.layout.strides(spec.shape)}"
    if spec.layout.offset:
        head += f" offset {spec.layout.offset}"
    return head


def values_text(spec: TensorSpec, limit: int = 16) -> str:
    """Give the values in words: the numbers if there are few, else the recipe."""
    dtype = dtype_of(spec.dtype)
    if spec.numel <= limit:
        bits = bits_of_array(spec.logical(), dtype)
        return "[" + ", ".join(number_text(int(word), dtype) for word in bits) + "]"
    described = spec.values.to_json()
    pattern = described.pop("pattern")
    if pattern == "literal":
        return f"{spec.numel} numbers, {np.count_nonzero(spec.logical() != 0)} of them not 0"
    return f"{pattern}({', '.join(f'{key}={value}' for key, value in described.items())})"


def element_text(case: Case, element: int, shape: tuple[int, ...]) -> str:
    """The operands at one element of a result of ``shape``, as numbers and bits; the case in words if they have none.

    Operands, and incoming gradients, whose shape broadcasts to that of the result have one.
    """
    texts = []
    for spec in (*case.tensors, *case.gradients):
        try:
            numbers = np.broadcast_to(spec.logical(), shape)
        except ValueError:
            return case.text()
        dtype = dtype_of(spec.dtype)
        bits = bits_of_array(numbers[np.unravel_index(element, shape)], dtype)
        texts.append(" ".join(f"{number_text(int(word), dtype)} ({hexadecimal(int(word), dtype)})" for word in bits))
    return ", ".join(texts)
