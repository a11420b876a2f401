"""Cases of ops that multiply and sum over a dimension: matrices, vectors, batches of them, groups, scaled factors.

Kernels change with the sizes of the result, with what is summed, and with how matrices lie in memory. Most cases are
small; some have one size either side of where a kernel's tile, vector or run ends, and few are long in one of the three
dimensions. A matrix is as often transposed, or cut from a wider one, as it is dense.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st

from conformance.case import Case, TensorSpec, literal
from conformance.dtypes import dtype as dtype_of
from conformance.formats import component
from conformance.layout import Layout
from conformance.strategies.layouts import layouts
from conformance.strategies.rarely import one_in
from conformance.strategies.shapes import Shape
from conformance.strategies.values import values
from conformance.values import Special, Values

Kind = Literal["matrices", "batches", "vector", "vectors", "any", "layer"]

_SEEDS = st.integers(0, 2**32 - 1)

_EDGES = (7, 8, 9, 15, 16, 17, 31, 32, 33)
_LONG = (63, 64, 65, 100, 127, 128, 129, 255, 257, 511, 512, 513, 1000, 1025, 2047, 2049, 4097)
"""What is summed: either side of the strides of SIMD groups that share a sum, and odd numbers between."""

_WIDE = (255, 257, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4097)
"""Columns of a result of one row: either side of where tiles of columns end, or kernels change."""

_WIDEST = (8191, 8192, 8193)
_PASSED = ((), ("beta",), ("alpha", "beta"), ("alpha",), ())
"""The factors that cases pass, each as often."""

_NOT_READ: Special = (0, 1 << 30, "nan")
"""What an addend may be where its factor is 0, which must keep it out of the result."""

_RARE = 12
"""One case of so many has no elements somewhere, or a result as wide as the widest."""

_HARD = 3
"""One operand of so many has values of all kinds; the others such as sums can be told from wrong ones by."""

_WHOLE = 3
"""Of so many addends one does not have the shape of the result, but broadcasts to it."""


def contraction_cases(
    op: str, dtype: str, property: str, *, kind: Kind, addend: bool = False, bias: bool = False
) -> st.SearchStrategy[Case]:
    """Cases of a product of two operands, and of its sum with a third.

    Parameters
    ----------
    op, dtype, property
        As in the case.
    kind
        What is multiplied: two ``matrices``, two ``batches`` of them, a matrix and a ``vector``, two ``vectors``,
        ``any`` of these with batches that broadcast, or a ``layer``'s input of any rank and weights that are given
        transposed.
    addend
        Whether a tensor that broadcasts to the result comes first; then ``alpha`` and ``beta`` may be passed as well.
    bias
        Whether a vector of the last dimension comes last.
    """

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        left, right, result = draw(_shapes(kind))
        shapes = [left, right]
        params: dict[str, Any] = {}
        if addend:
            shapes.insert(0, draw(_broadcasting(result)))
            params = draw(_factors(dtype))
        if bias:
            shapes.append(result[-1:])
        specs = [draw(_operand(dtype, shape)) for shape in shapes]
        if params.get("beta") == 0 and component(dtype_of(dtype)).is_float and draw(st.integers(0, 2)) < 2:
            specs[0] = replace(specs[0], values=replace(specs[0].values, specials=(_NOT_READ,)))
        return Case(op, dtype, property, tuple(specs), params)

    return case()


def group_cases(op: str, dtype: str, property: str) -> st.SearchStrategy[Case]:
    """Cases of products in groups, with the tensor ``offs`` of where each group ends, by keyword.

    Rows of one operand are split, or columns of the other, or what is summed; or nothing is, and there are no groups.
    Groups may be empty. Every row or column belongs to a group: what becomes of others nobody says. Matrices lie as
    hardware wants them: dense in one dimension, with steps in the other, and an offset, of multiples of 16 bytes.
    """

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        count = draw(st.sampled_from((1, 2, 3, 4, 8, 33)))
        split = draw(st.sampled_from(("rows", "rows", "rows", "columns", "sum", "nothing")))
        ends = draw(_ends(count, 40))
        sizes = {"rows": draw(_extent), "columns": draw(_extent), "sum": draw(st.one_of(_extent, _inner))}
        if split != "nothing":
            sizes[split] = ends[-1]
        left: Shape = (sizes["rows"], sizes["sum"])
        right: Shape = (sizes["sum"], sizes["columns"])
        left = left if split in ("rows", "sum") else (count, *left)
        right = right if split in ("columns", "sum") else (count, *right)
        specs = [draw(_matrix(dtype, shape)) for shape in (left, right)]
        if split == "nothing":
            return Case(op, dtype, property, tuple(specs))
        offsets = literal(np.array(ends, np.int32), "int32")
        return Case(op, dtype, property, (*specs, offsets), named=("offs",))

    return case()


def _matrix(dtype: str, shape: Shape) -> st.SearchStrategy[TensorSpec]:
    return st.builds(TensorSpec, st.just(dtype), st.just(shape), aligned_layouts(dtype, shape), _recipe(dtype))


@st.composite
def aligned_layouts(draw: st.DrawFn, dtype: str, shape: Shape) -> Layout:
    """A matrix, or a batch, dense in one dimension; offset and all other steps are multiples of 16 bytes."""
    vector = 16 // dtype_of(dtype).itemsize
    rank = len(shape)
    plain = tuple(range(rank))
    order = draw(st.sampled_from((plain, (*plain[:-2], rank - 1, rank - 2))))
    rest = -max(shape[order[-1]], 1) % vector + vector * draw(st.sampled_from((0, 0, 0, 1)))
    offset = vector * draw(st.sampled_from((0, 0, 1, 2)))
    return Layout(order=order, pads=tuple(rest if dim == order[-1] else 0 for dim in plain), offset=offset)


def scaled_cases(op: str, dtype: str, property: str) -> st.SearchStrategy[Case]:
    """Cases of a product of matrices of 8-bit floats with scales, one for each matrix, or for each row and column.

    What is summed and the columns come in multiples of 16, the right matrix lies column by column; both lie at
    multiples of 16 bytes. A scale is any finite number of a moderate size, 0 or NaN: with an infinite one the result
    depends on whether single terms are scaled or their sum.
    """

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        rows = draw(st.sampled_from((1, 2, 3, 4, 5, 8, 31, 32, 33)))
        columns = 16 * draw(st.sampled_from((1, 1, 2, 3, 4)))
        inner = 16 * draw(st.one_of(st.integers(1, 4), st.sampled_from((8, 31, 32, 33, 64, 65))))
        by_row = draw(st.booleans())
        kind = draw(st.sampled_from(("bfloat16", "bfloat16", "float16", "float32", "float8_e4m3fn")))
        left = TensorSpec(dtype, (rows, inner), draw(_in_sixteens((0, 1))), draw(_codes(dtype)))
        right = TensorSpec(dtype, (inner, columns), draw(_in_sixteens((1, 0))), draw(_codes(dtype)))
        shapes: Sequence[Shape] = ((rows, 1), (1, columns)) if by_row else ((1,), (1,))
        scales = [TensorSpec("float32", shape, values=draw(_scales())) for shape in shapes]
        recipe = "torch.nn.functional.ScalingType." + ("RowWise" if by_row else "TensorWise")
        params = {"scale_recipe_a": recipe, "scale_recipe_b": recipe, "output_dtype": f"torch.{kind}"}
        specs, named = [left, right, *scales], ["scale_a", "scale_b"]
        if kind != "float32" and draw(st.booleans()):
            own = draw(st.sampled_from(("bfloat16", "float16"))) if kind == "float8_e4m3fn" else kind
            specs.append(TensorSpec(own, (columns,), values=draw(_recipe(own))))
            named.append("bias")
        return Case(op, dtype, property, tuple(specs), params, named=tuple(named))

    return case()


_extent = st.one_of(st.integers(1, 6), st.integers(1, 6), st.sampled_from(_EDGES))
_inner = st.sampled_from(_LONG)


@st.composite
def _sizes(draw: st.DrawFn) -> tuple[int, int, int]:
    """Rows, what is summed, and columns."""
    regime = draw(st.integers(0, 7))
    small = st.integers(1, 6)
    if regime <= 1:
        sizes = draw(small), draw(small), draw(small)
    elif regime <= 3:
        sizes = draw(_extent), draw(_extent), draw(_extent)
    elif regime == 4:
        sizes = draw(st.integers(1, 4)), draw(_inner), draw(st.integers(1, 4))
    else:  # one row or one column
        wide = draw(one_in(_RARE, st.sampled_from(_WIDEST), st.one_of(small, st.sampled_from(_EDGES + _WIDE))))
        inner = draw(_inner if wide <= _EDGES[-1] else st.sampled_from((1, 2, 3, 5, 7, 8, 16)))
        sizes = (wide, inner, 1) if regime == 6 else (1, inner, wide)
    if draw(one_in(_RARE, st.just(True), st.just(False))):
        place = draw(st.integers(0, 2))
        return sizes[0] * (place != 0), sizes[1] * (place != 1), sizes[2] * (place != 2)
    return sizes


@st.composite
def _shapes(draw: st.DrawFn, kind: Kind) -> tuple[Shape, Shape, Shape]:
    """The shapes of both factors and of the product."""
    rows, inner, columns = draw(_sizes())
    if kind == "vectors":
        return (inner,), (inner,), ()
    if kind == "vector":
        return (rows, inner), (inner,), (rows,)
    if kind == "matrices":
        return (rows, inner), (inner, columns), (rows, columns)
    few = st.integers(1, 3) if max(rows, inner, columns) <= _EDGES[-1] else st.integers(1, 2)
    if kind == "batches":
        batch = draw(one_in(_RARE, st.just(0), st.one_of(few, st.integers(1, 7)) if rows * columns <= 64 else few))
        return (batch, rows, inner), (batch, inner, columns), (batch, rows, columns)
    if kind == "layer":
        leading = draw(
            st.sampled_from(((), (rows,), (rows,), (1, rows), (rows, 1), (2, rows), (rows, 1, 2), (1, 1, 1)))
        )
        return (*leading, inner), (columns, inner), (*leading, columns)
    batch_shape: Shape = draw(st.lists(few, max_size=3).map(tuple))
    one, two = draw(_part(batch_shape)), draw(_part(batch_shape))
    left: Shape = (*one, rows, inner)
    right: Shape = (*two, inner, columns)
    which = draw(st.integers(0, 7))
    if which == 0:
        left = (inner,)
    if which in (0, 1):
        right = (inner,) if draw(st.booleans()) else right
    if which == 2:
        right = (inner,)
    return left, right, ()


@cache
def _part(shape: Shape) -> st.SearchStrategy[Shape]:
    """A shape that broadcasts to another: with sizes of 1, or without leading dimensions."""
    masks = st.integers(0, (1 << len(shape)) - 1)
    masked = masks.map(lambda mask: tuple(1 if mask >> dim & 1 else size for dim, size in enumerate(shape)))
    return st.one_of(masked, st.integers(0, len(shape)).map(lambda cut: shape[cut:]))


def _broadcasting(result: Shape) -> st.SearchStrategy[Shape]:
    """The shape of an addend: mostly all of the result's.

    Of a result without elements always, for torch gives addmv the shape of an addend of 1 there.
    """
    if 0 in result:
        return st.just(result)
    return one_in(_WHOLE, _part(result), st.just(result))


@cache
def _factors(dtype: str) -> st.SearchStrategy[dict[str, Any]]:
    """``alpha`` and ``beta``: left out, or numbers of the operands' kind, 0 among them."""
    if dtype_of(dtype).kind == "int":
        numbers = st.sampled_from((1, 0, 2, -1, 3) if component(dtype_of(dtype)).is_signed else (1, 0, 2, 3))
    else:
        numbers = st.sampled_from((1, 0, 1.0, 0.0, 2, 0, 0.5, 0.0, -1.25, 0.1, 3.0))
    kinds = [st.fixed_dictionaries(dict.fromkeys(names, numbers)) for names in _PASSED]
    return st.integers(0, len(kinds) - 1).flatmap(kinds.__getitem__)


