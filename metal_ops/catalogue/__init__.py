"""What is under test: one file an op family, one block an op."""

from __future__ import annotations

from conformance.op import Op


def ops() -> tuple[Op, ...]:
    """All ops, family by family."""
    from metal_ops.catalogue import activation, softmax, special, unary

    return (*softmax.OPS, *unary.OPS, *special.OPS, *activation.OPS)
