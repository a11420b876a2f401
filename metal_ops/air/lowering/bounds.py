"""Bounds checks: every load and store of a kernel asks before it touches memory.

Device and constant buffers reach a checked kernel as tagged addresses: the argument's number in the top 16 bits, the
byte offset plus 2**47 below. (The offset counts from the 16-byte boundary at or before the buffer, so that kernels see
how a view is misaligned.) Arithmetic on them is arithmetic on offsets, whatever way a pointer takes through phis,
selects, integers or memory; only the access itself translates to a host address, after comparing with the buffer's
size. A write that fails goes to a sink, a read gives zeros, and either is recorded with argument, offset and thread, so
an out-of-bounds access is a diagnosis and never a fault. Thread and threadgroup memory and constant tables have host
addresses (tag 0); there an access is checked against the object that its pointer comes from.

An atomic may touch all of an aligned word of which the buffer holds a byte: kernels update narrower types so, and the
GPU's buffers do not end within a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from metal_ops.air.lowering.text import Function, Module, size_of, split

SINK_BYTES = 4096
_POINTER = r"ptr(?: addrspace\((\d+)\))?"
_LOAD = re.compile(rf"^(  %\S+ = load (?:atomic |volatile )*)(.+?), {_POINTER} (.+?)((?: monotonic)?, align \d+)$")
_STORE = re.compile(
    rf"^(  store (?:atomic |volatile )*)(.+), {_POINTER} (\S+|getelementptr.*\))((?: monotonic)?, align \d+)$"
)
_RMW = re.compile(rf"^(  %\S+ = (?:atomicrmw|cmpxchg)(?: weak)? ?\w* ){_POINTER} (%\S+), (\S+) (.*)$")
_COPY = re.compile(r"^(  call void @llvm\.mem(?:cpy|move|set)\S*)\((.*)\)$")
_GEP = re.compile(r"^  (%\S+) = getelementptr .*?, ptr(?: addrspace\(\d+\))? ([%@][\w.$\"]+|%\"[^\"]+\")(?:,|$)")
_CAST = re.compile(r"^  (%\S+) = (?:bitcast|addrspacecast|freeze) ptr(?: addrspace\(\d+\))? ([%@][\w.$]+)")
_PHI = re.compile(r"^  (%\S+) = phi ptr.*? (\[.*\])$")
_SELECT = re.compile(r"^  (%\S+) = select i1 \S+, ptr.*? ([%@][\w.$]+), ptr.*? ([%@][\w.$]+)$")
_ALLOCA = re.compile(r"^  (%\S+) = alloca (.+?)(?:, align \d+)?$")
_GLOBAL = re.compile(r'^@("[^"]*"|[\w.$-]+) = .*?(?:addrspace\(\d+\) )?(?:global|constant) (.+?)(?:, align \d+)?$')
LOAD, STORE, ATOMIC, ATOMIC_LOAD = 0, 1, 2, 3
"""Kinds of access, as diagnoses number them."""


def _global_types(module: Module) -> dict[str, str]:
    types = {}
    for line in module.globals:
        if match := _GLOBAL.match(line):
            types[f"@{match[1]}"] = _leading_type(match[2])
    return types


def _leading_type(text: str) -> str:
    """The type at the start of "type initializer"."""
    depth = 0
    for position, char in enumerate(text):
        depth += char in "[{<("
        depth -= char in "]}>)"
        if depth == 0 and (char == " " or position == len(text) - 1):
            return text[: position + (char != " ")]
    return text


class _Provenance:
    """Where the pointers of one function can come from, as far as it can be read off the instructions."""

    def __init__(self, function: Function, global_types: dict[str, str]) -> None:
        self.types = dict(global_types)
        self._sources: dict[str, list[str]] = {}
        for line in function.body:
            if match := _ALLOCA.match(line):
                self.types[match[1]] = match[2]
            elif match := _GEP.match(line) or _CAST.match(line):
                self._sources[match[1]] = [match[2]]
            elif match := _SELECT.match(line):
                self._sources[match[1]] = [match[2], match[3]]
            elif match := _PHI.match(line):
                self._sources[match[1]] = [split(part[1:-1])[0].strip("[] ") for part in split(match[2])]

    def objects(self, pointer: str) -> list[str] | None:
        """Every alloca or global that ``pointer`` may point into; None if it may come from elsewhere."""
        found, queue, seen = [], [pointer], {pointer}
        while queue:
            value = queue.pop()
            if value in self.types:
                found.append(value)
            elif value.startswith("getelementptr"):
                inner = re.search(r"@(?:\"[^\"]*\"|[\w.$-]+)", value)
                if inner is None or inner[0] not in self.types:
                    return None
                found.append(inner[0])
            elif value in self._sources:
                fresh = [source for source in self._sources[value] if source not in seen]
                seen.update(fresh)
                queue += fresh
            else:
                return None
        return sorted(set(found))


class _Checker:
    def __init__(self, function: Function, module: Module) -> None:
        self._provenance = _Provenance(function, _global_types(module))
        self._fresh = 0

    def check(self, pointer: str, space: str, bytes_: str, kind: int) -> tuple[list[str], str]:
        """Lines that check an access, and the host pointer to use."""
        self._fresh += 1
        name = f"%air.check.{self._fresh}"
        type_ = f"ptr addrspace({space})" if space else "ptr"
        objects = self._provenance.objects(pointer)
        if objects is None:
            device = "true" if space == "1" else "false"
            return [f"  {name} = call {type_} @air.check(ptr {pointer}, i64 {bytes_}, i32 {kind}, i1 {device})"], name
        if len(objects) == 1:
            size = size_of(self._provenance.types[objects[0]])
            operands = f"ptr {pointer}, ptr {objects[0]}, i64 {size}, i64 {bytes_}, i32 {kind}"
            return [f"  {name} = call {type_} @air.check.object({operands})"], name
        return [], pointer

    def rewrite(self, line: str) -> Iterator[str]:
        """The line with its accesses checked."""
        if match := _LOAD.match(line):
            head, type_, space, pointer, tail = match.groups()
            kind = ATOMIC_LOAD if " atomic " in head else LOAD
            lines, host = self.check(pointer, space, size_of(type_), kind)
            yield from lines
            yield f"{head}{type_}, ptr {host}{tail}"
        elif match := _STORE.match(line):
            head, value, space, pointer, tail = match.groups()
            lines, host = self.check(pointer, space, size_of(_leading_type(value)), STORE)
            yield from lines
            yield f"{head}{value}, ptr {host}{tail}"
        elif match := _RMW.match(line):
            head, space, pointer, type_, tail = match.groups()
            lines, host = self.check(pointer, space, size_of(type_), ATOMIC)
            yield from lines
            yield f"{head}ptr {host}, {type_} {tail}"
        elif match := _COPY.match(line):
            yield from self._copy(match[1], split(match[2]))
        else:
            yield line

    def _copy(self, head: str, arguments: list[str]) -> Iterator[str]:
        size = arguments[2].split()[-1]
        for index, kind in ((0, STORE), (1, LOAD)):
            match = re.fullmatch(rf"{_POINTER} (\S+|getelementptr.*)", arguments[index])
            if match is None:
                continue  # the value of a memset
            lines, host = self.check(match[2], match[1], size, kind)
            yield from lines
            arguments[index] = f"ptr {host}"
        yield f"{head}({', '.join(arguments)})"


def instrument(function: Function, module: Module) -> None:
    """Check every access of ``function``, in place. Helpers must have been inlined, address spaces still be there."""
    checker = _Checker(function, module)
    function.body = [new for line in function.body for new in checker.rewrite(line)]


RUNTIME = f"""
@air.sink = internal global [{SINK_BYTES} x i8] zeroinitializer, align 16
@air.zeros = internal global [{SINK_BYTES} x i8] zeroinitializer, align 16

