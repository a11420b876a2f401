"""The accuracy tables of the Metal Shading Language specification, chapter 8, as data.

Versions 4 (2025-10-23) and 4.1 (2026-06-04) agree on everything here. The errors are against the infinitely precise
result, in ulp as :mod:`conformance.oracle.units` defines it. Functions that stand in no table (erf, expm1, log1p,
lgamma and the rest of the special functions) have no contract: see :mod:`conformance.oracle.bounds`.
"""

from __future__ import annotations

from typing import Literal

Table = Literal["8.1", "8.3", "8.4"]

CORRECTLY_ROUNDED = 0.5
"""The limit of a correctly rounded function; a limit of 0 means that the result is exact."""

_ROUNDED = "add sub mul recip div ceil fdim floor fma fract ldexp rint round rsqrt sqrt trunc"
_EXACT = "copysign fabs fmax fmin fmod frexp ilogb modf nextafter"
_TABULATED = {
    4.0: "acos acosh asin asinh cos cosh cospi exp exp2 exp10 log log2 log10 sin sincos sinh sinpi",
    5.0: "atan atanh tanh",
    6.0: "atan2 tan tanpi",
    16.0: "pow powr",
}

FLOAT_PRECISE = (
    {name: limit for limit, names in _TABULATED.items() for name in names.split()}
    | dict.fromkeys(_ROUNDED.split(), CORRECTLY_ROUNDED)
    | dict.fromkeys(_EXACT.split(), 0.0)
)
"""Table 8.1: float without fast math, which is how PyTorch's Metal kernels are built."""

HALF = {name: min(limit, 1.0) for name, limit in FLOAT_PRECISE.items() if name not in ("pow", "powr")}
"""Table 8.3: half, on Apple GPU family 4 and later. What is not correctly rounded is within 1 ulp. No row for pow."""

BFLOAT = dict.fromkeys("add sub mul recip div".split(), CORRECTLY_ROUNDED)
"""Table 8.4: bfloat, on family 6 and Metal 3. Arithmetic only."""

TABLES: dict[Table, dict[str, float]] = {"8.1": FLOAT_PRECISE, "8.3": HALF, "8.4": BFLOAT}


def limit(function: str, table: Table = "8.1") -> float:
    """The largest error of a Metal function in ulp: 0 exact, 0.5 correctly rounded, otherwise as tabulated.

    Raises
    ------
    ValueError
        If the table has no row for the function.
    """
    try:
        return TABLES[table][function]
    except KeyError:
        raise ValueError(
            f"function {function!r} has no row in table {table}; it has: {', '.join(sorted(TABLES[table]))}"
        ) from None
