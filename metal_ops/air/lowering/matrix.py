"""Matrices of 8 x 8 that a simdgroup holds together: load, store, initialise, multiply and accumulate.

AIR types them as vectors of 64, of which only elements 0 and 1 are a lane's own: they become vectors of 2. Lane l holds
row (l / 4 & 4) + (l / 2 & 3) and columns (l / 4 & 2) * 2 + (l & 1) * 2 and the next one (found by inspection of what
kernels compute; Apple documents no layout). Only the product needs the other lanes. It accumulates by fused
multiply-adds in the order of the inner index; the hardware's order is not published.
"""

from __future__ import annotations

import re

from metal_ops.air.lowering.simdgroup import OPERAND_BYTES, SLOT_BYTES
from metal_ops.air.lowering.text import Declaration, lanes, split

_WIDE = re.compile(r"<64 x (float|half|bfloat|i32)>")
_SHUFFLE = re.compile(r"(.* = shufflevector )(.*), (<\d+ x i32>) (<.*>)(.*)$")
_FIRST_OF_SECOND = 64
MULTIPLY = "air.simdgroup_matrix_8x8_multiply_accumulate"


def narrow(ir: str) -> str:
    """Rewrite every vector of 64 as the 2 elements that a lane holds."""
    if "<64 x " not in ir:
        return ir
    lines = []
    for line in ir.split("\n"):
        if _WIDE.search(line):
            line = _WIDE.sub(r"<2 x \1>", _shuffle(line))
            line = re.sub(r"align (?:256|128)\b", "align 8", line)
        lines.append(line)
    # Other lines only name the types; what is larger than a lane's 8 bytes must not be assumed to be aligned.
    return re.sub(r"align (?:256|128)\b", "align 8", "\n".join(lines))


def _shuffle(line: str) -> str:
    """A shuffle keeps the first two entries of a mask of 64, and counts the second operand's elements from 2."""
    match = _SHUFFLE.match(line)
    if match is None:
        return line
    head, operands, mask_type, mask, tail = match.groups()
    entries = split(mask[1:-1])
    kept = entries[:2] if _WIDE.fullmatch(mask_type) else entries
    if _WIDE.search(operands):
        kept = [_counted_from_two(entry) for entry in kept]
    return f"{head}{operands}, <{len(kept)} x i32> <{', '.join(kept)}>{tail}"


def _counted_from_two(entry: str) -> str:
    match = re.fullmatch(r"i32 (\d+)", entry)
    if match is None or int(match[1]) < _FIRST_OF_SECOND:
        return entry
    return f"i32 {int(match[1]) - _FIRST_OF_SECOND + 2}"


def _place(lane: str) -> list[str]:
    """Lines that compute %row and %col (the first column), as i32, of ``lane``."""
    return [
        f"%l4 = lshr i32 {lane}, 2",
        "%r4 = and i32 %l4, 4",
        f"%l2 = lshr i32 {lane}, 1",
        "%r3 = and i32 %l2, 3",
        "%row = or i32 %r4, %r3",
        "%c2 = and i32 %l4, 2",
        "%c4 = shl i32 %c2, 1",
        f"%c1 = and i32 {lane}, 1",
        "%c0 = shl i32 %c1, 1",
        "%col = or i32 %c4, %c0",
    ]


_OWN_PLACE = ["%tid = load i32, ptr @air.tid", "%lane = and i32 %tid, 31", *_place("%lane")]


