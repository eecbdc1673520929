"""Confidence limits of the distance from noisy row totals and noisy cells (THEORY T10).

A table is released twice: its row totals N_a with noise N(0, τ²), its k cells a row with noise
N(0, σ²) each. Fix levels a, b and a set E of cells; put c = (k − |E|)/k and

    Y_a(N) = c·Ñ_a(E) + (1 − c)·(N − Ñ_a(Eᶜ)),

which for N = N_a is N_a(E) plus Gaussian noise of variance σ²·w, w = |E||Eᶜ|/k, the least possible.

*One statement per triple.* Given N_a and N_b, the error of Y_a/N_a − Y_b/N_b as an estimate of
p_a(E) − p_b(E) is X + G. X, the sampling error, is a sum of independent centred terms with ranges
1/N_a and 1/N_b: sub-Gaussian with v = ¼(1/N_a + 1/N_b), which also bounds its variance. G is
Gaussian with variance s² = σ²·w·(1/N_a² + 1/N_b²). The error is below −t with probability at most
α if t is one of

    √(2 ln(1/α)(s² + v))                                 (Chernoff: X + G is sub-Gaussian),
    s·(y + (ln Φ(−y) − ln α)/h) + h·v/(2s), any real y, h = φ(y)/Φ(−y),

the second because P(X + G < −t) = E Φ(−(t + X)/s) and ln Φ is concave, hence below its tangent at
−y: Φ(−(t + x)/s) ≤ Φ(−y)·exp(−h((t + x)/s − y)), and E exp(−hX/s) ≤ exp(h²v/(2s²)). Without
sampling error y = z(α), Φ(−z(α)) = α, gives t = s·z(α), which is exact; the best y falls as v
grows. With t(N_a, N_b) the least over a few y, p_a(E) − p_b(E) ≤ Y_a(N_a)/N_a − Y_b(N_b)/N_b + t.

*Unknown totals.* The noisy total has variance τ², the sum of the noisy cells kσ², and the R totals
of a table add up to n, which is public. Weighing the two by their precision and spreading what is
missing to n evenly over the rows leaves a Gaussian error of variance

    τ²·kσ²/(τ² + kσ²)·(1 − 1/R)

(without the last factor where n is not passed). So N_a lies in [N_L, N_U] except with the level β
at each end. The bound is monotone in 1/N_a and 1/N_b apart from t, for which the worst ends are
taken for every y, so four corners suffice. This needs no independence of totals and cells: a bound
that fails means that a total is outside its interval, or the error below −t at the true totals.
α + 4β = γ, and the argument of `corrdp.distance.bounds` (one fixed triple) lets the maximum over
all triples cover d. For E of a given size the best set is found by sorting: any number of cells.

Noise is rounded to whole counts. A rounding error is at most ½ in a total and ½ in a cell, hence
at most w in Y; both are added, weighed and spread like the noise itself.
`corrdp.distance.noisy_split` has the form with one limit per row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from corrdp.distance.bounds import checked_gamma
from corrdp.distance.events import Pair, larger
from corrdp.errors import ConfigurationError

__all__ = ["NoisyTable", "lower_limit", "total_interval", "unseen_level", "upper_limit"]

Floats: TypeAlias = NDArray[np.float64]

_TOTAL_SHARE = 0.02  # of γ for each of the four ends of totals
_LEAST_TANGENT = -2.0  # below, Chernoff's bound is as good
_TANGENTS = 16
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """A contingency table as released.

    Attributes
    ----------
    totals
        int64, shape (strata, levels): row totals plus noise.
    cells
        int64, shape (strata, levels, k): counts plus noise.
    total_sigma, cell_sigma
        Standard deviations of the noise before rounding, in records.
    """

    totals: NDArray[np.int64]
    cells: NDArray[np.int64]
    total_sigma: float
    cell_sigma: float

    def __post_init__(self) -> None:
        totals, cells = np.asarray(self.totals), np.asarray(self.cells)
        if cells.ndim != 3 or totals.shape != cells.shape[:2] or min(cells.shape[1:]) < 2:
            raise ConfigurationError(
                f"noisy table: totals {totals.shape}, cells {cells.shape}; give strata × levels "
                "and strata × levels × cells, two levels and two cells at least"
            )
        if totals.dtype.kind != "i" or cells.dtype.kind != "i":
            raise ConfigurationError("noisy table: totals and cells must be integers")
        for name in ("total_sigma", "cell_sigma"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise ConfigurationError(f"noisy table: {name}={value!r} must be positive")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON and the ledger."""
        return {
            "totals": self.totals.tolist(),
            "cells": self.cells.tolist(),
            "total_sigma": self.total_sigma,
            "cell_sigma": self.cell_sigma,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> NoisyTable:
        """The table that :meth:`to_dict` wrote."""
        totals = np.array(plain["totals"], dtype=np.int64)
        cells = np.array(plain["cells"], dtype=np.int64)
        return cls(totals, cells, float(plain["total_sigma"]), float(plain["cell_sigma"]))


def upper_limit(table: NoisyTable, gamma: float, records: int | None = None) -> Pair:
    """Upper confidence limit of d, below d with probability at most γ (records and noise).

    1 where a level's total may be zero; `records` is the n that the table's rows add up to, if it
    is public. Proof in the module's docstring.

    Raises
    ------
    ConfigurationError
        γ outside (0, 1).
    """
    alpha = checked_gamma(gamma) * (1 - 4 * _TOTAL_SHARE)
    low, high = total_interval(table, _TOTAL_SHARE * gamma, records)
    best = Pair(-math.inf, (0, 1))
    for h, cells in enumerate(table.cells):
        unseen = unseen_level(low[h])
        if unseen is not None:
            best = larger(best, unseen)
            continue
        for a in range(len(cells)):
            reach = _reach(low[h], high[h], a, table, alpha)
            best = larger(best, _best_rival(cells, low[h], high[h], a, reach))
    return Pair(min(1.0, max(0.0, best.value + _ROUNDING)), best.rows)


def lower_limit(table: NoisyTable, gamma: float, records: int | None = None) -> float:
    """Lower confidence limit of d, above d with probability at most γ (records and noise).

    No triple may overshoot: half of γ is shared by all triples, half by all ends of totals.
    Levels whose total may be zero say nothing.
    """
    checked_gamma(gamma)
    strata, levels, k = table.cells.shape
    log_level = -math.log(strata * levels * (levels - 1) * 2 / gamma) - k * math.log(2)
    low, high = total_interval(table, gamma / (4 * strata * levels), records)
    best = 0.0
    for h, cells in enumerate(table.cells):
        seen = low[h] >= 1
        ends = low[h][seen], high[h][seen]
        for a in range(int(seen.sum())):
            reach = _chernoff(ends[0], a, table, log_level)
            value = _least_difference(cells[seen].astype(np.float64), *ends, a) - reach
            value[a] = -np.inf
            best = max(best, float(value.max()) - _ROUNDING)
    return best


def total_interval(
    table: NoisyTable, level: float, records: int | None = None
) -> tuple[Floats, Floats]:
    """[N_L, N_U] of every row total; each end fails with probability at most `level`.

    From the noisy totals, the sums of the noisy cells, and n where it is given.
    """
    strata, levels, k = table.cells.shape
    total_variance, sum_variance = table.total_sigma**2, k * table.cell_sigma**2
    weight = sum_variance / (total_variance + sum_variance)
    middle = weight * table.totals + (1 - weight) * table.cells.sum(axis=2)
    sigma = math.sqrt(weight * total_variance)
    rounding = 0.5 * (weight + (1 - weight) * k)
    if records is not None:
        others = 1 - 1 / (strata * levels)
        middle = middle - (middle.mean() - records / (strata * levels))
        sigma, rounding = sigma * math.sqrt(others), 2 * others * rounding
    reach = -float(special.ndtri(level)) * sigma * (1 + _ROUNDING) + rounding
    return np.maximum(middle - reach, 0.0), np.maximum(middle + reach, 0.0)


def unseen_level(low: Floats) -> Pair | None:
    """Distance 1, with the level concerned, where some total may be zero."""
    if (low >= 1).all():
        return None
    rarest, commonest = int(low.argmin()), int(low.argmax())
    return Pair(1.0, (rarest, commonest if commonest != rarest else int(rarest == 0)))


def _size_and_spread(k: int) -> tuple[Floats, Floats]:
    """|E|/k and w = |E||Eᶜ|/k for the sizes 1 … k − 1."""
    size = np.arange(1, k, dtype=np.float64)
    return size / k, size * (k - size) / k


def _chernoff(low: Floats, a: int, table: NoisyTable, log_level: float) -> Floats:
    """Sub-Gaussian reach t plus rounding of a against every level, shape (levels, k − 1)."""
    _, spread = _size_and_spread(table.cells.shape[2])
    inverse = (1 / low[a] + 1 / low)[:, None]
    noise = table.cell_sigma**2 * spread * (1 / low[a] ** 2 + 1 / low**2)[:, None]
    reach: Floats = np.sqrt(-2 * log_level * (noise + inverse / 4)) + spread * inverse
    return reach


def _reach(low: Floats, high: Floats, a: int, table: NoisyTable, alpha: float) -> Floats:
    """t plus rounding, the least of its forms, each at the worst totals of the intervals."""
    _, spread = _size_and_spread(table.cells.shape[2])
    inverse = (1 / low[a] + 1 / low)[:, None]
    most, least = (
        table.cell_sigma * np.sqrt(spread * (1 / n[a] ** 2 + 1 / n**2)[:, None])
        for n in (low, high)
    )
    reach = _chernoff(low, a, table, math.log(alpha))
    for y in np.linspace(_LEAST_TANGENT, -special.ndtri(alpha), _TANGENTS):
        log_tail = float(special.log_ndtr(-y))
        hazard = math.exp(-(y**2) / 2 - 0.5 * math.log(2 * math.pi) - log_tail)
        of_noise = y + (log_tail - math.log(alpha)) / hazard
        tangent = of_noise * (most if of_noise > 0 else least) + hazard * inverse / (8 * least)
        reach = np.minimum(reach, tangent + spread * inverse)
    return reach


def _best_rival(cells: NDArray[np.int64], low: Floats, high: Floats, a: int, reach: Floats) -> Pair:
    """Largest limit of a against any level b, over all sets and the corners of the totals."""
    inside, _ = _size_and_spread(cells.shape[1])
    whole = cells.sum(axis=1, dtype=np.float64)
    best = Pair(-math.inf, (0, 1))
    for n_a in (low[a], high[a]):
        for n_b in (low, high):
            gain = cells[a] / n_a - cells / n_b[:, None]
            top = -np.sort(-gain, axis=1).cumsum(axis=1)[:, :-1]
            value = top - inside * (whole[a] / n_a - whole / n_b)[:, None] + reach
            value[a] = -np.inf
            b, size = np.unravel_index(int(value.argmax()), value.shape)
            best = larger(best, Pair(float(value[b, size]), (a, int(b))))
    return best


def _least_difference(cells: Floats, low: Floats, high: Floats, a: int) -> Floats:
    """min over the corners of Y_a/N_a − Y_b/N_b, for one promising set of each size."""
    inside, _ = _size_and_spread(cells.shape[1])
    middle = (low + high) / 2
    order = np.argsort(cells / middle[:, None] - cells[a] / middle[a], axis=1)
    own = np.take_along_axis(np.broadcast_to(cells[a], cells.shape), order, axis=1)
    rival = np.take_along_axis(cells, order, axis=1)
    own = own.cumsum(axis=1)[:, :-1] - inside * cells[a].sum()
    rival = rival.cumsum(axis=1)[:, :-1] - inside * cells.sum(axis=1, keepdims=True)
    least = np.minimum(own / low[a], own / high[a])
    most = np.maximum(rival / low[:, None], rival / high[:, None])
    difference: Floats = least - most
    return difference
