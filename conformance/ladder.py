"""The cases of the property ``variants``: one for each kernel that a host may choose for an elementwise op.

GPU backends have several kernels for one function and choose by what they see of the operands: dense, strided or in
contiguous runs, few or many elements, a number or a row against a whole tensor, element types that differ, a result
of another type. Which of them there are differs; the situations that lead to them are the same, and listed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil, floor, frexp, inf
from typing import TYPE_CHECKING

from conformance.case import Case, TensorSpec
from conformance.dtypes import dtype as dtype_of
from conformance.expectation import results_of
from conformance.formats import component
from conformance.layout import Layout
from conformance.values import Values

if TYPE_CHECKING:
    from conformance.op import Ladder, Op, Params

LARGE = 1 << 18
"""Elements from which a thread takes several, of the types in which most is computed, and of predicates."""

_PERIOD = 509
"""Numbers of a large operand that differ: a prime, so that no vector or group of threads sees the same again."""

_NARROWER = {
    "float32": "float16",
    "complex64": "float32",
    "int64": "int32",
    "int32": "int16",
    "int16": "int8",
    "int8": "bool",
    "uint8": "bool",
    "bool": None,
}
"""For each element type another that promotes to it; of those not listed ``uint8`` does, as a number at least."""

_LARGEST_INTEGER = 5
"""Powers and products of so small integers stay within every integer type, and so does a shift."""

_STORED = ("float32", "float16", "complex64", "complex32")
"""Element types of ``out=``: the first to which torch casts the result is taken, unless it is the result's own."""


@dataclass(frozen=True)
class Operand:
    """Where an operand of a rung lies: its shape and layout; with ``other`` it has another type where types differ."""

    shape: tuple[int, ...]
    layout: Layout = Layout()  # noqa: RUF009 - frozen, so sharing it is safe
    other: bool = False


_WHOLE = Operand((4, 6))
_GAPS = Operand((4, 6), Layout(steps=(1, 2), offset=3))
_RUNS = Operand((3, 16), Layout(pads=(0, 5), offset=1))
_MANY = Operand((LARGE,))

ALONE: dict[str, tuple[Operand, ...]] = {
    "dense": (_WHOLE,),
    "large": (_MANY,),
    "runs": (_RUNS,),
    "strided": (_GAPS,),
}
"""Layouts of one operand."""

PAIRED: dict[str, tuple[Operand, Operand]] = {
    "dense": (_WHOLE, replace(_WHOLE, other=True)),
    "large": (_MANY, _MANY),
    "runs": (_RUNS, Operand((3, 16))),
    "strided": (_GAPS, replace(_WHOLE, other=True)),
    "row": (_WHOLE, Operand((6,), other=True)),
    "row first": (Operand((6,), other=True), _WHOLE),
    "number": (_WHOLE, Operand((), other=True)),
    "number first": (Operand((), other=True), _WHOLE),
    "strided, number": (_GAPS, Operand((), other=True)),
}
"""Layouts of two operands; the types differ in those where one is marked, once more."""

TRIPLED: dict[str, tuple[Operand, Operand, Operand]] = {
    "dense": (_WHOLE, replace(_WHOLE, other=True), _WHOLE),
    "large": (_MANY, _MANY, _MANY),
    "strided": (_GAPS, replace(_WHOLE, other=True), _WHOLE),
    "row": (_WHOLE, _WHOLE, Operand((6,), other=True)),
    "number": (_WHOLE, Operand((), other=True), _WHOLE),
    "number first": (Operand((), other=True), _WHOLE, _WHOLE),
}
"""Layouts of three operands."""

_LAYOUTS: dict[int, Mapping[str, tuple[Operand, ...]]] = {1: ALONE, 2: PAIRED, 3: TRIPLED}
"""By the number of operands."""

_STORING = {1: ("dense", "runs", "strided"), 2: ("dense",), 3: ("dense", "strided")}
"""By the number of operands: layouts with which a result of another type is stored."""


_WORKLOADS = (1 << 10, 1 << 16, 1 << 20)
"""Elements of an operand with which an op is measured: what a launch costs, what fits a cache, and what does not."""


def workloads(op: Op, dtype: str) -> list[Case]:
    """The cases with which an op is measured: dense operands of one type and shape, small to large.

    Raises
    ------
    ValueError
        If the op has no ladder.
    """
    if op.ladder is None:
        raise ValueError(f"op {op.name} has no ladder, and no workloads of its own")
    params = next(iter(op.ladder.params(dtype)), {})
    alike = [(Operand((size,)),) * len(op.ladder.domains) for size in _WORKLOADS]
    return [_case(op, op.ladder, dtype, operands, params) for operands in alike]


