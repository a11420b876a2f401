"""The machine around a kernel: the loop over its threads, the scheduler of cooperating ones, the floating-point mode.

Everything is LLVM IR text. A launch calls ``air.run(context, begin, end)`` for a range of threadgroups in increasing
order. ``context`` is an array of 64-bit words:

====== =========================================================================================
word   meaning
====== =========================================================================================
0-2    threads of the whole grid in x, y, z (edge threadgroups are cut to it)
3-5    threads of a full threadgroup in x, y, z
6-8    threadgroups of the grid in x, y, z
9      address of the table of argument values, a word an argument
10, 11 number of tagged buffers; address of their table, from index 1: (host address of the 16-byte
       boundary at or before the buffer, offsets from there of its first byte and of the byte behind it)
12     address of the violation log: count, capacity, then records of 8 words from word 8
====== =========================================================================================

A loaded kernel belongs to one worker at a time: its module's globals are the worker's threadgroup memory and state.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from metal_ops.air.kernel import Argument, Signature
from metal_ops.air.lowering.errors import LoweringError
from metal_ops.air.lowering.text import Function, lanes, size_of

MAX_THREADS = 1024
SIMDGROUP = 32
CONTEXT_WORDS = 16

_MODES = {
    "x86_64": """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define internal i64 @rt.fp.exchange(i32 %keep, i32 %set) #1 {
  %cell = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %cell)
  %old = load i32, ptr %cell
  %cleared = and i32 %old, %keep
  %new = or i32 %cleared, %set
  store i32 %new, ptr %cell
  call void @llvm.x86.sse.ldmxcsr(ptr %cell)
  %wide = zext i32 %old to i64
  ret i64 %wide
}
define internal i64 @rt.fp.flush() #0 {
  %old = call i64 @rt.fp.exchange(i32 -1, i32 32832)
  ret i64 %old
}
define internal i64 @rt.fp.default() #0 {
  %old = call i64 @rt.fp.exchange(i32 -32833, i32 0)
  ret i64 %old
}
define internal void @rt.fp.restore(i64 %mode) #0 {
  %narrow = trunc i64 %mode to i32
  %old = call i64 @rt.fp.exchange(i32 0, i32 %narrow)
  ret void
}
""",
    "aarch64": """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define internal i64 @rt.fp.flush() #1 {
  %old = call i64 @llvm.aarch64.get.fpcr()
  %new = or i64 %old, 16777216
  call void @llvm.aarch64.set.fpcr(i64 %new)
  ret i64 %old
}
define internal i64 @rt.fp.default() #1 {
  %old = call i64 @llvm.aarch64.get.fpcr()
  %new = and i64 %old, -16777217
  call void @llvm.aarch64.set.fpcr(i64 %new)
  ret i64 %old
}
define internal void @rt.fp.restore(i64 %mode) #1 {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  ret void
}
""",
}


def floating_point_mode(machine: str) -> str:
    """Functions that set and restore flush-to-zero on ``machine`` (the first part of a target triple).

    x86-64: FTZ and DAZ of MXCSR; arm64: FZ of FPCR. Half arithmetic is not affected by either, as on the GPU.
    """
    try:
        return _MODES[{"arm64": "aarch64"}.get(machine, machine)]
    except KeyError:
        raise LoweringError(f"no flush-to-zero control for processor {machine!r}; known: {', '.join(_MODES)}") from None


GLOBALS = """
@air.context = internal global ptr null
@air.tid = internal global i32 0
@air.group = internal global i64 0
"""

# A thread's position or size, by metadata kind: the three components as IR values that the loops define.
_POSITIONS = {
    "thread_position_in_grid": ("%px", "%py", "%pz"),
    "threadgroup_position_in_grid": ("%gx", "%gy", "%gz"),
    "thread_position_in_threadgroup": ("%x", "%y", "%z"),
    "threads_per_threadgroup": ("%sx", "%sy", "%sz"),
    "dispatch_threads_per_threadgroup": ("%tx", "%ty", "%tz"),
    "threads_per_grid": ("%nx", "%ny", "%nz"),
    "threadgroups_per_grid": ("%mx", "%my", "%mz"),
    "thread_index_in_threadgroup": ("%tid",),
    "thread_index_in_simdgroup": ("%lane",),
    "simdgroup_index_in_threadgroup": ("%simd",),
    "simdgroups_per_threadgroup": ("%simds",),
    "dispatch_simdgroups_per_threadgroup": ("%simds",),
    "threads_per_simdgroup": ("32",),
    "thread_execution_width": ("32",),
}


@dataclass(frozen=True)
class Arguments:
    """How the kernel's parameters are made: loads once a run, values once a thread, and the call's argument list."""

    loads: list[str]
    values: list[str]
    operands: str


def _position(index: int, argument: Argument, type_: str) -> tuple[list[str], str]:
    try:
        components = _POSITIONS[argument.kind]
    except KeyError:
        raise LoweringError(f"kernel input air.{argument.kind} is not implemented") from None
    count, scalar = lanes(type_)
    if count > len(components):
        raise LoweringError(f"kernel input air.{argument.kind} has {len(components)} components, {type_} wants {count}")
    lines, values = [], list(components[:count])
    if scalar == "i16":
        for lane, component in enumerate(values):
            lines.append(f"  %narrow.{index}.{lane} = trunc i32 {component} to i16")
        values = [f"%narrow.{index}.{lane}" for lane in range(count)]
    if count == 1:
        return lines, values[0]
    vector = "undef"
    for lane, value in enumerate(values):
        lines.append(f"  %vector.{index}.{lane} = insertelement {type_} {vector}, {scalar} {value}, i32 {lane}")
        vector = f"%vector.{index}.{lane}"
    return lines, vector


def arguments(signature: Signature, function: Function) -> Arguments:
    """Map the signature onto the IR parameters; raises :class:`LoweringError` if they do not correspond."""
    if len(signature.arguments) != len(function.parameters):
        raise LoweringError(
            f"kernel {signature.name} describes {len(signature.arguments)} arguments, "
            f"its code has {len(function.parameters)}"
        )
    loads, values, operands = [], [], []
    for index, (argument, parameter) in enumerate(zip(signature.arguments, function.parameters, strict=True)):
        if argument.is_buffer:
            loads += [
                f"  %slot.{index} = getelementptr ptr, ptr %table, i64 {index}",
                f"  %argument.{index} = load ptr, ptr %slot.{index}",
            ]
            operands.append(f"ptr %argument.{index}")
        else:
            lines, value = _position(index, argument, parameter.type)
            values += lines
            operands.append(f"{parameter.type} {value}")
    return Arguments(loads, values, ", ".join(operands))


_ENTRY = """define void @air.run(ptr %context, i64 %begin, i64 %end) #3 {
entry:
  %mode = call i64 @rt.fp.flush()
  store ptr %context, ptr @air.context
  %c9 = getelementptr ptr, ptr %context, i64 9
  %table = load ptr, ptr %c9"""

_GROUP = """  br label %group
group:
  %g = phi i64 [ %begin, %entry ], [ %g1, %group.end ]
  store i64 %g, ptr @air.group
  %gl = trunc i64 %g to i32
  %gx = urem i32 %gl, %mx
  %gr = udiv i32 %gl, %mx
  %gy = urem i32 %gr, %my
  %gz = udiv i32 %gr, %my
  %ox = mul i32 %gx, %tx
  %oy = mul i32 %gy, %ty
  %oz = mul i32 %gz, %tz
  %lx = sub i32 %nx, %ox
  %ly = sub i32 %ny, %oy
  %lz = sub i32 %nz, %oz
  %sx = call i32 @llvm.umin.i32(i32 %tx, i32 %lx)
  %sy = call i32 @llvm.umin.i32(i32 %ty, i32 %ly)
  %sz = call i32 @llvm.umin.i32(i32 %tz, i32 %lz)
  %sxy = mul i32 %sx, %sy
  %count = mul i32 %sxy, %sz
  %rounded = add i32 %count, 31
  %simds = lshr i32 %rounded, 5"""

_INDEX = """  %px = add i32 %ox, %x
  %py = add i32 %oy, %y
  %pz = add i32 %oz, %z
  %lane = and i32 %tid, 31
  %simd = lshr i32 %tid, 5"""

_GROUP_END = """group.end:
  %g1 = add i64 %g, 1
  %again = icmp ult i64 %g1, %end
  br i1 %again, label %group, label %exit
