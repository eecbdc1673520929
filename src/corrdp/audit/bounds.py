"""Lower confidence bounds on a privacy loss from outputs of two neighbouring tables (THEORY T13).

The first half of the outputs chooses an event, the second half tests it: with p = P_A(event) and
q = P_B(event), one-sided Clopper–Pearson limits give a p that is surely not smaller and a q that
is surely not larger. Nothing is assumed about the outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from corrdp.errors import ConfigurationError

__all__ = ["epsilon_lower_bound", "lower_limit", "mu_lower_bound", "upper_limit"]

FloatArray: TypeAlias = NDArray[np.float64]
# (limit from below of P_A, limit from above of P_B) → lower bound of the loss
Bound: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]


def lower_limit(successes: ArrayLike, trials: int, level: float) -> FloatArray:
    """One-sided Clopper–Pearson limit: above the true probability at most with chance ``level``."""
    k = np.asarray(successes, dtype=np.float64)
    value = special.betaincinv(np.maximum(k, 1.0), trials - k + 1.0, level)
    limit: FloatArray = np.where(k > 0, value, 0.0)
    return limit


def upper_limit(successes: ArrayLike, trials: int, level: float) -> FloatArray:
    """One-sided Clopper–Pearson limit: below the true probability at most with chance ``level``."""
    limit: FloatArray = 1.0 - lower_limit(trials - np.asarray(successes), trials, level)
    return limit


def epsilon_lower_bound(
    outputs_a: ArrayLike, outputs_b: ArrayLike, delta: float, confidence: float = 0.95
) -> float:
    """An ε that the pair exceeds at δ, with the given confidence; 0 when nothing was seen.

    Parameters
    ----------
    outputs_a, outputs_b : array of shape (runs,) or (runs, statistics)
        What an attacker computed from independent runs on either table; at least 4 runs a side.
        With several statistics the first half also chooses among them and their best linear
        combination.
    delta : float
        0 ≤ δ < 1.
    confidence : float
        In (0, 1). The bound exceeds the true loss with probability at most 1 − confidence.

    Returns
    -------
    float
        ln((p − δ)/q) at its confidence limits; it cannot exceed about ln(runs/4) (THEORY T13).

    Raises
    ------
    ConfigurationError
        NaN among the outputs, too few runs, δ or confidence out of range.

    Examples
    --------
    >>> import numpy as np
    >>> bound = epsilon_lower_bound(np.zeros(2000), np.ones(2000), 1e-6)
    >>> 5 < bound < 7.6
    True
    """
    if not 0 <= delta < 1:
        raise ConfigurationError(f"delta={delta!r} is not allowed: pass 0 <= delta < 1")

    def bound(p: FloatArray, q: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            value: FloatArray = np.log(np.maximum(p - delta, 0.0)) - np.log(q)
        return value

    return _lower_bound(outputs_a, outputs_b, confidence, bound)


def mu_lower_bound(outputs_a: ArrayLike, outputs_b: ArrayLike, confidence: float = 0.95) -> float:
    """A μ of Gaussian DP that the pair exceeds: Φ⁻¹(p) − Φ⁻¹(q) at the confidence limits.

    Arguments and errors as for :func:`epsilon_lower_bound`. A μ-GDP mechanism stays below its μ
    with the given confidence (THEORY T4, T13).
    """

    def bound(p: FloatArray, q: FloatArray) -> FloatArray:
        value: FloatArray = special.ndtri(p) - special.ndtri(q)
        return value

    return _lower_bound(outputs_a, outputs_b, confidence, bound)


def _lower_bound(
    outputs_a: ArrayLike, outputs_b: ArrayLike, confidence: float, bound: Bound
) -> float:
    if not 0 < confidence < 1:
        raise ConfigurationError(f"confidence={confidence!r} must lie strictly between 0 and 1")
    a, b = _checked("outputs_a", outputs_a), _checked("outputs_b", outputs_b)
    if a.shape[1] != b.shape[1]:
        raise ConfigurationError(
            f"outputs_a has {a.shape[1]} statistics and outputs_b {b.shape[1]}; pass the same"
        )
    level = (1.0 - confidence) / 2.0
    # a stricter level for choosing: the best of many events must not be the luckiest
    choose = level / 50.0
    train_a, test_a = a[0::2], a[1::2]
    train_b, test_b = b[0::2], b[1::2]
    directions = _directions(train_a, train_b)
    best, event = -np.inf, None
    for direction in directions:
        scores_a, scores_b = train_a @ direction, train_b @ direction
        for side in (1.0, -1.0):
            for swapped in (False, True):
                first, second = (scores_b, scores_a) if swapped else (scores_a, scores_b)
                value, threshold = _best_threshold(side * first, side * second, choose, bound)
                if value > best:
                    best, event = value, (side * direction, swapped, threshold)
    if event is None:
        return 0.0
    direction, swapped, threshold = event
    first, second = (test_b, test_a) if swapped else (test_a, test_b)
    p = lower_limit(np.sum(first @ direction >= threshold), len(first), level)
    q = upper_limit(np.sum(second @ direction >= threshold), len(second), level)
    return max(0.0, float(bound(p, q)))


def _checked(name: str, outputs: ArrayLike) -> FloatArray:
    array = np.asarray(outputs, dtype=np.float64)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or len(array) < 4:
        raise ConfigurationError(f"{name} has shape {array.shape}; pass at least 4 runs")
    if np.isnan(array).any():
        raise ConfigurationError(f"{name} holds NaN; give a failed run a number of its own")
    return array


def _directions(a: FloatArray, b: FloatArray) -> list[FloatArray]:
    """Every statistic alone, and Fisher's linear combination of all of them."""
    single = list(np.eye(a.shape[1]))
    if a.shape[1] == 1 or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return single
    centre = np.vstack([a - a.mean(axis=0), b - b.mean(axis=0)])
    size = np.sqrt(np.mean(centre**2, axis=0)) + np.abs(a.mean(axis=0) - b.mean(axis=0))
    size[size == 0] = 1.0
    covariance = (centre / size).T @ (centre / size) / len(centre)
    covariance[np.diag_indices_from(covariance)] += 1e-9
    gap = (a.mean(axis=0) - b.mean(axis=0)) / size
    combined: FloatArray = np.linalg.solve(covariance, gap) / size
    return [*single, combined] if np.isfinite(combined).all() else single


def _best_threshold(
    first: FloatArray, second: FloatArray, level: float, bound: Bound
) -> tuple[float, float]:
    """The threshold t whose event {score ≥ t} promises the largest bound."""
    candidates = np.unique(np.concatenate([first, second]))
    if len(candidates) > 1000:
        candidates = candidates[np.linspace(0, len(candidates) - 1, 1000).astype(int)]
    hits = len(first) - np.searchsorted(np.sort(first), candidates, side="left")
    false = len(second) - np.searchsorted(np.sort(second), candidates, side="left")
    value = bound(lower_limit(hits, len(first), level), upper_limit(false, len(second), level))
    value = np.where(np.isnan(value), -np.inf, value)
    position = int(np.argmax(value))
    if position == 0:
        return float(value[0]), float(candidates[0])
    # between two seen scores, so that exact ties of the test half do not decide
    threshold = (candidates[position - 1] + candidates[position]) / 2.0
    return float(value[position]), float(threshold)
