"""How many roundings a term of a sum passes through when threads share the work: the height of the summation tree.

A bound of n - 1 roundings (Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapter 4) passes a sum of a
thousand terms that drops one. In the bound of a tree of height h, h takes the place of n.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

THREADS = 16
"""The fewest threads (or vector lanes) that add a row together: a group of 1024 with 64 columns has 16 for each."""

TREE = 8
"""Levels of the tree that joins at most 256 threads' sums."""

ALONE = 32
"""Terms that one thread may add alone: where there are as many sums to make as threads, nobody shares them."""

HIGHER_ORDER = 1.01
"""First-order bounds are enlarged by this for the products of errors."""


def height(terms: int) -> int:
    """Additions along the longest path through a tree of at least 16 threads' work."""
    return -(-terms // THREADS) + TREE


def roundings(terms: NDArray[Any] | int) -> NDArray[np.float64]:
    """Roundings that a term of a float sum passes through at most, for any order that a device may choose."""
    counted = np.asarray(terms, np.float64)
    shared = np.ceil(counted / THREADS) + TREE
    return np.asarray(np.maximum(np.minimum(counted - 1.0, np.maximum(shared, ALONE - 1.0)), 0.0))
