"""Launching fills. The rules of aten/src/ATen/native/mps/operations/ConstantOps.mm."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.devices.base import Unsupported
from metal_ops.launch import copy
from metal_ops.launch._launcher import Launch, Launcher
from metal_ops.launch._layouts import dense
from metal_ops.launch._scalars import Number, item, packed
from metal_ops.launch._views import METAL_NAMES, View
from metal_ops.launch._walk import walk

BYTES_PER_THREAD = 4


def fill(launcher: Launcher, target: View, value: Number) -> None:
    """Set every element to ``value``, rounded to the tensor's type."""
    if target.numel == 0:
        return
    if target.dtype.name not in METAL_NAMES:
        raise Unsupported(f"a fill of {target.dtype.name}: Metal has no such type")
    # A float8 is filled as the byte it is.
    type_name = "uchar" if target.dtype.name == "float8_e4m3fn" else target.metal
    arguments: dict[str, Any] = {"out": target.memory, "fill_val": packed(value, target.dtype)}
    if not dense(target):
        _strided(launcher, target, arguments, type_name)
        return
    count = target.numel
    threads = count
    if target.dtype.itemsize == 1:  # a thread fills an aligned word, so the first may hold bytes before the tensor
        threads = -(-(count + target.offset % BYTES_PER_THREAD) // BYTES_PER_THREAD)
    launcher.line(f"fill_scalar_dense_{type_name}", {**arguments, "numel": count}, threads)


def _strided(launcher: Launcher, target: View, arguments: dict[str, Any], type_name: str) -> None:
    steps = walk(target)
    if not steps.indexes_32bit:
        raise Unsupported(f"a fill of {steps.numel} elements needs more than 32-bit indexing, which is not implemented")
    arguments["sizes"] = np.array(steps.shape, np.int64)
    arguments["strides"] = np.array(steps.strides[0], np.int64)
    arguments["ndim"] = len(steps.shape)
    name = f"fill_scalar_strided_{type_name}"
    rows, columns = steps.shape[0], steps.numel // steps.shape[0]
    launcher.run(name, arguments, threads=(columns, rows, 1), group=(min(launcher.limit(name), columns), 1, 1))


def _fill_scalar(launcher: Launcher, target: View, value: Number) -> None:
    fill(launcher, target, value)


def _fill_tensor(launcher: Launcher, target: View, value: View) -> None:
    """A value on the device is copied by broadcasting; one in a type that only the host has is read."""
    if value.shape:
        raise RuntimeError(f"fill_: value must have no dimensions, given shape {value.shape}")
    if value.dtype.name in METAL_NAMES:
        copy.copy(launcher, value, target)
    else:
        fill(launcher, target, item(value))


def _zero(launcher: Launcher, target: View) -> None:
    fill(launcher, target, 0)


LAUNCHES: dict[str, Launch] = {"fill_.Scalar": _fill_scalar, "fill_.Tensor": _fill_tensor, "zero_": _zero}
