"""How PyTorch's host splits a reduction over kernels: which layout of kernel, in how many segments.

The rules of aten/src/ATen/native/mps/operations/ReduceOps.mm (``select_reduction_plan``), with the thresholds of
kernels/ReduceOps.h; the strided full reduction as the host code of 2.15.0 has it (pull request 198646).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from metal_ops.launch._layouts import collapsed, fits, flattened
from metal_ops.launch._views import View

SIMDGROUP = 32
MAX_GROUP = 1024
CHAINS = 8
INNERMOST_GROUP = 256
CHUNK_MAX_ROW, CHUNK_PER_LANE, CHUNK_MIN_NUMEL = 256, 16, 65536
SPLIT_MIN_ROW, SPLIT_MIN_SEGMENT, SPLIT_MAX_SEGMENTS = 2048, 64, 2048
SPLIT_TARGET_PARTIALS, SPLIT_MIN_GROUPS = 8192, 64
OUTER_WIDTH = OUTER_HEIGHT = 32
NARROW_GROUP = 256
SMALL_DIM_MAX = 256
NARROW_BATCHED_MIN_DIM, NARROW_PER_GROUP = 128, 8192
OUTER_SPLIT_MIN_DIM, OUTER_SPLIT_MIN_GROUPS, OUTER_SPLIT_MIN_SEGMENT = 4096, 32, 512
OUTER_SPLIT_MAX_GROUPS, OUTER_SPLIT_STRIDED_GROUPS = 2048, 256
FLAT_MAX_GROUPS = 512
FLAT_STRIDED_PER_GROUP, FLAT_STRIDED_MIN_RUN, FLAT_STRIDED_MIN_PIECE = 2048, 2048, 1024
INDEX_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class Plan:
    """One pass: ``kernel`` is the suffix of its name; the input is seen as outer x dim x inner, ``dim`` reduced.

    ``strides`` (elements) belong to dim, inner and outer. ``lanes`` are the threads that share a row of
    ``_innermost_chunk``. A full reduction of a strided input has ``runs``: their count, length and pieces, and strides.
    """

    kernel: str
    outer: int
    dim: int
    inner: int = 1
    strides: tuple[int, int, int] = (1, 1, 0)
    contiguous: bool = True
    segments: int = 1
    lanes: int = SIMDGROUP
    runs: tuple[int, int, int, int, int] | None = None


def _ceil(value: int, divisor: int) -> int:
    return -(-value // divisor)


def _clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def plan(source: View, target: View) -> Plan:
    """The first pass over ``source``; ``target`` has its number of dimensions, with size 1 where it is reduced."""
    outputs = target.numel
    generic = Plan("", outputs, source.numel // outputs)
    if outputs == 1:
        return _full(source)
    if not (target.contiguous and fits(source, INDEX_LIMIT)):
        return generic
    reduced = [dim for dim, sizes in enumerate(zip(source.shape, target.shape, strict=True)) if sizes[0] != sizes[1]]
    if len(reduced) == 1 and reduced[0] < len(source.shape) - 1:
        return _outer(source, reduced[0]) or generic
    if not source.contiguous:
        return generic
    if len(reduced) <= 1:
        return _innermost(outputs, source.numel // outputs)
    if len(reduced) == reduced[-1] - reduced[0] + 1:
        first, last = reduced[0], reduced[-1]
        return plan(flattened(source, first, last), flattened(target, first, last))
    return generic


def _full(source: View) -> Plan:
    """One output: a segment a threadgroup, if there is enough to do."""
    count = source.numel
    groups = min(FLAT_MAX_GROUPS, _ceil(count, MAX_GROUP * CHAINS))
    if groups > 1 and not source.contiguous and fits(source, INDEX_LIMIT):
        strided = _full_strided(source)
        if strided is not None:
            return strided
    while groups > 1 and count % groups:
        groups -= 1
    return Plan("_flat" if groups > 1 else "", 1, count, segments=groups)


def _full_strided(source: View) -> Plan | None:
    """At most two blocks of dimensions: runs of the last one, cut into pieces until every threadgroup has some."""
    blocks = collapsed(source.shape, source.strides) or [(1, 1)]
    if len(blocks) > 2:
        return None
    groups = min(FLAT_MAX_GROUPS, _ceil(source.numel, FLAT_STRIDED_PER_GROUP))
    runs, run_stride = blocks[0] if len(blocks) == 2 else (1, 0)
    length, stride = blocks[-1]
    pieces = 1
    if runs < 4 * groups and length >= FLAT_STRIDED_MIN_RUN:
        pieces = min(length // FLAT_STRIDED_MIN_PIECE, _ceil(4 * groups, runs))
        while length % pieces:
            pieces -= 1
    if pieces * runs < groups:
        return None
    described = (runs, length // pieces, pieces, run_stride, stride)
    return Plan("_flat_strided", 1, source.numel, segments=groups, runs=described)


def _innermost(rows: int, length: int) -> Plan:
    """Rows without gaps: a simdgroup a row; several rows a simdgroup if they are short, several a row if it is long."""
    if length <= CHUNK_MAX_ROW and rows * length >= CHUNK_MIN_NUMEL:
        lanes = min(SIMDGROUP, 1 << (_ceil(length, CHUNK_PER_LANE) - 1).bit_length())
        return Plan("_innermost_chunk", rows, length, lanes=lanes)
    if _ceil(rows, INNERMOST_GROUP // SIMDGROUP) < SPLIT_MIN_GROUPS and length >= SPLIT_MIN_ROW:
        most = min(SPLIT_MAX_SEGMENTS, _ceil(length, SPLIT_MIN_SEGMENT))
        segments = _clamp(_ceil(SPLIT_TARGET_PARTIALS, rows), 2, max(most, 2))
        return Plan("_innermost_chunk", rows, length, segments=_ceil(length, _ceil(length, segments)))
    return Plan("_innermost", rows, length)


def _outer(source: View, reduced: int) -> Plan | None:
    """Another than the last dimension, if those on each side of it can be walked as one."""
    before = collapsed(source.shape[:reduced], source.strides[:reduced])
    after = collapsed(source.shape[reduced + 1 :], source.strides[reduced + 1 :])
    if len(before) > 1 or len(after) > 1:
        return None
    outer, outer_stride = before[0] if before else (1, 0)
    inner, inner_stride = after[0] if after else (1, 0)
    dim, contiguous = source.shape[reduced], source.contiguous
    strides = (source.strides[reduced], inner_stride, outer_stride)
    groups = outer * _ceil(inner, OUTER_WIDTH)
    split = outer == 1 and dim >= OUTER_SPLIT_MIN_DIM and groups < OUTER_SPLIT_MIN_GROUPS
    small = dim <= SMALL_DIM_MAX and groups >= SPLIT_MIN_GROUPS
    enough = prod(source.shape) >= CHUNK_MIN_NUMEL and not (small and dim < NARROW_BATCHED_MIN_DIM)
    kernel, segments = "_outer", 1
    if contiguous and inner < OUTER_WIDTH and enough:
        kernel = "_narrow"
        segments = 1 if outer > 1 else _clamp(dim * inner // NARROW_PER_GROUP, 1, SPLIT_MAX_SEGMENTS)
    elif small:
        kernel = "_outer_small_dim"
    elif split and contiguous:
        segments = min(dim // OUTER_SPLIT_MIN_SEGMENT, max(2, OUTER_SPLIT_MAX_GROUPS // groups))
    elif split:
        segments = _clamp(OUTER_SPLIT_STRIDED_GROUPS // groups, 2, min(dim, SPLIT_MAX_SEGMENTS))
    return Plan(kernel, outer, dim, inner, strides, contiguous, segments)


def second_pass(first: Plan) -> Plan:
    """The pass that folds the segments' partial results, which lie in memory as outer x segments x inner."""
    kernel = {"_innermost_chunk": "_innermost", "_flat": "", "_flat_strided": ""}.get(first.kernel, first.kernel)
    strides = (first.inner, 1, first.segments * first.inner)
    return Plan(kernel, first.outer, first.segments, first.inner, strides)
