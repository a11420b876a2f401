"""How many kernels of each family of a library ran under a judged case, by the records of a run.

A family is what one macro of PyTorch's sources makes: an op's kernels for all element types and launch variants. The
names tell: ``<family>_<variant>_<types>``, and which variants a family has tells its kind. This module, like the
command that shows it, reads names and records only.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from conformance.errors import UsageError
from metal_ops.unreachable import why_unreachable

Kind = Literal["unary", "binary", "other"]
KINDS: tuple[Kind, ...] = ("unary", "binary", "other")

JUDGED = ("pass", "known", "fail", "fixed")
"""Verdicts that say that results were compared; under the others a kernel may run and nobody looks."""

_RECORDS = "records.jsonl"

_TYPE = r"(?:float8_e4m3fn|bfloat|float[23]|half2|float|half|u?long|u?int|u?short|u?char|bool)"
_VARIANT = r"(?:dense_(?:broadcast(?:_rhs)?|scalar(?:_lhs)?)(?:_cast)?|dense(?:_(?:castout(?:_ilp)?|cast|ilp4?))?"
_VARIANT += r"|inner_contiguous(?:_castout)?|strided(?:_(?:castout|cast))?)"
_ELEMENTWISE = re.compile(rf"(.+?)_({_VARIANT})_{_TYPE}(?:_\w+)?")  # after the types may come that of its parameters
_FIRST_TYPE = re.compile(rf"_{_TYPE}(?=_|$)")


@dataclass(frozen=True)
class Coverage:
    """A family: the names of its kernels, and those of them that did not run though calls of PyTorch reach them.

    ``unreachable`` are those that did not run because no call does; they are told of elementwise families only.
    """

    family: str
    kind: Kind
    kernels: tuple[str, ...]
    missing: tuple[str, ...]
    unreachable: tuple[str, ...] = ()

    @property
    def ran(self) -> int:
        """How many of the kernels ran."""
        return self.reachable - len(self.missing)

    @property
    def reachable(self) -> int:
        """How many of the kernels calls of PyTorch reach."""
        return len(self.kernels) - len(self.unreachable)

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON."""
        counts = {"ran": self.ran, "reachable": self.reachable, "of": len(self.kernels)}
        names = {"missing": list(self.missing), "unreachable": list(self.unreachable)}
        return {"family": self.family, "kind": self.kind, **counts, **names}


def coverage(names: Iterable[str], ran: set[str]) -> list[Coverage]:
    """Sort kernel ``names`` into families, by name, and each family's kernels into those that ``ran`` and the rest.

    Elementwise families are told by their variants: only those of two operands have a ``dense_broadcast``, only those
    of one a ``dense_castout`` or ``dense_ilp``.
    """
    kernels: dict[str, list[str]] = defaultdict(list)
    variants: dict[str, set[str]] = defaultdict(set)
    for name in names:
        family, variant = _split(name)
        kernels[family].append(name)
        variants[family].add(variant)
    return [_covered(family, _kind(variants[family]), sorted(kernels[family]), ran) for family in sorted(kernels)]


def _covered(family: str, kind: Kind, kernels: list[str], ran: set[str]) -> Coverage:
    missing = [name for name in kernels if name not in ran]
    unreachable = [] if kind == "other" else [name for name in missing if why_unreachable(name) is not None]
    left = sorted(set(missing) - set(unreachable))
    return Coverage(family, kind, tuple(kernels), tuple(left), tuple(unreachable))


def total(covered: Iterable[Coverage], kind: Kind) -> Coverage:
    """Add up the families of a kind."""
    of_kind = [family for family in covered if family.kind == kind]
    kernels, missing, unreachable = (
        tuple(name for family in of_kind for name in getattr(family, names))
        for names in ("kernels", "missing", "unreachable")
    )
    return Coverage(f"{kind} families", kind, kernels, missing, unreachable)


def _split(name: str) -> tuple[str, str]:
    """Family and variant of a kernel; what is not elementwise has no variant, and its family ends before its types."""
    if elementwise := _ELEMENTWISE.fullmatch(name):
        return elementwise[1], elementwise[2]
    first_type = _FIRST_TYPE.search(name)
    return (name[: first_type.start()] if first_type else name), ""


def _kind(variants: set[str]) -> Kind:
    if "dense_broadcast" in variants:
        return "binary"
    return "unary" if variants & {"dense_castout", "dense_ilp"} else "other"


def judged_kernels(folder: Path, build: str) -> set[str]:
    """Name the kernels that ran under a judged case in the run that wrote its records to ``folder``.

    Parameters
    ----------
    folder
        As ``conformance run --out`` takes it.
    build
        The version whose kernels must have been judged: names of one build are no coverage of another.

    Raises
    ------
    UsageError
        There are no records, they are damaged or about another build, or none names a kernel.
    """
    path = folder / _RECORDS
    try:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        judged = [record for record in records if record["verdict"] in JUDGED]
        builds = {record["build"] for record in judged}
        ran = {kernel for record in judged for kernel in record["kernels"]}
        devices = sorted({record["device"] for record in judged})
    except OSError as error:
        raise UsageError(f"--coverage {folder}: {path} cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"--coverage {folder}: {path} holds no records of a run: {error}") from None
    if not judged:
        raise UsageError(f"--coverage {folder}: none of its {len(records)} records has a verdict {', '.join(JUDGED)}")
    if not ran:
        raise UsageError(
            f"--coverage {folder}: no record names a kernel: device {', '.join(devices)} does not tell them"
        )
    if builds != {build}:
        raise UsageError(f"--build: given {build!r}; allowed with these records: {', '.join(sorted(builds))}")
    return ran
