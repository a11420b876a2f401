"""Elementary functions (exp, log, sin, pow...): correctly rounded for judging, the platform's own for speed.

Correctly rounded: evaluate in double with the platform's libm, whose error stays under 16 units in the last place of a
double, and round once. If everything within 2**-48 (relative) of that value rounds the same way, the result is proven;
else (about once in 2**23 calls) ``rounding.py`` decides with as many digits as it takes. So the result does not depend
on the platform's libm.

Fast: the platform's float functions. On x86-64 Linux with glibc's libmvec the calls carry a vector variant, so that
LLVM can vectorise loops around them; its error is up to 4 ulp.
"""

from __future__ import annotations

from metal_ops.air.lowering.errors import LoweringError

UNARY = (
    "exp exp2 exp10 log log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sinpi cospi tanpi rsqrt"
).split()
BINARY = ("atan2", "pow", "powr")
NAMES = (*UNARY, *BINARY)
IDENTIFIER = {name: number for number, name in enumerate(NAMES)}
"""The number by which the runtime names a function when it asks for a proven rounding."""

_FORMULA = {"sinpi", "cospi", "tanpi", "rsqrt"}
_LIBRARY = {"powr": "pow"}
VECTOR_VARIANTS = "exp exp2 log log2 log10 sin cos tan asin acos atan sinh cosh tanh".split()
"""Functions that glibc >= 2.35 offers in libmvec for float."""
VECTOR_ABI = {"b": 4, "d": 8, "e": 16}
"""libmvec's instruction-set letters (SSE4, AVX2, AVX-512) and how many floats each handles."""

ROUNDING = """
declare i32 @air_rt_round(i32, i32, double, double)

define internal i32 @rt.decide(i32 %function, i32 %precision, double %a, double %b) #1 {
  %mode = call i64 @rt.fp.default()
  %bits = call i32 @air_rt_round(i32 %function, i32 %precision, double %a, double %b)
  call void @rt.fp.restore(i64 %mode)
  ret i32 %bits
}

define internal float @rt.round.f32(double %r, i32 %function, double %a, double %b) #1 {
  %low = fmul double %r, 0x3FEFFFFFFFFFFFE0
  %high = fmul double %r, 0x3FF0000000000010
  %l = fptrunc double %low to float
  %h = fptrunc double %high to float
  %lb = bitcast float %l to i32
  %hb = bitcast float %h to i32
  %same = icmp eq i32 %lb, %hb
  br i1 %same, label %proven, label %close
proven:
  ret float %l
close:
  %bits = call i32 @rt.decide(i32 %function, i32 24, double %a, double %b)
  %value = bitcast i32 %bits to float
  ret float %value
}

define internal float @rt.odd(double %x) #0 {
  %t = fptrunc double %x to float
  %back = fpext float %t to double
  %exact = fcmp ueq double %back, %x
  %ax = call double @llvm.fabs.f64(double %x)
  %ab = call double @llvm.fabs.f64(double %back)
  %over = fcmp ogt double %ab, %ax
  %bits = bitcast float %t to i32
  %less = sub i32 %bits, 1
  %down = select i1 %over, i32 %less, i32 %bits
  %sticky = or i32 %down, 1
  %odd = select i1 %exact, i32 %bits, i32 %sticky
  %value = bitcast i32 %odd to float
  ret float %value
}

define internal half @rt.round.f16(double %r, i32 %function, double %a, double %b) #1 {
  %low = fmul double %r, 0x3FEFFFFFFFFFFFE0
  %high = fmul double %r, 0x3FF0000000000010
  %lo = call float @rt.odd(double %low)
  %ho = call float @rt.odd(double %high)
  %l = fptrunc float %lo to half
  %h = fptrunc float %ho to half
  %lb = bitcast half %l to i16
  %hb = bitcast half %h to i16
  %same = icmp eq i16 %lb, %hb
  br i1 %same, label %proven, label %close
proven:
  ret half %l
close:
  %wide = call i32 @rt.decide(i32 %function, i32 11, double %a, double %b)
  %bits = trunc i32 %wide to i16
  %value = bitcast i16 %bits to half
  ret half %value
}

declare double @llvm.fabs.f64(double)
"""
"""Rounding of a double that stands for an exact value.

``rt.odd`` rounds to float "to odd": the discarded part is kept
as a sticky last bit, so that a second rounding to half gives what a single one would (Boldo and Melquiond, 2008)."""


def _reduced(function: str) -> list[str]:
    """The double value %r of a function of pi x: the reduction by whole turns is exact on a float's double."""
    wave = "cos" if function == "cospi" else "sin"
    lines = [
        "  %scaled = fmul double %x, 5.000000e-01",
        "  %turns = call double @llvm.roundeven.f64(double %scaled)",
        "  %whole = fmul double %turns, 2.000000e+00",
        "  %part = fsub double %x, %whole",
    ]
    if wave == "sin":  # sin(pi p) with p in [-1, 1]: reflect to [-1/2, 1/2], where pi p loses nothing to cancellation
        lines += [
            "  %up = fsub double 1.000000e+00, %part",
            "  %down = fsub double -1.000000e+00, %part",
            "  %above = fcmp ogt double %part, 5.000000e-01",
            "  %below = fcmp olt double %part, -5.000000e-01",
            "  %first = select i1 %above, double %up, double %part",
            "  %folded = select i1 %below, double %down, double %first",
            "  %angle = fmul double %folded, 0x400921FB54442D18",
            "  %r = call double @air_rt_sin(double %angle)",
        ]
    else:  # cos(pi p) = sin(pi (1/2 - |p|))
        lines += [
            "  %abs = call double @llvm.fabs.f64(double %part)",
            "  %folded = fsub double 5.000000e-01, %abs",
            "  %angle = fmul double %folded, 0x400921FB54442D18",
            "  %r = call double @air_rt_sin(double %angle)",
        ]
    return lines


