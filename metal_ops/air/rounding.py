"""The last word on a rounding: elementary functions in 256 bits, by mpmath.

Called from emulated kernels when a double cannot prove how the exact value rounds; see ``lowering/elementary.py``.
A float32 function of one or two float32 arguments comes nowhere near 2**-256 of a rounding boundary without lying on
it (24 bits of result and 48 of arguments: about 2**-72 is to be expected), so 256 bits always decide.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

from metal_ops.air.lowering.elementary import NAMES

_LOCK = threading.Lock()
_BITS = 256
# Significand bits -> exponent of the smallest normal, of the largest finite number, bits of the exponent field.
_FORMATS = {24: (-126, 127, 8), 11: (-14, 15, 5)}


def _evaluate(context: Any, function: str, x: Any, y: Any) -> Any:
    special = {
        "rsqrt": lambda: 1 / context.sqrt(x),
        "exp2": lambda: context.power(2, x),
        "exp10": lambda: context.power(10, x),
        "log2": lambda: context.log(x, 2),
        "pow": lambda: context.power(x, y),
        "powr": lambda: context.power(x, y),
        "atan2": lambda: context.atan2(x, y),
    }
    return special[function]() if function in special else getattr(context, function)(x)


def _round(value: Any, precision: int) -> int:
    """The bits of a finite mpf rounded to nearest even; float results below the normal range become signed zeros."""
    emin, emax, exponent_bits = _FORMATS[precision]
    sign, mantissa, exponent, bits = value._mpf_
    sign_bit = sign << (precision + exponent_bits - 1)
    last = max(exponent + bits - precision, emin - precision + 1)  # exponent of the result's last place
    shift = last - exponent
    if shift > 0:
        quotient, remainder, half = mantissa >> shift, mantissa & ((1 << shift) - 1), 1 << (shift - 1)
        quotient += remainder > half or (remainder == half and quotient & 1)
    else:
        quotient = mantissa << -shift
    # A significand with its leading bit counts one exponent step up by itself, carries and subnormals included.
    encoded = int(quotient) + ((last - emin + precision - 1) << (precision - 1)) if quotient else 0
    if encoded >= (emax - emin + 2) << (precision - 1):
        encoded = (emax - emin + 2) << (precision - 1)
    if precision == 24 and encoded < 1 << (precision - 1):  # the float unit flushes; half does not (MSL 8.6)
        encoded = 0
    return int(sign_bit | encoded)


@lru_cache(1)
def _context() -> Any:
    import mpmath

    context = mpmath.mp.clone()
    context.prec = _BITS
    return context


# Large tensors repeat their numbers, and exp of small ones is always close to a tie. Keys that are equal though their
# zeros differ in sign do no harm: at zeros a double is proof.
@lru_cache(1 << 16)
def correctly_rounded(identifier: int, precision: int, x: float, y: float) -> int:
    """The bits of ``NAMES[identifier]`` at (x, y), rounded to nearest even in 24 (float) or 11 (half) bits.

    Float results below 2**-126 are flushed to a signed zero, as everywhere in the emulated float unit. Only called
    where the value is finite: a double that is NaN or infinite is its own proof.
    """
    with _LOCK:  # an mpmath context is not safe for threads
        context = _context()
        return _round(_evaluate(context, NAMES[identifier], context.mpf(x), context.mpf(y)), precision)
