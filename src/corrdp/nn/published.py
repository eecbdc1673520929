"""The published calibration on a network: noise by distance, certified afterwards (THEORY T8).

The first layer's and the skip's slice of insensitive column i get σ²·max{d_i, (m_s/m)²}, slices of
sensitive columns, deeper layers and trained output weights σ², both intercepts count as
insensitive with the label's distance. σ is the standard noise for (ε, δ) and the largest movement
that replacing a record can make. The rule is not proved to meet every target: what it certifies
is computed from the sensitivity table's supremum.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.erm.fixed_noise import FixedNoise, fixed_account, record_noise
from corrdp.erm.published import variance_factors
from corrdp.nn.network import Network
from corrdp.nn.sensitivity import NetworkSensitivity
from corrdp.privacy.certificate import ReleaseAccount, SamplerUse
from corrdp.privacy.declaration import Declaration

__all__ = ["block_noise", "network_noise", "published_account", "standard_noise"]

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


def standard_noise(
    declaration: Declaration,
    table: NetworkSensitivity,
    steps: int,
    sample_rate: float | None = None,
) -> float:
    """σ of a step at which replacing a whole record meets (ε, δ), rounded up (THEORY T4, T7)."""
    presence = float(np.linalg.norm(table.presence)) * (1.0 + 1e-12)
    return record_noise(declaration, declaration.budgets(), presence, steps, sample_rate)


def network_noise(table: NetworkSensitivity, radius: float, base: float) -> FixedNoise:
    """The published noise on a network whose skip weights stay in the ball of ``radius``."""
    network = table.query.network
    names = tuple(block.name for block in network.blocks)

    def noise(distances: Mapping[str, float]) -> FloatArray:
        return block_noise(network, base, distances)

    return FixedNoise(names, table.kinds, table.largest(radius), table.presence, noise)


def published_account(
    declaration: Declaration,
    table: NetworkSensitivity,
    radius: float,
    base: float,
    sampler: SamplerUse,
    sample_rate: float | None = None,
) -> ReleaseAccount:
    """What a run of ``sampler.steps`` with the published noise certifies.

    Kinds that may lose more than their target are problems. The noise depends on distances; where
    those were released, ``fixed`` takes the least that was fixed before (THEORY T10).
    """
    fixed = network_noise(table, radius, base)
    return fixed_account("network-release", declaration, fixed, sampler, sample_rate)