def rungs(op: Op, dtype: str) -> Iterator[Case]:
    """The cases of an op and element type, none where torch refuses it; each has few elements or repeats few numbers.

    Raises
    ------
    ValueError
        If the op has no ladder, or not one to three operands.
    """
    if op.ladder is None:
        raise ValueError(f"op {op.name} has no ladder, yet lists the property variants")
    layouts = _LAYOUTS.get(len(op.ladder.domains))
    if layouts is None:
        raise ValueError(f"op {op.name}: a ladder is climbed with 1 to 3 operands, given: {len(op.ladder.domains)}")
    for params in op.ladder.params(dtype):
        plainest = _case(op, op.ladder, dtype, layouts["dense"], params)
        if results_of(op, plainest) is None:  # torch refuses the type
            continue
        for kind in (_alike, _mixed, _stored):
            for case in kind(op, op.ladder, dtype, layouts, params, plainest):
                if op.ladder.avoid is None or not op.ladder.avoid(case):
                    yield case


def _alike(
    op: Op, ladder: Ladder, dtype: str, layouts: Mapping[str, tuple[Operand, ...]], params: Params, plainest: Case
) -> Iterator[Case]:
    """With operands of one type, each layout once. Many elements only where the result's type gives hosts a choice."""
    results = results_of(op, plainest)
    chooses = results is None or all(dtype_of(name).kind in ("float", "bool") for name, _ in results)
    for name, operands in layouts.items():
        if name != "large" or chooses:
            yield _case(op, ladder, dtype, operands, params)


def _mixed(
    op: Op, ladder: Ladder, dtype: str, layouts: Mapping[str, tuple[Operand, ...]], params: Params, plainest: Case
) -> Iterator[Case]:
    """With operands of two types; those that all become floats come with the floats' own ladder."""
    narrower = _NARROWER.get(dtype, "uint8")
    results = results_of(op, plainest)
    integral = dtype_of(dtype).kind == "int" and results and dtype_of(results[0][0]).kind == "float"
    if len(ladder.domains) == 1 or not ladder.mixed or narrower is None or integral:
        return
    for operands in layouts.values():
        if any(operand.other for operand in operands) and _promotes(dtype, narrower, operands):
            yield _case(op, ladder, dtype, operands, params, narrower)


def _promotes(dtype: str, narrower: str, operands: tuple[Operand, ...]) -> bool:
    """Whether torch has a common type for the operands: some types promote with numbers only."""
    import torch

    types = [narrower if operand.other else dtype for operand in operands]
    first, *others = (
        torch.empty(operand.shape, dtype=getattr(torch, name), device="meta")
        for operand, name in zip(operands, types, strict=True)
    )
    try:
        for other in others:
            torch.result_type(first, other)
    except RuntimeError:
        return False
    return True


def _stored(
    op: Op, ladder: Ladder, dtype: str, layouts: Mapping[str, tuple[Operand, ...]], params: Params, plainest: Case
) -> Iterator[Case]:
    """With a result of another type than the op's own, where a function of the op takes one."""
    results = results_of(op, plainest)
    if op.out is None or results is None or len(results) != 1:
        return
    target = _another(results[0][0])
    if target is None:
        return
    for operands in [layouts[name] for name in _STORING[len(ladder.domains)]]:
        case = _case(op, ladder, dtype, operands, params)
        yield replace(case, out=TensorSpec(target, operands[0].shape, Layout(offset=1)))


def _another(dtype: str) -> str | None:
    import torch

    source = getattr(torch, dtype)
    names = (name for name in _STORED if name != dtype and torch.can_cast(source, getattr(torch, name)))
    return next(names, None)


def _case(
    op: Op, ladder: Ladder, dtype: str, operands: tuple[Operand, ...], params: Params, narrower: str | None = None
) -> Case:
    specs = []
    for seed, (operand, domain) in enumerate(zip(operands, ladder.domains, strict=True), 1):
        own = narrower if operand.other and narrower is not None else dtype
        divides = seed - 1 in ladder.divisors and own == "bool"
        recipe = Values("constant", params={"value": "1"}) if divides else within(own, domain, seed)
        if operand.shape == (LARGE,):
            recipe = Values("cycle", params={"of": recipe.to_json(), "period": _PERIOD})
        specs.append(TensorSpec(own, operand.shape, operand.layout, recipe))
    return Case(op.name, dtype, "variants", tuple(specs), {**op.default_params, **params})


def within(dtype: str, domain: tuple[float, float] | None, seed: int) -> Values:
    """Moderate numbers in the ``domain`` of an op; integers positive and small, so that none wraps."""
    low, high = domain or (-inf, inf)
    if dtype == "bool":
        return Values("integers", seed, {"low": 0, "high": 1})
    if not component(dtype_of(dtype)).is_float:
        most = floor(min(high, _LARGEST_INTEGER))
        return Values("integers", seed, {"low": min(ceil(max(low, 1)), most), "high": most})
    largest = max(abs(low), abs(high))
    top = 2 if largest == inf else min(2, frexp(largest)[1] - 2)
    sign = "positive" if low >= 0 else "negative" if high <= 0 else "both"
    bottom = max(0, frexp(low)[1]) if low >= 1 else top - 4
    return Values("moderate", seed, {"low": bottom, "high": max(top, bottom), "sign": sign})