def _exact_value(function: str) -> list[str]:
    """Lines that compute %r, the function's value in double, from %x (and %y)."""
    if function == "rsqrt":
        return ["  %root = call double @llvm.sqrt.f64(double %x)", "  %r = fdiv double 1.000000e+00, %root"]
    if function == "tanpi":
        raise LoweringError("tanpi has no correctly rounded form yet")
    if function in _FORMULA:
        return _reduced(function)
    library = _LIBRARY.get(function, function)
    if function in BINARY:
        return [f"  %r = call double @air_rt_{library}(double %x, double %y)"]
    return [f"  %r = call double @air_rt_{library}(double %x)"]


def correctly_rounded(function: str, type_: str, name: str) -> str:
    """The definition of ``name``: ``function`` on ``type_`` ("float" or "half"), correctly rounded."""
    binary = function in BINARY
    suffix = {"float": "f32", "half": "f16"}[type_]
    parameters = f"{type_} %a" + (f", {type_} %b" if binary else "")
    lines = [f"define internal {type_} @{name}({parameters}) #1 {{", f"  %x = fpext {type_} %a to double"]
    second = "0.000000e+00"
    if binary:
        lines.append(f"  %y = fpext {type_} %b to double")
        second = "%y"
    lines += _exact_value(function)
    lines.append(
        f"  %z = call {type_} @rt.round.{suffix}(double %r, i32 {IDENTIFIER[function]}, double %x, double {second})"
    )
    return "\n".join([*lines, f"  ret {type_} %z", "}"])


def fast(function: str, name: str, vector_library: bool) -> str:
    """The definition of ``name``: ``function`` on float by the platform's library, with its vector variants.

    Subnormal arguments are flushed first: the library looks at bits as well as at values, and on a flushing processor
    the two would contradict each other (it divides 0 by 0 for atan2 of two subnormals).
    """
    if function == "rsqrt":
        return (
            f"define internal float @{name}(float %a) #0 {{\n  %s = call float @llvm.sqrt.f32(float %a)\n"
            "  %r = fdiv float 1.000000e+00, %s\n  ret float %r\n}"
        )
    if function in _FORMULA:
        return correctly_rounded(function, "float", name)
    library = _LIBRARY.get(function, function)
    letters = "ab" if function in BINARY else "a"
    variants = ""
    if vector_library and function in VECTOR_VARIANTS:
        names = ",".join(
            f"_ZGV_LLVM_N{count}v_air_rt_{library}f(_ZGV{letter}N{count}v_{library}f)"
            for letter, count in VECTOR_ABI.items()
        )
        variants = f' "vector-function-abi-variant"="{names}"'
    parameters = ", ".join(f"float %{letter}" for letter in letters)
    flushed = [f"  %flushed.{letter} = call float @llvm.canonicalize.f32(float %{letter})" for letter in letters]
    arguments = ", ".join(f"float %flushed.{letter}" for letter in letters)
    call = f"  %r = call float @air_rt_{library}f({arguments}) nounwind willreturn memory(none){variants}"
    return "\n".join([f"define internal float @{name}({parameters}) #0 {{", *flushed, call, "  ret float %r", "}"])


def declarations(functions: set[str], *, exact: bool, vector_library: bool) -> str:
    """Declarations of every external symbol that definitions of ``functions`` may call."""
    called = {_LIBRARY.get(function, function) for function in functions} - _FORMULA
    exact_called = called | {"sin"} if exact else {"sin"}  # the formulas are in double in either mode, and use the sine
    lines = [
        "declare double @llvm.sqrt.f64(double)",
        "declare float @llvm.sqrt.f32(float)",
        "declare float @llvm.canonicalize.f32(float)",
        "declare double @llvm.roundeven.f64(double)",
    ]
    for names, type_, suffix in ((exact_called, "double", ""), (called if not exact else set(), "float", "f")):
        for name in sorted(names):
            parameters = ", ".join([type_] * (2 if name in BINARY else 1))
            lines.append(f"declare {type_} @air_rt_{name}{suffix}({parameters})")
    if vector_library:
        lines += _vector_declarations(sorted(called & set(VECTOR_VARIANTS)))
    return "\n".join(lines)


def _vector_declarations(functions: list[str]) -> list[str]:
    """Declare libmvec's functions and keep them alive until the vectoriser asks for them."""
    symbols = [
        (f"_ZGV{letter}N{count}v_{function}f", count) for function in functions for letter, count in VECTOR_ABI.items()
    ]
    if not symbols:
        return []
    lines = [f"declare <{count} x float> @{symbol}(<{count} x float>)" for symbol, count in symbols]
    kept = ", ".join(f"ptr @{symbol}" for symbol, _ in symbols)
    array = f"[{len(symbols)} x ptr] [{kept}]"
    return [*lines, f'@llvm.compiler.used = appending global {array}, section "llvm.metadata"']
