"""Gaussian noise for queries: GDP per kind, allocated over blocks (THEORY T4, T5, T14)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.allocation import allocate
from corrdp.noise import NoiseSource, release
from corrdp.privacy.budgets import KindBudget

__all__ = ["draw_gaussian", "gaussian_noise", "gaussian_use", "gaussian_variance"]

# The sampler's error analysis ends at 36 deviations (THEORY T14); a kind that is limited at all is
# never allowed to shift outputs further than it can cover.
MOST = 22.0

FloatArray: TypeAlias = NDArray[np.float64]


def gaussian_noise(
    l2: FloatArray, budgets: Sequence[KindBudget], sizes: FloatArray, calibration: str
) -> FloatArray:
    """σ of every block: least Σ n_jσ_j², or one σ for all (THEORY T5).

    Parameters
    ----------
    l2 : array of shape (kinds, blocks)
    budgets : one per kind; their squared μ is met
    sizes : array of shape (blocks,)
    calibration : {"optimal", "one-scale"}
    """
    mu_squared = np.array([budget.mu_squared for budget in budgets])
    mu_squared = np.where(np.isfinite(mu_squared), np.minimum(mu_squared, MOST**2), math.inf)
    if calibration == "optimal":
        return allocate(l2, mu_squared, sizes).sigma
    # rounding of the sum is far below the last factor
    whole = np.sqrt((l2**2).sum(axis=1, keepdims=True)) * (1.0 + 1e-13)
    single = allocate(whole, mu_squared, [sizes.sum()]).sigma
    return np.full(len(sizes), single[0])


def gaussian_use(l2: FloatArray, sigma: FloatArray) -> FloatArray:
    """Squared μ that every kind loses, Σ_j a_kj²/σ_j², rounded up; ``inf`` where σ = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(l2 > 0, (l2 / sigma) ** 2, 0.0)
    use: FloatArray = terms.sum(axis=1) * (1.0 + 1e-13)
    return use


def gaussian_variance(sigma: float, spacing: float) -> float:
    """Variance of the rounded noise."""
    return sigma**2 + spacing**2 / 12.0 if sigma > 0 else 0.0


def draw_gaussian(
    total: FloatArray, sigma: float, spacing: float, source: NoiseSource
) -> FloatArray:
    """A block's sum plus lattice noise."""
    return release(total, sigma, spacing, source)
