"""Lockstep: points where the lanes of a simdgroup wait for each other although the kernel does not ask.

The hardware executes the lanes of a simdgroup together, and some kernels rely on it: in eigh_jacobi each lane reads the
angle of a rotation out of the matrix that the lanes then rotate, with no barrier between. Lanes that run one after
another would read what others have rotated already. So where a lane is about to write threadgroup memory after reading
another place of it, with no meeting in between, the simdgroup meets first. A program without such races is not changed.
"""

from __future__ import annotations

import re

from metal_ops.air.lowering.coroutine import Block, blocks
from metal_ops.air.lowering.simdgroup import is_cooperative
from metal_ops.air.lowering.text import Declaration, Function

BARRIER = Declaration("air.simdgroup.barrier", "void", ["i32", "i32"])
_MEETING = f"  call void @{BARRIER.name}(i32 2, i32 0)"
_READ = re.compile(r"^  %\S+ = load .*, ptr addrspace\(3\) (.+?)(?:, align \d+)?$")
_WRITE = re.compile(r"^  store (?!atomic).*, ptr addrspace\(3\) (.+?)(?:, align \d+)?$")
_CALL = re.compile(r" call .*?@([\w.]+)\(")


def enforce(function: Function) -> bool:
    """Insert the meetings that ``function`` relies on, in place; returns whether there are any."""
    parts = blocks(function)
    entering: dict[str, frozenset[str]] = {block.label: frozenset() for block in parts}
    queue = list(parts)
    by_label = {block.label: block for block in parts}
    while queue:
        block = queue.pop()
        leaving = _walk(block, entering[block.label], [])
        for label in block.successors:
            if not leaving <= entering[label]:
                entering[label] |= leaving
                queue.append(by_label[label])
    body: list[str] = []
    for block in parts:
        body.append(f"{block.label}:")
        _walk(block, entering[block.label], body)
    added = len(body) > len(function.body)
    function.body = body
    return added


def _walk(block: Block, read: frozenset[str], body: list[str]) -> frozenset[str]:
    """The places read since the last meeting, after ``block``; its lines with the meetings it needs go to ``body``."""
    for line in block.lines:
        if match := _READ.match(line):
            read |= {match[1]}
        elif (match := _WRITE.match(line)) and read - {match[1]}:
            body.append(_MEETING)
            read = frozenset()
        elif (match := _CALL.search(line)) and is_cooperative(match[1]):
            read = frozenset()
        body.append(line)
    return read
