"""Gaussian differential privacy: μ against (ε, δ), each rounded to the safe side (THEORY T4).

A pair of outputs is μ-GDP when it is no easier to tell apart than N(0, 1) from N(μ, 1). With
t = ε/μ − μ/2 and the Mills ratio M(s) = Φ(−s)/φ(s), the curve of T4 reads

    δ_μ(ε) = Φ(−t) − e^ε·Φ(−t−μ) = φ(t)·(M(t) − M(t+μ)),

which neither overflows nor, for small μ, cancels: M(t) − M(t+μ) is then integrated, M' = sM − 1.
Every function below rests on `_log_delta`, an upper bound of ln δ_μ(ε) whose slack covers all
rounding, so what the inverse functions return is checked against it and not merely close.
"""

from __future__ import annotations

import math

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
_INTEGRATE_BELOW = 0.5  # μ; eight nodes leave a relative error under 1e-17 there
_FAR = 1e4  # t; beyond it M(t) − M(t+μ) ≤ μ/(t(t+μ)) is as exact as ln δ ≈ −t²/2 can show
_NODES, _WEIGHTS = (np.asarray(v, dtype=np.float64) for v in np.polynomial.legendre.leggauss(8))
_NEWTON_STEPS = 60


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
    Raises ConfigurationError for NaN, a negative μ or δ outside (0, 1).
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


def _log_delta(m: Floats, e: Floats) -> tuple[Floats, Floats, Floats]:
    """Upper bound of ln δ_μ(ε), its slope in ln μ, and minus its slope in ε; 0 < μ < ∞, ε < ∞."""
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        x = np.minimum(e / m, 1e150)
        t = x - m / 2
        t = t - 2 * _EPS * (x + m / 2)  # at most the exact t, and δ falls with t
        s = t + m
        root_half = math.sqrt(0.5)
        scale = math.sqrt(math.pi / 2)
        mills_t, mills_s = (
            scale * special.erfcx(root_half * t),
            scale * special.erfcx(root_half * s),
        )
        apart = special.log_ndtr(-t) + np.log1p(-mills_s / mills_t)
        log_phi = -0.5 * t * t - _LOG_SQRT_2PI
        near = log_phi + np.log(_mills_fall(t, m))
        far = log_phi + np.log(m) - np.log(t) - np.log(s)
        value = np.where(m < _INTEGRATE_BELOW, near, apart)
        value = np.where(t > _FAR, far, value)
        slack = 16 * _EPS * (2 + np.where(t > _FAR, np.abs(value), t * t))
        slope_mu = np.exp(np.log(m) + log_phi - value)
        slope_epsilon = np.exp(log_phi + np.log(mills_s) - value)
        return np.minimum(value + slack, 0.0), slope_mu, slope_epsilon


def _mills_fall(t: Floats, m: Floats) -> Floats:
    """M(t) − M(t+μ) for μ < 1/2 as the integral of 1 − sM(s), which has no cancellation in μ."""
    s = t[..., None] + m[..., None] * (0.5 + 0.5 * _NODES)
    square = np.maximum(s * s, 900.0)
    # 1 − sM(s) in powers of 1/s²: where s is large the closed form would cancel
    series = 1 - (3 - (15 - (105 - (945 - 10395 / square) / square) / square) / square) / square
    closed = 1 - s * (math.sqrt(math.pi / 2) * special.erfcx(math.sqrt(0.5) * s))
    integrand = np.where(s > 30.0, series / square, closed)
    return m * (integrand @ (0.5 * _WEIGHTS))


def _mu(e: Floats, d: Floats) -> Floats:
    out = np.full(e.shape, math.inf)
    finite = np.isfinite(e)
    if not finite.any():
        return out
    e, log_d = e[finite], _log_down(d[finite])
    # Φ(−t) and δ_μ(0) both exceed δ_μ(ε), so either inverse lies below the answer; the curve is
    # concave in ln μ, so Newton climbs from there without overshooting.
    t = -special.ndtri(d[finite])
    root = np.sqrt(t * t + 2 * e)
    m = np.where(t > 0, 2 * e / (t + root), root - t)
    m = np.maximum(m, 2 * math.sqrt(2) * special.erfinv(d[finite]))
    for _ in range(_NEWTON_STEPS):
        value, slope, _unused = _log_delta(m, e)
        step = (log_d - value) / np.maximum(slope, _TINY)
        m = m * np.exp(np.clip(step, -1.0, 4.0))
        if np.all(np.abs(step) < 1e-9):
            break
    shrink = 2 * _EPS
    while not np.all(ok := _log_delta(m, e)[0] <= log_d):
        m = np.where(ok, m, m * (1 - min(shrink, 0.5)))
        shrink *= 2
    out[finite] = m
    return out


def _epsilon_of(m: Floats, d: Floats) -> Floats:
    out = np.where(np.isinf(m), math.inf, 0.0)
    log_d = _log_down(d)
    spends = np.isfinite(m) & (m > 0)
    spends[spends] = _log_delta(m[spends], np.zeros_like(m[spends]))[0] > log_d[spends]
    if not spends.any():
        return out
    m, log_d = m[spends], log_d[spends]
    # Φ(−t) exceeds δ, so this ε is too large; the curve is concave in ε: Newton descends to it
    with np.errstate(over="ignore"):
        e = np.minimum(m * np.maximum(m / 2 - special.ndtri(d[spends]), 0.0), _HUGE)
    for _ in range(_NEWTON_STEPS):
        value, _unused, slope = _log_delta(m, e)
        step = (value - log_d) / np.maximum(slope, _TINY)
        e_next = np.clip(e + step, e / 64, 2 * e + m)
        done = np.abs(e_next - e) <= 1e-9 * e
        e = e_next
        if done.all():
            break
    grow = 2 * _EPS
    while not np.all(ok := _log_delta(m, e)[0] <= log_d):
        e = np.where(ok, e, e * (1 + grow))
        grow *= 2
    out[spends] = e
    return out


def _log_delta_of(m: Floats, e: Floats) -> Floats:
    out = np.where(np.isinf(m), 0.0, -math.inf)
    out[np.isinf(e)] = -math.inf
    inner = np.isfinite(m) & (m > 0) & np.isfinite(e)
    out[inner] = np.maximum(_log_delta(m[inner], e[inner])[0], -_HUGE)
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


def _checked(name: str, value: ArrayLike, mend: str, valid) -> Floats:  # type: ignore[no-untyped-def]
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


def _broadcast(function, *arguments: Floats) -> float | Floats:  # type: ignore[no-untyped-def]
    """Apply a function of equally shaped 1-d arrays; a float comes back for scalars."""
    try:
        full = np.broadcast_arrays(*arguments)
    except ValueError as error:
        shapes = " and ".join(str(a.shape) for a in arguments)
        raise ConfigurationError(
            f"shapes {shapes} do not broadcast: pass matching arrays"
        ) from error
    out: Floats = function(*(np.array(a, dtype=np.float64).reshape(-1) for a in full))
    return float(out[0]) if full[0].ndim == 0 else out.reshape(full[0].shape)
