"""The vector-Jacobian product of a copy into another type."""

from __future__ import annotations

from typing import Any

from references.gradients._common import Array, Gradients, differentiable, of_operands


def cast(gradient: Array, result: Array, x: Array, **params: Any) -> Gradients:
    """1, whatever the types; the real part for a real operand. Integers pass no gradient on."""
    return of_operands((x, gradient if differentiable(result) else None))
