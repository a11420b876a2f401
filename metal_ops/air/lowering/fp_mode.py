"""The host's floating-point mode: flush-to-zero while a kernel executes, and the host's own again afterwards."""

from __future__ import annotations

from metal_ops.air.lowering.errors import LoweringError

_MODES = {
    "x86_64": """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define internal i64 @rt.fp.exchange(i32 %keep, i32 %set) #1 {
  %cell = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %cell)
  %old = load i32, ptr %cell
  %cleared = and i32 %old, %keep
  %new = or i32 %cleared, %set
  store i32 %new, ptr %cell
  call void @llvm.x86.sse.ldmxcsr(ptr %cell)
  %wide = zext i32 %old to i64
  ret i64 %wide
}
define internal i64 @rt.fp.flush() #0 {
  %old = call i64 @rt.fp.exchange(i32 -1, i32 32832)
  ret i64 %old
}
define internal i64 @rt.fp.default() #0 {
  %old = call i64 @rt.fp.exchange(i32 -32833, i32 0)
  ret i64 %old
}
define internal void @rt.fp.restore(i64 %mode) #0 {
  %narrow = trunc i64 %mode to i32
  %old = call i64 @rt.fp.exchange(i32 0, i32 %narrow)
  ret void
}
""",
    "aarch64": """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define internal i64 @rt.fp.flush() #1 {
  %old = call i64 @llvm.aarch64.get.fpcr()
  %new = or i64 %old, 16777216
  call void @llvm.aarch64.set.fpcr(i64 %new)
  ret i64 %old
}
define internal i64 @rt.fp.default() #1 {
  %old = call i64 @llvm.aarch64.get.fpcr()
  %new = and i64 %old, -16777217
  call void @llvm.aarch64.set.fpcr(i64 %new)
  ret i64 %old
}
define internal void @rt.fp.restore(i64 %mode) #1 {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  ret void
}
""",
}


def floating_point_mode(machine: str) -> str:
    """Functions that set and restore flush-to-zero on ``machine`` (the first part of a target triple).

    x86-64: FTZ and DAZ of MXCSR; arm64: FZ of FPCR. Half arithmetic is not affected by either, as on the GPU.
    """
    try:
        return _MODES[{"arm64": "aarch64"}.get(machine, machine)]
    except KeyError:
        raise LoweringError(f"no flush-to-zero control for processor {machine!r}; known: {', '.join(_MODES)}") from None
