"""Limit of the distance from noisy tables, one limit U_a(E) per row (THEORY T10 as stated there).

With the notation of `corrdp.distance.noisy`: given N_a, N_a·p − Y(N_a) for p = p_a(E) is a sum of
centred binomial terms, each at most 1, and of a Gaussian of variance V = σ²|E||Eᶜ|/k. It is
sub-gamma with variance N_a·p(1−p) + V and scale 1/3, so with ℓ = ln(1/level)

    N·p − Y(N) ≤ √(2ℓ(N_U·p(1−p) + V)) + ℓ/3      for N = N_a ≤ N_U

except with probability `level`. U_a(E) is the largest p for which this holds for some N in
[N_L, N_U]; the left side is linear in N, so the two ends suffice. Two rows and four ends of
totals add up to γ, and d ≤ max U_a(E) + U_b(Eᶜ) − 1.

The limit adapts to probabilities near 0 and 1 and is never above 1 for a row, which helps where
one level is rare and the other is not; elsewhere `corrdp.distance.noisy` is tighter, because it
adds the variances of the two rows instead of their standard deviations.

If no p satisfies the inequality, the bad event has happened and any U_a(E) is as valid as
another. The limit for Y = 0, the least count there is, is taken: with 1, a single unlucky set out
of hundreds would make every distance 1.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.distance.bounds import checked_gamma
from corrdp.distance.events import (
    MAX_ENUMERATED_CELLS,
    Pair,
    best_pair,
    event_sizes,
    event_sums,
    larger,
)
from corrdp.distance.noisy import NoisyTable, total_interval, unseen_level
from corrdp.errors import ConfigurationError

__all__ = ["split_limit"]

Floats: TypeAlias = NDArray[np.float64]

_ROW_SHARE = 0.4  # of γ for each of the two rows
_TOTAL_SHARE = 0.05  # of γ for each of the four ends of totals; 2·0.4 + 4·0.05 = 1
_ROUNDING = 1e-9


def split_limit(table: NoisyTable, gamma: float, records: int | None = None) -> Pair:
    """Upper confidence limit of d, below d with probability at most γ (records and noise).

    `records` as in `corrdp.distance.noisy.upper_limit`.

    Raises
    ------
    ConfigurationError
        γ outside (0, 1), or more than 12 cells.
    """
    checked_gamma(gamma)
    if table.cells.shape[2] > MAX_ENUMERATED_CELLS:
        raise ConfigurationError(
            f"the split form goes over all sets of at most {MAX_ENUMERATED_CELLS} cells and the "
            f"table has {table.cells.shape[2]}; use form='pair'"
        )
    low, high = total_interval(table, _TOTAL_SHARE * gamma, records)
    best = Pair(-math.inf, (0, 1))
    for h, cells in enumerate(table.cells):
        pair = unseen_level(low[h])
        if pair is None:
            log_level = math.log(1 / (_ROW_SHARE * gamma))
            pair = best_pair(row_limits(cells, low[h], high[h], table.cell_sigma, log_level))
        best = larger(best, pair)
    return Pair(min(1.0, best.value + _ROUNDING), best.rows)


def row_limits(
    cells: NDArray[np.int64], low: Floats, high: Floats, sigma: float, ell: float
) -> Floats:
    """U_a(E) of every level and set, shape (levels, 2^k − 2)."""
    k = cells.shape[1]
    size = event_sizes(k)
    outside = (k - size) / k  # c
    noisy = event_sums(cells.astype(np.float64))
    whole = cells.sum(axis=1, dtype=np.float64)[:, None]
    base = outside * noisy - (1 - outside) * (whole - noisy)  # Y(N) − (1 − c)N
    spread = size * (k - size) / k
    slack = spread + ell / 3  # rounding of the noise, and the sub-gamma term
    best = np.full(noisy.shape, -np.inf)
    fallback = best.copy()
    for end in (low[:, None], high[:, None]):
        y = base + (1 - outside) * end
        for shift, limits in ((y + slack, best), (slack + 0 * y, fallback)):
            p = _largest_p(end, high[:, None], shift, sigma**2 * spread, ell)
            np.maximum(limits, p, out=limits)
    return np.where(np.isfinite(best), best, fallback)


def _largest_p(n: Floats, n_high: Floats, shift: Floats, variance: Floats, ell: float) -> Floats:
    """Largest p in [0, 1] with N·p − shift ≤ √(2ℓ(N_U·p(1−p) + V)); −inf if there is none.

    Left minus right is convex in p, so the solutions are an interval. It reaches 1 if 1 is a
    solution; else it ends at the larger root of the squared equation, if there is one in [0, 1].
    """
    holds_at_one = n - shift <= np.sqrt(2 * ell * variance)
    square = n**2 + 2 * ell * n_high
    linear = n * shift + ell * n_high
    constant = shift**2 - 2 * ell * variance
    discriminant = linear**2 - square * constant
    root = (linear + np.sqrt(np.maximum(discriminant, 0.0))) / square
    exists = (discriminant >= 0) & (root >= 0)
    return np.where(
        holds_at_one, 1.0, np.where(exists, np.minimum(root * (1 + _ROUNDING), 1.0), -np.inf)
    )
