from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from conformance.case import Case
from conformance.dtypes import BY_NAME
from conformance.engine.hypothesis_run import explore
from conformance.findings import Finding, exception
from conformance.layout import Layout
from conformance.strategies import elementwise_cases, reduction_cases


@pytest.mark.parametrize("dtype", BY_NAME)
@pytest.mark.parametrize("property", ["forward", "layout"])
def test_elementwise_cases_of_every_type_can_be_built(dtype: str, property: str) -> None:
    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(elementwise_cases("op", dtype, property))
    def check(case: Case) -> None:
        (tensor,) = case.materialise()
        assert tensor.dtype == dtype
        if property == "layout":
            assert not case.tensors[0].layout.is_contiguous

    check()


def test_cases_shrink_to_the_simplest() -> None:
    for seed in range(5):
        failing: list[Case] = []

        def check(case: Case, failing: list[Case] = failing) -> None:
            failing.append(case)
            raise exception(Finding("value", "always"))

        explore(elementwise_cases("op", "float32", "forward"), check, examples=60, seed=seed)
        (spec,) = failing[-1].tensors
        assert (spec.shape, spec.layout) == ((), Layout())
        assert spec.logical().tolist() == 0.0


def test_layouts_of_all_sorts_are_drawn() -> None:
    seen: Counter[str] = Counter()

    def count(case: Case) -> None:
        (spec,) = case.tensors
        layout = spec.layout
        seen[spec.values.pattern] += 1
        seen["offset"] += layout.offset > 0
        seen["order"] += layout.order != () and layout.order != tuple(range(len(spec.shape)))
        seen["channels_last"] += layout.order in ((0, 2, 3, 1), (0, 2, 3, 4, 1))
        seen["steps"] += any(step > 1 for step in layout.steps)
        seen["three gaps"] += sum(pad > 0 for pad in layout.pads) >= 3
        seen["expanded"] += bool(layout.expanded)
        seen["specials"] += bool(spec.values.specials)
        seen["0-d"] += spec.shape == ()
        seen["5-d"] += len(spec.shape) == 5
        seen["empty"] += spec.numel == 0
        seen["run of 16"] += spec.shape[-1:] in ((15,), (16,), (17,))
        seen["about 2^18"] += spec.numel >= 2**18 - 1
        seen["domain"] += spec.values.params.get("center") == "7.5"
        seen["long and strided"] += max(spec.shape, default=0) >= 2**15 - 1 and not layout.is_contiguous

    explore(elementwise_cases("op", "float32", "layout"), count, examples=200, seed=1)
    assert seen["long and strided"]
    explore(elementwise_cases("op", "float32", "forward", domain=(0.0, 7.5)), count, examples=1500, seed=1)
    wanted = {"offset", "order", "channels_last", "steps", "three gaps", "expanded", "specials", "0-d", "5-d", "empty"}
    wanted |= {"run of 16", "about 2^18", "domain", "constant", "arange", "integers", "moderate", "powers", "choice"}
    assert {name for name in wanted if not seen[name]} == set()
    assert seen["about 2^18"] < 30


@pytest.mark.parametrize("property", ["forward", "layout"])
def test_reductions_name_a_dimension_that_exists(property: str) -> None:
    @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
    @given(reduction_cases("op", "float16", property, dim_param="axis"))
    def check(case: Case) -> None:
        (spec,) = case.tensors
        rank = max(len(spec.shape), 1)
        assert -rank <= case.params["axis"] < rank

    check()


def test_reductions_of_all_sorts_are_drawn() -> None:
    """Sixty cases, those of one op in three types, have all that tells kernels of rows apart."""
    seen: Counter[str] = Counter()

    def count(case: Case) -> None:
        (spec,) = case.tensors
        x, dim = spec.logical(), case.params["dim"]
        seen["empty"] += not x.size
        seen["rank 4 or 5"] += x.ndim >= 4
        seen["permuted"] += spec.layout.order not in ((), tuple(range(x.ndim)))
        seen["expanded"] += bool(spec.layout.expanded)
        if x.size and x.ndim:
            for name, found in (("-inf", np.isneginf(x)), ("nan", np.isnan(x))):
                rows = found.all(axis=dim)
                seen[f"some rows {name}"] += bool(rows.any() and not rows.all())

    explore(reduction_cases("op", "float32", "forward"), count, examples=60, seed=1)
    wanted = {"empty", "rank 4 or 5", "permuted", "expanded", "some rows -inf", "some rows nan"}
    assert {name for name in wanted if not seen[name]} == set()
