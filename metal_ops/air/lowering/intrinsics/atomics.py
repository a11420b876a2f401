"""Atomics, all relaxed: Metal 3.1 has no other order."""

from __future__ import annotations

import re

from metal_ops.air.lowering.intrinsics.table import Definitions, row
from metal_ops.air.lowering.text import Declaration, size_of

_ATOMIC = r"air\.atomic\.(?:global|local)"


def _aligned(declaration: Declaration, bytes_: int) -> list[str]:
    """The hardware ignores an atomic's low address bits (issue 195074 prints it), where the host would honour them."""
    pointer = declaration.parameters[0]
    return [
        f"%address = ptrtoint {pointer} %a to i64",
        f"%masked = and i64 %address, {-bytes_}",
        f"%p = inttoptr i64 %masked to {pointer}",
    ]


@row(rf"{_ATOMIC}\.(add|sub|min|max|and|or|xor|xchg)\.(?:([su])\.)?(f32|i32|i64)")
def _atomic_update(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    pointer, value = declaration.parameters[:2]
    operation = match[1]
    if match[3] == "f32" and operation != "xchg":
        operation = f"f{operation}"
    elif operation in ("min", "max") and match[2] == "u":
        operation = f"u{operation}"
    bytes_ = int(size_of(value))
    body = _aligned(declaration, bytes_)
    body.append(f"%r = atomicrmw {operation} {pointer} %p, {value} %b monotonic, align {bytes_}")
    return [*body, "ret void" if declaration.result == "void" else f"ret {declaration.result} %r"]


@row(rf"{_ATOMIC}\.load\.(f32|i32|i64)")
def _atomic_load(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    type_, bytes_ = declaration.result, int(size_of(declaration.result))
    load = f"%r = load atomic {type_}, {declaration.parameters[0]} %p monotonic, align {bytes_}"
    return [*_aligned(declaration, bytes_), load, f"ret {type_} %r"]


@row(rf"{_ATOMIC}\.store\.(f32|i32|i64)")
def _atomic_store(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    pointer, type_ = declaration.parameters[:2]
    bytes_ = int(size_of(type_))
    store = f"store atomic {type_} %b, {pointer} %p monotonic, align {bytes_}"
    return [*_aligned(declaration, bytes_), store, "ret void"]


@row(rf"{_ATOMIC}\.cmpxchg\.weak\.(f32|i32)")
def _atomic_exchange(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """``b`` points at the expected value, in thread memory; it receives what was there. Returns the value found."""
    pointer, expected, type_ = declaration.parameters[:3]
    integer = "i32"
    cast = match[1] == "f32"
    body = [*_aligned(declaration, 4), f"%old = load {integer}, {expected} %b, align 4"]
    body.append(f"%new = bitcast {type_} %c to {integer}" if cast else f"%new = or {integer} %c, 0")
    body += [
        f"%pair = cmpxchg weak {pointer} %p, {integer} %old, {integer} %new monotonic monotonic, align 4",
        f"%found = extractvalue {{ {integer}, i1 }} %pair, 0",
        f"store {integer} %found, {expected} %b, align 4",
    ]
    if declaration.result == "i1":
        return [*body, f"%ok = extractvalue {{ {integer}, i1 }} %pair, 1", "ret i1 %ok"]
    if cast:
        return [*body, f"%r = bitcast {integer} %found to float", "ret float %r"]
    return [*body, f"ret {declaration.result} %found"]


@row(r"air\.atomic\.fence")
def _fence(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    return ["fence seq_cst", "ret void"]
