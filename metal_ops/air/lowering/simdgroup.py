"""Operations across the 32 lanes of a simdgroup, as functions on the lanes' slots.

When every lane of a simdgroup that can reach an operation waits there, the scheduler calls one of these with the slots
(64 bytes a lane: operands at 0, 16, 32, 48; the result goes to 0) and the mask of the lanes that take part. Reductions
combine lane i with lane i + 16, then + 8, 4, 2, 1: the order of the hardware is not published, so this is a choice.
Lanes that do not take part count as the neutral element. A shuffle from one reads 0: MSL 6.9.2 leaves it undefined, but
that is what PyTorch found on Apple silicon (c10/metal/reduction_utils.h), and its 64-bit sums rely on it. A shuffle
from beyond the simdgroup returns the lane's own value.
"""

from __future__ import annotations

import re

from metal_ops.air.lowering.errors import LoweringError
from metal_ops.air.lowering.text import Declaration, lanes

SLOT_BYTES = 64
OPERAND_BYTES = 16
_COOPERATIVE = re.compile(
    r"air\.(simd_\w+|wg\.barrier|simdgroup\.barrier|quad_\w+|simdgroup_matrix_8x8_multiply_accumulate)(\..*)?"
)
_MAX_SIGNED = {"i8": 127, "i16": 32767, "i32": 2**31 - 1, "i64": 2**63 - 1}


def is_cooperative(name: str) -> bool:
    """Whether threads must meet at the intrinsic called ``name``."""
    return bool(_COOPERATIVE.fullmatch(name))


def is_threadgroup_barrier(name: str) -> bool:
    """Whether it is the whole threadgroup, not one simdgroup, that meets."""
    return name == "air.wg.barrier"


def collective(declaration: Declaration) -> tuple[str, str]:
    """Name and definition of the function that performs a simdgroup operation on slots.

    Raises :class:`LoweringError` naming an operation that is not implemented.
    """
    name = f"coop.{declaration.name}"
    operation = re.sub(r"^air\.simd_|^air\.", "", declaration.name).split(".")[0]
    signed = ".s." in declaration.name
    if declaration.name == "air.simdgroup.barrier":
        return name, f"define internal void @{name}(ptr %slots, i32 %mask) #2 {{\n  ret void\n}}"
    if operation in _REDUCTIONS:
        return name, _reduction(name, operation, declaration.result, signed)
    if operation in _SHUFFLES:
        return name, _shuffle(name, operation, declaration.result, len(declaration.parameters))
    if operation.startswith("prefix_"):
        return name, _prefix(name, operation, declaration.result, signed)
    if operation == "is_first":
        return name, _is_first(name)
    if operation == "ballot":
        return name, _ballot(name, declaration.result)
    raise LoweringError(f"simdgroup operation {declaration.name} is not implemented")


_REDUCTIONS = ("sum", "product", "min", "max", "and", "or", "xor", "any", "all")
_SHUFFLES = (
    "broadcast",
    "broadcast_first",
    "shuffle",
    "shuffle_xor",
    "shuffle_up",
    "shuffle_down",
    "shuffle_rotate_up",
    "shuffle_rotate_down",
    "shuffle_and_fill_up",
    "shuffle_and_fill_down",
)


def _combine(operation: str, type_: str, signed: bool) -> tuple[str, str, str]:
    """Instruction template for "%x combined with %y", the neutral element, and a declaration it needs."""
    count, scalar = lanes(type_)
    real = scalar in ("float", "half")
    suffix = {"float": "f32", "half": "f16"}.get(scalar, scalar)
    suffix = f"v{count}{suffix}" if count > 1 else suffix

    def neutral(value: str) -> str:
        return value if count == 1 else "<" + ", ".join([f"{scalar} {value}"] * count) + ">"

    simple = {"and": ("and", "-1"), "or": ("or", "0"), "xor": ("xor", "0"), "any": ("or", "0"), "all": ("and", "-1")}
    if operation in simple:
        instruction, value = simple[operation]
        return f"{instruction} {type_} %x, %y", neutral("true" if type_ == "i1" and value == "-1" else value), ""
    if operation == "sum":
        zero = {"float": "-0.000000e+00", "half": "0xH8000"}.get(scalar, "0")
        return f"{'fadd' if real else 'add'} {type_} %x, %y", neutral(zero), ""
    if operation == "product":
        one = {"float": "1.000000e+00", "half": "0xH3C00"}.get(scalar, "1")
        return f"{'fmul' if real else 'mul'} {type_} %x, %y", neutral(one), ""
    low = operation == "min"
    if real:
        infinity = {"float": ("0x7FF0000000000000", "0xFFF0000000000000"), "half": ("0xH7C00", "0xHFC00")}[scalar]
        function, value = f"llvm.{'min' if low else 'max'}num.{suffix}", infinity[0 if low else 1]
    else:
        function = f"llvm.{'s' if signed else 'u'}{operation}.{suffix}"
        bound = _MAX_SIGNED[scalar]
        value = str((bound if low else -bound - 1) if signed else (-1 if low else 0))
    declaration = f"declare {type_} @{function}({type_}, {type_})"
    return f"call {type_} @{function}({type_} %x, {type_} %y)", neutral(value), declaration


