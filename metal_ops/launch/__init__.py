"""How PyTorch's host code launches its Metal kernels, a file an op family: the way from an op to kernels on ``air``."""

from __future__ import annotations

from metal_ops.launch import activation, softmax, special, unary
from metal_ops.launch.unary import Launch

LAUNCHES: dict[str, Launch] = {**softmax.LAUNCHES, **unary.LAUNCHES, **special.LAUNCHES, **activation.LAUNCHES}
"""Every launch, by op name."""