exit:
  call void @rt.fp.restore(i64 %mode)
  ret void
}
declare i32 @llvm.umin.i32(i32, i32)"""


def _sizes() -> list[str]:
    names = ("nx", "ny", "nz", "tx", "ty", "tz", "mx", "my", "mz")
    lines = []
    for word, name in enumerate(names):
        lines += [
            f"  %c{word} = getelementptr i64, ptr %context, i64 {word}",
            f"  %w{word} = load i64, ptr %c{word}",
            f"  %{name} = trunc i64 %w{word} to i32",
        ]
    return lines


def grid_loop(kernel: str, parts: Arguments, *, numbered: bool) -> str:
    """``air.run`` for a kernel whose threads do not cooperate: three nested loops around an inlined call.

    ``numbered`` keeps the number of the running thread in ``air.tid``, for whom it concerns.
    """
    note = ["  store i32 %tid, ptr @air.tid"] if numbered else []
    loops = """  br label %zs
zs:
  %z = phi i32 [ 0, %group ], [ %z1, %zs.end ]
  br label %ys
ys:
  %y = phi i32 [ 0, %zs ], [ %y1, %ys.end ]
  %zrow = mul i32 %z, %sy
  %row = add i32 %zrow, %y
  %first = mul i32 %row, %sx
  br label %xs
