"""Kernels whose threads cooperate, as LLVM coroutines: one a thread, suspended where threads meet.

LLVM splits the kernel at every meeting point and keeps what is still needed in a frame, usually a few hundred bytes,
so no stacks are switched, no assembly is written, and the same code serves x86-64 and arm64. The scheduler
(``scheduler.py``) resumes lanes. Which lanes meet is decided by the lowest meeting point first; points are therefore
numbered in loop-nest order (joins after both arms, exits after loop bodies), never in the order of the text, in which
Apple's compiler puts loops behind their exits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from metal_ops.air.lowering import matrix
from metal_ops.air.lowering.errors import LoweringError
from metal_ops.air.lowering.simdgroup import OPERAND_BYTES, collective, is_cooperative, is_threadgroup_barrier
from metal_ops.air.lowering.text import Declaration, Function, split

_CALL = re.compile(r"^  (?:(%\S+) = )?call (.+?) @([\w.]+)\((.*)\)$")
_TARGET = re.compile(r"label %([\w.]+)")
_PHI_EDGE = re.compile(r"%([\w.]+) \]")


@dataclass(frozen=True)
class Block:
    """A basic block: its label, its instructions, the labels it can go to."""

    label: str
    lines: list[str]

    @property
    def successors(self) -> list[str]:
        """Labels of the blocks that its terminator names."""
        return _TARGET.findall(self.lines[-1]) if self.lines else []


def blocks(function: Function) -> list[Block]:
    """The basic blocks of a function in textual order."""
    found: list[Block] = []
    for line in function.body:
        if line.endswith(":") and not line.startswith(" "):
            found.append(Block(line[:-1], []))
        else:
            found[-1].lines.append(line)
    return found


def loop_nest_order(function: Function) -> list[str]:
    """Labels in an order in which a block follows all that can precede it within one turn of each loop around it."""
    import networkx as nx

    parts = blocks(function)
    number = {block.label: index for index, block in enumerate(parts)}
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(parts)))
    graph.add_edges_from((number[b.label], number[target]) for b in parts for target in b.successors)

    def order(nodes: list[int], predecessors: set[int]) -> list[int]:
        part = graph.subgraph(nodes)
        condensed = nx.condensation(part)
        ordered: list[int] = []
        parts_of = {component: sorted(condensed.nodes[component]["members"]) for component in condensed}
        for component in nx.lexicographical_topological_sort(condensed, key=lambda c: parts_of[c][0]):
            members = parts_of[component]
            if len(members) == 1:
                ordered += members
                continue
            outside = predecessors | set(ordered)
            entries = [node for node in members if any(p in outside for p in graph.predecessors(node))]
            header = entries[0] if entries else members[0]
            ordered.append(header)
            rest = [node for node in members if node != header]
            ordered += order(rest, {header})
        return ordered

    return [parts[index].label for index in order(list(range(len(parts))), set())]


@dataclass
class Cooperation:
    """A kernel turned into a coroutine, with the collective functions that its meeting points call."""

    text: str
    collectives: str
    sites: int


_PROLOGUE = """  %air.id = call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)
  %air.size = call i64 @llvm.coro.size.i64()
  %air.memory = call ptr @air.frame(i64 %air.size, i32 %air.tid)
  %air.handle = call ptr @llvm.coro.begin(token %air.id, ptr %air.memory)
  %air.slot = getelementptr [64 x i8], ptr @air.slots, i32 %air.tid
  %air.site = getelementptr i32, ptr @air.sites, i32 %air.tid
  %air.operation = getelementptr ptr, ptr @air.operations, i32 %air.tid""".split("\n")

_EPILOGUE = """air.done:
  store i32 -1, ptr %air.site
  store ptr null, ptr %air.operation
  br label %air.suspend
air.cleanup:
  br label %air.suspend
air.suspend:
  call void @llvm.coro.end(ptr %air.handle, i1 false, token none)
  ret ptr %air.handle""".split("\n")


def _meeting(number: int, label: str, result: str, type_: str, arguments: list[str], operation: str) -> list[str]:
    """Store the operands, say where this thread waits, suspend, and read the result under a new label."""
    lines = []
    if operation != "null":
        for index, argument in enumerate(arguments):
            operand = f"%air.operand.{number}.{index}"
            lines += [
                f"  {operand} = getelementptr i8, ptr %air.slot, i32 {index * OPERAND_BYTES}",
                f"  store {argument}, ptr {operand}, align 16",
            ]
    lines += [
        f"  store i32 {number}, ptr %air.site",
        f"  store ptr {operation}, ptr %air.operation",
        f"  %air.state.{number} = call i8 @llvm.coro.suspend(token none, i1 false)",
        f"  switch i8 %air.state.{number}, label %air.suspend [ i8 0, label %{label} i8 1, label %air.cleanup ]",
        f"{label}:",
    ]
    if result:
        lines.append(f"  {result} = load {type_}, ptr %air.slot, align 16")
    return lines


def transform(function: Function, declarations: dict[str, Declaration]) -> Cooperation:
    """Make a coroutine of a kernel into which every helper has been inlined."""
    rank = {label: index for index, label in enumerate(loop_nest_order(function))}
    parts = blocks(function)
    numbers = _number_sites(parts, rank)
    collectives: dict[str, str] = {}
    final: dict[str, str] = {}
    body: list[str] = []
    for block in parts:
        body.append(f"{block.label}:")
        if block is parts[0]:
            body += [line for line in block.lines if " = alloca " in line]
            body += _PROLOGUE
        for position, line in enumerate(block.lines):
            if block is parts[0] and " = alloca " in line:
                continue
            match = _CALL.match(line)
            if match is None or not is_cooperative(match[3]):
                body.append("  br label %air.done" if line == "  ret void" else line)
                continue
            number = numbers[block.label, position]
            operation = _operation(declarations[match[3]], collectives)
            label = f"air.resume.{number}"
            body += _meeting(number, label, match[1] or "", match[2], split(match[4]), operation)
            final[block.label] = label
    body = [_redirected(line, final) if " = phi " in line else line for line in body]
    parameters = ", ".join([*(f"{p.type} {p.name}" for p in function.parameters), "i32 %air.tid"])
    head = f"define internal ptr @air.thread({parameters}) presplitcoroutine #2 {{"
    return Cooperation("\n".join([head, *body, *_EPILOGUE, "}"]), "\n".join(collectives.values()), len(numbers))


def _redirected(phi: str, final: dict[str, str]) -> str:
    """A phi whose predecessors are the last parts of blocks that have been split."""
    return _PHI_EDGE.sub(lambda match: f"%{final.get(match[1], match[1])} ]", phi)


def _number_sites(parts: list[Block], rank: dict[str, int]) -> dict[tuple[str, int], int]:
    sites = []
    for block in parts:
        if block.label not in rank:
            raise LoweringError(f"block {block.label} is missing from the loop-nest order")
        for position, line in enumerate(block.lines):
            match = _CALL.match(line)
            if match and is_cooperative(match[3]):
                sites.append((rank[block.label], position, block.label))
    return {(label, position): number for number, (_, position, label) in enumerate(sorted(sites))}


def _operation(declaration: Declaration, collectives: dict[str, str]) -> str:
    if is_threadgroup_barrier(declaration.name):
        return "null"
    made = matrix.multiply if declaration.name.startswith(matrix.MULTIPLY) else collective
    name, text = made(declaration)
    collectives.setdefault(name, text)
    return f"@{name}"
