"""How a linear model is trained: every number is a function of public quantities alone.

Noisy gradient descent of T steps with rate η and momentum β reaches s = T·η/(1 − β). It adds a
variance of s²·V to the parameters, where V = Σ n_jσ_j²/n² is the noise of a single step that
spends the whole budget; its bias falls with s. So only s matters, and the best s grows as 1/√V.
Momentum reaches the same s in a fraction of the steps (benchmarks/defaults.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.allocation import allocate
from corrdp.erm.losses import Logistic, Loss
from corrdp.erm.sensitivity import SensitivityTable
from corrdp.errors import ConfigurationError

__all__ = [
    "TrainingPlan",
    "checked_number",
    "checked_whole",
    "default_plan",
    "single_step_noise",
]

FloatArray: TypeAlias = NDArray[np.float64]

RADIUS = 20.0
SMALLEST, LARGEST = 1e-100, 1e100
STEPS_MIN, STEPS_MAX = 30, 500
# Reach s = factor/√V, near the best of a grid on the real data sets (benchmarks/defaults.py).
REACH_LOGISTIC, REACH_SQUARED = 20.0, 1.5
MOMENTUM = 0.8


@dataclass(frozen=True)
class TrainingPlan:
    """Fixed before the first step.

    Attributes
    ----------
    steps : int
        T.
    learning_rate : float
        η.
    radius : float
        Ball ‖θ‖ ≤ radius that every iterate is projected on.
    average_from : int
        The model is the mean of iterates average_from .. T.
    alpha : float
        Strength of the penalty (α/2)‖θ‖², intercept left out.
    momentum : float
        β of v ← βv + g, θ ← θ − ηv; the reach of a step is then η/(1 − β). Gradients are taken at
        projected iterates only, so momentum is post-processing.
    """

    steps: int
    learning_rate: float
    radius: float
    average_from: int
    alpha: float = 0.0
    momentum: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise ConfigurationError(f"steps={self.steps!r} must be a whole number >= 1")
        for name in ("learning_rate", "radius"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and 0 < value < math.inf):
                raise ConfigurationError(f"{name}={value!r} must be a positive finite number")
        if not 0 <= self.average_from <= self.steps:
            raise ConfigurationError(f"average_from={self.average_from!r} must lie in 0..steps")
        if not (isinstance(self.alpha, (int, float)) and 0 <= self.alpha < math.inf):
            raise ConfigurationError(f"alpha={self.alpha!r} must be a finite number >= 0")
        if not 0 <= self.momentum < 1:
            raise ConfigurationError(f"momentum={self.momentum!r} must lie in [0, 1)")


def single_step_noise(
    table: SensitivityTable, budget: FloatArray, radius: float, records: int
) -> float:
    """√V: noise norm on the mean gradient if one step spent the whole budget."""
    noise = allocate(table.supremum(radius), budget, table.encoder.dimensions, tolerance=1e-3)
    return math.sqrt(noise.total_variance) / records


def largest_rate(loss: Loss, norm_bound: float) -> float:
    """The largest stable rate: 2 over the largest curvature (a little less for squared loss)."""
    if isinstance(loss, Logistic):
        return 8.0 / norm_bound**2
    return 1.9 / norm_bound**2


def default_plan(
    table: SensitivityTable,
    budget: FloatArray,
    records: int,
    *,
    steps: int | None = None,
    learning_rate: float | None = None,
    radius: float | None = None,
    alpha: float = 0.0,
) -> TrainingPlan:
    """Steps and rate from n, the table and the budgets; what the user gives is kept.

    Raises
    ------
    ConfigurationError
        Names the parameter that is not a number in its range.
    """
    ball = RADIUS if radius is None else checked_number("radius", radius, SMALLEST)
    alpha = checked_number("alpha", alpha, 0.0)
    steps = None if steps is None else checked_whole("steps", steps)
    if learning_rate is not None:
        learning_rate = checked_number("learning_rate", learning_rate, SMALLEST)
    loss = table.loss
    noise = single_step_noise(table, budget, ball, records)
    weight = max(table.class_weights or (1.0,))
    reach = (REACH_LOGISTIC if isinstance(loss, Logistic) else REACH_SQUARED) / max(noise, 1e-12)
    fastest = largest_rate(loss, table.encoder.norm_bound) / (weight + alpha)
    momentum = MOMENTUM if isinstance(loss, Logistic) else 0.0
    travel = reach * (1.0 - momentum)
    if steps is None:
        rate = fastest if learning_rate is None else learning_rate
        steps = int(np.clip(math.ceil(travel / rate), STEPS_MIN, STEPS_MAX))
    if learning_rate is None:
        learning_rate = min(fastest, travel / steps)
    return TrainingPlan(steps, float(learning_rate), ball, steps // 2, alpha, momentum)


def checked_number(name: str, value: object, least: float) -> float:
    """A number of the user's as a float, not so large that products overflow."""
    number = isinstance(value, (int, float, np.integer, np.floating))
    if isinstance(value, bool) or not number or not least <= float(value) <= LARGEST:  # type: ignore[arg-type]
        lower = "> 0" if least else ">= 0"
        raise ConfigurationError(f"{name}={value!r} must be a number {lower} and <= {LARGEST:g}")
    return float(value)  # type: ignore[arg-type]


def checked_whole(name: str, value: object) -> int:
    """A whole number >= 1 of the user's; NumPy's integers count."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not value >= 1:
        raise ConfigurationError(f"{name}={value!r} must be a whole number >= 1")
    return int(value)
