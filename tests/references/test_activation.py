"""Activation functions against mpmath, in the tails above all, where the textbook formulas cancel."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from references import activation

_TAILS = [-80.0, -20.0, -12.5, -6.0, -2.0, -1e-20, 1e-30, 0.7, 3.0, 15.0, 88.0]


def _softplus(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.log1p(mpmath.exp(x))


_FUNCTIONS: dict[str, tuple[Callable[[mpmath.mpf], mpmath.mpf], float]] = {
    "gelu": (lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2, 2.0**-40),
    "silu": (lambda x: x / (1 + mpmath.exp(-x)), 2.0**-48),
    "mish": (lambda x: x * mpmath.tanh(_softplus(x)), 2.0**-48),
    "logsigmoid": (lambda x: -_softplus(-x), 2.0**-48),
    "softplus": (lambda x: x if x > 20 else _softplus(x), 2.0**-48),
    "elu": (lambda x: x if x > 0 else mpmath.expm1(x), 2.0**-48),
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_functions_agree_with_mpmath(name: str) -> None:
    exact, relative = _FUNCTIONS[name]
    x = np.array(_TAILS) if name != "gelu" else np.array(_TAILS[2:])
    with mpmath.workdps(60):
        for point, value in zip(x, getattr(activation, name)(x), strict=True):
            true = exact(mpmath.mpf(float(point)))
            assert abs(mpmath.mpf(float(value)) - true) <= relative * abs(true), (name, point)


def test_gelu_by_tanh_agrees_with_its_formula() -> None:
    x = np.array([-10.0, -3.0, -1e-10, 0.5, 4.0])
    with mpmath.workdps(60):
        for point, value in zip(x, activation.gelu(x, approximate="tanh"), strict=True):
            p = mpmath.mpf(float(point))
            true = p / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (p + mpmath.mpf(0.044715) * p**3)))
            assert abs(mpmath.mpf(float(value)) - true) <= 2.0**-44 * abs(true)


def test_limits_at_infinity() -> None:
    with np.errstate(all="ignore"):
        for function in (activation.gelu, activation.silu, activation.mish):
            low, high = function(np.array([-np.inf, np.inf]))
            assert low == 0
            assert np.signbit(low)
            assert high == np.inf
        assert activation.hardswish(np.array([-np.inf, -3.0, 3.0, np.inf])).tolist() == [0.0, 0.0, 3.0, np.inf]


def test_piecewise_functions_at_their_joints() -> None:
    x = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    assert activation.hardshrink(x, 0.5).tolist() == [-1.0, 0.0, 0.0, 0.0, 1.0]
    assert activation.softshrink(x, 0.5).tolist() == [-0.5, 0.0, 0.0, 0.0, 0.5]
    assert activation.hardsigmoid(np.array([-4.0, 0.0, 4.0])).tolist() == [0.0, 0.5, 1.0]
    assert activation.leaky_relu(np.array([-2.0, 2.0]), 0.25).tolist() == [-0.5, 2.0]
    assert activation.clamp(np.array([-5, 5]), min=-2, max=3).tolist() == [-2, 3]
    assert activation.softplus(np.array([30.0]), beta=0.5, threshold=8.0).tolist() == [30.0]


def test_nan_passes_or_is_replaced() -> None:
    nan = np.array([np.nan])
    for function in (
        activation.gelu,
        activation.hardshrink,
        activation.softshrink,
        activation.hardswish,
        activation.elu,
    ):
        assert np.isnan(function(nan)).all()
    assert activation.nan_to_num(np.array([np.nan, np.inf, -np.inf]), 1.0, 2.0, 3.0).tolist() == [1.0, 2.0, 3.0]
