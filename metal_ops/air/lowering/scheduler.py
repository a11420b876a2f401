"""Cooperating threads: their state, the scheduler that lets them meet, and the loop over threadgroups around it."""

from __future__ import annotations

import re

from metal_ops.air.lowering import machine
from metal_ops.air.lowering.machine import MAX_THREADS, SIMDGROUP, Arguments
from metal_ops.air.lowering.text import size_of

_STATE = f"""
@air.handles = internal global [{MAX_THREADS} x ptr] zeroinitializer
@air.sites = internal global [{MAX_THREADS} x i32] zeroinitializer
@air.operations = internal global [{MAX_THREADS} x ptr] zeroinitializer
@air.slots = internal global [{MAX_THREADS} x [64 x i8]] zeroinitializer, align 64
@air.frames = internal global ptr null
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare i8 @llvm.coro.suspend(token, i1)
declare void @llvm.coro.end(ptr, i1, token)
declare void @llvm.coro.resume(ptr)
declare ptr @malloc(i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal ptr @air.frame(i64 %size, i32 %tid) #1 {{
  %padded = add i64 %size, 63
  %step = and i64 %padded, -64
  %have = load ptr, ptr @air.frames
  %none = icmp eq ptr %have, null
  br i1 %none, label %new, label %use
new:
  %all = mul i64 %step, {MAX_THREADS}
  %fresh = call ptr @malloc(i64 %all)
  store ptr %fresh, ptr @air.frames
  br label %use
use:
  %base = load ptr, ptr @air.frames
  %t = zext i32 %tid to i64
  %offset = mul i64 %t, %step
  %frame = getelementptr i8, ptr %base, i64 %offset
  ret ptr %frame
}}

define internal void @air.resume(i32 %tid) #2 {{
  store i32 %tid, ptr @air.tid
  %hp = getelementptr ptr, ptr @air.handles, i32 %tid
  %h = load ptr, ptr %hp
  call void @llvm.coro.resume(ptr %h)
  ret void
}}
"""
"""State of the threads of the running threadgroup: where each waits (-1: returned), for which collective operation
(null: the threadgroup barrier), its operands. Frames are taken from one allocation, made when their size is
known and kept for the life of the process: a kernel is rarely unloaded before."""

