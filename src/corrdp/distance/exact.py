"""Distance of a known distribution: total variation and the Dobrushin coefficient (THEORY T2)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corrdp.distance.events import Pair, widest_pair
from corrdp.errors import ConfigurationError

__all__ = [
    "dobrushin",
    "dobrushin_pair",
    "total_variation",
    "tv_bernoulli",
    "tv_gaussians",
]

_SUM_TOLERANCE = 1e-9


def total_variation(p: ArrayLike, q: ArrayLike) -> float:
    """½ Σ|p − q| of two probability vectors of the same length.

    Raises
    ------
    ConfigurationError
        A vector is not a distribution (negative, NaN, or its sum is not 1), or lengths differ.
    """
    first, second = (_distributions(np.asarray(v)[None])[0] for v in (p, q))
    if first.shape != second.shape:
        raise ConfigurationError(
            f"p has {first.size} cells and q has {second.size}; give both on the same cells"
        )
    return float(min(1.0, 0.5 * np.abs(first - second).sum()))


def dobrushin(conditional: ArrayLike) -> float:
    """Largest total variation between two rows of a conditional table (THEORY T2).

    Parameters
    ----------
    conditional
        Shape (levels, cells); row a is P(s | u = a), s the joint sensitive tuple.

    Returns
    -------
    d in [0, 1].

    Raises
    ------
    ConfigurationError
        Fewer than two levels or cells, or a row that is not a distribution.
    """
    return dobrushin_pair(conditional).value


def dobrushin_pair(conditional: ArrayLike) -> Pair:
    """The Dobrushin coefficient together with the pair of levels that attains it."""
    table = _distributions(conditional)
    if table.shape[0] < 2 or table.shape[1] < 2:
        raise ConfigurationError(
            f"conditional table of shape {table.shape}: needs two levels and two cells"
        )
    return widest_pair(table)


def tv_bernoulli(p: float, q: float) -> float:
    """|p − q|, the total variation of two coins with the given success probabilities."""
    for name, value in (("p", p), ("q", q)):
        if not 0 <= value <= 1:
            raise ConfigurationError(
                f"{name}={value!r} is not a probability; give 0 <= {name} <= 1"
            )
    return abs(p - q)


def tv_gaussians(mean_difference: float, sigma: float) -> float:
    """2Φ(|Δ|/2σ) − 1, the total variation of N(m, σ²) and N(m+Δ, σ²).

    Parameters
    ----------
    mean_difference, sigma
        Same unit; `sigma` > 0.
    """
    if not math.isfinite(mean_difference):
        raise ConfigurationError(f"mean_difference={mean_difference!r}: give a finite number")
    if not (sigma > 0 and math.isfinite(sigma)):
        raise ConfigurationError(f"sigma={sigma!r}: give a positive finite number")
    return math.erf(abs(mean_difference) / (2 * math.sqrt(2) * sigma))


def _distributions(table: ArrayLike) -> NDArray[np.float64]:
    """A table whose rows are checked to be distributions."""
    try:
        rows = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConfigurationError("the table is not numeric; give probabilities") from None
    if rows.ndim != 2 or rows.size == 0:
        raise ConfigurationError(f"the table has shape {rows.shape}; give levels × cells")
    if not (np.isfinite(rows).all() and (rows >= 0).all()):
        raise ConfigurationError("the table holds a negative or missing value; give probabilities")
    sums = rows.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    if not abs(sums[worst] - 1) <= _SUM_TOLERANCE:
        raise ConfigurationError(
            f"row {worst} sums to {sums[worst]:.6g}, not 1; a level without probability has no "
            "distance, leave it out or count it as 1"
        )
    return rows
