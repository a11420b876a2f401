from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from conformance.dtypes import BY_NAME, dtype
from conformance.formats import bits_of_array
from conformance.values import PATTERNS, Values, fill, random_words

RECIPES: dict[str, dict[str, Any]] = {
    "constant": {"value": "1"},
    "arange": {"start": -3, "step": 2},
    "integers": {"low": -5, "high": 5},
    "moderate": {"low": -2, "high": 3},
    "powers": {"low": -3, "high": 3, "ulps": 1},
    "choice": {"values": ["0", "1"]},
    "near": {"center": "1", "spread": 3},
    "related": {"to": {"pattern": "bits", "seed": 3}, "negated": True, "ulps": 1, "exponent": -2},
    "cycle": {"of": {"pattern": "bits", "seed": 3}, "period": 7},
    "nonzero": {"of": {"pattern": "bits", "seed": 3}},
}


def recipe(pattern: str, seed: int = 7) -> Values:
    return Values(pattern, seed, RECIPES.get(pattern, {}))


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("pattern", sorted(set(PATTERNS) - {"literal", "halves", "quarter_turns", "repeated"}))
def test_element_depends_on_its_index_only(pattern: str, name: str) -> None:
    long, short = fill(recipe(pattern), dtype(name), 300), fill(recipe(pattern), dtype(name), 10)
    assert long.dtype == dtype(name).numpy
    assert long[:10].tobytes() == short.tobytes()


def test_bytes_never_change() -> None:
    """Case files must rebuild the same bytes in all versions to come: a change here needs a new case schema."""
    digest = hashlib.sha256()
    for pattern in sorted(set(PATTERNS) - {"literal", "related", "cycle", "nonzero", "repeated"}):
        for name in ("float32", "bfloat16", "float16", "int32"):
            if name == "int32" and pattern in ("halves", "quarter_turns"):
                continue
            digest.update(fill(recipe(pattern), dtype(name), 1000).tobytes())
    assert digest.hexdigest() == "cd4b1c8333c2a696105f188b67db412fa01cfe46ce44e32bb40e8c29e6877d5e"
    related = hashlib.sha256()
    for name in ("float32", "float8_e4m3fn", "complex32", "int32"):
        related.update(fill(recipe("related"), dtype(name), 1000).tobytes())
    assert related.hexdigest() == "970a7d21b16d1129b40c3a345ecbc5b50fce774e6d93284dac553df3f10d46e6"


@pytest.mark.parametrize("name", ["float32", "bool", "complex32"])
def test_a_cycle_repeats_the_first_numbers_of_another_recipe(name: str) -> None:
    few = fill(Values("bits", 3), dtype(name), 7)
    assert fill(recipe("cycle"), dtype(name), 20).tobytes() == np.resize(few, 20).tobytes()
    with pytest.raises(ValueError, match="cycle: period is 0; allowed: integers from 1"):
        fill(Values("cycle", params={"of": {"pattern": "bits"}, "period": 0}), dtype(name), 3)


@pytest.mark.parametrize("name", ["float32", "bool", "complex32"])
def test_repeated_along_dimensions(name: str) -> None:
    few = fill(Values("bits", 3), dtype(name), 2)
    repeated = Values("repeated", params={"of": {"pattern": "bits", "seed": 3}, "shape": [3, 2, 2], "along": [0, 2]})
    expected = np.broadcast_to(few.reshape(1, 2, 1), (3, 2, 2))
    assert fill(repeated, dtype(name), 12).tobytes() == expected.tobytes()
    with pytest.raises(ValueError, match=r"repeated: shape is \[3, 2, 2\]; allowed: shapes of 5 elements"):
        fill(repeated, dtype(name), 5)


