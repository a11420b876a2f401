"""The command line. Light commands stay light: whatever is heavy is imported when a command that needs it runs."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.devices.base import Unavailable
from conformance.effort import EXAMPLES
from conformance.errors import UsageError
from conformance.registry import loaded

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Subparsers = _SubParsersAction[ArgumentParser]

OK, FAILED, USAGE, UNAVAILABLE = range(4)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give the exit code.

    0: nothing new failed; 1: new failures, crashes, timeouts, flaky ones, or errors of the suite; 2: wrong usage; 3:
    the device or the build cannot be had; 130: interrupted.
    """
    try:
        parsed = _parser().parse_args(arguments)
        return int(parsed.run(parsed))
    except UsageError as error:
        print(f"conformance: error: {error}", file=sys.stderr)
        return USAGE
    except Unavailable as error:
        print(f"conformance: {error}", file=sys.stderr)
        return UNAVAILABLE
    except KeyboardInterrupt:
        print("conformance: interrupted", file=sys.stderr)
        return 130


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="conformance", description="Judge the Metal ops of a build of PyTorch, on a Mac or emulated."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_run(commands)
    _add_list(commands)
    _add_replay(commands)
    _add_report(commands)
    _add_bugreport(commands)
    for add in loaded("commands").values():
        add(commands)
    return parser


def _add_device(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--device", metavar="D", help="device under test: a name or module:attribute (default: mps or air)"
    )
    parser.add_argument(
        "--build", metavar="V|PATH", help="whose kernels: a version, wheel, dylib or metallib (air only)"
    )


def _add_run(commands: Subparsers) -> None:
    parser = commands.add_parser("run", help="run ops on a device and judge them")
    _add_device(parser)
    _add_several(parser, "--family", "F", "only ops of this family")
    _add_several(parser, "--op", "GLOB", "only ops of such a name")
    _add_several(parser, "--dtype", "DT", "only this element type")
    _add_several(parser, "--property", "P", "only this property")
    parser.add_argument(
        "--examples",
        type=int,
        default=EXAMPLES,
        metavar="N",
        help=f"cases drawn a property, half as many for layout and out (default: {EXAMPLES})",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the run (default: 0)")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="processes (default: one a core); the records are the same"
    )
    parser.add_argument(
        "--measure", action="store_true", help="then measure time and memory, or on an emulated device work, as well"
    )
    parser.add_argument("--no-known", action="store_true", help="judge as if no failures were known")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for the records (default: runs/<build>-<device>)"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=_run)


def _add_several(parser: ArgumentParser, name: str, metavar: str, what: str) -> None:
    parser.add_argument(name, action="append", default=[], metavar=metavar, help=f"{what}; may be repeated")


def _add_list(commands: Subparsers) -> None:
    parser = commands.add_parser("list", help="list the ops of all catalogues")
    _add_device(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")
    parser.set_defaults(run=_list)


def _add_replay(commands: Subparsers) -> None:
    parser = commands.add_parser("replay", help="run one case file again")
    parser.add_argument("casefile", type=Path, metavar="CASEFILE", help="a case as a run saves it in failures/")
    _add_device(parser)
    parser.set_defaults(run=_replay)


def _add_report(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "report",
        help="make a report of a run: tables, Markdown, pages or JUnit XML",
        description="Make a report from the records of a run. Without an option, print tables.",
    )
    parser.add_argument(
        "folder", nargs="*", type=Path, metavar="DIR", help="folder of the run (default: the latest in runs/)"
    )
    for name, metavar, what in (
        ("--markdown", "FILE", "write Markdown for a release's thread (default: DIR/report.md)"),
        ("--html", "FOLDER", "write static pages (default: DIR/html)"),
        ("--junit", "FILE", "write JUnit XML (default: DIR/junit.xml)"),
    ):
        parser.add_argument(name, nargs="?", type=Path, const=True, metavar=metavar, help=what)
    parser.set_defaults(run=_report)


def _add_bugreport(commands: Subparsers) -> None:
    parser = commands.add_parser("bugreport", help="make a report for PyTorch's tracker of one failure")
    parser.add_argument("casefile", type=Path, metavar="CASEFILE", help="a case as a run saves it in failures/")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it there (default: print it)")
    parser.set_defaults(run=_bugreport)


def _run(arguments: Namespace) -> int:
    from conformance.plan import Selection
    from conformance.run import Options, execute

    selection = Selection(
        tuple(arguments.family), tuple(arguments.op), tuple(arguments.dtype), tuple(arguments.property)
    )
    return execute(
        Options(
            selection=selection,
            device=arguments.device,
            build=arguments.build,
            examples=arguments.examples,
            measure=arguments.measure,
            seed=arguments.seed,
            jobs=arguments.jobs,
            use_known=not arguments.no_known,
            out=arguments.out,
            quiet=arguments.quiet,
        )
    )


def _list(arguments: Namespace) -> int:
    from conformance.listing import listing

    if arguments.device is not None or arguments.build is not None:
        from conformance.devices import resolve

        resolve(arguments.device, arguments.build)
    print(listing(as_json=arguments.json))
    return OK


def _replay(arguments: Namespace) -> int:
    from conformance.replay import replay

    return OK if replay(arguments.casefile, arguments.device, arguments.build) else FAILED


def _report(arguments: Namespace) -> int:
    from conformance.reporting.report import Outputs, report

    report(arguments.folder, Outputs(arguments.markdown, arguments.html, arguments.junit))
    return OK


def _bugreport(arguments: Namespace) -> int:
    from conformance.reporting.bugreport import bugreport

    text = bugreport(arguments.casefile)
    if arguments.out is None:
        print(text, end="")
        return OK
    try:
        arguments.out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out {arguments.out}: cannot be written: {error.strerror or error}") from None
    return OK


if __name__ == "__main__":
    sys.exit(main())
