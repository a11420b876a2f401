"""Floating point: rounding functions, fused multiply-add, neighbours, and the elementary functions."""

from __future__ import annotations

import re

from metal_ops.air.lowering import elementary
from metal_ops.air.lowering.intrinsics.table import LATE, Definitions, named, row
from metal_ops.air.lowering.text import Declaration

_DIRECT = {
    "fabs": "fabs",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "roundeven",
    "round": "round",
    "sqrt": "sqrt",
    "fast_sqrt": "sqrt",
    "copysign": "copysign",
    "fmax": "maxnum",  # IEEE 754-2008 maxNum: kernels that propagate NaN say so themselves
    "fmin": "minnum",
}


@row(rf"air\.({'|'.join(_DIRECT)})\.(f32|f16)")
def _direct(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    type_ = declaration.result
    name = f"llvm.{_DIRECT[match[1]]}.{match[2]}"
    definitions.extern(type_, name, *declaration.parameters)
    arguments = ", ".join(f"{type_} %{letter}" for _, letter in named(declaration))
    return [f"%r = call {type_} @{name}({arguments})", f"ret {type_} %r"]


@row(r"air\.fma\.f32")
def _fma(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    definitions.extern("float", "llvm.fma.f32", "float", "float", "float")
    return ["%r = call float @llvm.fma.f32(float %a, float %b, float %c)", "ret float %r"]


@row(r"air\.fma\.f16")
def _fma_half(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """One rounding: the product is exact in double, the sum is rounded to odd, then to half (Boldo and Melquiond).

    Written out because hosts without half arithmetic would round twice, so results would depend on the host.
    """
    definitions.extern("double", "llvm.fabs.f64", "double")
    return [
        "%x = fpext half %a to double",
        "%y = fpext half %b to double",
        "%z = fpext half %c to double",
        "%p = fmul double %x, %y",
        "%s = fadd double %p, %z",
        "%zs = fsub double %s, %p",  # TwoSum (Knuth): the error of the sum, exact
        "%ps = fsub double %s, %zs",
        "%ze = fsub double %z, %zs",
        "%pe = fsub double %p, %ps",
        "%e = fadd double %ze, %pe",
        "%inexact = fcmp one double %e, 0.000000e+00",
        "%bits = bitcast double %s to i64",
        "%sticky = or i64 %bits, 1",
        "%negative = fcmp olt double %e, 0.000000e+00",
        "%sn = fcmp olt double %s, 0.000000e+00",
        "%toward = xor i1 %negative, %sn",
        "%even = and i64 %bits, 1",
        "%iseven = icmp eq i64 %even, 0",
        "%less = sub i64 %bits, 1",
        "%pulled = select i1 %toward, i64 %less, i64 %sticky",
        "%odd = select i1 %iseven, i64 %pulled, i64 %bits",
        "%chosen = select i1 %inexact, i64 %odd, i64 %bits",
        "%d = bitcast i64 %chosen to double",
        "%f = call float @rt.odd(double %d)",
        "%h = fptrunc float %f to half",
        "ret half %h",
    ]


@row(r"air\.clamp\.(f32|f16)")
def _clamp(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    type_, suffix = declaration.result, match[1]
    definitions.extern(type_, f"llvm.maxnum.{suffix}", type_, type_)
    definitions.extern(type_, f"llvm.minnum.{suffix}", type_, type_)
    return [
        f"%m = call {type_} @llvm.maxnum.{suffix}({type_} %a, {type_} %b)",
        f"%r = call {type_} @llvm.minnum.{suffix}({type_} %m, {type_} %c)",
        f"ret {type_} %r",
    ]


@row(r"air\.fract\.(f32|f16)")
def _fract(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """x - floor(x), but never 1: MSL 6.5 caps it at the largest number below (2**-24 or 2**-11 less than 1)."""
    type_, suffix = declaration.result, match[1]
    cap = {"f32": "0x3FEFFFFFE0000000", "f16": "0xH3BFF"}[suffix]
    definitions.extern(type_, f"llvm.floor.{suffix}", type_)
    definitions.extern(type_, f"llvm.minnum.{suffix}", type_, type_)
    return [
        f"%w = call {type_} @llvm.floor.{suffix}({type_} %a)",
        f"%d = fsub {type_} %a, %w",
        f"%nan = fcmp uno {type_} %d, %d",
        f"%m = call {type_} @llvm.minnum.{suffix}({type_} %d, {type_} {cap})",
        f"%r = select i1 %nan, {type_} %d, {type_} %m",
        f"ret {type_} %r",
    ]


@row(r"air\.ldexp\.f32")
def _ldexp(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """One rounding: a float times 2**n is exact in double for |n| <= 600, beyond which the float result is settled."""
    definitions.extern("i32", "llvm.smin.i32", "i32", "i32")
    definitions.extern("i32", "llvm.smax.i32", "i32", "i32")
    return [
        "%n1 = call i32 @llvm.smin.i32(i32 %b, i32 600)",
        "%n2 = call i32 @llvm.smax.i32(i32 %n1, i32 -600)",
        "%biased = add i32 %n2, 1023",
        "%wide = zext i32 %biased to i64",
        "%field = shl i64 %wide, 52",
        "%scale = bitcast i64 %field to double",
        "%x = fpext float %a to double",
        "%y = fmul double %x, %scale",
        "%r = fptrunc double %y to float",
        "ret float %r",
    ]


@row(r"air\.fmod\.f32")
def _fmod(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    return ["%r = frem float %a, %b", "ret float %r"]


@row(r"air\.nextafter\.(f32|f16)")
def _nextafter(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """On the bits; a float result below the normal range is flushed, as a Mac prints it (issue 150027)."""
    type_, integer, one = declaration.result, *{"f32": ("i32", "1"), "f16": ("i16", "1")}[match[1]]
    sign = {"i32": "-2147483648", "i16": "-32768"}[integer]
    body = [
        f"%x = bitcast {type_} %a to {integer}",
        f"%y = bitcast {type_} %b to {integer}",
        f"%nan = fcmp uno {type_} %a, %b",
        f"%same = fcmp oeq {type_} %a, %b",
        f"%zero = fcmp oeq {type_} %a, {'0xH0000' if type_ == 'half' else '0.000000e+00'}",
        f"%ysign = and {integer} %y, {sign}",
        f"%smallest = or {integer} %ysign, {one}",
        f"%up = fcmp olt {type_} %a, %b",
        f"%xneg = icmp slt {integer} %x, 0",
        "%grow = xor i1 %up, %xneg",
        f"%more = add {integer} %x, 1",
        f"%less = sub {integer} %x, 1",
        f"%step = select i1 %grow, {integer} %more, {integer} %less",
        f"%moved = select i1 %zero, {integer} %smallest, {integer} %step",
        f"%kept = select i1 %same, {integer} %y, {integer} %moved",
        f"%value = bitcast {integer} %kept to {type_}",
        f"%sum = fadd {type_} %a, %b",
        f"%r = select i1 %nan, {type_} %sum, {type_} %value",
    ]
    if type_ == "float":
        body += ["%flushed = call float @llvm.canonicalize.f32(float %r)", "ret float %flushed"]
        definitions.extern("float", "llvm.canonicalize.f32", "float")
    else:
        body.append("ret half %r")
    return body


@row(r"air\.dot\.v(\d)(f32|f16)")
def _dot(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """A chain of fused multiply-adds from the first lane on; the specification leaves the order open."""
    count, type_, vector = int(match[1]), declaration.result, declaration.parameters[0]
    fma = definitions.need(Declaration(f"air.fma.{match[2]}", type_, [type_] * 3))
    body, total = [], ""
    for lane in range(count):
        body += [
            f"%a{lane} = extractelement {vector} %a, i32 {lane}",
            f"%b{lane} = extractelement {vector} %b, i32 {lane}",
        ]
        if total:
            body.append(f"%s{lane} = call {type_} @{fma}({type_} %a{lane}, {type_} %b{lane}, {type_} {total})")
        else:
            body.append(f"%s{lane} = fmul {type_} %a{lane}, %b{lane}")
        total = f"%s{lane}"
    return [*body, f"ret {type_} {total}"]


@row(r"air\.sincos\.f32")
def _sincos(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """Returns the sine and stores the cosine."""
    sine = definitions.need(Declaration("air.sin.f32", "float", ["float"]))
    cosine = definitions.need(Declaration("air.cos.f32", "float", ["float"]))
    return [
        f"%c = call float @{cosine}(float %a)",
        f"store float %c, {declaration.parameters[1]} %b, align 4",
        f"%s = call float @{sine}(float %a)",
        "ret float %s",
    ]


@row(r"air\.fast_tanh\.f32")
def _fast_tanh(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """MSL 8.2 defines it as (t - 1) / (t + 1) with t = exp(2x), so it is NaN once t overflows (issue 186278)."""
    exp = definitions.need(Declaration("air.exp.f32", "float", ["float"]))
    return [
        "%x2 = fmul float %a, 2.000000e+00",
        f"%t = call float @{exp}(float %x2)",
        "%n = fsub float %t, 1.000000e+00",
        "%d = fadd float %t, 1.000000e+00",
        "%r = fdiv float %n, %d",
        "ret float %r",
    ]


@row(rf"air\.(?:fast_)?({'|'.join(elementary.NAMES)})\.(f32|f16)")
def _elementary(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """``fast_`` forms are computed as the precise ones: MSL 8.2 only allows them more error."""
    function, type_ = match[1], declaration.result
    definitions.elementary.add(function)
    if definitions.exact:
        return [LATE + elementary.correctly_rounded(function, type_, declaration.name)]
    if type_ == "float":
        return [LATE + elementary.fast(function, declaration.name, definitions.vector_library)]
    wide = definitions.need(Declaration(f"air.{function}.f32", "float", ["float"] * len(declaration.parameters)))
    arguments = ", ".join(f"float %w{letter}" for _, letter in named(declaration))
    widened = [f"%w{letter} = fpext half %{letter} to float" for _, letter in named(declaration)]
    return [*widened, f"%z = call float @{wide}({arguments})", "%r = fptrunc float %z to half", "ret half %r"]
