"""The element types a case can have, under PyTorch's names, with their exact bit formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np

Kind = Literal["float", "complex", "int", "bool"]


@dataclass(frozen=True)
class DType:
    """An element type: its PyTorch name, the NumPy type that stores it, and (for floats) its binary format.

    ``precision`` counts the significand bits with the implicit one; ``emin`` is the exponent of the smallest
    normal number, ``emax`` of the largest finite one. They are 0 for integers and bool. For a complex type
    they describe one component. A format without infinity has numbers in place of all but the last of its NaNs.
    """

    name: str
    numpy: np.dtype[Any]
    kind: Kind
    precision: int = 0
    emin: int = 0
    emax: int = 0
    has_infinity: bool = True

    @property
    def itemsize(self) -> int:
        """Bytes an element takes."""
        return int(self.numpy.itemsize)

    @property
    def tiny(self) -> float:
        """The smallest positive normal number; 0.0 for integers and bool."""
        return float(2.0**self.emin) if self.precision else 0.0

    @property
    def max(self) -> float:
        """The largest finite number of a float format (of one component of a complex one)."""
        if not self.precision:
            raise ValueError(f"dtype {self.name} is no float format, so it has no largest finite float")
        steps_below = 1 if self.has_infinity else 2  # from the next power of two, where the one NaN takes a place
        return float((2.0 - steps_below * 2.0 ** (1 - self.precision)) * 2.0**self.emax)


_PAIR_OF_HALVES = np.dtype([("real", np.float16), ("imag", np.float16)])
"""NumPy has no complex type of two float16 numbers; what computes with them widens them first."""

_ALL = (
    DType("float32", np.dtype(np.float32), "float", 24, -126, 127),
    DType("float16", np.dtype(np.float16), "float", 11, -14, 15),
    DType("bfloat16", np.dtype(ml_dtypes.bfloat16), "float", 8, -126, 127),
    DType("float64", np.dtype(np.float64), "float", 53, -1022, 1023),
    DType("float8_e4m3fn", np.dtype(ml_dtypes.float8_e4m3fn), "float", 4, -6, 8, has_infinity=False),
    DType("complex32", _PAIR_OF_HALVES, "complex", 11, -14, 15),
    DType("complex64", np.dtype(np.complex64), "complex", 24, -126, 127),
    DType("complex128", np.dtype(np.complex128), "complex", 53, -1022, 1023),
    DType("int8", np.dtype(np.int8), "int"),
    DType("int16", np.dtype(np.int16), "int"),
    DType("int32", np.dtype(np.int32), "int"),
    DType("int64", np.dtype(np.int64), "int"),
    DType("uint8", np.dtype(np.uint8), "int"),
    DType("uint16", np.dtype(np.uint16), "int"),
    DType("uint32", np.dtype(np.uint32), "int"),
    DType("uint64", np.dtype(np.uint64), "int"),
    DType("bool", np.dtype(np.bool_), "bool"),
)
BY_NAME = {dtype.name: dtype for dtype in _ALL}


def dtype(name: str) -> DType:
    """The :class:`DType` that PyTorch calls ``torch.<name>``; raises ValueError naming what is allowed."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise ValueError(f"dtype {name!r} is unknown; allowed: {', '.join(BY_NAME)}") from None
