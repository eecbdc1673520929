"""Laplace noise for queries: pure ε per kind, exact on the lattice (THEORY T5, T14).

With contributions on hℤ and noise h·k, P(k) ∝ exp(−|k|h/scale), a change of the sum by at most a
in L1 is told apart by at most a/scale: no slack, no δ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.allocation import allocate_laplace
from corrdp.noise import NoiseSource
from corrdp.privacy.budgets import KindBudget

__all__ = ["draw_laplace", "laplace_scales", "laplace_use", "laplace_variance"]

FloatArray: TypeAlias = NDArray[np.float64]


def laplace_scales(
    l1: FloatArray, budgets: Sequence[KindBudget], sizes: FloatArray, calibration: str
) -> FloatArray:
    """Scale of every block: least Σ 2n_j·scale_j², or the paper's one scale (THEORY T5).

    The one scale is max_k Δ_k/ε_k, with ε_k = ε/d_k the correlated sensitivity over ε. Arguments
    as for :func:`corrdp.queries.gaussian.gaussian_noise`, with L1 bounds.
    """
    epsilon = np.array([budget.epsilon for budget in budgets])
    if calibration == "optimal":
        return allocate_laplace(l1, epsilon, sizes).scale
    whole = l1.sum(axis=1, keepdims=True) * (1.0 + 1e-13)
    single = allocate_laplace(whole, epsilon, [sizes.sum()]).scale
    return np.full(len(sizes), single[0])


def laplace_use(l1: FloatArray, scale: FloatArray) -> FloatArray:
    """ε that every kind loses, Σ_j a_kj/scale_j, rounded up; ``inf`` where the scale is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(l1 > 0, l1 / scale, 0.0)
    use: FloatArray = terms.sum(axis=1) * (1.0 + 1e-13)
    return use


def laplace_variance(scale: float, spacing: float) -> float:
    """Variance 2r/(1 − r)² cells of the discrete law, r = exp(−spacing/scale)."""
    if not scale > 0:
        return 0.0
    half = 0.5 * spacing / scale
    return 0.5 * (spacing / math.sinh(half)) ** 2 if half < 300.0 else 0.0


def draw_laplace(
    total: FloatArray, scale: float, spacing: float, source: NoiseSource
) -> FloatArray:
    """A block's sum plus exact discrete Laplace noise; whole numbers of cells throughout."""
    cells = np.rint(total / spacing).astype(np.int64)
    noise = source.discrete_laplace([Fraction(scale) / Fraction(spacing)] * total.size)
    return (cells + noise).astype(np.float64) * spacing
