"""True values of ops that choose among elements: where, masked_fill, cat. Nothing is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def where(condition: Array, x: Array, other: Any) -> Array:
    """``x`` where the condition is not zero, else ``other``."""
    return np.where(condition != 0, x, other)


def where_scalar_self(condition: Array, other: Array, self: Any) -> Array:
    """The number ``self`` where the condition is not zero, else ``other``."""
    return np.where(condition != 0, self, other)


def masked_fill(x: Array, mask: Array, value: Any) -> Array:
    """``value``, in the type of ``x``, where the mask is not zero, else ``x``."""
    return np.where(mask != 0, np.asarray(value).astype(x.dtype), x)


def cat(*tensors: Array, dim: int = 0) -> Array:
    """The tensors one after another along a dimension; those of shape (0,) are left out, whatever the others are."""
    kept = [tensor for tensor in tensors if tensor.shape != (0,)]
    return np.concatenate(kept or tensors[:1], axis=dim if kept else 0)
