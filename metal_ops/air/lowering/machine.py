"""The machine around a kernel: the loop over its threadgroups and threads.

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
13     address of the counters of a counted kernel, a word a block
====== =========================================================================================

A loaded kernel belongs to one worker at a time: its module's globals are the worker's threadgroup memory and state.
"""

from __future__ import annotations

from dataclasses import dataclass

from metal_ops.air.kernel import Argument, Signature
from metal_ops.air.lowering.errors import LoweringError
from metal_ops.air.lowering.text import Function, lanes

MAX_THREADS = 1024
SIMDGROUP = 32
CONTEXT_WORDS = 16

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

INDEX = """  %px = add i32 %ox, %x
  %py = add i32 %oy, %y
  %pz = add i32 %oz, %z
  %lane = and i32 %tid, 31
  %simd = lshr i32 %tid, 5"""

GROUP_END = """group.end:
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


def entry(parts: Arguments) -> list[str]:
    """The beginning of ``air.run``: the mode, the launch's sizes, the arguments, and the loop over threadgroups.

    What follows starts with a branch, uses the threadgroup's position and size, and ends in a branch to ``group.end``.
    """
    return [_ENTRY, *_sizes(), *parts.loads, _GROUP]


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
    lines = [*entry(parts), loops, INDEX, *parts.values, *note, call, ends, GROUP_END]
    return "\n".join(lines)