def _head(name: str, type_: str, neutral: str = "") -> str:
    """Gather operand 0 of every lane into %all; lanes outside the mask give ``neutral``, or their stale slot."""
    value = "%x0"
    select = ""
    if neutral:
        select = f"\n  %v0 = select i1 %on0, {type_} %x0, {type_} {neutral}"
        value = "%v0"
    return f"""define internal void @{name}(ptr %slots, i32 %mask) #2 {{
entry:
  %all = alloca [32 x {type_}], align 16
  br label %gather
gather:
  %i = phi i32 [ 0, %entry ], [ %i1, %gather ]
  %p0 = getelementptr [{SLOT_BYTES} x i8], ptr %slots, i32 %i
  %x0 = load {type_}, ptr %p0, align 16
  %bit0 = lshr i32 %mask, %i
  %on0 = trunc i32 %bit0 to i1{select}
  %q0 = getelementptr {type_}, ptr %all, i32 %i
  store {type_} {value}, ptr %q0
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, 32
  br i1 %more, label %gather, label %work
work:"""


def _scatter(body: list[str], type_: str, value: str, after: str) -> str:
    """Loop over the lanes of the mask, compute ``value`` by ``body`` (which may use lane %l) and store it."""
    lines = "\n".join(f"  {line}" for line in body)
    return f"""  br label %each
each:
  %l = phi i32 [ 0, %{after} ], [ %l1, %next ]
  %bit = lshr i32 %mask, %l
  %on = trunc i32 %bit to i1
  br i1 %on, label %active, label %next
active:
  %slot = getelementptr [{SLOT_BYTES} x i8], ptr %slots, i32 %l
{lines}
  store {type_} {value}, ptr %slot, align 16
  br label %next
next:
  %l1 = add i32 %l, 1
  %again = icmp ult i32 %l1, 32
  br i1 %again, label %each, label %end
end:
  ret void
}}"""


def _reduction(name: str, operation: str, type_: str, signed: bool) -> str:
    instruction, neutral, declaration = _combine(operation, type_, signed)
    tree = f"""  br label %level
level:
  %step = phi i32 [ 16, %work ], [ %half, %done ]
  br label %pair
pair:
  %j = phi i32 [ 0, %level ], [ %j1, %pair ]
  %k = add i32 %j, %step
  %px = getelementptr {type_}, ptr %all, i32 %j
  %py = getelementptr {type_}, ptr %all, i32 %k
  %x = load {type_}, ptr %px
  %y = load {type_}, ptr %py
  %z = {instruction}
  store {type_} %z, ptr %px
  %j1 = add i32 %j, 1
  %inside = icmp ult i32 %j1, %step
  br i1 %inside, label %pair, label %done
done:
  %half = lshr i32 %step, 1
  %deeper = icmp ne i32 %half, 0
  br i1 %deeper, label %level, label %total
total:
  %result = load {type_}, ptr %all
"""
    return f"{declaration}\n{_head(name, type_, neutral)}\n{tree}{_scatter([], type_, '%result', 'total')}"


def _prefix(name: str, operation: str, type_: str, signed: bool) -> str:
    """Running sum or product over the participating lanes, in lane order."""
    _, kind, base = operation.split("_")
    instruction, neutral, declaration = _combine(base, type_, signed)
    start = neutral.replace("-0.000000e+00", "0.000000e+00").replace("0xH8000", "0xH0000")
    body = [
        f"%px = getelementptr {type_}, ptr %all, i32 %l",
        f"%y = load {type_}, ptr %px",
        f"%x = load {type_}, ptr %running",
        f"%z = {instruction}",
        f"store {type_} %z, ptr %running",
    ]
    value = "%z" if kind == "inclusive" else "%x"
    head = _head(name, type_, neutral).replace("  %all =", f"  %running = alloca {type_}, align 16\n  %all =", 1)
    return f"{declaration}\n{head}\n  store {type_} {start}, ptr %running\n{_scatter(body, type_, value, 'work')}"


def _operand(index: int, type_: str) -> list[str]:
    """Load operand ``index`` of the current lane as %o<index>."""
    return [
        f"%po{index} = getelementptr i8, ptr %slot, i32 {index * OPERAND_BYTES}",
        f"%o{index} = load {type_}, ptr %po{index}, align 16",
    ]


