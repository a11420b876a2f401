"""Vector-Jacobian products of reductions, softmax, pads, selections and copies: with autograd, and as adjoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from torch.nn import functional

from references import softmax as softmax_reference
from references.gradients import activation, binary, copy, fill, pad, reduction, select, softmax
from tests.references.gradients import _autograd

Array = np.ndarray[Any, np.dtype[Any]]

_SHAPES = [(), (1,), (5,), (3, 4), (2, 3, 4), (4, 1, 3), (0, 3)]
_SPECIALS = (0.0, -0.0, 1.0, -2.0, 1.0, 3.0, np.inf, -np.inf, np.nan)


def _drawn(shape: Sequence[int], *, imaginary: bool = False, seed: int = 7) -> Array:
    random = np.random.default_rng(seed)
    drawn = random.normal(size=tuple(shape))
    return np.asarray(drawn + 1j * random.normal(size=tuple(shape)) if imaginary else drawn)


def _check(
    vjp: Any, forward: Any, operands: Sequence[Array], params: Mapping[str, Any], gradient: Array | None = None
) -> None:
    """Our gradients and autograd's are the same."""
    result = _autograd.forward(forward, operands, params)
    if gradient is None:
        gradient = _drawn(result.shape, imaginary=np.iscomplexobj(result), seed=8)
    with np.errstate(all="ignore"):
        ours = vjp(gradient, result, *operands, **params)
    theirs = _autograd.gradients(forward, gradient, operands, params)
    assert len(ours) == len(theirs)
    for i, (one, two) in enumerate(zip(ours, theirs, strict=True)):
        _autograd.assert_equal(one, two, 64.0, where=f"operand {i}")


