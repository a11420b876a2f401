"""``conformance list``: what the catalogues hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.registry import catalogue

if TYPE_CHECKING:
    from conformance.op import Op


def listing(*, as_json: bool) -> str:
    """All ops, a line each or as a JSON list of objects."""
    ops = [_described(op) for op in catalogue()]
    if as_json:
        return json.dumps(ops, indent=1)
    from tabulate import tabulate

    rows = [
        (op["op"], op["family"], " ".join(op["dtypes"]), " ".join(op["properties"]), op["reference"], op["bound"])
        for op in ops
    ]
    return tabulate(rows, headers=("op", "family", "dtypes", "properties", "reference", "bound"))


def _described(op: Op) -> dict[str, Any]:
    return {
        "op": op.name,
        "family": op.family,
        "dtypes": list(op.dtypes),
        "properties": list(op.properties),
        "bound": op.bound.name,
        "reference": op.reference.kind,
        "kernels": list(op.kernels),
    }
