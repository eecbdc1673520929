"""Confidence limits for the distance of one contingency table (THEORY T10).

A table holds the counts of level × sensitive cell, n_a records in level a. What is sought is
d = max over levels a, b and sets E of cells of p_a(E) − p_b(E).

Why no union over levels, pairs or sets is needed. The population fixes one triple (a*, b*, E*)
with d = p_a*(E*) − p_b*(E*); it does not depend on the sample. Let B(a, b, E) be a statistic with
P(p_a(E) − p_b(E) ≤ B(a, b, E)) ≥ 1 − γ for every single triple. On the event for (a*, b*, E*),
d ≤ B(a*, b*, E*) ≤ max B, so the maximum over *all* triples covers d with probability 1 − γ.
If d = 0 every triple will do, so E may always be taken neither empty nor full, and a ≠ b.

Both limits hold given the totals n_a, hence also for random totals:

* ``H``: p̂_a(E) − p̂_b(E) is a sum of n_a + n_b independent terms with ranges 1/n_a and 1/n_b;
  Hoeffding's inequality gives the radius √(½ ln(1/γ)(1/n_a + 1/n_b)), the same for every E, so
  the maximum over E is the total variation of the empirical rows.
* ``CP``: p_a(E) − p_b(E) = p_a(E) + p_b(Eᶜ) − 1, each term below its one-sided Clopper-Pearson
  limit except with probability γ/2.

The choice between them may look at the totals and the number of cells (both limits hold given
those) but never at the cells. A declared level without records gives 1.

Every function takes counts of shape (levels, cells), or (strata, levels, cells) when the distance
is conditional on a background: levels are then compared within each stratum only, and the fixed
triple becomes a fixed (stratum, a, b, E).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from corrdp.distance.events import (
    MAX_ENUMERATED_CELLS,
    Pair,
    best_pair,
    event_sums,
    larger,
    widest_pair,
)
from corrdp.errors import ConfigurationError

__all__ = [
    "Method",
    "checked_counts",
    "checked_gamma",
    "choose",
    "clopper_pearson",
    "clopper_pearson_upper",
    "hoeffding",
    "lower_limit",
    "over_strata",
    "plug_in",
    "published",
    "upper_limit",
]

Method: TypeAlias = Literal["plug-in", "auto", "H", "CP", "published"]
Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

_ROUNDING = 1e-12  # far above the error of the inverse incomplete beta function and of the sums


def plug_in(counts: ArrayLike) -> Pair:
    """Largest total variation of two empirical rows; 1 where a level has no records.

    An estimate, not a limit: biased upward when d is small, below d about half of the time when
    the maximising pair is clear. `counts` as in the module's docstring.
    """
    return over_strata(counts, lambda table: widest_pair(_frequencies(table)))


def hoeffding(counts: ArrayLike, gamma: float) -> Pair:
    """Limit ``H``, below d with probability at most γ; proof in the module's docstring (T10).

    Raises
    ------
    ConfigurationError
        Counts that are no table of non-negative integers with two levels and two cells, or γ
        outside (0, 1).
    """
    log_gamma = -math.log(checked_gamma(gamma))

    def limit(table: Counts) -> Pair:
        inverse = 1.0 / table.sum(axis=1)
        radius = np.sqrt(0.5 * log_gamma * (inverse[:, None] + inverse)) + _ROUNDING
        return widest_pair(_frequencies(table), radius)

    return over_strata(counts, limit)


def clopper_pearson(counts: ArrayLike, gamma: float) -> Pair:
    """Limit ``CP`` over all sets of at most 12 cells; proof in the module's docstring (THEORY T10).

    Below d with probability at most γ. Raises ConfigurationError as `hoeffding` does, and for
    more than 12 cells, whose sets are not enumerated (methods ``auto`` and ``H`` take any number).
    """
    level = checked_gamma(gamma) / 2

    def limit(table: Counts) -> Pair:
        return best_pair(_row_limits(table, level))

    _check_enumerable(counts)
    return over_strata(counts, limit)


def published(counts: ArrayLike, gamma_row: float) -> Pair:
    """The published radius form, max over a ≠ b of TV̂(a, b) + r_a + r_b (THEORY T10).

    Each empirical row lies within r_a of the truth except with probability `gamma_row`; these
    add up over all rows of all tables. r_a is the smaller of a union over the sets of cells and
    expectation plus bounded differences; for two cells it is the two-sided Clopper-Pearson
    interval's longer arm.
    """
    checked_gamma(gamma_row)

    def limit(table: Counts) -> Pair:
        radii = _row_radii(table, gamma_row) + _ROUNDING
        return widest_pair(_frequencies(table), radii[:, None] + radii)

    return over_strata(counts, limit)


def choose(counts: ArrayLike) -> Literal["H", "CP"]:
    """Which limit to use, from the row totals and the number of cells alone (THEORY T10).

    ``H`` beyond 12 cells, where the sets are not enumerated. Else ``CP``: its radius adapts to
    sets with probability far from ½ and to one rare level, and where neither is the case it is
    at most a few per cent wider.
    """
    return "CP" if np.shape(counts)[-1] <= MAX_ENUMERATED_CELLS else "H"


def upper_limit(counts: ArrayLike, gamma: float, method: Method = "auto") -> Pair:
    """Upper confidence limit of d, or the plug-in estimate, by the named method.

    ``published`` spends γ in equal parts over the rows of this table.
    """
    if method == "auto":
        method = choose(counts)
    if method == "CP":
        return clopper_pearson(counts, gamma)
    if method == "H":
        return hoeffding(counts, gamma)
    if method == "plug-in":
        return plug_in(counts)
    if method == "published":
        table = checked_counts(counts)
        return published(table, checked_gamma(gamma) / (table.shape[0] * table.shape[1]))
    raise ConfigurationError(f"method={method!r} is unknown; use auto, CP, H, published or plug-in")


def lower_limit(counts: ArrayLike, gamma: float) -> float:
    """Lower confidence limit: above d with probability at most γ.

    The fixed triple does not help here, since no triple may overshoot: γ is shared by all
    statements that are used, one per (stratum, level, set) for at most 12 cells and one per
    triple beyond. A level without records says nothing.
    """
    table = checked_counts(counts)
    strata, levels, cells = table.shape
    checked_gamma(gamma)
    best = 0.0
    for stratum in table:
        rows = stratum[stratum.sum(axis=1) > 0]
        if len(rows) < 2:
            continue
        if cells <= MAX_ENUMERATED_CELLS:
            level = gamma / (strata * levels * (2**cells - 2))
            value = best_pair(1.0 - _row_limits(rows, level)).value
        else:
            log_sum = cells * math.log(2) + math.log(strata * levels * (levels - 1) / gamma)
            inverse = 1.0 / rows.sum(axis=1)
            radius = np.sqrt(0.5 * log_sum * (inverse[:, None] + inverse))
            value = widest_pair(_frequencies(rows), -radius).value
        best = max(best, value - _ROUNDING)
    return best


def over_strata(counts: ArrayLike, limit: Callable[[Counts], Pair]) -> Pair:
    """The largest limit over the strata; 1 where a declared level has no records."""
    table = checked_counts(counts)
    best = Pair(-math.inf, (0, 1))
    for stratum in table:
        totals = stratum.sum(axis=1)
        if (totals == 0).any():
            empty = int(totals.argmin())
            best = larger(best, Pair(1.0, (empty, int(totals.argmax()))))
        else:
            best = larger(best, limit(stratum))
    if best.rows[0] == best.rows[1]:
        best = Pair(best.value, (0, 1))
    return best


def checked_counts(counts: ArrayLike) -> Counts:
    """Counts as int64 of shape (strata, levels, cells), or a ConfigurationError."""
    table = np.asarray(counts)
    if table.ndim == 2:
        table = table[None]
    if table.ndim != 3 or table.dtype.kind not in "iuf":
        raise ConfigurationError(
            f"counts of shape {np.shape(counts)} and type {table.dtype}: give integers, "
            "levels × cells or strata × levels × cells"
        )
    if table.shape[0] < 1 or table.shape[1] < 2 or table.shape[2] < 2:
        raise ConfigurationError(
            f"a table of {table.shape[1]} level(s) × {table.shape[2]} cell(s) has no distance; "
            "declare at least two of each"
        )
    if not ((table >= 0).all() and (table <= 2**53).all() and (table == np.floor(table)).all()):
        raise ConfigurationError("counts must be non-negative whole numbers, none missing")
    return table.astype(np.int64)


def checked_gamma(gamma: float) -> float:
    """γ in (0, 1), or a ConfigurationError."""
    if not 0 < gamma < 1:
        raise ConfigurationError(f"gamma={gamma!r}: give an error probability, 0 < gamma < 1")
    return float(gamma)


def clopper_pearson_upper(successes: ArrayLike, trials: int, level: float) -> Floats:
    """One-sided upper limit of a binomial probability, sup{p: P(X ≤ x) > level}; 1 at x = n."""
    x = np.asarray(successes, dtype=np.float64)
    limits = np.ones(x.shape)
    inner = x < trials
    limits[inner] = special.betainccinv(x[inner] + 1, trials - x[inner], level) + _ROUNDING
    capped: Floats = np.minimum(limits, 1.0)
    return capped


def _frequencies(table: Counts) -> Floats:
    frequencies: Floats = table / table.sum(axis=1, keepdims=True)
    return frequencies


def _row_limits(table: Counts, level: float) -> Floats:
    """U_a(E) for every level and set; equal counts of a level are inverted once."""
    sums = event_sums(table.astype(np.float64))
    limits = np.empty_like(sums)
    for a, trials in enumerate(table.sum(axis=1).tolist()):
        distinct, where = np.unique(sums[a], return_inverse=True)
        limits[a] = clopper_pearson_upper(distinct, trials, level)[where]
    return limits


def _row_radii(table: Counts, gamma_row: float) -> Floats:
    """r_a of the published form for every level."""
    totals = table.sum(axis=1)
    cells = table.shape[1]
    log_gamma = -math.log(gamma_row)
    if cells == 2:
        return np.array([_two_cell_radius(row, gamma_row / 2) for row in table])
    log_sets = cells * math.log(2) + math.log1p(-(2.0 ** (1 - cells)))
    union = 0.5 * np.sqrt(2 * (log_sets + log_gamma) / totals)
    expected = 0.5 * np.sqrt((cells - 1) / totals) + np.sqrt(log_gamma / (2 * totals))
    radii: Floats = np.minimum(union, expected)
    return radii


def _two_cell_radius(row: NDArray[np.int64], tail: float) -> float:
    trials = int(row.sum())
    upper = clopper_pearson_upper(row, trials, tail)
    return float((upper - row / trials).max())


def _check_enumerable(counts: ArrayLike) -> None:
    cells = np.shape(counts)[-1] if np.ndim(counts) else 0
    if cells > MAX_ENUMERATED_CELLS:
        raise ConfigurationError(
            f"CP goes over all sets of at most {MAX_ENUMERATED_CELLS} cells and the table has "
            f"{cells}; use method='H' or a coarser public grid"
        )
