"""Pooling rare levels without conditioning on the sample (THEORY T10).

Merging levels because their totals are small makes the merged distribution depend on the sample,
and the confidence limit then misses. Two ways are sound. A public rule, fixed before the data is
looked at, is simply another declaration of levels (or of bins, or ``other``). And pooling along a
public order, here: levels are ranked before the data is looked at; the pooled level is the end of
that ranking, as long as its total stays below a wanted one. There are as many such tables as
levels, each with a fixed distance. With γ divided by their number the limit of the chosen one
covers the distance of the chosen one, by whatever rule it was chosen.

The distance is that of the pooled column, so the model must see the pooled column as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corrdp.distance.bounds import Method, checked_counts, checked_gamma, upper_limit
from corrdp.errors import ConfigurationError

__all__ = ["Pooled", "pool_tail", "pooled_limit"]


class Pooled(NamedTuple):
    """A pooled table and the levels that went into its last row."""

    counts: NDArray[np.int64]
    kept: tuple[int, ...]
    pooled: tuple[int, ...]


def pool_tail(counts: ArrayLike, order: Sequence[int], minimum: int) -> Pooled:
    """Pool the end of a public order until the pooled level has `minimum` records.

    Parameters
    ----------
    counts
        Shape (levels, cells).
    order
        A permutation of the levels, the ones to keep first; public.
    minimum
        Wanted number of records in the pooled level, at least 1. At least two levels remain.

    Returns
    -------
    Rows in the given order, the pooled level last; with nothing to pool, the last level alone.
    """
    table = checked_counts(counts)[0]
    ranked = np.asarray(order)
    if sorted(ranked.tolist()) != list(range(len(table))):
        raise ConfigurationError(f"order={list(order)} must name each of {len(table)} levels once")
    if not minimum >= 1:
        raise ConfigurationError(f"minimum={minimum!r} must be at least 1")
    from_end = table[ranked][::-1].sum(axis=1).cumsum()
    enough = np.flatnonzero(from_end >= minimum)
    pooled = 1 + (int(enough[0]) if enough.size else len(table))
    first = max(1, len(table) - pooled)
    rows = np.vstack([table[ranked[:first]], table[ranked[first:]].sum(axis=0)])
    kept, tail = ranked[:first].tolist(), ranked[first:].tolist()
    return Pooled(rows, tuple(kept), tuple(tail))


def pooled_limit(
    counts: ArrayLike, order: Sequence[int], minimum: int, gamma: float, method: Method = "auto"
) -> tuple[float, Pooled]:
    """Upper confidence limit of the pooled column's distance, γ divided by the number of levels."""
    result = pool_tail(counts, order, minimum)
    levels = len(result.kept) + len(result.pooled)
    return upper_limit(result.counts, checked_gamma(gamma) / levels, method).value, result
