"""A choice that is made seldom, because it costs much."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


def one_in(count: int, rare: st.SearchStrategy[T], usual: st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    """Draw ``rare`` once in about ``count`` times, else ``usual``, to which it shrinks.

    A union with the usual strategy repeated does not do: Hypothesis drops the repetitions.
    """
    # Neither an end of the range nor a power of two, which Hypothesis draws more often than others.
    lot = count * 2 // 3
    return st.integers(0, count - 1).flatmap(lambda drawn: rare if drawn == lot else usual)
