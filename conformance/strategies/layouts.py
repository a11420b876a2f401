"""Memory layouts: a quarter of all public bugs of the backend need one that is not contiguous."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from conformance.layout import Layout

_OFFSETS = st.sampled_from((0, 1, 2, 3, 4, 5, 8, 16, 31, 127))


@cache
def layouts(rank: int, *, strided: bool | None = None) -> st.SearchStrategy[Layout]:
    """Layouts for a tensor of ``rank`` dimensions; contiguous ones, strided ones, or (``None``) both.

    Strided ones are transposed, permuted, channels_last, stepped, cut from a wider base, expanded, or several of
    these at once. A tensor without dimensions can only have an offset.
    """
    contiguous = st.builds(Layout, offset=_OFFSETS)
    if not rank or strided is False:
        return contiguous
    kinds = [_stepped(rank), _cut(rank), _expanded(rank)]
    if rank > 1:
        kinds = [_permuted(rank), *kinds, _mixed(rank)]
    if rank in (4, 5):
        kinds.append(_channels_last(rank))
    several = st.one_of(kinds)
    return several if strided else st.one_of(contiguous, several)


def _permutations(rank: int) -> st.SearchStrategy[tuple[int, ...]]:
    # Reversed first: it is the plain transpose, the simplest permutation that is not the identity.
    identity = tuple(range(rank))
    shuffled = st.permutations(identity).map(tuple).filter(lambda order: order != identity)
    return st.one_of(st.just(identity[::-1]), shuffled)


def _permuted(rank: int) -> st.SearchStrategy[Layout]:
    return st.builds(Layout, order=_permutations(rank), offset=_OFFSETS)


def _channels_last(rank: int) -> st.SearchStrategy[Layout]:
    return st.builds(Layout, order=st.just((0, *range(2, rank), 1)), offset=_OFFSETS)


def _one_dimension(rank: int, low: int, high: int, rest: int) -> st.SearchStrategy[tuple[int, ...]]:
    """One dimension (the last first) gets a number from [low, high], all others ``rest``."""
    last = rank - 1
    return st.tuples(st.integers(0, last), st.integers(low, high)).map(
        lambda drawn: tuple(drawn[1] if dim == last - drawn[0] else rest for dim in range(rank))
    )


def _stepped(rank: int) -> st.SearchStrategy[Layout]:
    return st.builds(Layout, steps=_one_dimension(rank, 2, 3, 1), offset=_OFFSETS)


def _cut(rank: int) -> st.SearchStrategy[Layout]:
    one, all_of_them = _one_dimension(rank, 1, 5, 0), st.tuples(*[st.integers(1, 3)] * rank)
    return st.builds(Layout, pads=st.one_of(one, all_of_them), offset=_OFFSETS)


def _expanded(rank: int) -> st.SearchStrategy[Layout]:
    dims = st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True)
    return st.builds(Layout, expanded=dims.map(lambda some: tuple(sorted(some))), offset=_OFFSETS)


def _mixed(rank: int) -> st.SearchStrategy[Layout]:
    mixed = st.builds(
        Layout,
        order=st.one_of(st.just(tuple(range(rank))), _permutations(rank)),
        steps=st.tuples(*[st.sampled_from((1, 1, 2, 3))] * rank),
        pads=st.tuples(*[st.sampled_from((0, 0, 1, 3))] * rank),
        expanded=st.lists(st.integers(0, rank - 1), max_size=1).map(tuple),
        offset=_OFFSETS,
    )
    return mixed.filter(lambda layout: not layout.is_contiguous)
