"""Calls of an aten overload over element types, layouts and parameters, as torch allows them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import torch

from conformance.dtypes import dtype
from metal_ops.launch._views import View, row_major

TYPES = "float32 float16 bfloat16 complex64 complex32 int64 int32 int16 int8 uint8 bool".split()
COMPARABLE = [*TYPES, "uint16", "uint32", "uint64", "float8_e4m3fn"]
_SMALLER = {"int64": "int32", "int32": "int16", "int16": "int8", "int8": "bool", "uint8": "bool"}

_VALUES: dict[str, tuple[Any, ...]] = {
    "alpha": (1, -1, 2),
    "approximate": ("none", "tanh"),
    "decimals": (0, 1),
    "dim": (0,),
    "exponent": (2, 3, -1.0, 0.5, -0.5, 2.5, 1j),
    "is_result": (False,),
    "max": (None, 1),
    "min": (None, 1),
    "n": (0, 1, 2),
    "rounding_mode": (None, "floor", "trunc"),
    "self_is_result": (False,),
    "weight": (0.5,),
}
"""Parameters of aten overloads by name; all others are 0.5."""

_LARGE = 1 << 18
_RUNS = (3, 16)
Layout = tuple[tuple[int, ...], tuple[int, ...] | None]
_SMALL: Layout = ((4, 2), None)
_GAPS: Layout = ((4, 2), (9, 2))
_SCALAR: Layout = ((), None)
_ROW: Layout = ((2,), None)
WHOLE: dict[int, list[tuple[Layout, ...]]] = {
    1: [(_SMALL, _SMALL), (((_LARGE,), None),) * 2, ((_RUNS, None), (_RUNS, (99, 1))), (_SMALL, _GAPS)],
    2: [
        (_SMALL,) * 3,
        (((_LARGE,), None),) * 3,
        ((_RUNS, None), (_RUNS, (99, 1)), (_RUNS, None)),
        (_SMALL, _GAPS, _SMALL),
    ],
}
"""By number of operands: layouts (shape and strides) of the result and of each."""
BROADCAST: list[tuple[Layout, ...]] = [
    (_SMALL, _SCALAR, _SMALL),
    (_SMALL, _SMALL, _SCALAR),
    (_SMALL, _ROW, _SMALL),
    (_SMALL, _SMALL, _ROW),
    (_SMALL, _GAPS, _SCALAR),
    (_SMALL, _SCALAR, _GAPS),
]
_BLOCK = (1 << 18, 1, 1 << 9)
HALVED: list[tuple[Layout, ...]] = [
    (((4,), None), ((8,), None)),
    (((4, 16), (16, 1)), ((8, 16), (99, 1))),
    (((2, 2), None), ((4, 2), (9, 2))),
    (((1, 4, 2), (8, 1, 4)), ((2, 4, 2), (8, 1, 4))),
    (((1, 1 << 9, 1 << 9), _BLOCK), ((2, 1 << 9, 1 << 9), _BLOCK)),
]
"""Layouts where the operand's first dimension is twice the result's."""

_MEMORY = np.zeros(16 * _LARGE, np.uint8)


def tensor(layout: Layout, name: str) -> View:
    """A tensor of zeros; they all share their memory, which nobody writes to."""
    shape, strides = layout
    return View(dtype(name), shape, strides if strides is not None else row_major(shape), 0, _MEMORY)


def calls(overload: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Positional arguments and keywords of calls that torch allows, as a launch takes them."""
    op = _overload(overload)
    operands = [a for a in op._schema.arguments if str(a.type) == "Tensor" and not a.is_out and a.name != "buffer"]
    others = [a.name for a in op._schema.arguments if str(a.type) != "Tensor"]
    if "dim" in others and len(operands) > 1:
        return  # the gradient of glu, whose kernels are none of an elementwise family
    layouts = HALVED if "dim" in others else _layouts(len(operands), op)
    for values in itertools.product(*(_VALUES.get(name, (0.5,)) for name in others)):
        parameters = dict(zip(others, values, strict=True))
        for chosen, types in itertools.product(layouts, _type_choices(len(operands))):
            numbers = tuple(shape == () for shape, _ in chosen[1:])
            result = _result_type(overload, types, numbers, tuple(parameters.items()))
            if result is not None:
                yield from _with_results(op, types, chosen, result, parameters)


