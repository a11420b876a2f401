"""Integer division that cannot trap.

x86-64 faults on a division by zero and on the smallest integer by -1, and LLVM takes both for impossible; a GPU does
neither. MSL leaves the values open and Apple publishes none, so this is a choice, the same on every host: x / 0 is 0
and x % 0 is x (as on arm64), and the smallest integer by -1 wraps to itself, without remainder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from metal_ops.air.lowering.text import Function, lanes

_DIVISION = re.compile(r"^  (%\S+) = ([su])(div|rem)(?: exact)? (<\d+ x i\d+>|i\d+) (.+), (\S+|<[^<>]*>)$")
_HARMLESS = re.compile(r"[1-9]\d*")


def guard(function: Function) -> None:
    """Guard every division of ``function`` by anything but a positive constant, in place."""
    function.body = [new for line in function.body for new in _guarded(line)]


def _guarded(line: str) -> Iterator[str]:
    match = _DIVISION.match(line)
    if match is None or _HARMLESS.fullmatch(match[6]):
        yield line
        return
    result, sign, operation, type_, x, y = match.groups()
    count, scalar = lanes(type_)

    def constant(value: int) -> str:
        return str(value) if count == 1 else "<" + ", ".join([f"{scalar} {value}"] * count) + ">"

    flags = "i1" if count == 1 else f"<{count} x i1>"
    name = f"%air.division.{result.strip('%').strip(chr(34))}"
    yield f"  {name}.zero = icmp eq {type_} {y}, {constant(0)}"
    unsafe = f"{name}.zero"
    if sign == "s":
        yield f"  {name}.least = icmp eq {type_} {x}, {constant(-(1 << (int(scalar[1:]) - 1)))}"
        yield f"  {name}.minus = icmp eq {type_} {y}, {constant(-1)}"
        yield f"  {name}.wraps = and {flags} {name}.least, {name}.minus"
        unsafe = f"{name}.unsafe"
        yield f"  {unsafe} = or {flags} {name}.zero, {name}.wraps"
    yield f"  {name}.by = select {flags} {unsafe}, {type_} {constant(1)}, {type_} {y}"
    yield f"  {name}.value = {sign}{operation} {type_} {x}, {name}.by"
    open_ = constant(0) if operation == "div" else x
    yield f"  {result} = select {flags} {name}.zero, {type_} {open_}, {type_} {name}.value"
