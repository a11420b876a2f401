"""Whether names and calls are right by the Python sources of a torch that is not installed: read, never run."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping

from tests.metal_ops.torch_uses import Use

_Definition = ast.FunctionDef | ast.ClassDef | ast.stmt | str  # a module is its dotted name


class Definitions:
    """The modules of one torch; ``sources`` has their texts by path inside the wheel, stubs included."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._trees = {path: ast.parse(text) for path, text in sources.items()}

    def complaint(self, use: Use) -> str | None:
        """Say what is wrong with a use, None if it is right."""
        found = self.find(use.name)
        if not found:
            return f"there is no {use.name}"
        if use.arguments is None:
            return None
        complaints = [self._unfit(definition, *use.arguments) for definition in found]
        return None if None in complaints else f"{use.name}{complaints[0]}"

    def find(self, name: str) -> list[_Definition]:
        """Find what a dotted name is: several definitions if it is overloaded, none if it is not there."""
        top, *members = name.split(".")
        found: list[_Definition] = [top]
        for member in members:
            found = [inner for outer in found for inner in self._members(outer, member)]
        return found

    def _members(self, outer: _Definition, name: str) -> Iterator[_Definition]:
        if isinstance(outer, str):
            path = self._path(outer)
            yield from self._named(self._trees[path].body if path else [], name, outer, path or "")
            if self._path(f"{outer}.{name}"):
                yield f"{outer}.{name}"
            elif not path and any(known.startswith(f"{outer}.{name}".replace(".", "/")) for known in self._trees):
                yield f"{outer}.{name}"  # a package whose own file was not read
        elif isinstance(outer, ast.ClassDef):
            yield from self._named(outer.body, name, "", "")

    def _path(self, module: str) -> str | None:
        stem = module.replace(".", "/")
        candidates = (f"{stem}.py", f"{stem}/__init__.py", f"{stem}.pyi", f"{stem}/__init__.pyi")
        return next((path for path in candidates if path in self._trees), None)

    def _named(self, body: Iterable[ast.stmt], name: str, module: str, path: str) -> Iterator[_Definition]:
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                if statement.name == name:
                    yield statement
            elif isinstance(statement, ast.ImportFrom):
                yield from self._imported(statement, name, module, path)
            elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                    yield statement
            elif isinstance(statement, (ast.If, ast.Try)):
                yield from self._named([*statement.body, *statement.orelse], name, module, path)

    def _imported(self, statement: ast.ImportFrom, name: str, module: str, path: str) -> Iterator[_Definition]:
        for alias in statement.names:
            if name == (alias.asname or alias.name):
                package = module.split(".") if "/__init__." in path else module.split(".")[:-1]
                parts = package[: len(package) + 1 - statement.level] if statement.level else []
                source = ".".join([*parts, *([statement.module] if statement.module else [])])
                yield from self.find(f"{source}.{alias.name}")

    def _unfit(self, definition: _Definition, positions: int, keywords: tuple[str, ...]) -> str | None:
        if isinstance(definition, ast.ClassDef):
            makers = [*self._members(definition, "__init__"), *self._members(definition, "__new__")]
            return self._unfit(makers[0], positions + 1, keywords) if makers else ": nobody can tell how it is made"
        if not isinstance(definition, ast.FunctionDef):
            return " is no function that can be read"
        try:
            signature(definition).bind(*range(positions), **dict.fromkeys(keywords))
        except TypeError as error:
            return f"{signature(definition)}: {error}"
        return None


def signature(function: ast.FunctionDef) -> inspect.Signature:
    """The signature of a definition; every default is ``...``."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    first_default = len(positional) - len(given.defaults)
    kinds = inspect.Parameter
    parameters = []
    for index, argument in enumerate(positional):
        kind = kinds.POSITIONAL_ONLY if index < len(given.posonlyargs) else kinds.POSITIONAL_OR_KEYWORD
        parameters.append(kinds(argument.arg, kind, default=... if index >= first_default else kinds.empty))
    if given.vararg:
        parameters.append(kinds(given.vararg.arg, kinds.VAR_POSITIONAL))
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        parameters.append(kinds(argument.arg, kinds.KEYWORD_ONLY, default=... if default else kinds.empty))
    if given.kwarg:
        parameters.append(kinds(given.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(parameters)
