"""From an aten overload to its launch: torch's arguments become views, what the launch makes becomes tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from conformance.devices.base import Unsupported
from metal_ops.backend.memory import dtype_of, tensor_of, view_of
from metal_ops.backend.runtime import queue
from metal_ops.backend.views import overload_of
from metal_ops.launch._launcher import Launch

Kernel = Callable[..., Any]


def kernel(name: str, launch: Launch) -> Kernel:
    """What torch calls for overload ``name``.

    Torch leaves out arguments that have their default value; a launch gets them all, and in the order of the schema.
    """
    schema = overload_of(name)._schema
    positional = tuple(a.default_value for a in schema.arguments if not a.kwarg_only)
    defaults = {a.name: a.default_value for a in schema.arguments if a.kwarg_only and a.has_default_value()}
    written = _written(schema)

    def call(*args: Any, **kwargs: Any) -> Any:
        arguments = [_translated(argument) for argument in (*args, *positional[len(args) :])]
        keywords = {key: _translated(value) for key, value in {**defaults, **kwargs}.items()}
        try:
            made = launch(queue(), *arguments, **keywords)
        except Unsupported as reason:
            raise NotImplementedError(missing(name, (*args, *kwargs.values()), str(reason))) from reason
        if written:
            tensors = tuple(args[place] if isinstance(place, int) else kwargs[place] for place in written)
            return tensors[0] if len(tensors) == 1 else tensors
        if isinstance(made, tuple):
            return tuple(view and tensor_of(view) for view in made)
        return made and tensor_of(made)

    return call


def missing(name: str, arguments: tuple[Any, ...], reason: str) -> str:
    """The message for what the device cannot compute: op, element types, and what is missing."""
    tensors = [a for argument in arguments for a in (argument if isinstance(argument, (list, tuple)) else (argument,))]
    types = dict.fromkeys(str(a.dtype).removeprefix("torch.") for a in tensors if isinstance(a, torch.Tensor))
    return f"{name} on {', '.join(types) or 'no tensor'}: {reason}"


def fallback(op: Any, *args: Any, **kwargs: Any) -> Any:
    """What torch calls for every overload that has neither a launch nor a composition of others.

    Raises
    ------
    NotImplementedError
        Always.
    """
    name = str(op).removeprefix("aten.").removesuffix(".default")
    raise NotImplementedError(missing(name, (*args, *kwargs.values()), "device air has no launch for it"))


def _written(schema: Any) -> tuple[int | str, ...]:
    """The arguments that the op writes to and returns, by position or by keyword."""
    places: list[int | str] = []
    for returned in schema.returns:
        if returned.alias_info is None or not returned.alias_info.is_write:
            return ()
        for position, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.before_set == returned.alias_info.before_set:
                places.append(argument.name if argument.kwarg_only else position)
    return tuple(places)


def _translated(argument: Any) -> Any:
    kind = type(argument)
    if kind is torch.Tensor or isinstance(argument, torch.Tensor):
        return view_of(argument)
    if kind is list or kind is tuple:
        return tuple(_translated(item) for item in argument)
    return dtype_of(argument) if kind is torch.dtype else argument
