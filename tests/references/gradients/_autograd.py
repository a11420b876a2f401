"""Gradients by PyTorch's autograd on the CPU, and the comparison with ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[Any]

_RELATIVE, _ABSOLUTE = 2.0**-40, 2.0**-44


def forward(function: Callable[..., torch.Tensor], operands: Sequence[Array], params: Mapping[str, Any]) -> Array:
    return np.asarray(function(*map(torch.from_numpy, operands), **params).numpy())


def gradients(
    function: Callable[..., torch.Tensor],
    gradient: Array,
    operands: Sequence[Array],
    params: Mapping[str, Any],
    inert: Sequence[int] = (),
) -> list[Array | None]:
    """What autograd gives each operand; None for an integer, a condition and the operands named inert."""
    tensors = [torch.from_numpy(operand.copy()) for operand in operands]
    wanted = [
        i for i, tensor in enumerate(tensors) if i not in inert and (tensor.is_floating_point() or tensor.is_complex())
    ]
    for i in wanted:
        tensors[i].requires_grad_()
    result = function(*tensors, **params)
    incoming = torch.from_numpy(gradient).to(result.dtype)
    given = torch.autograd.grad(result, [tensors[i] for i in wanted], incoming)
    by_operand = dict(zip(wanted, given, strict=True))
    return [by_operand[i].resolve_conj().numpy() if i in by_operand else None for i in range(len(tensors))]


def of_each_element(
    function: Callable[..., torch.Tensor],
    gradient: Array,
    operands: Sequence[Array],
    params: Mapping[str, Any],
    inert: Sequence[int] = (),
) -> list[Array | None]:
    """What autograd gives operands of one dimension in a call for each element.

    At a NaN the vectorised backward of elu, hardswish, the shrinkages and logit chooses another branch than the scalar
    one, which is the documented formula.
    """
    parts = [slice(i, i + 1) for i in range(gradient.size)]
    by_element = [gradients(function, gradient[i], [operand[i] for operand in operands], params, inert) for i in parts]
    columns = zip(*by_element, strict=True)
    return [None if column[0] is None else np.concatenate(column) for column in columns]  # type: ignore[arg-type]


def is_differentiable(
    function: Callable[..., torch.Tensor], operands: Sequence[Array], params: Mapping[str, Any]
) -> bool:
    """Whether PyTorch's result requires a gradient."""
    return bool(function(*(torch.from_numpy(operand).requires_grad_() for operand in operands), **params).requires_grad)


def assert_equal(
    ours: Array | None, theirs: Array | None, scale: float | Array = 1.0, relative: float = 0.0, where: str = ""
) -> None:
    """The same shape, the same NaN, the same infinities, and finite elements close for sums of ``scale`` gradients."""
    assert (ours is None) == (theirs is None), where
    if ours is None or theirs is None:
        return
    assert ours.shape == theirs.shape, where
    for one, two in zip(_parts(ours), _parts(theirs), strict=True):
        exceptional = ~np.isfinite(two)
        np.testing.assert_array_equal(one[exceptional], two[exceptional], err_msg=where)
        one, two = np.where(exceptional, 0.0, one), np.where(exceptional, 0.0, two)
        close = np.abs(one - two) <= max(relative, _RELATIVE) * np.abs(two) + max(relative, _ABSOLUTE) * scale
        worst = [(x, y) for x, y in zip(one[~close], two[~close], strict=True)][:5]
        assert close.all(), f"{where}: (ours, theirs) = {worst}"


def _parts(array: Array) -> tuple[Array, ...]:
    return (array.real, array.imag) if np.iscomplexobj(array) else (np.asarray(array, np.float64),)
