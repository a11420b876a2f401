"""Work counts: what a kernel executes, exactly and without noise, equal on every machine.

Each basic block of the AIR as shipped is given a number and, at its start, a call of ``air.count``; how often each ran
times what stands in it is the work of a launch. The counters lie at word 13 of the launch's context (see ``machine``).
"""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass

from metal_ops.air.lowering.text import Module, lanes, size_of

COUNTERS_WORD = 13
DECLARATION = "declare void @air.count(i64)"
RUNTIME = f"""
define internal void @air.count(i64 %block) #1 {{
  %ctx = load ptr, ptr @air.context
  %word = getelementptr i64, ptr %ctx, i64 {COUNTERS_WORD}
  %counters = load ptr, ptr %word
  %p = getelementptr i64, ptr %counters, i64 %block
  %count = load i64, ptr %p
  %more = add i64 %count, 1
  store i64 %more, ptr %p
  ret void
}}
"""

_LOAD = re.compile(r"^  %\S+ = load (atomic |volatile )*(.+?), ptr(?: addrspace\((\d+)\))? ")
_STORE = re.compile(r"^  store (atomic |volatile )*(.+), ptr(?: addrspace\((\d+)\))? ")
_FLOAT = re.compile(r"^  %\S+ = f(?:add|sub|mul|div|rem|neg) (?:[a-z]+ )*(<[^>]+>|\w+) ")
_FUSED = re.compile(r"^  %\S+ = .*?call .*?(<[^>]+>|half|bfloat|float) @(?:air|llvm)\.(?:fma|fmuladd)\.")
_CALL = re.compile(r"\bcall .*?@([\w.]+)\(")
_ATOMIC = re.compile(r"air\.atomic\.")
_BARRIER = re.compile(r"air\.(?:wg|simdgroup)\.barrier")
_DEVICE, _CONSTANT, _THREADGROUP = "1", "2", "3"


@dataclass(frozen=True)
class Work:
    """What was executed, in instructions of AIR, by all threads together.

    ``loads`` and ``stores`` are of device and constant memory, in instructions and bytes; ``threadgroup`` are accesses
    to threadgroup memory. ``flops`` counts additions, multiplications and divisions of floats, a fused one twice, each
    lane of a vector for itself; elementary functions are calls, counted among ``instructions``. Phis count nothing.
    """

    instructions: int = 0
    loads: int = 0
    stores: int = 0
    loaded_bytes: int = 0
    stored_bytes: int = 0
    threadgroup: int = 0
    atomics: int = 0
    barriers: int = 0
    flops: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def times(self, count: int) -> Work:
        """The same ``count`` times."""
        return Work(*(number * count for number in astuple(self)))


def instrument(module: Module) -> list[Work]:
    """Count each block of the module's functions from now on; returns what stands in each block, by its number."""
    blocks: list[Work] = []
    for function in module.functions:
        counted: list[str] = []
        pending = False
        for line in function.body:
            if line.endswith(":") and not line.startswith(" "):
                blocks.append(Work())
                pending = True
                counted.append(line)
                continue
            is_phi = " = phi " in line
            if pending and not is_phi:
                counted.append(f"  call void @air.count(i64 {len(blocks) - 1})")
                pending = False
            counted.append(line)
            if not is_phi:
                blocks[-1] += _instruction(line)
        function.body = counted
    return blocks


def _instruction(line: str) -> Work:
    """What one instruction does."""
    if match := _LOAD.match(line) or _STORE.match(line):
        return _access(line, *match.groups())
    if match := _FLOAT.match(line):
        return Work(instructions=1, flops=lanes(match[1])[0])
    if match := _FUSED.match(line):
        return Work(instructions=1, flops=2 * lanes(match[1])[0])
    if " atomicrmw " in line or " cmpxchg " in line:
        return Work(instructions=1, atomics=1)
    name = _CALL.search(line)
    if name is None:
        return Work(instructions=1)
    return Work(instructions=1, atomics=bool(_ATOMIC.match(name[1])), barriers=bool(_BARRIER.match(name[1])))


def _access(line: str, kind: str | None, text: str, space: str | None) -> Work:
    if kind is not None and kind.startswith("atomic"):
        return Work(instructions=1, atomics=1)
    if space == _THREADGROUP:
        return Work(instructions=1, threadgroup=1)
    if space not in (_DEVICE, _CONSTANT):
        return Work(instructions=1)
    if " = load " in line:
        return Work(instructions=1, loads=1, loaded_bytes=_bytes(text))
    return Work(instructions=1, stores=1, stored_bytes=_bytes(_type_of(text)))


def _type_of(operand: str) -> str:
    """The type in "type value"."""
    depth = 0
    for position, char in enumerate(operand):
        depth += (char in "<[{(") - (char in ">]})")
        if char == " " and not depth:
            return operand[:position]
    return operand


def _bytes(type_: str) -> int:
    """The bytes of a type; an array or structure has those of its parts."""
    if match := re.fullmatch(r"\[(\d+) x (.+)\]", type_):
        return int(match[1]) * _bytes(match[2])
    size = size_of(type_)
    return int(size) if size.isdigit() else 0
