"""One golden case or more for every row of the table of intrinsics; a row without one fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from metal_ops.air.lowering import LoweringError, intrinsics
from metal_ops.air.program import FAST, JUDGING, compile_ir
from tests.metal_ops.air.modules import module, run

NAN, INF = float("nan"), float("inf")
T = np.float32(np.exp(2.0))
TYPES = {
    "float": ("float", np.float32),
    "half": ("half", np.float16),
    "bfloat": ("bfloat", ml_dtypes.bfloat16),
    "i8": ("char", np.int8),
    "i16": ("short", np.int16),
    "i32": ("int", np.int32),
    "i64": ("long", np.int64),
}


@dataclass(frozen=True)
class Golden:
    """An intrinsic, its operands' values and what must come out; ``types`` are IR types, the result's last."""

    name: str
    types: str
    operands: tuple[tuple[Any, ...], ...]
    want: tuple[Any, ...]


def case(name: str, types: str, *operands: Any, want: Any) -> Golden:
    return Golden(name, types, tuple(o if isinstance(o, tuple) else (o,) for o in operands), want)


CASES = (
    case("air.fabs.f32", "float float", (-1.5, -0.0, -INF), want=(1.5, 0.0, INF)),
    case("air.floor.f16", "half half", (-1.5, 2.75, -0.0), want=(-2, 2, -0.0)),
    case("air.ceil.f32", "float float", (-1.5, 2.25, -0.5), want=(-1, 3, -0.0)),
    case("air.trunc.f32", "float float", (-1.5, 2.75), want=(-1, 2)),
    case("air.rint.f32", "float float", (0.5, 1.5, 2.5, -0.5), want=(0, 2, 2, -0.0)),
    case("air.round.f32", "float float", (0.5, 1.5, 2.5, -0.5), want=(1, 2, 3, -1)),
    case("air.sqrt.f32", "float float", (2.0, -1.0, -0.0), want=(np.float32(2) ** np.float32(0.5), NAN, -0.0)),
    case("air.copysign.f32", "float float float", (1.0, -2.0), (-0.0, 1.0), want=(-1, 2)),
    case("air.fmax.f32", "float float float", (1.0, NAN, 3.0), (2.0, 5.0, NAN), want=(2, 5, 3)),
    case("air.fmin.f16", "half half half", (1.0, NAN), (2.0, 5.0), want=(1, 5)),
    case("air.fmax.bf16", "bfloat bfloat bfloat", (1.0, NAN), (2.0, 5.0), want=(2, 5)),
    case("air.fabs.bf16", "bfloat bfloat", (-1.5,), want=(1.5,)),
    case(
        "air.fma.f32", "float float float float", (1 + 2.0**-12,), (1 + 2.0**-12,), (-1.0,), want=(2.0**-11 + 2.0**-24,)
    ),
    case("llvm.fmuladd.f32", "float float float float", (1 + 2.0**-23,), (1 - 2.0**-23,), (-1.0,), want=(-(2.0**-46),)),
    case("llvm.fmuladd.bf16", "bfloat bfloat bfloat bfloat", (1.5,), (3.0,), (0.25,), want=(4.75,)),
    # 2049 x 2049 is not needed: the product 1.0009765625**2 ends in 2**-20, half a unit above a tie of the sum
    case(
        "air.fma.f16",
        "half half half half",
        (1 + 2.0**-10, 2.0, -(1 + 2.0**-10), 3.0, 60000.0),
        (1 + 2.0**-10, 3.0, 1 + 2.0**-10, 2.0**-24, 2.0),
        (2048.0, -5.0, -2048.0, 0.0, -60000.0),
        want=(2050, 1, -2050, 3 * 2.0**-24, 60000),
    ),
    case("air.clamp.f32", "float float float float", (-1.0, 5.0, 0.5), (0.0,) * 3, (1.0,) * 3, want=(0, 1, 0.5)),
    case("air.fract.f32", "float float", (1.75, -0.25, -1e-30), want=(0.75, 0.75, 1 - 2.0**-24)),
    case("air.fract.f16", "half half", (1.75, -(2.0**-14)), want=(0.75, 1 - 2.0**-11)),
    case("air.ldexp.f32", "float i32 float", (1.5, 1.0, 3.0, 1.0), (3, 200, -2000, -127), want=(12, INF, 0, 0)),
    case(
        "air.fmod.f32",
        "float float float",
        (5.5, -5.5, 1e30),
        (2.0, 2.0, 3.0),
        want=(1.5, -1.5, np.fmod(np.float32(1e30), 3)),
    ),
    case(
        "air.nextafter.f32",
        "float float float",
        (1.0, 1.0, 0.0, 2.0),
        (2.0, 0.0, 1.0, 2.0),
        want=(1 + 2.0**-23, 1 - 2.0**-24, 0, 2),
    ),
    case(
        "air.nextafter.f16",
        "half half half",
        (1.0, 0.0, -0.0),
        (2.0, 1.0, -1.0),
        want=(1 + 2.0**-10, 2.0**-24, -(2.0**-24)),
    ),
    case("air.min.s.i32", "i32 i32 i32", (-3, 4), (2, 2), want=(-3, 2)),
    case("air.max.u.i32", "i32 i32 i32", (-3, 4), (2, 2), want=(-3, 4)),
    case("air.max.s.i8", "i8 i8 i8", (-3, 4), (2, 2), want=(2, 4)),
    case("air.clamp.s.i32", "i32 i32 i32 i32", (-3, 9, 1), (0,) * 3, (5,) * 3, want=(0, 5, 1)),
    case("air.abs.s.i32", "i32 i32", (-3, -(2**31)), want=(3, -(2**31))),
    case("air.abs.u.i8", "i8 i8", (-3,), want=(-3,)),
    case("air.clz.i32", "i32 i32", (1, 0, -1), want=(31, 32, 0)),
    case("air.popcount.i32", "i32 i32", (7, -1), want=(3, 32)),
    case("air.get_simdgroup_size.i32", "i32", want=(32, 32)),
    case("air.convert.s.i32.f.f32", "float i32", (1.9, -1.9, NAN, 3e9, -3e9), want=(1, -1, 0, 2**31 - 1, -(2**31))),
    case("air.convert.u.i8.f.f32", "float i8", (300.0, -5.0, 7.5), want=(-1, 0, 7)),
    case("air.convert.s.i64.f.f32", "float i64", (2.0**63, -(2.0**63), -1.5, NAN), want=(-(2**63), -(2**63), -1, 0)),
    case("air.convert.s.i16.f.bf16", "bfloat i16", (1.5, -70000.0), want=(1, -32768)),
    case("air.convert.f.f32.s.i32", "i32 float", (2**24 + 1, -7), want=(2.0**24, -7)),
    case("air.convert.f.f32.u.i32", "i32 float", (-1,), want=(2.0**32,)),
    case("air.convert.f.f16.s.i32", "i32 half", (2049, 2051, 70000), want=(2048, 2052, INF)),
    # 2**24 + 2**16 + 1 is above a bfloat tie, which a first rounding to float32 would hide
    case("air.convert.f.bf16.s.i32", "i32 bfloat", (2**24 + 2**16 + 1, 257), want=(2.0**24 + 2**17, 256)),
    case("air.convert.f.bf16.f.f16", "half bfloat", (1.0 + 2.0**-8, 3.0), want=(1.0, 3.0)),
    case("air.convert.f.f16.f.bf16", "bfloat half", (1e5, 2.0**-24), want=(INF, 2.0**-24)),
    case("air.convert.f.f32.f.bf16", "bfloat float", (3.0,), want=(3.0,)),
    case("air.convert.s.i64.s.i32", "i32 i64", (-5,), want=(-5,)),
    case("air.convert.u.i64.u.i32", "i32 i64", (-5,), want=(2**32 - 5,)),
    case("air.convert.s.i8.s.i32", "i32 i8", (300,), want=(44,)),
    case("air.exp.f32", "float float", (0.0, 1.0, 1000.0, -1000.0, NAN), want=(1, np.float32(np.e), INF, 0, NAN)),
    case("air.fast_exp2.f32", "float float", (10.0, -3.0), want=(1024, 0.125)),
    case("air.exp.f16", "half half", (1.0, 12.0), want=(np.float16(np.e), INF)),
    case("air.pow.f32", "float float float", (2.0, -2.0, 0.0), (10.0, 3.0, 0.0), want=(1024, -8, 1)),
    case("air.rsqrt.f32", "float float", (4.0, 0.0), want=(0.5, INF)),
    case("air.sinpi.f32", "float float", (0.5, 1.0, 1e6, -0.5, 0.25), want=(1, 0, 0, -1, np.float32(0.5**0.5))),
    case("air.cospi.f32", "float float", (0.5, 1.0, 2.0), want=(0, -1, 1)),
    case("air.fast_tanh.f32", "float float", (0.0, 1.0, 90.0), want=(0, (T - 1) / (T + 1), NAN)),
)


def evaluate(golden: Golden) -> np.ndarray:
    *operands, result = golden.types.split()
    count = len(golden.want)
    buffers, arguments, loads, passed = {}, {}, [], []
    for letter, type_, values in zip("abc", operands, golden.operands, strict=False):
        metal, dtype = TYPES[type_]
        buffers[letter], arguments[letter] = metal, np.array(values).astype(dtype)
        loads.append(f"  %p{letter} = getelementptr {type_}, ptr addrspace(1) %{letter}, i64 %i")
        loads.append(f"  %x{letter} = load {type_}, ptr addrspace(1) %p{letter}")
        passed.append(f"{type_} %x{letter}")
    signature = list(operands)
    if ".clz." in golden.name:
        passed.append("i1 true")
        signature.append("i1")
    metal, dtype = TYPES[result]
    buffers["output"], arguments["output"] = metal, np.zeros(count, dtype)
    body = "\n".join(
        [
            "  %i = zext i32 %gid to i64",
            *loads,
            f"  %y = call {result} @{golden.name}({', '.join(passed)})",
            f"  %q = getelementptr {result}, ptr addrspace(1) %output, i64 %i",
            f"  store {result} %y, ptr addrspace(1) %q",
            "  ret void",
        ]
    )
    run(module(body, buffers, declare=[f"{result} @{golden.name}({', '.join(signature)})"]), arguments, count)
    return arguments["output"]


@pytest.mark.parametrize("golden", CASES, ids=lambda golden: golden.name)
def test_golden(golden):
    got = evaluate(golden)
    want = np.array(golden.want).astype(got.dtype)
    with np.errstate(invalid="ignore"):
        got64, want64 = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(got64), np.isnan(want64))
    for g, w in zip(got, want, strict=True):
        assert np.isnan(float(g)) or (g == w and np.signbit(float(g)) == np.signbit(float(w))), (got, want)


VECTORS = {
    "air.dot.v2f32": ("float", "<2 x float>", (1.0, 2.0), (3.0, 4.0), 11.0),
    "air.fabs.v2f32": ("<2 x float>", "<2 x float>", (-1.0, 2.0), None, (1.0, 2.0)),
    "air.convert.f.v2f16.f.v2f32": ("<2 x half>", "<2 x float>", (1.5, -2.5), None, (1.5, -2.5)),
}


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name):
    result, operand, a, b, want = VECTORS[name]
    out_type = "half" if "half" in result else "float"
    second = f", {operand} %y" if b else ""
    body = f"""  %x = load {operand}, ptr addrspace(1) %a
  %y = load {operand}, ptr addrspace(1) %b
  %z = call {result} @{name}({operand} %x{second})
  store {result} %z, ptr addrspace(1) %output
  ret void"""
    signature = f"{result} @{name}({operand}{f', {operand}' if b else ''})"
    out = np.zeros(np.size(want), TYPES[out_type][1])
    memory = {"a": np.array(a, np.float32), "b": np.array(b or (0, 0), np.float32), "output": out}
    run(module(body, {"a": "float", "b": "float", "output": out_type}, declare=[signature]), memory, 1)
    assert out.tolist() == np.atleast_1d(want).tolist()


def test_sincos_returns_the_sine_and_stores_the_cosine():
    body = """  %c = alloca float, align 4
  %s = call float @air.sincos.f32(float 1.000000e+00, ptr %c)
  %v = load float, ptr %c
  store float %s, ptr addrspace(1) %output
  %q = getelementptr float, ptr addrspace(1) %output, i64 1
  store float %v, ptr addrspace(1) %q
  ret void"""
    out = np.zeros(2, np.float32)
    run(module(body, {"output": "float"}, declare=["float @air.sincos.f32(float, ptr)"]), {"output": out}, 1)
    assert out.tolist() == [np.float32(np.sin(1.0)), np.float32(np.cos(1.0))]


def test_all_and_any():
    body = """  %i = zext i32 %gid to i64
  %bit = trunc i32 %gid to i1
  %v = insertelement <2 x i1> <i1 true, i1 true>, i1 %bit, i32 1
  %w = insertelement <2 x i1> <i1 false, i1 false>, i1 %bit, i32 0
  %every = call i1 @air.all.v2i1(<2 x i1> %v)
  %some = call i1 @air.any.v2i1(<2 x i1> %w)
  %both = and i1 %every, %some
  %y = zext i1 %both to i32
  %q = getelementptr i32, ptr addrspace(1) %output, i64 %i
  store i32 %y, ptr addrspace(1) %q
  ret void"""
    out = np.full(2, 9, np.int32)
    declare = ["i1 @air.all.v2i1(<2 x i1>)", "i1 @air.any.v2i1(<2 x i1>)"]
    run(module(body, {"output": "int"}, declare=declare), {"output": out}, 2)
    assert out.tolist() == [0, 1]


ATOMICS = {
    "add.u.i32": ("i32", "int", 10, 3, 13),
    "sub.s.i32": ("i32", "int", 10, 3, 7),
    "max.u.i32": ("i32", "int", 10, -1, -1),
    "min.s.i32": ("i32", "int", 10, -1, -1),
    "or.u.i32": ("i32", "int", 8, 3, 11),
    "xchg.i32": ("i32", "int", 8, 3, 3),
    "add.f32": ("float", "float", 1.5, 2.0, 3.5),
}


@pytest.mark.parametrize("operation", ATOMICS)
def test_atomics_update_memory_and_return_what_was_there(operation):
    type_, metal, before, operand, after = ATOMICS[operation]
    literal = f"{operand:e}" if type_ == "float" else operand
    name = f"air.atomic.global.{operation}"
    body = f"""  %r = call {type_} @{name}(ptr addrspace(1) %output, {type_} {literal}, i32 0, i32 2, i1 true)
  %q = getelementptr {type_}, ptr addrspace(1) %output, i64 1
  store {type_} %r, ptr addrspace(1) %q
  ret void"""
    declare = [f"{type_} @{name}(ptr addrspace(1), {type_}, i32, i32, i1)"]
    out = np.array([before, 0], TYPES[type_][1])
    run(module(body, {"output": metal}, declare=declare), {"output": out}, 1)
    assert out.tolist() == [after, before]


def test_atomic_load_store_exchange_and_fence():
    exchange = "ptr addrspace(1) %output, ptr %e, i32 9, i32 0, i32 0, i32 2, i1 true"
    body = f"""  %e = alloca i32, align 4
  store i32 5, ptr %e
  call void @air.atomic.global.store.i32(ptr addrspace(1) %output, i32 5, i32 0, i32 2, i1 true)
  call void @air.atomic.fence(i32 0)
  %f = call i32 @air.atomic.global.cmpxchg.weak.i32({exchange})
  %v = call i32 @air.atomic.global.load.i32(ptr addrspace(1) %output, i32 0, i32 2, i1 true)
  %w = shl i32 %f, 8
  %s = or i32 %v, %w
  store i32 %s, ptr addrspace(1) %output
  ret void"""
    declare = [
        "void @air.atomic.global.store.i32(ptr addrspace(1), i32, i32, i32, i1)",
        "void @air.atomic.fence(i32)",
        "i32 @air.atomic.global.cmpxchg.weak.i32(ptr addrspace(1), ptr, i32, i32, i32, i32, i1)",
        "i32 @air.atomic.global.load.i32(ptr addrspace(1), i32, i32, i1)",
    ]
    out = np.zeros(1, np.int32)
    run(module(body, {"output": "int"}, declare=declare), {"output": out}, 1)
    assert out.tolist() == [5 << 8 | 9]


def test_an_unknown_intrinsic_is_an_error_that_names_it():
    ir = module(
        "  %x = call float @air.imagined.f32(float 0.0)\n  ret void",
        {"a": "float"},
        declare=["float @air.imagined.f32(float)"],
    )
    with pytest.raises(LoweringError, match=r"air\.imagined\.f32"):
        compile_ir(ir, JUDGING)


def test_every_row_of_the_table_has_a_golden_case():
    elsewhere = ["air.sincos.f32", "air.all.v2i1", "air.atomic.fence", *VECTORS]
    elsewhere.append("air.simdgroup_matrix_8x8_load.v64f32.p1f32")  # in test_matrix
    elsewhere += [f"air.atomic.global.{name}" for name in ("load.i32", "store.i32", "cmpxchg.weak.i32", *ATOMICS)]
    tried = [golden.name.replace("llvm.fmuladd", "air.fma") for golden in CASES] + elsewhere
    untried = [pattern.pattern for pattern, _ in intrinsics.TABLE if not any(pattern.fullmatch(name) for name in tried)]
    assert untried == []


@pytest.mark.parametrize("mode", [JUDGING, FAST])
@pytest.mark.parametrize(
    ("operation", "want"),
    [
        ("sdiv", [3, -3, 0, 0, -(2**31)]),
        ("srem", [1, -1, 7, -7, 0]),
        ("udiv", [3, (2**32 - 7) // 2, 0, 0, 0]),
        ("urem", [1, 1, 7, -7, -(2**31)]),
    ],
)
def test_integer_division_never_traps(mode, operation, want):
    """x86-64 faults on the last three pairs, and LLVM would take them for impossible."""
    x = np.array([7, -7, 7, -7, -(2**31)], np.int32)
    y = np.array([2, 2, 0, 0, -1], np.int32)
    body = f"""  %i = zext i32 %gid to i64
  %p = getelementptr i32, ptr addrspace(1) %input, i64 %i
  %q = getelementptr i32, ptr addrspace(1) %other, i64 %i
  %r = getelementptr i32, ptr addrspace(1) %output, i64 %i
  %a = load i32, ptr addrspace(1) %p
  %b = load i32, ptr addrspace(1) %q
  %z = {operation} i32 %a, %b
  store i32 %z, ptr addrspace(1) %r
  ret void"""
    output = np.zeros(5, np.int32)
    ir = module(body, {"input": "int", "other": "int", "output": "int"})
    run(ir, {"input": x, "other": y, "output": output}, 5, mode=mode)
    assert output.tolist() == want
