"""The published calibration: noise by distance, fixed beforehand, certified afterwards (THEORY T8).

Per step σ² on coordinates of sensitive columns and σ²·max{d_i, (m_s/m)²} on those of insensitive
column i, with σ the standard noise for (ε, δ) and the sensitivity 2L√ΣR_j² of a replaced record.
The intercept counts as an insensitive coordinate with the label's distance, a public column as one
with distance 0. The rule is not proved to meet every kind's target: what the noise certifies is
computed from the sensitivity table's supremum over the ball (THEORY T4, T7).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.encoding import Encoder
from corrdp.erm.plan import TrainingPlan
from corrdp.erm.sampling import SampledBudgets, sampled_targets
from corrdp.erm.sensitivity import SensitivityTable
from corrdp.errors import ConfigurationError
from corrdp.neighbours import SENSITIVE
from corrdp.privacy import subsampled
from corrdp.privacy.budgets import RESERVE, KindBudget, reserved_mu_squared
from corrdp.privacy.certificate import ReleaseAccount, SamplerUse, loss_together
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.guarantee import chained
from corrdp.schema import Role

__all__ = [
    "Calibration",
    "block_noise",
    "known_distances",
    "least_distances",
    "published_account",
    "published_sampling",
    "standard_noise",
]

FloatArray: TypeAlias = NDArray[np.float64]
Calibration: TypeAlias = Literal["optimal", "published"]
TOLERANCE = 1e-9


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


def sensitive_blocks(encoder: Encoder) -> NDArray[np.bool_]:
    """Which blocks are sensitive columns, shape (blocks,); the intercept never is."""
    columns = encoder.blocks[:-1]
    return np.array([*(encoder.schema.role(b.name) == "sensitive" for b in columns), False])


def block_distances(encoder: Encoder, distances: Mapping[str, float]) -> FloatArray:
    """d per block: 1 where sensitive or without a distance, 0 where public; the label's last."""
    schema = encoder.schema

    def distance(role: Role, kind: str) -> float:
        if role == "public":
            return 0.0
        return 1.0 if role == "sensitive" else distances.get(kind, 1.0)

    values = []
    for block in encoder.blocks[:-1]:
        group = schema.group_of(block.name)
        kind = block.name if group is None else group.name
        values.append(distance(schema.role(block.name), kind))
    return np.array([*values, distance(schema.label.role, schema.label.name)])


def variance_factors(encoder: Encoder, distances: Mapping[str, float]) -> FloatArray:
    """σ_j²/σ² per block: 1 for sensitive columns, else max{d, (m_s/m)²}.

    m and m_s count coordinates of the design, the intercept among them (THEORY T8).
    """
    secret = sensitive_blocks(encoder)
    floor = (int(encoder.dimensions @ secret) / encoder.dimension) ** 2
    factors: FloatArray = np.maximum(block_distances(encoder, distances), floor)
    return factors


def block_noise(table: SensitivityTable, base: float, distances: Mapping[str, float]) -> FloatArray:
    """σ_j of every block when sensitive coordinates get ``base``, shape (blocks,)."""
    noise: FloatArray = base * np.sqrt(variance_factors(table.encoder, distances))
    return noise


def presence_norm(table: SensitivityTable) -> float:
    """L√ΣR_j², what a person can add to the sum; a replacement moves it by twice that."""
    return float(np.linalg.norm(table.presence)) * (1.0 + 1e-15)


