"""Discrete privacy-loss distributions and their self-composition, an upper bound (THEORY T7).

A pair (P, Q) enters through its hockey-stick profile H(γ) = sup_A P(A) − γQ(A) at γ = e^ε. Joining
the points of a convex profile by chords gives the profile of a pair that is easier to tell apart
("connect the dots"); composing that pair bounds the composition of the true one. Here the pairs
are symmetric, H(P‖Q) = H(Q‖P), so losses ε ≥ 0 describe everything.

Only the mass under P is kept. Every number that rounding could make too small is raised by a bound
of its error first, so a sum over the masses is never below the exact one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft, signal, special

from corrdp.errors import ConfigurationError

__all__ = ["Composition", "LossDistribution", "compose", "connect_the_dots", "least_delta"]
__all__ += ["least_epsilon"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_EPS = float(np.finfo(np.float64).eps)
_LOG_TAIL = math.log(1e-9)  # tilted mass outside the window, on each side
_LARGEST_TRANSFORM = 2**22
_FLAT = 600.0  # exponents are cut here; what lies beyond is far above any delta


@dataclass(frozen=True)
class LossDistribution:
    """Mass under P of a discrete privacy loss: `mass[i]` at `index[i]·step`, `infinite` at +∞.

    `index` (int64, ascending) and `mass` have one shape; masses are ≥ 0 and may add up to slightly
    more than one, being rounded up. Raises ConfigurationError when a field is NaN or out of range.
    """

    index: Integers
    mass: Floats
    step: float
    infinite: float

    def __post_init__(self) -> None:
        if not (0 < self.step < math.inf):
            raise ConfigurationError(f"step={self.step} is not allowed: pass a positive number")
        if not (0 <= self.infinite <= 1 + 1e-9):
            raise ConfigurationError(f"infinite={self.infinite} is not allowed: pass a probability")
        if self.index.shape != self.mass.shape or self.index.ndim != 1:
            raise ConfigurationError(f"index has shape {self.index.shape}: pass one for each mass")
        if not bool(np.all(self.mass >= 0)):
            raise ConfigurationError("mass has a negative or NaN entry: pass masses >= 0")

    def log_moments(self, tilts: Floats) -> Floats:
        """K(θ) = ln E_P e^{θ·loss} over the finite losses, rounded up, for each θ in `tilts`."""
        with np.errstate(divide="ignore"):
            log_mass = np.log(self.mass)
        exponents = log_mass + np.multiply.outer(tilts, self.step * self.index)
        top: Floats = exponents.max(axis=-1)
        sums = np.log(np.exp(exponents - top[..., None]).sum(axis=-1))
        largest = self.step * max(abs(int(self.index[0])), abs(int(self.index[-1])))
        out: Floats = top + sums + 4 * _EPS * (8 + np.abs(tilts) * largest)
        return out

    def scale(self) -> float:
        """Root mean square of the finite losses."""
        loss = self.step * self.index
        return float(math.sqrt(np.sum(self.mass * loss**2) / np.sum(self.mass)))

    def tilted_scale(self, tilt: float) -> float:
        """Standard deviation of the finite losses with masses proportional to mass·e^{θ·loss}."""
        loss = self.step * self.index
        with np.errstate(divide="ignore", under="ignore"):
            log_mass = np.log(self.mass) + tilt * loss
            tilted = np.exp(log_mass - log_mass.max())
        tilted /= tilted.sum()
        return math.sqrt(max(float(tilted @ (loss - float(tilted @ loss)) ** 2), 0.0))

    def infinite_after(self, steps: int) -> float:
        """Mass, rounded up, of the compositions that have an infinite loss in some step."""
        total = float(np.sum(self.mass)) + self.infinite
        grown = math.exp((steps - 1) * max(math.log(total), 0.0))
        return min(1.0, steps * self.infinite * grown * (1 + 8 * _EPS))


def connect_the_dots(
    index: Integers, values: Floats, relative_error: Floats, step: float
) -> LossDistribution:
    """Symmetric loss distribution whose profile is the chords through (e^{index·step}, values).

    Parameters
    ----------
    index
        0 = i_0 < i_1 < … ; need not be consecutive.
    values
        H at those points, known up to `relative_error` of each. All of H(last) goes to +∞.

    Returns
    -------
    Masses at ±index, each at least that of the exact chords: it dominates the pair (THEORY T7).
    """
    gaps = np.minimum(np.diff(index) * step, _FLAT)
    up = np.append(np.expm1(gaps), math.inf)[1:]  # e^Δ − 1 to the right of points 1, 2, …
    down = -np.expm1(-gaps)  # 1 − e^{−Δ} to their left
    right = np.append(values[2:], values[-1])
    mass = (values[:-1] - values[1:]) / down - (values[1:] - right) / up
    error = relative_error * values
    error_right = np.append(error[2:], 0.0)
    mass += (error[:-1] + error[1:]) / down + (error[1:] + error_right) / up
    first = float(np.expm1(gaps[0]))
    centre = 1.0 - ((first + 2) * float(values[0]) - 2 * float(values[1])) / first
    centre += (first + 2) * float(error[0] + error[1]) / first + 4 * _EPS
    mass = np.maximum(mass * (1 + 8 * _EPS), 0.0)
    mirrored = mass * np.exp(-step * index[1:]) * (1 + 8 * _EPS)
    return LossDistribution(
        index=np.concatenate([-index[:0:-1], index]),
        mass=np.concatenate([mirrored[::-1], [max(centre, 0.0)], mass]),
        step=step,
        infinite=min(1.0, float(values[-1] + error[-1])),
    )


def least_epsilon(loss: LossDistribution, steps: int, log_delta: float) -> tuple[float, float]:
    """Tilt θ and the ε ≥ 0 it gives at δ after `steps` steps, from moments alone (an upper bound).

    δ(ε) ≤ e^{T·K(θ) − θε}·θ^θ/(1+θ)^{1+θ} for every θ > 0; the best θ centres `compose` there.
    `log_delta` leaves room for the infinite losses. Returns (θ, 0) when δ alone covers everything.
    """

    def bound(tilts: Floats) -> Floats:
        total = steps * loss.log_moments(tilts)
        roundings = 16 * _EPS * (2 + np.abs(total) + abs(log_delta) + np.log1p(tilts))
        return (total - log_delta + _log_excess(tilts) + roundings) / tilts

    tilt, value = _minimise(bound, loss, steps)
    return tilt, max(0.0, value)


def least_delta(loss: LossDistribution, steps: int, epsilon: float) -> tuple[float, float]:
    """Tilt θ and the ln δ it gives at ε after `steps` steps, from moments alone (rounded up)."""

    def bound(tilts: Floats) -> Floats:
        total = steps * loss.log_moments(tilts)
        roundings = 16 * _EPS * (2 + np.abs(total) + tilts * epsilon + np.log1p(tilts))
        return total - tilts * epsilon + _log_excess(tilts) + roundings

    tilt, value = _minimise(bound, loss, steps)
    return tilt, min(0.0, value)


def _log_excess(tilts: Floats) -> Floats:
    """ln of the largest (1 − e^{−x})·e^{−θx} over x ≥ 0."""
    return -np.log1p(tilts) - tilts * np.log1p(1 / tilts)


def _minimise(
    bound: Callable[[Floats], Floats], loss: LossDistribution, steps: int
) -> tuple[float, float]:
    """Smallest value of a unimodal `bound` on a wide geometric range of tilts, by three zooms."""
    low = 1e-3 / max(loss.scale() * math.sqrt(steps), loss.step * float(loss.index[-1]))
    high = 1e4 / loss.scale()
    for _ in range(3):
        tilts = np.geomspace(low, high, 25)
        values = bound(tilts)
        best = int(np.argmin(values))
        low, high = float(tilts[max(best - 1, 0)]), float(tilts[min(best + 1, 24)])
    return float(tilts[best]), float(values[best])


@dataclass(frozen=True)
class Composition:
    """Loss after many steps: e^{log_scale − θ·loss}·weight[i] at loss (first + i)·step.

    `overflow` is ln of the mass of finite losses above the window, `infinite` the mass at +∞.
    """

    first: int
    weight: Floats
    step: float
    tilt: float
    log_scale: float
    overflow: float
    infinite: float

    def epsilon(self, delta: float, near: float) -> float:
        """Smallest ε in the window with δ(ε) ≤ `delta`, rounded up; `inf` when there is none.

        `near` only sets where numbers are scaled to one: pass a rough answer.
        """
        if not delta > self.infinite:
            return math.inf
        log_unit = self.log_scale - self.tilt * near
        first, tail, partial = self._tails(near)
        roundings = 16 * _EPS * (2 + abs(self.log_scale) + abs(self.tilt * near))
        target = math.exp(min(math.log(delta - self.infinite) - log_unit, _FLAT)) * (1 - roundings)
        target -= math.exp(min(self.overflow - log_unit, _FLAT)) * (1 + 8 * _EPS)
        fits = tail <= target
        if not fits.any():
            return math.inf
        j = int(np.argmax(fits))
        share = (target - float(tail[j])) / max(float(partial[j]), 1e-300)
        below = -math.log1p(-share) if share < 1 else math.inf
        value = (first + j) * self.step - (min(below, self.step) if j > 0 else 0.0)
        return value + 8 * _EPS * (abs(value) + self.step)

    def delta(self, epsilon: float) -> float:
        """δ at a finite ε inside or above the window, rounded up; 1 for an ε below the window."""
        log_unit = self.log_scale - self.tilt * epsilon
        first, tail, partial = self._tails(epsilon)
        j = math.ceil(epsilon / self.step) - first
        if j < 0:
            return 1.0
        total = 0.0
        if j < len(tail):
            below = max((first + j) * self.step - epsilon, 0.0) + 4 * _EPS * epsilon
            total = float(tail[j]) - math.expm1(-below) * float(partial[j])
        roundings = 16 * _EPS * (2 + abs(self.log_scale) + self.tilt * epsilon)
        logs = np.array([self.overflow, log_unit + math.log(max(total, 1e-300))])
        value = math.exp(min(float(special.logsumexp(logs)), 0.0)) + self.infinite
        return min(1.0, value * (1 + roundings))

    def _tails(self, near: float) -> tuple[int, Floats, Floats]:
        """First index, and at every ℓ_j from there Σ_{i≥j} w_i(1 − e^{ℓ_j−ℓ_i}), Σ w_i·e^{ℓ_j−ℓ_i}.

        Starts where e^{−θ(ℓ−near)} still is a number; all terms are ≥ 0, so nothing cancels.
        """
        lowest = math.ceil((near - _FLAT / self.tilt) / self.step)
        skip = min(max(lowest - self.first, 0), len(self.weight) - 1)
        count = len(self.weight) - skip
        losses = self.step * np.arange(self.first + skip, self.first + skip + count)
        w = self.weight[skip:] * np.exp(np.minimum(-self.tilt * (losses - near), _FLAT))
        roundings = 1 + 4 * _EPS * math.sqrt(count) + 64 * _EPS
        decay = math.exp(-self.step)
        partial = roundings * signal.lfilter([1.0], [1.0, -decay], w[::-1])
        grown = np.cumsum(-math.expm1(-self.step) * partial)
        tail = roundings * np.concatenate([[0.0], grown[:-1]])
        return self.first + skip, tail[::-1], partial[::-1]


def compose(loss: LossDistribution, steps: int, tilt: float) -> Composition:
    """Loss of `steps` independent steps, most exact near the mean of the tilted distribution.

    Masses are multiplied by e^{θ·loss} before the transform and divided by it afterwards, so the
    absolute error of the transform becomes a relative one at the losses that decide δ; that error,
    and the mass that the finite window loses at its top, are added (THEORY T7).
    """
    log_moment = float(loss.log_moments(np.array([tilt]))[0])
    with np.errstate(divide="ignore", under="ignore"):
        log_mass, shift = np.log(loss.mass), tilt * loss.step * loss.index
        roundings = 8 + 2 * (np.abs(shift) + abs(log_moment) + np.abs(np.maximum(log_mass, -745)))
        tilted = np.exp(log_mass + shift - log_moment) * (1 + _EPS * roundings)
    first, count, overflow = _window(loss, steps, tilt, log_moment, tilted)
    folded = np.bincount(loss.index % count, weights=tilted, minlength=count)
    spectrum = fft.rfft(folded)
    modulus = np.maximum(np.abs(spectrum), 1e-300)
    with np.errstate(under="ignore"):
        power = np.exp(steps * np.log(modulus)) * np.exp(1j * steps * np.angle(spectrum))
        spread = float(np.mean(modulus ** (steps - 1)))
    weight = np.roll(fft.irfft(power, count), -(first % count))
    error = 2 * _EPS * (math.log2(count) + 4) * steps * spread
    log_scale = steps * log_moment
    return Composition(
        first=first,
        weight=np.maximum(weight, 0.0) + error,
        step=loss.step,
        tilt=tilt,
        log_scale=log_scale,
        overflow=log_scale + overflow,
        infinite=loss.infinite_after(steps),
    )


def _window(
    loss: LossDistribution, steps: int, tilt: float, log_moment: float, tilted: Floats
) -> tuple[int, int, float]:
    """First index and length of the transform, and ln of the mass above it (before e^{T·K}).

    Mass beyond the ends wraps around. From below that only adds; what leaves at the top is bounded
    by Chernoff with the moments of the same masses.
    """
    where = loss.step * loss.index
    mean = float(tilted @ where)
    spread = math.sqrt(max(float(tilted @ (where - mean) ** 2), 0.0) * steps) + loss.step
    shifts = np.geomspace(0.05, 50.0, 25) / spread
    rise = steps * (loss.log_moments(tilt + shifts) - log_moment)
    fall = steps * (loss.log_moments(tilt - shifts) - log_moment)
    high = float(np.min((rise - _LOG_TAIL) / shifts))
    low = float(np.max((_LOG_TAIL - fall) / shifts))
    lowest, highest = steps * int(loss.index[0]), steps * int(loss.index[-1])
    last = min(math.ceil(high / loss.step) + 1, highest)
    begin = max(math.floor(low / loss.step) - 1, lowest)
    count = fft.next_fast_len(max(last - begin + 1, 16), real=True)
    count = min(count, _LARGEST_TRANSFORM)
    first = max(begin, last - count + 1)
    top = (first + count) * loss.step
    escaped = -math.inf if first + count > highest else float(np.min(rise - shifts * top))
    return first, count, escaped - tilt * top
