"""Gaussian differential privacy: μ against (ε, δ), each rounded to the safe side (THEORY T4).

A pair of outputs is μ-GDP when it is no easier to tell apart than N(0, 1) from N(μ, 1). With
t = ε/μ − μ/2 and the Mills ratio M(s) = Φ(−s)/φ(s), the curve of T4 reads

    δ_μ(ε) = Φ(−t) − e^ε·Φ(−t−μ) = φ(t)·(M(t) − M(t+μ)),

which neither overflows nor, for small μ, cancels: M(t) − M(t+μ) is then integrated, M' = sM − 1.
Every function below rests on `_curve`, an upper bound of ln δ_μ(ε) whose slack covers all
rounding, so what the inverse functions return is checked against it and not merely close.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from corrdp.errors import ConfigurationError

__all__ = ["delta", "epsilon", "group_chain", "log_delta", "mu", "mu_of_pure", "tau"]

Floats = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.nextafter(0.0, 1.0))
_HUGE = float(np.finfo(np.float64).max)
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_SQRT_HALF = math.sqrt(0.5)
_SQRT_HALF_PI = math.sqrt(math.pi / 2)
_INTEGRATE_BELOW = 0.5  # μ; eight nodes leave a relative error under 1e-17 there
_LEGENDRE = np.polynomial.legendre.leggauss(8)
_NODES, _WEIGHTS = 0.5 + 0.5 * _LEGENDRE[0], 0.5 * _LEGENDRE[1]  # on [0, 1]
_FAR = 1e4  # t; beyond it M(t) − M(t+μ) ≤ μ/(t(t+μ)) is as exact as ln δ ≈ −t²/2 can show
_CUBIC = 1e-6  # in ln δ; one more cubic step from there is exact
_MAX_STEPS = 100


def mu(epsilon: ArrayLike, delta: ArrayLike) -> float | Floats:
    """Largest μ for which μ-GDP implies (ε, δ)-DP, rounded down.

    Parameters
    ----------
    epsilon
        ε > 0; ``inf`` gives ``inf``. Broadcasts with `delta`.
    delta
        0 < δ < 1, down to 1e-300.

    Returns
    -------
    float for scalars, else an array of the broadcast shape. δ_μ(ε) ≤ δ holds for the returned μ
    in exact arithmetic (THEORY T4).

    Raises
    ------
    ConfigurationError
        ε is NaN or not positive, or δ is outside (0, 1).
    """
    return _broadcast(_mu, _epsilon(epsilon, allow_zero=False), _delta(delta))


def delta(mu: ArrayLike, epsilon: ArrayLike) -> float | Floats:
    """Smallest δ for which μ-GDP implies (ε, δ)-DP, rounded up (THEORY T4).

    `mu` ≥ 0 and `epsilon` ≥ 0 broadcast and may be ``inf``. Zero only for μ = 0 or ε = ∞;
    otherwise at least the smallest positive float. Raises ConfigurationError for NaN or negatives.
    """
    return _broadcast(_delta_of, _mu_values(mu), _epsilon(epsilon, allow_zero=True))


def log_delta(mu: ArrayLike, epsilon: ArrayLike) -> float | Floats:
    """Natural logarithm of `delta`, rounded up; also where δ itself would underflow (THEORY T4)."""
    return _broadcast(_log_delta_of, _mu_values(mu), _epsilon(epsilon, allow_zero=True))


def epsilon(mu: ArrayLike, delta: ArrayLike) -> float | Floats:
    """Smallest ε ≥ 0 for which μ-GDP implies (ε, δ)-DP, rounded up (THEORY T4).

    Zero when δ alone covers the pair; ``inf`` for μ = ∞. `mu` ≥ 0 and 0 < `delta` < 1 broadcast.
    Within 1e-9 of ε, or 1e-13 where δ fixes ε no better (δ_μ(0) just above δ). Raises
    ConfigurationError for NaN, a negative μ or δ outside (0, 1).
    """
    return _broadcast(_epsilon_of, _mu_values(mu), _delta(delta))


def mu_of_pure(epsilon: ArrayLike) -> float | Floats:
    """The μ = −2Φ⁻¹(1/(1+e^ε)) that every ε-DP pair satisfies, rounded up (THEORY T4).

    `epsilon` > 0 may be ``inf``; raises ConfigurationError otherwise.
    """
    return _broadcast(_mu_of_pure, _epsilon(epsilon, allow_zero=False))


def tau(epsilon: ArrayLike, delta: ArrayLike) -> float | Floats:
    """Total variation that an (ε, δ) pair can have: tanh(ε/2) + 2δ/(e^ε+1), rounded up (THEORY T3).

    `epsilon` ≥ 0 may be ``inf``; 0 ≤ `delta` < 1. Never above 1. Raises ConfigurationError
    for NaN or values outside.
    """
    d = _checked("delta", delta, "pass 0 <= delta < 1", lambda v: (v >= 0) & (v < 1))
    return _broadcast(_tau, _epsilon(epsilon, allow_zero=True), d)


def group_chain(mus: ArrayLike) -> float:
    """μ of a chain of changes, each μ_k-GDP: Σ μ_k, rounded up (THEORY T3); ∞ if any is ∞.

    Raises ConfigurationError for NaN or a negative μ.
    """
    values = np.ravel(_mu_values(mus))
    if np.isinf(values).any():
        return math.inf
    total = math.fsum(values.tolist())
    return math.nextafter(total, math.inf) if total > 0 else 0.0


# --- the curve -----------------------------------------------------------------------------------


class _Curve(NamedTuple):
    """An upper bound of ln δ_μ(ε), with what its derivatives are made of."""

    log: Floats  # ≥ ln δ
    t: Floats  # ≤ ε/μ − μ/2
    hazard: Floats  # φ(t)/δ
    mills: Floats  # M(t+μ)


def _curve(m: Floats, e: Floats) -> _Curve:
    """Evaluate ln δ_μ(ε) from above for 0 < μ < ∞ and 0 ≤ ε < ∞.

    Two allowances make it an upper bound: t is lowered by what forming it can lose, and
    16 eps·(2+t²) is added for the rest (the worst is 1 − sM(s), which loses 3 eps·s²).
    """
    x = np.minimum(e / m, 1e200)
    t = x - m / 2
    # the exact t is not below this one, and δ falls with t
    t = np.minimum(t - 2 * _EPS * (x + m / 2), 1e150)
    s = t + m
    square = t * t
    log_phi = -0.5 * square - _LOG_SQRT_2PI
    mills = _SQRT_HALF_PI * special.erfcx(_SQRT_HALF * s)
    rest = mills / (_SQRT_HALF_PI * special.erfcx(_SQRT_HALF * t))
    value = special.log_ndtr(-t) + np.log1p(-rest)
    near = m < _INTEGRATE_BELOW
    if near.any():
        value[near] = log_phi[near] + np.log(_mills_fall(t[near], m[near]))
    size = square
    far = t > _FAR
    if far.any():
        value = np.where(far, log_phi + np.log(m) - np.log(t) - np.log(s), value)
        value = np.maximum(value, -_HUGE)
        size = np.where(far, np.abs(value), square)
    value = np.minimum(value + 16 * _EPS * (2 + size), 0.0)
    return _Curve(value, t, np.exp(log_phi - value), mills)


def _mills_fall(t: Floats, m: Floats) -> Floats:
    """M(t) − M(t+μ) for μ < 1/2 as the integral of 1 − sM(s), which has no cancellation in μ."""
    s = t[:, None] + m[:, None] * _NODES
    integrand = 1 - s * (_SQRT_HALF_PI * special.erfcx(_SQRT_HALF * s))
    large = s > 30.0
    if large.any():
        # there 1 − sM(s) would cancel; its expansion ends on a positive term: an upper bound
        inverse = 1 / s[large] ** 2
        series = np.zeros_like(inverse)
        for factor in (13, 11, 9, 7, 5, 3):
            series = factor * inverse * (1 - series)
        integrand[large] = inverse * (1 - series)
    fall: Floats = m * (integrand * _WEIGHTS).sum(axis=1)
    return fall


def _mu(e: Floats, d: Floats) -> Floats:
    out = np.full(e.shape, math.inf)
    finite = np.isfinite(e)
    if finite.any():
        with np.errstate(all="ignore"):
            out[finite] = _solve_mu(e[finite], d[finite])
    return out


def _solve_mu(e: Floats, d: Floats) -> Floats:
    """Halley's iteration in ln μ, then steps down until the bound of ln δ is met."""
    target = _log_down(d)
    # Φ(−t) and δ_μ(0) both exceed δ_μ(ε), so the inverse of either lies below the answer
    t = -special.ndtri(d)
    root = np.hypot(t, math.sqrt(2) * np.sqrt(e))
    m = np.where(t > 0, 2 * (e / (t + root)), root - t)
    m = np.maximum(m, 2 * math.sqrt(2) * special.erfinv(d))
    done = np.zeros(m.shape, dtype=bool)
    for _ in range(_MAX_STEPS):
        curve = _curve(m, e)
        miss = target - curve.log
        slope = m * curve.hazard
        bend = 1 + curve.t * (curve.t + m) - slope  # second over first derivative
        better = m * np.exp(np.clip(_halley(miss, slope, bend), -1.0, 4.0))
        m = np.where(done, m, better)  # an entry must not depend on its neighbours
        done |= np.abs(miss) < _CUBIC
        if done.all():
            break
    m = m * (1 - 4 * _EPS)
    shrink = 4 * _EPS
    for _ in range(_MAX_STEPS):
        bad = ~(_curve(m, e).log <= target)
        if not bad.any():
            return m
        m = np.where(bad, m * (1 - min(shrink, 0.5)), m)
        shrink *= 2
    return np.where(bad, 0.0, m)


