"""Commands that this package adds to the ``conformance`` command line (entry points ``conformance.commands``).

Each takes argparse's object for subcommands, adds its parser, and sets ``run`` on it: a function of the parsed
arguments that returns the exit code. :class:`~conformance.devices.base.Unavailable` is left to the caller.
"""

from __future__ import annotations

import fnmatch
import functools
import json
import os
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metal_ops.air.archive import KERNEL, FunctionEntry
from metal_ops.builds import DEFAULT_BUILD, DEFAULT_LIBRARY, Build, cached_builds, open_build
from metal_ops.coverage import KINDS, Coverage, coverage, judged_kernels, total
from metal_ops.unreachable import groups

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Subparsers = _SubParsersAction[ArgumentParser]

LATEST = Path("<latest>")
"""Stands for ``--coverage`` without a folder; compared by identity."""


def kernels(subparsers: Subparsers) -> None:
    """Add ``conformance kernels``: the kernels of a build, of all its libraries."""
    parser = subparsers.add_parser(
        "kernels",
        help="list the kernels of a build",
        description="List the kernels of a build: library, bytes of bitcode, name. With --coverage, count by families "
        "how many of them ran under a judged case of a run.",
    )
    parser.add_argument(
        "--build",
        default=DEFAULT_BUILD,
        metavar="V|PATH",
        help="version of PyTorch, or path of a wheel, libtorch_cpu.dylib or metallib (default: %(default)s)",
    )
    parser.add_argument("--match", metavar="GLOB", help="only kernels with such a name")
    parser.add_argument(
        "--library",
        metavar="NAME",
        help=f"only this library (default: all; with --coverage {DEFAULT_LIBRARY}, which air runs)",
    )
    parser.add_argument(
        "--coverage",
        nargs="?",
        type=Path,
        const=LATEST,
        metavar="DIR",
        help="count the kernels that ran in the run with records in DIR (default: the latest in runs/)",
    )
    parser.add_argument(
        "--family", metavar="GLOB", help="with --coverage: only such families, or a kind (unary, binary)"
    )
    parser.add_argument("--missing", action="store_true", help="with --coverage: name the kernels that did not run")
    parser.add_argument(
        "--unreachable",
        action="store_true",
        help="with --coverage: list the kernels that no call of PyTorch reaches, and why",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects (--coverage: an object)")
    parser.set_defaults(run=lambda arguments: _run_kernels(parser, arguments))


def builds(subparsers: Subparsers) -> None:
    """Add ``conformance builds``: the builds in the cache; ``--fetch`` adds one."""
    parser = subparsers.add_parser(
        "builds",
        help="list the cached builds, or fetch one",
        description="List the cached builds, or fetch one and list that: version, source, SHA-256, commit, libraries.",
    )
    parser.add_argument("--fetch", metavar="V", help="fetch this version of PyTorch, unless it is cached")
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")
    parser.set_defaults(run=_run_builds)


def _run_kernels(parser: ArgumentParser, arguments: Namespace) -> int:
    if arguments.coverage is None and (arguments.family or arguments.missing or arguments.unreachable):
        parser.error("arguments --family, --missing and --unreachable need --coverage")
    build = open_build(arguments.build)
    if arguments.library not in (None, *build.libraries):
        parser.error(f"argument --library: {arguments.library!r} is not one of {', '.join(build.libraries)}")
    if arguments.coverage is not None:
        return _run_coverage(build, arguments)
    libraries = [arguments.library] if arguments.library else list(build.libraries)
    found = list(_matching(build, libraries, arguments.match))
    if arguments.json:
        _print_json([_kernel_object(library, entry) for library, entry in found])
    else:
        _print("".join(f"{library:<12} {entry.size:>8} {entry.name}\n" for library, entry in found))
    return 0


def _matching(build: Build, libraries: list[str], glob: str | None) -> Iterator[tuple[str, FunctionEntry]]:
    matches = re.compile(fnmatch.translate(glob or "*")).match
    for library in libraries:
        for entry in build.library(library).functions.values():
            if entry.kind == KERNEL and matches(entry.name):
                yield library, entry


def _kernel_object(library: str, entry: FunctionEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "library": library,
        "sha256": entry.sha256.hex(),
        "size": entry.size,
        "air": _dotted(entry.air_version),
        "language": _dotted(entry.language_version),
    }


@functools.cache
def _dotted(version: tuple[int, int]) -> str:
    return "{}.{}".format(*version)


def _run_coverage(build: Build, arguments: Namespace) -> int:
    from conformance.reporting.read import latest

    folder = latest() if arguments.coverage is LATEST else arguments.coverage
    ran = judged_kernels(folder, build.version)
    library = arguments.library or DEFAULT_LIBRARY
    names = [entry.name for _, entry in _matching(build, [library], arguments.match)]
    matches = re.compile(fnmatch.translate(arguments.family or "*")).match
    covered = [family for family in coverage(names, ran) if matches(family.family) or matches(family.kind)]
    totals = [total(covered, kind) for kind in KINDS]
    if arguments.json:
        described = {"records": str(folder), "build": build.version, "library": library}
        _print_json(described | {"families": [*map(Coverage.to_json, covered)], "totals": [*map(_sum, totals)]})
    else:
        print(f"kernels of {library}, build {build.version}, judged by the records in {folder}", file=sys.stderr)
        _print("".join(_coverage_lines(family, names_missing=arguments.missing) for family in covered))
        _print("".join(_coverage_lines(whole) for whole in totals if whole.kernels))
        if arguments.unreachable:
            _print("".join(_unreachable_lines([name for whole in totals for name in whole.unreachable])))
    return 0


def _sum(whole: Coverage) -> dict[str, Any]:
    return {key: value for key, value in whole.to_json().items() if key not in ("missing", "unreachable")}


def _coverage_lines(family: Coverage, *, names_missing: bool = False) -> str:
    of_reachable, of_all = (_percent(family.ran, count) for count in (family.reachable, len(family.kernels)))
    counts = f"{family.ran:>5} of {family.reachable:>5} {of_reachable:>6.1f} %"
    line = f"{family.family:<40} {family.kind:<6} {counts}  of all {len(family.kernels):>5} {of_all:>6.1f} %\n"
    return line + "".join(f"    {name}\n" for name in family.missing if names_missing)


def _percent(count: int, whole: int) -> float:
    """Rounded down, or 1999 of 2000 would be all of them; all of nothing."""
    return 1000 * count // whole / 10 if whole else 100.0


def _unreachable_lines(names: list[str]) -> Iterator[str]:
    for reason, kernels in groups(names).items():
        yield f"unreachable, {len(kernels)}: {reason}\n"
        yield from (f"    {name}\n" for name in kernels)


def _run_builds(arguments: Namespace) -> int:
    listed = [open_build(arguments.fetch)] if arguments.fetch else cached_builds()
    if arguments.json:
        _print_json([build.provenance() | {"libraries": list(build.libraries)} for build in listed])
    else:
        _print("".join(_build_line(build) for build in listed))
    return 0


def _build_line(build: Build) -> str:
    commit = (build.git_version or "-")[:12]
    return f"{build.version:<16} {build.source:<9} {build.sha256[:12]} {commit:<12} {', '.join(build.libraries)}\n"


def _print_json(objects: list[dict[str, Any]] | dict[str, Any]) -> None:
    # On one line: with an indent it takes Python's slow encoder, too long for 38,000 kernels.
    _print(json.dumps(objects) + "\n")


def _print(text: str) -> None:
    """Write to standard output; a reader that has read enough (``| head``) is no error."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at exit, and must find an open file there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
