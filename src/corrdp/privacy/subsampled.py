"""What Poisson sampling costs when a neighbour replaces values instead of leaving (THEORY T7).

In every step each record joins with probability q and adds its contribution v; unit Gaussian noise
is added to the sum. Contributions are at most `presence` c long, and a change of the kind in
question moves them by at most `change` a (both in units of the noise). The one-step profile is the
exact supremum over all such pairs. Records are drawn independently in each step: a shuffled pass
is another mechanism and must not be accounted here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corrdp.errors import ConfigurationError
from corrdp.privacy import gdp
from corrdp.privacy.loss_distribution import (
    LossDistribution,
    compose,
    least_delta,
    least_epsilon,
)
from corrdp.privacy.one_step import hockey_stick, last_loss, loss_distributions, loss_scale

__all__ = ["delta", "epsilon", "person_rate", "profile"]

Floats = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_GRID = 0.05  # step of the loss in units of its standard deviation
_ACCURACY = 1e-3  # of ε, for which the grid is refined
_ACCURACY_AT_ZERO = 2e-4  # of δ, where ε is near zero
_LEAST_CHANGE = 1e-100  # smaller ones are raised to this
_LARGEST_GRID = 2**20
_LEAST_RATIO = 2e-4
_TAIL = 1e-5  # share of δ that losses too large for the grid may take


def profile(
    epsilon: ArrayLike, sample_rate: float, presence: float, change: float
) -> float | Floats:
    """One-step H(e^ε) = sup P(A) − e^ε·Q(A) over all pairs and events, rounded up.

    Parameters
    ----------
    epsilon
        Any finite real numbers; negative ones through H(P‖Q; γ) = 1 − γ + γ·H(Q‖P; 1/γ).
    sample_rate
        0 < q ≤ 1.
    presence, change
        c ≥ 0 and a ≥ 0 in units of the noise, `inf` allowed; a counts as at most 2c.

    Returns
    -------
    The exact supremum (THEORY T7: attained by the contributions c and c − a on a line) raised by
    the rounding error; a float for a scalar `epsilon`. At q = 1 it is T4's δ.

    Raises
    ------
    ConfigurationError
        An argument is NaN or out of range.
    """
    e = np.asarray(epsilon, dtype=np.float64)
    if not bool(np.all(np.isfinite(e))):
        raise ConfigurationError("epsilon has a NaN or infinite entry: pass finite numbers")
    q, c, a = _pair(sample_rate, presence, change)
    value, error = hockey_stick(np.abs(e).ravel(), q, c, a)
    value = np.minimum(value * (1 + error), 1.0).reshape(e.shape)
    with np.errstate(under="ignore"):
        mirrored = -np.expm1(np.minimum(e, 0.0)) + np.exp(np.minimum(e, 0.0)) * value
    value = np.where(e < 0, np.minimum(mirrored * (1 + 8 * _EPS), 1.0), value)
    return float(value) if value.ndim == 0 else value


def epsilon(sample_rate: float, presence: float, change: float, steps: int, delta: float) -> float:
    """Smallest ε ≥ 0 that `steps` steps are certified for at `delta`, rounded up (THEORY T7).

    Parameters
    ----------
    sample_rate, presence, change
        As in `profile`; they are fixed for the whole run, the allocation behind them need not be.
    steps
        T ≥ 1.
    delta
        0 < δ < 1.

    Returns
    -------
    A valid bound for every kind whose contributions stay within `presence` and move by at most
    `change`, in both orders of the pair; within about .1 % of what the symmetric dominating pair
    allows. `inf` when neither presence nor change is bounded. q = 1 is T4, T = 1 closed form.

    Raises
    ------
    ConfigurationError
        An argument is NaN or out of range.
    """
    q, c, a = _pair(sample_rate, presence, change)
    return _epsilon(q, c, a, _steps(steps), _delta_value(delta), _GRID)


def delta(sample_rate: float, presence: float, change: float, steps: int, epsilon: float) -> float:
    """Smallest δ that `steps` steps are certified for at `epsilon` ≥ 0, rounded up (THEORY T7).

    Arguments, guarantee and errors as for the function `epsilon`.
    """
    q, c, a = _pair(sample_rate, presence, change)
    if not epsilon >= 0:
        raise ConfigurationError(f"epsilon={epsilon} is not allowed: pass epsilon >= 0 (or inf)")
    return _delta(q, c, a, _steps(steps), float(epsilon))


def person_rate(sample_rate: float, records_per_person: int) -> float:
    """Probability that at least one of a person's k rows joins: 1 − (1 − q)^k, rounded up.

    Use it with presence and change times k when rows are sampled (THEORY T3); when whole persons
    are sampled the rate stays q. Plain q with row sampling understates the loss.
    """
    q, _c, _a = _pair(sample_rate, 0.0, 0.0)
    k = records_per_person
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not k >= 1:
        raise ConfigurationError(f"records_per_person={k!r} is not allowed: pass an integer >= 1")
    if q == 1 or k == 1:
        return q
    return min(1.0, -math.expm1(int(k) * math.log1p(-q)) * (1 + 16 * _EPS))


# --- many steps ----------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _epsilon(q: float, c: float, a: float, steps: int, delta: float, grid: float) -> float:
    if a == 0:
        return 0.0
    if math.isinf(a):
        return 0.0 if delta >= person_rate(q, steps) else math.inf
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
        return tilt, bound, min(level, tilt * bound)

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
def _delta(q: float, c: float, a: float, steps: int, epsilon: float) -> float:
    if a == 0 or (math.isinf(epsilon) and math.isfinite(a)):
        return 0.0
    if math.isinf(a):
        return person_rate(q, steps)
    if q == 1:
        return float(gdp.delta(a * math.sqrt(steps) * (1 + 4 * _EPS), epsilon))
    if steps == 1:
        return float(profile(epsilon, q, c, a))

    def search(loss: LossDistribution) -> tuple[float, float, float]:
        tilt, bound = least_delta(loss, steps, epsilon)
        return tilt, bound, tilt * epsilon

    best, tail = 1.0, 1e-9
    while True:
        plan = _plan((q, c, a), steps, search, _GRID, tail / steps)
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
    return max(_ACCURACY * level, _ACCURACY_AT_ZERO) * (grid / _GRID) ** 2


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


# --- arguments -----------------------------------------------------------------------------------


def _pair(sample_rate: float, presence: float, change: float) -> tuple[float, float, float]:
    """q, c and a ≤ 2c, checked."""
    if not 0 < sample_rate <= 1:
        raise ConfigurationError(f"sample_rate={sample_rate} is not allowed: pass 0 < q <= 1")
    if not presence >= 0:
        raise ConfigurationError(f"presence={presence} is not allowed: pass a number >= 0")
    if not change >= 0:
        raise ConfigurationError(f"change={change} is not allowed: pass a number >= 0")
    capped = min(float(change), 2 * float(presence))
    return float(sample_rate), float(presence), max(capped, _LEAST_CHANGE) if capped > 0 else 0.0


def _steps(steps: int) -> int:
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or not steps >= 1:
        raise ConfigurationError(f"steps={steps!r} is not allowed: pass an integer >= 1")
    return int(steps)


def _delta_value(delta: float) -> float:
    if not 0 < delta < 1:
        raise ConfigurationError(f"delta={delta} is not allowed: pass 0 < delta < 1")
    return float(delta)
