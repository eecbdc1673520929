"""What double precision costs in privacy: the slack of lattice Gaussian noise (THEORY T14).

The ideal noise is K = round(s·Z), Z standard normal, s = σ/h; adding it to a lattice value is
post-processing of the continuous Gaussian mechanism. The sampler rounds the uniform, the quantile
and the product. Seen from the exact uniform, an edge of a cell of K at |z| moves by at most

    ``_ETA``·|z| + 1.26·2^-53

in z: the first term for quantile and product (the quantile is measured against mpmath in the
tests), the second for the uniform (relative error 2^-53 times the largest Mills ratio, √(π/2)).

*One layer.* A cell whose inner edge is a ≤ z and whose width is w = 1/s has probability at least
φ(a)/(s + z + 3/2): within min(w, √2) of a the density falls no faster than
exp(-(a + w/2)t), and 1 - exp(-x) ≥ x/(1+x). Both edges together change it by at most
2φ(a)(_ETA·z + 1.26·2^-53), because tφ(t) falls beyond 1. The relative change of every cell up to z
is therefore below ``cell_error(s, z)``.

*Two layers.* With step H = 2^b cells, K = H·round(X/H) + round(Y), Var X = s² - 16H²,
Var Y = 16H². By Poisson summation H·round(X/H) + Y has the density of N(0, s²) plus an independent
uniform on [-H/2, H/2], up to a relative error of 3·exp(-2π²·16·Var X/s²) < 1e-130 at every point;
and rounding commutes with adding an integer. So K is again the continuous mechanism,
post-processed. Each layer has at most √8·√s standard deviations of cells, because H lies within a
factor √2 of √s/2. Given the sum at z, the coarse layer lies within z + 0.2 and the fine one within
z/50 + 10 of its own standard deviations, except with probability 1e-20, which the last factor of
``_relative_error`` covers.

*From cells to loss.* ξ bounds the log-ratio of every cell up to z_max. N draws cost at most
N·ξ for certain; their log-ratios are a martingale with increments ξ and mean at most ξ²/2 each, so
Azuma gives ξ√(2N·ln(1/δ')) + N·ξ²/2 except with probability δ'. Outputs that are further than
z_max from the true or from the neighbouring value have probability at most N·P(|Z| > z_max - Δ).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass

from scipy.special import log_ndtr, ndtri_exp

from corrdp._sampling import LARGEST_SCALE, TWO_LAYERS
from corrdp.errors import ConfigurationError

__all__ = ["REACH", "Slack", "cell_error", "gaussian_slack"]

_UNIT = 2.0**-53
#: Relative error of quantile (at most 9 units, checked by a test) and product (1).
_ETA = 10.0 * _UNIT
_MILLS = 1.26 * _UNIT
#: The analysis covers cells up to here; the sampler itself reaches 37.5 with full precision.
REACH = 36.0
#: A tail up to this is negligible whatever ``failure`` asks.
_NEGLIGIBLE = 1e-30
#: Two layers: the sum may exceed its Gaussian part by half a coarse cell, below .01 deviations.
_HALF_CELL = 0.01
#: Outweighs the rounding errors of the few operations that follow a formula.
_UP = 1.0 + 1e-12


@dataclass(frozen=True)
class Slack:
    """What the floating-point sampler adds to an (ε, δ) of the ideal mechanism (THEORY T14).

    Parameters
    ----------
    eta : float
        Extra loss η', exceeded with probability at most ``failure`` under either data set.
    failure : float
        δ'; 0 says that ``eta`` is certain.
    tail : float
        Probability that an output lies where the sampler is not controlled.
    certain : float
        Extra loss that is never exceeded (N·ξ); used where exp(ε)·``failure`` would be too much.

    ``Slack()`` is nothing at all: exact samplers.
    """

    eta: float = 0.0
    failure: float = 0.0
    tail: float = 0.0
    certain: float = math.inf

    def __post_init__(self) -> None:
        for name in ("eta", "failure", "tail", "certain"):
            value = getattr(self, name)
            if not value >= 0:
                raise ConfigurationError(f"Slack {name}={value!r} is not a number >= 0")
        if self.failure == 0:
            object.__setattr__(self, "certain", min(self.certain, self.eta))

    @classmethod
    def combine(cls, *slacks: Slack) -> Slack:
        """Slack of several releases: everything adds.

        Draws of one run are better counted in one call of :func:`gaussian_slack`.
        """
        return cls(
            eta=_up_sum(s.eta for s in slacks),
            failure=_up_sum(s.failure for s in slacks),
            tail=_up_sum(s.tail for s in slacks),
            certain=_up_sum(s.certain for s in slacks),
        )

    def apply(self, epsilon: float, delta: float) -> tuple[float, float]:
        """(ε, δ) of the ideal mechanism → (ε', δ') that the sampled one satisfies, rounded up.

        (ε + 2η', e^{η'}δ + δ'(1 + e^{ε+η'}) + tail), or the same with (``certain``, 0) for
        (η', δ'), whichever exceeds (ε, δ) by less relative to it. δ' is at most 1.
        """
        if not epsilon >= 0:
            raise ConfigurationError(f"epsilon={epsilon!r} is not a number >= 0")
        if not 0 <= delta <= 1:
            raise ConfigurationError(f"delta={delta!r} is not a probability")
        if math.isinf(epsilon):
            return epsilon, delta
        eta, extra = self.eta, self._overshoot(epsilon)
        if _cost(self.certain, 0.0, epsilon, delta) < _cost(eta, extra, epsilon, delta):
            eta, extra = self.certain, 0.0
        total = (delta * _exp(eta) if delta > 0 else 0.0) + extra + self.tail
        rounded = total * _UP if eta or extra or self.tail else total
        loss = math.nextafter(epsilon + 2 * eta, math.inf) if eta else epsilon
        return loss, min(1.0, rounded)

    def _overshoot(self, epsilon: float) -> float:
        """δ'(1 + e^{ε+η'}), by logarithms."""
        if self.failure == 0:
            return 0.0
        exponent = epsilon + self.eta
        return _exp(math.log(self.failure) + exponent + math.log1p(math.exp(-exponent)))


def gaussian_slack(draws: int, scale: float, shift: float, failure: float) -> Slack:
    """Slack of N lattice Gaussian draws (THEORY T14), rounded up.

    Parameters
    ----------
    draws : int
        N, coordinates times steps of the whole run.
    scale : float
        Largest σ/h over coordinates and steps (cells).
    shift : float
        Largest a_kj/σ_j over kinds, blocks and steps: how far a neighbour moves a coordinate.
    failure : float
        δ' of the martingale bound; to be small against δ·exp(-ε). 0 asks for the certain bound.

    Raises
    ------
    ConfigurationError
        If the tail N·P(|Z| > 36 - shift) exceeds both ``failure`` and 1e-30: the neighbour's
        outputs would leave the sampler's reach. Otherwise z_max is placed where the tail is
        ``failure``, or at 36.
    """
    draws = _checked_draws(draws)
    for name, value, most in (("scale", scale, LARGEST_SCALE), ("shift", shift, math.inf)):
        if not 0 <= value <= most or math.isinf(value):
            raise ConfigurationError(f"{name}={value!r} is not a number from 0 to {most:g}")
    if not 0 <= failure < 1:
        raise ConfigurationError(f"failure={failure!r} is not a probability below 1")
    if draws == 0 or scale == 0:
        return Slack()
    wanted = REACH
    if failure > 0:
        wanted = shift + _HALF_CELL + _quantile(draws, failure)
    z_max = min(REACH, max(1.0, wanted))
    tail = _tail(draws, z_max - shift - _HALF_CELL)
    if tail > max(failure * _UP**3, _NEGLIGIBLE):
        most = REACH - _HALF_CELL - _quantile(draws, _NEGLIGIBLE)
        raise ConfigurationError(
            f"shift={shift:g} standard deviations leaves the reach of the sampler (at most "
            f"{math.floor(10 * most) / 10} for {draws} draws); "
            "cap the loss of that kind (epsilon_cap) or add noise"
        )
    xi = _relative_error(scale, z_max)
    certain = draws * xi * _UP
    likely = math.inf
    if failure > 0:
        likely = xi * math.sqrt(-2 * draws * math.log(failure)) + draws * xi * xi / 2
    if likely * _UP < certain:
        return Slack(likely * _UP, failure, tail, certain)
    return Slack(certain, 0.0, tail, certain)


def cell_error(scale: float, z: float) -> float:
    """Largest relative change of a cell's probability up to z, one layer (module docstring)."""
    return 2.0 * (_ETA * z + _MILLS) * (scale + z + 1.5)


