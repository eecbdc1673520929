"""One Poisson-sampled step: its exact profile and the loss distribution made of it (THEORY T7).

P = (1−q)·N(0, I) + q·N(v, I) and Q likewise with v′, where ‖v‖, ‖v′‖ ≤ c and ‖v − v′‖ ≤ a ≤ 2c.
Functions here take checked arguments; `corrdp.privacy.subsampled` is the way in.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from corrdp.privacy.loss_distribution import LossDistribution, connect_the_dots

__all__ = ["hockey_stick", "last_loss", "loss_distributions", "loss_scale"]

Floats = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_FAR_PRESENCE = 1e3  # longer contributions count as infinitely long: dearer by less than .1 %
_INTEGRATE_BELOW = 0.5  # eight nodes leave a relative error below 1e-16 there
_LEAST_VALUE = 1e-290  # smaller values lose digits; they are raised to this
_NEWTON_STEPS = 60
_NODES, _WEIGHTS = (np.asarray(v, dtype=np.float64) for v in np.polynomial.legendre.leggauss(8))


def hockey_stick(e: Floats, q: float, c: float, a: float) -> tuple[Floats, Floats]:
    """H = sup P(A) − e^ε·Q(A) at ε ≥ 0, and a bound of its relative error (THEORY T7).

    With x where the two summands of `_threshold` add up to one, H is
    q·φ(x)·[α·(M(x) − M(x+c)) + (1−α)·(M(x) − M(x+a))], α the first summand and M the Mills ratio.
    """
    if a == 0:
        return np.zeros_like(e), np.zeros_like(e)
    if math.isinf(a):
        return np.full_like(e, q), np.full_like(e, 8 * _EPS)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        far = c > _FAR_PRESENCE or q == 1
        x = e / a - a / 2
        if far:
            value = q * _mills_gap(x, a)
        else:
            x, absent = _threshold(e, x, q, c, a)
            value = q * (absent * _mills_gap(x, c) + (1 - absent) * _mills_gap(x, a))
        # rounding moves x and the summands; left of 0 that changes H by multiples of φ(x) only
        share = np.exp(-0.5 * np.minimum(x, 0.0) ** 2)
        moved = x * x + (0.0 if far else c * c) + a * (1 + np.abs(x))
        error = 80 * _EPS * (8 + share * moved)
    small = value < _LEAST_VALUE
    return np.maximum(value, _LEAST_VALUE), np.where(small, 1.0, np.minimum(error, 1.0))


def _threshold(e: Floats, x: Floats, q: float, c: float, a: float) -> tuple[Floats, Floats]:
    """Root x of κe^{−cx−c²/2} + γe^{−ax−a²/2} = 1, and the first summand there.

    The logarithm of the left side falls and is convex, and either summand alone has its root to
    the left: Newton climbs from the larger one without overshooting.
    """
    odds = math.log1p(-q) - math.log(q)
    log_kappa = e + np.log(-np.expm1(-e)) + odds  # −∞ at ε = 0
    x = np.maximum(x, log_kappa / c - c / 2)
    for _ in range(_NEWTON_STEPS):
        log_a, log_b = log_kappa - c * (x + c / 2), e - a * (x + a / 2)
        top = np.maximum(log_a, log_b)
        value = top + np.log1p(np.exp(np.minimum(log_a, log_b) - top))
        part_a, part_b = np.exp(log_a - top), np.exp(log_b - top)
        step = value * (part_a + part_b) / (c * part_a + a * part_b)
        x = x + step
        if bool(np.all(np.abs(step) <= 1e-13 * (1 + np.abs(x)))):
            break
    return x, np.minimum(np.exp(log_kappa - c * (x + c / 2)), 1.0)


def _mills_gap(x: Floats, s: float) -> Floats:
    """φ(x)·(M(x) − M(x+s)) with the Mills ratio M = Φ(−·)/φ, for x ≥ −s/2."""
    phi = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    if s > _INTEGRATE_BELOW:
        head = np.where(x < 0, special.ndtr(-x), phi * _mills(np.maximum(x, 0.0)))
        return head - phi * _mills(np.maximum(x + s, 0.0))
    # M' = tM − 1: for a short s the integral has no cancellation
    t = x[:, None] + s * (0.5 + 0.5 * _NODES)
    square = np.maximum(t * t, 900.0)
    series = 1 - (3 - (15 - (105 - (945 - 10395 / square) / square) / square) / square) / square
    slope = np.where(t > 30.0, series / square, 1 - t * _mills(np.maximum(t, -2.0)))
    return s * phi * (slope @ (0.5 * _WEIGHTS))


def _mills(t: Floats) -> Floats:
    out: Floats = math.sqrt(math.pi / 2) * special.erfcx(math.sqrt(0.5) * t)
    return out


def loss_scale(q: float, c: float, a: float) -> float:
    """Root mean square loss of the contributions c and c − a under the former; sets the grid only.

    At a draw c + z the second distribution owes the share w to its sampled part, and
    loss = ln(1 + w·(e^{a(z + a/2)} − 1)).
    """
    c = min(c, max(_FAR_PRESENCE, a))
    y = np.linspace(-9.0, 9.0, 181)
    density = np.exp(-0.5 * y * y)
    density /= density.sum()
    total = 0.0
    for centre, share in ((-c, 1 - q), (0.0, q)):
        z = y + centre
        logit = special.logit(q) + (c - a) * (z + (c + a) / 2)
        odds = a * (z + a / 2)
        near = np.log1p(special.expit(logit) * np.expm1(np.clip(odds, -1.0, 1.0)))
        away = np.logaddexp(special.log_expit(logit) + odds, special.log_expit(-logit))
        total += share * float(density @ np.where(np.abs(odds) < 1, near, away) ** 2)
    return math.sqrt(total)


def last_loss(q: float, c: float, a: float, least: float, tail: float) -> float:
    """A loss ≥ `least` with a profile below `tail`, hardly more than the smallest such loss."""
    low, high = least, max(a * a / 2 + 39 * a, 2 * least)  # q·δ_a bounds H and is below 1e-290
    tail = max(tail, 10 * _LEAST_VALUE)
    for _ in range(2):
        points = np.geomspace(low, high, 33)
        reached = hockey_stick(points, q, c, a)[0] < tail
        reached[-1] = True
        j = max(int(np.argmax(reached)), 1)
        low, high = float(points[j - 1]), float(points[j])
    return high


@lru_cache(maxsize=64)
def loss_distributions(
    q: float, c: float, a: float, step: float, ratio: float, tail: float
) -> tuple[LossDistribution, LossDistribution]:
    """Dominating loss distribution on multiples of `step`, and one about twice as coarse.

    Strides grow to `ratio` times the index, which keeps rare large losses cheap. Losses with a
    profile below `tail` count as infinite: a tilt would make them weigh more than they should.
    """
    top = max(math.ceil(last_loss(q, c, a, step, tail) / step), 8)
    index = _indices(top, ratio)
    value, error = hockey_stick(step * index.astype(np.float64), q, c, a)
    return (
        connect_the_dots(index, value, error, step),
        connect_the_dots(index[::2], value[::2], error[::2], step),
    )


def _indices(top: int, ratio: float) -> NDArray[np.int64]:
    """0, 1, 2, … to at least `top`, an odd number, in strides that grow to `ratio` of the index."""
    out, i = [0], 0
    while i < top or len(out) % 2 == 0:
        i += max(1, int(ratio * i))
        out.append(i)
    return np.array(out, dtype=np.int64)
