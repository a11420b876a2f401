"""An access outside its object is a diagnosis with kernel, argument, offset and thread - never a fault."""

from __future__ import annotations

import numpy as np
import pytest

from metal_ops.air.execution import Violation
from tests.metal_ops.air.modules import module, run

READ = """  %i = sext i32 %gid to i64
  %j = add i64 %i, {shift}
  %p = getelementptr float, ptr addrspace(1) %input, i64 %j
  %x = load {type}, ptr addrspace(1) %p
  %q = getelementptr float, ptr addrspace(1) %output, i64 %i
  store float 1.000000e+00, ptr addrspace(1) %q
  %r = getelementptr float, ptr addrspace(1) %keep, i64 %i
  {keep}
  ret void"""
BUFFERS = {"input": "float", "output": "float", "keep": "float"}


def read(shift: int, type_: str = "float") -> str:
    return module(READ.format(shift=shift, type=type_, keep=f"store {type_} %x, ptr addrspace(1) %r"), BUFFERS)


def launch(ir: str, threads: int = 8) -> list[Violation]:
    memory = {name: np.zeros(threads, np.float32) for name in BUFFERS}
    report = run(ir, memory, threads)
    assert report.violation_count >= len(report.violations)
    return list(report.violations)


def test_inside_is_silent():
    assert launch(read(0)) == []


@pytest.mark.parametrize(
    ("shift", "offset", "thread"), [(1, 32, 7), (-1, -4, 0), (10**6, 4 * 10**6, 0), (-(2**44), -(2**46), 0)]
)
def test_before_and_behind_a_buffer(shift, offset, thread):
    first = launch(read(shift))[0]
    assert (first.argument, first.kind, first.offset, first.bytes, first.length) == ("input", "read", offset, 4, 32)
    assert first.thread == (thread, 0, 0)
    assert "kernel k: out-of-bounds read of 4 bytes" in str(first)
    assert "argument 'input' of 32 bytes" in str(first)


def test_an_access_that_straddles_the_end():
    found = [v for v in launch(read(0, "<2 x float>")) if v.argument == "input"]
    assert [(v.offset, v.bytes, v.thread) for v in found] == [(28, 8, (7, 0, 0))]


def test_a_write_goes_nowhere_and_is_named():
    body = """  %i = zext i32 %gid to i64
  %j = add i64 %i, 1
  %q = getelementptr float, ptr addrspace(1) %output, i64 %j
  store float 5.000000e+00, ptr addrspace(1) %q
  ret void"""
    storage = np.zeros(12, np.float32)
    report = run(module(body, {"output": "float"}), {"output": storage[:8]}, 8)
    assert [v.kind for v in report.violations] == ["write"]
    assert storage.tolist() == [0, *[5] * 7, 0, 0, 0, 0]


def test_a_pointer_made_of_an_integer_is_wild_not_deadly():
    body = """  %p = inttoptr i64 -1 to ptr addrspace(1)
  store float 5.000000e+00, ptr addrspace(1) %p
  ret void"""
    (found,) = run(module(body, {"output": "float"}), {"output": np.zeros(1, np.float32)}, 1).violations
    assert found.argument == "(a wild pointer)"


def test_pointers_keep_their_buffer_through_phi_and_select():
    body = """  %first = icmp eq i32 %gid, 0
  br i1 %first, label %a, label %b
a:
  br label %c
b:
  br label %c
c:
  %p = phi ptr addrspace(1) [ %input, %a ], [ %output, %b ]
  %s = select i1 %first, ptr addrspace(1) %p, ptr addrspace(1) %keep
  %q = getelementptr float, ptr addrspace(1) %s, i64 100
  %x = load float, ptr addrspace(1) %q
  store float %x, ptr addrspace(1) %output
  ret void"""
    found = launch(module(body, BUFFERS), threads=2)
    assert [(v.argument, v.thread[0]) for v in found] == [("input", 0), ("keep", 1)]


THREADGROUP = "@shared = internal addrspace(3) global [4 x float] undef, align 4"


@pytest.mark.parametrize(("index", "bad"), [("%gid", [4, 5]), ("3", [])])
def test_threadgroup_memory_has_its_size(index, bad):
    body = f"""  %i = zext i32 {index} to i64
  %p = getelementptr [4 x float], ptr addrspace(3) @shared, i64 0, i64 %i
  store float 1.000000e+00, ptr addrspace(3) %p
  call void @air.wg.barrier(i32 2, i32 1)
  store float 0.000000e+00, ptr addrspace(1) %output
  ret void"""
    ir = module(body, {"output": "float"}, declare=["void @air.wg.barrier(i32, i32)"], before=THREADGROUP)
    report = run(ir, {"output": np.zeros(1, np.float32)}, 6)
    assert [v.thread[0] for v in report.violations] == bad
    assert {v.argument for v in report.violations} <= {"thread or threadgroup memory"}


