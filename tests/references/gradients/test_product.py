"""Vector-Jacobian products of matrix products, against autograd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from references.gradients import product
from tests.references.gradients import _autograd

Array = np.ndarray[Any, np.dtype[Any]]


def drawn(*shape: int, imaginary: bool = False, seed: int = 7) -> Array:
    random = np.random.default_rng(seed)
    made = random.normal(size=shape)
    return np.asarray(made + 1j * random.normal(size=shape) if imaginary else made)


def check(vjp: Any, forward: Any, operands: Sequence[Array], params: Mapping[str, Any] | None = None) -> None:
    params = params or {}
    result = _autograd.forward(forward, operands, params)
    gradient = drawn(*result.shape, imaginary=np.iscomplexobj(result), seed=8)
    ours = vjp(gradient, result, *operands, **params)
    theirs = _autograd.gradients(forward, gradient, operands, params)
    for i, (one, two) in enumerate(zip(ours, theirs, strict=True)):
        _autograd.assert_equal(one, two, 64.0, where=f"operand {i}")


_FACTORS = [
    ("mm", (3, 4), (4, 5)),
    ("mm", (3, 0), (0, 5)),
    ("mv", (3, 4), (4,)),
    ("dot", (4,), (4,)),
    ("bmm", (2, 3, 4), (2, 4, 5)),
    ("matmul", (4,), (4, 5)),
    ("matmul", (4,), (2, 4, 5)),
    ("matmul", (2, 3, 4), (4,)),
    ("matmul", (2, 1, 3, 4), (5, 4, 2)),
    ("matmul", (3, 4), (2, 4, 5)),
]


@pytest.mark.parametrize("imaginary", [False, True])
@pytest.mark.parametrize(("name", "left", "right"), _FACTORS, ids=str)
def test_products(name: str, left: tuple[int, ...], right: tuple[int, ...], imaginary: bool) -> None:
    operands = [drawn(*left, imaginary=imaginary), drawn(*right, imaginary=imaginary, seed=9)]
    check(product.mm, getattr(torch, name), operands)


_ADDENDS = [
    ("addmm", (3, 5), (3, 4), (4, 5)),
    ("addmm", (5,), (3, 4), (4, 5)),
    ("addmm", (3, 1), (3, 4), (4, 5)),
    ("addmv", (3,), (3, 4), (4,)),
    ("addmv", (), (3, 4), (4,)),
    ("baddbmm", (2, 3, 5), (2, 3, 4), (2, 4, 5)),
    ("baddbmm", (1, 5), (2, 3, 4), (2, 4, 5)),
]


@pytest.mark.parametrize("imaginary", [False, True])
@pytest.mark.parametrize(("name", "addend", "left", "right"), _ADDENDS, ids=str)
def test_products_with_an_addend(
    name: str, addend: tuple[int, ...], left: tuple[int, ...], right: tuple[int, ...], imaginary: bool
) -> None:
    operands = [drawn(*shape, imaginary=imaginary, seed=i) for i, shape in enumerate((addend, left, right))]
    for params in ({}, {"alpha": 2.5}, {"beta": -0.5, "alpha": 3.0}, {"beta": 0.0}, {"alpha": 0.0}):
        check(product.addmm, getattr(torch, name), operands, params)


@pytest.mark.parametrize("shape", [(4,), (1, 4), (3, 4), (2, 3, 4), (2, 1, 3, 4), (0, 4)], ids=str)
def test_layers(shape: tuple[int, ...]) -> None:
    for imaginary in (False, True):
        operands = [drawn(*shape, imaginary=imaginary), drawn(5, 4, imaginary=imaginary, seed=9)]
        check(product.linear, functional.linear, operands)
        check(product.linear, functional.linear, [*operands, drawn(5, imaginary=imaginary, seed=10)])
    check(product.linear, functional.linear, [drawn(*shape), drawn(4, seed=9)])


def _in_groups(a: torch.Tensor, b: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    """Groups as products of their own, for torch's have no float64."""
    starts = [0, *offs.tolist()[:-1]]
    parts = [slice(start, end) for start, end in zip(starts, offs.tolist(), strict=True)]
    if a.dim() == b.dim():
        return torch.stack([a[:, part] @ b[part] for part in parts])
    if a.dim() == 2:
        return torch.cat([a[part] @ b[number] for number, part in enumerate(parts)])
    return torch.cat([a[number] @ b[:, part] for number, part in enumerate(parts)], dim=1)


@pytest.mark.parametrize(
    ("left", "right"), [((5, 4), (3, 4, 6)), ((3, 4, 6), (6, 5)), ((4, 5), (5, 6))], ids=["rows", "columns", "sum"]
)
def test_groups(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    check(product.grouped_mm, _in_groups, [drawn(*left), drawn(*right, seed=9), np.array([2, 2, 5])])


def test_groups_without_ends() -> None:
    check(product.grouped_mm, torch.bmm, [drawn(2, 3, 4), drawn(2, 4, 5, seed=9)])