def _operand(dtype: str, shape: Shape) -> st.SearchStrategy[TensorSpec]:
    return st.builds(TensorSpec, st.just(dtype), st.just(shape), _layout(len(shape)), _recipe(dtype))


@cache
def _layout(rank: int) -> st.SearchStrategy[Layout]:
    """Of matrices a third is dense, a third transposed or cut from a wider one, and a third anything."""
    if rank < 2:
        return layouts(rank)
    plain = tuple(range(rank))
    swapped = (*plain[:-2], rank - 1, rank - 2)
    offsets = st.sampled_from((0, 0, 1, 2, 3, 4, 8, 16))
    cut = st.sampled_from((0, 0, 1, 2, 3, 4, 5, 8))
    matrices = st.builds(
        lambda order, pad, offset: Layout(
            order=order, pads=tuple(pad if dim == order[-1] else 0 for dim in plain) if pad else (), offset=offset
        ),
        st.sampled_from((plain, swapped)),
        cut,
        offsets,
    )
    return st.one_of(st.just(Layout()), matrices, layouts(rank))


@cache
def _recipe(dtype: str) -> st.SearchStrategy[Values]:
    """Values of one magnitude, in which a wrong term shows; now and then any."""
    if dtype_of(dtype).kind == "int":
        return values(dtype)
    usual = st.one_of(
        st.builds(lambda seed: Values("moderate", seed, {"low": -2, "high": 2, "sign": "both"}), _SEEDS),
        st.builds(lambda seed: Values("moderate", seed, {"low": -6, "high": 7, "sign": "positive"}), _SEEDS),
        st.builds(lambda seed: Values("integers", seed, {"low": -16, "high": 16}), _SEEDS),
    )
    return one_in(_HARD, values(dtype), usual)


