"""How much accuracy the published calibration can gain: noise dimension and risk bounds (T9).

With noise variance σ²·f_j on the n_j coordinates of block j, f_j = 1 for sensitive columns and
max{d_i, (m_s/m)²} otherwise, the noise has the norm σ·√(noise dimension), and a convex loss with
record gradients of at most G on a ball of radius ϱ has an excess empirical risk of the order
G·ϱ·√(noise dimension · ln(1/δ))/(n·ε). Ordinary DP has m for the noise dimension.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corrdp.distance import Distances
from corrdp.encoding import Encoder
from corrdp.erm.losses import Loss
from corrdp.erm.published import block_distances, sensitive_blocks
from corrdp.errors import ConfigurationError

__all__ = [
    "UtilityBound",
    "averaged_risk_bound",
    "excess_risk_rate",
    "gain_factor",
    "noise_dimension",
    "noise_dimension_limit",
    "utility_bound",
]

FloatArray: TypeAlias = NDArray[np.float64]


def _counted(sensitive: int, distances: ArrayLike) -> tuple[int, FloatArray]:
    """m_s ≥ 0 and the d_i of the other coordinates, checked."""
    if isinstance(sensitive, bool) or not isinstance(sensitive, (int, np.integer)) or sensitive < 0:
        raise ConfigurationError(f"sensitive={sensitive!r} must be a whole number >= 0")
    values = np.asarray(distances, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ConfigurationError("distances must be one number in [0, 1] per coordinate")
    if not sensitive + len(values):
        raise ConfigurationError("a design needs at least one coordinate")
    return int(sensitive), values


def noise_dimension(sensitive: int, distances: ArrayLike) -> float:
    """m_s + Σ_i max{d_i, (m_s/m)²} (THEORY T9).

    Parameters
    ----------
    sensitive : int
        m_s, coordinates of sensitive columns.
    distances : array of shape (m − m_s,)
        d_i of every other coordinate of the design.

    Examples
    --------
    >>> noise_dimension(2, [0.1] * 8)
    2.8
    >>> noise_dimension(5, [0.0] * 5)
    6.25
    """
    count, values = _counted(sensitive, distances)
    floor = (count / (count + len(values))) ** 2
    return count + float(np.maximum(values, floor).sum())


def noise_dimension_limit(sensitive: int, distances: ArrayLike) -> float:
    """m_s + Σd_i + m_s/4, never below the noise dimension: (m − m_s)·m_s²/m² ≤ m_s/4 (T9)."""
    count, values = _counted(sensitive, distances)
    return count + float(values.sum()) + count / 4.0


def gain_factor(sensitive: int, distances: ArrayLike) -> float:
    """√(m / noise dimension): how much smaller the risk bound is than that of ordinary DP (T9).

    ``inf`` where nothing needs noise.
    """
    count, values = _counted(sensitive, distances)
    dimension = noise_dimension(count, values)
    return math.sqrt((count + len(values)) / dimension) if dimension else math.inf


def excess_risk_rate(
    dimension: float,
    gradient_bound: float,
    radius: float,
    records: int,
    epsilon: float,
    delta: float,
) -> float:
    """G·ϱ·√(dimension·ln(1/δ))/(n·ε): the order of the excess empirical risk, without constants.

    Parameters
    ----------
    dimension : float
        Noise dimension; m for ordinary DP.
    gradient_bound : float
        G, the largest norm of a record's gradient: L·√ΣR_j².
    radius : float
        ϱ of the ball.
    records : int
        n.
    epsilon, delta : float
        Loss allowed for the sensitive columns.
    """
    values = (dimension, gradient_bound, radius, records, epsilon)
    if not all(0 < value < math.inf for value in values) or not 0 < delta < 1:
        raise ConfigurationError("a risk bound needs positive finite numbers and 0 < delta < 1")
    return gradient_bound * radius * math.sqrt(dimension * -math.log(delta)) / (records * epsilon)


def averaged_risk_bound(
    distance: float, gradient_bound: float, steps: int, variance: float
) -> tuple[float, float]:
    """Expected excess risk of averaged noisy gradient descent, with constants, and its rate η.

    For a convex loss, started at ``distance`` D from a minimiser and averaged over θ_0 .. θ_{T−1},
    E[excess] ≤ D²/(2ηT) + η(G² + v)/2, which is D·√((G² + v)/T) at η = D/√(T(G² + v)). When all
    steps share a budget v = T·V, and the bound falls to D·√V: the rate of THEORY T9 for whatever
    noise V = Σn_jσ_j²/n² a single step would need.

    Parameters
    ----------
    distance : float
        D, at most twice the ball's radius.
    gradient_bound : float
        G.
    steps : int
        T.
    variance : float
        v, expected squared norm of the noise on the mean gradient of one step.

    Returns
    -------
    tuple of float
        (bound, learning rate)
    """
    if not (distance > 0 and gradient_bound > 0 and steps >= 1 and 0 <= variance < math.inf):
        raise ConfigurationError("a risk bound needs positive numbers and a finite variance")
    size = gradient_bound**2 + variance
    return distance * math.sqrt(size / steps), distance / math.sqrt(steps * size)


@dataclass(frozen=True)
class UtilityBound:
    """T9 for one design.

    Attributes
    ----------
    coordinates, sensitive : int
        m and m_s.
    dimension, limit : float
        Noise dimension and its simple upper bound.
    gradient_bound, radius : float
        G and ϱ.
    confidence : float or None
        With estimated distances the statement holds where every estimate is at least the true
        distance, which has at least this probability; None for given ones.
    """

    coordinates: int
    sensitive: int
    dimension: float
    limit: float
    gradient_bound: float
    radius: float
    confidence: float | None = None

    @property
    def gain(self) -> float:
        """Bound of ordinary DP over this bound, at most √(m/m_s)."""
        return math.sqrt(self.coordinates / self.dimension) if self.dimension else math.inf

    def excess_risk(self, records: int, epsilon: float, delta: float) -> float:
        """Order of the excess risk with the published calibration; see `excess_risk_rate`."""
        return self._rate(self.dimension, records, epsilon, delta)

    def dp_excess_risk(self, records: int, epsilon: float, delta: float) -> float:
        """The same for ordinary DP, which adds σ to all m coordinates."""
        return self._rate(self.coordinates, records, epsilon, delta)

    def _rate(self, dimension: float, records: int, epsilon: float, delta: float) -> float:
        bounds = (self.gradient_bound, self.radius)
        return excess_risk_rate(dimension, *bounds, records, epsilon, delta)


def utility_bound(
    encoder: Encoder, loss: Loss, distances: Distances | Mapping[str, float], radius: float
) -> UtilityBound:
    """Noise dimension, gradient bound and gain of a design with given or estimated distances.

    A column without a distance counts with 1, a public one with 0; the intercept has the label's.
    """
    given = Distances.given(distances) if not isinstance(distances, Distances) else distances
    values = {name: entry.value for name, entry in given.items()}
    secret = np.repeat(sensitive_blocks(encoder), encoder.dimensions)
    others = encoder.spread(block_distances(encoder, values))[~secret]
    sensitive = int(secret.sum())
    return UtilityBound(
        encoder.dimension,
        sensitive,
        noise_dimension(sensitive, others),
        noise_dimension_limit(sensitive, others),
        loss.residual_bound * encoder.norm_bound,
        radius,
        None if given.gamma is None else 1.0 - given.gamma,
    )
