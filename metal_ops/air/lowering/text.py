"""A printed LLVM module as data: types, globals, functions and declarations, ready for line-wise rewriting.

Lowering works on text because llvmlite can read AIR bitcode and print it, but cannot edit it. Parsing normalises what
later stages would otherwise each have to care about: metadata, attributes and calling conventions go, every value gets
a name (so that lines can be inserted and removed), every block a label, every instruction one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from metal_ops.air.archive import ArchiveError

_WORDS = "|".join(
    "noundef signext zeroext nonnull noalias nocapture readonly writeonly readnone immarg returned nofree inreg "
    "noreturn local_unnamed_addr unnamed_addr fastcc ccc weak_odr linkonce_odr internal private dso_local hidden "
    "mustprogress".split()
)
_CALLS = "dereferenceable dereferenceable_or_null captures range nofpclass sret initializes memory".replace(" ", "|")
_ATTRIBUTE = re.compile(
    rf'\b(?:{_WORDS})\b ?|"[\w-]+"(?:="[^"]*")? ?|(?<=\W)align \d+ (?=[%@)])|\balign \d+(?=$|[,)])'
    rf"|\b(?:{_CALLS})\((?:[^()]|\([^()]*\))*\) ?"
)
_NUMBERED = re.compile(r"%(\d+)\b")
_DEFINE = re.compile(r'^define (.*?)@("[^"]*"|[\w.$-]+)\((.*)\)([^()]*)\{$')
_DECLARE = re.compile(r'^declare (.*?)@("[^"]*"|[\w.$-]+)\((.*)\)')
_ATTACHMENT = re.compile(r"(?:, ![\w.]+ !\d+)+$")


@dataclass
class Parameter:
    """A parameter's type and, in a definition, its name with the percent sign."""

    type: str
    name: str = ""
    no_alias: bool = False


@dataclass
class Function:
    """A definition: ``body`` holds a label line ("v7:") or one instruction (indented by two) per item."""

    name: str
    result: str
    parameters: list[Parameter]
    body: list[str]

    def render(self, linkage: str = "internal", attributes: str = "#0") -> str:
        """The function as text."""
        parameters = ", ".join(f"{p.type} {'noalias ' if p.no_alias else ''}{p.name}" for p in self.parameters)
        return "\n".join(
            [f"define {linkage} {self.result} @{self.name}({parameters}) {attributes} {{", *self.body, "}"]
        )


@dataclass
class Declaration:
    """An external function: AIR intrinsics and LLVM's own."""

    name: str
    result: str
    parameters: list[str]


@dataclass
class Module:
    """The parts of a module that have a meaning for execution; target lines and metadata are left out."""

    types: list[str] = field(default_factory=list)
    globals: list[str] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    declarations: list[Declaration] = field(default_factory=list)

    def function(self, name: str) -> Function:
        """The definition of ``name``; raises :class:`ArchiveError` if the module does not define it."""
        for function in self.functions:
            if function.name.strip('"') == name:
                return function
        raise ArchiveError(f"module does not define the kernel {name!r} that its metadata names")


def split(text: str, separator: str = ",") -> list[str]:
    """Split at separators outside any bracket or quotes, trimming blanks; an empty text gives no parts."""
    parts, depth, quoted, start = [], 0, False, 0
    for position, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif char in "([{<":
            depth += 1
        elif char in ")]}>":
            depth -= 1
        elif char == separator and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    tail = text[start:].strip()
    return [*parts, tail] if tail or parts else []


def plain(text: str) -> str:
    """``text`` without attributes that say nothing about the meaning of a correct kernel."""
    return _ATTRIBUTE.sub("", text)


def _parameter(text: str) -> Parameter:
    no_alias = "air-buffer-no-alias" in text
    words = plain(text).strip()
    type_, _, name = words.rpartition(" ")
    return Parameter(type_.strip(), _NUMBERED.sub(r"%v\1", name), no_alias)


def _logical_lines(lines: Iterable[str]) -> Iterable[str]:
    """Join the lines of a switch table, drop comments and blank lines."""
    pending = ""
    for raw in lines:
        line = raw.split("; preds")[0].rstrip()
        if pending:
            pending += " " + line.strip()
            if line.strip() == "]":
                yield pending
                pending = ""
        elif line.endswith("["):
            pending = line
        elif line and not line.startswith(";"):
            yield line


def _instruction(line: str) -> str:
    line = _ATTACHMENT.sub("", line)
    if " call " in line or line.startswith("  call "):
        line = plain(re.sub(r" #\d+$", "", line)).replace("tail call", "call").replace("notail call", "call")
    return line


def _body(lines: Iterable[str], parameters: list[Parameter]) -> list[str]:
    body = []
    for line in _logical_lines(lines):
        label = re.match(r'^("[^"]+"|[\w.$-]+):', line)
        if label:
            body.append(f"v{line}" if line[0].isdigit() else line)
        else:
            body.append(_NUMBERED.sub(r"%v\1", _instruction(line)))
    if body and not body[0].endswith(":"):  # LLVM does not print the entry block's number: it follows the parameters
        unnamed = sum(bool(re.fullmatch(r"%v\d+", parameter.name)) for parameter in parameters)
        body.insert(0, f"v{unnamed}:")
    return body


def _header(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    match = pattern.match(line)
    if match is None:
        raise ArchiveError(f"unreadable function header in AIR: {line[:120]!r}")
    return match


def parse(ir: str) -> Module:
    """Read a module printed by LLVM. Raises :class:`ArchiveError` on a line of a form it does not know."""
    module = Module()
    lines = iter(ir.split("\n"))
    for line in lines:
        if line.startswith("define"):
            match = _header(_DEFINE, line)
            parameters = [_parameter(part) for part in split(match[3])]
            inner = []
            for inside in lines:
                if inside == "}":
                    break
                inner.append(inside)
            module.functions.append(Function(match[2], plain(match[1]).strip(), parameters, _body(inner, parameters)))
        elif line.startswith("declare"):
            match = _header(_DECLARE, line)
            parts = [plain(part).strip() for part in split(match[3])]
            module.declarations.append(Declaration(match[2], plain(match[1]).strip(), parts))
        elif line.startswith("@"):
            module.globals.append(_global(line))
        elif line.startswith("%") and " = type " in line:
            module.types.append(_NUMBERED.sub(r"%v\1", line))
    return module


def _global(line: str) -> str:
    """A global with module-local linkage and without the comdat or section that another object format would need."""
    line = _ATTACHMENT.sub("", line)
    return re.sub(r"(?:unnamed_addr|local_unnamed_addr|, comdat\S*|, section \"[^\"]*\") ?", "", line)


_SCALAR_BYTES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}


def size_of(type_: str) -> str:
    """The bytes an access of ``type_`` touches, as an IR operand: a number, or a constant expression for aggregates."""
    scalar = type_.split(" addrspace")[0]
    if scalar in _SCALAR_BYTES:
        return str(_SCALAR_BYTES[scalar])
    if match := re.fullmatch(r"i(\d+)", type_):
        return str(-(-int(match[1]) // 8))
    if match := re.fullmatch(r"<(\d+) x (half|bfloat|float|double|i\d+)>", type_):
        return str(int(match[1]) * int(size_of(match[2])))
    return f"ptrtoint (ptr getelementptr ({type_}, ptr null, i32 1) to i64)"


def lanes(type_: str) -> tuple[int, str]:
    """The number of elements and the element type of a vector type; (1, type) for a scalar."""
    match = re.fullmatch(r"<(\d+) x (.+)>", type_)
    return (int(match[1]), match[2]) if match else (1, type_)