def _source(operation: str) -> list[str]:
    """Lines that compute %src, the lane to read, for shuffles with one data operand and a lane or distance."""
    if operation == "broadcast_first":
        return ["%src = call i32 @llvm.cttz.i32(i32 %mask, i1 true)"]
    lines = [*_operand(1, "i16"), "%d = zext i16 %o1 to i32"]
    formula = {
        "broadcast": ["%src = or i32 %d, 0"],
        "shuffle": ["%src = or i32 %d, 0"],
        "shuffle_xor": ["%src = xor i32 %l, %d"],
        "shuffle_up": ["%src = sub i32 %l, %d"],
        "shuffle_down": ["%src = add i32 %l, %d"],
        "shuffle_rotate_up": ["%far = sub i32 %l, %d", "%src = and i32 %far, 31"],
        "shuffle_rotate_down": ["%far = add i32 %l, %d", "%src = and i32 %far, 31"],
    }
    return [*lines, *formula[operation]]


def _read_source(type_: str) -> list[str]:
    """Lines that read %all at %src as %r: 0 where that lane does not take part, the lane's own value beyond lane 31."""
    return [
        "%within = icmp ult i32 %src, 32",
        "%from = select i1 %within, i32 %src, i32 %l",
        "%sbit = lshr i32 %mask, %from",
        "%son = trunc i32 %sbit to i1",
        f"%ps = getelementptr {type_}, ptr %all, i32 %from",
        f"%read = load {type_}, ptr %ps",
        f"%r = select i1 %son, {type_} %read, {type_} zeroinitializer",
    ]


def _shuffle(name: str, operation: str, type_: str, operands: int) -> str:
    if "fill" in operation:
        return _shuffle_and_fill(name, operation, type_)
    declaration = "declare i32 @llvm.cttz.i32(i32, i1)" if operation == "broadcast_first" else ""
    body = [*_source(operation), *_read_source(type_)]
    return f"{declaration}\n{_head(name, type_)}\n{_scatter(body, type_, '%r', 'work')}"


def _shuffle_and_fill(name: str, operation: str, type_: str) -> str:
    """Shift by delta within groups of ``modulo`` lanes; what falls outside comes from the fill vector.

    Up takes from the END of the fill vector (lane - delta + modulo), down from its beginning (lane + delta - modulo).
    The fill operands (operand 1) are read from the source lane's slot before any result is written: results go to
    offset 0, operand 1 stays.
    """
    up = operation.endswith("up")
    body = [
        *_operand(2, "i16"),
        *_operand(3, "i16"),
        "%d = zext i16 %o2 to i32",
        "%m = zext i16 %o3 to i32",
        "%low = sub i32 %m, 1",
        "%pos = and i32 %l, %low",
        f"%moved = {'sub' if up else 'add'} i32 %pos, %d",
        "%outside = icmp uge i32 %moved, %m",  # a negative position wraps to a large unsigned one
        f"%wrapped = {'add' if up else 'sub'} i32 %moved, %m",
        "%base = sub i32 %l, %pos",
        "%inner = add i32 %base, %moved",
        "%outer = add i32 %base, %wrapped",
        "%fillfrom = and i32 %outer, 31",
        f"%pf0 = getelementptr [{SLOT_BYTES} x i8], ptr %slots, i32 %fillfrom",
        f"%pf = getelementptr i8, ptr %pf0, i32 {OPERAND_BYTES}",
        f"%fill = load {type_}, ptr %pf, align 16",
        "%src = select i1 %outside, i32 %l, i32 %inner",
        *_read_source(type_),
        f"%chosen = select i1 %outside, {type_} %fill, {type_} %r",
    ]
    return f"{_head(name, type_)}\n{_scatter(body, type_, '%chosen', 'work')}"


def _is_first(name: str) -> str:
    body = ["%below = shl i32 1, %l", "%low = sub i32 %below, 1", "%earlier = and i32 %mask, %low"]
    body.append("%r = icmp eq i32 %earlier, 0")
    return f"{_head(name, 'i1')}\n{_scatter(body, 'i1', '%r', 'work')}"


def _ballot(name: str, result: str) -> str:
    """A bit a lane: the predicates of the lanes that take part."""
    head = _head(name, "i1", "false")
    collect = """  br label %count
count:
  %c = phi i32 [ 0, %work ], [ %c1, %count ]
  %bits = phi i32 [ 0, %work ], [ %bits1, %count ]
  %pc = getelementptr i1, ptr %all, i32 %c
  %flag = load i1, ptr %pc
  %wide = zext i1 %flag to i32
  %at = shl i32 %wide, %c
  %bits1 = or i32 %bits, %at
  %c1 = add i32 %c, 1
  %rest = icmp ult i32 %c1, 32
  br i1 %rest, label %count, label %total
total:
  %result = zext i32 %bits1 to i64
"""
    cast = [] if result == "i64" else [f"%narrow = trunc i64 %result to {result}"]
    return f"{head}\n{collect}{_scatter(cast, result, '%result' if result == 'i64' else '%narrow', 'total')}"
