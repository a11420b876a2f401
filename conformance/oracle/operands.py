"""Operands and scalar parameters as an op sees them: converted to the type that torch promotes them to.

Integers and bool become floats by one rounding to float32, the type PyTorch's kernels convert in, then to a narrower
common type; between integer types they wrap around; floats are rounded, complex numbers part by part. A scalar
parameter (a Python number) has no type of its own. PyTorch's kernels take it in the type of the computation, float32
for float16; some convert it to the common type like a tensor, which the rules of type promotion read as well. So
:func:`parameters` gives the first and :func:`in_common_type` the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import DType
from conformance.dtypes import dtype as dtype_of
from conformance.formats import narrowed, widened
from conformance.op import Computation, Params

_SINGLE = 24
"""The precision of float32."""

_LARGEST_SURE = 1 << 24
"""Integers up to here are float32 numbers."""


def compute_type(dtype: str) -> str:
    """The type in which results of type ``dtype`` are computed: PyTorch's opmath type, float32 for the small ones."""
    described = dtype_of(dtype)
    if not 0 < described.precision < _SINGLE:
        return dtype
    return "complex64" if described.kind == "complex" else "float32"


def operands(computation: Computation) -> tuple[NDArray[Any], ...]:
    """The operands as the op sees them, upcast exactly from the common type.

    Without a common type they stay as they are, but for the one operand of an op whose result is floating.
    """
    common = computation.common
    if common is None:
        if len(computation.inputs) > 1 or dtype_of(computation.dtype).kind not in ("float", "complex"):
            return computation.inputs
        common = "float32"
        if dtype_of(computation.input_dtypes[0]).kind not in ("int", "bool"):
            return computation.inputs
    pairs = zip(computation.inputs, computation.input_dtypes, strict=True)
    return tuple(converted(given, dtype_of(name), dtype_of(common)) for given, name in pairs)


def operand_types(computation: Computation) -> tuple[str, ...]:
    """The types of what :func:`operands` gives; of a real operand of a complex op the type of a component."""
    common = computation.common
    if common is None:
        alone = len(computation.inputs) == 1 and dtype_of(computation.dtype).kind in ("float", "complex")
        converts = alone and dtype_of(computation.input_dtypes[0]).kind in ("int", "bool")
        return ("float32",) if converts else computation.input_dtypes
    real = dtype_of(common).kind != "complex"
    return tuple(name if real and dtype_of(name).kind == "complex" else common for name in computation.input_dtypes)


def converted(given: NDArray[Any], source: DType, target: DType) -> NDArray[Any]:
    """An operand of type ``source`` converted to ``target`` as a device does, then upcast exactly.

    Complex numbers stay what they are: where ``target`` is real they are results that are made of real operands.
    """
    if source == target or (source.kind == "complex" != target.kind):
        return given
    if target.kind == "bool":
        return np.asarray(given != 0)
    if target.kind == "int":
        return widened(narrowed(given, target), target)
    if source.kind in ("int", "bool"):
        given = given.astype(np.float32)
    with np.errstate(all="ignore"):
        return widened(narrowed(given, target), target)


def broadcast_to(given: Sequence[NDArray[Any]], shape: tuple[int, ...]) -> bool:
    """Whether operands broadcast to just this shape, as those of an elementwise op do to its result's."""
    try:
        return np.broadcast_shapes(*(x.shape for x in given)) == shape
    except ValueError:
        return False


def parameters(computation: Computation) -> Params:
    """The parameters, numbers among them in the type of the computation; without a common type as they are."""
    if computation.common is None:
        return computation.params
    return _converted_numbers(computation, compute_type(computation.common))


def in_common_type(computation: Computation) -> Params | None:
    """The parameters with numbers converted to the common type; None where that changes nothing."""
    common = computation.common
    if common is None or compute_type(common) == common:
        return None
    narrow = _converted_numbers(computation, common)
    return narrow if narrow != parameters(computation) else None


def in_compute_type(computation: Computation) -> Computation | None:
    """The same with operands converted to the type of the computation at once; None where they are so already.

    Between a float32 and a float16 kernel of two types, the one keeps digits of an integer, or of a scalar tensor, that
    the common type float16 has not: it is nearer the truth than the rules of promotion ask.
    """
    common = computation.common
    if common is None or compute_type(common) == common or set(computation.input_dtypes) == {common}:
        return None
    return replace(computation, common=compute_type(common))


def evaluated(computation: Computation, params: Params | None = None) -> Callable[..., NDArray[Any]]:
    """The reference as a function of operands alone, with parameters bound; it warns of nothing."""
    bound = parameters(computation) if params is None else params

    def function(*given: NDArray[Any]) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            return computation.reference(*given, **bound)

    return function


def _converted_numbers(computation: Computation, name: str) -> Params:
    target = dtype_of(name)
    return {key: _number(value, target, key in computation.scalars) for key, value in computation.params.items()}


def _number(value: Any, target: DType, is_operand: bool) -> Any:
    """A Python number as a kernel of the type ``target`` holds it. Integers that are no operand stay: ``dim``, say."""
    if isinstance(value, bool) or not isinstance(value, (int, float, complex)):
        return value
    if target.kind == "int":
        if not is_operand or not isinstance(value, int):
            return value
        return int(converted(np.asarray(value & (2**64 - 1), np.uint64), dtype_of("uint64"), target))
    if target.kind == "bool" or (isinstance(value, int) and (not is_operand or abs(value) <= _LARGEST_SURE)):
        return value
    if isinstance(value, complex) or target.kind == "complex":
        with np.errstate(all="ignore"):
            rounded = complex(converted(np.asarray(value, np.complex128), dtype_of("complex128"), target))
        return rounded if isinstance(value, complex) else rounded.real
    with np.errstate(all="ignore"):
        return float(converted(np.asarray(value, np.float64), dtype_of("float64"), target))