@st.composite
def _ends(draw: st.DrawFn, count: int, most: int) -> list[int]:
    """Where each of ``count`` groups ends: groups of one length, of any up to a few, or some of them empty."""
    lengths = draw(
        st.one_of(
            st.lists(st.integers(0, max(most // count, 2)), min_size=count, max_size=count),
            st.lists(st.sampled_from((0, 0, 1, 2, 17)), min_size=count, max_size=count),
            st.integers(0, most).map(lambda length: [length if number == 0 else 1 for number in range(count)]),
        )
    )
    return [sum(lengths[: number + 1]) for number in range(count)]


@st.composite
def _in_sixteens(draw: st.DrawFn, order: tuple[int, int]) -> Layout:
    """A matrix of bytes whose sizes are multiples of 16 already: dense, or cut from a wider one."""
    wider = draw(st.sampled_from((0, 0, 0, 16, 32)))
    pads = tuple(wider if dim == order[-1] else 0 for dim in (0, 1))
    return Layout(order=order, pads=pads, offset=16 * draw(st.sampled_from((0, 0, 1, 3))))


@cache
def _codes(dtype: str) -> st.SearchStrategy[Values]:
    """Numbers of one magnitude, or of any, or all codes: one NaN hides a row or a column."""
    windows = st.sampled_from(((-2, 2), (-2, 2), (-9, 8)))
    usual = st.builds(
        lambda window, seed: Values("moderate", seed, {"low": window[0], "high": window[1], "sign": "both"}),
        windows,
        _SEEDS,
    )
    return one_in(_HARD, values(dtype), usual)


@cache
def _scales() -> st.SearchStrategy[Values]:
    """Numbers about 1, powers of two far from it, or some that are 0, negative or NaN."""
    windows = st.sampled_from(((-3, 3), (-12, -4), (4, 12)))
    usual = st.builds(
        lambda window, seed: Values("moderate", seed, {"low": window[0], "high": window[1], "sign": "positive"}),
        windows,
        _SEEDS,
    )
    mixed = _SEEDS.map(lambda seed: Values("choice", seed, {"values": ["0", "1", "-0.5", "0.001", "nan"]}))
    ones = st.just(Values("constant", params={"value": "1"}))
    return st.one_of(ones, usual, one_in(_HARD, mixed, usual))
