from __future__ import annotations

import math
import struct
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.dtypes import BY_NAME, dtype
from conformance.formats import (
    array_of_bits,
    bits_of,
    bits_of_array,
    component,
    encode,
    narrowed,
    number_text,
    poison_bits,
    special_bits,
    widened,
)

FLOATS = ("float32", "float16", "bfloat16", "float64")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_encode_rounds_as_ieee_conversion_does(number: float) -> None:
    bits = encode(Fraction(number), component(dtype("float64")))
    assert struct.pack("<Q", bits | (1 << 63 if math.copysign(1, number) < 0 else 0)) == struct.pack("<d", number)
    with np.errstate(all="ignore"):
        for name in ("float32", "float16"):
            expected = np.float64(number).astype(dtype(name).numpy)
            found = array_of_bits(np.array([bits_of(number, dtype(name))]), dtype(name))[0]
            assert found.tobytes() == expected.tobytes()


def test_encode_ties_go_to_even_and_overflow_to_infinity() -> None:
    half = component(dtype("float16"))
    assert encode(2049, half) == encode(2048, half)
    assert encode(2051, half) == encode(2052, half)
    assert encode(65519, half) == 0x7BFF
    assert encode(65520, half) == 0x7C00
    assert encode(Fraction(1, 2**25), half) == 0
    assert encode(Fraction(3, 2**26), half) == 1


@pytest.mark.parametrize(("number", "name", "bits"), [
    (1, "float32", 0x3F800000),
    ("-inf", "bfloat16", 0xFF80),
    ("nan", "float16", 0x7E00),
    (-0.0, "float32", 0x80000000),
    ("0x7fc00001", "float32", 0x7FC00001),
    (-1, "int8", 0xFF),
    (255, "uint8", 0xFF),
    ("1e-45", "float32", 1),
])  # fmt: skip
def test_bits_of_numbers(number: float | str, name: str, bits: int) -> None:
    assert bits_of(number, dtype(name)) == bits


@pytest.mark.parametrize(("number", "name", "message"), [
    (128, "int8", "allowed: integers from -128 to 127"),
    (0.5, "int32", "does not fit int32"),
    ("one", "float32", "'one' is unknown"),
    ("0x12345", "float16", "more than the 16 bits"),
    ("0xzz", "float16", "no hexadecimal"),
])  # fmt: skip
def test_bits_of_refuses(number: float | str, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bits_of(number, dtype(name))


@pytest.mark.parametrize("name", FLOATS)
def test_text_gives_the_same_bits_back(name: str) -> None:
    words = np.random.default_rng(1).integers(0, 1 << component(dtype(name)).width, 2000, np.uint64)
    for word in map(int, words):
        if "nan" not in number_text(word, dtype(name)):
            assert bits_of(number_text(word, dtype(name)), dtype(name)) == word


def test_text_is_exact_where_that_is_short() -> None:
    assert number_text(0x7BFF, dtype("float16")) == "65504.0"
    assert number_text(0x3DCCCCCD, dtype("float32")) == "0.1"
    assert number_text(0xFF, dtype("int8")) == "-1"


@pytest.mark.parametrize("name", BY_NAME)
def test_specials_are_valid_and_distinct(name: str) -> None:
    specials = special_bits(dtype(name))
    assert len(set(specials)) == len(specials)
    assert all(word >> component(dtype(name)).width == 0 for word in specials)
    array = array_of_bits(np.array(specials * 2, np.uint64), dtype(name))
    assert (bits_of_array(array, dtype(name)) == np.array(specials * 2, np.uint64)).all()


@pytest.mark.parametrize("name", FLOATS)
def test_poison_is_a_quiet_nan_of_its_own(name: str) -> None:
    word = poison_bits(dtype(name))
    (value,) = array_of_bits(np.array([word], np.uint64), dtype(name))
    assert np.isnan(value)
    assert word not in special_bits(dtype(name))
    assert word & 1 << component(dtype(name)).mantissa - 1


def test_poison_of_bool_is_a_bool() -> None:
    assert poison_bits(dtype("bool")) == 1
    assert ml_dtypes.bfloat16 is dtype("bfloat16").numpy.type


def test_format_without_infinity() -> None:
    """Every number of float8_e4m3fn gives its own bits back; beyond 448 there is only NaN."""
    described = dtype("float8_e4m3fn")
    numbers = array_of_bits(np.arange(256), described).astype(np.float64)
    assert np.flatnonzero(np.isnan(numbers)).tolist() == [0x7F, 0xFF]
    for word in (word for word in range(256) if word % 128 not in (0, 0x7F)):
        assert encode(Fraction(numbers[word]), component(described)) == word
    assert described.max == 448 == np.nanmax(numbers)
    assert [bits_of(number, described) for number in (464, 465, "inf", "nan")] == [0x7E, 0x7F, 0x7F, 0x7F]


def test_pairs_of_halves_are_widened_exactly() -> None:
    described = dtype("complex32")
    halves = np.array([1.5, -2.0, np.inf, 6e-8], np.float16)
    pairs = array_of_bits(halves.view(np.uint16), described)
    wide = widened(pairs.reshape(2, 1), described)
    assert wide.dtype == np.complex128
    assert wide.shape == (2, 1)
    assert wide.reshape(2).tolist() == [1.5 - 2j, complex(np.inf, float(halves[3]))]
    assert narrowed(wide, described).tobytes() == halves.tobytes()