define internal ptr @air.check(ptr %p, i64 %size, i32 %kind, i1 %device) #0 {{
  %address = ptrtoint ptr %p to i64
  %tag = lshr i64 %address, 48
  %low = and i64 %address, 281474976710655
  %offset = sub i64 %low, 140737488355328
  %untagged = icmp eq i64 %tag, 0
  br i1 %untagged, label %host, label %tagged
host:
  %null = icmp ult i64 %address, 65536
  %wild = or i1 %null, %device
  br i1 %wild, label %nowhere, label %direct
direct:
  ret ptr %p
nowhere:
  %w = call ptr @air.violation(i64 -1, i64 %address, i64 %size, i32 %kind)
  ret ptr %w
tagged:
  %ctx = load ptr, ptr @air.context
  %np = getelementptr i64, ptr %ctx, i64 10
  %n = load i64, ptr %np
  %known = icmp ule i64 %tag, %n
  br i1 %known, label %inside, label %bad
inside:
  %tp = getelementptr i64, ptr %ctx, i64 11
  %table = load ptr, ptr %tp
  %row = getelementptr [3 x i64], ptr %table, i64 %tag
  %base = load ptr, ptr %row
  %fp = getelementptr i64, ptr %row, i64 1
  %first = load i64, ptr %fp
  %lp = getelementptr i64, ptr %row, i64 2
  %last = load i64, ptr %lp
  %end = add i64 %offset, %size
  %atomic = icmp uge i32 %kind, {ATOMIC}
  %slack = select i1 %atomic, i64 3, i64 0
  %inverse = xor i64 %slack, -1
  %lowest = and i64 %first, %inverse
  %beyond = add i64 %last, %slack
  %highest = and i64 %beyond, %inverse
  %before = icmp sge i64 %offset, %lowest
  %after = icmp sle i64 %end, %highest
  %ok = and i1 %before, %after
  br i1 %ok, label %good, label %bad
