"""What a run of Poisson-sampled steps guarantees, recomputed from its ledger (THEORY T4, T7).

Linear models and networks differ in their sensitivity tables alone; everything here takes arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.erm.sampling import SampledBudgets, floor_targets, sampled_targets, with_presence
from corrdp.errors import VerificationError
from corrdp.neighbours import NeighbourKind
from corrdp.privacy.certificate import (
    ReleaseAccount,
    SamplerUse,
    Subsampling,
    subsampled_loss,
)
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.guarantee import chained, dual_bound

__all__ = ["Reach", "presence_use", "sampled_account", "sampled_changes", "step_problems"]

FloatArray: TypeAlias = NDArray[np.float64]
# Platforms differ in the last bits of exp and matrix products.
TOLERANCE = 1e-9


@dataclass(frozen=True, repr=False)
class Reach:
    """How far contributions go over all parameters, in units that bounds at a point share.

    Attributes
    ----------
    infimum, supremum : array of shape (kinds, blocks)
        Least and largest movement.
    presence : array of shape (blocks,)
        Least value of what presence allows.
    """

    infimum: FloatArray
    supremum: FloatArray
    presence: FloatArray


def presence_use(presence: FloatArray, sigma: FloatArray) -> FloatArray:
    """Σ_j (LR_j)²/σ_tj² of every step; ``presence`` has shape (blocks,)."""
    with np.errstate(divide="ignore"):
        squared: FloatArray = ((presence / sigma) ** 2).sum(axis=1)
    return squared


def step_problems(
    kinds: Sequence[NeighbourKind], use: FloatArray, step_budget: FloatArray
) -> list[str]:
    """A sentence per kind whose budget some step exceeded."""
    problems = []
    for position, kind in enumerate(kinds):
        over = np.flatnonzero(use[:, position] > step_budget[position] * (1.0 + TOLERANCE))
        if over.size:
            worst = use[:, position].max() / step_budget[position]
            problems.append(
                f"kind {kind.name!r}: {over.size} step(s) exceed their budget, the first is step "
                f"{over[0]}, the worst by a factor {worst:.4g} in squared mu"
            )
    return problems


def sampled_account(
    name: str,
    declaration: Declaration,
    sampling: SampledBudgets,
    sampler: SamplerUse,
    reach: Reach,
    use: FloatArray,
    presence: FloatArray,
    problems: Sequence[str],
) -> ReleaseAccount:
    """Account of sampled steps: fixed changes, presence, and what they imply.

    Parameters
    ----------
    name : str
        Type of the ledger entry.
    sampling : SampledBudgets
        As the ledger fixed them.
    use : array of shape (steps, kinds)
        Σ_j a_kj(θ_t)²/σ_tj² of every step.
    presence : array of shape (steps,)
        :func:`presence_use` of every step.
    problems : sequence of str
        Found before.

    Raises
    ------
    VerificationError
        If the budgets are those of another schema.
    """
    kinds = declaration.kinds
    if not len(sampling.change) == len(sampling.fixed) == len(kinds):
        raise VerificationError("the sampled budgets are not those of the schema's kinds")
    change, fixed = np.array(sampling.change), np.array(sampling.fixed)
    largest = float(presence.max(initial=0.0))
    found = [*problems, *step_problems(kinds, use, change)]
    if largest > sampling.presence**2 * (1.0 + TOLERANCE):
        found.append("a step exceeds the presence bound that the sampling rests on")
    worst = use.max(axis=0, initial=0.0)
    change, fixed = np.maximum(change, worst), np.maximum(fixed, worst)
    bound = math.sqrt(max(sampling.presence**2, largest))
    rows = declaration.target.records_per_person
    subsampling = replace(sampling.use(sampler.steps, rows), presence=bound)
    found += _target_problems(declaration, subsampling, change, fixed, sampler)
    changes = sampled_changes(kinds, reach, fixed, bound)
    return ReleaseAccount(name, change, changes, sampler, tuple(found), subsampling=subsampling)


def sampled_changes(
    kinds: Sequence[NeighbourKind], reach: Reach, fixed: FloatArray, presence: float
) -> FloatArray:
    """Guaranteed change of every kind in units of the noise, at most 2c (THEORY T4, T7)."""
    budget = np.append(fixed, presence**2)
    rows = with_presence(reach.infimum, reach.presence)
    squared = [
        min(own, dual_bound(budget, rows, high).mu_squared)
        for own, high in zip(fixed, reach.supremum, strict=True)
    ]
    changes = chained(kinds, np.sqrt(squared))
    return np.minimum(changes, 2.0 * presence)


def _target_problems(
    declaration: Declaration,
    use: Subsampling,
    change: FloatArray,
    fixed: FloatArray,
    sampler: SamplerUse,
) -> list[str]:
    """Kinds whose changes lose more than the declared target leaves."""
    budgets = declaration.budgets()
    problems = []
    pairs = (
        (change, sampled_targets(declaration, budgets)),
        (fixed, floor_targets(declaration, budgets)),
    )
    for squared, targets in pairs:
        for budget, value, (epsilon, delta) in zip(budgets, squared, targets, strict=True):
            if math.isinf(epsilon):
                continue
            loss = subsampled_loss(use, math.sqrt(value), sampler, delta)
            if loss > epsilon * (1.0 + 1e-6):
                problems.append(
                    f"kind {budget.kind.name!r}: the sampled steps lose {loss:.4g} where the "
                    f"target leaves {epsilon:.4g}"
                )
    return list(dict.fromkeys(problems))
