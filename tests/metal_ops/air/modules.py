"""Small kernels written by hand: AIR modules as text, for golden tests (a kernel, a launch, what must come out)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metal_ops.air.execution import Kernel, Report, Size
from metal_ops.air.program import JUDGING, Mode, compile_ir

_SIZES = {"float": 4, "half": 2, "bfloat": 2, "int": 4, "uint": 4, "long": 8, "short": 2, "char": 1, "bool": 1}
_HEAD = """target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-f32:32:32-f64:64:64"
target triple = "air64_v26-apple-macosx14.0.0"
"""


def module(
    body: str,
    buffers: Mapping[str, str],
    positions: Sequence[tuple[str, str, str]] = (("thread_position_in_grid", "i32", "%gid"),),
    *,
    declare: Sequence[str] = (),
    before: str = "",
    limit: int | None = None,
) -> str:
    """An AIR module with one kernel ``k``.

    ``buffers`` maps an argument name to its Metal type (device memory, read and written): %name in ``body``.
    ``positions`` are (kind, IR type, IR name) of the values that the hardware supplies.
    """
    parameters = [f'ptr addrspace(1) noundef "air-buffer-no-alias" %{name}' for name in buffers]
    parameters += [f"{type_} noundef {name}" for _, type_, name in positions]
    nodes = []
    for index, (name, type_) in enumerate(buffers.items()):
        size = _SIZES[type_]
        nodes.append(
            f'!{{i32 {index}, !"air.buffer", !"air.location_index", i32 {index}, i32 1, !"air.read_write", '
            f'!"air.address_space", i32 1, !"air.arg_type_size", i32 {size}, !"air.arg_type_align_size", i32 {size}, '
            f'!"air.arg_type_name", !"{type_}", !"air.arg_name", !"{name}"}}'
        )
    for kind, _, name in positions:
        named = f'!"air.arg_type_name", !"uint", !"air.arg_name", !"{name[1:]}"'
        nodes.append(f'!{{i32 {len(nodes)}, !"air.{kind}", {named}}}')
    numbered = "\n".join(f"!{10 + index} = {node}" for index, node in enumerate(nodes))
    listed = ", ".join(f"!{10 + index}" for index in range(len(nodes)))
    attribute = ", !3" if limit else ""
    return f"""{_HEAD}{before}
define void @k({", ".join(parameters)}) {{
{body}
}}
{chr(10).join(f"declare {line}" for line in declare)}
!air.kernel = !{{!0}}
!0 = !{{ptr @k, !1, !2{attribute}}}
!1 = !{{}}
!2 = !{{{listed}}}
!3 = !{{!"air.max_work_group_size", i32 {limit or 1024}}}
{numbered}
"""


def kernel(ir: str, mode: Mode = JUDGING) -> Kernel:
    """The kernel of a module, compiled."""
    return Kernel(compile_ir(ir, mode))


def run(ir: str, arguments: dict[str, Any], threads: int, *, group: int | None = None, mode: Mode = JUDGING) -> Report:
    """Compile and launch in one dimension."""
    size: Size = (group or max(threads, 1), 1, 1)
    return kernel(ir, mode).launch(arguments, threads=(threads, 1, 1), group=size)


def unary_module(intrinsic: str, result: str, operand: str, *, out: str, into: str) -> str:
    """A kernel that applies ``intrinsic`` elementwise: IR types ``operand`` -> ``result``, Metal types for memory."""
    body = f"""  %i = zext i32 %gid to i64
  %p = getelementptr {operand}, ptr addrspace(1) %input, i64 %i
  %x = load {operand}, ptr addrspace(1) %p
  %y = call {result} @{intrinsic}({operand} %x)
  %q = getelementptr {result}, ptr addrspace(1) %output, i64 %i
  store {result} %y, ptr addrspace(1) %q
  ret void"""
    return module(body, {"input": into, "output": out}, declare=[f"{result} @{intrinsic}({operand})"])


def apply(intrinsic: str, values: np.ndarray[Any, Any], result: str, operand: str, *, out: str, into: str) -> Any:
    """The intrinsic's results on ``values``, as the bytes that the kernel stored viewed as ``values``' own type."""
    output = np.zeros(len(values), values.dtype)
    run(unary_module(intrinsic, result, operand, out=out, into=into), {"input": values, "output": output}, len(values))
    return output
