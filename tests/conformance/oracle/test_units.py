from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from conformance.oracle.units import nearest, rounding_error, ulp


def test_between_consecutive_floats_it_is_their_gap() -> None:
    assert ulp(np.array(1.0 + 2.0**-40), "float32") == 2.0**-23
    assert ulp(np.array(-3.3), "float32") == 2.0**-22
    assert ulp(np.array(1.3), "float16") == 2.0**-10
    assert ulp(np.array(1.3), "bfloat16") == 2.0**-7


def test_at_a_power_of_two_it_is_the_nearer_gap() -> None:
    assert ulp(np.array([1.0, -4.0]), "float32").tolist() == [2.0**-24, 2.0**-22]


def test_subnormals_share_the_smallest_gap() -> None:
    assert ulp(np.array([0.0, 1e-42, 2.0**-126]), "float32").tolist() == [2.0**-149] * 3
    assert ulp(np.array([0.0, 2.0**-14]), "float16").tolist() == [2.0**-24] * 2


def test_beyond_the_largest_number_the_exponent_goes_on() -> None:
    assert ulp(np.array(1.5 * 2.0**128), "float32") == 2.0**105
    assert np.isnan(ulp(np.array([np.inf, np.nan]), "float32")).all()


def test_complex_numbers_are_measured_by_their_modulus() -> None:
    assert ulp(np.array(3.0 + 4.0j), "complex64") == 2.0**-21


def test_integer_types_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="int32"):
        ulp(np.array(1.0), "int32")


def test_it_matches_the_spacing_of_every_half() -> None:
    halves = np.arange(1, 0x7BFF, dtype=np.uint16).view(np.float16)
    inside = halves[np.frexp(halves)[0] != 0.5]
    assert np.array_equal(ulp(inside.astype(np.float64), "float16"), np.spacing(inside).astype(np.float64))


@pytest.mark.parametrize(("name", "numpy_type"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_nearest_rounds_as_the_type_does(name: str, numpy_type: type) -> None:
    values = np.random.default_rng(0).normal(size=4096) * 10.0 ** np.random.default_rng(1).integers(-9, 4, 4096)
    ties = 1.0 + np.arange(64) * 2.0**-9
    for value in (values, ties):
        assert np.array_equal(nearest(value, name), value.astype(numpy_type).astype(np.float64))


def test_nearest_has_no_end_upward_and_keeps_specials() -> None:
    assert nearest(np.array(65520.0), "float16") == 65536.0
    values = nearest(np.array([-0.0, np.inf, np.nan]), "float16")
    assert np.signbit(values[0])
    assert values[1] == np.inf
    assert np.isnan(values[2])


def test_the_switch_for_rounding_toward_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rounding_error(np.array(1.5), "float32") == 2.0**-24
    monkeypatch.setattr("conformance.oracle.units.ACCEPT_ROUND_TOWARD_ZERO", True)
    assert rounding_error(np.array(1.5), "float32") == 2.0**-23
