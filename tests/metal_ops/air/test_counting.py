"""Work counts of kernels whose work is known."""

from __future__ import annotations

import numpy as np
import pytest

from metal_ops.air.lowering.counting import Work
from metal_ops.air.program import COUNTING, JUDGING
from tests.metal_ops.air.modules import module, run

BUFFERS = {"input": "float", "output": "float"}
TWICE = """  %i = zext i32 %gid to i64
  %p = getelementptr float, ptr addrspace(1) %input, i64 %i
  %x = load float, ptr addrspace(1) %p
  %y = fmul float %x, 2.000000e+00
  %q = getelementptr float, ptr addrspace(1) %output, i64 %i
  store float %y, ptr addrspace(1) %q
  ret void"""

EVEN_ONLY = """  %i = zext i32 %gid to i64
  %bit = and i32 %gid, 1
  %odd = icmp eq i32 %bit, 1
  br i1 %odd, label %done, label %even
even:
  %q = getelementptr float, ptr addrspace(1) %output, i64 %i
  store float 1.000000e+00, ptr addrspace(1) %q
  br label %done
done:
  %r = phi i32 [ 0, %even ], [ 1, %0 ]
  ret void"""


@pytest.mark.parametrize("threads", [1, 7, 5000])
def test_each_thread_counts_on_all_workers(threads: int) -> None:
    output = np.empty(threads, np.float32)
    arguments = {"input": np.ones(threads, np.float32), "output": output}
    report = run(module(TWICE, BUFFERS), arguments, threads, group=64, mode=COUNTING)
    each = Work(instructions=7, loads=1, stores=1, loaded_bytes=4, stored_bytes=4, flops=1)
    assert report.work == each.times(threads)
    assert (output == 2).all()


def test_a_branch_counts_where_it_is_taken() -> None:
    output = np.zeros(9, np.float32)
    report = run(module(EVEN_ONLY, {"output": "float"}), {"output": output}, 9, mode=COUNTING)
    assert (report.work.stores, report.work.stored_bytes) == (5, 20)
    assert report.work.instructions == 9 * (4 + 1) + 5 * 3


def test_nothing_is_counted_for_judging() -> None:
    arguments = {"input": np.ones(3, np.float32), "output": np.empty(3, np.float32)}
    assert run(module(TWICE, BUFFERS), arguments, 3, mode=JUDGING).work == Work()


@pytest.mark.parametrize(("line", "work"), [
    ("  %v = load <4 x float>, ptr addrspace(2) %p, align 16", Work(1, loads=1, loaded_bytes=16)),
    ("  %v = load float, ptr addrspace(3) %p, align 4", Work(1, threadgroup=1)),
    ("  %v = load float, ptr %p, align 4", Work(1)),
    ("  store [2 x half] %v, ptr addrspace(1) %p, align 2", Work(1, stores=1, stored_bytes=4)),
    ("  store i64 4, ptr addrspace(1) %p, align 8", Work(1, stores=1, stored_bytes=8)),
    ("  %v = load atomic i32, ptr addrspace(1) %p monotonic, align 4", Work(1, atomics=1)),
    ("  %v = fadd contract <2 x half> %a, %b", Work(1, flops=2)),
    ("  %v = call float @air.fma.f32(float %a, float %b, float %c)", Work(1, flops=2)),
    ("  call void @air.wg.barrier(i32 2, i32 1)", Work(1, barriers=1)),
    ("  %v = call i32 @air.atomic.global.add.s.i32(ptr addrspace(1) %p, i32 1)", Work(1, atomics=1)),
    ("  br label %next", Work(1)),
])  # fmt: skip
def test_what_an_instruction_does(line: str, work: Work) -> None:
    from metal_ops.air.lowering.counting import _instruction

    assert _instruction(line) == work
