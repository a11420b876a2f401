"""Registering everything with torch, once a process."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from metal_ops.backend import printing, runtime, saving
from metal_ops.backend.helpers import HELPERS
from metal_ops.backend.kernels import Kernel, fallback, kernel
from metal_ops.backend.memory import DEVICE_TYPE
from metal_ops.backend.mirror import ABOVE_AUTOGRAD, MIRRORED
from metal_ops.backend.out import allocating, checked, functional, results_of, sized
from metal_ops.backend.transfers import TRANSFERS
from metal_ops.backend.views import VIEWS
from metal_ops.launch import LAUNCHES


@cache
def register() -> None:
    """Make ``air`` a device of the torch in this process; calling it again changes nothing.

    It has to come before the first backward pass of the process, for which torch's autograd starts a thread for each
    device that it knows then.

    Raises
    ------
    RuntimeError
        If another package has taken torch's slot for a device of one's own (PrivateUse1), or it is too late.
    """
    taken = torch._C._get_privateuse1_backend_name()
    if taken != "privateuseone":
        raise RuntimeError(f"device air needs torch's PrivateUse1 slot, which the device {taken!r} has taken")
    kernels, above_autograd = _kernels(), _above_autograd()
    runtime.announce()
    printing.install()
    saving.install()
    for name, function in kernels.items():
        _ATEN.impl(name, function, "PrivateUse1")
    for (name, key), function in above_autograd.items():
        _ATEN.impl(name, function, key)
    for key in ("Conjugate", "Negative"):  # a copy resolves these bits itself; torch would resolve them by a copy
        _ATEN.impl("_copy_from", _library.fallthrough_kernel, key)
    _EVERY.fallback(fallback, "PrivateUse1")
    _check_backward()


def _check_backward() -> None:
    leaf = torch.empty(1, device=DEVICE_TYPE, requires_grad=True)
    try:
        torch.autograd.grad(leaf.view(1), leaf, torch.empty(1, device=DEVICE_TYPE))
    except RuntimeError as error:
        raise RuntimeError("register device air before the first backward pass of the process") from error


def _kernels() -> dict[str, Kernel]:
    """What runs for the device's own dispatch key, by aten overload."""
    launches = {name: kernel(name, launch) for name, launch in LAUNCHES.items()}
    outs = {name: function for name, function in launches.items() if results_of(name)}
    allocated = {other: allocating(name, function) for name, function in outs.items() if (other := functional(name))}
    launches |= {name: sized(name, function) for name, function in outs.items()}
    return {**MIRRORED, **allocated, **launches, **VIEWS, **TRANSFERS, **HELPERS, **ABOVE_AUTOGRAD}


def _above_autograd() -> dict[tuple[str, str], Kernel]:
    """What runs before torch's differentiation, by aten overload and dispatch key."""
    outs = {name: checked(name, kernel(name, launch)) for name, launch in LAUNCHES.items() if results_of(name)}
    return {(name, "AutogradPrivateUse1"): function for name, function in {**outs, **ABOVE_AUTOGRAD}.items()}


_library: Any = torch.library  # untyped
_ATEN = _library.Library("aten", "IMPL")
_EVERY = _library.Library("_", "IMPL")
