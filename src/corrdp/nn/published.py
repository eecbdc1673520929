"""The published calibration on a network: noise by distance, certified afterwards (THEORY T8).

The first layer's and the skip's slice of insensitive column i get σ²·max{d_i, (m_s/m)²}, slices of
sensitive columns, deeper layers and trained output weights σ², both intercepts count as
insensitive with the label's distance. σ is the standard noise for (ε, δ) and the largest movement
that replacing a record can make. The rule is not proved to meet every target: what it certifies
is computed from the sensitivity table's supremum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.erm.published import known_distances, least_distances, shortfalls, variance_factors
from corrdp.neighbours import SENSITIVE
from corrdp.nn.network import Network
from corrdp.nn.sensitivity import NetworkSensitivity
from corrdp.privacy.budgets import reserved_mu_squared
from corrdp.privacy.certificate import ReleaseAccount, SamplerUse
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.guarantee import chained

__all__ = ["block_noise", "published_account", "standard_noise"]

FloatArray: TypeAlias = NDArray[np.float64]


def block_noise(network: Network, base: float, distances: Mapping[str, float]) -> FloatArray:
    """σ_j of every parameter block, shape (blocks,)."""
    by_column = dict(
        zip(
            (block.name for block in network.encoder.blocks),
            variance_factors(network.encoder, distances),
            strict=True,
        )
    )
    factors = [
        1.0 if block.column is None else by_column[block.column.name] for block in network.blocks
    ]
    noise: FloatArray = base * np.sqrt(np.array(factors))
    return noise


def standard_noise(declaration: Declaration, table: NetworkSensitivity, steps: int) -> float:
    """σ of a step at which replacing a whole record meets (ε, δ), rounded up (THEORY T4)."""
    budgets = declaration.budgets()
    position = next((i for i, b in enumerate(budgets) if b.kind.name == SENSITIVE), None)
    squared = reserved_mu_squared(declaration.target.epsilon, declaration.target.delta)
    squared = squared if position is None else budgets[position].mu_squared
    movement = 2.0 * float(np.linalg.norm(table.presence))
    return movement * math.sqrt(steps / squared) * (1.0 + 1e-12)


def published_account(
    declaration: Declaration,
    table: NetworkSensitivity,
    radius: float,
    base: float,
    sampler: SamplerUse,
) -> ReleaseAccount:
    """What a run of ``sampler.steps`` with the published noise certifies.

    Kinds that may lose more than their target are problems. The noise depends on distances; where
    those were released, ``fixed`` takes the least that was fixed before (THEORY T10).
    """
    supremum = table.largest(radius)
    known, least = known_distances(declaration), least_distances(declaration)

    def spent(distances: Mapping[str, float]) -> FloatArray:
        noise = block_noise(table.query.network, base, distances)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(supremum > 0, (supremum / noise) ** 2, 0.0)
        step = chained(table.kinds, np.sqrt(ratio.sum(axis=1) * (1.0 + 1e-12)))
        total: FloatArray = sampler.steps * step**2
        return total

    fixed = spent(least)
    run = fixed.copy()
    for position, kind in enumerate(table.kinds):
        if known.get(kind.name) != least.get(kind.name):
            run[position] = spent({**least, kind.name: known[kind.name]})[position]
    account = ReleaseAccount("network-release", run, np.sqrt(fixed), sampler)
    problems = tuple(shortfalls(declaration, account))
    return ReleaseAccount("network-release", run, np.sqrt(fixed), sampler, problems)
