"""What a call's results are: their shapes, strides and types by torch's own rules, asked for on the ``meta`` device.

Torch infers them by itself only for backends in C++. Here the answer is kept for calls of the same kind.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch

from metal_ops.backend.memory import DEVICE_TYPE


class Described(NamedTuple):
    """A tensor without its memory."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: str


def inferred(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Described, ...]:
    """What a call of ``aten.<op>`` returns; raises what torch's rules raise.

    A result that the caller provides (``out``) is described as it is after the call.
    """
    return _inferred(op, _described(args), tuple([(key, _described(value)) for key, value in kwargs.items()]))


@lru_cache(maxsize=4096)
def _inferred(op: str, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]) -> tuple[Described, ...]:
    made = getattr(torch.ops.aten, op)(*_made(args), **{key: _made(value) for key, value in kwargs})
    return tuple(_described(tensor) for tensor in (made if isinstance(made, (tuple, list)) else (made,)))


def _described(value: Any) -> Any:
    """Arguments without their memory, so that calls of one kind are equal; tensors of the device as ``meta`` ones.

    Numbers go with their type: 1, 1.0 and True are equal, but not to torch.
    """
    kind = type(value)
    if kind is torch.Tensor or isinstance(value, torch.Tensor):
        device = value.device.type
        return Described(value.shape, value.stride(), value.dtype, "meta" if device == DEVICE_TYPE else device)
    if kind is tuple or kind is list:
        return tuple([_described(item) for item in value])
    return (_Number, kind, value) if kind in (int, float, bool) else value


class _Number:
    """Marks a number that is stored with its type."""


def _made(value: Any) -> Any:
    kind = type(value)
    if kind is Described:
        return torch.empty_strided(value.shape, value.strides, dtype=value.dtype, device=value.device)
    if kind is not tuple:
        return value
    return value[2] if value and value[0] is _Number else tuple([_made(item) for item in value])
