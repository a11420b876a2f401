"""Threads that cooperate: collectives, barriers, divergence and the order of meeting points."""

from __future__ import annotations

import numpy as np
import pytest

from metal_ops.air.lowering import LoweringError
from metal_ops.air.program import JUDGING, compile_ir
from tests.metal_ops.air.modules import module, run

POSITIONS = (
    ("thread_position_in_grid", "i32", "%gid"),
    ("thread_index_in_simdgroup", "i32", "%lane"),
)
STORE = """  %q = getelementptr {t}, ptr addrspace(1) %output, i64 %i
  store {t} %y, ptr addrspace(1) %q
  ret void"""


def collective(call: str, type_: str, metal: str, signature: str, values: np.ndarray, threads: int) -> np.ndarray:
    body = f"""  %i = zext i32 %gid to i64
  %p = getelementptr {type_}, ptr addrspace(1) %input, i64 %i
  %x = load {type_}, ptr addrspace(1) %p
  %y = call {type_} {call}
{STORE.format(t=type_)}"""
    out = np.zeros_like(values)
    ir = module(body, {"input": metal, "output": metal}, POSITIONS, declare=[signature])
    run(ir, {"input": values, "output": out}, threads)
    return out


def tree(values: np.ndarray, operation) -> np.float32:
    """Combine lane i with i + 16, then + 8, 4, 2, 1."""
    lanes = list(values)
    step = 16
    while step:
        lanes = [operation(lanes[i], lanes[i + step]) for i in range(step)]
        step //= 2
    return lanes[0]


def test_sum_is_a_tree_and_ignores_missing_lanes():
    values = (np.arange(40) * np.float32(0.1)).astype(np.float32) ** 3
    out = collective("@air.simd_sum.f32(float %x)", "float", "float", "float @air.simd_sum.f32(float)", values, 40)
    assert set(out[:32]) == {tree(values[:32], np.add)}
    partial = np.concatenate([values[32:], np.full(24, -0.0, np.float32)]).astype(np.float32)
    assert set(out[32:]) == {tree(partial, np.add)}


@pytest.mark.parametrize(
    ("operation", "want"),
    [
        ("sum.s.i32", np.sum),
        ("max.s.i32", np.max),
        ("min.s.i32", np.min),
        ("max.u.i32", lambda v: v[v < 0].max() if (v < 0).any() else v.max()),
        ("min.u.i32", lambda v: v[v >= 0].min() if (v >= 0).any() else v.min()),
        ("product.s.i32", lambda v: np.prod(v, dtype=np.int32)),
        ("and.s.i32", np.bitwise_and.reduce),
        ("or.u.i32", np.bitwise_or.reduce),
        ("xor.u.i32", np.bitwise_xor.reduce),
    ],
)
def test_integer_reductions(operation, want):
    values = np.array([3, -7, 11, 5, -2, 9, 1, 64, -100], np.int32)
    name = f"air.simd_{operation}"
    out = collective(f"@{name}(i32 %x)", "i32", "int", f"i32 @{name}(i32)", values, len(values))
    assert out.tolist() == [int(want(values))] * len(values)


@pytest.mark.parametrize(
    ("call", "source"),
    [
        ("shuffle(i32 %x, i16 5)", lambda i: 5),
        ("broadcast(i32 %x, i16 3)", lambda i: 3),
        ("shuffle_xor(i32 %x, i16 4)", lambda i: i ^ 4),
        ("shuffle_up(i32 %x, i16 2)", lambda i: i - 2 if i >= 2 else i),
        ("shuffle_down(i32 %x, i16 2)", lambda i: i + 2 if i < 30 else i),
        ("shuffle_rotate_down(i32 %x, i16 1)", lambda i: (i + 1) % 32),
    ],
)
@pytest.mark.parametrize("threads", [32, 20])
def test_shuffles_read_the_lane_they_name_and_0_where_no_thread_is(call, source, threads):
    operation, operands = call.split("(", 1)
    name = f"air.simd_{operation}.s.i32"
    values = np.arange(100, 100 + threads, dtype=np.int32)
    signature = f"i32 @{name}(i32, i16)"
    out = collective(f"@{name}({operands}", "i32", "int", signature, values, threads)
    assert out.tolist() == [100 + source(i) if source(i) < threads else 0 for i in range(threads)]


