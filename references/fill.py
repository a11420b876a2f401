"""True values of tensors that are filled with a number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def fill(x: NDArray[Any], value: bool | int | float | complex) -> NDArray[Any]:
    """The number everywhere: what the element type makes of it is the bound's part."""
    return np.full(x.shape, value)
