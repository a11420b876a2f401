from __future__ import annotations

import mpmath
import numpy as np
import pytest

from metal_ops.air.lowering.elementary import BINARY, IDENTIFIER, UNARY
from metal_ops.air.program import FAST, JUDGING
from metal_ops.air.rounding import correctly_rounded
from tests.metal_ops.air.modules import module, run, unary_module

TANPI = "tanpi"
DOMAINS = {
    "acosh": (1, 1e6),
    "asin": (-1, 1),
    "acos": (-1, 1),
    "atanh": (-1, 1),
    **dict.fromkeys(("log", "log2", "log10", "rsqrt"), (1e-30, 1e30)),
    **dict.fromkeys(("exp", "exp2", "exp10", "sinh", "cosh"), (-30, 30)),
    **dict.fromkeys(("sinpi", "cospi"), (-50, 50)),
}


def sample(function: str, count: int) -> np.ndarray:
    low, high = DOMAINS.get(function, (-100, 100))
    rng = np.random.default_rng(IDENTIFIER[function])
    if low > 0:
        return np.exp(rng.uniform(np.log(low), np.log(high), count)).astype(np.float32)
    return rng.uniform(low, high, count).astype(np.float32)


@pytest.mark.parametrize("function", [name for name in UNARY if name != TANPI])
def test_float_results_are_correctly_rounded(function):
    """Against mpmath in 256 bits; also shows that double evaluation agrees with the rounding of last resort."""
    values = sample(function, 300)
    out = np.zeros_like(values)
    name = f"air.{function}.f32"
    run(unary_module(name, "float", "float", out="float", into="float"), {"input": values, "output": out}, len(values))
    want = [correctly_rounded(IDENTIFIER[function], 24, float(x), 0.0) for x in values]
    np.testing.assert_array_equal(out.view(np.uint32), np.array(want, np.uint32))


@pytest.mark.parametrize("function", ["exp", "log", "sin", "tanh"])
def test_half_results_are_correctly_rounded(function):
    values = np.clip(sample(function, 3000), 2.0**-14 if function == "log" else -1e3, 1e3).astype(np.float16)
    out = np.zeros_like(values)
    name = f"air.{function}.f16"
    run(
        unary_module(name, "half", "half", out="half", into="half"),
        {"input": values, "output": out},
        len(values),
        group=64,
    )
    want = [correctly_rounded(IDENTIFIER[function], 11, float(x), 0.0) for x in values]
    np.testing.assert_array_equal(out.view(np.uint16), np.array(want, np.uint16))


@pytest.mark.parametrize("function", BINARY)
def test_two_arguments(function):
    rng = np.random.default_rng(5)
    x = np.exp(rng.uniform(-3, 3, 300)).astype(np.float32)
    y = rng.uniform(-20, 20, 300).astype(np.float32)
    body = f"""  %i = zext i32 %gid to i64
  %p = getelementptr float, ptr addrspace(1) %a, i64 %i
  %x = load float, ptr addrspace(1) %p
  %r = getelementptr float, ptr addrspace(1) %b, i64 %i
  %y = load float, ptr addrspace(1) %r
  %z = call float @air.{function}.f32(float %x, float %y)
  %q = getelementptr float, ptr addrspace(1) %output, i64 %i
  store float %z, ptr addrspace(1) %q
  ret void"""
    ir = module(
        body, dict.fromkeys(("a", "b", "output"), "float"), declare=[f"float @air.{function}.f32(float, float)"]
    )
    out = np.zeros_like(x)
    run(ir, {"a": x, "b": y, "output": out}, 300)
    want = [correctly_rounded(IDENTIFIER[function], 24, float(a), float(b)) for a, b in zip(x, y, strict=True)]
    np.testing.assert_array_equal(out.view(np.uint32), np.array(want, np.uint32))


def test_close_calls_reach_the_rounding_of_last_resort(monkeypatch):
    """exp(x) is about 1 + x: for x = 2**-24 that is nearly the tie above 1, which a double cannot decide."""
    from metal_ops.air import rounding

    calls = []
    original = rounding.correctly_rounded
    monkeypatch.setattr(rounding, "correctly_rounded", lambda *a: calls.append(a) or original(*a))
    values = np.array([2.0**-24, -(2.0**-25), 0.5], np.float32)
    out = np.zeros_like(values)
    run(unary_module("air.exp.f32", "float", "float", out="float", into="float"), {"input": values, "output": out}, 3)
    assert len(calls) == 2
    assert out.tolist() == [
        1 + 2.0**-23,
        1.0 - 2.0**-24 if mpmath.exp(-(2.0**-25)) < 1 - 2.0**-25 else 1.0,
        np.float32(np.exp(0.5)),
    ]


@pytest.mark.parametrize(
    ("value", "precision", "bits"),
    [
        (1.0, 24, 0x3F800000),
        (-2.5, 24, 0xC0200000),
        (1 + 2.0**-24, 24, 0x3F800000),
        (1 + 3 * 2.0**-24, 24, 0x3F800002),
        (1 + 2.0**-24 + 2.0**-50, 24, 0x3F800001),
        (2.0**128, 24, 0x7F800000),
        ((2 - 2.0**-25) * 2.0**127, 24, 0x7F800000),
        (2.0**-127, 24, 0),
        (-(2.0**-140), 24, 0x80000000),
        (2.0**-24, 11, 1),
        (3 * 2.0**-25, 11, 2),
        (65520.0, 11, 0x7C00),
        (65519.0, 11, 0x7BFF),
    ],
)
def test_rounding_of_known_numbers(value, precision, bits):
    """The encoding of ties, overflow, flushed floats and subnormal halves."""
    from metal_ops.air.rounding import _round

    context = mpmath.mp.clone()
    context.prec = 256
    assert _round(context.mpf(value), precision) == bits


@pytest.mark.parametrize("function", ["exp", "log", "tanh", "sin", "rsqrt", "exp2"])
def test_fast_functions_stay_within_a_few_ulp(function):
    values = np.abs(sample(function, 4096)) + np.float32(0.01)
    out = np.zeros_like(values)
    ir = unary_module(f"air.{function}.f32", "float", "float", out="float", into="float")
    run(ir, {"input": values, "output": out}, len(values), group=1024, mode=FAST)
    exact = {
        "rsqrt": lambda x: 1 / np.sqrt(x),
    }.get(function, getattr(np, function, None))(values.astype(np.float64))
    assert np.max(np.abs(out - exact) / np.spacing(np.abs(exact).astype(np.float32))) < 6


def test_fast_functions_see_subnormal_arguments_as_zeros():
    """The C library looks at bits too: unflushed, it divides 0 by 0 on a flushing processor."""
    tiny = np.array([1e-40, -1e-40], np.float32)
    body = """  %i = zext i32 %gid to i64
  %p = getelementptr float, ptr addrspace(1) %input, i64 %i
  %x = load float, ptr addrspace(1) %p
  %a = call float @air.atan2.f32(float %x, float %x)
  %b = call float @air.pow.f32(float -2.000000e+00, float %x)
  %y = fadd float %a, %b
  %q = getelementptr float, ptr addrspace(1) %output, i64 %i
  store float %y, ptr addrspace(1) %q
  ret void"""
    declare = ["float @air.atan2.f32(float, float)", "float @air.pow.f32(float, float)"]
    ir = module(body, {"input": "float", "output": "float"}, declare=declare)
    output = np.zeros(2, np.float32)
    for mode in (FAST, JUDGING):
        run(ir, {"input": tiny, "output": output}, 2, mode=mode)
        np.testing.assert_array_equal(output, [1, np.float32(1) - np.float32(np.pi)])
