"""Ops that only look at memory in another way: the CPU's kernels for them touch no memory, so they serve any device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from metal_ops.backend.memory import CPU

_OVERLOADS = (
    "as_strided",
    "view",
    "_reshape_alias",
    "unfold",
    "view_as_real",
    "view_as_complex",
    "set_.source_Storage_storage_offset",
    "set_.source_Storage",
    "set_.source_Tensor",
)


def overload_of(name: str) -> Any:
    """The op that torch calls by ``name``: ``add.out``, or ``view`` for the overload without a name."""
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def through_cpu(name: str) -> Callable[..., Any]:
    """The CPU's function for an overload, which touches no memory itself."""
    overload = overload_of(name)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        return overload.redispatch(CPU, *args, **kwargs)

    return kernel


VIEWS: dict[str, Callable[..., Any]] = {name: through_cpu(name) for name in _OVERLOADS}
"""By aten overload."""
