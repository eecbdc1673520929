"""Many Poisson-sampled steps: ε at δ and δ at ε of their composition, rounded up (THEORY T7).

Functions here take checked arguments; `corrdp.privacy.subsampled` is the way in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from corrdp.errors import ConfigurationError
from corrdp.privacy import gdp
from corrdp.privacy.loss_distribution import (
    LossDistribution,
    compose,
    least_delta,
    least_epsilon,
)
from corrdp.privacy.one_step import hockey_stick, last_loss, loss_distributions, loss_scale

__all__ = ["GRID", "composed_delta", "composed_epsilon", "ever_joins"]

GRID = 0.05  # step of the loss in units of its standard deviation

_EPS = float(np.finfo(np.float64).eps)
_ACCURACY = 1e-3  # of ε, for which the grid is refined
_ACCURACY_AT_ZERO = 2e-4  # of δ, where ε is near zero
_LARGEST_GRID = 2**20
_LEAST_RATIO = 2e-4
_TAIL = 1e-5  # share of δ that losses too large for the grid may take


def ever_joins(rate: float, times: int) -> float:
    """1 − (1 − rate)^times, rounded up."""
    if rate == 1 or times == 1:
        return rate
    return min(1.0, -math.expm1(times * math.log1p(-rate)) * (1 + 16 * _EPS))


@lru_cache(maxsize=4096)
def composed_epsilon(q: float, c: float, a: float, steps: int, delta: float, grid: float) -> float:
    """Smallest ε ≥ 0 certified at `delta`, rounded up; a coarser `grid` only loosens it.

    `grid` is the step of the loss in standard deviations, a ≤ 2c. Raises ConfigurationError where
    δ is too small to certify (about 1e-280).
    """
    if a == 0:
        return 0.0
    if math.isinf(a):
        return 0.0 if delta >= ever_joins(q, steps) else math.inf
    if q == 1:
        return float(gdp.epsilon(a * math.sqrt(steps) * (1 + 4 * _EPS), delta))
    if steps == 1:
        return _single_epsilon(q, c, a, delta)

    def search(loss: LossDistribution) -> tuple[float, float, float]:
        room = delta - loss.infinite_after(steps)
        if not room > 0:
            raise ConfigurationError(
                f"delta={delta} cannot be certified over {steps} steps: pass a larger delta"
            )
        tilt, bound = least_epsilon(loss, steps, math.log(room))
        return tilt, bound, min(level, 0.8 * tilt * bound)

    best, level = math.inf, math.inf
    for _ in range(3):
        plan = _plan((q, c, a), steps, search, grid, _TAIL * delta / steps)
        value = 0.0
        if plan.bound > 0:
            found = compose(plan.loss, steps, plan.tilt).epsilon(delta, plan.bound)
            value = min(plan.bound, max(0.0, found))
        best = min(best, value)
        level = plan.tilt * value
        if best == 0 or plan.gain <= _tolerance(level, grid):
            break
    return best


@lru_cache(maxsize=4096)
def composed_delta(q: float, c: float, a: float, steps: int, epsilon: float) -> float:
    """Smallest δ certified at `epsilon` ≥ 0, rounded up; the tail is cut where it hardly counts."""
    if a == 0 or (math.isinf(epsilon) and math.isfinite(a)):
        return 0.0
    if math.isinf(a):
        return ever_joins(q, steps)
    if q == 1:
        return float(gdp.delta(a * math.sqrt(steps) * (1 + 4 * _EPS), epsilon))
    if steps == 1:
        return _single_delta(q, c, a, epsilon)

    def search(loss: LossDistribution) -> tuple[float, float, float]:
        tilt, bound = least_delta(loss, steps, epsilon)
        return tilt, bound, tilt * epsilon

    best, tail = 1.0, 1e-9
    while True:
        plan = _plan((q, c, a), steps, search, GRID, tail / steps)
        lost = plan.loss.infinite_after(steps)
        value = math.exp(plan.bound) * (1 + 1e-9) + lost
        if value > 2 * lost:
            value = min(value, compose(plan.loss, steps, plan.tilt).delta(epsilon))
        best = min(best, value)
        if lost <= 1e-3 * best or tail < 1e-280:
            return best
        tail *= 1e-7


@dataclass(frozen=True)
class _Plan:
    """A grid that is fine enough: its loss, the tilt, the bound by moments, and ln δ to gain."""

    loss: LossDistribution
    tilt: float
    bound: float
    gain: float


def _plan(
    pair: tuple[float, float, float],
    steps: int,
    search: Callable[[LossDistribution], tuple[float, float, float]],
    grid: float,
    tail: float,
) -> _Plan:
    """Refine the grid until halving it would hardly change the answer.

    It starts at `grid` standard deviations of the loss or, if that is more, of the tilted loss.
    `search` gives the tilt θ, a bound by moments and an upper estimate of θ·ε, to which the
    change of ln δ that counts is relative.
    """
    step, ratio = grid * loss_scale(*pair), 0.2 * grid
    for attempt in range(12):
        loss, coarse = loss_distributions(*pair, step, ratio, tail)
        tilt, bound, level = search(loss)
        spread = loss.tilted_scale(tilt)
        least = max(grid * spread / 256, 16 * math.sqrt(steps) * spread / _LARGEST_GRID)
        at = np.array([tilt])
        gain = steps * float(coarse.log_moments(at)[0] - loss.log_moments(at)[0])
        wanted = _tolerance(level, grid)
        if attempt == 0 and max(grid * spread, least) > 2 * step:
            step = max(grid * spread, least)
            continue
        if bound == 0 or gain <= wanted or step <= least:
            break
        shrink = max(0.9 * math.sqrt(wanted / gain), 1 / 16)
        step, ratio = max(step * shrink, least), max(ratio * shrink, _LEAST_RATIO)
    return _Plan(loss, tilt, bound, gain)


def _tolerance(level: float, grid: float) -> float:
    """Change of ln δ that does not count; ε moves by that over θ, `level` is θ·ε."""
    return max(_ACCURACY * level, _ACCURACY_AT_ZERO) * (grid / GRID) ** 2


def _single_epsilon(q: float, c: float, a: float, delta: float) -> float:
    """Smallest ε ≥ 0 at which the profile is at most δ, by zooming in."""
    low, high = 0.0, last_loss(q, c, a, 1e-12 * min(a, 1.0) * q, 0.0)
    for _ in range(6):
        points = np.linspace(low, high, 257)
        value, error = hockey_stick(points, q, c, a)
        fits = value * (1 + error) <= delta
        if not fits[-1]:
            raise ConfigurationError(f"delta={delta} cannot be certified: pass a larger delta")
        j = int(np.argmax(fits))
        if j == 0:
            return float(low)
        low, high = float(points[j - 1]), float(points[j])
    return high * (1 + 4 * _EPS)


def _single_delta(q: float, c: float, a: float, epsilon: float) -> float:
    value, error = hockey_stick(np.array([epsilon]), q, c, a)
    return min(1.0, float(value[0] * (1 + error[0])))
