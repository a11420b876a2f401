"""Which names of some modules of torch a Python source uses, with what arguments, and whether it allows for their lack.

A use is guarded if a torch without the name is no error: in a ``try`` that catches AttributeError, under a condition
``hasattr(module, "name")``, or as ``getattr(module, "name", default)``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MODULES = ("torch.mps", "torch.accelerator", "torch.backends.mps")
_CATCHES_LACK = {"AttributeError", "Exception", "BaseException"}


@dataclass(frozen=True)
class Use:
    """A name at a line of a file; ``arguments`` are the positions and keywords of a call of it, None without one."""

    name: str
    where: str
    guarded: bool
    arguments: tuple[int, tuple[str, ...]] | None = None


def uses(source: str, file: str, modules: tuple[str, ...] = MODULES) -> list[Use]:
    """Find the uses in a source, those in templates of sources (its string constants) included.

    Raises
    ------
    ValueError
        A call unpacks its arguments (``*`` or ``**``): nobody can tell what it is given.
    """
    tree = ast.parse(source)
    found = list(_Finder(tree, file, modules).uses())
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and any(m in node.value for m in modules):
            template = re.sub(r"\{[^{}]*\}", "x", node.value)
            try:
                found += uses(template, f"{file}:{node.lineno}, template", modules)
            except SyntaxError:
                continue  # prose
    return found


class _Finder:
    def __init__(self, tree: ast.Module, file: str, modules: tuple[str, ...]) -> None:
        self._tree, self._file, self._modules = tree, file, modules
        self._aliases = dict(_aliases(tree))

    def uses(self) -> Iterator[Use]:
        yield from self._imported()
        yield from self._in(self._tree, frozenset(), None)

    def _imported(self) -> Iterator[Use]:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    yield from self._use(f"{node.module}.{alias.name}", node, frozenset(), None)

    def _in(self, node: ast.AST, guards: frozenset[str], call: ast.Call | None) -> Iterator[Use]:
        """Walk a node; ``guards`` are names known to be there, "*" any; ``call`` is the call of this very node."""
        if name := self._dotted(node):
            yield from self._use(name, node, guards, call)
            return
        if isinstance(node, ast.Call):
            yield from self._in(node.func, guards, node)
            yield from self._each([*node.args, *node.keywords], guards)
        elif isinstance(node, ast.Try):
            inside = guards | {"*"} if any(map(_catches_lack, node.handlers)) else guards
            yield from self._each(node.body, inside)
            yield from self._each([*node.handlers, *node.orelse, *node.finalbody], guards)
        elif isinstance(node, (ast.If, ast.IfExp)):
            body: list[ast.AST] = [*node.body] if isinstance(node, ast.If) else [node.body]
            orelse: list[ast.AST] = [*node.orelse] if isinstance(node, ast.If) else [node.orelse]
            yield from self._each([node.test, *orelse], guards)
            yield from self._each(body, guards | self._asked(node.test))
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            for value in node.values:
                yield from self._in(value, guards, None)
                guards |= self._asked(value)
        else:
            yield from self._each(ast.iter_child_nodes(node), guards)

    def _each(self, nodes: Iterable[ast.AST], guards: frozenset[str]) -> Iterator[Use]:
        for node in nodes:
            yield from self._in(node, guards, None)

    def _asked(self, test: ast.AST) -> frozenset[str]:
        """Names that a true condition shows to be there."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            return frozenset().union(*map(self._asked, test.values))
        if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "hasattr":
            return frozenset(name for name in [self._member(test)] if name)
        return frozenset()

    def _dotted(self, node: ast.AST) -> str | None:
        """The full dotted name that an expression stands for."""
        if isinstance(node, ast.Name):
            return self._aliases.get(node.id)
        if isinstance(node, ast.Attribute):
            return (base := self._dotted(node.value)) and f"{base}.{node.attr}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            return self._member(node)
        return None

    def _member(self, question: ast.Call) -> str | None:
        """The name that ``getattr(module, "name")`` or ``hasattr(module, "name")`` is about."""
        base, name = self._dotted(question.args[0]), question.args[1]
        return (
            f"{base}.{name.value}" if base and isinstance(name, ast.Constant) and isinstance(name.value, str) else None
        )

    def _use(self, name: str, node: ast.AST, guards: frozenset[str], call: ast.Call | None) -> Iterator[Use]:
        if not any(name.startswith(f"{module}.") for module in self._modules):
            return
        where = f"{self._file}:{getattr(node, 'lineno', 0)}"
        allows = isinstance(node, ast.Call) and (len(node.args) == 3 or getattr(node.func, "id", "") == "hasattr")
        yield Use(name, where, bool(allows or guards & {"*", name}), _arguments(call, where) if call else None)


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What the names that imports bind stand for, wherever in the module they are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.name if alias.asname else alias.name.partition(".")[0]
                yield alias.asname or bound, bound
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _catches_lack(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(node, ast.Name) and node.id in _CATCHES_LACK for node in ast.walk(handler.type))


def _arguments(call: ast.Call, where: str) -> tuple[int, tuple[str, ...]]:
    if any(isinstance(value, ast.Starred) for value in call.args) or any(key.arg is None for key in call.keywords):
        raise ValueError(f"{where}: the call unpacks its arguments, so they cannot be checked")
    return len(call.args), tuple(key.arg for key in call.keywords if key.arg)