def _address(pointer: str, element: str, base: str, row_length: str, origin: str, transposed: str) -> list[str]:
    """Lines that compute %p0 and %p1, where this lane's two elements lie in memory."""
    lines = [
        *_OWN_PLACE,
        f"%ox = extractelement <2 x i64> {origin}, i32 0",
        f"%oy = extractelement <2 x i64> {origin}, i32 1",
        "%rw = zext i32 %row to i64",
        "%cw = zext i32 %col to i64",
        "%y = add i64 %rw, %oy",
    ]
    for element_index in (0, 1):
        e = element_index
        lines += [
            f"%cx{e} = add i64 %cw, {e}",
            f"%x{e} = add i64 %cx{e}, %ox",
            f"%major{e} = select i1 {transposed}, i64 %x{e}, i64 %y",
            f"%minor{e} = select i1 {transposed}, i64 %y, i64 %x{e}",
            f"%start{e} = mul i64 %major{e}, {row_length}",
            f"%at{e} = add i64 %start{e}, %minor{e}",
            f"%p{e} = getelementptr {element}, {pointer} {base}, i64 %at{e}",
        ]
    return lines


def load(declaration: Declaration) -> list[str]:
    """Body of a load: (pointer, row length in elements, origin (x, y), transposed)."""
    vector, pointer = declaration.result, declaration.parameters[0]
    element = lanes(vector)[1]
    return [
        *_address(pointer, element, "%a", "%b", "%c", "%d"),
        f"%e0 = load {element}, {pointer} %p0, align 1",
        f"%e1 = load {element}, {pointer} %p1, align 1",
        f"%v0 = insertelement {vector} undef, {element} %e0, i32 0",
        f"%v1 = insertelement {vector} %v0, {element} %e1, i32 1",
        f"ret {vector} %v1",
    ]


def store(declaration: Declaration) -> list[str]:
    """Body of a store: (value, pointer, row length in elements, origin (x, y), transposed)."""
    vector, pointer = declaration.parameters[:2]
    element = lanes(vector)[1]
    return [
        *_address(pointer, element, "%b", "%c", "%d", "%e"),
        f"%v0 = extractelement {vector} %a, i32 0",
        f"%v1 = extractelement {vector} %a, i32 1",
        f"store {element} %v0, {pointer} %p0, align 1",
        f"store {element} %v1, {pointer} %p1, align 1",
        "ret void",
    ]


def filled(declaration: Declaration, *, diagonal: bool) -> list[str]:
    """Body of an initialisation: the value everywhere, or on the diagonal with zeros beside it."""
    vector, element = declaration.result, declaration.parameters[0]
    zero = {"float": "0.000000e+00", "half": "0xH0000"}.get(element, "0")
    lines = list(_OWN_PLACE) if diagonal else []
    for lane in (0, 1):
        value = "%a"
        if diagonal:
            lines += [
                f"%column{lane} = add i32 %col, {lane}",
                f"%on{lane} = icmp eq i32 %row, %column{lane}",
                f"%d{lane} = select i1 %on{lane}, {element} %a, {element} {zero}",
            ]
            value = f"%d{lane}"
        into = "undef" if lane == 0 else "%v0"
        lines.append(f"%v{lane} = insertelement {vector} {into}, {element} {value}, i32 {lane}")
    return [*lines, f"ret {vector} %v1"]


def _gather(name: str, type_: str, offset: int) -> str:
    """A loop over all lanes that fills the 8 x 8 array %name with float values of operand ``type_``."""
    element = lanes(type_)[1]
    widen = {
        "float": "%{n}.f{e} = fadd float %{n}.v{e}, -0.000000e+00",
        "half": "%{n}.f{e} = fpext half %{n}.v{e} to float",
        "i16": "%{n}.w{e} = zext i16 %{n}.v{e} to i32\n  %{n}.s{e} = shl i32 %{n}.w{e}, 16\n"
        "  %{n}.f{e} = bitcast i32 %{n}.s{e} to float",
    }[element]
    lines = [
        f"  br label %{name}.each",
        f"{name}.each:",
        f"  %{name}.l = phi i32 [ 0, %BEFORE ], [ %{name}.l1, %{name}.each ]",
    ]
    lines += [f"  {line.replace('%', f'%{name}.', 1)}" for line in _named_place(name)]
    lines += [
        f"  %{name}.slot = getelementptr [{SLOT_BYTES} x i8], ptr %slots, i32 %{name}.l",
        f"  %{name}.p = getelementptr i8, ptr %{name}.slot, i32 {offset}",
        f"  %{name}.x = load {type_}, ptr %{name}.p, align 8",
        f"  %{name}.at = mul i32 %{name}.row, 8",
        f"  %{name}.at0 = add i32 %{name}.at, %{name}.col",
        f"  %{name}.at1 = add i32 %{name}.at0, 1",
    ]
    for e in (0, 1):
        lines += [
            f"  %{name}.v{e} = extractelement {type_} %{name}.x, i32 {e}",
            f"  {widen.format(n=name, e=e)}",
            f"  %{name}.q{e} = getelementptr float, ptr %{name}, i32 %{name}.at{e}",
            f"  store float %{name}.f{e}, ptr %{name}.q{e}",
        ]
    lines += [
        f"  %{name}.l1 = add i32 %{name}.l, 1",
        f"  %{name}.more = icmp ult i32 %{name}.l1, 32",
        f"  br i1 %{name}.more, label %{name}.each, label %{name}.done",
        f"{name}.done:",
    ]
    return "\n".join(lines)


