"""What each AIR intrinsic of a single thread means, as a table from name patterns to LLVM IR.

A row is a function that writes the definition of one declared intrinsic. Vector forms of elementwise intrinsics are
written once, generically, on top of the scalar form. Sources: Metal Shading Language specification 4, sections 6.3
(integer), 6.5 (math) and 8; what the specification leaves open is said where it is decided.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from metal_ops.air.lowering import elementary, matrix
from metal_ops.air.lowering.errors import LoweringError
from metal_ops.air.lowering.text import Declaration, lanes, size_of

_IR_TYPE = {"f32": "float", "f16": "half", "bf16": "i16", "f64": "double"}
_FLOAT_SUFFIX = {"float": "f32", "half": "f16", "double": "f64"}


@dataclass
class Definitions:
    """Definitions written so far, by name, and the options that shape them.

    ``texts`` are inlined into the kernel before anything else happens to it; ``late`` (elementary functions) stay
    calls until the final optimisation.
    """

    exact: bool
    vector_library: bool = False
    texts: dict[str, str] = field(default_factory=dict)
    late: dict[str, str] = field(default_factory=dict)
    elementary: set[str] = field(default_factory=set)

    def need(self, declaration: Declaration) -> str:
        """Define ``declaration`` unless that is done; returns its name.

        Raises :class:`LoweringError` naming an intrinsic without a row.
        """
        if declaration.name not in self.texts:
            self.texts[declaration.name] = ""  # claimed, so that recursion ends
            self.texts[declaration.name] = _define(declaration, self)
            if self.texts[declaration.name].startswith(_LATE):
                self.late[declaration.name] = self.texts[declaration.name].removeprefix(_LATE)
                self.texts[declaration.name] = _declare(declaration)
        return declaration.name

    def extern(self, result: str, name: str, *parameters: str) -> str:
        """Declare one of LLVM's own intrinsics; returns its name."""
        self.texts.setdefault(name, f"declare {result} @{name}({', '.join(parameters)})")
        return name


_LATE = "late "


def _declare(declaration: Declaration) -> str:
    return f"declare {declaration.result} @{declaration.name}({', '.join(declaration.parameters)})"


def _named(declaration: Declaration) -> list[tuple[str, str]]:
    """Type and name of each parameter of a definition: %a, %b, ..."""
    return list(zip(declaration.parameters, "abcdefgh", strict=False))


Row = Callable[[Declaration, "re.Match[str]", Definitions], "list[str]"]
_TABLE: list[tuple[re.Pattern[str], Row]] = []


def _row(pattern: str) -> Callable[[Row], Row]:
    def register(function: Row) -> Row:
        _TABLE.append((re.compile(pattern), function))
        return function

    return register


def is_known(name: str) -> bool:
    """Whether a row (or LLVM itself) defines the intrinsic called ``name``."""
    return name.startswith("llvm.") or any(pattern.fullmatch(name) for pattern, _ in _TABLE)


def _define(declaration: Declaration, definitions: Definitions) -> str:
    for pattern, row in _TABLE:
        if match := pattern.fullmatch(declaration.name):
            body = row(declaration, match, definitions)
            if len(body) == 1 and body[0].startswith(_LATE):
                return body[0]
            parameters = ", ".join(f"{type_} %{name}" for type_, name in _named(declaration))
            head = f"define internal {declaration.result} @{declaration.name}({parameters}) #0 {{"
            return "\n".join([head, *(f"  {line}" for line in body), "}"])
    if declaration.name.startswith("llvm."):
        return _declare(declaration)
    raise LoweringError(f"intrinsic {declaration.name} is not implemented")


# --- generic forms -------------------------------------------------------------------------------------------------


