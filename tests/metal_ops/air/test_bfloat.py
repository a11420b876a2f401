from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.metal_ops.air.modules import module, run

BITS = np.arange(1 << 16, dtype=np.uint16)
ALL = BITS.view(ml_dtypes.bfloat16)


def elementwise(body: str, *operands: np.ndarray, result: str = "bfloat", out: np.ndarray) -> np.ndarray:
    names = ["a", "b"][: len(operands)]
    loads = "\n".join(
        f"""  %p{n} = getelementptr bfloat, ptr addrspace(1) %{n}, i64 %i
  %x{n} = load bfloat, ptr addrspace(1) %p{n}"""
        for n in names
    )
    text = f"""  %i = zext i32 %gid to i64
{loads}
{body}
  %q = getelementptr {result}, ptr addrspace(1) %output, i64 %i
  store {result} %y, ptr addrspace(1) %q
  ret void"""
    buffers = {**dict.fromkeys(names, "bfloat"), "output": {"bfloat": "bfloat", "float": "float"}.get(result, "char")}
    arguments = {**dict(zip(names, operands, strict=True)), "output": out}
    run(module(text, buffers), arguments, len(out), group=1024)
    return out


def same(got: np.ndarray, want: np.ndarray) -> None:
    with np.errstate(invalid="ignore"):  # NumPy calls a NaN that changes its type invalid
        got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    ok = ~np.isnan(want)
    np.testing.assert_array_equal(got[ok], want[ok])
    np.testing.assert_array_equal(np.signbit(got[ok]), np.signbit(want[ok]))


def test_a_load_and_store_keeps_every_bit():
    out = np.zeros_like(ALL)
    elementwise("  %y = select i1 true, bfloat %xa, bfloat 0xR0000", ALL, out=out)
    np.testing.assert_array_equal(out.view(np.uint16), BITS)


def test_widening_is_exact_and_rounding_is_to_nearest_even():
    wide = elementwise("  %y = fpext bfloat %xa to float", ALL, result="float", out=np.zeros(1 << 16, np.float32))
    same(wide, ALL.astype(np.float32))
    body = """  %i = zext i32 %gid to i64
  %p = getelementptr float, ptr addrspace(1) %input, i64 %i
  %x = load float, ptr addrspace(1) %p
  %y = fptrunc float %x to bfloat
  %q = getelementptr bfloat, ptr addrspace(1) %output, i64 %i
  store bfloat %y, ptr addrspace(1) %q
  ret void"""
    ties = np.where(BITS % 3 == 0, 0x8000, BITS)  # every third one exactly halfway
    floats = ((BITS.astype(np.uint32) << 16) | ties).astype(np.uint32).view(np.float32)
    out = np.zeros(1 << 16, ml_dtypes.bfloat16)
    run(module(body, {"input": "float", "output": "bfloat"}), {"input": floats, "output": out}, 1 << 16, group=1024)
    with np.errstate(invalid="ignore"):
        same(out, floats.astype(ml_dtypes.bfloat16))


def flushed(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float32)
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)


@pytest.mark.parametrize(
    ("operation", "function"), [("fadd", np.add), ("fsub", np.subtract), ("fmul", np.multiply), ("fdiv", np.divide)]
)
def test_arithmetic_is_correctly_rounded_with_flushed_subnormals(operation, function):
    other = np.roll(ALL, 12345)
    got = elementwise(f"  %y = {operation} bfloat %xa, %xb", ALL, other, out=np.zeros_like(ALL))
    with np.errstate(all="ignore"):
        exact = function(flushed(ALL).astype(np.float64), flushed(other).astype(np.float64))
        want = flushed(exact.astype(np.float32)).astype(ml_dtypes.bfloat16)
    same(got, want)


@pytest.mark.parametrize("predicate", ["olt", "oeq", "une", "uno", "ugt", "oge"])
def test_comparisons(predicate):
    other = np.roll(ALL, 4321)
    got = elementwise(
        f"  %f = fcmp {predicate} bfloat %xa, %xb\n  %y = zext i1 %f to i8",
        ALL,
        other,
        result="i8",
        out=np.zeros(1 << 16, np.int8),
    )
    a, b = flushed(ALL), flushed(other)
    nan = np.isnan(a) | np.isnan(b)
    want = {
        "olt": a < b,
        "oeq": a == b,
        "une": (a != b) | nan,
        "uno": nan,
        "ugt": (a > b) | nan,
        "oge": a >= b,
    }[predicate]
    np.testing.assert_array_equal(got.astype(bool), want)


def test_negation_flips_one_bit():
    out = elementwise("  %y = fneg bfloat %xa", ALL, out=np.zeros_like(ALL))
    np.testing.assert_array_equal(out.view(np.uint16), BITS ^ 0x8000)


def test_vectors_of_bfloat():
    body = """  %i = zext i32 %gid to i64
  %p = getelementptr <4 x bfloat>, ptr addrspace(1) %a, i64 %i
  %x = load <4 x bfloat>, ptr addrspace(1) %p
  %z = fmul <4 x bfloat> %x, <bfloat 0xR4000, bfloat 0xR4000, bfloat 0xR4000, bfloat 0xR3F00>
  %w = fpext <4 x bfloat> %z to <4 x float>
  %t = fptrunc <4 x float> %w to <4 x bfloat>
  %q = getelementptr <4 x bfloat>, ptr addrspace(1) %output, i64 %i
  store <4 x bfloat> %t, ptr addrspace(1) %q
  ret void"""
    values = np.arange(16).astype(ml_dtypes.bfloat16)
    out = np.zeros_like(values)
    run(module(body, {"a": "bfloat", "output": "bfloat"}), {"a": values, "output": out}, 4)
    factors = np.tile([2, 2, 2, 0.5], 4)
    assert out.astype(float).tolist() == (np.arange(16) * factors).tolist()
