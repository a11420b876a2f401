from __future__ import annotations

import pytest

from conformance.oracle import msl


@pytest.mark.parametrize(
    ("function", "table", "ulps"),
    [
        ("exp", "8.1", 4.0),
        ("tan", "8.1", 6.0),
        ("atan", "8.1", 5.0),
        ("pow", "8.1", 16.0),
        ("sqrt", "8.1", 0.5),
        ("fabs", "8.1", 0.0),
        ("exp", "8.3", 1.0),
        ("sqrt", "8.3", 0.5),
        ("fmax", "8.3", 0.0),
        ("div", "8.4", 0.5),
    ],
)
def test_rows(function: str, table: msl.Table, ulps: float) -> None:
    assert msl.limit(function, table) == ulps


@pytest.mark.parametrize(("function", "table"), [("erf", "8.1"), ("pow", "8.3"), ("exp", "8.4")])
def test_a_missing_row_names_function_and_table(function: str, table: msl.Table) -> None:
    with pytest.raises(ValueError, match=f"'{function}' has no row in table {table}"):
        msl.limit(function, table)


def test_the_tables_are_complete() -> None:
    assert (len(msl.FLOAT_PRECISE), len(msl.HALF), len(msl.BFLOAT)) == (50, 48, 5)