@pytest.mark.parametrize("up", [True, False])
def test_fill_comes_from_the_right_end_of_the_fill_vector(up):
    name = f"air.simd_shuffle_and_fill_{'up' if up else 'down'}.s.i32"
    call = f"@{name}(i32 %x, i32 %n, i16 3, i16 16)"
    body = f"""  %i = zext i32 %gid to i64
  %x = add i32 %lane, 100
  %n = add i32 %lane, 200
  %y = call i32 {call}
{STORE.format(t="i32")}"""
    out = np.zeros(32, np.int32)
    ir = module(body, {"output": "int"}, POSITIONS, declare=[f"i32 @{name}(i32, i32, i16, i16)"])
    run(ir, {"output": out}, 32)
    for lane, got in enumerate(out.tolist()):
        position, base = lane % 16, lane // 16 * 16
        moved = position - 3 if up else position + 3
        inside = 0 <= moved < 16
        assert got == (100 + base + moved if inside else 200 + base + moved % 16)


def test_prefix_sums_first_lane_any_all_and_ballot():
    body = f"""  %i = zext i32 %gid to i64
  %odd = trunc i32 %lane to i1
  %first = call i1 @air.simd_is_first()
  %some = call i1 @air.simd_any(i1 %odd)
  %every = call i1 @air.simd_all(i1 %odd)
  %votes = call i64 @air.simd_ballot.i64(i1 %odd)
  %before = call i32 @air.simd_prefix_exclusive_sum.u.i32(i32 %lane)
  %upto = call i32 @air.simd_prefix_inclusive_sum.u.i32(i32 %lane)
  %f = zext i1 %first to i32
  %s = zext i1 %some to i32
  %e = zext i1 %every to i32
  %v = trunc i64 %votes to i32
  %a = shl i32 %s, 1
  %b = shl i32 %e, 2
  %c = or i32 %f, %a
  %d = or i32 %c, %b
  %g = shl i32 %before, 3
  %h = or i32 %d, %g
  %k = xor i32 %h, %v
  %sum = sub i32 %upto, %before
  %y0 = sub i32 %sum, %lane
  %y = add i32 %k, %y0
{STORE.format(t="i32")}"""
    declare = [
        "i1 @air.simd_is_first()",
        "i1 @air.simd_any(i1)",
        "i1 @air.simd_all(i1)",
        "i64 @air.simd_ballot.i64(i1)",
        "i32 @air.simd_prefix_exclusive_sum.u.i32(i32)",
        "i32 @air.simd_prefix_inclusive_sum.u.i32(i32)",
    ]
    out = np.zeros(6, np.int32)
    run(module(body, {"output": "int"}, POSITIONS, declare=declare), {"output": out}, 6)
    for lane, got in enumerate(out.tolist()):
        assert got == ((lane == 0) | 2 | (lane * (lane - 1) // 2 << 3)) ^ 0b101010


def test_a_barrier_lets_every_thread_see_what_all_wrote():
    body = f"""  %i = zext i32 %gid to i64
  %p = getelementptr [200 x i32], ptr addrspace(3) @shared, i64 0, i64 %i
  store i32 %gid, ptr addrspace(3) %p
  call void @air.wg.barrier(i32 2, i32 1)
  %r = sub i32 199, %gid
  %j = zext i32 %r to i64
  %s = getelementptr [200 x i32], ptr addrspace(3) @shared, i64 0, i64 %j
  %y = load i32, ptr addrspace(3) %s
{STORE.format(t="i32")}"""
    out = np.zeros(200, np.int32)
    before = "@shared = internal addrspace(3) global [200 x i32] undef, align 4"
    ir = module(body, {"output": "int"}, declare=["void @air.wg.barrier(i32, i32)"], before=before)
    run(ir, {"output": out}, 200)
    assert out.tolist() == list(range(199, -1, -1))


def test_threads_that_returned_do_not_hold_a_barrier():
    body = f"""  %i = zext i32 %gid to i64
  %early = icmp ugt i32 %gid, 40
  br i1 %early, label %leave, label %stay
leave:
  ret void
stay:
  call void @air.wg.barrier(i32 2, i32 1)
  %y = add i32 %gid, 1
{STORE.format(t="i32")}"""
    out = np.zeros(64, np.int32)
    run(module(body, {"output": "int"}, declare=["void @air.wg.barrier(i32, i32)"]), {"output": out}, 64)
    assert out.tolist() == [*range(1, 42), *[0] * 23]


def test_a_join_waits_for_its_late_arm_though_the_text_puts_it_first():
    """The join block stands before the arm in the text; every lane must be in the sum, or it was numbered by text."""
    body = f"""  %i = zext i32 %gid to i64
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %arm, label %join
join:
  %v = phi float [ 1.000000e+00, %0 ], [ %w, %arm ]
  %y = call float @air.simd_sum.f32(float %v)
{STORE.format(t="float")}
arm:
  %w = call float @air.simd_max.f32(float 2.000000e+00)
  br label %join"""
    out = np.zeros(32, np.float32)
    declare = ["float @air.simd_sum.f32(float)", "float @air.simd_max.f32(float)"]
    run(module(body, {"output": "float"}, POSITIONS, declare=declare), {"output": out}, 32)
    assert out.tolist() == [48.0] * 32


def test_lanes_that_leave_a_loop_early_meet_the_others_behind_it():
    """Loop exits are laid out before the body: an exit must still wait until all lanes have left the loop."""
    body = f"""  %i = zext i32 %gid to i64
  br label %body
exit:
  %y = call float @air.simd_sum.f32(float 1.000000e+00)
{STORE.format(t="float")}
body:
  %n = phi i32 [ 0, %0 ], [ %n1, %body ]
  %t = call float @air.simd_max.f32(float 3.000000e+00)
  %n1 = add i32 %n, 1
  %more = icmp ult i32 %n1, %lane
  br i1 %more, label %body, label %exit"""
    out = np.zeros(32, np.float32)
    declare = ["float @air.simd_sum.f32(float)", "float @air.simd_max.f32(float)"]
    run(module(body, {"output": "float"}, POSITIONS, declare=declare), {"output": out}, 32)
    assert out.tolist() == [32.0] * 32


def test_cooperation_inside_a_helper_function():
    before = """define internal float @helper(float %v) {
  %s = call float @air.simd_sum.f32(float %v)
  %t = fmul float %s, 2.000000e+00
  ret float %t
}"""
    body = f"""  %i = zext i32 %gid to i64
  %y = call float @helper(float 1.000000e+00)
{STORE.format(t="float")}"""
    out = np.zeros(64, np.float32)
    ir = module(body, {"output": "float"}, declare=["float @air.simd_sum.f32(float)"], before=before)
    run(ir, {"output": out}, 64)
    assert out.tolist() == [64.0] * 64


def test_many_threadgroups_over_all_cores_each_with_memory_of_its_own():
    body = f"""  %i = zext i32 %gid to i64
  %j = zext i32 %tid to i64
  %p = getelementptr [64 x i32], ptr addrspace(3) @shared, i64 0, i64 %j
  store i32 %gid, ptr addrspace(3) %p
  call void @air.wg.barrier(i32 2, i32 1)
  %r = xor i64 %j, 63
  %s = getelementptr [64 x i32], ptr addrspace(3) @shared, i64 0, i64 %r
  %y = load i32, ptr addrspace(3) %s
{STORE.format(t="i32")}"""
    positions = (("thread_position_in_grid", "i32", "%gid"), ("thread_position_in_threadgroup", "i32", "%tid"))
    out = np.zeros(64 * 500, np.int32)
    before = "@shared = internal addrspace(3) global [64 x i32] undef, align 4"
    ir = module(body, {"output": "int"}, positions, declare=["void @air.wg.barrier(i32, i32)"], before=before)
    run(ir, {"output": out}, len(out), group=64)
    want = np.arange(len(out)).reshape(-1, 64)[:, ::-1].ravel()
    np.testing.assert_array_equal(out, want)


def test_an_operation_that_is_not_implemented_is_named():
    ir = module(
        "  %x = call float @air.simd_imagined.f32(float 1.000000e+00)\n  ret void",
        {"output": "float"},
        declare=["float @air.simd_imagined.f32(float)"],
    )
    with pytest.raises(LoweringError, match=r"air\.simd_imagined\.f32"):
        compile_ir(ir, JUDGING)


def test_lanes_that_read_threadgroup_memory_do_so_before_any_of_them_writes():
    """No barrier between, as in eigh_jacobi: the hardware's lanes run in lockstep, and kernels rely on it."""
    body = f"""  %i = zext i32 %gid to i64
  %own = getelementptr [32 x i32], ptr addrspace(3) @shared, i64 0, i64 %i
  store i32 %lane, ptr addrspace(3) %own
  call void @air.wg.barrier(i32 2, i32 1)
  %next = add i32 %lane, 31
  %left = and i32 %next, 31
  %l = zext i32 %left to i64
  %neighbour = getelementptr [32 x i32], ptr addrspace(3) @shared, i64 0, i64 %l
  %x = load i32, ptr addrspace(3) %neighbour
  br label %write
write:
  store i32 -5, ptr addrspace(3) %own
  %y = add i32 %x, 100
{STORE.format(t="i32")}"""
    out = np.zeros(32, np.int32)
    ir = module(
        body,
        {"output": "int"},
        POSITIONS,
        declare=["void @air.wg.barrier(i32, i32)"],
        before="@shared = internal addrspace(3) global [32 x i32] undef",
    )
    run(ir, {"output": out}, 32)
    assert out.tolist() == [100 + (lane - 1) % 32 for lane in range(32)]
