"""Calls of binary ops that are not drawn."""

from __future__ import annotations

import pytest

from conformance.case import Case, TensorSpec
from conformance.values import Values
from metal_ops.catalogue import _avoided


def _tensor(dtype: str, *numbers: int, shape: tuple[int, ...] | None = None) -> TensorSpec:
    values = Values("literal", params={"values": [str(number) for number in numbers]})
    return TensorSpec(dtype, (len(numbers),) if shape is None else shape, values=values)


def _case(*tensors: TensorSpec, **params: object) -> Case:
    return Case("any", tensors[0].dtype, "forward", tensors, params)


@pytest.mark.parametrize(
    ("second", "avoided"),
    [
        (_tensor("int8", 3, 0), True),
        (_tensor("int8", 3, -1), False),
        (_tensor("int8", -1, 3), True),
        (_tensor("bool", 1, 0), True),
        (_tensor("int32", 1, -1), False),
        (_tensor("int32", 256, shape=()), True),
        (_tensor("float32", 0, 0), False),
    ],
)
def test_integers_are_not_divided_by_zero_nor_the_least_by_minus_one(second: TensorSpec, avoided: bool):
    assert _avoided.undivided(_case(_tensor("int8", -128, 127), second)) is avoided


def test_the_least_integer_of_the_common_type_counts():
    least = _tensor("int32", -(2**31))
    assert _avoided.undivided(_case(least, _tensor("int8", -1)))
    assert not _avoided.undivided(_case(least, _tensor("int64", -1)))
    assert _avoided.least_multiplied(_case(_tensor("int8", 7), least))
    assert not _avoided.least_multiplied(_case(_tensor("uint8", 0), _tensor("uint8", 0)))


@pytest.mark.parametrize(("number", "avoided"), [(0, True), (-1, True), (2, False), (0.0, False)])
def test_a_number_divides_as_a_tensor_does(number: float, avoided: bool):
    assert _avoided.undivided(_case(_tensor("int16", -32768), other=number)) is avoided


def test_what_torch_refuses_is_not_drawn():
    assert _avoided.subtracts_bool(_case(_tensor("int8", 1), other=True))
    assert not _avoided.subtracts_bool(_case(_tensor("int8", 1), other=1))
    assert _avoided.negative_power(_case(_tensor("int8", 1), exponent=-1))
    assert not _avoided.negative_power(_case(_tensor("int8", 1), exponent=-1.0))
    assert _avoided.unpromoted(_case(_tensor("uint16", 1), _tensor("int8", 1)))
    assert not _avoided.unpromoted(_case(_tensor("uint16", 1), _tensor("float16", 1)))
