"""Cases of several operands, of pads, lists and reductions, and cases with a backward."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import inf, prod
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from conformance.case import Case
from conformance.dtypes import BY_NAME
from conformance.dtypes import dtype as dtype_of
from conformance.engine.hypothesis_run import explore
from conformance.expectation import call_of, expected_of, results_of
from conformance.findings import Finding, exception
from conformance.formats import component
from conformance.layout import Layout
from conformance.op import Op, Reference
from conformance.oracle import Exact
from conformance.strategies import (
    Operand,
    cat_cases,
    elementwise_cases,
    numbers,
    pad_cases,
    reduction_cases,
    shapes,
    with_gradients,
)

PAIR = (Operand(), Operand(number="other", dtypes=("float32", "int64", "float16")))
Cases = st.SearchStrategy[Case]


def op(function: str, **changes: Any) -> Op:
    made = Op(
        name="op",
        family="f",
        function=function,
        dtypes=("float32",),
        cases=lambda dtype, property: pytest.fail("not drawn"),
        reference=Reference(lambda x: x, "exact"),
        bound=Exact("made for tests"),
    )
    return replace(made, **changes)


def seen(strategy: Cases, count: Callable[[Case, Counter[str]], None], examples: int = 600) -> Counter[str]:
    found: Counter[str] = Counter()

    def check(case: Case) -> None:
        assert Case.from_json(json.loads(json.dumps(case.to_json(), allow_nan=False))).to_json() == case.to_json()
        count(case, found)

    explore(strategy, check, examples=examples, seed=1)
    return found


def simplest(strategy: Cases, wrong: Callable[[Case], bool] = lambda case: True, seed: int = 0) -> Case:
    """What Hypothesis shrinks to if every case that is ``wrong`` fails."""
    failing: list[Case] = []

    def check(case: Case) -> None:
        if wrong(case):
            failing.append(case)
            raise exception(Finding("value", "always"))

    explore(strategy, check, examples=120, seed=seed)
    return failing[-1]


def test_operands_of_all_sorts_are_drawn() -> None:
    def count(case: Case, found: Counter[str]) -> None:
        if "other" in case.params:
            found[f"number {type(case.params['other']).__name__}"] += 1
            assert len(case.tensors) == 1
            return
        x, y = case.tensors
        shape = np.broadcast_shapes(x.shape, y.shape)
        found["equal"] += x.shape == y.shape
        found["ones"] += x.shape != shape and len(x.shape) == len(shape)
        found["fewer dimensions"] += 0 < len(y.shape) < len(shape)
        found["0-d"] += not y.shape and bool(shape)
        found["both broadcast"] += x.shape != shape != y.shape
        found["rank above 5"] += len(shape) > 5
        found["empty"] += 0 in shape
        found["other type"] += y.dtype != x.dtype
        found["own layout"] += x.layout != y.layout and not y.layout.is_contiguous
        found["same layout"] += x.layout == y.layout and x.layout.order not in ((), tuple(range(len(x.shape))))
        found["related"] += y.values.pattern == "related"
        found["same values"] += y.values == x.values and x.values.pattern in ("mixed", "bits")

    strategy = elementwise_cases("op", "float32", "forward", operands=PAIR)
    found = seen(strategy, count, 1200)
    wanted = ["number float", "number int", "number bool", "equal", "ones", "fewer dimensions", "0-d", "both broadcast"]
    wanted += ["rank above 5", "empty", "other type", "own layout", "same layout", "related", "same values"]
    assert [name for name in wanted if not found[name]] == []
    assert found["equal"] > 300


def test_large_operands_are_contiguous_and_cheap() -> None:
    def count(case: Case, found: Counter[str]) -> None:
        for spec in case.tensors:
            if spec.numel >= 2**17:
                found["large"] += 1
                assert Layout(offset=spec.layout.offset) == spec.layout
                assert spec.values.pattern not in ("mixed", "specials", "near")

    assert seen(elementwise_cases("op", "float32", "forward", operands=(Operand(), Operand())), count)["large"]


def test_large_shapes_lie_on_both_sides_of_the_switch() -> None:
    sizes: Counter[int] = Counter()
    explore(shapes(0).map(lambda shape: sizes.update([prod(shape)])), lambda case: None, examples=2000, seed=1)  # type: ignore[arg-type]
    assert sizes[2**18 - 1]
    assert sizes[2**18]
    assert sizes[2**18 + 1]


@pytest.mark.parametrize("make", [
    lambda: elementwise_cases("op", "float32", "layout", operands=PAIR),
    lambda: pad_cases("op", "float32", "layout"),
    lambda: pad_cases("op", "float32", "layout", mode="circular"),
    lambda: cat_cases("op", "float32", "layout"),
])  # fmt: skip
def test_layout_has_a_strided_operand(make: Callable[[], Cases]) -> None:
    def count(case: Case, found: Counter[str]) -> None:
        assert any(not spec.layout.is_contiguous for spec in case.tensors)

    seen(make(), count, 150)


@pytest.mark.parametrize("dtype", BY_NAME)
def test_every_type_can_be_built(dtype: str) -> None:
    def count(case: Case, found: Counter[str]) -> None:
        assert all(len(tensor.storage) for tensor in case.materialise())
        assert case.tensors[0].dtype == dtype

    for strategy in (
        elementwise_cases("op", dtype, "forward", operands=(Operand(), Operand(number="other"))),
        pad_cases("op", dtype, "forward"),
        cat_cases("op", dtype, "forward"),
    ):
        seen(strategy, count, 25)
    assert component(dtype_of(dtype)).width <= 64


def test_types_of_operands() -> None:
    """The condition of a where has a type of its own, the first tensor in a mixed pair mostly that of the case."""

    def count(case: Case, found: Counter[str]) -> None:
        assert case.tensors[0].dtype == "bool"
        assert [spec.dtype for spec in case.tensors[1:]] == ["float16", "float16"]

    seen(
        elementwise_cases("op", "float16", "forward", operands=(Operand(dtypes=("bool",)), *[Operand()] * 2)), count, 60
    )


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool", "complex64"])
def test_numbers(dtype: str) -> None:
    drawn: list[Any] = []
    explore(numbers(dtype).map(drawn.append), lambda case: None, examples=200, seed=1)  # type: ignore[arg-type]
    assert {type(number) for number in drawn} == {bool, int, float}
    assert any(number == float("inf") for number in drawn)
    assert dtype != "uint8" or all(type(number) is not int or number >= 0 for number in drawn)


PAD = op("nn.functional.pad")


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_pads(mode: Any) -> None:
    """Mostly within the limits, seldom beyond; the result is what torch makes of it."""

    def count(case: Case, found: Counter[str]) -> None:
        pad, shape = case.params["pad"], case.tensors[0].shape
        error = expected_of(call_of(PAD, case)).error
        found["error"] += error is not None
        found["right"] += error is None
        found["negative"] += min(pad, default=0) < 0
        found["mixed"] += min(pad, default=0) < 0 < max(pad, default=0)
        found["zero"] += not any(pad)
        found["three dimensions"] += len(pad) == 6
        found["at the limit"] += any(p == shape[-1] - (mode == "reflect") for p in pad[:2])
        found["larger"] += any(p > shape[-1 - d // 2] for d, p in enumerate(pad))
        found["rank 2"] += len(shape) == 2
        found["more than three"] += len(pad) > 6
        found["nan"] += case.params.get("value") != case.params.get("value")
        found["-0.0"] += str(case.params.get("value")) == "-0.0"
        found["no value"] += "value" not in case.params

    found = seen(pad_cases("op", "float32", "forward", mode=mode), count)
    wanted = {"right", "error", "negative", "mixed", "zero", "three dimensions", "at the limit", "rank 2"}
    wanted |= {"larger", "more than three", "nan", "-0.0", "no value"} if mode == "constant" else set()
    wanted -= {"error"} if mode == "replicate" else set()
    assert {name for name in wanted if not found[name]} == set()
    assert found["error"] < found["right"] / 4


def test_circular_pads_repeat_no_more_than_a_crop_leaves() -> None:
    def check(case: Case) -> None:
        pad, sizes = case.params["pad"], case.tensors[0].shape
        for d in range(len(pad) // 2):
            size, sides = sizes[-1 - d], pad[2 * d : 2 * d + 2]
            left = size + sum(min(side, 0) for side in sides)
            assert all(side <= left or side > size for side in sides)

    explore(pad_cases("op", "float32", "forward", mode="circular"), check, examples=200, seed=1)


def test_a_type_without_infinities_is_not_padded_with_them() -> None:
    drawn: list[Any] = []
    for dtype in ("float8_e4m3fn", "float16"):
        cases = pad_cases("op", dtype, "forward")
        explore(cases, lambda case: drawn.append((case.dtype, case.params.get("value"))), examples=200, seed=1)
    assert {dtype for dtype, value in drawn if value in (inf, -inf)} == {"float16"}


def test_lists_of_tensors() -> None:
    concatenation = op("cat", listed=True)

    def count(case: Case, found: Counter[str]) -> None:
        expected = expected_of(call_of(concatenation, case))
        assert expected.error is None
        found[f"{len(case.tensors)} tensors"] += 1
        found["many"] += len(case.tensors) > 4
        found["empty"] += any(spec.numel == 0 for spec in case.tensors)
        found["legacy"] += any(spec.shape == (0,) and len(case.tensors[0].shape) > 1 for spec in case.tensors)
        found["negative"] += case.params.get("dim", 0) < 0
        found["default"] += not case.params
        found["mixed"] += len({spec.dtype for spec in case.tensors}) > 1
        found["long"] += any(spec.numel >= 2**15 - 1 for spec in case.tensors)

    found = seen(cat_cases("op", "float32", "forward", dtypes=("float16", "int32")), count)
    wanted = ["1 tensors", "2 tensors", "3 tensors", "4 tensors", "many", "empty", "legacy", "negative", "default"]
    assert [name for name in (*wanted, "mixed", "long") if not found[name]] == []


def test_reductions_along_several_dimensions() -> None:
    total = op("sum")

    def count(case: Case, found: Counter[str]) -> None:
        assert expected_of(call_of(total, case)).error is None, case.text()
        dim = case.params.get("dim")
        found[f"dim {type(dim).__name__}" if "dim" in case.params else "no dim"] += 1
        found["several"] += isinstance(dim, list) and len(dim) > 1
        found["negative in list"] += isinstance(dim, list) and min(dim) < 0
        found[f"keepdim {case.params.get('keepdim')}"] += 1
        found[f"{case.params.get('dtype')}"] += 1

    strategy = reduction_cases("op", "float16", "forward", several=True, keepdim=True, dtypes=("float32", "int64"))
    found = seen(strategy, count, 300)
    wanted = ["dim int", "dim list", "dim NoneType", "no dim", "several", "negative in list", "keepdim True"]
    wanted += ["keepdim False", "keepdim None", "torch.float32", "torch.int64", "None"]
    assert [name for name in wanted if not found[name]] == []


MUL = op("mul", promotes=(0, 1, "other"))


def test_gradients_of_all_sorts_are_drawn() -> None:
    def count(case: Case, found: Counter[str]) -> None:
        (incoming,) = case.gradients
        assert results_of(MUL, case) == ((incoming.dtype, incoming.shape),)
        assert set(case.requires_grad) <= {p for p, spec in enumerate(case.tensors) if spec.dtype != "int64"}
        found[str(case.requires_grad)] += 1
        found["ones"] += incoming.values.params == {"value": "1"} and not incoming.values.specials
        found["expanded"] += bool(incoming.layout.expanded)
        found["permuted"] += incoming.layout.order not in ((), tuple(range(len(incoming.shape))))
        found["tiny"] += incoming.values.params.get("high") == -122
        found["large"] += incoming.values.params.get("low") == 123
        found["mixed"] += incoming.values.pattern == "mixed"
        found["broadcast"] += any(spec.shape != incoming.shape for spec in case.tensors)

    found = seen(with_gradients(MUL, elementwise_cases("op", "float32", "backward", operands=PAIR)), count, 500)
    wanted = ["(0,)", "(1,)", "(0, 1)", "ones", "expanded", "permuted", "tiny", "large", "mixed", "broadcast"]
    assert [name for name in wanted if not found[name]] == []


def test_no_gradient_of_what_raises_or_is_not_differentiable() -> None:
    comparison = op("gt")
    with pytest.raises(BaseException, match=r"Unsatisfiable|Unable"):
        seen(
            with_gradients(comparison, elementwise_cases("op", "float32", "backward", operands=[Operand()] * 2)),
            print,
            20,
        )


def test_incoming_gradients_of_each_result() -> None:
    largest = op("max")

    def count(case: Case, found: Counter[str]) -> None:
        value, index = case.gradients
        assert (value.dtype, index.dtype) == ("float32", "int64")
        found["all"] += 1

    cases = reduction_cases("op", "float32", "backward").filter(lambda case: 0 not in case.tensors[0].shape)
    assert seen(with_gradients(largest, cases), count, 40)["all"] > 20


@pytest.mark.parametrize("seed", range(3))
def test_cases_shrink_to_the_simplest(seed: int) -> None:
    pair = elementwise_cases("op", "float32", "backward", operands=PAIR)
    case = simplest(with_gradients(MUL, pair), lambda case: len(case.tensors) == 2, seed)
    assert [(spec.shape, spec.layout) for spec in (*case.tensors, *case.gradients)] == [((), Layout())] * 3
    assert case.gradients[0].logical() == 1
    assert simplest(pad_cases("op", "float32", "forward"), seed=seed).params == {"pad": []}
    reflected = simplest(pad_cases("op", "float32", "forward", mode="reflect"), seed=seed)
    assert (reflected.tensors[0].shape, reflected.params["pad"]) == ((1, 1), [0, 0])
    (joined,) = simplest(cat_cases("op", "float32", "forward"), seed=seed).tensors
    assert joined.shape == (0,)
    broadcast = simplest(pair, lambda case: len({spec.shape for spec in case.tensors}) > 1, seed)
    assert sum(len(spec.shape) for spec in broadcast.tensors) <= 3


def test_related_operands_cancel() -> None:
    def count(case: Case, found: Counter[str]) -> None:
        x, y = (torch.tensor(spec.logical().astype(np.float64)) for spec in case.tensors)
        if case.tensors[0].shape == case.tensors[1].shape and x.numel() > 1:
            found["cancelled"] += bool((x + y == 0).all() and (x != 0).any())
            found["equal"] += bool((x == y).all() and len(x.unique()) > 1)

    with np.errstate(all="ignore"):
        found = seen(elementwise_cases("op", "float32", "forward", operands=(Operand(), Operand())), count, 600)
    assert found["cancelled"]
    assert found["equal"]