good:
  %q = getelementptr i8, ptr %base, i64 %offset
  ret ptr %q
bad:
  %s = call ptr @air.violation(i64 %tag, i64 %offset, i64 %size, i32 %kind)
  ret ptr %s
}}

define internal ptr @air.check.object(ptr %p, ptr %object, i64 %length, i64 %size, i32 %kind) #0 {{
  %a = ptrtoint ptr %p to i64
  %b = ptrtoint ptr %object to i64
  %offset = sub i64 %a, %b
  %end = add i64 %offset, %size
  %before = icmp sge i64 %offset, 0
  %after = icmp sle i64 %end, %length
  %ok = and i1 %before, %after
  br i1 %ok, label %good, label %bad
good:
  ret ptr %p
bad:
  %s = call ptr @air.violation(i64 0, i64 %offset, i64 %size, i32 %kind)
  ret ptr %s
}}

define internal ptr @air.violation(i64 %tag, i64 %offset, i64 %size, i32 %kind) #1 {{
  %ctx = load ptr, ptr @air.context
  %dp = getelementptr i64, ptr %ctx, i64 12
  %log = load ptr, ptr %dp
  %count = load i64, ptr %log
  %more = add i64 %count, 1
  store i64 %more, ptr %log
  %capacity.p = getelementptr i64, ptr %log, i64 1
  %capacity = load i64, ptr %capacity.p
  %room = icmp ult i64 %count, %capacity
  br i1 %room, label %write, label %out
write:
  %at = mul i64 %count, 8
  %start = add i64 %at, 8
  %r = getelementptr i64, ptr %log, i64 %start
  store i64 %tag, ptr %r
  %r1 = getelementptr i64, ptr %r, i64 1
  store i64 %offset, ptr %r1
  %r2 = getelementptr i64, ptr %r, i64 2
  store i64 %size, ptr %r2
  %r3 = getelementptr i64, ptr %r, i64 3
  %k = zext i32 %kind to i64
  store i64 %k, ptr %r3
  %tid = load i32, ptr @air.tid
  %t = zext i32 %tid to i64
  %r4 = getelementptr i64, ptr %r, i64 4
  store i64 %t, ptr %r4
  %g = load i64, ptr @air.group
  %r5 = getelementptr i64, ptr %r, i64 5
  store i64 %g, ptr %r5
  br label %out
out:
  %read = icmp eq i32 %kind, {LOAD}
  %nothing = select i1 %read, ptr @air.zeros, ptr @air.sink
  ret ptr %nothing
}}
"""
"""``air.check`` translates a tagged address; ``air.violation`` logs (argument, offset, size, kind, thread, group)."""
