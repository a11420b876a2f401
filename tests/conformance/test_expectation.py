from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch

from conformance.case import Case, TensorSpec, ones
from conformance.expectation import call_of, common_type, expected_of, number_operands, results_of
from conformance.op import Op, Reference
from conformance.oracle import Exact


def op(function: str = "add", **changes: Any) -> Op:
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


def case(*operands: tuple[str, tuple[int, ...]], **params: Any) -> Case:
    return Case("op", "float32", "forward", tuple(TensorSpec(*operand) for operand in operands), params)


def of(given: Case, result: str = "bool", **changes: Any) -> str | None:
    described = op(**changes)
    return common_type(described, call_of(described, given), result)


DTYPES = ("bool", "uint8", "int64", "float16", "float32", "complex64")


def test_common_type_of_three_is_that_of_torchs_own_addition() -> None:
    """Three operands of three ranks: what the sum of them is, promoted as TensorIterator does."""
    for (one, other), shapes in product(product(DTYPES, DTYPES), product(((2,), ()), repeat=2)):
        for number in (True, 3, 0.5):
            x, y = (
                torch.empty(shape, dtype=getattr(torch, name)) for name, shape in zip((one, other), shapes, strict=True)
            )
            given = case((one, shapes[0]), (other, shapes[1]), third=number)
            # Tensors of one rank first, then the number: for those torch.result_type itself tells.
            found = of(given, promotes=(0, 1, "third"))
            two = of(replace(given, params={}), promotes=(0, 1))
            assert two == str(torch.result_type(x, y)).removeprefix("torch.")
            if shapes == ((), ()):
                assert found == str(torch.result_type(torch.empty((), dtype=getattr(torch, two)), number))[6:]
            elif shapes == ((2,), (2,)):
                assert found == str(torch.result_type(torch.empty(2, dtype=getattr(torch, two)), number))[6:]


@pytest.mark.parametrize(("operands", "params", "promotes", "expected"), [
    ((("float16", (2,)), ("float32", ())), {}, None, "float16"),
    ((("float16", (2,)), ("float32", (1,))), {}, None, "float32"),
    ((("int64", (2,)), ("float16", ())), {"other": 0.5}, (0, 1, "other"), "float16"),
    ((("int8", (2,)), ("bool", ())), {"other": 0.5}, (0, 1, "other"), "float32"),
    ((("bool", (2,)), ("int8", (2,)), ("float16", ())), {}, (1, 2), "float16"),
    ((("int8", (2,)),), {"other": 300}, (0, 1, "other"), "int8"),
    ((("int8", (2,)),), {"other": 300, "alpha": 2.0}, (0, 1, "other"), "int8"),
    ((("float8_e4m3fn", (2,)), ("float32", (2,))), {}, None, None),
    ((("float32", (2,)),), {}, (), None),
])  # fmt: skip
def test_common_type(operands: Any, params: Any, promotes: Any, expected: str | None) -> None:
    assert of(case(*operands, **params), promotes=promotes) == expected


def test_integers_become_floats_for_a_floating_result() -> None:
    both = case(("int64", (2,)), ("bool", (2,)))
    assert [of(both, result) for result in ("float32", "int64", "bool")] == ["float32", "int64", "int64"]
    assert of(case(("bool", (2,))), "float32") == "float32"
    assert of(case(("bfloat16", (2,)), ("int64", (2,))), "bfloat16") == "bfloat16"
    assert of(both, "float32", promotes=()) is None


def test_number_operands_are_those_that_promote() -> None:
    described = op(promotes=(0, 1, "other", "weight"))
    call = call_of(described, case(("float32", (2,)), other=2.0, alpha=1.0, weight=None))
    assert number_operands(described, call) == ("other",)
    assert number_operands(op(), call) == ()


def test_rules_of_torch() -> None:
    described = op()
    expected = expected_of(call_of(described, case(("int32", (2, 3)), ("float16", (3,)))))
    assert (expected.results, expected.strides) == ((("float16", (2, 3)),), ((3, 1),))
    assert expected_of(call_of(described, case(("int32", (2, 3)), ("float16", (2,))))).error == "RuntimeError"
    assert results_of(described, case(("int32", (2, 3)), ("float16", (2,)))) is None


def test_ops_without_rules_run_on_the_cpu() -> None:
    given = case(("float32", (4,)))
    assert results_of(op("nonzero"), given) == (("int64", (0, 1)),)


def test_backward_is_tried_as_well() -> None:
    given = replace(case(("float32", (4,)), ("float32", (4,))), requires_grad=(0,), gradients=(ones("float32", (4,)),))
    assert expected_of(call_of(op(), given)).backward_error is None
    misfit = replace(given, gradients=(ones("float32", (5,)),))
    expected = expected_of(call_of(op(), misfit))
    assert (expected.error, expected.backward_error) == (None, "RuntimeError")
    assert expected.results == (("float32", (4,)),)
