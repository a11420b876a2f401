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
from typing import TYPE_CHECKING, Any

from metal_ops.air.archive import KERNEL, FunctionEntry
from metal_ops.builds import DEFAULT_BUILD, Build, cached_builds, open_build

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Subparsers = _SubParsersAction[ArgumentParser]


def kernels(subparsers: Subparsers) -> None:
    """Add ``conformance kernels``: the kernels of a build, of all its libraries."""
    parser = subparsers.add_parser(
        "kernels",
        help="list the kernels of a build",
        description="List the kernels of a build: library, bytes of bitcode, name.",
    )
    parser.add_argument(
        "--build",
        default=DEFAULT_BUILD,
        metavar="V|PATH",
        help="version of PyTorch, or path of a wheel, libtorch_cpu.dylib or metallib (default: %(default)s)",
    )
    parser.add_argument("--match", metavar="GLOB", help="only kernels with such a name")
    parser.add_argument("--library", metavar="NAME", help="only this library, such as metal_basic (default: all)")
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")
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
    build = open_build(arguments.build)
    if arguments.library not in (None, *build.libraries):
        parser.error(f"argument --library: {arguments.library!r} is not one of {', '.join(build.libraries)}")
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


def _print_json(objects: list[dict[str, Any]]) -> None:
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
