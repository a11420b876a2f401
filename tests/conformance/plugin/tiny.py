"""A package of someone else: a few small ops, devices that are wrong in one way each, and a list of known failures.

Tests put this folder on the path, where its entry points are found like those of an installed package.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from conformance.case import exhaustive_case, stratified_cases
from conformance.devices.cpu import CpuDevice
from conformance.op import Acceptance, Computation, Op, Reference
from conformance.oracle import ulp
from conformance.strategies import elementwise_cases, reduction_cases


class Ulps:
    """Two ulp about the true value."""

    name = "2 ulp"
    source = "made for tests"

    def accept(self, computation: Computation) -> list[Acceptance]:
        value = np.asarray(computation.reference(*computation.inputs, **computation.params))
        spacing = np.asarray(2 * ulp(value, computation.dtype))
        return [Acceptance(value, np.where(np.isfinite(spacing), spacing, 0.0), "conforming")]


def _elementwise(name: str, function: str, reference: Any, domain: tuple[float, float] | None = None) -> Op:
    return Op(
        name=name,
        family="tiny",
        function=function,
        dtypes=("float32", "float16"),
        cases=lambda dtype, property: elementwise_cases(name, dtype, property, domain=domain),
        reference=Reference(reference, "numpy"),
        bound=Ulps(),
        properties=("forward", "exhaustive", "layout"),
        sweep=lambda dtype: (
            [exhaustive_case(name, dtype)] if dtype == "float16" else stratified_cases(name, dtype, count=1 << 12)
        ),
    )


def ops() -> list[Op]:
    return [
        _elementwise("tiny.negative", "negative", np.negative),
        _elementwise("tiny.abs", "abs", np.abs),
        Op(
            name="tiny.cumsum",
            family="tiny-rows",
            function="cumsum",
            dtypes=("float32",),
            cases=lambda dtype, property: reduction_cases("tiny.cumsum", dtype, property),
            reference=Reference(lambda x, dim: np.cumsum(x, axis=dim).reshape(x.shape), "numpy"),
            bound=Ulps(),
        ),
    ]


def known() -> list[Path]:
    return [Path(path) for path in os.environ.get("TINY_KNOWN", "").split(os.pathsep) if path]


def _mode(
    change: Callable[[Any, tuple[Any, ...], Any], Any], functions: tuple[str, ...]
) -> AbstractContextManager[None]:
    """Change what the ops under test return, below autograd, where an operand's layout is still seen."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            if function.overloadpacket.__name__ in functions:
                return change(result, args, kwargs or {})
            return result

    return Mode()


class Faulty(CpuDevice):
    """The CPU, but what its ops return is changed within its sessions."""

    name = "tiny"
    functions: tuple[str, ...] = ("neg", "abs", "cumsum")

    def session(self) -> AbstractContextManager[None]:
        return _mode(self.change, self.functions)

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        return result


class Wrong(Faulty):
    """Wrong above 1000."""

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        # In place, for its layout stays what torch's rules make it.
        return result.copy_(result.where(args[0] <= 1000, result + result / 16))


class Packed(Faulty):
    """Takes a strided operand for a dense one."""

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        operand = args[0]
        if operand.is_contiguous() or not operand.numel():
            return result
        return -operand.as_strided((operand.numel(),), (1,), 0).clone().view(operand.shape)


class Raising(Faulty):
    """Raises for tensors of three dimensions."""

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        if result.ndim == 3:
            raise RuntimeError("no three dimensions here\nand a second line")
        return result


class Misshapen(Faulty):
    """Returns double for more than one dimension."""

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        return result.double() if result.ndim > 1 else result


class Restrided(Faulty):
    """Returns what has more than one dimension transposed in memory."""

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        return result.mT.contiguous().mT if result.ndim > 1 else result


class Writing(Faulty):
    """Writes one element behind its operand."""

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        operand = args[0]
        if operand.is_contiguous():
            operand.as_strided((operand.numel() + 1,), (1,), operand.storage_offset())[-1] = 0
        return result


class Flaky(Faulty):
    """Raises once, in the tenth call."""

    def __init__(self) -> None:
        self.calls = 0

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        self.calls += 1
        if self.calls == 10:
            raise RuntimeError("out of luck")
        return result


class Lacking(Faulty):
    """Has no such op."""

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        raise NotImplementedError("the operator 'aten::neg' is not implemented for this device")


class Slow(Faulty):
    """Takes its time, for tests that interrupt."""

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        time.sleep(0.05)
        return result


class Deadly(Faulty):
    """Ends the process in every call of one op."""

    functions = ("neg",)

    def change(self, result: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        os._exit(7)


class Absent(Faulty):
    """Is not there."""

    def available(self) -> str | None:
        return "device tiny: it is only a test"


def make(build: str | None = None) -> Faulty:
    """A factory that takes a build."""
    device = Faulty()
    device.build = build  # type: ignore[attr-defined]
    return device


instance = Faulty()
nothing = object()