def test_thread_memory_has_its_size():
    body = """  %a = alloca [4 x i32], align 4
  %i = zext i32 %gid to i64
  %p = getelementptr [4 x i32], ptr %a, i64 0, i64 %i
  store i32 7, ptr %p
  %x = load i32, ptr %p
  %q = getelementptr i32, ptr addrspace(1) %output, i64 %i
  store i32 %x, ptr addrspace(1) %q
  ret void"""
    report = run(module(body, {"output": "int"}), {"output": np.zeros(6, np.int32)}, 6)
    assert [(v.kind, v.offset, v.thread[0]) for v in report.violations] == [
        ("write", 16, 4),
        ("read", 16, 4),
        ("write", 20, 5),
        ("read", 20, 5),
    ]


def test_copies_and_atomics_are_checked():
    body = """  call void @llvm.memcpy.p1.p1.i64(ptr addrspace(1) %output, ptr addrspace(1) %input, i64 64, i1 false)
  %p = getelementptr i32, ptr addrspace(1) %keep, i64 9
  %r = call i32 @air.atomic.global.add.u.i32(ptr addrspace(1) %p, i32 1, i32 0, i32 2, i1 true)
  ret void"""
    declare = [
        "void @llvm.memcpy.p1.p1.i64(ptr addrspace(1), ptr addrspace(1), i64, i1)",
        "i32 @air.atomic.global.add.u.i32(ptr addrspace(1), i32, i32, i32, i1)",
    ]
    memory = {name: np.zeros(8, np.float32) for name in BUFFERS}
    memory["output"] = np.zeros(16, np.float32)
    found = run(module(body, BUFFERS, declare=declare), memory, 1).violations
    assert [(v.argument, v.kind) for v in found] == [("input", "read"), ("keep", "atomic update")]


def test_only_the_first_violations_are_kept_but_all_are_counted():
    memory = {name: np.zeros(500, np.float32) for name in BUFFERS}
    memory["input"] = np.zeros(1, np.float32)
    report = run(read(0), memory, 500)
    assert report.violation_count == 499
    assert [v.thread[0] for v in report.violations] == list(range(1, 65))


WORD = """  %p = getelementptr i8, ptr addrspace(1) %output, i64 {offset}
  %r = call i32 @air.atomic.global.or.u.i32(ptr addrspace(1) %p, i32 65535, i32 0, i32 2, i1 true)
  %a = ptrtoint ptr addrspace(1) %output to i64
  %low = and i64 %a, 15
  %narrow = trunc i64 %low to i32
  store i32 %narrow, ptr addrspace(1) %keep
  ret void"""
OR = ["i32 @air.atomic.global.or.u.i32(ptr addrspace(1), i32, i32, i32, i1)"]


@pytest.mark.parametrize(("start", "offset", "found"), [(0, 4, 0), (0, 8, 1), (6, 0, 0), (6, -4, 1)])
def test_an_atomic_may_share_its_word_with_what_is_no_part_of_the_buffer(start, offset, found):
    storage = np.zeros(32, np.uint8)
    assert storage.ctypes.data % 16 == 0
    keep = np.zeros(1, np.int32)
    ir = module(WORD.format(offset=offset), {"output": "half", "keep": "int"}, declare=OR)
    report = run(ir, {"output": storage[start : start + 6].view(np.float16), "keep": keep}, 1)
    assert keep[0] == start, "a kernel sees how its buffer is aligned"
    assert [v.kind for v in report.violations] == ["atomic update"] * found
    word = (start + offset) // 4 * 4
    changed = [] if found else [word, word + 1]
    assert np.flatnonzero(storage).tolist() == changed


def test_a_pointer_read_out_of_bounds_is_null_and_reported():
    body = """  %p = getelementptr ptr addrspace(1), ptr addrspace(1) %input, i64 7
  store float 5.000000e+00, ptr addrspace(1) %p
  %q = load ptr addrspace(1), ptr addrspace(1) %p
  store float 5.000000e+00, ptr addrspace(1) %q
  ret void"""
    found = run(module(body, {"input": "float"}), {"input": np.zeros(1, np.float32)}, 1).violations
    assert [(v.argument, v.kind) for v in found] == [
        ("input", "write"),
        ("input", "read"),
        ("(a wild pointer)", "write"),
    ]
