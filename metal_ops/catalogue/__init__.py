"""What is under test: one file an op family, one block an op."""

from __future__ import annotations

from conformance.op import Op


def ops() -> tuple[Op, ...]:
    """All ops, family by family."""
    from metal_ops.catalogue import (
        activation,
        backward,
        binary,
        copy,
        pad,
        polynomials,
        reduction,
        select,
        softmax,
        special,
        unary,
    )

    families = (softmax, unary, special, activation, binary, polynomials, backward, pad, select, reduction, copy)
    return tuple(op for family in families for op in family.OPS)