def _reduced(shape: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Ways to reduce an array of a shape."""
    dims: list[Any] = [None, *range(-len(shape), len(shape)), tuple(range(len(shape)))]
    dims += [(0, -1)] if len(shape) > 2 else []
    for dim in dims:
        yield {} if dim is None else {"dim": dim}
        yield {} if dim is None else {"dim": dim, "keepdim": True}


_REDUCTIONS: dict[str, tuple[Any, Callable[..., torch.Tensor]]] = {
    "sum": (reduction.sum, torch.sum),
    "nansum": (reduction.nansum, torch.nansum),
    "mean": (reduction.mean, torch.mean),
    "amax": (reduction.amax, torch.amax),
    "amin": (reduction.amin, torch.amin),
    "prod": (reduction.prod, torch.prod),
}


@pytest.mark.parametrize("shape", _SHAPES, ids=str)
@pytest.mark.parametrize("name", _REDUCTIONS)
def test_reductions_agree_with_autograd(name: str, shape: tuple[int, ...]) -> None:
    vjp, forward = _REDUCTIONS[name]
    for params in _reduced(shape):
        if name == "prod" and isinstance(params.get("dim"), tuple):
            continue
        if name in ("amax", "amin") and 0 in shape and (not params or 0 in _reduced_sizes(shape, params["dim"])):
            continue  # has no result
        _check(vjp, forward, [_drawn(shape)], params)


def _reduced_sizes(shape: Sequence[int], dim: int | tuple[int, ...]) -> list[int]:
    return [shape[axis] for axis in ((dim,) if isinstance(dim, int) else dim)]


@pytest.mark.parametrize("name", ["sum", "mean", "prod"])
def test_complex_reductions_agree_with_autograd(name: str) -> None:
    vjp, forward = _REDUCTIONS[name]
    _check(vjp, forward, [_drawn((3, 5), imaginary=True)], {})
    _check(vjp, forward, [_drawn((3, 5), imaginary=True)], {"dim": 1})


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", _REDUCTIONS)
def test_reductions_of_special_values_agree_with_autograd(name: str, keepdim: bool) -> None:
    vjp, forward = _REDUCTIONS[name]
    rows = np.array(list(product(_SPECIALS, repeat=3)))
    for size in (1, 2, 3):
        _check(vjp, forward, [np.ascontiguousarray(rows[:, :size])], {"dim": 1, "keepdim": keepdim})
    without_zeros = rows[(rows != 0).all(axis=1)]
    _check(vjp, forward, [without_zeros], {"dim": 1, "keepdim": keepdim})
    for row in rows[::7]:
        _check(vjp, forward, [row], {})
        _check(vjp, forward, [row], {}, np.asarray(np.nan))


def test_the_product_of_the_others_is_right_at_any_length() -> None:
    for length in range(1, 20):
        for zero in range(length):
            factors = np.where(np.arange(length) == zero, 0.0, np.arange(2.0, length + 2))
            (ours,) = reduction.prod(np.ones(()), np.zeros(()), factors)
            assert ours is not None
            expected = np.where(np.arange(length) == zero, np.prod(np.delete(factors, zero)), 0.0)
            np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_agrees_with_autograd(name: str) -> None:
    vjp, forward = getattr(softmax, name), getattr(torch, name)
    for shape in ((5,), (3, 4), (2, 3, 4), (0, 4), (4, 0)):
        for dim in range(-len(shape), len(shape)):
            _check(vjp, forward, [_drawn(shape)], {"dim": dim})
    _check(vjp, forward, [_drawn(())], {"dim": 0})
    _check(vjp, forward, [np.array(list(product(_SPECIALS, repeat=3)))], {"dim": 1})


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_has_the_derivative_of_mpmath(name: str) -> None:
    x, gradient = _drawn((4,)), _drawn((4,), seed=8)
    result = getattr(softmax_reference, name)(x, dim=0)
    (ours,) = getattr(softmax, name)(gradient, result, x, dim=0)
    with mpmath.workdps(40):
        for i in range(4):

            def weighted(t: Any, i: int = i) -> Any:
                shifted = [t if j == i else mpmath.mpf(x[j]) for j in range(4)]
                exponentials = [mpmath.exp(each) for each in shifted]
                shares = [each / mpmath.fsum(exponentials) for each in exponentials]
                return mpmath.fsum(
                    mpmath.mpf(gradient[j]) * (mpmath.log(shares[j]) if name == "log_softmax" else shares[j])
                    for j in range(4)
                )

            assert abs(mpmath.diff(weighted, mpmath.mpf(x[i])) - ours[i]) < 2.0**-48


_PADS = {
    "constant": [
        ((5,), (2, 3)),
        ((5,), (-2, 3)),
        ((5,), (-2, -1)),
        ((3, 4), (1, 2, 0, 3)),
        ((2, 3, 4), (1, -2, -1, 3, 2, 0)),
        ((2, 3, 4, 2, 3), (1, 1, 0, 2, 3, 0, -1, 0, 2, 1)),
        ((0, 3), (1, 1, 2, 0)),
        ((2, 3), (0, 0)),
    ],
    "reflect": [
        ((2, 5), (2, 4)),
        ((2, 5), (0, 0)),
        ((2, 5), (-1, 2)),
        ((2, 5), (3, -2)),
        ((2, 5), (3, -4)),
        ((2, 5), (-2, 4)),
        ((2, 5), (-6, 4)),
        ((2, 5), (4, -6)),
        ((2, 3, 4), (1, 2)),
        ((2, 3, 4), (1, 3, 2, 0)),
        ((1, 2, 3, 4), (3, -1, 2, 1)),
        ((2, 3, 4, 5), (4, 2, 1, 3, 2, 1)),
        ((2, 1, 3, 4, 5), (4, 2, 1, 3, 2, 1)),
    ],
    "circular": [
        ((2, 5), (2, 5)),
        ((2, 5), (5, 0)),
        ((2, 5), (-1, 2)),
        ((2, 5), (2, -1)),
        ((2, 3, 4), (1, 3, 2, 0)),
        ((2, 1, 3, 4, 5), (4, 2, 1, 3, 2, 1)),
    ],
}
_PADS["replicate"] = [
    *_PADS["reflect"],
    ((2, 5), (7, 9)),
    ((2, 3, 4), (6, 0, 0, 8)),
    ((2, 1), (3, 2)),
    ((2, 5), (-6, 9)),
    ((2, 5), (9, -7)),
]
_PAD_CASES = [(mode, *case) for mode, cases in _PADS.items() for case in cases]


@pytest.mark.parametrize(("mode", "shape", "widths"), _PAD_CASES, ids=str)
def test_pads_agree_with_autograd(mode: str, shape: tuple[int, ...], widths: tuple[int, ...]) -> None:
    params = {"pad": widths, "mode": mode} | ({"value": 1.5} if mode == "constant" else {})
    _check(pad.pad, functional.pad, [_drawn(shape)], params)
    _check(pad.pad, functional.pad, [_drawn(shape, imaginary=True)], params)


@pytest.mark.parametrize(("mode", "shape", "widths"), [case for case in _PAD_CASES if min(case[2]) >= 0], ids=str)
def test_pads_are_adjoint_to_those_of_numpy(mode: str, shape: tuple[int, ...], widths: tuple[int, ...]) -> None:
    names = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    pairs = [(0, 0)] * (len(shape) - len(widths) // 2)
    pairs += [(widths[i], widths[i + 1]) for i in range(len(widths) - 2, -1, -2)]
    x = _drawn(shape)
    padded = np.pad(x, pairs, mode=names.get(mode, mode))  # type: ignore[call-overload]
    gradient = _drawn(padded.shape, seed=8)
    (ours,) = pad.pad(gradient, padded, x, widths, mode)
    assert ours is not None
    assert ours.shape == shape
    np.testing.assert_allclose((ours * x).sum(), (gradient * padded).sum(), rtol=1e-12, atol=1e-12)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="mode is 'mirror'; allowed: constant, reflect, replicate, circular"):
        pad.pad(np.ones(3), np.ones(3), np.ones(3), (0, 0), "mirror")


_BROADCAST = [((3, 4), (3, 4), (3, 4)), ((4,), (3, 1), (3, 4)), ((2, 1, 1), (), (5, 1)), ((0, 1), (3,), ())]


@pytest.mark.parametrize("shapes", _BROADCAST, ids=str)
def test_where_agrees_with_autograd(shapes: tuple[tuple[int, ...], ...]) -> None:
    condition = np.asarray(_drawn(shapes[0]) > 0)
    x, other = _drawn(shapes[1]), _drawn(shapes[2], seed=9)
    _check(select.where, torch.where, [condition, x, other], {})
    _check(select.where, torch.where, [condition, np.asarray(x + 1j), np.asarray(other - 2j)], {})
    _check(select.where, torch.where, [condition, x], {"other": 2.0})
    _check(select.where_scalar_self, lambda c, other, self: torch.where(c, self, other), [condition, x], {"self": 2.0})
    gradient = np.full(np.broadcast_shapes(*shapes), np.nan)
    _check(select.where, torch.where, [condition, x, other], {}, gradient)


@pytest.mark.parametrize("shapes", _BROADCAST, ids=str)
def test_masked_fill_agrees_with_autograd(shapes: tuple[tuple[int, ...], ...]) -> None:
    x, mask = _drawn(shapes[0]), np.asarray(_drawn(shapes[1]) > 0)
    _check(select.masked_fill, torch.masked_fill, [x, mask], {"value": -np.inf})
    _check(select.masked_fill, torch.masked_fill, [x, mask, _drawn(())], {})
    gradient = np.full(np.broadcast_shapes(*shapes[:2]), np.inf)
    _check(select.masked_fill, torch.masked_fill, [x, mask, _drawn(())], {}, gradient)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat_agrees_with_autograd(dim: int) -> None:
    def forward(*tensors: torch.Tensor, dim: int) -> torch.Tensor:
        return torch.cat(tensors, dim)

    shapes = [(2, 3), (2, 3), (0, 3) if dim == 0 else (2, 0), (0,), (5, 3) if dim == 0 else (2, 7)]
    operands = [_drawn(shape, seed=i) for i, shape in enumerate(shapes)]
    _check(select.cat, forward, operands, {"dim": dim})
    _check(select.cat, forward, [operands[0], _drawn((2, 3), imaginary=True)], {"dim": dim})
    _check(select.cat, forward, [operands[0], np.ones((2, 3), np.int64)], {"dim": dim})


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_glu_agrees_with_autograd(dim: int) -> None:
    _check(activation.glu, functional.glu, [_drawn((4, 6))], {"dim": dim})
    specials = np.array(list(product(_SPECIALS, repeat=2)))
    _check(activation.glu, functional.glu, [specials if dim else np.ascontiguousarray(specials.T)], {"dim": dim})


@pytest.mark.parametrize("name", ["polar", "complex"])
def test_complex_numbers_of_two_parts_agree_with_autograd(name: str) -> None:
    for one, two in (((50,), (50,)), ((3, 1), (4,)), ((), (2,))):
        operands = [_drawn(one), _drawn(two, seed=9)]
        _check(getattr(binary, name), getattr(torch, name), operands, {})
    zeros = [np.array([0.0, -0.0, 1.0, -1.0]), np.array([1.0, -2.0, 0.0, -0.0])]
    _check(getattr(binary, name), getattr(torch, name), zeros, {})


@pytest.mark.parametrize("imaginary", [False, True])
def test_fills_agree_with_autograd(imaginary: bool) -> None:
    for shape in _SHAPES:
        _check(fill.fill, torch.fill, [_drawn(shape, imaginary=imaginary)], {"value": 2.5})


def test_casts_agree_with_autograd() -> None:
    for wanted in (torch.float32, torch.float64, torch.complex128):
        _check(copy.cast, torch.Tensor.to, [np.float64([1.5, -2.0])], {"dtype": wanted}, np.array([2.0, -1.0]))
    _check(copy.cast, lambda x: x.to(torch.complex128), [_drawn((3,))], {}, _drawn((3,), imaginary=True))
    (ours,) = copy.cast(np.ones(3), np.ones(3, np.int64), np.ones(3), dtype="int64")
    assert ours is None


def test_operands_that_are_not_real_numbers_have_no_gradient() -> None:
    gradient, x = np.ones(3), np.array([1.0, 2.0, 3.0])
    whole = np.array([2, 3, 4])
    for vjp in (binary.mul, binary.div, binary.pow, binary.add, binary.maximum):
        of_x, of_whole = vjp(gradient, x, x, whole)
        assert of_x is not None
        assert of_whole is None
