"""PyTorch's type promotion: the type in which an op on several operands computes (c10/core/ScalarType.cpp).

Tensors with dimensions decide first, then those without, then Python numbers; a later class decides only if its kind is
higher (aten/src/ATen/native/TypeProperties.cpp).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from conformance.dtypes import DType, dtype
from metal_ops.launch._scalars import Number
from metal_ops.launch._views import View

DEFAULT = dtype("float32")
"""PyTorch's default type: what a Python float counts as, and what integers become where floats are computed."""
_BOOL, _LONG = dtype("bool"), dtype("int64")
_COMPLEX = {"float16": "complex32", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128"}
_REAL = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_LATE_UNSIGNED = ("uint16", "uint32", "uint64")
"""Types that promote with themselves and with real floating types only."""


@cache
def promoted(first: DType, second: DType) -> DType:
    """The smallest type that holds both, as ``torch.promote_types`` has it.

    Raises
    ------
    TypeError
        If PyTorch defines no promotion of the two.
    """
    if first == second:
        return first
    names = {first.name, second.name}
    kinds = {first.kind, second.kind}
    late = names.intersection(_LATE_UNSIGNED)
    if "float8_e4m3fn" in names or (late and kinds != {"int", "float"}):
        raise TypeError(f"PyTorch defines no promotion of {first.name} and {second.name}")
    if first.kind != second.kind and "complex" not in kinds:
        return max((first, second), key=lambda type_: ("bool", "int", "float").index(type_.kind))
    if kinds <= {"int", "bool"}:
        return _promoted_integers(first, second)
    if kinds == {"float"}:
        return _promoted_floats(first, second)
    parts = [dtype(_REAL[t.name]) if t.kind == "complex" else t for t in (first, second)]
    return complex_of(promoted(parts[0], parts[1]))


def _promoted_integers(first: DType, second: DType) -> DType:
    wider, narrower = sorted((first, second), key=lambda type_: type_.itemsize, reverse=True)
    if wider.itemsize == narrower.itemsize:  # int8 and uint8
        return dtype("int16")
    return wider


def _promoted_floats(first: DType, second: DType) -> DType:
    if first.itemsize == second.itemsize:  # float16 and bfloat16
        return dtype("float32")
    return max((first, second), key=lambda type_: type_.itemsize)


def complex_of(type_: DType) -> DType:
    """The complex type whose components hold ``type_``; a complex type is its own."""
    return type_ if type_.kind == "complex" else dtype(_COMPLEX[type_.name])


def real_of(type_: DType) -> DType:
    """The type of a complex number's components; a real type is its own."""
    return dtype(_REAL[type_.name]) if type_.kind == "complex" else type_


def _number_type(value: Number) -> DType:
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int):
        return _LONG
    return DEFAULT if isinstance(value, float) else complex_of(DEFAULT)


def result_type(operands: Iterable[View | Number], *, floating: bool = False) -> DType:
    """The common type of ``operands``; with ``floating``, integers compute in PyTorch's default type."""
    classes: list[DType | None] = [None, None, None]
    for operand in operands:
        if isinstance(operand, View):
            rank, type_ = (0 if operand.shape else 1), operand.dtype
        else:
            rank, type_ = 2, _number_type(operand)
        known = classes[rank]
        classes[rank] = type_ if known is None else promoted(known, type_)
    common: DType | None = None
    for lower in classes:
        common = _combined(common, lower) if common and lower else common or lower
    if common is None:
        raise ValueError("operands is empty: a common type needs at least one")
    return DEFAULT if floating and common.kind in ("int", "bool") else common


def _combined(higher: DType, lower: DType) -> DType:
    """What a class of operands makes of the type of the classes before it."""
    if higher.kind == "complex":
        return higher
    if higher.kind == "float":
        return complex_of(higher) if lower.kind == "complex" else higher
    if lower.kind in ("float", "complex"):
        return lower
    return promoted(higher, lower) if higher.kind == "bool" else higher
