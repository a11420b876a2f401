"""Helpers: what programs around a judged op need, and what has no kernel here. They run on the host, and are counted.

Random numbers have Metal kernels, but which numbers a seed gives is nothing that a case depends on. A judged result
never comes out of a helper: a device reports the helpers that ran, and the engine refuses to judge what they computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from metal_ops.backend.memory import on_host
from metal_ops.backend.runtime import Module
from metal_ops.backend.views import overload_of

_RANDOM = (
    "normal_",
    "uniform_",
    "random_",
    "random_.from",
    "random_.to",
    "bernoulli_.float",
    "exponential_",
)

_used: list[str] = []


def take_used() -> list[str]:
    """Names of the helpers that ran since the last call."""
    taken = list(_used)
    _used.clear()
    return taken


def _random(name: str) -> Callable[..., Any]:
    """Fill a tensor in place with random numbers of the host's generator, or of the one given."""
    overload = overload_of(name)

    def helper(tensor: torch.Tensor, *args: Any, generator: torch.Generator | None = None, **kwargs: Any) -> Any:
        _used.append(name)
        overload(on_host(tensor), *args, generator=generator or Module.generator, **kwargs)
        return tensor

    return helper


HELPERS: dict[str, Callable[..., Any]] = {name: _random(name) for name in _RANDOM}
"""By aten overload."""
