"""bfloat as integers: LLVM must never see its ``bfloat`` type.

LLVM's own bfloat flushes subnormals in some folds and aborts in others (x86 instruction selection of ``nextafter`` in
2.14.0, ``bits & 0x7fff`` folded to an ``fabs`` through float32), so every bfloat becomes an i16 and every operation a
helper: widen to float32 by a shift, operate, round to nearest even. For + - * / and square root the double rounding is
innocuous (24 >= 2 * 8 + 2, Figueroa 1995), and copies keep every bit.
"""

from __future__ import annotations

import re

from metal_ops.air.lowering.text import Module, lanes

_LITERAL = re.compile(r"0xR([0-9A-Fa-f]{4})")
_VALUE = r'(?:%[\w.]+|%"[^"]+"|-?\d+|undef|poison|zeroinitializer|<[^<>]*>|splat \([^()]*\))'
_T = r"(i16|<\d+ x i16>)"
_FLAGS = r"(?:nnan |ninf |nsz |arcp |contract |afn |reassoc |fast )*"
_ARITHMETIC = re.compile(rf"^  (%\S+) = (fadd|fsub|fmul|fdiv|frem) {_FLAGS}{_T} ({_VALUE}), ({_VALUE})$")
_NEGATE = re.compile(rf"^  (%\S+) = fneg {_FLAGS}{_T} ({_VALUE})$")
_COMPARE = re.compile(rf"^  (%\S+) = fcmp {_FLAGS}(\w+) {_T} ({_VALUE}), ({_VALUE})$")
_EXTEND = re.compile(rf"^  (%\S+) = fpext {_FLAGS}{_T} ({_VALUE}) to (.+)$")
_TRUNCATE = re.compile(rf"^  (%\S+) = fptrunc {_FLAGS}(.+?) ({_VALUE}) to {_T}$")
_FROM_INT = re.compile(rf"^  (%\S+) = (sitofp|uitofp) (?:nneg )?(.+?) ({_VALUE}) to {_T}$")
_TO_INT = re.compile(rf"^  (%\S+) = (fptosi|fptoui) {_T} ({_VALUE}) to (.+)$")


def vector(count: int, element: str) -> str:
    """The IR type of ``count`` elements: the scalar itself for 1."""
    return element if count == 1 else f"<{count} x {element}>"


def splat(count: int, element: str, value: str) -> str:
    """A constant with every lane ``value``, without its type."""
    return value if count == 1 else "<" + ", ".join([f"{element} {value}"] * count) + ">"


def widen(count: int) -> str:
    """A helper from ``count`` bfloats to float32: exact."""
    wide, narrow, real = vector(count, "i32"), vector(count, "i16"), vector(count, "float")
    return f"""define internal {real} @bf.widen.{count}({narrow} %x) #0 {{
  %w = zext {narrow} %x to {wide}
  %s = shl {wide} %w, {splat(count, "i32", "16")}
  %f = bitcast {wide} %s to {real}
  ret {real} %f
}}"""


def narrow(count: int) -> str:
    """A helper from float32 to ``count`` bfloats: to nearest even on the bits, so nothing is flushed; NaN stays NaN."""
    wide, small, real, flag = (vector(count, t) for t in ("i32", "i16", "float", "i1"))
    return f"""define internal {small} @bf.narrow.{count}({real} %f) #0 {{
  %b = bitcast {real} %f to {wide}
  %s = lshr {wide} %b, {splat(count, "i32", "16")}
  %odd = and {wide} %s, {splat(count, "i32", "1")}
  %half = add {wide} %odd, {splat(count, "i32", "32767")}
  %r = add {wide} %b, %half
  %q = lshr {wide} %r, {splat(count, "i32", "16")}
  %m = and {wide} %b, {splat(count, "i32", "2147483647")}
  %nan = icmp ugt {wide} %m, {splat(count, "i32", "2139095040")}
  %quiet = or {wide} %s, {splat(count, "i32", "64")}
  %z = select {flag} %nan, {wide} %quiet, {wide} %q
  %t = trunc {wide} %z to {small}
  ret {small} %t
}}"""


def _binary(operation: str, count: int) -> str:
    real, small = vector(count, "float"), vector(count, "i16")
    return f"""define internal {small} @bf.{operation}.{count}({small} %a, {small} %b) #0 {{
  %x = call {real} @bf.widen.{count}({small} %a)
  %y = call {real} @bf.widen.{count}({small} %b)
  %z = {operation} {real} %x, %y
  %r = call {small} @bf.narrow.{count}({real} %z)
  ret {small} %r
}}"""


def _compare(predicate: str, count: int) -> str:
    real, small, flag = vector(count, "float"), vector(count, "i16"), vector(count, "i1")
    return f"""define internal {flag} @bf.fcmp.{predicate}.{count}({small} %a, {small} %b) #0 {{
  %x = call {real} @bf.widen.{count}({small} %a)
  %y = call {real} @bf.widen.{count}({small} %b)
  %z = fcmp {predicate} {real} %x, %y
  ret {flag} %z
}}"""


