"""Every op of the catalogue has a tested vector-Jacobian product, or PyTorch does not differentiate it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from conformance.op import Op
from metal_ops.catalogue import ops
from tests.references.gradients._rows import ROWS

_STRUCTURAL = (
    "softmax log_softmax sum nansum mean prod amax amin cat where masked_fill glu polar complex pad to clone fill"
).split()
"""Ops whose vector-Jacobian products are tested in test_structural."""

_PRODUCTS = "mm mv bmm dot matmul addmm addmv baddbmm linear grouped_mm".split()
"""Ops whose vector-Jacobian products are tested in test_product."""


_DERIVATIVE_OF = "backward"
"""The family of ops that are themselves backwards: what differentiates them again is not judged."""


def _is_tested(op: Op) -> bool:
    """Whether the op, a variant of it, or the op of which it is a variant is tested."""
    tested = (*ROWS, *_STRUCTURAL, *_PRODUCTS)
    return any(f"{op.name}.".startswith(f"{name}.") or name.startswith(f"{op.name}.") for name in tested)


def _function(op: Op) -> Callable[..., Any]:
    path: Any = torch
    for part in op.function.split("."):
        path = getattr(path, part)
    function: Callable[..., Any] = path
    return function


def _requires_grad(op: Op) -> bool | str:
    """Whether the result of the op requires a gradient, or PyTorch's reason why it gives none."""
    for count in (1, 2, 3):
        operands = [torch.full((2, 2), 0.5, dtype=torch.float64, requires_grad=True) for _ in range(count)]
        try:
            result = _function(op)(*operands, **op.default_params)
        except (TypeError, RuntimeError):
            continue
        if not result.requires_grad:
            return False
        try:
            torch.autograd.grad(result.sum(), operands)
        except (NotImplementedError, RuntimeError) as error:
            return str(error)
        return True
    return "no call with float64 tensors alone"


_DIFFERENTIABLE = [op for op in ops() if "float32" in op.dtypes and op.family != _DERIVATIVE_OF]


@pytest.mark.parametrize("op", _DIFFERENTIABLE, ids=lambda op: op.name)
def test_each_op_has_a_vector_jacobian_product_or_is_not_differentiable(op: Op) -> None:
    if _is_tested(op):
        return
    assert _requires_grad(op) is not True, f"{op.name} is differentiable and has no tested vector-Jacobian product"


@pytest.mark.parametrize("name", ROWS)
def test_vector_jacobian_products_leave_their_operands_alone(name: str) -> None:
    row = ROWS[name]
    operands = [np.full(3, 0.5 * (low + high)) for low, high in row.domains]
    gradient, result = np.ones(3), np.full(3, 0.25)
    for array in (gradient, result, *operands):
        array.flags.writeable = False
    with np.errstate(all="ignore"):
        given = row.vjp(gradient, result, *operands, **row.params, **row.options)
    assert [None if each is None else each.shape for each in given] == [
        None if i in row.inert else (3,) for i in range(len(operands))
    ]