@_row(r"(air)\.(?!dot|all|any|convert|simd)([\w.]*?)\.v(\d)((?:b?f|i)\d+)")
def _vector(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """Any elementwise intrinsic on a short vector: the scalar form on each lane."""
    count, scalar_name = int(match[3]), f"{match[1]}.{match[2]}.{match[4]}"
    result = lanes(declaration.result)[1]
    parameters = [lanes(parameter)[1] if lanes(parameter)[0] > 1 else parameter for parameter in declaration.parameters]
    definitions.need(Declaration(scalar_name, result, parameters))
    body, value = [], "undef"
    for lane in range(count):
        arguments = []
        for (type_, letter), scalar in zip(_named(declaration), parameters, strict=True):
            if type_ == scalar:
                arguments.append(f"{scalar} %{letter}")
                continue
            body.append(f"%{letter}{lane} = extractelement {type_} %{letter}, i32 {lane}")
            arguments.append(f"{scalar} %{letter}{lane}")
        body.append(f"%s{lane} = call {result} @{scalar_name}({', '.join(arguments)})")
        body.append(f"%r{lane} = insertelement {declaration.result} {value}, {result} %s{lane}, i32 {lane}")
        value = f"%r{lane}"
    return [*body, f"ret {declaration.result} {value}"]


@_row(r"(air)\.(?!convert|simd)([\w.]+)\.bf16")
def _bfloat(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """A bfloat function is computed in float and rounded once more, as the hardware's wider unit does."""
    name = f"{match[1]}.{match[2]}.f32"
    is_value = [type_ == "i16" for type_ in declaration.parameters]
    result = "float" if declaration.result == "i16" else declaration.result
    wide = ["float" if value else type_ for value, type_ in zip(is_value, declaration.parameters, strict=True)]
    definitions.need(Declaration(name, result, wide))
    body, arguments = [], []
    for (_, letter), value, type_ in zip(_named(declaration), is_value, wide, strict=True):
        if value:
            body.append(f"%w{letter} = call float @bf.widen.1(i16 %{letter})")
        arguments.append(f"{type_} %{'w' if value else ''}{letter}")
    body.append(f"%z = call {result} @{name}({', '.join(arguments)})")
    if result != "float":
        return [*body, f"ret {result} %z"]
    return [*body, "%r = call i16 @bf.narrow.1(float %z)", "ret i16 %r"]


# --- floating point ------------------------------------------------------------------------------------------------

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


@_row(rf"air\.({'|'.join(_DIRECT)})\.(f32|f16)")
def _direct(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    type_ = declaration.result
    name = f"llvm.{_DIRECT[match[1]]}.{match[2]}"
    definitions.extern(type_, name, *declaration.parameters)
    arguments = ", ".join(f"{type_} %{letter}" for _, letter in _named(declaration))
    return [f"%r = call {type_} @{name}({arguments})", f"ret {type_} %r"]


@_row(r"air\.fma\.f32")
def _fma(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    definitions.extern("float", "llvm.fma.f32", "float", "float", "float")
    return ["%r = call float @llvm.fma.f32(float %a, float %b, float %c)", "ret float %r"]


@_row(r"air\.fma\.f16")
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


@_row(r"air\.clamp\.(f32|f16)")
def _clamp(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    type_, suffix = declaration.result, match[1]
    definitions.extern(type_, f"llvm.maxnum.{suffix}", type_, type_)
    definitions.extern(type_, f"llvm.minnum.{suffix}", type_, type_)
    return [
        f"%m = call {type_} @llvm.maxnum.{suffix}({type_} %a, {type_} %b)",
        f"%r = call {type_} @llvm.minnum.{suffix}({type_} %m, {type_} %c)",
        f"ret {type_} %r",
    ]


@_row(r"air\.fract\.(f32|f16)")
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


@_row(r"air\.ldexp\.f32")
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


@_row(r"air\.fmod\.f32")
def _fmod(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    return ["%r = frem float %a, %b", "ret float %r"]


@_row(r"air\.nextafter\.(f32|f16)")
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


@_row(r"air\.dot\.v(\d)(f32|f16)")
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


@_row(r"air\.sincos\.f32")
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


@_row(r"air\.fast_tanh\.f32")
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


@_row(rf"air\.(?:fast_)?({'|'.join(elementary.NAMES)})\.(f32|f16)")
def _elementary(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """``fast_`` forms are computed as the precise ones: MSL 8.2 only allows them more error."""
    function, type_ = match[1], declaration.result
    definitions.elementary.add(function)
    if definitions.exact:
        return [_LATE + elementary.correctly_rounded(function, type_, declaration.name)]
    if type_ == "float":
        return [_LATE + elementary.fast(function, declaration.name, definitions.vector_library)]
    wide = definitions.need(Declaration(f"air.{function}.f32", "float", ["float"] * len(declaration.parameters)))
    arguments = ", ".join(f"float %w{letter}" for _, letter in _named(declaration))
    widened = [f"%w{letter} = fpext half %{letter} to float" for _, letter in _named(declaration)]
    return [*widened, f"%z = call float @{wide}({arguments})", "%r = fptrunc float %z to half", "ret half %r"]


# --- integers and predicates ---------------------------------------------------------------------------------------


@_row(r"air\.(min|max)\.([su])\.(i\d+)")
def _integer_extreme(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    type_ = declaration.result
    name = definitions.extern(type_, f"llvm.{match[2]}{match[1]}.{match[3]}", type_, type_)
    return [f"%r = call {type_} @{name}({type_} %a, {type_} %b)", f"ret {type_} %r"]


@_row(r"air\.clamp\.([su])\.(i\d+)")
def _integer_clamp(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    type_ = declaration.result
    high = definitions.extern(type_, f"llvm.{match[1]}max.{match[2]}", type_, type_)
    low = definitions.extern(type_, f"llvm.{match[1]}min.{match[2]}", type_, type_)
    return [
        f"%m = call {type_} @{high}({type_} %a, {type_} %b)",
        f"%r = call {type_} @{low}({type_} %m, {type_} %c)",
        f"ret {type_} %r",
    ]


@_row(r"air\.abs\.([su])\.(i\d+)")
def _integer_abs(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    type_ = declaration.result
    if match[1] == "u":
        return [f"ret {type_} %a"]
    name = definitions.extern(type_, f"llvm.abs.{match[2]}", type_, "i1")
    return [f"%r = call {type_} @{name}({type_} %a, i1 false)", f"ret {type_} %r"]


@_row(r"air\.(clz|ctz|popcount)\.(i\d+)")
def _bit_count(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """The count of zeros of 0 is the width (MSL 6.3), whatever the flag says."""
    type_ = declaration.result
    operation = {"clz": "ctlz", "ctz": "cttz", "popcount": "ctpop"}[match[1]]
    flags = () if operation == "ctpop" else ("i1",)
    name = definitions.extern(type_, f"llvm.{operation}.{match[2]}", type_, *flags)
    extra = ", i1 false" if flags else ""
    return [f"%r = call {type_} @{name}({type_} %a{extra})", f"ret {type_} %r"]


@_row(r"air\.(all|any)\.v(\d)i1")
def _all_any(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    operation, count = ("and" if match[1] == "all" else "or"), int(match[2])
    vector = f"<{count} x i1>"
    name = definitions.extern("i1", f"llvm.vector.reduce.{operation}.v{count}i1", vector)
    return [f"%r = call i1 @{name}({vector} %a)", "ret i1 %r"]


@_row(r"air\.get_simdgroup_size\.(i\d+)")
def _simdgroup_size(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    return [f"ret {declaration.result} 32"]


# --- matrices of a simdgroup ---------------------------------------------------------------------------------------


@_row(r"air\.simdgroup_matrix_8x8_(load|store|init_filled|init_diag)\..*")
def _matrix(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    if match[1] == "load":
        return matrix.load(declaration)
    if match[1] == "store":
        return matrix.store(declaration)
    return matrix.filled(declaration, diagonal=match[1] == "init_diag")


# --- conversions ---------------------------------------------------------------------------------------------------


@_row(r"air\.convert\.([fsu])\.(v(\d))?(b?f\d+|i\d+)\.([fsu])\.(?:v\d)?(b?f\d+|i\d+)")
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


# --- atomics (all relaxed: MSL 3.1 has no other order) -------------------------------------------------------------

_ATOMIC = r"air\.atomic\.(?:global|local)"


def _aligned(declaration: Declaration, bytes_: int) -> list[str]:
    """The hardware ignores an atomic's low address bits (issue 195074 prints it), where the host would honour them."""
    pointer = declaration.parameters[0]
    return [
        f"%address = ptrtoint {pointer} %a to i64",
        f"%masked = and i64 %address, {-bytes_}",
        f"%p = inttoptr i64 %masked to {pointer}",
    ]


@_row(rf"{_ATOMIC}\.(add|sub|min|max|and|or|xor|xchg)\.(?:([su])\.)?(f32|i32|i64)")
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


@_row(rf"{_ATOMIC}\.load\.(f32|i32|i64)")
def _atomic_load(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    type_, bytes_ = declaration.result, int(size_of(declaration.result))
    load = f"%r = load atomic {type_}, {declaration.parameters[0]} %p monotonic, align {bytes_}"
    return [*_aligned(declaration, bytes_), load, f"ret {type_} %r"]


@_row(rf"{_ATOMIC}\.store\.(f32|i32|i64)")
def _atomic_store(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    pointer, type_ = declaration.parameters[:2]
    bytes_ = int(size_of(type_))
    store = f"store atomic {type_} %b, {pointer} %p monotonic, align {bytes_}"
    return [*_aligned(declaration, bytes_), store, "ret void"]


@_row(rf"{_ATOMIC}\.cmpxchg\.weak\.(f32|i32)")
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


@_row(r"air\.atomic\.fence")
def _fence(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    return ["fence seq_cst", "ret void"]
