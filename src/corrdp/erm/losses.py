"""Losses of a linear score t = θᵀφ, described by what privacy needs to know of them.

For every loss: residual r = ∂ℓ/∂t clipped to [−L, L], the record's gradient is r·φ, and

==================  ==========================================================
``residual_bound``  L, the largest |r|
``movement(τ)``     ρ(τ), the most r moves when t moves by at most τ, y fixed
``label_movement``  Δ_y, the most r moves further when y changes
==================  ==========================================================

When y may change r moves by at most min(2L, ρ(τ) + Δ_y) (THEORY T6). Class weights and rows per
person are applied in the sensitivity table alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from corrdp.errors import ConfigurationError

__all__ = ["Huber", "Logistic", "Loss", "Squared", "loss_from_dict"]

FloatArray: TypeAlias = NDArray[np.float64]


@runtime_checkable
class Loss(Protocol):
    """What a loss must tell; implement these and the sensitivity table is certified for it."""

    @property
    def residual_bound(self) -> float:
        """L: the residual lies in [−L, L]."""

    @property
    def label_movement(self) -> float:
        """Δ_y: the largest change of the residual by a change of the label alone."""

    def movement(self, score_movement: FloatArray) -> FloatArray:
        """ρ(τ): non-decreasing, at most 2L."""

    def residual(self, score: FloatArray, label: FloatArray) -> FloatArray:
        """∂ℓ/∂t, clipped to [−L, L]."""

    def value(self, score: FloatArray, label: FloatArray) -> FloatArray:
        """ℓ(t, y) of every record."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values that :func:`loss_from_dict` reads."""


@dataclass(frozen=True)
class Logistic:
    """ℓ = log(1 + eᵗ) − y·t with y ∈ {0, 1}: L = 1, ρ(τ) = tanh(τ/4), Δ_y = 1 (THEORY T6).

    Examples
    --------
    >>> float(Logistic().movement(np.array([0.0]))[0]), Logistic().label_movement
    (0.0, 1.0)
    """

    residual_bound: ClassVar[float] = 1.0
    label_movement: ClassVar[float] = 1.0

    def movement(self, score_movement: FloatArray) -> FloatArray:
        """tanh(τ/4): the logistic curve is steepest around zero."""
        return np.tanh(np.asarray(score_movement) / 4.0)

    def residual(self, score: FloatArray, label: FloatArray) -> FloatArray:
        """σ(t) − y, shape (n,)."""
        with np.errstate(over="ignore"):
            residual: FloatArray = np.exp(-score)
        residual += 1.0
        np.reciprocal(residual, out=residual)
        residual -= label
        return residual

    def value(self, score: FloatArray, label: FloatArray) -> FloatArray:
        """log(1 + eᵗ) − y·t without overflow."""
        value: FloatArray = np.logaddexp(0.0, score) - label * score
        return value

    def to_dict(self) -> dict[str, Any]:
        """``{"name": "logistic"}``."""
        return {"name": "logistic"}


@dataclass(frozen=True)
class Squared:
    """½(t − y)² with the residual clipped to [−L, L], which is Huber loss (THEORY T6).

    Parameters
    ----------
    residual_clip : float
        L, in units of the scaled label; ``inf`` only for training without privacy.
    label_range : float
        Δ_y = y_high − y_low of the scaled label.
    """

    residual_clip: float
    label_range: float

    def __post_init__(self) -> None:
        for name in ("residual_clip", "label_range"):
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not (number and value > 0):
                raise ConfigurationError(f"{name}={value!r} must be a positive number")
        if not self.label_range < math.inf:
            raise ConfigurationError(f"label_range={self.label_range!r} must be finite")

    @property
    def residual_bound(self) -> float:
        """L."""
        return float(self.residual_clip)

    @property
    def label_movement(self) -> float:
        """Δ_y, never more than 2L."""
        return float(min(self.label_range, 2.0 * self.residual_clip))

    def movement(self, score_movement: FloatArray) -> FloatArray:
        """min(2L, τ): the residual moves as much as the score."""
        return np.minimum(2.0 * self.residual_clip, np.asarray(score_movement, dtype=np.float64))

    def residual(self, score: FloatArray, label: FloatArray) -> FloatArray:
        """t − y clipped to [−L, L]."""
        return np.clip(score - label, -self.residual_clip, self.residual_clip)

    def value(self, score: FloatArray, label: FloatArray) -> FloatArray:
        """½r² inside the clip, L|r| − ½L² outside (½r² when there is no clip)."""
        gap = np.abs(score - label)
        inner = np.minimum(gap, self.residual_clip)
        value: FloatArray = inner * (gap - 0.5 * inner)
        return value

    def to_dict(self) -> dict[str, Any]:
        """Name and parameters."""
        return {
            "name": "squared",
            "residual_clip": float(self.residual_clip),
            "label_range": float(self.label_range),
        }


@dataclass(frozen=True)
class Huber(Squared):
    """Huber loss with threshold κ: the same residual and rule as a clipped squared loss."""


def loss_from_dict(plain: dict[str, Any]) -> Loss:
    """The loss that ``to_dict`` described; an unknown name is refused."""
    if plain.get("name") == "logistic":
        return Logistic()
    if plain.get("name") == "squared":
        return Squared(plain["residual_clip"], plain["label_range"])
    raise ConfigurationError(f"loss {plain.get('name')!r} is unknown; known are logistic, squared")
