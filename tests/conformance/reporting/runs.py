"""Folders of runs, made by hand, also with texts that no run would write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance.record import Record, Worst

CASE: dict[str, Any] = {
    "schema": 4,
    "op": "exp",
    "dtype": "float32",
    "property": "forward",
    "tensors": [
        {"dtype": "float32", "shape": [1], "layout": {}, "values": {"pattern": "literal", "values": ["0x42b20000"]}}
    ],
    "params": {},
}

MESSAGE = (
    "exp(float32[1] = [89.0]): outside the bound; at [0] of input 89.0 [0x42b20000]: got inf [0x7f800000], "
    "expected 4.489612819174345e+38 +- 1e+32: inf times the bound (MSL 8.1 exp: 4 ulp), inf ulp"
)
FEATURES = "It depends on the values, not on the layout or the size."
SCRIPT = 'import torch\nprint("cpu", torch.exp(torch.tensor([89.0])))\n'

PASS = Record(
    op="exp",
    family="unary",
    dtype="float32",
    device="air",
    build="2.15.0",
    property="forward",
    verdict="pass",
    reference="mpmath",
    bound="MSL 8.1 exp: 4 ulp",
    cases=20,
    worst=Worst(0.5, 2.0, CASE, 0, "89.0 (0x42b20000)"),
    kernels=("exp_dense_float_float",),
    seconds=0.25,
)
WHOLE = replace(PASS, dtype="float16", verdict="fail", failure_class="device-only")
FAILURE = replace(
    WHOLE,
    cases=1,
    worst=None,
    seconds=0.0,
    case=CASE,
    message=MESSAGE,
    features=FEATURES,
    script="failures/exp-float16-forward-1.py",
)
KNOWN = replace(PASS, dtype="complex64", property="witness", verdict="known", known=("exp-overflow",), message="is so")
FIXED = replace(KNOWN, verdict="fixed", known=("exp-old",), message="known failure exp-old no longer fails")
UNSUPPORTED = [
    replace(
        PASS, op="dot", family="blas", dtype=dtype, verdict="unsupported", worst=None, message=f"dot on {dtype}: no"
    )
    for dtype in ("float32", "float16")
]
CRASH = [
    replace(PASS, op="dot", family="blas", dtype="int8", verdict=verdict, worst=None, message=verdict)
    for verdict in ("crash", "timeout", "flaky", "error")
]
MEASURED = replace(
    PASS,
    property="measure",
    worst=None,
    timing=(
        {
            "size": 1024, "shapes": "32x32", "direction": "forward", "median_us": 12.5, "iqr_us": 0.5, "blocks": 15,
            "calls": 100, "baseline": "eager, 1 host thread",
        },
    ),
    memory=(
        {
            "size": 1024, "shapes": "32x32", "direction": "forward", "current_bytes": 8192, "reserved_bytes": None,
            "driver_bytes": None, "resident_bytes": 4096, "counters": ["current"], "sampling_hz": 200.0,
        },
    ),
    work=({"size": 1024, "shapes": "32x32", "direction": "forward", "instructions": 43008, "loads": 1024},),
)  # fmt: skip
ALL = [PASS, WHOLE, FAILURE, KNOWN, FIXED, *UNSUPPORTED, *CRASH, MEASURED]

REPORT: dict[str, Any] = {
    "schema": 1,
    "complete": True,
    "provenance": {
        "suite": {"version": "0.1.0", "commit": "c0ffee"},
        "device": "air",
        "build": {"version": "2.15.0", "sha256": "ab12", "file_name": "torch-2.15.0.whl"},
        "libraries": {"torch": "2.13.0"},
        "os": "Linux",
        "python": "3.11.7",
    },
    "settings": {"device": "air", "seed": 7, "examples": 20},
}

HOSTILE = "</script></style><img src=http://evil.example/x onerror=alert(1)>|`*_\x00\x1b[31m\"'&]]>\n\n# x"


def save(
    folder: Path, records: Sequence[Record] = ALL, report: dict[str, Any] | None = REPORT, *, end: str = ""
) -> Path:
    """Write a run's folder; ``end`` comes after the last line."""
    (folder / "failures").mkdir(parents=True)
    (folder / "records.jsonl").write_text("".join(record.line() for record in records) + end, encoding="utf-8")
    if report is not None:
        (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    for record in records:
        if record.script:
            (folder / record.script).write_text(SCRIPT, encoding="utf-8")
            (folder / record.script).with_suffix(".json").write_text(json.dumps(record.case), encoding="utf-8")
    return folder
