"""Noise fixed beforehand by the distances, on any mechanism: what it certifies (THEORY T4, T7, T8).

Linear models and networks differ in their blocks and bounds alone. What holds is computed from the
bounds over all parameters, never from the rule that chose the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.erm.sampling import SampledBudgets, sampled_targets
from corrdp.errors import ConfigurationError
from corrdp.neighbours import SENSITIVE, NeighbourKind
from corrdp.privacy import subsampled
from corrdp.privacy.budgets import RESERVE, KindBudget, reserved_mu_squared
from corrdp.privacy.certificate import ReleaseAccount, SamplerUse, loss_together
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.guarantee import chained

__all__ = [
    "FixedNoise",
    "fixed_account",
    "fixed_sampling",
    "known_distances",
    "largest_presence",
    "least_distances",
    "record_noise",
    "shortfalls",
    "step_changes",
]

FloatArray: TypeAlias = NDArray[np.float64]
TOLERANCE = 1e-9


@dataclass(frozen=True, repr=False)
class FixedNoise:
    """A mechanism's bounds and its noise as a function of the distances.

    Attributes
    ----------
    names : tuple of str
        Of the blocks.
    kinds : tuple of NeighbourKind
    supremum : array of shape (kinds, blocks)
        Largest movement over all parameters.
    presence : array of shape (blocks,)
        Largest contribution of a person.
    noise : callable
        From distances by kind to σ of every block, shape (blocks,).
    """

    names: tuple[str, ...]
    kinds: tuple[NeighbourKind, ...]
    supremum: FloatArray
    presence: FloatArray
    noise: Callable[[Mapping[str, float]], FloatArray]


def known_distances(declaration: Declaration) -> dict[str, float]:
    """d by neighbour kind, as released or given."""
    return {name: entry.value for name, entry in declaration.distances.items()}


def least_distances(declaration: Declaration) -> dict[str, float]:
    """The least d that every kind could have been given before anything was released."""
    values = known_distances(declaration)
    if declaration.estimate is None:
        return values
    floors = declaration.estimate.floors
    released = {n for n, entry in declaration.distances.items() if entry.grid_size > 1}
    return {n: floors[n] if n in released else value for n, value in values.items()}


def record_noise(
    declaration: Declaration,
    budgets: Sequence[KindBudget],
    presence: float,
    steps: int,
    sample_rate: float | None = None,
) -> float:
    """σ of a step at which replacing a whole record meets (ε, δ), or what an estimate left of it.

    Parameters
    ----------
    declaration : Declaration
    budgets : sequence of KindBudget
    presence : float
        Norm of what a person can add to the sum; a replacement moves it by twice that.
    steps : int
        T.
    sample_rate : float, optional
        q of Poisson sampling; full batches without it.

    Returns
    -------
    float
        In units of the gradient sum, rounded up (THEORY T4, T7).
    """
    target = declaration.target
    position = next((i for i, b in enumerate(budgets) if b.kind.name == SENSITIVE), None)
    if sample_rate is None:
        squared = reserved_mu_squared(target.epsilon, target.delta)
        squared = squared if position is None else budgets[position].mu_squared
        return 2.0 * presence * math.sqrt(steps / squared) * (1.0 + 1e-14)
    allowed = (target.epsilon, target.delta)
    if position is not None:
        allowed = sampled_targets(declaration, budgets)[position]
    rate = subsampled.person_rate(sample_rate, target.records_per_person)
    kept = (allowed[0] * (1.0 - RESERVE), allowed[1] * (1.0 - RESERVE))
    return presence / largest_presence(rate, steps, *kept) * (1.0 + 1e-14)


def largest_presence(rate: float, steps: int, epsilon: float, delta: float) -> float:
    """c at which replacing a whole contribution (a = 2c) costs at most ε at δ, within 1e-4."""

    def fits(c: float) -> bool:
        return subsampled.epsilon(rate, c, 2.0 * c, steps, delta) <= epsilon

    low = high = 1.0
    while not fits(low):
        low /= 4.0
    while fits(high):
        high *= 4.0
    low = max(low, high / 4.0) if high > 1.0 else low
    high = min(high, 4.0 * low)
    while high > low * (1.0 + 1e-4):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def step_changes(
    declaration: Declaration, fixed_noise: FixedNoise
) -> tuple[FloatArray, FloatArray]:
    """Squared μ of a step per kind: (with its own distance as it is, all distances at their least).

    The second was fixed before any release. A kind whose distance was released on a grid may be
    certified at δ/m by the first, in which the other distances stay at their least (THEORY T10).
    """
    kinds, supremum = fixed_noise.kinds, fixed_noise.supremum
    known, least = known_distances(declaration), least_distances(declaration)

    def changes(distances: Mapping[str, float]) -> FloatArray:
        noise = fixed_noise.noise(distances)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(supremum > 0, (supremum / noise) ** 2, 0.0)
        return chained(kinds, np.sqrt(ratio.sum(axis=1) * (1.0 + 1e-14))) ** 2

    fixed = changes(least)
    run = fixed.copy()
    for position, kind in enumerate(kinds):
        if known.get(kind.name) != least.get(kind.name):
            run[position] = changes({**least, kind.name: known[kind.name]})[position]
    return run, fixed


def fixed_sampling(
    declaration: Declaration, fixed_noise: FixedNoise, rate: float
) -> SampledBudgets:
    """Presence and changes of Poisson-sampled steps with the published noise.

    Raises
    ------
    ConfigurationError
        If the rule leaves a block without noise: then a sampled record shows itself there.
    """
    noise = fixed_noise.noise(least_distances(declaration))
    if not (noise > 0).all():
        name = fixed_noise.names[int(np.argmin(noise))]
        raise ConfigurationError(
            f"calibration='published' puts no noise on {name!r} (distance 0 and no sensitive "
            "column); use calibration='optimal' or full batches"
        )
    presence = math.sqrt(float(np.sum((fixed_noise.presence / noise) ** 2))) * (1.0 + 1e-14)
    run, fixed = step_changes(declaration, fixed_noise)
    return SampledBudgets(rate, presence, tuple(run), tuple(fixed))


def fixed_account(
    name: str,
    declaration: Declaration,
    fixed_noise: FixedNoise,
    sampler: SamplerUse,
    sample_rate: float | None = None,
) -> ReleaseAccount:
    """What a run with the published noise certifies; kinds beyond their target are problems."""
    if sample_rate is None:
        run, fixed = (sampler.steps * c for c in step_changes(declaration, fixed_noise))
        account = ReleaseAccount(name, run, np.sqrt(fixed), sampler)
    else:
        sampling = fixed_sampling(declaration, fixed_noise, sample_rate)
        changes = np.minimum(np.sqrt(sampling.fixed), 2.0 * sampling.presence)
        account = ReleaseAccount(
            name,
            np.array(sampling.change),
            changes,
            sampler,
            subsampling=sampling.use(sampler.steps, declaration.target.records_per_person),
        )
    return replace(account, problems=tuple(shortfalls(declaration, account)))


def shortfalls(declaration: Declaration, account: ReleaseAccount) -> list[str]:
    """A sentence for every kind that may lose more than its target, estimate included."""
    accounts = [*_estimate(declaration), account]
    target, sentences = declaration.target, []
    for position, budget in enumerate(declaration.budgets()):
        if math.isinf(budget.epsilon):
            continue
        loss = loss_together(accounts, position, target.delta)
        if budget.delta < target.delta:
            loss = min(loss, loss_together(accounts, position, budget.delta, "run"))
        if loss > budget.epsilon * (1.0 + TOLERANCE):
            sentences.append(
                f"published calibration: the noise certifies epsilon {loss:.4g} for "
                f"{budget.kind.name!r}, whose target is {budget.epsilon:.4g}"
            )
    return sentences


def _estimate(declaration: Declaration) -> list[ReleaseAccount]:
    """What an estimate of the distances spent before."""
    estimate = declaration.estimate
    if estimate is None or not estimate.draws:
        return []
    squared = np.array([estimate.mu_squared.get(kind.name, 0.0) for kind in declaration.kinds])
    sampler = SamplerUse(estimate.draws, estimate.largest_sigma, steps=1)
    return [ReleaseAccount("estimate-release", squared, np.sqrt(squared), sampler)]
