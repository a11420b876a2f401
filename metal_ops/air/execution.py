"""Launching a compiled kernel on buffers: threadgroups in increasing order, over the host's cores.

Every worker has its own copy of the kernel, whose globals are that worker's threadgroup memory. A shared counter hands
out threadgroups in order, so that kernels that wait for earlier threadgroups (decoupled look-back) make progress.
"""

from __future__ import annotations

import ctypes
import operator
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metal_ops.air.kernel import Argument
from metal_ops.air.lowering.counting import COUNTERS_WORD, Work
from metal_ops.air.lowering.machine import CONTEXT_WORDS, MAX_THREADS
from metal_ops.air.program import Program, loaded

Size = tuple[int, int, int]
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)
_TAG_BIT, _CENTRE = 48, 1 << 47
_ALIGNMENT = 16
"""What NumPy and every allocator grant; how memory lies within so many bytes is visible to kernels."""
_LOG_CAPACITY = 64
_RECORD_WORDS = 8
_MAX_BUFFERS = (1 << 16) - 2
_THREADGROUP_BYTES = 32768
"""Threadgroup memory of an Apple GPU (Metal feature set tables)."""
_PARALLEL_THREADS = 4096
"""Launches of fewer threads run on the calling thread: handing them out would cost more than it saves."""
_UNBOUND = ("(a wild pointer)", "thread or threadgroup memory")
_KINDS = ("read", "write", "atomic update", "atomic read")


@dataclass(frozen=True)
class Violation:
    """An access outside its buffer: which kernel and argument, at which byte, by which thread of the grid."""

    kernel: str
    argument: str
    kind: str
    offset: int
    bytes: int
    length: int | None
    thread: Size

    def __str__(self) -> str:
        size = f" of {self.length} bytes" if self.length is not None else ""
        return (
            f"kernel {self.kernel}: out-of-bounds {self.kind} of {self.bytes} bytes at byte {self.offset} of "
            f"argument {self.argument!r}{size} by thread {self.thread}"
        )


@dataclass(frozen=True)
class Report:
    """What a launch found: the first violations in order of threadgroup and thread, and how many there were in all.

    ``work`` is what a kernel compiled for counting executed; nothing for others.
    """

    violations: tuple[Violation, ...] = ()
    violation_count: int = 0
    work: Work = Work()  # noqa: RUF009 - frozen, so sharing it is safe


@dataclass
class _Copy:
    """A copy of a program in memory; ``engine`` owns the code."""

    engine: Any
    run: Any


@dataclass(frozen=True)
class _Bindings:
    """Argument values of one launch: the table of words, the tagged buffers, and what must stay alive meanwhile.

    ``threadgroup`` lists the arguments in threadgroup memory as (index of the argument, tag, bytes).
    """

    words: NDArray[np.uint64]
    buffers: NDArray[np.uint64]
    names: list[str]
    alive: list[NDArray[Any]]
    threadgroup: list[tuple[int, int, int]]
    checked: bool

    def for_worker(self) -> _Bindings:
        """The same for one worker, with threadgroup memory of its own (poisoned, like the kernel's)."""
        words, buffers, alive = self.words.copy(), self.buffers.copy(), []
        for index, tag, size in self.threadgroup:
            memory = np.full(size, 0xFF, np.uint8)
            alive.append(memory)
            words[index], buffers[tag] = _located(memory, tag, checked=self.checked)
        return _Bindings(words, buffers, self.names, [*self.alive, *alive], [], self.checked)


