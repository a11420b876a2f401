"""Type promotion, against torch's own."""

from __future__ import annotations

import itertools

import pytest
import torch

from conformance.dtypes import BY_NAME, dtype
from metal_ops.launch._promotion import complex_of, promoted, real_of, result_type
from tests.metal_ops.launch.recording import view

DEVICE_TYPES = [name for name in BY_NAME if name != "float8_e4m3fn"]
NUMBERS = [True, 3, 2.5, 1j]


@pytest.mark.parametrize(("first", "second"), list(itertools.product(BY_NAME, repeat=2)))
def test_two_types_promote_as_in_torch(first, second):
    try:
        expected = torch.promote_types(getattr(torch, first), getattr(torch, second))
    except RuntimeError:
        with pytest.raises(TypeError, match="no promotion of"):
            promoted(dtype(first), dtype(second))
    else:
        assert promoted(dtype(first), dtype(second)).name == str(expected).removeprefix("torch.")


@pytest.mark.parametrize("shapes", [((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())])
def test_dimensions_decide_before_types(shapes):
    for first, second in itertools.product(DEVICE_TYPES, repeat=2):
        tensors = [
            torch.zeros(shape, dtype=getattr(torch, n)) for shape, n in zip(shapes, (first, second), strict=True)
        ]
        try:
            expected = torch.result_type(*tensors)
        except RuntimeError:
            continue
        views = [view(shape, type_=name) for shape, name in zip(shapes, (first, second), strict=True)]
        assert result_type(views).name == str(expected).removeprefix("torch."), (first, second)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("shape", [(2,), ()])
def test_numbers_decide_only_by_a_higher_kind(number, shape):
    for name in DEVICE_TYPES:
        try:
            expected = torch.result_type(torch.zeros(shape, dtype=getattr(torch, name)), number)
        except RuntimeError:
            continue
        assert result_type((view(shape, type_=name), number)).name == str(expected).removeprefix("torch."), name


def test_integers_compute_in_float_where_the_op_gives_floats():
    assert result_type((view((2,), type_="int64"), 3), floating=True).name == "float32"
    assert result_type((view((2,), type_="float16"), 3), floating=True).name == "float16"


def test_a_common_type_needs_an_operand():
    with pytest.raises(ValueError, match="operands is empty"):
        result_type(())


def test_components_of_complex_types():
    assert complex_of(dtype("bfloat16")).name == "complex64"
    assert real_of(dtype("complex32")).name == "float16"
    assert complex_of(dtype("complex64")) == dtype("complex64")
    assert real_of(dtype("int8")) == dtype("int8")