def _named_place(name: str) -> list[str]:
    """:func:`_place` of %name.l with every value prefixed, so that several fit in one function."""
    lines = _place("%l")
    return [re.sub(r"(?<!^)%(\w+)", rf"%{name}.\1", line) for line in lines]


def multiply(declaration: Declaration) -> tuple[str, str]:
    """Name and definition of the collective D = A B + C on slots (see ``simdgroup``)."""
    name = f"coop.{declaration.name}"
    left, right, addend = declaration.parameters
    gathers = _gather("ma", left, 0).replace("%BEFORE", "%entry")
    gathers += "\n" + _gather("mb", right, OPERAND_BYTES).replace("%BEFORE", "%ma.done")
    place = "\n".join(f"  {line}" for line in _place("%lane"))
    products = []
    for e in (0, 1):
        products += [f"  %column{e} = add i32 %col, {e}", f"  %sum{e}.0 = extractelement {addend} %c, i32 {e}"]
        for k in range(8):
            products += [
                f"  %ia{e}.{k} = add i32 %base, {k}",
                f"  %pa{e}.{k} = getelementptr float, ptr %ma, i32 %ia{e}.{k}",
                f"  %a{e}.{k} = load float, ptr %pa{e}.{k}",
                f"  %ib{e}.{k} = add i32 %column{e}, {8 * k}",
                f"  %pb{e}.{k} = getelementptr float, ptr %mb, i32 %ib{e}.{k}",
                f"  %b{e}.{k} = load float, ptr %pb{e}.{k}",
                f"  %sum{e}.{k + 1} = call float @llvm.fma.f32(float %a{e}.{k}, float %b{e}.{k}, float %sum{e}.{k})",
            ]
    body = "\n".join(products)
    return (
        name,
        f"""declare float @llvm.fma.f32(float, float, float)
define internal void @{name}(ptr %slots, i32 %mask) #2 {{
entry:
  %ma = alloca [64 x float], align 16
  %mb = alloca [64 x float], align 16
{gathers}
  br label %lanes
lanes:
  %lane = phi i32 [ 0, %mb.done ], [ %lane1, %lanes ]
{place}
  %base = mul i32 %row, 8
  %slot = getelementptr [{SLOT_BYTES} x i8], ptr %slots, i32 %lane
  %pc = getelementptr i8, ptr %slot, i32 {2 * OPERAND_BYTES}
  %c = load {addend}, ptr %pc, align 8
{body}
  %d0 = insertelement {declaration.result} undef, float %sum0.8, i32 0
  %d1 = insertelement {declaration.result} %d0, float %sum1.8, i32 1
  store {declaration.result} %d1, ptr %slot, align 8
  %lane1 = add i32 %lane, 1
  %more = icmp ult i32 %lane1, 32
  br i1 %more, label %lanes, label %end
end:
  ret void
}}""",
    )