class Kernel:
    """A kernel ready to launch. Safe to use from several threads; each launch is synchronous."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.signature = program.signature
        self._copies: list[_Copy] = []
        self._lock = threading.Lock()

    def launch(
        self, arguments: Mapping[str, Any], *, threads: Size | None = None, groups: Size | None = None, group: Size
    ) -> Report:
        """Run the kernel over a grid, given in ``threads`` (edge threadgroups are cut) or in whole ``groups``.

        Parameters
        ----------
        arguments
            By argument name. Memory is a C-contiguous array, used in place; anything else (a number, a sequence, a
            mapping of struct fields) is packed as the kernel declares it. Threadgroup memory takes its bytes as an int,
            a table of buffers a sequence of arrays.
        group
            Threads of a threadgroup in x, y, z.

        Raises
        ------
        ValueError
            A missing or unknown argument, a value that does not fit it, or a grid or group out of range.
        """
        group = _triple(self.signature.name, "group", group)
        grid = _grid(self.signature.name, threads, groups, group, self.signature.max_threads)
        bindings = _bind(self.signature.name, self.signature.arguments, arguments, checked=self.program.mode.checked)
        counts = [-(-extent // size) for extent, size in zip(grid, group, strict=True)]
        total = counts[0] * counts[1] * counts[2]
        if total == 0:
            return Report()
        threads_all = grid[0] * grid[1] * grid[2]
        workers = min(_cores(), total) if threads_all >= _PARALLEL_THREADS else 1
        logs, executed = self._run(bindings, [*grid, *group, *counts], total, workers)
        report = self._report(logs, bindings, grid, group, counts)
        return replace(report, work=self._work(executed)) if self.program.blocks else report

    def _work(self, executed: NDArray[np.uint64]) -> Work:
        """What the blocks did, from how often each ran."""
        times = map(int, executed)
        return sum((block.times(count) for block, count in zip(self.program.blocks, times, strict=True)), Work())

    def _run(
        self, bindings: _Bindings, sizes: list[int], total: int, workers: int
    ) -> tuple[list[NDArray[np.int64]], NDArray[np.uint64]]:
        """The violation logs of the workers, and how often each counted block ran."""
        copies = self._take(workers)
        executed = np.zeros((workers, len(self.program.blocks)), np.uint64)
        logs = [np.zeros((_LOG_CAPACITY + 1, _RECORD_WORDS), np.int64) for _ in copies]
        chunk = max(1, total // (8 * workers)) if workers > 1 else total
        ticket = iter(range(0, total, chunk))
        lock = threading.Lock()

        def work(copy: _Copy, log: NDArray[np.int64], counters: NDArray[np.uint64]) -> None:
            own = bindings.for_worker()
            log[0, 1] = _LOG_CAPACITY
            context = np.zeros(CONTEXT_WORDS, np.uint64)
            context[:9] = sizes
            context[9] = own.words.ctypes.data
            context[10] = len(own.names)
            context[11] = own.buffers.ctypes.data
            context[12] = log.ctypes.data
            context[COUNTERS_WORD] = counters.ctypes.data
            while True:
                with lock:
                    begin = next(ticket, None)
                if begin is None:
                    return
                copy.run(context.ctypes.data, begin, min(begin + chunk, total))

        try:
            if workers == 1:
                work(copies[0], logs[0], executed[0])
            else:
                list(_pool().map(work, copies, logs, executed))
        finally:
            with self._lock:
                self._copies += copies
        return logs, executed.sum(axis=0)

    def _take(self, count: int) -> list[_Copy]:
        with self._lock:
            taken, self._copies = self._copies[:count], self._copies[count:]
        while len(taken) < count:
            engine, address = loaded(self.program)
            taken.append(_Copy(engine, _RUN(address)))
        return taken

    def _report(
        self, logs: list[NDArray[np.int64]], bindings: _Bindings, grid: Size, group: Size, counts: list[int]
    ) -> Report:
        count = sum(int(log[0, 0]) for log in logs)
        if not count:
            return Report()
        rows = np.concatenate([log[1 : 1 + min(int(log[0, 0]), _LOG_CAPACITY)] for log in logs])
        ordered = sorted(rows.tolist(), key=lambda row: (row[5], row[4]))
        found = []
        for tag, offset, size, kind, tid, group_index, *_ in ordered[:_LOG_CAPACITY]:
            known = 0 < tag <= len(bindings.names)
            name = bindings.names[tag - 1] if known else _UNBOUND[tag == 0]
            begin, end = bindings.buffers[tag, 1:].tolist() if known else (0, 0)
            length = end - begin if known else None
            thread = _thread(group_index, tid, grid, group, counts)
            found.append(Violation(self.signature.name, name, _KINDS[kind], offset - begin, size, length, thread))
        return Report(tuple(found), count)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_POOL: list[ThreadPoolExecutor] = []


def _pool() -> ThreadPoolExecutor:
    if not _POOL:
        _POOL.append(ThreadPoolExecutor(_cores(), thread_name_prefix="air"))
    return _POOL[0]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.clear)  # a forked child has none of its parent's threads


def _thread(group_index: int, tid: int, grid: Size, group: Size, counts: list[int]) -> Size:
    """Position in the grid of thread ``tid`` of a threadgroup."""
    at = (group_index % counts[0], group_index // counts[0] % counts[1], group_index // (counts[0] * counts[1]))
    origin = [position * size for position, size in zip(at, group, strict=True)]
    sx, sy, _ = (min(size, extent - start) for size, extent, start in zip(group, grid, origin, strict=True))
    return origin[0] + tid % sx, origin[1] + tid // sx % sy, origin[2] + tid // (sx * sy)


def _grid(kernel: str, threads: Size | None, groups: Size | None, group: Size, limit: int) -> Size:
    if (threads is None) == (groups is None):
        raise ValueError(f"kernel {kernel}: give either threads or groups as the grid, not both and not neither")
    if min(group) < 1 or group[0] * group[1] * group[2] > min(limit, MAX_THREADS):
        raise ValueError(f"kernel {kernel}: group {group} must have 1 to {min(limit, MAX_THREADS)} threads")
    if threads is not None:
        grid = _triple(kernel, "threads", threads)
    else:
        x, y, z = _triple(kernel, "groups", groups)
        grid = (x * group[0], y * group[1], z * group[2])
    if any(not 0 <= extent < 1 << 32 for extent in grid):
        raise ValueError(f"kernel {kernel}: grid {grid} must have 0 to 2**32 - 1 threads in each direction")
    return grid


def _triple(kernel: str, what: str, size: Any) -> Size:
    """Three Python integers, whatever integers were given (NumPy's would overflow)."""
    try:
        x, y, z = (operator.index(extent) for extent in size)
    except (TypeError, ValueError):
        raise ValueError(f"kernel {kernel}: {what} must be three integers, given {size!r}") from None
    return x, y, z


def _located(memory: NDArray[Any], tag: int, *, checked: bool) -> tuple[int, tuple[int, int, int]]:
    """The word by which a kernel knows ``memory``, and its row in the table of buffers."""
    start = memory.ctypes.data
    begin = start % _ALIGNMENT
    return (tag << _TAG_BIT) + _CENTRE + begin if checked else start, (start - begin, begin, begin + memory.nbytes)


def _bind(kernel: str, declared: Sequence[Argument], given: Mapping[str, Any], *, checked: bool) -> _Bindings:
    if not isinstance(given, Mapping):
        raise ValueError(f"kernel {kernel}: give the arguments as a mapping, not {type(given).__name__}")
    wanted = {argument.name for argument in declared if argument.is_buffer}
    if set(given) != wanted:
        raise ValueError(
            f"kernel {kernel}: missing arguments {sorted(wanted - set(given))}, "
            f"unknown {sorted(set(given) - wanted, key=str)}"
        )
    words = np.zeros(max(len(declared), 1), np.uint64)
    names: list[str] = []
    rows = [(0, 0, 0)]
    alive: list[NDArray[Any]] = []

    def address(name: str, memory: NDArray[Any]) -> int:
        alive.append(memory)
        names.append(name)
        if len(names) > _MAX_BUFFERS:
            raise ValueError(f"kernel {kernel}: argument {name!r} is one buffer more than {_MAX_BUFFERS}")
        word, row = _located(memory, len(names), checked=checked)
        rows.append(row)
        return word

    threadgroup = []
    for index, argument in enumerate(declared):
        if argument.is_buffer and argument.address_space == 3:
            size = _threadgroup_bytes(kernel, argument.name, given[argument.name])
            names.append(argument.name)
            rows.append((0, 0, size))  # every worker has its own: see ``for_worker``
            threadgroup.append((index, len(names), size))
        elif argument.is_buffer:
            words[index] = address(argument.name, _memory(kernel, argument, given[argument.name], address))
    return _Bindings(words, np.array(rows, np.uint64), names, alive, threadgroup, checked)


def _threadgroup_bytes(kernel: str, name: str, value: Any) -> int:
    try:
        size = operator.index(value)
    except TypeError:
        size = -1
    if not 0 <= size <= _THREADGROUP_BYTES:
        raise ValueError(
            f"kernel {kernel}: argument {name!r} is threadgroup memory: give its bytes, 0 to {_THREADGROUP_BYTES}"
        )
    return size


def _memory(kernel: str, argument: Argument, value: Any, address: Any) -> NDArray[Any]:
    """The memory behind an argument: an array as it is, else ``value`` packed."""
    if argument.kind == "indirect_buffer":
        if not isinstance(value, Sequence) or not all(isinstance(item, np.ndarray) for item in value):
            raise ValueError(f"kernel {kernel}: argument {argument.name!r} is a table of buffers: give arrays")
        names = [f"{argument.name}[{i}]" for i in range(len(value))]
        memories = [_array(kernel, name, item, writable=False) for name, item in zip(names, value, strict=True)]
        return np.array([address(name, item) for name, item in zip(names, memories, strict=True)], np.uint64)
    if isinstance(value, np.ndarray) and (value.ndim or argument.writable):
        return _array(kernel, argument.name, value, writable=argument.writable)
    return argument.pack(value)


def _array(kernel: str, name: str, value: NDArray[Any], *, writable: bool) -> NDArray[Any]:
    if not value.flags.c_contiguous:
        raise ValueError(f"kernel {kernel}: argument {name!r} must be C-contiguous memory")
    if value.dtype.hasobject:
        raise ValueError(f"kernel {kernel}: argument {name!r} holds Python objects, which are no memory for a kernel")
    if writable and not value.flags.writeable:
        raise ValueError(f"kernel {kernel}: argument {name!r} is written, but its array is read-only")
    return value
