"""``out=``: a result that the caller provides is checked, and resized, as the op's own rules have it.

When torch calls a functional op, its structured implementation infers shape and type and allocates the result before it
calls the ``.out`` overload of the device. A caller's ``out=`` reaches that overload directly, but through the autograd
key first: there its rules are asked for on the ``meta`` device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from metal_ops.backend.kernels import Kernel
from metal_ops.backend.memory import DEVICE_TYPE, resize
from metal_ops.backend.views import overload_of

_UNSIZED = torch.Size((0,))


@dataclass(frozen=True)
class _Described:
    """A tensor without its memory."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: str

    def made(self) -> torch.Tensor:
        return torch.empty_strided(self.shape, self.strides, dtype=self.dtype, device=self.device)


def sized(name: str, kernel: Kernel) -> Kernel:
    """The ``.out`` overload ``name`` as torch's own functions reach it: some leave it to the device to size the result.

    They pass one of shape (0,), whatever the op makes.
    """
    results = _results(name)
    infer = _inference(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        if any(kwargs[result].shape == _UNSIZED for result in results):
            infer(args, kwargs)
        return kernel(*args, **kwargs)

    return call


def checked(name: str, kernel: Kernel) -> Kernel:
    """The ``.out`` overload ``name`` as a caller reaches it: ``kernel`` behind the op's own rules for ``out``."""
    results = _results(name)
    infer = _inference(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        _refuse_gradients(name.partition(".")[0], args, kwargs)
        infer(args, kwargs)
        made = kernel(*args, **kwargs)
        for result in results:
            torch.autograd.graph.increment_version(kwargs[result])
        return made

    return call


def _results(name: str) -> tuple[str, ...]:
    return tuple(argument.name for argument in overload_of(name)._schema.arguments if argument.is_out)


def _inference(name: str) -> Callable[[tuple[Any, ...], dict[str, Any]], None]:
    """What gives the results of a call the shape that the op's rules have for them, and raises what they raise."""
    op = name.partition(".")[0]
    results = _results(name)

    def infer(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        inferred = _inferred(op, _described(args), tuple((key, _described(value)) for key, value in kwargs.items()))
        for result in results:
            if kwargs[result].shape != inferred[result].shape:
                resize(kwargs[result], inferred[result].shape, inferred[result].strides)

    return infer


@lru_cache(maxsize=4096)
def _inferred(op: str, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]) -> dict[str, _Described]:
    """What torch's rules make of the results that a caller provides; raises what they raise."""
    keywords = {key: _made(value) for key, value in kwargs}
    getattr(torch.ops.aten, op)(*_made(args), **keywords)
    return {key: _described(value) for key, value in keywords.items() if isinstance(value, torch.Tensor)}


def is_out_overload(name: str) -> bool:
    """Whether the overload writes to tensors that the caller provides for the result."""
    return bool(_results(name))


def _refuse_gradients(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """As torch does: a result that exists already cannot be differentiated."""
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )


def _described(value: Any) -> Any:
    """Arguments without their memory, so that calls of one kind are equal; tensors of the device as ``meta`` ones."""
    if isinstance(value, torch.Tensor):
        device = value.device.type
        return _Described(tuple(value.shape), value.stride(), value.dtype, "meta" if device == DEVICE_TYPE else device)
    return tuple(map(_described, value)) if isinstance(value, (list, tuple)) else value


def _made(value: Any) -> Any:
    if isinstance(value, _Described):
        return value.made()
    return tuple(map(_made, value)) if isinstance(value, tuple) else value
