"""True values of copies and conversions between element types."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray


def cast(x: NDArray[Any], dtype: str | None = None) -> NDArray[Any]:
    """The number itself: what its new type makes of it, rounded, truncated or wrapped, is the bound's part.

    ``dtype`` is torch's name of the new type; of a complex number a real type takes the real part.
    """
    return x if dtype is None or "complex" in dtype else x.real