xs:
  %x = phi i32 [ 0, %ys ], [ %x1, %xs ]
  %tid = add i32 %first, %x"""
    ends = """  %x1 = add i32 %x, 1
  %xmore = icmp ult i32 %x1, %sx
  br i1 %xmore, label %xs, label %ys.end
ys.end:
  %y1 = add i32 %y, 1
  %ymore = icmp ult i32 %y1, %sy
  br i1 %ymore, label %ys, label %zs.end
zs.end:
  %z1 = add i32 %z, 1
  %zmore = icmp ult i32 %z1, %sz
  br i1 %zmore, label %zs, label %group.end"""
    call = f"  call void @{kernel}({parts.operands})"
    lines = [_ENTRY, *_sizes(), *parts.loads, _GROUP, loops, _INDEX, *parts.values, *note, call, ends, _GROUP_END]
    return "\n".join(lines)


_STATE = f"""
@air.handles = internal global [{MAX_THREADS} x ptr] zeroinitializer
@air.sites = internal global [{MAX_THREADS} x i32] zeroinitializer
@air.operations = internal global [{MAX_THREADS} x ptr] zeroinitializer
@air.slots = internal global [{MAX_THREADS} x [64 x i8]] zeroinitializer, align 64
@air.frames = internal global ptr null
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare i8 @llvm.coro.suspend(token, i1)
declare void @llvm.coro.end(ptr, i1, token)
declare void @llvm.coro.resume(ptr)
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal ptr @air.frame(i64 %size, i32 %tid) #1 {{
  %padded = add i64 %size, 63
  %step = and i64 %padded, -64
  %have = load ptr, ptr @air.frames
  %none = icmp eq ptr %have, null
  br i1 %none, label %new, label %use
new:
  %all = mul i64 %step, {MAX_THREADS}
  %fresh = call ptr @malloc(i64 %all)
  store ptr %fresh, ptr @air.frames
  br label %use
use:
  %base = load ptr, ptr @air.frames
  %t = zext i32 %tid to i64
  %offset = mul i64 %t, %step
  %frame = getelementptr i8, ptr %base, i64 %offset
  ret ptr %frame
}}

define void @air.release() {{
  %have = load ptr, ptr @air.frames
  call void @free(ptr %have)
  store ptr null, ptr @air.frames
  ret void
}}

define internal void @air.resume(i32 %tid) #2 {{
  store i32 %tid, ptr @air.tid
  %hp = getelementptr ptr, ptr @air.handles, i32 %tid
  %h = load ptr, ptr %hp
  call void @llvm.coro.resume(ptr %h)
  ret void
}}
"""
"""State of the threads of the running threadgroup: where each waits (-1: returned), for which collective operation
(null: the threadgroup barrier), its operands. Frames are taken from one allocation, made when their size is known."""

_SCHEDULER = f"""
define internal void @air.simdgroup(i32 %first, i32 %last) #2 {{
entry:
  br label %choose
choose:
  br label %scan
scan:
  %i = phi i32 [ %first, %choose ], [ %i1, %scan ]
  %lowest = phi i32 [ 2147483647, %choose ], [ %lowest1, %scan ]
  %op = phi ptr [ null, %choose ], [ %op1, %scan ]
  %sp = getelementptr i32, ptr @air.sites, i32 %i
  %site = load i32, ptr %sp
  %fp = getelementptr ptr, ptr @air.operations, i32 %i
  %f = load ptr, ptr %fp
  %waits = icmp ne ptr %f, null
  %lower = icmp ult i32 %site, %lowest
  %take = and i1 %waits, %lower
  %lowest1 = select i1 %take, i32 %site, i32 %lowest
  %op1 = select i1 %take, ptr %f, ptr %op
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, %last
  br i1 %more, label %scan, label %found
found:
  %any = icmp ne ptr %op1, null
  br i1 %any, label %mask, label %rest
rest:
  ret void
