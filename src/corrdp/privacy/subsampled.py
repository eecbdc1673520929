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

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator

from corrdp.errors import ConfigurationError
from corrdp.privacy import gdp
from corrdp.privacy.many_steps import GRID, composed_delta, composed_epsilon, ever_joins
from corrdp.privacy.one_step import hockey_stick

__all__ = ["calibrate", "delta", "epsilon", "person_rate", "profile"]

Floats = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_LEAST_CHANGE = 1e-100  # smaller ones are raised to this
_NODES = 7  # changes at which calibration first looks
# shares of the target that calibration aims at and accepts; the room above lets a change that is
# computed again, and comes out a rounding error smaller, meet the target on a shifted grid too
_CLOSE, _AIM, _MOST = 0.99, 0.995, 0.999


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
    return composed_epsilon(q, c, a, _steps(steps), _delta_value(delta), GRID)


def delta(sample_rate: float, presence: float, change: float, steps: int, epsilon: float) -> float:
    """Smallest δ that `steps` steps are certified for at `epsilon` ≥ 0, rounded up (THEORY T7).

    Arguments, guarantee and errors as for the function `epsilon`.
    """
    q, c, a = _pair(sample_rate, presence, change)
    if not epsilon >= 0:
        raise ConfigurationError(f"epsilon={epsilon} is not allowed: pass epsilon >= 0 (or inf)")
    return composed_delta(q, c, a, _steps(steps), float(epsilon))


def person_rate(sample_rate: float, records_per_person: int) -> float:
    """Probability that at least one of a person's k rows joins: 1 − (1 − q)^k, rounded up.

    Use it with presence and change times k when rows are sampled (THEORY T3); when whole persons
    are sampled the rate stays q. Plain q with row sampling understates the loss.
    """
    q, _c, _a = _pair(sample_rate, 0.0, 0.0)
    k = records_per_person
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not k >= 1:
        raise ConfigurationError(f"records_per_person={k!r} is not allowed: pass an integer >= 1")
    return ever_joins(q, int(k))