def _epsilon_of(m: Floats, d: Floats) -> Floats:
    out = np.where(np.isinf(m), math.inf, 0.0)
    with np.errstate(all="ignore"):
        spends = np.isfinite(m) & (m > 0)
        spends[spends] = _curve(m[spends], np.zeros_like(m[spends])).log > _log_down(d[spends])
        if spends.any():
            out[spends] = _solve_epsilon(m[spends], d[spends])
    return out


def _solve_epsilon(m: Floats, d: Floats) -> Floats:
    """Halley's iteration in ε, then steps up until the bound of ln δ is met."""
    target = _log_down(d)
    # Φ(−t) exceeds δ, so the inverse of the former lies above the answer
    e = np.minimum(m * np.maximum(m / 2 - special.ndtri(d), _EPS * m), _HUGE)
    done = np.zeros(m.shape, dtype=bool)
    for _ in range(_MAX_STEPS):
        curve = _curve(m, e)
        miss = target - curve.log
        slope = -curve.mills * curve.hazard
        bend = 1 - 1 / (m * curve.mills) - slope
        better = np.clip(e + _halley(miss, slope, bend), e / 64, 2 * e + m)
        e = np.where(done, e, better)
        done |= np.abs(miss) < _CUBIC
        if done.all():
            break
    e = e * (1 + 4 * _EPS)
    grow = 4 * _EPS
    for _ in range(_MAX_STEPS):
        bad = ~(_curve(m, e).log <= target)
        if not bad.any():
            return e
        e = np.where(bad, e * (1 + grow), e)
        grow *= 2
    return np.where(bad, math.inf, e)