class _Rewriter:
    """Rewrites the lines of one module and collects the helpers that they came to need."""

    def __init__(self) -> None:
        self.helpers: dict[str, str] = {}
        self._fresh = 0

    def conversions(self, count: int) -> None:
        self.helpers.setdefault(f"widen.{count}", widen(count))
        self.helpers.setdefault(f"narrow.{count}", narrow(count))

    def _temporary(self) -> str:
        self._fresh += 1
        return f"%bf.{self._fresh}"

    def line(self, line: str) -> list[str]:
        """The replacement of one instruction whose bfloat types already read i16."""
        if match := _ARITHMETIC.match(line):
            name, operation, type_, a, b = match.groups()
            count = self._need(operation, type_)
            return [f"  {name} = call {type_} @bf.{operation}.{count}({type_} {a}, {type_} {b})"]
        if match := _COMPARE.match(line):
            name, predicate, type_, a, b = match.groups()
            count = lanes(type_)[0]
            self.conversions(count)
            self.helpers.setdefault(f"fcmp.{predicate}.{count}", _compare(predicate, count))
            return [f"  {name} = call {vector(count, 'i1')} @bf.fcmp.{predicate}.{count}({type_} {a}, {type_} {b})"]
        if match := _NEGATE.match(line):
            name, type_, a = match.groups()
            return [f"  {name} = xor {type_} {a}, {splat(lanes(type_)[0], 'i16', '-32768')}"]
        return self._conversion(line)

    def _need(self, operation: str, type_: str) -> int:
        count = lanes(type_)[0]
        self.conversions(count)
        self.helpers.setdefault(f"{operation}.{count}", _binary(operation, count))
        return count

    def _conversion(self, line: str) -> list[str]:
        if match := _EXTEND.match(line):
            name, type_, a, target = match.groups()
            return self._through_float(name, "fpext", type_, a, target)
        if match := _TO_INT.match(line):
            name, operation, type_, a, target = match.groups()
            return self._through_float(name, operation, type_, a, target)
        if match := _TRUNCATE.match(line):
            name, source, a, type_ = match.groups()
            return self._from(name, "fptrunc", source, a, type_)
        if match := _FROM_INT.match(line):
            name, operation, source, a, type_ = match.groups()
            return self._from(name, operation, source, a, type_)
        return [line]

    def _through_float(self, name: str, operation: str, type_: str, value: str, target: str) -> list[str]:
        count = lanes(type_)[0]
        self.conversions(count)
        real = vector(count, "float")
        if target == real:
            return [f"  {name} = call {real} @bf.widen.{count}({type_} {value})"]
        wide = self._temporary()
        return [
            f"  {wide} = call {real} @bf.widen.{count}({type_} {value})",
            f"  {name} = {operation} {real} {wide} to {target}",
        ]

    def _from(self, name: str, operation: str, source: str, value: str, type_: str) -> list[str]:
        count = lanes(type_)[0]
        self.conversions(count)
        real = vector(count, "float")
        if source == real:
            return [f"  {name} = call {type_} @bf.narrow.{count}({real} {value})"]
        wide = self._temporary()
        return [
            f"  {wide} = {operation} {source} {value} to {real}",
            f"  {name} = call {type_} @bf.narrow.{count}({real} {wide})",
        ]


def lower(module: Module) -> list[str]:
    """Replace bfloat by i16 throughout ``module``, in place; returns the helper functions to append."""
    rewriter = _Rewriter()
    for function in module.functions:
        function.result = _types(function.result)
        for parameter in function.parameters:
            parameter.type = _types(parameter.type)
        body: list[str] = []
        for line in function.body:
            if "bfloat" not in line and "0xR" not in line:
                body.append(line)
                continue
            body += rewriter.line(_types(line))
        function.body = body
    for declaration in module.declarations:
        declaration.result = _types(declaration.result)
        declaration.parameters = [_types(type_) for type_ in declaration.parameters]
        if "bf16" in declaration.name:
            rewriter.conversions(lanes(declaration.result)[0] if "i16" in declaration.result else 1)
            for type_ in declaration.parameters:
                rewriter.conversions(lanes(type_)[0])
    module.types = [_types(line) for line in module.types]
    module.globals = [_types(line) for line in module.globals]
    return list(rewriter.helpers.values())


def _types(text: str) -> str:
    """``text`` with the type renamed and literals as the integers that have their bits.

    Struct names contain the word too (%"struct.vec.bfloat"), so only the bare type is renamed.
    """
    text = re.sub(r'(?<![\w."])bfloat(?![\w."])', "i16", text)
    return _LITERAL.sub(lambda match: str(int(match[1], 16)), text)