def test_related_numbers() -> None:
    """Twice the number, the next one away from zero, negated; infinities and NaNs stay what they are."""
    to = {"pattern": "literal", "values": ["1", "-3", "inf", "nan", "3e38", "1e-45"]}
    numbers = fill(Values("related", params={"to": to, "exponent": 1, "negated": True}), dtype("float32"), 6)
    assert numbers[:3].tolist() == [-2, 6, -np.inf]
    assert np.isnan(numbers[3])
    assert numbers[4] == -np.finfo(np.float32).max
    assert numbers[5] == -np.finfo(np.float32).smallest_subnormal
    one = {"pattern": "constant", "value": "-1"}
    (above,) = fill(Values("related", params={"to": one, "ulps": 1}), dtype("float16"), 1)
    assert above == np.nextafter(np.float16(-1), np.float16(-2))
    integers = {"pattern": "literal", "values": ["3", "-3"]}
    assert fill(Values("related", params={"to": integers, "negated": True}), dtype("int8"), 2).tolist() == [-3, 3]


def test_generator_is_splitmix64_of_the_counter() -> None:
    """The finaliser's published constants, written out on Python integers."""

    def mix(z: int) -> int:
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    start = mix((3 * 2 + 1) * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03 & 2**64 - 1)
    expected = [mix((start + (k + 1) * 0x9E3779B97F4A7C15) % 2**64) for k in range(5)]
    assert random_words(np.arange(5, dtype=np.uint64), 3, 1).tolist() == expected


def test_words_look_random() -> None:
    words = random_words(np.arange(1 << 16, dtype=np.uint64), 0, 0)
    ones = sum(int(((words >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(64))
    assert abs(ones / (64 << 16) - 0.5) < 0.001
    assert len(np.unique(words)) == 1 << 16


def test_sweep_is_every_pattern() -> None:
    bits = bits_of_array(fill(Values("sweep"), dtype("bfloat16"), 1 << 16), dtype("bfloat16"))
    assert (bits == np.arange(1 << 16)).all()


def test_stratified_has_every_sign_and_exponent_equally_often() -> None:
    bits = bits_of_array(fill(Values("stratified"), dtype("float32"), 512 * 8), dtype("float32"))
    assert (np.bincount(bits >> 23, minlength=512) == 8).all()


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "float64", "int16", "complex64"])
def test_integers_are_exact_and_within_range(name: str) -> None:
    values = fill(Values("integers", 1, {"low": -5, "high": 5}), dtype(name), 1000).astype(np.complex128)
    assert set(values.real) <= set(range(-5, 6))
    assert len(set(values.real)) == 11


def test_moderate_keeps_its_window_and_sign() -> None:
    values = fill(Values("moderate", 1, {"low": -2, "high": 3, "sign": "negative"}), dtype("float16"), 1000)
    assert values.max() <= -0.25
    assert values.min() > -16
    with pytest.raises(ValueError, match="allowed: both, positive, negative"):
        fill(Values("moderate", 1, {"low": 0, "high": 1, "sign": "none"}), dtype("float16"), 1)


def test_near_steps_across_zero() -> None:
    bits = bits_of_array(fill(Values("near", 1, {"center": "0", "spread": 2}), dtype("float32"), 500), dtype("float32"))
    assert set(bits.tolist()) == {0, 1, 2, 0x80000001, 0x80000002}


def test_quarter_turns_are_correctly_rounded() -> None:
    values = fill(Values("quarter_turns", params={"start": 1}), dtype("float64"), 4)
    assert values.tolist() == [np.pi / 4, np.pi / 2, 2.356194490192345, np.pi]


def test_specials_are_runs() -> None:
    values = fill(
        Values("constant", params={"value": "0"}, specials=((8, 2, "1"), (11, 1, "inf"))), dtype("float32"), 10
    )
    assert values.tolist() == [0, np.inf, 0, 0, 0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("name", ["float32", "complex64", "bool", "int64"])
@pytest.mark.parametrize("pattern", sorted(RECIPES))
def test_empty(pattern: str, name: str) -> None:
    assert fill(recipe(pattern), dtype(name), 0).shape == (0,)


def test_wrong_recipes_are_named() -> None:
    with pytest.raises(ValueError, match="'gauss' is unknown; allowed: constant"):
        Values("gauss")
    with pytest.raises(ValueError, match="'near' got wrong parameters"):
        fill(Values("near"), dtype("float32"), 1)
    with pytest.raises(ValueError, match="2 numbers for 3"):
        fill(Values("literal", params={"values": ["1", "2"]}), dtype("float32"), 3)