def _relative_error(scale: float, z: float) -> float:
    """ξ: bound of the log-ratio of every cell up to z, for every σ/h up to ``scale``."""
    change = cell_error(min(scale, TWO_LAYERS), z)
    if scale > TWO_LAYERS:
        layer = math.sqrt(8.0 * scale)
        change = max(change, cell_error(layer, z + 0.2) + cell_error(layer, z / 50 + 10))
    change *= 1.0 + 1e-6
    return -math.log1p(-change) if change < 1 else math.inf


def _tail(draws: int, z: float) -> float:
    """N·P(|Z| > z), at most 1, rounded up."""
    return min(1.0, _exp(math.log(2 * draws) + float(log_ndtr(-z))) * _UP)


def _quantile(draws: int, tail: float) -> float:
    """The z with N·P(|Z| > z) = tail."""
    return -float(ndtri_exp(math.log(tail) - math.log(2 * draws)))


def _checked_draws(draws: int) -> int:
    try:
        count = operator.index(draws)
    except TypeError:
        count = -1
    if count < 0 or isinstance(draws, bool):
        raise ConfigurationError(f"draws={draws!r} is not a number of draws")
    return count


def _cost(eta: float, extra: float, epsilon: float, delta: float) -> float:
    """Relative excess over (ε, δ)."""
    loss = 2 * eta / epsilon if epsilon > 0 else (math.inf if eta else 0.0)
    return loss + (extra / delta if delta > 0 else (math.inf if extra else 0.0))


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def _up_sum(values: Iterable[float]) -> float:
    total = math.fsum(values)
    return math.nextafter(total, math.inf) if total else 0.0
