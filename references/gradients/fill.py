"""The vector-Jacobian product of a fill."""

from __future__ import annotations

from typing import Any

import numpy as np

from references.gradients._common import Array, Gradients, of_operands


def fill(gradient: Array, result: Array, x: Array, value: Any) -> Gradients:
    """0: nothing of the operand is left."""
    return of_operands((x, np.zeros_like(gradient)))
