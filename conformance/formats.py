"""Numbers as bit patterns: exact encoding, decoding and the special values of every element type.

Everything here is integer arithmetic, so that a case's bytes depend on no library's rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import DType

Number = float | int | str
"""A number, or ``"nan"``, ``"inf"``, ``"-inf"``, or a bit pattern such as ``"0x7fc00000"``."""

_SHORT = 9
"""Characters up to which a number is written exactly."""

_NAMES = {"nan": float("nan"), "inf": float("inf"), "+inf": float("inf"), "-inf": float("-inf")}


@dataclass(frozen=True)
class Component:
    """The binary layout of one real component of an element (a complex element has two).

    ``width`` counts bits; ``mantissa`` counts the stored fraction bits, 0 for integers and bool.
    """

    dtype: DType
    count: int
    width: int
    mantissa: int

    @property
    def is_float(self) -> bool:
        """Whether the bits are a sign, an exponent and a fraction."""
        return self.mantissa > 0

    @property
    def is_signed(self) -> bool:
        """Whether negative numbers exist."""
        return self.is_float or self.dtype.name.startswith("int")

    @property
    def unsigned(self) -> np.dtype[Any]:
        """The NumPy integer type that holds the bits of one component."""
        return np.dtype(f"u{self.width // 8}")

    @property
    def sign(self) -> int:
        """The bit that makes a float negative."""
        return 1 << (self.width - 1)

    @property
    def infinity(self) -> int:
        """The bits of positive infinity, which follow those of the largest number; every larger magnitude is a NaN.

        In a format without infinity they are those of its NaN, to which overflow leads there.
        """
        return self.sign - (1 << self.mantissa if self.dtype.has_infinity else 1)


def component(dtype: DType) -> Component:
    """The binary layout of ``dtype``'s components."""
    count = 2 if dtype.kind == "complex" else 1
    return Component(dtype, count, 8 * dtype.itemsize // count, max(dtype.precision - 1, 0))


def encode(value: Fraction | int, layout: Component) -> int:
    """The bits of the float nearest to ``value``, ties to even; overflow gives infinity, or NaN where there is none."""
    sign = layout.sign if value < 0 else 0
    magnitude = abs(Fraction(value))
    if magnitude == 0:
        return sign
    dtype = layout.dtype
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    exponent = max(exponent, dtype.emin)
    quantum = Fraction(2) ** (exponent - layout.mantissa)
    steps = round(magnitude / quantum)  # Fraction rounds halves to even
    if steps < 1 << layout.mantissa:  # subnormal
        return sign | steps
    # A carry out of the fraction lands in the exponent field, where it belongs.
    bits = ((exponent - dtype.emin) << layout.mantissa) + steps
    return sign | min(bits, layout.infinity)


def bits_of(value: Number, dtype: DType) -> int:
    """The bits of ``value`` in one component of ``dtype``, rounded to nearest even.

    Raises
    ------
    ValueError
        If the text is no number, or an integer does not fit.
    """
    layout = component(dtype)
    if isinstance(value, str):
        if value.lower().startswith("0x"):
            return _checked_bits(value, layout)
        if value not in _NAMES:
            try:
                value = float(value)
            except ValueError:
                raise ValueError(
                    f'number {value!r} is unknown; allowed: a number, "nan", "inf", "-inf" or bits as "0x..."'
                ) from None
        else:
            value = _NAMES[value]
    if layout.is_float:
        if value != value:
            return layout.infinity | (1 << (layout.mantissa - 1))
        if value in (float("inf"), float("-inf")):
            return layout.infinity | (layout.sign if value < 0 else 0)
        if value == 0:
            return layout.sign if str(value).startswith("-") else 0
        return encode(Fraction(value), layout)
    low, high = integer_range(layout)
    if value != value or value != int(value) or not low <= value <= high:
        raise ValueError(f"number {value!r} does not fit {dtype.name}; allowed: integers from {low} to {high}")
    return int(value) & ((1 << layout.width) - 1)


def _checked_bits(text: str, layout: Component) -> int:
    try:
        bits = int(text, 16)
    except ValueError:
        raise ValueError(f"bit pattern {text!r} is no hexadecimal number") from None
    if bits >> layout.width:
        raise ValueError(f"bit pattern {text!r} has more than the {layout.width} bits of {layout.dtype.name}")
    return bits


def integer_range(layout: Component) -> tuple[int, int]:
    """The smallest and the largest integer of an integer type or bool."""
    if layout.dtype.kind == "bool":
        return 0, 1
    half = 1 << (layout.width - 1)
    return (-half, half - 1) if layout.is_signed else (0, 2 * half - 1)


def hexadecimal(bits: int, dtype: DType) -> str:
    """``bits`` as text of the component's full width, such as ``"0x3c00"``."""
    return f"0x{bits:0{component(dtype).width // 4}x}"


def array_of_bits(bits: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Elements of ``dtype`` from the bits of their components (flat; two entries a complex element)."""
    return bits.astype(component(dtype).unsigned).view(dtype.numpy)


def bits_of_array(array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """The inverse of :func:`array_of_bits`: flat, one unsigned integer a component."""
    return np.ascontiguousarray(array).reshape(-1).view(component(dtype).unsigned)


_UPCAST = {"float": np.float64, "complex": np.complex128, "bool": np.bool_}


def widened(array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Elements of ``dtype`` in the widest type of their kind, exactly; the shape stays."""
    wide = _UPCAST.get(dtype.kind) or (np.uint64 if dtype.numpy.kind == "u" else np.int64)
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        if dtype.numpy.names is None:
            return array.astype(wide)
        pairs: NDArray[Any] = np.empty(array.shape, wide)
        pairs.real, pairs.imag = array["real"], array["imag"]
        return pairs


def narrowed(array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """The inverse of :func:`widened`, for numbers that ``dtype`` represents."""
    if dtype.numpy.names is None:
        return array.astype(dtype.numpy)
    pairs = np.empty(array.shape, dtype.numpy)
    pairs["real"], pairs["imag"] = array.real, array.imag
    return pairs


def number_text(bits: int, dtype: DType) -> str:
    """The number as a person writes it: exactly if that is short, else in the fewest digits that give the bits back."""
    layout = component(dtype)
    if not layout.is_float:
        low, _ = integer_range(layout)
        return str(bits - (1 << layout.width) if low < 0 and bits >= 1 << (layout.width - 1) else bits)
    scalar = np.array([bits], layout.unsigned).view(_float_type(dtype))[0]
    exact = str(float(scalar))
    return exact if layout.width == 64 or len(exact) <= _SHORT else str(scalar)


def _float_type(dtype: DType) -> np.dtype[Any]:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "complex" else dtype.numpy


def special_bits(dtype: DType) -> tuple[int, ...]:
    """Bits of the values that break kernels, simplest first.

    For floats: zeros, units, infinities, NaN, the edges of the subnormal, normal and finite ranges, with both signs.
    For integers: zero, units, and the two ends.
    """
    layout = component(dtype)
    if not layout.is_float:
        mask = (1 << layout.width) - 1
        low, high = integer_range(layout)
        return tuple(dict.fromkeys((0, 1, high, low & mask, (low & mask if low == 0 else mask), high - 1 or 1)))
    tiny = 1 << layout.mantissa
    one = (-dtype.emin + 1) << layout.mantissa
    magnitudes = (0, one, layout.infinity, 1, tiny - 1, tiny, tiny + 1, layout.infinity - 1)
    nan = layout.infinity | (1 << (layout.mantissa - 1))
    return tuple(dict.fromkeys((nan, *(bits | sign for bits in magnitudes for sign in (0, layout.sign)))))


def poison_bits(dtype: DType) -> int:
    """What gaps and guards hold: a quiet NaN with a payload of its own, or a conspicuous integer.

    A kernel that reads beside its operand makes a NaN of it, and one that writes there is seen. For bool it is 1,
    since another byte would be no bool. A format with one NaN only has it with the sign set.
    """
    layout = component(dtype)
    if layout.dtype.kind == "bool":
        return 1
    pattern = 0xA5A5A5A5A5A5A5A5 & ((1 << layout.width) - 1)
    if not layout.is_float:
        return pattern
    if not dtype.has_infinity:
        return layout.infinity | layout.sign
    quiet = layout.infinity | (1 << (layout.mantissa - 1))
    return quiet | (pattern & ((1 << (layout.mantissa - 1)) - 1))
