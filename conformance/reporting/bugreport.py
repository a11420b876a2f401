"""A failure as a bug report in the form that PyTorch's tracker asks for, made from the records of its run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from shlex import join
from typing import Any

from conformance.errors import UsageError
from conformance.record import Record
from conformance.reporting.read import FAILURES, RECORDS, Run, read
from conformance.reporting.sections import said

_EMULATED = (
    "This was seen on `air`, an emulated Metal GPU that executes the Metal kernels of the released macOS wheel on a "
    "CPU. **It was not run on a Mac**: host code, driver and hardware had no part in it."
)
_GOT = re.compile(r"got (?P<got>.+?), expected (?P<expected>.+?): (?P<units>\S+) times the bound")
_LONG = 20_000
"""Characters of a case up to which the report has it; one of GitHub holds 65,536."""


def bugreport(casefile: Path) -> str:
    """The report of the failure whose case file this is, as Markdown.

    Raises
    ------
    UsageError
        If it is no case file that a run saved, beside the records of that run.
    """
    described = _described(casefile)
    folder = casefile.resolve().parent.parent
    if casefile.resolve().parent.name != FAILURES or not (folder / RECORDS).is_file():
        raise UsageError(
            f"CASEFILE: given {str(casefile)!r}; allowed: a file of a run's {FAILURES}/, with {RECORDS} beside that "
            "folder"
        )
    run = read(folder)
    script = f"{FAILURES}/{casefile.stem}.py"
    record = next((record for record in run.failures if record.script == script), None)
    if record is None or record.case != described:
        raise UsageError(f"CASEFILE {casefile}: {folder.name}/{RECORDS} has no failure with this case")
    parts = [_title(record), "### 🐛 Describe the bug", _what(record), _script(run, record, casefile)]
    parts += [_comparison(record), _on_cpu(run, record), _found(run, record, casefile), "### Versions", _versions(run)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _described(casefile: Path) -> Any:
    try:
        return json.loads(casefile.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"CASEFILE {casefile}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"CASEFILE {casefile}: is no JSON: {error}") from None


def _title(record: Record) -> str:
    what = {
        "crash": "ends the process",
        "timeout": "does not return",
        "flaky": "gives different results for the same input",
    }.get(record.verdict)
    if what is None:
        of_gradient = "gradient of operand" in (record.message or "")
        wrong = "wrong gradient" if of_gradient else "wrong result"
        what = wrong if "outside the bound" in (record.message or "") else "is wrong"
    place = {"air": "[MPS] ", "mps": "[MPS] "}.get(record.device, f"[{record.device}] ")
    return f"# {place}`{record.op}`, {record.dtype}: {what}"


def _what(record: Record) -> str:
    parts = [_code(said(record), inline=True), record.features or ""]
    parts += [_EMULATED] if record.device == "air" else []
    kernels = ", ".join(f"`{kernel}`" for kernel in record.kernels)
    parts += [f"Kernels that ran: {kernels}."] if kernels else []
    return "\n\n".join(part for part in parts if part)


def _script(run: Run, record: Record, casefile: Path) -> str:
    text = run.file(record.script)
    if text is None:
        raise UsageError(f"CASEFILE {casefile}: its script {record.script} is gone; a bug report needs one")
    shown = "A script that shows it:\n\n" + _code(text, "python")
    if ".json" not in text:
        return shown
    case = json.dumps(record.case)
    if len(case) > _LONG:
        return f"{shown}\n\nIt reads `{casefile.name}` beside it, which is to be attached: it is too long to quote."
    folded = f"<details><summary>the case</summary>\n\n{_code(case, 'json')}\n\n</details>"
    return f"{shown}\n\nIt reads `{casefile.name}` beside it:\n\n{folded}"


def _comparison(record: Record) -> str:
    """Expected and actual, where the message compares an element."""
    found = _GOT.search(said(record))
    if found is None:
        return ""
    return (
        f"- Actual: {_code(found['got'], inline=True)}\n- Expected: {_code(found['expected'], inline=True)}; the error "
        f"is {found['units']} times what this bound allows: {record.bound} (reference: {record.reference})"
    )


def _on_cpu(run: Run, record: Record) -> str:
    torch = run.provenance.get("libraries", {}).get("torch")
    cpu = f"PyTorch's CPU kernel (torch {torch})" if torch else "PyTorch's CPU kernel"
    if record.device == "cpu":
        return ""
    if record.failure_class == "shared":
        return f"{cpu} is wrong for the same input as well."
    return f"{cpu} is right for the same input." if record.failure_class == "device-only" else ""


def _found(run: Run, record: Record, casefile: Path) -> str:
    suite = run.provenance.get("suite", {})
    settings = run.report.get("settings", {})
    name = "metal-conformance" + (f" {suite['version']}" if suite.get("version") else "")
    name += f" at commit {suite['commit']}" if suite.get("commit") else ""
    device = settings.get("device") or record.device
    build = ["--build", record.build] if record.device == "air" else []
    command = join(["conformance", "replay", casefile.name, "--device", str(device), *build])
    drawn = f" with seed {settings['seed']}" if "seed" in settings else ""
    return f"Found by {name}{drawn} (property `{record.property}`). To replay the case file: `{command}`"


def _versions(run: Run) -> str:
    """What is known and no more."""
    facts = run.provenance
    build, libraries = facts.get("build", {}), facts.get("libraries", {})
    lines = {
        "PyTorch, whose kernels these are": run.build,
        "Commit of it": build.get("git_version"),
        "File": build.get("file_name"),
        "SHA-256": build.get("sha256"),
        "Device": "air (emulated)" if run.device == "air" else run.device,
        "PyTorch that ran the suite": libraries.get("torch"),
        "Python": facts.get("python"),
        "OS": facts.get("os"),
        "Processor": facts.get("processor"),
    }
    text = "\n".join(f"{name}: {value}" for name, value in lines.items() if value)
    return _code(text) + ("" if run.report else "\n\nThe run that met this did not end; nothing else is known of it.")


def _code(text: str, language: str = "", *, inline: bool = False) -> str:
    """Text as code, in more backticks than it has in a row."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    if inline:
        fence = "`" * (longest + 1)
        padding = " " if "`" in text else ""
        return fence + padding + text + padding + fence
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
