"""Cases of products: the sizes, layouts and numbers that they have to reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from conformance.case import Case
from conformance.layout import lies_within
from conformance.strategies import contraction_cases, group_cases, scaled_cases
from conformance.strategies.contraction import Kind


def drawn(strategy: SearchStrategy[Case], look: Callable[[Case], None], count: int = 150) -> None:
    @seed(0)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def run(case: Case) -> None:
        look(case)

    run()


def outline(case: Case, **changes: Any) -> list[torch.Tensor]:
    return [torch.empty_strided(spec.shape, spec.layout.strides(spec.shape), device="meta") for spec in case.tensors]


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("matrices", torch.mm),
        ("batches", torch.bmm),
        ("vector", torch.mv),
        ("vectors", torch.dot),
        ("any", torch.matmul),
        ("layer", torch.nn.functional.linear),
    ],
)
def test_shapes_can_be_multiplied(kind: Kind, function: Callable[..., torch.Tensor]) -> None:
    def look(case: Case) -> None:
        function(*outline(case))

    drawn(contraction_cases("op", "float32", "forward", kind=kind), look)


@pytest.mark.parametrize(
    ("kind", "function"), [("matrices", torch.addmm), ("batches", torch.baddbmm), ("vector", torch.addmv)]
)
def test_addends_broadcast_and_factors_are_passed(kind: Kind, function: Callable[..., torch.Tensor]) -> None:
    found: Counter[str] = Counter()

    def look(case: Case) -> None:
        result = function(*outline(case), **case.params)
        found.update(list(case.params))
        found["cases"] += 1
        found["broadcast"] += case.tensors[0].shape != result.shape
        found["not read"] += case.params.get("beta") == 0 and bool((case.tensors[0].logical() != 0).any())

    drawn(contraction_cases("op", "float32", "forward", kind=kind, addend=True), look, 300)
    assert min(found[key] for key in ("alpha", "beta", "broadcast", "not read")) > 3, found


def test_matrices_reach_what_kernels_tell_apart() -> None:
    found: Counter[str] = Counter()

    def look(case: Case) -> None:
        (rows, inner), (_, columns) = (spec.shape for spec in case.tensors)
        _, right = (spec.layout.strides(spec.shape) for spec in case.tensors)
        found["one row"] += rows == 1 < columns
        found["one column"] += columns == 1 < rows
        found["wide"] += max(rows, columns) > 1024
        found["long"] += inner > 500
        found["empty"] += 0 in (rows, inner, columns)
        found["nothing to sum"] += inner == 0 < rows * columns
        found["transposed"] += right[0] == 1 != right[1]
        found["cut"] += right[1] == 1 and right[0] > columns
        found["strided"] += right[1] > 1 and right[0] > 1

    drawn(contraction_cases("op", "float32", "forward", kind="matrices"), look, 300)
    assert min(found.values()) >= 3, found
    assert found["transposed"] > 30


def test_groups_fill_their_dimension_and_lie_aligned() -> None:
    found: Counter[str] = Counter()

    def look(case: Case) -> None:
        left, right = case.tensors[:2]
        for spec in (left, right):
            strides = spec.layout.strides(spec.shape)
            assert sorted(strides)[0] == 1 or 1 in strides
            assert all(step == 1 or step % 8 == 0 for step in strides)
            assert spec.layout.offset % 8 == 0
        found[f"{len(left.shape)} x {len(right.shape)}"] += 1
        if not case.named:
            return
        ends = case.tensors[2].logical().tolist()
        assert ends == sorted(ends)
        split = left.shape[-1] if len(left.shape) == len(right.shape) else (left if len(left.shape) == 2 else right)
        assert ends[-1] == (split if isinstance(split, int) else split.shape[0 if split is left else 1])
        found["empty group"] += any(a == b for a, b in zip([0, *ends], ends, strict=False))
        found["as many groups as rows"] += len(left.shape) == 2 < len(right.shape) and left.shape[0] <= len(ends)

    drawn(group_cases("op", "bfloat16", "forward"), look)
    assert min(found.values()) > 5, found
    assert len(found) == 6


def test_scaled_factors_keep_the_rules_of_torch() -> None:
    found: Counter[str] = Counter()

    def look(case: Case) -> None:
        left, right, scale = (spec.materialise() for spec in case.tensors[:3])
        assert lies_within(left)
        assert left.strides[1] == right.strides[0] == 1
        assert not any(size % 16 for size in (left.strides[0], right.strides[1], *right.shape, left.offset))
        assert scale.shape in ((1,), (left.shape[0], 1))
        found[case.params["output_dtype"]] += 1
        found["bias" if "bias" in case.named else "no bias"] += 1
        found["few rows" if left.shape[0] <= 4 else "tiles"] += 1
        found[case.params["scale_recipe_a"]] += 1

    drawn(scaled_cases("op", "float8_e4m3fn", "forward"), look)
    assert min(found.values()) > 10, found
    assert len(found) == 10
