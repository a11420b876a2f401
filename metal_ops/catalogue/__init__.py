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
        fill,
        pad,
        polynomials,
        product,
        reduction,
        select,
        softmax,
        special,
        ternary,
        unary,
    )

    elementwise = (unary, special, activation, binary, polynomials, backward, ternary)
    families = (softmax, *elementwise, pad, select, reduction, product, copy, fill)
    return tuple(op for family in families for op in family.OPS)
