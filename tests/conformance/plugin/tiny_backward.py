"""Ops of several operands with a gradient, and devices whose backward is wrong in one way each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from tiny import Faulty, Ulps

from conformance.op import Acceptance, Computation, Gradient, Op, Reference
from conformance.strategies import Operand, cat_cases, elementwise_cases


class Summed:
    """A sum of products in any order: 64 roundings of the sum of the magnitudes; anything where that overflows."""

    name = "64 roundings"
    source = "made for tests"

    def accept(self, computation: Computation) -> list[Acceptance]:
        value = computation.reference(*computation.inputs, **computation.params)
        params = {name: abs(number) for name, number in computation.params.items()}
        size = computation.reference(*(np.abs(operand) for operand in computation.inputs), **params)
        tolerance = 2.0**-18 * size + 2.0**-120
        return [Acceptance(value, np.where(size < 3e38, tolerance, np.inf), "conforming")]


def summed_to(gradient: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Sum over what was broadcast."""
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    ones = tuple(dim for dim, size in enumerate(shape) if size == 1 and gradient.shape[dim] != 1)
    return np.asarray(gradient.sum(axis=ones, keepdims=True))


def _mul_vjp(gradient: Any, result: Any, x: Any, y: Any = None, *, other: Any = None) -> tuple[Any, ...]:
    if y is None:
        return (gradient * other,)
    return summed_to(gradient * y, x.shape), summed_to(gradient * x, y.shape)


def mul() -> Op:
    return Op(
        name="tiny.mul",
        family="tiny",
        function="mul",
        dtypes=("float32",),
        cases=lambda dtype, property: elementwise_cases(
            "tiny.mul", dtype, property, operands=(Operand(), Operand(number="other"))
        ),
        reference=Reference(lambda x, other: x * other, "exact"),
        bound=Summed(),
        properties=("forward", "layout", "backward"),
        gradient=Gradient(_mul_vjp, "numpy", Summed()),
        promotes=(0, 1, "other"),
    )


def cat() -> Op:
    def reference(*tensors: Any, dim: int = 0) -> Any:
        return np.concatenate([x for x in tensors if x.shape != (0,) or all(x.ndim == 1 for x in tensors)], dim)

    def vjp(gradient: Any, result: Any, *tensors: Any, dim: int = 0) -> tuple[Any, ...]:
        sizes = [0 if x.shape == (0,) else x.shape[dim] for x in tensors]
        parts = np.split(gradient, np.cumsum(sizes)[:-1], dim)
        return tuple(part.reshape(x.shape) for part, x in zip(parts, tensors, strict=True))

    return Op(
        name="tiny.cat",
        family="tiny",
        function="cat",
        dtypes=("float32",),
        cases=lambda dtype, property: cat_cases("tiny.cat", dtype, property),
        reference=Reference(reference, "exact"),
        bound=Ulps(),
        properties=("forward", "layout", "backward"),
        gradient=Gradient(vjp, "exact", Ulps()),
        listed=True,
    )


class FaultyBackward(Faulty):
    """The CPU, but ``change_gradient`` changes what multiplications of the backward return."""

    functions = ("mul",)

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        import torch

        if torch._C._current_autograd_node() is None:
            return result
        return self.change_gradient(result, args)

    def change_gradient(self, result: Any, args: tuple[Any, ...]) -> Any:
        return result


class WrongGradient(FaultyBackward):
    """Wrong above 1000."""

    def change_gradient(self, result: Any, args: tuple[Any, ...]) -> Any:
        return result.where(~(result > 1000), result + result / 16)


class PackedGradient(FaultyBackward):
    """Takes an expanded incoming gradient for a packed one."""

    def change_gradient(self, result: Any, args: tuple[Any, ...]) -> Any:
        gradient, other = args
        if not gradient.numel() or 0 not in gradient.stride() or not getattr(other, "ndim", 0):
            return result
        return (gradient.as_strided((1,), (1,), gradient.storage_offset()) + 1) * other


class RaisingBackward(FaultyBackward):
    """Raises in the backward of three dimensions."""

    def change_gradient(self, result: Any, args: tuple[Any, ...]) -> Any:
        if result.ndim == 3:
            raise RuntimeError("no three dimensions here")
        return result


class LackingBackward(FaultyBackward):
    """Has no backward."""

    def change_gradient(self, result: Any, args: tuple[Any, ...]) -> Any:
        raise NotImplementedError("mul has no backward kernel")


class WrongForward(Faulty):
    """Wrong in the forward only."""

    functions = ("mul",)

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        import torch

        if torch._C._current_autograd_node() is not None:
            return result
        return result.copy_(result.where(~(result > 1000), result + result / 16))


class Dropping(Faulty):
    """Joins all but the last of several tensors, and makes up the rest."""

    functions = ("cat",)

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        return result.zero_() if len(args[0]) > 1 else result
