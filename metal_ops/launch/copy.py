"""Launching copies and casts between tensors of the device.

The rules of aten/src/ATen/native/mps/operations/Copy.mm: one run of memory goes to another byte by byte, everything
else through a unary kernel that resolves strides, element types and the lazy bits of conjugation and negation at once.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from conformance.devices.base import Unsupported
from conformance.dtypes import DType
from metal_ops.launch._elementwise import (
    INNER_CONTIGUOUS_MIN,
    Layout,
    Plan,
    bare,
    dimensions,
    inner_contiguous,
    layout,
    refuse_64bit,
    spans,
)
from metal_ops.launch._launcher import Launcher
from metal_ops.launch._layouts import channels_last, contiguous_as_suggested, empty_like, expanded
from metal_ops.launch._unary import unary
from metal_ops.launch._views import METAL_NAMES, View, empty
from metal_ops.launch._walk import walk

BYTES_PER_THREAD = 16
MAX_CHUNK = 1 << 31
ILP_THRESHOLD = 1 << 17
"""Elements from which a thread copies four, of any type."""


def copy(launcher: Launcher, source: View, destination: View) -> None:
    """Copy ``source``, broadcast to the shape of ``destination``, with the cast that this needs.

    Raises
    ------
    Unsupported
        If the device has no kernel for the types.
    """
    if source.numel == 0 or destination.numel == 0:
        return
    if source.shape != destination.shape:
        source = expanded(source, destination.shape)
    if source.dtype.name not in METAL_NAMES or destination.dtype.name not in METAL_NAMES:
        raise Unsupported(f"a copy of {source.dtype.name} to {destination.dtype.name}: Metal has no such type")
    alike = source.dtype == destination.dtype and (source.conj, source.neg) == (destination.conj, destination.neg)
    if not alike:
        unary(launcher, _functor(source, destination), destination, source, ilp_threshold=ILP_THRESHOLD)
    elif _one_run(source, destination):
        _bytes(launcher, source.memory, destination.memory)
    else:
        runs = _byte_runs(layout(destination), layout(source))
        if runs is None:
            unary(launcher, "copy_identity", destination, source, ilp_threshold=ILP_THRESHOLD)
        else:
            runs.run(launcher, (destination, source))


def _one_run(source: View, destination: View) -> bool:
    """Whether both are contiguous in the memory format that PyTorch suggests for the destination."""
    as_channels_last = channels_last(destination)
    return contiguous_as_suggested(source, as_channels_last=as_channels_last) and contiguous_as_suggested(
        destination, as_channels_last=as_channels_last
    )


def _bytes(launcher: Launcher, source: Any, destination: Any) -> None:
    for base in range(0, source.size, MAX_CHUNK):
        chunk = min(MAX_CHUNK, source.size - base)
        arguments = {"out": destination, "in": source, "chunk_bytes": chunk, "base": base}
        launcher.line("contiguous_byte_copy", arguments, -(-chunk // BYTES_PER_THREAD))


def _functor(source: View, destination: View) -> str:
    conjugates, negates = source.conj != destination.conj, source.neg != destination.neg
    if conjugates and negates and source.dtype.kind == "complex":
        return "copy_conj_neg"
    if negates:
        return "copy_neg"
    return "copy_conj" if conjugates else "copy_identity"


@lru_cache(maxsize=1024)
def _byte_runs(destination: Layout, source: Layout) -> Plan | None:
    """A copy without a cast by runs of bytes, where both consist of such."""
    views = bare(destination), bare(source)
    steps = walk(*views)
    refuse_64bit(steps)
    if not inner_contiguous(steps) or steps.shape[0] < INNER_CONTIGUOUS_MIN:
        return None
    width, outer = steps.shape[0] * steps.itemsizes[0], steps.numel // steps.shape[0]
    arguments = dimensions(steps, ("output", "input"), outer=True)
    arguments["ndim_outer_inner_bytes"] = (len(steps.shape) - 1, width)
    grid = (-(-width // BYTES_PER_THREAD), outer)
    return Plan("inner_contiguous_copy", grid, ("output", "input"), spans(views), arguments)


def clone(launcher: Launcher, source: View) -> View:
    """A new tensor with the same elements, strides kept if they are dense."""
    result = empty_like(replace(source, conj=False, neg=False))
    copy(launcher, source, result)
    return result


def contiguous(launcher: Launcher, source: View) -> View:
    """The tensor itself if it is contiguous, else a contiguous copy."""
    if source.contiguous:
        return source
    result = empty(source.dtype, source.shape)
    copy(launcher, source, result)
    return result


def cast(launcher: Launcher, source: View, type_: DType) -> View:
    """The tensor itself if it has the type, else a contiguous copy in it."""
    if source.dtype == type_:
        return source
    result = empty(type_, source.shape)
    copy(launcher, source, result)
    return result
