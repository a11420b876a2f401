"""Units in the last place, as the Metal Shading Language defines them, for every float format.

Every report measures in this unit, so its one debatable point is settled here: at a representable value the ulp is the
distance to the *nearer* neighbour, so at a power of two it is the smaller, lower gap (Metal Shading Language
specification, section 8, "the distance between the two nonequal finite floats nearest x").
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.dtypes import dtype as dtype_of

Float64s = NDArray[np.float64]

ACCEPT_ROUND_TOWARD_ZERO = False
"""Whether a correctly rounded operation may also round toward zero, as section 8.2 of the specification allows.

The emulated GPU rounds to nearest, and so does every Apple GPU that was ever measured; until a run on a device shows
otherwise, the stricter reading holds. This is the only switch: every rounding here asks :func:`rounding_error`.
"""


def ulp(value: NDArray[Any], dtype: str) -> Float64s:
    """The unit in the last place of real ``value`` in the format ``dtype``.

    Parameters
    ----------
    value
        Any shape; float64 numbers that need not be representable. Complex numbers are measured by their modulus.
    dtype
        A float format, or a complex one for the format of its components.

    Returns
    -------
    The gap, of the same shape: the smallest subnormal at and around zero, growing without end beyond the largest
    finite number (errors near overflow are measured as if the exponent range had no end), NaN where ``value`` is
    not finite.

    Raises
    ------
    ValueError
        If ``dtype`` is no float format.
    """
    number_format = dtype_of(dtype)
    if not number_format.precision:
        raise ValueError(f"dtype {dtype} has no unit in the last place; a float format is needed")
    mantissa, exponent = np.frexp(np.abs(value))
    leading = np.where(mantissa == 0.5, exponent - 2, exponent - 1)
    leading = np.where(mantissa == 0, number_format.emin, np.maximum(leading, number_format.emin))
    gap: Float64s = np.ldexp(1.0, leading - (number_format.precision - 1))
    return np.where(np.isfinite(mantissa), gap, np.nan)


def rounding_error(value: NDArray[Any], dtype: str) -> Float64s:
    """The largest error of one rounding of ``value`` to ``dtype``: half an ulp, or a whole one if it may truncate."""
    return ulp(value, dtype) * (1.0 if ACCEPT_ROUND_TOWARD_ZERO else 0.5)


def nearest(value: Float64s, dtype: str) -> Float64s:
    """``value`` rounded to the nearest number of format ``dtype``, ties to even, as float64.

    The exponent range has no end upward: what a format rounds to infinity becomes its next power of two, or more; a
    format without infinities saturates, as ``torch/headeronly/util/Float8_e4m3fn.h`` has it. Zeros and NaN pass
    unchanged, and infinities where there are any.
    """
    number_format = dtype_of(dtype)
    _, exponent = np.frexp(value)
    gap = np.ldexp(1.0, np.maximum(exponent - 1, number_format.emin) - (number_format.precision - 1))
    rounded = np.where(np.isfinite(value), np.rint(value / gap) * gap, value)
    return rounded if number_format.has_infinity else np.clip(rounded, -number_format.max, number_format.max)
