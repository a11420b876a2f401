"""What other packages bring: catalogues, devices, known failures and commands, found by their entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from conformance.errors import UsageError

if TYPE_CHECKING:
    from conformance.op import Op

_GROUPS = ("catalogues", "devices", "known", "commands")


def registered(kind: str) -> dict[str, EntryPoint]:
    """Entry points of the group ``conformance.<kind>`` by name, in the order of their names.

    Raises
    ------
    ValueError
        If the group is none of ours.
    """
    if kind not in _GROUPS:
        raise ValueError(f"entry point kind {kind!r} is unknown; allowed: {', '.join(_GROUPS)}")
    points = entry_points(group=f"conformance.{kind}")
    return {point.name: point for point in sorted(points, key=lambda point: point.name)}


def loaded(kind: str) -> dict[str, Any]:
    """The objects behind :func:`registered`; raises UsageError naming the entry point that cannot be imported."""
    found = {}
    for name, point in registered(kind).items():
        try:
            found[name] = point.load()
        except (ImportError, AttributeError) as error:
            raise UsageError(
                f"entry point conformance.{kind} {name} = {point.value} cannot be loaded: {error}"
            ) from error
    return found


def catalogue() -> list[Op]:
    """All ops of all catalogues, each name once.

    Raises
    ------
    UsageError
        If two catalogues define the same op.
    """
    ops: dict[str, Op] = {}
    for name, source in loaded("catalogues").items():
        for op in source() if callable(source) else source:
            if op.name in ops:
                raise UsageError(f"op {op.name} is defined twice; second by entry point conformance.catalogues {name}")
            ops[op.name] = op
    return list(ops.values())
