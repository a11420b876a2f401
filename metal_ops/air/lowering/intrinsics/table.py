"""The table itself: rows from name patterns to functions that write a definition, and the generic forms."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from metal_ops.air.lowering.errors import LoweringError
from metal_ops.air.lowering.text import Declaration, lanes


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
            if self.texts[declaration.name].startswith(LATE):
                self.late[declaration.name] = self.texts[declaration.name].removeprefix(LATE)
                self.texts[declaration.name] = _declare(declaration)
        return declaration.name

    def extern(self, result: str, name: str, *parameters: str) -> str:
        """Declare one of LLVM's own intrinsics; returns its name."""
        self.texts.setdefault(name, f"declare {result} @{name}({', '.join(parameters)})")
        return name


LATE = "late "
"""Begins a definition that shall stay a call until the final optimisation."""


def _declare(declaration: Declaration) -> str:
    return f"declare {declaration.result} @{declaration.name}({', '.join(declaration.parameters)})"


def named(declaration: Declaration) -> list[tuple[str, str]]:
    """Type and name of each parameter of a definition: %a, %b, ..."""
    return list(zip(declaration.parameters, "abcdefgh", strict=False))


Row = Callable[[Declaration, "re.Match[str]", Definitions], "list[str]"]
TABLE: list[tuple[re.Pattern[str], Row]] = []
"""The rows, in the order in which they are tried; the modules of this package add theirs when imported."""


def row(pattern: str) -> Callable[[Row], Row]:
    """Register a row for the intrinsics whose whole name matches ``pattern``."""

    def register(function: Row) -> Row:
        TABLE.append((re.compile(pattern), function))
        return function

    return register


def _define(declaration: Declaration, definitions: Definitions) -> str:
    for pattern, row in TABLE:
        if match := pattern.fullmatch(declaration.name):
            body = row(declaration, match, definitions)
            if len(body) == 1 and body[0].startswith(LATE):
                return body[0]
            parameters = ", ".join(f"{type_} %{name}" for type_, name in named(declaration))
            head = f"define internal {declaration.result} @{declaration.name}({parameters}) #0 {{"
            return "\n".join([head, *(f"  {line}" for line in body), "}"])
    if declaration.name.startswith("llvm."):
        return _declare(declaration)
    raise LoweringError(f"intrinsic {declaration.name} is not implemented")


@row(r"(air)\.(?!dot|all|any|convert|simd)([\w.]*?)\.v(\d)((?:b?f|i)\d+)")
def _vector(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """Any elementwise intrinsic on a short vector: the scalar form on each lane."""
    count, scalar_name = int(match[3]), f"{match[1]}.{match[2]}.{match[4]}"
    result = lanes(declaration.result)[1]
    parameters = [lanes(parameter)[1] if lanes(parameter)[0] > 1 else parameter for parameter in declaration.parameters]
    definitions.need(Declaration(scalar_name, result, parameters))
    body, value = [], "undef"
    for lane in range(count):
        arguments = []
        for (type_, letter), scalar in zip(named(declaration), parameters, strict=True):
            if type_ == scalar:
                arguments.append(f"{scalar} %{letter}")
                continue
            body.append(f"%{letter}{lane} = extractelement {type_} %{letter}, i32 {lane}")
            arguments.append(f"{scalar} %{letter}{lane}")
        body.append(f"%s{lane} = call {result} @{scalar_name}({', '.join(arguments)})")
        body.append(f"%r{lane} = insertelement {declaration.result} {value}, {result} %s{lane}, i32 {lane}")
        value = f"%r{lane}"
    return [*body, f"ret {declaration.result} {value}"]


@row(r"(air)\.(?!convert|simd)([\w.]+)\.bf16")
def _bfloat(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """A bfloat function is computed in float and rounded once more, as the hardware's wider unit does."""
    name = f"{match[1]}.{match[2]}.f32"
    is_value = [type_ == "i16" for type_ in declaration.parameters]
    result = "float" if declaration.result == "i16" else declaration.result
    wide = ["float" if value else type_ for value, type_ in zip(is_value, declaration.parameters, strict=True)]
    definitions.need(Declaration(name, result, wide))
    body, arguments = [], []
    for (_, letter), value, type_ in zip(named(declaration), is_value, wide, strict=True):
        if value:
            body.append(f"%w{letter} = call float @bf.widen.1(i16 %{letter})")
        arguments.append(f"{type_} %{'w' if value else ''}{letter}")
    body.append(f"%z = call {result} @{name}({', '.join(arguments)})")
    if result != "float":
        return [*body, f"ret {result} %z"]
    return [*body, "%r = call i16 @bf.narrow.1(float %z)", "ret i16 %r"]
