from __future__ import annotations

import numpy as np
import pytest

from metal_ops.air.execution import Kernel, _bind
from metal_ops.air.kernel import Argument
from metal_ops.air.program import FAST, JUDGING, compile_ir
from tests.metal_ops.air.modules import kernel, module, run

COPY = """  %i = zext i32 %gid to i64
  %p = getelementptr float, ptr addrspace(1) %input, i64 %i
  %x = load float, ptr addrspace(1) %p
  %q = getelementptr float, ptr addrspace(1) %output, i64 %i
  store float %x, ptr addrspace(1) %q
  ret void"""
BUFFERS = {"input": "float", "output": "float"}


@pytest.mark.parametrize("mode", [JUDGING, FAST])
@pytest.mark.parametrize(("threads", "group"), [(1, 1), (7, 7), (1000, 256), (70000, 1024)])
def test_every_thread_runs_once_in_edge_groups_too(mode, threads, group):
    values = np.arange(threads, dtype=np.float32)
    output = np.full(threads, np.nan, np.float32)
    report = run(module(COPY, BUFFERS), {"input": values, "output": output}, threads, group=group, mode=mode)
    np.testing.assert_array_equal(output, values)
    assert report.violation_count == 0


def test_positions_in_three_dimensions_with_partial_groups():
    kinds = [
        "thread_position_in_grid",
        "threadgroup_position_in_grid",
        "thread_position_in_threadgroup",
        "threads_per_threadgroup",
        "threads_per_grid",
        "threadgroups_per_grid",
    ]
    stores = []
    for index in range(len(kinds)):
        for lane in range(3):
            slot = f"{index}.{lane}"
            stores.append(f"""  %e{slot} = extractelement <3 x i32> %v{index}x, i64 {lane}
  %o{slot} = add i64 %base, {index * 3 + lane}
  %q{slot} = getelementptr i32, ptr addrspace(1) %output, i64 %o{slot}
  store i32 %e{slot}, ptr addrspace(1) %q{slot}""")
    body = f"""  %x = extractelement <3 x i32> %v0x, i64 0
  %y = extractelement <3 x i32> %v0x, i64 1
  %z = extractelement <3 x i32> %v0x, i64 2
  %zy = mul i32 %z, 3
  %yz = add i32 %zy, %y
  %yw = mul i32 %yz, 5
  %at = add i32 %yw, %x
  %wide = zext i32 %at to i64
  %base = mul i64 %wide, {3 * len(kinds)}
{chr(10).join(stores)}
  ret void"""
    positions = [(kind, "<3 x i32>", f"%v{index}x") for index, kind in enumerate(kinds)]
    output = np.full((2, 3, 5, len(kinds), 3), -1, np.int32)
    kernel(module(body, {"output": "int"}, positions)).launch({"output": output}, threads=(5, 3, 2), group=(2, 2, 2))
    for z, y, x in np.ndindex(2, 3, 5):
        grid, group, local, size, threads, groups = output[z, y, x].tolist()
        assert grid == [x, y, z]
        assert group == [x // 2, y // 2, z // 2]
        assert local == [x % 2, y % 2, z % 2]
        assert size == [min(2, 5 - x // 2 * 2), min(2, 3 - y // 2 * 2), 2]
        assert threads == [5, 3, 2]
        assert groups == [3, 2, 1]


def test_indices_within_a_simdgroup_and_16_bit_positions():
    positions = [
        ("thread_position_in_grid", "i32", "%gid"),
        ("thread_index_in_simdgroup", "i16", "%lane"),
        ("simdgroup_index_in_threadgroup", "i32", "%simd"),
        ("simdgroups_per_threadgroup", "i32", "%simds"),
    ]
    body = """  %wide = zext i16 %lane to i32
  %a = mul i32 %simd, 1000
  %b = add i32 %a, %wide
  %c = mul i32 %simds, 100000
  %d = add i32 %b, %c
  %i = zext i32 %gid to i64
  %q = getelementptr i32, ptr addrspace(1) %output, i64 %i
  store i32 %d, ptr addrspace(1) %q
  ret void"""
    output = np.zeros(70, np.int32)
    run(module(body, {"output": "int"}, positions), {"output": output}, 70)
    assert output.tolist() == [i // 32 * 1000 + i % 32 + 300000 for i in range(70)]


def test_subnormals_are_flushed_inside_a_launch_and_nowhere_else():
    body = COPY.replace("store float %x", "%y = fmul float %x, 2.000000e+00\n  store float %y")
    tiny = np.full(8, 1e-40, np.float32)
    output = np.full(8, np.nan, np.float32)
    run(module(body, BUFFERS), {"input": tiny, "output": output}, 8)
    assert output.tolist() == [0.0] * 8
    assert (tiny * np.float32(2) > 0).all()
    run(module(COPY, BUFFERS), {"input": tiny, "output": output}, 8)
    assert output.tolist() == tiny.tolist(), "a copy must keep every bit"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input": np.zeros(1, np.float32)}, "missing arguments ['output']"),
        ({"input": np.zeros(1), "output": np.zeros(1), "extra": 1}, "unknown ['extra']"),
        ({"input": np.zeros((4, 4), np.float32)[:, 1], "output": np.zeros(4)}, "'input' must be C-contiguous"),
        ({"input": np.zeros(1), "output": np.broadcast_to(np.float32(0), (1,))}, "'output' is written"),
        ({"input": np.zeros(1), "output": np.array([None])}, "'output' holds Python objects"),
        ([np.zeros(1), np.zeros(1)], "give the arguments as a mapping, not list"),
        ({1: 2}, "unknown [1]"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match="kernel k") as error:
        run(module(COPY, BUFFERS), arguments, 1)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "launch",
    [
        {"threads": (1, 1, 1), "groups": (1, 1, 1), "group": (1, 1, 1)},
        {"group": (1, 1, 1)},
        {"threads": (1, 1, 1), "group": (0, 1, 1)},
        {"threads": (1, 1, 1), "group": (33, 1, 1)},
        {"threads": (2**32, 1, 1), "group": (1, 1, 1)},
        {"threads": (-1, 1, 1), "group": (1, 1, 1)},
        {"threads": (1, 1), "group": (1, 1, 1)},
        {"threads": (1, 1, 1, 1), "group": (1, 1, 1)},
        {"threads": 1, "group": (1, 1, 1)},
        {"threads": (1.5, 1, 1), "group": (1, 1, 1)},
        {"groups": (1, 1, 1), "group": None},
    ],
)
def test_a_grid_or_group_out_of_range_is_refused(launch):
    made = kernel(module(COPY, BUFFERS, limit=32))
    memory = np.zeros(64, np.float32)
    with pytest.raises(ValueError, match="kernel k"):
        made.launch({"input": memory, "output": memory.copy()}, **launch)


def test_an_empty_grid_runs_nothing():
    output = np.full(1, 7, np.float32)
    kernel(module(COPY, BUFFERS)).launch({"input": output, "output": output}, threads=(0, 1, 1), group=(1, 1, 1))
    assert output[0] == 7


def test_launches_from_several_threads_at_once_do_not_disturb_each_other():
    from concurrent.futures import ThreadPoolExecutor

    made = Kernel(compile_ir(module(COPY, BUFFERS), JUDGING))

    def launch(seed: int) -> bool:
        values = np.arange(seed, seed + 20000, dtype=np.float32)
        output = np.zeros_like(values)
        made.launch({"input": values, "output": output}, threads=(20000, 1, 1), group=(256, 1, 1))
        return bool((output == values).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(launch, range(16)))


@pytest.mark.parametrize("value", [-4, 2**40, 1.5, None, "4", np.zeros(4, np.uint8)])
def test_threadgroup_memory_takes_its_bytes(value):
    argument = Argument("shared", "buffer", "float", address_space=3, writable=True, size=4)
    with pytest.raises(ValueError, match="'shared' is threadgroup memory: give its bytes, 0 to 32768"):
        _bind("k", [argument], {"shared": value}, checked=True)


@pytest.mark.parametrize("value", [3, None, [None], [[1, 2]], np.zeros(3, np.int64)])
def test_a_table_of_buffers_takes_arrays(value):
    argument = Argument("indices", "indirect_buffer", "IndexAB", address_space=2, size=8)
    with pytest.raises(ValueError, match="'indices' is a table of buffers"):
        _bind("k", [argument], {"indices": value}, checked=True)
