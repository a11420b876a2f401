"""The results of an op: allocated for it, or provided by the caller as ``out=``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from metal_ops.backend.kernels import Kernel
from metal_ops.backend.memory import allocate, resize
from metal_ops.backend.results import inferred
from metal_ops.backend.views import overload_of

_UNSIZED = torch.Size((0,))


def allocating(name: str, kernel: Kernel) -> Kernel:
    """The functional form of the ``.out`` overload ``name``: it writes to new tensors."""
    op, results = name.partition(".")[0], results_of(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        made = [allocate(result.shape, result.strides, result.dtype) for result in inferred(op, args, kwargs)]
        return kernel(*args, **kwargs, **dict(zip(results, made, strict=True)))

    return call


def functional(name: str) -> str | None:
    """The overload that the ``.out`` overload ``name`` is the other form of; None if there is none."""
    schema = overload_of(name)._schema
    op = name.partition(".")[0]
    wanted = [(argument.name, str(argument.type)) for argument in schema.arguments if not argument.is_out]
    packet = getattr(torch.ops.aten, op)
    for overload in packet.overloads():
        arguments = getattr(packet, overload)._schema.arguments
        if [(argument.name, str(argument.type)) for argument in arguments] == wanted:
            return op if overload == "default" else f"{op}.{overload}"
    return None


def sized(name: str, kernel: Kernel) -> Kernel:
    """The ``.out`` overload ``name`` as torch's own functions reach it: some leave it to the device to size the result.

    They pass one of shape (0,), whatever the op makes.
    """
    results, size = results_of(name), _sizing(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        if any(kwargs[result].shape == _UNSIZED for result in results):
            size(args, kwargs)
        return kernel(*args, **kwargs)

    return call


def checked(name: str, kernel: Kernel) -> Kernel:
    """The ``.out`` overload ``name`` as a caller reaches it: ``kernel`` behind the op's own rules for ``out``.

    A caller reaches the autograd key first, torch's own functions do not.
    """
    results, size = results_of(name), _sizing(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        _refuse_gradients(name.partition(".")[0], args, kwargs)
        size(args, kwargs)
        _refuse_types(name, args, kwargs)
        made = kernel(*args, **kwargs)
        for result in results:
            torch.autograd.graph.increment_version(kwargs[result])
        return made

    return call


def results_of(name: str) -> tuple[str, ...]:
    """The keywords of the results that an overload takes from its caller; empty if it takes none."""
    return tuple(argument.name for argument in overload_of(name)._schema.arguments if argument.is_out)


def _sizing(name: str) -> Callable[[tuple[Any, ...], dict[str, Any]], None]:
    """What gives the results of a call the shape that the op's rules have for them, and raises what they raise."""
    op, results = name.partition(".")[0], results_of(name)

    def size(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        # Without the caller's results: the rules for ``meta`` refuse types, and forget strides, that backends take.
        plain = {name: value for name, value in kwargs.items() if name not in results}
        for result, due in zip(results, inferred(op, args, plain), strict=True):
            given = kwargs[result]
            if not torch.can_cast(due.dtype, given.dtype):
                raise RuntimeError(f"result type {due.dtype} can't be cast to the desired output type {given.dtype}")
            if given.shape != due.shape:
                resize(given, due.shape, due.strides)

    return size


_OF_TYPES = re.compile(r".*\b(d?types?|non-boolean outputs|complex)\b", re.IGNORECASE | re.DOTALL)
"""What torch says of element types that an op does not take together, or of a result's that it does not store."""

_LACKING = "not implemented for"
"""What it says of types that the CPU's kernel lacks."""


def _refuse_types(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise what all backends raise where an op does not cast to the type of its result.

    Rules for ``meta`` that are written apart do cast, so the CPU is asked, with tensors of the same rank without
    elements; of those without dimensions, which promote by rules of their own, with one.
    """

    def little(value: Any) -> Any:
        return torch.ones((0,) * value.dim(), dtype=value.dtype) if isinstance(value, torch.Tensor) else value

    try:
        overload_of(name)(*map(little, args), **{key: little(value) for key, value in kwargs.items()})
    except Exception as error:
        if _OF_TYPES.match(str(error)) and _LACKING not in str(error):
            raise
        # Of sizes, or of types that the CPU lacks, it says nothing that holds here.


def _refuse_gradients(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """As torch does: a result that exists already cannot be differentiated."""
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