def _halley(miss: Floats, slope: Floats, bend: Floats) -> Floats:
    """Step to the root of f from miss = −f, slope = f' and bend = f''/f'."""
    newton = miss / np.where(np.abs(slope) > _TINY, slope, np.copysign(_TINY, slope))
    step: Floats = newton / np.clip(1 + 0.5 * newton * bend, 0.5, 2.0)
    return step


def _log_delta_of(m: Floats, e: Floats) -> Floats:
    out = np.where(np.isinf(m), 0.0, -math.inf)
    out[np.isinf(e)] = -math.inf
    inner = np.isfinite(m) & (m > 0) & np.isfinite(e)
    with np.errstate(all="ignore"):
        out[inner] = np.maximum(_curve(m[inner], e[inner]).log, -_HUGE)
    return out


def _delta_of(m: Floats, e: Floats) -> Floats:
    logs = _log_delta_of(m, e)
    with np.errstate(under="ignore"):
        values = np.nextafter(np.exp(logs) * (1 + 4 * _EPS), 2.0)
    return np.where(np.isneginf(logs), 0.0, np.minimum(values, 1.0))


def _mu_of_pure(e: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        small = 2 * math.sqrt(2) * special.erfinv(np.tanh(e / 2))
        large = -2 * special.ndtri_exp(-np.logaddexp(0.0, e))
    out = np.where(e < 1, small, large) * (1 + 32 * _EPS)
    return np.where(np.isinf(e), math.inf, out)


def _tau(e: Floats, d: Floats) -> Floats:
    value = np.tanh(e / 2) + 2 * d * special.expit(-e)
    return np.minimum(np.nextafter(value * (1 + 8 * _EPS), 2.0), 1.0)


def _log_down(d: Floats) -> Floats:
    """ln δ, rounded down."""
    logs = np.log(d)
    return logs - 2 * _EPS * np.abs(logs)


# --- arguments -----------------------------------------------------------------------------------


def _checked(
    name: str, value: ArrayLike, mend: str, valid: Callable[[Floats], NDArray[np.bool_]]
) -> Floats:
    try:
        out = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{name}={value!r} is not a number: {mend}") from error
    bad = ~valid(out)
    if np.any(bad):
        raise ConfigurationError(f"{name}={float(out[bad].flat[0])} is not allowed: {mend}")
    return out


def _epsilon(value: ArrayLike, *, allow_zero: bool) -> Floats:
    if allow_zero:
        return _checked("epsilon", value, "pass epsilon >= 0 (or inf)", lambda v: v >= 0)
    return _checked("epsilon", value, "pass epsilon > 0 (or inf)", lambda v: v > 0)


def _delta(value: ArrayLike) -> Floats:
    return _checked("delta", value, "pass 0 < delta < 1", lambda v: (v > 0) & (v < 1))


def _mu_values(value: ArrayLike) -> Floats:
    return _checked("mu", value, "pass mu >= 0 (or inf)", lambda v: v >= 0)


def _broadcast(function: Callable[..., Floats], *arguments: Floats) -> float | Floats:
    """Apply a function of equally shaped 1-d arrays; a float comes back for scalars."""
    try:
        full = np.broadcast_arrays(*arguments)
    except ValueError as error:
        shapes = " and ".join(str(a.shape) for a in arguments)
        raise ConfigurationError(
            f"shapes {shapes} do not broadcast: pass matching arrays"
        ) from error
    out = function(*(np.array(a, dtype=np.float64).reshape(-1) for a in full))
    return float(out[0]) if full[0].ndim == 0 else out.reshape(full[0].shape)
