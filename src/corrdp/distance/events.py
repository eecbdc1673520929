"""Sets of sensitive cells, and the best triple (level, level, set) over all of them (THEORY T10).

For k cells the 2^k − 2 sets that are neither empty nor full are numbered in binary order, so that
column e of an array over sets and column −1 − e belong to complementary sets.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MAX_ENUMERATED_CELLS",
    "Pair",
    "best_pair",
    "event_sizes",
    "event_sums",
    "larger",
    "widest_pair",
]

MAX_ENUMERATED_CELLS = 12


class Pair(NamedTuple):
    """A value and the two rows (levels) that attain it."""

    value: float
    rows: tuple[int, int]


@lru_cache(maxsize=MAX_ENUMERATED_CELLS)
def _membership(cells: int) -> NDArray[np.float64]:
    """Shape (cells, 2^cells − 2): 1 where the cell belongs to the set."""
    sets = np.arange(1, 2**cells - 1)
    inside: NDArray[np.float64] = ((sets >> np.arange(cells)[:, None]) & 1).astype(np.float64)
    inside.setflags(write=False)
    return inside


def event_sums(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over every set of cells: (levels, k) → (levels, 2^k − 2), exact for integers."""
    sums: NDArray[np.float64] = rows @ _membership(rows.shape[1])
    return sums


def event_sizes(cells: int) -> NDArray[np.float64]:
    """Number of cells in every set, shape (2^k − 2,)."""
    sizes: NDArray[np.float64] = _membership(cells).sum(axis=0)
    return sizes


def best_pair(limits: NDArray[np.float64]) -> Pair:
    """max over a ≠ b and E of U_a(E) + U_b(Eᶜ) − 1, in [0, 1].

    `limits` has shape (levels, 2^k − 2) and holds U_a(E); at least two levels. One pass over the
    sets: the best two levels on each side are enough to keep a ≠ b.
    """
    sets = np.arange(limits.shape[1])
    top = limits.argmax(axis=0)
    best = limits[top, sets]
    others = limits.copy()
    others[top, sets] = -np.inf
    second = others.argmax(axis=0)
    runner_up = others[second, sets]
    clash = top == top[::-1]
    left_best = best + np.where(clash, runner_up[::-1], best[::-1])
    right_best = np.where(clash, runner_up, best) + best[::-1]
    e_left, e_right = int(left_best.argmax()), int(right_best.argmax())
    if left_best[e_left] >= right_best[e_right]:
        rival = second[::-1] if clash[e_left] else top[::-1]
        value, rows = left_best[e_left], (int(top[e_left]), int(rival[e_left]))
    else:
        rival = second if clash[e_right] else top
        value, rows = right_best[e_right], (int(rival[e_right]), int(top[::-1][e_right]))
    return Pair(float(min(1.0, max(0.0, value - 1.0))), rows)


def widest_pair(rows: NDArray[np.float64], radius: NDArray[np.float64] | None = None) -> Pair:
    """max over a ≠ b of ½Σ|rows_a − rows_b| + radius[a, b], capped at 1 (memory of one table)."""
    best = Pair(-np.inf, (0, 1))
    for a in range(len(rows) - 1):
        distances = 0.5 * np.abs(rows[a + 1 :] - rows[a]).sum(axis=1)
        if radius is not None:
            distances = distances + radius[a, a + 1 :]
        b = int(distances.argmax())
        best = larger(best, Pair(float(distances[b]), (a, a + 1 + b)))
    return Pair(min(1.0, best.value), best.rows)


def larger(first: Pair, second: Pair) -> Pair:
    """The pair with the larger value; the first one on a tie."""
    return second if second.value > first.value else first
