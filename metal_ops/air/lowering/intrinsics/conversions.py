"""Conversions between element types: air.convert.<to kind>.<to type>.<from kind>.<from type>."""

from __future__ import annotations

import re

from metal_ops.air.lowering.intrinsics.table import Definitions, row
from metal_ops.air.lowering.text import Declaration, lanes


@row(r"air\.convert\.([fsu])\.(v(\d))?(b?f\d+|i\d+)\.([fsu])\.(?:v\d)?(b?f\d+|i\d+)")
def _convert(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    target_kind, count, target, source_kind, source = match[1], match[3], match[4], match[5], match[6]
    if count:
        return _convert_vector(declaration, match, definitions)
    if target_kind == "f" and source_kind == "f":
        return _float_to_float(target, source)
    if source_kind == "f":
        return _float_to_integer(declaration.result, target_kind, target, source, definitions)
    if target_kind == "f":
        return _integer_to_float(declaration, target, source_kind)
    return _integer_to_integer(declaration, source_kind)


def _convert_vector(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    scalar = f"air.convert.{match[1]}.{match[4]}.{match[5]}.{match[6]}"
    result, source = lanes(declaration.result)[1], lanes(declaration.parameters[0])[1]
    definitions.need(Declaration(scalar, result, [source]))
    body, value = [], "undef"
    for lane in range(int(match[3])):
        body += [
            f"%a{lane} = extractelement {declaration.parameters[0]} %a, i32 {lane}",
            f"%s{lane} = call {result} @{scalar}({source} %a{lane})",
            f"%r{lane} = insertelement {declaration.result} {value}, {result} %s{lane}, i32 {lane}",
        ]
        value = f"%r{lane}"
    return [*body, f"ret {declaration.result} {value}"]


def _as_float(source: str, value: str = "%a") -> tuple[list[str], str]:
    """Lines that widen a float of format ``source`` to float32, exactly, and the name of the result."""
    if source == "f32":
        return [], value
    if source == "bf16":
        return [f"%wide = call float @bf.widen.1(i16 {value})"], "%wide"
    return [f"%wide = fpext half {value} to float"], "%wide"


def _float_to_float(target: str, source: str) -> list[str]:
    lines, value = _as_float(source)
    if target == "bf16":
        return [*lines, f"%r = call i16 @bf.narrow.1(float {value})", "ret i16 %r"]
    if target == "f16":
        return [*lines, f"%r = fptrunc float {value} to half", "ret half %r"]
    return [*lines, f"ret float {value}"]


def _float_to_integer(result: str, kind: str, target: str, source: str, definitions: Definitions) -> list[str]:
    """Toward zero, NaN to 0, saturating (MSL 8.6) - except float to signed 64 bits, see below. To bool: not zero."""
    lines, value = _as_float(source)
    if target == "i1":
        return [*lines, f"%r = fcmp une float {value}, 0.000000e+00", "ret i1 %r"]
    if kind == "s" and target == "i64":
        # The hardware converts the magnitude and negates: 2**63 becomes the smallest integer (values printed by Macs).
        definitions.extern("i64", "llvm.fptoui.sat.i64.f32", "float")
        definitions.extern("float", "llvm.fabs.f32", "float")
        return [
            *lines,
            f"%m = call float @llvm.fabs.f32(float {value})",
            "%u = call i64 @llvm.fptoui.sat.i64.f32(float %m)",
            "%n = sub i64 0, %u",
            f"%neg = fcmp olt float {value}, 0.000000e+00",
            "%r = select i1 %neg, i64 %n, i64 %u",
            "ret i64 %r",
        ]
    name = f"llvm.fpto{kind}i.sat.{target}.f32"
    definitions.extern(result, name, "float")
    return [*lines, f"%r = call {result} @{name}(float {value})", f"ret {result} %r"]


def _integer_to_float(declaration: Declaration, target: str, kind: str) -> list[str]:
    """To nearest even in one rounding: through double (and odd) where float32 would round a first time."""
    operation, source = {"s": "sitofp", "u": "uitofp"}[kind], declaration.parameters[0]
    if target == "f32":
        return [f"%r = {operation} {source} %a to float", "ret float %r"]
    lines = [f"%d = {operation} {source} %a to double", "%f = call float @rt.odd(double %d)"]
    if target == "bf16":
        return [*lines, "%r = call i16 @bf.narrow.1(float %f)", "ret i16 %r"]
    return [*lines, "%r = fptrunc float %f to half", "ret half %r"]


def _integer_to_integer(declaration: Declaration, source_kind: str) -> list[str]:
    source, result = declaration.parameters[0], declaration.result
    from_bits, to_bits = int(source[1:]), int(result[1:])
    if to_bits == 1:
        return [f"%r = icmp ne {source} %a, 0", "ret i1 %r"]
    if from_bits == to_bits:
        return [f"ret {result} %a"]
    operation = "trunc" if to_bits < from_bits else {"s": "sext", "u": "zext"}[source_kind]
    return [f"%r = {operation} {source} %a to {result}", f"ret {result} %r"]