def _layouts(numbers: int, op: Any) -> list[tuple[Layout, ...]]:
    """Those that the overload takes: it does not broadcast the operand that it writes to, or whose layout it copies."""
    names = [a.name for a in op._schema.arguments]
    in_place = op._schema.is_mutable and not any(a.is_out for a in op._schema.arguments)
    return WHOLE[numbers] if numbers == 1 or in_place or "buffer" in names else WHOLE[numbers] + BROADCAST


def _type_choices(numbers: int) -> list[tuple[str, ...]]:
    """Types of the operands: alike, and with a second one that promotes to the first, either way round."""
    if numbers == 1:
        return [(name,) for name in TYPES]
    alike = [(name, name) for name in COMPARABLE]
    mixed = [(name, _SMALLER.get(name, "uint8")) for name in COMPARABLE if name != "bool"]
    return alike + mixed + [(second, first) for first, second in mixed]


def _overload(name: str) -> Any:
    base, _, kind = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), kind or "default")


@cache
def _result_type(
    overload: str, types: tuple[str, ...], numbers: tuple[bool, ...], parameters: tuple[tuple[str, Any], ...]
) -> str | None:
    """The type of the result by torch's rules; None if torch refuses the call."""
    op = _overload(overload)
    packet = getattr(torch.ops.aten, overload.partition(".")[0])
    shapes = [() if number else (8,) for number in (*numbers, numbers[0])]  # a buffer, last, is like the first
    tensors = [
        torch.empty(shape, dtype=getattr(torch, name), device="meta")
        for shape, name in zip(shapes, (*types, types[0]), strict=True)
    ]
    given, known = iter(tensors), dict(parameters)
    arguments = [
        (a, next(given) if str(a.type) == "Tensor" else known[a.name]) for a in op._schema.arguments if not a.is_out
    ]
    try:
        torch.result_type(tensors[0], tensors[len(types) - 1])  # what torch computes for meta promotes more than this
        result = packet(
            *(value for a, value in arguments if not a.kwarg_only),
            **{a.name: value for a, value in arguments if a.kwarg_only},
        )
    except (RuntimeError, TypeError, ValueError, LookupError, AssertionError):
        return None
    first = result[0] if isinstance(result, tuple) else result
    return str(first.dtype).removeprefix("torch.")


def _with_results(
    op: Any, types: tuple[str, ...], layouts: tuple[Layout, ...], result: str, parameters: dict[str, Any]
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The call with results of its own type and of others to which torch casts it."""
    outs = [a for a in op._schema.arguments if a.is_out]
    casts = [name for name in _casts(result, len(types)) if len(outs) == 1 and _stores(op, types, name)]
    names = [result, *casts]
    for name in names:
        operands = map(tensor, (*layouts[1:], layouts[1]), (*types, types[0]))
        arguments = [
            next(operands) if str(a.type) == "Tensor" else parameters[a.name]
            for a in op._schema.arguments
            if not a.is_out and not a.kwarg_only
        ]
        keywords = {a.name: parameters[a.name] for a in op._schema.arguments if a.kwarg_only and not a.is_out}
        yield tuple(arguments), {**keywords, **{a.name: tensor(layouts[0], name) for a in outs}}


@cache
def _stores(op: Any, types: tuple[str, ...], result: str) -> bool:
    """Whether an overload casts what it stores to a type; the CPU tells, whose rules all backends share."""
    arguments = [a for a in op._schema.arguments if not a.is_out]
    tensors = iter([torch.empty(0, dtype=getattr(torch, name)) for name in (*types, types[0])])
    given = [(a, next(tensors) if str(a.type) == "Tensor" else _VALUES.get(a.name, (0.5,))[-1]) for a in arguments]
    (out,) = [a.name for a in op._schema.arguments if a.is_out]
    try:
        op(
            *(value for a, value in given if not a.kwarg_only),
            **{a.name: value for a, value in given if a.kwarg_only},
            **{out: torch.empty(0, dtype=getattr(torch, result))},
        )
    except (RuntimeError, TypeError, ValueError) as error:
        return re.match("Found dtype|Expected out tensor to have dtype|.*non-boolean outputs", str(error)) is None
    return True


def _casts(result: str, numbers: int) -> list[str]:
    """Other types to which torch casts a result: a real and a complex one, or one for an op on two operands."""
    kinds = (("float32", "float16"), ("complex64", "complex32"))
    allowed = [
        [name for name in kind if name != result and torch.can_cast(getattr(torch, result), getattr(torch, name))]
        for kind in kinds
    ]
    casts = [names[0] for names in allowed if names]
    return casts if numbers == 1 else casts[:1]
