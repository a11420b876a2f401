"""The witnesses of a known failure as cases: numbers, or tables that spell out tensors, parameters and gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from conformance.case import Case, TensorSpec, literal_of_bits, ones
from conformance.dtypes import dtype as dtype_of
from conformance.expectation import results_of
from conformance.formats import bits_of, component
from conformance.layout import Layout

if TYPE_CHECKING:
    from conformance.known import Entry
    from conformance.op import Op

KEYS = ("values", "shape", "params", "tensors", "gradient", "out_order")
"""The keys of a table; ``tensors``, for ops with several operands, is a list of tables in place of ``values``.

``out_order`` is the order in which the dimensions of a provided result lie in memory.
"""

TENSOR_KEYS = ("values", "shape", "dtype")


def witness_cases(entry: Entry, op: Op, dtype: str) -> list[Case]:
    """Build the cases: the bare numbers together in one tensor, each table as one of its own.

    An entry about the backward asks for the gradients of all operands that may have one, or of that which it names.
    """
    numbers = [number for number in entry.witness if not isinstance(number, Mapping)]
    tables: list[Mapping[str, Any]] = [{"values": numbers}] if numbers else []
    tables += [table for table in entry.witness if isinstance(table, Mapping)]
    fixed = {**op.default_params, **{name: allowed[0] for name, allowed in entry.params.items()}}
    cases = []
    for table in tables:
        params = fixed | dict(table.get("params", {}))
        case = Case(op.name, dtype, "witness", tensors_of(table, dtype), params)
        if entry.of_backward:
            case = _with_backward(entry, op, case, table)
        cases.append(case if entry.out is None else _with_out(entry.out[0], op, case, table.get("out_order", ())))
    return cases


def tensors_of(table: Mapping[str, Any], dtype: str) -> tuple[TensorSpec, ...]:
    """The tensors of a witness table, of ``dtype`` unless they say otherwise.

    Raises
    ------
    ValueError, TypeError, KeyError
        If they are none.
    """
    described = table.get("tensors", [table])
    return tuple(tensor_of(tensor.get("dtype", dtype), tensor["values"], tensor.get("shape")) for tensor in described)


def tensor_of(dtype: str, numbers: Sequence[Any], shape: Sequence[int] | None) -> TensorSpec:
    """A tensor of given numbers, which repeat if the shape has room for more; 1-D without a shape."""
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


def _with_out(dtype: str, op: Op, case: Case, order: Sequence[int]) -> Case:
    """The case with its result, of the shape that it has by itself, provided in the type ``dtype``."""
    results = results_of(op, case)
    if not results:
        raise ValueError(f"op {op.name}: the witness has no result that could be stored in {dtype}")
    return replace(case, out=replace(ones(dtype, results[0][1]), layout=Layout(order=tuple(order))))


def _with_backward(entry: Entry, op: Op, case: Case, table: Mapping[str, Any]) -> Case:
    results = results_of(op, case) or ()
    given = table.get("gradient")
    gradients = tuple(
        ones(dtype, shape) if given is None else tensor_of(dtype, given, shape) for dtype, shape in results
    )
    wanted = case.differentiable() if entry.operand is None else (entry.operand,)
    return replace(case, property="backward", requires_grad=wanted, gradients=gradients)
