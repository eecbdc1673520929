"""The published calibration: noise by distance, fixed beforehand, certified afterwards (THEORY T8).

Per step σ² on coordinates of sensitive columns and σ²·max{d_i, (m_s/m)²} on those of insensitive
column i, with σ the standard noise for (ε, δ) and the sensitivity 2L√ΣR_j² of a replaced record.
The intercept counts as an insensitive coordinate with the label's distance, a public column as one
with distance 0. The rule is not proved to meet every kind's target: what the noise certifies is
computed from the sensitivity table's supremum over the ball (THEORY T4, T7).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.encoding import Encoder
from corrdp.erm.fixed_noise import (
    TOLERANCE,
    FixedNoise,
    fixed_account,
    known_distances,
    least_distances,
    record_noise,
)
from corrdp.erm.plan import TrainingPlan
from corrdp.erm.sensitivity import SensitivityTable
from corrdp.privacy.budgets import KindBudget
from corrdp.privacy.certificate import ReleaseAccount, SamplerUse
from corrdp.privacy.declaration import Declaration
from corrdp.schema import Role

__all__ = [
    "Calibration",
    "block_noise",
    "known_distances",
    "least_distances",
    "linear_noise",
    "published_account",
    "standard_noise",
]

FloatArray: TypeAlias = NDArray[np.float64]
Calibration: TypeAlias = Literal["optimal", "published"]


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
    """σ of a step at which replacing a whole record meets (ε, δ); see :func:`record_noise`."""
    return record_noise(declaration, budgets, presence_norm(table), steps, sample_rate)


def linear_noise(table: SensitivityTable, radius: float, base: float) -> FixedNoise:
    """The published noise on a linear model whose iterates stay in the ball of ``radius``."""
    names = tuple(block.name for block in table.encoder.blocks)

    def noise(distances: Mapping[str, float]) -> FloatArray:
        return block_noise(table, base, distances)

    return FixedNoise(names, table.kinds, table.supremum(radius), table.presence, noise)


def published_account(
    declaration: Declaration,
    table: SensitivityTable,
    plan: TrainingPlan,
    base: float,
    sampler: SamplerUse,
    sample_rate: float | None = None,
) -> ReleaseAccount:
    """What a run with the published noise certifies; kinds beyond their target are problems."""
    fixed = linear_noise(table, plan.radius, base)
    return fixed_account("linear-release", declaration, fixed, sampler, sample_rate)


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