def standard_noise(
    declaration: Declaration,
    budgets: Sequence[KindBudget],
    table: SensitivityTable,
    steps: int,
    sample_rate: float | None = None,
) -> float:
    """σ of a step at which replacing a whole record meets (ε, δ), or what an estimate left of it.

    Parameters
    ----------
    declaration : Declaration
    budgets : sequence of KindBudget
    table : SensitivityTable
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
        return 2.0 * presence_norm(table) * math.sqrt(steps / squared) * (1.0 + 1e-14)
    allowed = (target.epsilon, target.delta)
    if position is not None:
        allowed = sampled_targets(declaration, budgets)[position]
    rate = subsampled.person_rate(sample_rate, target.records_per_person)
    kept = (allowed[0] * (1.0 - RESERVE), allowed[1] * (1.0 - RESERVE))
    return presence_norm(table) / largest_presence(rate, steps, *kept) * (1.0 + 1e-14)


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
    declaration: Declaration, table: SensitivityTable, radius: float, base: float
) -> tuple[FloatArray, FloatArray]:
    """Squared μ of a step per kind: (with its own distance as it is, all distances at their least).

    The second was fixed before any release. A kind whose distance was released on a grid may be
    certified at δ/m by the first, in which the other distances stay at their least (THEORY T10).
    """
    supremum = table.supremum(radius)
    known, least = known_distances(declaration), least_distances(declaration)

    def changes(distances: Mapping[str, float]) -> FloatArray:
        noise = block_noise(table, base, distances)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(supremum > 0, (supremum / noise) ** 2, 0.0)
        return chained(table.kinds, np.sqrt(ratio.sum(axis=1) * (1.0 + 1e-14))) ** 2

    fixed = changes(least)
    run = fixed.copy()
    for position, kind in enumerate(table.kinds):
        if known.get(kind.name) != least.get(kind.name):
            run[position] = changes({**least, kind.name: known[kind.name]})[position]
    return run, fixed


def published_sampling(
    declaration: Declaration, table: SensitivityTable, radius: float, base: float, rate: float
) -> SampledBudgets:
    """Presence and changes of Poisson-sampled steps with the published noise.

    Raises
    ------
    ConfigurationError
        If the rule leaves a block without noise: then a sampled record shows itself there.
    """
    noise = block_noise(table, base, least_distances(declaration))
    if not (noise > 0).all():
        name = table.encoder.blocks[int(np.argmin(noise))].name
        raise ConfigurationError(
            f"calibration='published' puts no noise on {name!r} (distance 0 and no sensitive "
            "column); use calibration='optimal' or full batches"
        )
    presence = math.sqrt(float(np.sum((table.presence / noise) ** 2))) * (1.0 + 1e-14)
    run, fixed = step_changes(declaration, table, radius, base)
    return SampledBudgets(rate, presence, tuple(run), tuple(fixed))


def published_account(
    declaration: Declaration,
    table: SensitivityTable,
    plan: TrainingPlan,
    base: float,
    sampler: SamplerUse,
    sample_rate: float | None = None,
) -> ReleaseAccount:
    """What a run with the published noise certifies; kinds beyond their target are problems."""
    if sample_rate is None:
        run, fixed = (plan.steps * c for c in step_changes(declaration, table, plan.radius, base))
        account = ReleaseAccount("linear-release", run, np.sqrt(fixed), sampler)
    else:
        sampling = published_sampling(declaration, table, plan.radius, base, sample_rate)
        changes = np.minimum(np.sqrt(sampling.fixed), 2.0 * sampling.presence)
        account = ReleaseAccount(
            "linear-release",
            np.array(sampling.change),
            changes,
            sampler,
            subsampling=sampling.use(plan.steps, declaration.target.records_per_person),
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


def noise_problems(
    table: SensitivityTable,
    declaration: Declaration,
    sigma: FloatArray,
    base: float,
    standard: Callable[[], float],
) -> tuple[list[str], float]:
    """What is wrong with a run's noise, and the base that it really amounts to.

    ``sigma`` has shape (steps, blocks). Noise below the rule counts for what it is.
    """
    rule = block_noise(table, base, known_distances(declaration))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(rule > 0, sigma / rule, 1.0)
    problems = []
    if not np.allclose(ratio, 1.0, rtol=TOLERANCE, atol=0.0):
        problems.append("the noise is not that of the published calibration")
    if not base >= standard() * (1.0 - 1e-6):
        problems.append("the noise is less than the standard noise of the published calibration")
    return problems, base * min(1.0, float(ratio.min(initial=1.0)))