def calibrate(sample_rate: float, steps: int, presence: float, targets: ArrayLike) -> Floats:
    """Largest change each kind may make: a_k ≤ 2c with `epsilon` at most its target (THEORY T7).

    Parameters
    ----------
    sample_rate, steps
        0 < q ≤ 1 and T ≥ 1.
    presence
        c, finite and positive, in units of the noise; shared by all kinds.
    targets
        One row (ε_k, δ_k) a kind: ε_k > 0, `inf` for a kind without a budget, 0 < δ_k < 1.

    Returns
    -------
    a_k, one for each row. ε(q, c, a_k, T, δ_k) never exceeds ε_k, and is within 1 % of it unless
    a_k = 2c, more than which no pair can move.

    Raises
    ------
    ConfigurationError
        An argument is NaN or out of range, or no change above 0 meets a target.
    """
    q, c, full = _pair(sample_rate, presence, math.inf)
    if not 0 < c < math.inf:
        raise ConfigurationError(f"presence={presence} is not allowed: pass a finite number > 0")
    rows = np.asarray(targets, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise ConfigurationError(f"targets has shape {rows.shape}: pass one (epsilon, delta) a row")
    if not bool(np.all(rows[:, 0] > 0)):
        raise ConfigurationError("targets has an epsilon that is not > 0: pass epsilon > 0 or inf")
    out = np.empty(len(rows))
    for level in np.unique(rows[:, 1]):
        here = rows[:, 1] == level
        wanted, back = np.unique(rows[here, 0], return_inverse=True)
        out[here] = _largest_changes(q, c, full, _steps(steps), _delta_value(level), wanted)[back]
    return out


# --- calibration ---------------------------------------------------------------------------------


def _largest_changes(
    q: float, c: float, full: float, steps: int, delta: float, wanted: Floats
) -> Floats:
    """The largest change for each ascending ε in `wanted`, all at one δ."""
    if q == 1:
        each = np.asarray(gdp.mu(wanted, delta), dtype=np.float64) / math.sqrt(steps)
        return np.minimum(each * (1 - 8 * _EPS), full)

    def certified(change: float) -> float:
        return composed_epsilon(q, c, change, steps, delta, GRID)

    def rough(change: float) -> float:
        return composed_epsilon(q, c, change, steps, delta, 2 * GRID)

    out = np.full(wanted.shape, full)
    tight = _MOST * wanted < certified(full)
    if tight.any():
        changes, values = _nodes(rough, full, float(wanted[0]))
        out[tight] = [_refine(certified, changes, values, float(t)) for t in wanted[tight]]
    return out


def _nodes(rough: Callable[[float], float], full: float, least: float) -> tuple[Floats, Floats]:
    """Changes from one that surely meets the least target up to `full`, and their ε."""
    change, value = full, rough(full)
    while value > 0.9 * least:
        change *= min(0.5, max(0.5 * least / value, 1e-3))
        if change < 1e-12 * full:
            raise ConfigurationError(
                f"no change meets epsilon={least}: raise epsilon or delta, or lower the presence"
            )
        value = rough(change)
    changes = np.geomspace(change, full, _NODES)
    values = np.array([rough(float(a)) for a in changes])
    return changes, np.maximum.accumulate(values)


def _refine(
    certified: Callable[[float], float], changes: Floats, values: Floats, target: float
) -> float:
    """A change whose certified ε is at most the target and close to it.

    The roughly known ε at `changes` start it, as a monotone curve ln ε → ln a.
    """
    j = int(np.searchsorted(values, target, side="right"))
    low, high = float(changes[j - 1]), float(changes[min(j, len(changes) - 1)])
    rising = np.append(values[:-1] < values[1:], True) & (values > 0)
    change, slope = math.sqrt(low * high), 1.0
    if rising.sum() > 1 and float(values[rising][0]) <= _AIM * target:
        curve = PchipInterpolator(np.log(values[rising]), np.log(changes[rising]))
        change = math.exp(float(curve(math.log(_AIM * target))))
        slope = max(float(curve(math.log(_AIM * target), 1)), 1e-3)
    best = 0.0
    for _ in range(40):
        value = certified(change)
        meets = value <= _MOST * target
        if meets:
            best = max(best, change)
            if value >= _CLOSE * target:
                break
        low, high = (max(low, change), high) if meets else (low, min(high, change))
        if high <= low * (1 + 1e-9):
            break
        proposal = change * (_AIM * target / value) ** slope if value > 0 else 0.0
        change = proposal if low < proposal < high else math.sqrt(low * high)
    while best == 0:
        best = low if certified(low) <= _MOST * target else 0.0
        low *= 0.999
    return best


# --- arguments -----------------------------------------------------------------------------------


def _pair(sample_rate: float, presence: float, change: float) -> tuple[float, float, float]:
    """q, c and a ≤ 2c, checked."""
    if not 0 < sample_rate <= 1:
        raise ConfigurationError(f"sample_rate={sample_rate} is not allowed: pass 0 < q <= 1")
    if not presence >= 0:
        raise ConfigurationError(f"presence={presence} is not allowed: pass a number >= 0")
    if not change >= 0:
        raise ConfigurationError(f"change={change} is not allowed: pass a number >= 0")
    q, c = float(sample_rate), float(presence)
    a = min(float(change), 2 * c)
    if 0 < a < _LEAST_CHANGE:
        a, c = _LEAST_CHANGE, max(c, _LEAST_CHANGE)
    return q, c, a


def _steps(steps: int) -> int:
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or not steps >= 1:
        raise ConfigurationError(f"steps={steps!r} is not allowed: pass an integer >= 1")
    return int(steps)


def _delta_value(delta: float) -> float:
    if not 0 < delta < 1:
        raise ConfigurationError(f"delta={delta} is not allowed: pass 0 < delta < 1")
    return float(delta)
