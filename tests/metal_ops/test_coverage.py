"""Families of kernels by their names, and which of them the records of a run show to have run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.errors import UsageError
from conformance.record import Record, Verdict
from metal_ops.builds import open_build
from metal_ops.coverage import coverage, judged_kernels, total

NAMES = {
    "unary": [
        "exp_dense_float_float",
        "exp_dense_castout_half",
        "exp_strided_castout_half",
        "exp_dense_scalar_float_int",
    ],
    "binary": [
        "add_alpha_dense_float_float_float",
        "add_alpha_dense_broadcast_rhs_cast_half_half_half",
        "add_alpha_dense_broadcast_long_long_long",
        "add_alpha_strided_cast_float2_float2_float2",
    ],
    "other": ["softmax_strided_partial_float_u32", "softmax_strided_partial_bfloat_u64"],
}


def record(verdict: Verdict = "pass", *kernels: str, device: str = "air", build: str = "2.15.0") -> str:
    return Record(
        "neg", "unary", "float32", device, build, "forward", verdict, "numpy", "exact", cases=1, kernels=kernels
    ).line()


def written(folder: Path, *lines: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "records.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def test_variants_tell_family_and_kind() -> None:
    covered = coverage([name for names in NAMES.values() for name in names], {NAMES["unary"][0], "of another library"})
    assert [(family.family, family.kind, family.ran, len(family.kernels)) for family in covered] == [
        ("add_alpha", "binary", 0, 4),
        ("exp", "unary", 1, 4),
        ("softmax_strided_partial", "other", 0, 2),
    ]
    assert covered[1].missing == tuple(sorted(NAMES["unary"][1:]))
    assert covered[1].unreachable == ()


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("elu_dense_ilp_float_float_ELUParams_float", "elu"),
        ("gelu_tanh_backward_dense_scalar_lhs_cast_half_half", "gelu_tanh_backward"),
        ("constant_pad_nd_dense_float8_e4m3fn", "constant_pad_nd"),
        ("constant_pad_nd_bool_u64", "constant_pad_nd"),
        ("int_mm_16", "int_mm_16"),
        ("softmax_row_half_u32", "softmax_row"),
        ("var_reduction_outer_float3_float", "var_reduction_outer"),
        ("kogge_stone_step", "kogge_stone_step"),
    ],
)
def test_family_of_a_name(name: str, family: str) -> None:
    assert [found.family for found in coverage([name], set())] == [family]


def test_totals_add_families_of_a_kind() -> None:
    names = [*NAMES["unary"], "nan_to_num_dense_ilp_float_float_P", *NAMES["binary"]]
    whole = total(coverage(names, {"nan_to_num_dense_ilp_float_float_P", *NAMES["unary"][:2]}), "unary")
    assert (whole.family, whole.ran, len(whole.kernels)) == ("unary families", 3, 5)
    assert total([], "binary").kernels == ()


def test_what_no_call_reaches_is_not_missing_unless_it_ran() -> None:
    names = [
        "exp_dense_float_float",
        "exp_dense_castout_half",
        "exp_dense_castout_ilp_half",
        "exp_dense_castout_ilp_int",
    ]
    (family,) = coverage(names, {names[0], names[3]})
    assert (family.ran, family.reachable, len(family.kernels)) == (2, 3, 4)
    assert (family.missing, family.unreachable) == ((names[1],), (names[2],))


def test_families_of_the_library() -> None:
    covered = coverage(open_build("2.15.0").library().functions, set())
    kinds = {family.family: family.kind for family in covered}
    assert {kinds[name] for name in ("exp", "copy_conj", "round_decimals", "softplus")} == {"unary"}
    assert {kinds[name] for name in ("add", "add_alpha", "glu", "elu_backward", "pow")} == {"binary"}
    assert {kinds[name] for name in ("lerp", "where", "constant_pad_nd", "clamp", "sum_reduction")} == {"other"}
    assert len(total(covered, "unary").kernels) == 5012
    assert len(total(covered, "binary").kernels) == 7539


def test_only_judged_cases_count(tmp_path: Path) -> None:
    lines = [record("pass", "a"), record("known", "b"), record("fail", "c", "a"), record("fixed", "d")]
    lines += [record(verdict, "x") for verdict in ("unsupported", "error", "crash", "timeout", "flaky")]
    assert judged_kernels(written(tmp_path, *lines), "2.15.0") == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "none of its 0 records has a verdict pass, known, fail, fixed"),
        ([record("unsupported", "a")], "none of its 1 records has a verdict"),
        ([record("pass", device="cpu")], "no record names a kernel: device cpu does not tell"),
        ([record("pass", "a", build="2.14.1")], "--build: given '2.15.0'; allowed with these records: 2.14.1"),
        ([record("pass", "a"), record("pass", "a", build="2.14.1")], "allowed with these records: 2.14.1, 2.15.0"),
        (["no JSON\n"], "holds no records of a run"),
        (["[]\n"], "holds no records of a run"),
        ([json.dumps({"verdict": "pass"}) + "\n"], "holds no records of a run"),
    ],
)
def test_records_that_cannot_tell(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        judged_kernels(written(tmp_path, *lines), "2.15.0")


def test_folder_without_records(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"records\.jsonl cannot be read: No such file"):
        judged_kernels(tmp_path, "2.15.0")
