from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.case import Case, literal_of_bits
from conformance.errors import UsageError
from conformance.known import Entry, entries, parse
from conformance.witness import witness_cases

ENTRY = """
[[failure]]
id = "big"
build = "2.*"
device = "tiny"
op = "tiny.negative"
dtypes = ["float32"]
where = [[1000.00001, "inf"], ["nan", "nan"]]
class = "device-only"
evidence = "negative(1024) gives -1088"
witness = [1024.0, "0x44800000", {shape = [1, 2], values = [2000, 0], params = {}}]
"""


def entry(**changes: Any) -> Entry:
    (found,) = parse(ENTRY, "tiny.toml")
    return replace(found, **changes)


def case(**params: Any) -> Case:
    return Case("tiny.negative", "float32", "forward", (literal_of_bits([0], "float32"),), params)


def test_fields() -> None:
    found = entry()
    assert (found.id, found.devices, found.failure_class) == ("big", ("tiny",), "device-only")
    assert found.kinds == ("value",)


def test_where_is_a_mask_of_the_first_tensor() -> None:
    first = np.array([1000.0, 1000.5, np.inf, -np.inf, np.nan])
    covered = entry().covers(case(), "value", first)
    assert np.asarray(covered).tolist() == [False, True, True, False, True]


@pytest.mark.parametrize("changes", [
    {"op": "tiny.abs"},
    {"dtypes": ("float16",)},
    {"properties": ("layout",)},
    {"kinds": ("raised",)},
    {"params": {"dim": [1]}},
    {"when": "has_nan"},
])  # fmt: skip
def test_conditions_that_do_not_hold(changes: dict[str, Any]) -> None:
    assert entry(where=None).covers(case(dim=0), "value", np.zeros(3)) is True
    assert entry(where=None, **changes).covers(case(dim=0), "value", np.zeros(3)) is False


def test_conditions_that_hold() -> None:
    strict = entry(where=None, params={"dim": [0, 1]}, when="has_nan", properties=("forward",))
    assert strict.covers(case(dim=0), "value", np.array([np.nan])) is True


def test_witnesses_are_cases(tiny: Path) -> None:
    import tiny as plugin

    op = replace(plugin.ops()[0], default_params={"alpha": 2})
    numbers, table = witness_cases(entry(params={"dim": [1, 2]}), op, "float32")
    assert numbers.tensors[0].logical().tolist() == [1024.0, 1024.0]
    assert numbers.params == {"alpha": 2, "dim": 1}
    assert table.tensors[0].logical().tolist() == [[2000.0, 0.0]]


@pytest.mark.parametrize(("old", "new", "message"), [
    ("[[failure]]", "[[failure", "tiny.toml: no TOML"),
    ("[[failure]]", "x = 1\n[[failure]]", r"top-level keys: given \['failure', 'x'\]"),
    ('build = "2.*"', "", r"failure 1 \(big\): lacks build"),
    ('id = "big"', "", "failure 1: lacks id"),
    ("where", "wher", r"keys: given \['wher'\]; allowed: id, build"),
    ('["float32"]', '["float33"]', "dtypes: given 'float33'"),
    ('["float32"]', '"float32"', "dtypes: given 'float32'; allowed: a list"),
    ('"device-only"', '"mine"', "class: given 'mine'; allowed: device-only, shared"),
    ('[1000.00001, "inf"]', '["inf", 1]', "where: given"),
    ('[1000.00001, "inf"]', "[1]", "where: given"),
    ('[1000.00001, "inf"]', '["nan", 1]', "where: given"),
    ("witness = [", "witness = [] # [", "witness is empty"),
    ('"0x44800000"', '"0x444800000"', "is no float32 tensor: bit pattern"),
    ("shape = [1, 2]", "shape = [3]", "is no float32 tensor: literal has 2 numbers for 3"),
    ("params = {}", "param = {}", "witness keys"),
    ('evidence = "negative(1024) gives -1088"', 'evidence = ""', "evidence: given ''; allowed: a text"),
])  # fmt: skip
def test_malformed_files_are_named(old: str, new: str, message: str) -> None:
    assert old in ENTRY
    with pytest.raises(UsageError, match=message):
        parse(ENTRY.replace(old, new, 1), "tiny.toml")


def test_entries_of_a_build_and_device(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "known.toml"
    file.write_text(ENTRY + ENTRY.replace('"big"', '"other"').replace('"tiny"', '["air", "mps"]'))
    monkeypatch.setenv("TINY_KNOWN", str(file))
    assert [e.id for e in entries("2.13.0+cpu", "tiny")] == ["big"]
    assert [e.id for e in entries("2.15.0", "mps") if e.op == "tiny.negative"] == ["other"]
    assert entries("1.13", "tiny") == []
    file.write_text(ENTRY + ENTRY)
    with pytest.raises(UsageError, match="known failure 'big' is listed twice"):
        entries("2.13.0", "tiny")
