"""What fixed budgets guarantee for every kind of change (THEORY T4).

A guarantee is what was fixed before the run, never the realised sum of what was spent. Every
kind is guaranteed the least of

1. its own run budget β_k;
2. the dual bound min Σ_k λ_k β_k over fixed λ ≥ 0 with
   Σ_k λ_k (inf_θ a_kj)² ≥ (sup_θ a_κj)² for every block j, because then
   Σ_j a_κj² w_j ≤ Σ_k λ_k Σ_j a_kj² w_j ≤ Σ_k λ_k b_k at every step;
3. a chain of kinds that together make its change, their μ added;
4. whatever is guaranteed for a kind that may change more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

from corrdp.errors import ConfigurationError
from corrdp.neighbours import INSENSITIVE, RECORD, SENSITIVE, NeighbourKind

__all__ = ["DualBound", "dual_bound", "guaranteed_mu"]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class DualBound:
    """A guaranteed μ² with the multipliers λ that prove it (zero for kinds without a budget)."""

    mu_squared: float
    multipliers: tuple[float, ...]


def dual_bound(budget: ArrayLike, infimum: ArrayLike, target: ArrayLike) -> DualBound:
    """The least Σλ_kβ_k over λ ≥ 0 with Σ_k λ_k inf² ≥ target² in every block.

    Parameters
    ----------
    budget : array of shape (kinds,)
        Run budgets β_k in squared μ; ``inf`` rows cannot help.
    infimum : array of shape (kinds, blocks)
        inf_θ of the sensitivity table.
    target : array of shape (blocks,)
        sup_θ a_κj of the kind in question.

    Returns
    -------
    DualBound
        ``mu_squared`` is ``inf`` when no λ is feasible. λ is scaled up until feasible, so the
        bound holds whatever the solver's tolerance was.

    Examples
    --------
    >>> dual_bound([0.25], [[1.0, 1.0]], [2.0, 2.0]).multipliers
    (4.0,)
    """
    beta = np.asarray(budget, dtype=np.float64)
    low = np.asarray(infimum, dtype=np.float64) ** 2
    high = np.asarray(target, dtype=np.float64) ** 2
    if np.isnan(beta).any() or np.isnan(low).any() or np.isnan(high).any():
        raise ConfigurationError("budgets and sensitivities must not be NaN")
    none = (0.0,) * len(beta)
    needed = high > 0
    if not needed.any():
        return DualBound(0.0, none)
    usable = np.flatnonzero(np.isfinite(beta) & low.any(axis=1))
    if usable.size == 0 or not low[usable][:, needed].any(axis=0).all():
        return DualBound(float("inf"), none)
    scaled = low[usable][:, needed] / high[needed]
    multipliers = _solve(beta[usable], scaled)
    if multipliers is None:
        return DualBound(float("inf"), none)
    full = np.zeros(len(beta))
    full[usable] = multipliers
    total = float(np.dot(multipliers, beta[usable]))
    return DualBound(total * (1.0 + 1e-14), tuple(full.tolist()))


def _solve(beta: FloatArray, scaled: FloatArray) -> FloatArray | None:
    """λ of min βᵀλ s.t. scaledᵀλ ≥ 1, in units where rows have entries near one."""
    size = scaled.max(axis=1)
    cost = beta / size
    unit = cost.max() if cost.max() > 0 else 1.0
    result = linprog(
        cost / unit,
        A_ub=-(scaled / size[:, None]).T,
        b_ub=-np.ones(scaled.shape[1]),
        method="highs",
    )
    if result.x is None:
        return None
    multipliers = np.maximum(result.x, 0.0) / size
    reached = float((multipliers @ scaled).min())
    if not reached > 0:
        return None
    exact = multipliers / min(1.0, reached)
    while (exact @ scaled).min() < 1.0:
        exact = exact * (1.0 + 1e-15)
    rounded: FloatArray = exact
    return rounded


def guaranteed_mu(
    kinds: Sequence[NeighbourKind],
    budget: ArrayLike,
    infimum: FloatArray,
    supremum: FloatArray,
) -> FloatArray:
    """μ guaranteed for every kind, shape (kinds,), ``inf`` where nothing bounds the change.

    ``budget`` holds the run budgets β_k in squared μ that were fixed before the first release.
    """
    beta = np.asarray(budget, dtype=np.float64)
    squared = np.array(
        [
            min(own, dual_bound(beta, infimum, row).mu_squared)
            for own, row in zip(beta, supremum, strict=True)
        ]
    )
    return chained(kinds, np.sqrt(squared))


def chained(kinds: Sequence[NeighbourKind], mus: FloatArray) -> FloatArray:
    """Apply rules 3 and 4: chains of disjoint kinds, and kinds that may change more."""
    mus = np.array(mus, dtype=np.float64)
    position = {kind.name: i for i, kind in enumerate(kinds)}
    joint = (SENSITIVE, INSENSITIVE, RECORD)
    single = [i for i, kind in enumerate(kinds) if kind.name not in joint]
    for _ in range(2):
        if INSENSITIVE in position and single:
            whole = position[INSENSITIVE]
            mus[whole] = min(mus[whole], mus[single].sum())
        if RECORD in position:
            parts = [position[name] for name in (SENSITIVE, INSENSITIVE) if name in position]
            mus[position[RECORD]] = min(mus[position[RECORD]], mus[parts].sum())
        for i, kind in enumerate(kinds):
            wider = [mus[j] for j, other in enumerate(kinds) if other.covers(kind)]
            mus[i] = min([mus[i], *wider])
    return mus