mask:
  %j = phi i32 [ %first, %found ], [ %j1, %mask ]
  %m = phi i32 [ 0, %found ], [ %m1, %mask ]
  %jsp = getelementptr i32, ptr @air.sites, i32 %j
  %js = load i32, ptr %jsp
  %jfp = getelementptr ptr, ptr @air.operations, i32 %j
  %jf = load ptr, ptr %jfp
  %jwaits = icmp ne ptr %jf, null
  %here = icmp eq i32 %js, %lowest1
  %in = and i1 %here, %jwaits
  %bit = sub i32 %j, %first
  %one = zext i1 %in to i32
  %flag = shl i32 %one, %bit
  %m1 = or i32 %m, %flag
  %j1 = add i32 %j, 1
  %jmore = icmp ult i32 %j1, %last
  br i1 %jmore, label %mask, label %perform
perform:
  %slots = getelementptr [64 x i8], ptr @air.slots, i32 %first
  call void %op1(ptr %slots, i32 %m1)
  br label %wake
wake:
  %k = phi i32 [ %first, %perform ], [ %k1, %woken ]
  %kbit = sub i32 %k, %first
  %kflag = lshr i32 %m1, %kbit
  %kon = trunc i32 %kflag to i1
  br i1 %kon, label %run, label %woken
run:
  call void @air.resume(i32 %k)
  br label %woken
woken:
  %k1 = add i32 %k, 1
  %kmore = icmp ult i32 %k1, %last
  br i1 %kmore, label %wake, label %choose
}}

define internal void @air.schedule(i32 %count) #2 {{
entry:
  br label %round
round:
  br label %simdgroups
simdgroups:
  %s = phi i32 [ 0, %round ], [ %next, %simdgroups ]
  %next = add i32 %s, {SIMDGROUP}
  %last = call i32 @llvm.umin.i32(i32 %next, i32 %count)
  call void @air.simdgroup(i32 %s, i32 %last)
  %more = icmp ult i32 %next, %count
  br i1 %more, label %simdgroups, label %barrier
barrier:
  %i = phi i32 [ 0, %simdgroups ], [ %i1, %passed ]
  %alive = phi i1 [ false, %simdgroups ], [ %alive1, %passed ]
  %sp = getelementptr i32, ptr @air.sites, i32 %i
  %site = load i32, ptr %sp
  %live = icmp ne i32 %site, -1
  br i1 %live, label %release, label %passed
release:
  call void @air.resume(i32 %i)
  br label %passed
passed:
  %alive1 = or i1 %alive, %live
  %i1 = add i32 %i, 1
  %imore = icmp ult i32 %i1, %count
  br i1 %imore, label %barrier, label %decide
decide:
  br i1 %alive1, label %round, label %done
done:
  ret void
}}
"""
"""``air.simdgroup`` performs collective operations, lowest meeting point first, until every lane waits at a barrier or
has returned; ``air.schedule`` then releases the barrier for all live threads (threads that returned do not hold it)."""

_SHARED = re.compile(r'^@("[^"]*"|[\w.$-]+) = .*addrspace\(3\) global (.+?) undef')


def cooperative_loop(parts: Arguments, threadgroup_globals: list[tuple[str, str]], *, checked: bool) -> str:
    """``air.run`` for a kernel of cooperating threads: start every thread of a group, then schedule until all returned.

    ``threadgroup_globals`` (name, bytes) are filled with 0xFF before each group when ``checked``, so that nothing
    reads what an earlier group left.
    """
    poison = [
        f"  call void @llvm.memset.p0.i64(ptr {name}, i8 -1, i64 {size}, i1 false)"
        for name, size in threadgroup_globals
    ]
    threads = """  br label %start
start:
  %tid = phi i32 [ 0, %group ], [ %tid1, %start ]
  %x = urem i32 %tid, %sx
  %row = udiv i32 %tid, %sx
  %y = urem i32 %row, %sy
  %z = udiv i32 %row, %sy"""
    launch = f"""  store i32 %tid, ptr @air.tid
  %handle = call ptr @air.thread({parts.operands}{", " if parts.operands else ""}i32 %tid)
  %hp = getelementptr ptr, ptr @air.handles, i32 %tid
  store ptr %handle, ptr %hp
  %tid1 = add i32 %tid, 1
  %tmore = icmp ult i32 %tid1, %count
  br i1 %tmore, label %start, label %started
started:
  call void @air.schedule(i32 %count)
  br label %group.end"""
    lines = [_STATE, _SCHEDULER, _ENTRY, *_sizes(), *parts.loads, _GROUP, *(poison if checked else []), threads, _INDEX]
    return "\n".join([*lines, *parts.values, launch, _GROUP_END])


def threadgroup_globals(lines: list[str]) -> list[tuple[str, str]]:
    """Name and byte size (an IR operand) of each threadgroup variable among a module's globals."""
    found = []
    for line in lines:
        if match := _SHARED.match(line):
            found.append((f"@{match[1]}", size_of(match[2])))
    return found