_SCHEDULER = f"""
define internal void @air.simdgroup(i32 %first, i32 %last) #2 {{
entry:
  br label %choose
choose:
  br label %scan
scan:
  %i = phi i32 [ %first, %choose ], [ %i1, %scan ]
  %lowest = phi i32 [ 2147483647, %choose ], [ %lowest1, %scan ]
  %op = phi ptr [ null, %choose ], [ %op1, %scan ]
  %sp = getelementptr i32, ptr @air.sites, i32 %i
  %site = load i32, ptr %sp
  %fp = getelementptr ptr, ptr @air.operations, i32 %i
  %f = load ptr, ptr %fp
  %waits = icmp ne ptr %f, null
  %lower = icmp ult i32 %site, %lowest
  %take = and i1 %waits, %lower
  %lowest1 = select i1 %take, i32 %site, i32 %lowest
  %op1 = select i1 %take, ptr %f, ptr %op
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, %last
  br i1 %more, label %scan, label %found
found:
  %any = icmp ne ptr %op1, null
  br i1 %any, label %mask, label %rest
rest:
  ret void
mask:
  %j = phi i32 [ %first, %found ], [ %j1, %mask ]
  %m = phi i32 [ 0, %found ], [ %m1, %mask ]
  %jsp = getelementptr i32, ptr @air.sites, i32 %j
  %js = load i32, ptr %jsp
  %jfp = getelementptr ptr, ptr @air.operations, i32 %j
  %jf = load ptr, ptr %jfp
  %jwaits = icmp ne ptr %jf, null
  %here = icmp eq i32 %js, %lowest1
  %in = and i1 %here, %jwaits
  %bit = sub i32 %j, %first
  %one = zext i1 %in to i32
  %flag = shl i32 %one, %bit
  %m1 = or i32 %m, %flag
  %j1 = add i32 %j, 1
  %jmore = icmp ult i32 %j1, %last
  br i1 %jmore, label %mask, label %perform
perform:
  %slots = getelementptr [64 x i8], ptr @air.slots, i32 %first
  call void %op1(ptr %slots, i32 %m1)
  br label %wake
wake:
  %k = phi i32 [ %first, %perform ], [ %k1, %woken ]
  %kbit = sub i32 %k, %first
  %kflag = lshr i32 %m1, %kbit
  %kon = trunc i32 %kflag to i1
  br i1 %kon, label %run, label %woken
run:
  call void @air.resume(i32 %k)
  br label %woken
woken:
  %k1 = add i32 %k, 1
  %kmore = icmp ult i32 %k1, %last
  br i1 %kmore, label %wake, label %choose
}}

define internal void @air.schedule(i32 %count) #2 {{
entry:
  br label %round
round:
  br label %simdgroups
simdgroups:
  %s = phi i32 [ 0, %round ], [ %next, %simdgroups ]
  %next = add i32 %s, {SIMDGROUP}
  %last = call i32 @llvm.umin.i32(i32 %next, i32 %count)
  call void @air.simdgroup(i32 %s, i32 %last)
  %more = icmp ult i32 %next, %count
  br i1 %more, label %simdgroups, label %barrier
barrier:
  %i = phi i32 [ 0, %simdgroups ], [ %i1, %passed ]
  %alive = phi i1 [ false, %simdgroups ], [ %alive1, %passed ]
  %sp = getelementptr i32, ptr @air.sites, i32 %i
  %site = load i32, ptr %sp
  %live = icmp ne i32 %site, -1
  br i1 %live, label %release, label %passed
release:
  call void @air.resume(i32 %i)
  br label %passed
passed:
  %alive1 = or i1 %alive, %live
  %i1 = add i32 %i, 1
  %imore = icmp ult i32 %i1, %count
  br i1 %imore, label %barrier, label %decide
decide:
  br i1 %alive1, label %round, label %done
done:
  ret void
}}
"""
"""``air.simdgroup`` performs collective operations, lowest meeting point first, until every lane waits at a barrier or
has returned; ``air.schedule`` then releases the barrier for all live threads (threads that returned do not hold it)."""

_SHARED = re.compile(r'^@("[^"]*"|[\w.$-]+) = .*addrspace\(3\) global (.+?) undef')


def cooperative_loop(parts: Arguments, threadgroup_globals: list[tuple[str, str]], *, checked: bool) -> str:
    """``air.run`` for a kernel of cooperating threads: start every thread of a group, then schedule until all returned.

    ``threadgroup_globals`` (name, bytes) are filled with 0xFF before each group when ``checked``, so that nothing
    reads what an earlier group left.
    """
    poison = [
        f"  call void @llvm.memset.p0.i64(ptr {name}, i8 -1, i64 {size}, i1 false)"
        for name, size in threadgroup_globals
    ]
    threads = """  br label %start
start:
  %tid = phi i32 [ 0, %group ], [ %tid1, %start ]
  %x = urem i32 %tid, %sx
  %row = udiv i32 %tid, %sx
  %y = urem i32 %row, %sy
  %z = udiv i32 %row, %sy"""
    launch = f"""  store i32 %tid, ptr @air.tid
  %handle = call ptr @air.thread({parts.operands}{", " if parts.operands else ""}i32 %tid)
  %hp = getelementptr ptr, ptr @air.handles, i32 %tid
  store ptr %handle, ptr %hp
  %tid1 = add i32 %tid, 1
  %tmore = icmp ult i32 %tid1, %count
  br i1 %tmore, label %start, label %started
started:
  call void @air.schedule(i32 %count)
  br label %group.end"""
    lines = [_STATE, _SCHEDULER, *machine.entry(parts), *(poison if checked else []), threads, machine.INDEX]
    return "\n".join([*lines, *parts.values, launch, machine.GROUP_END])


def threadgroup_globals(lines: list[str]) -> list[tuple[str, str]]:
    """Name and byte size (an IR operand) of each threadgroup variable among a module's globals."""
    found = []
    for line in lines:
        if match := _SHARED.match(line):
            found.append((f"@{match[1]}", size_of(match[2])))
    return found
