"""Elementwise ops with a ladder and ``out=``, and devices that are wrong in one way each with either."""

from __future__ import annotations

from typing import Any

import numpy as np
from tiny import Faulty, Ulps

from conformance.op import Ladder, Op, Reference
from conformance.strategies import Operand, elementwise_cases


def negative() -> Op:
    return Op(
        name="tiny.negative",
        family="tiny",
        function="negative",
        dtypes=("float32", "float16"),
        cases=lambda dtype, property: elementwise_cases("tiny.negative", dtype, property),
        reference=Reference(np.negative, "numpy"),
        bound=Ulps(),
        properties=("forward", "variants", "out"),
        out="negative",
        ladder=Ladder(dtypes=("bool",)),
    )


def mul() -> Op:
    return Op(
        name="tiny.mul",
        family="tiny",
        function="mul",
        dtypes=("float32", "float16"),
        cases=lambda dtype, property: elementwise_cases("tiny.mul", dtype, property, operands=(Operand(), Operand())),
        reference=Reference(np.multiply, "numpy"),
        bound=Ulps(),
        properties=("forward", "variants", "out"),
        out="mul",
        ladder=Ladder(domains=(None, (0, 4))),
    )


class Faultless(Faulty):
    """Changes nothing."""

    functions = ("neg", "mul")


class Wrapping(Faultless):
    """Reads a row again and again as if it were a whole tensor of ones."""

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        rows = [x for x in args if x.ndim < result.ndim]
        return result.copy_(args[0].expand_as(result)) if rows and rows[0].ndim else result


class Large(Faultless):
    """Forgets the last element of a large tensor."""

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        if result.numel() > 1 << 16:
            result.view(-1)[-1] = 0
        return result


class Spilling(Faultless):
    """Writes behind what the result is stored in."""

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        out = kwargs.get("out")
        if out is not None and out.numel():
            last = out.untyped_storage().nbytes() // out.element_size() - 1
            out.as_strided((1,), (1,), last).fill_(0)
        return result


class Unscaled(Faultless):
    """Stores half the result wherever it is stored as another type."""

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        out = kwargs.get("out")
        return result.div_(2) if out is not None and out.dtype != args[0].dtype and out.is_floating_point() else result
