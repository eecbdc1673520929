"""The residual of a network's output: its bound L and how far it moves (THEORY T6, T14).

One output has a scalar residual and any :class:`~corrdp.erm.losses.Loss`. C > 1 outputs are the
softmax of C classes, whose residual is the vector of probabilities minus the indicator of the
class: L = √2, ρ(τ) = √2·tanh(τ/4) with τ the largest difference between the movements of two
scores, Δ_y = √2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.erm.losses import Logistic, Loss, loss_from_dict
from corrdp.erm.sensitivity import FLOAT_MARGIN
from corrdp.errors import ConfigurationError

__all__ = ["ClippedResidual", "ResidualRule", "Softmax", "network_loss_from_dict"]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Softmax:
    """ℓ = log Σ_c e^{t_c} − t_y; scores have shape (n, C), labels are codes 0 .. C − 1.

    Examples
    --------
    >>> Softmax().residual(np.zeros((1, 2)), np.array([1])).tolist()
    [[0.5, -0.5]]
    """

    residual_bound: ClassVar[float] = math.sqrt(2.0)
    label_movement: ClassVar[float] = math.sqrt(2.0)

    def movement(self, score_movement: FloatArray) -> FloatArray:
        """√2·tanh(τ/4)."""
        result: FloatArray = math.sqrt(2.0) * np.tanh(np.asarray(score_movement) / 4.0)
        return result

    def residual(self, score: FloatArray, label: FloatArray) -> FloatArray:
        """Probabilities minus the indicator of the class, shape (n, C)."""
        residual: FloatArray = np.exp(score - score.max(axis=1, keepdims=True))
        residual /= residual.sum(axis=1, keepdims=True)
        residual[np.arange(len(label)), label.astype(np.int64)] -= 1.0
        return residual

    def value(self, score: FloatArray, label: FloatArray) -> FloatArray:
        """ℓ of every record."""
        top = score.max(axis=1, keepdims=True)
        total = np.log(np.exp(score - top).sum(axis=1)) + top[:, 0]
        value: FloatArray = total - score[np.arange(len(label)), label.astype(np.int64)]
        return value

    def to_dict(self) -> dict[str, Any]:
        """``{"name": "softmax"}``."""
        return {"name": "softmax"}


@dataclass(frozen=True)
class ClippedResidual:
    """Logistic loss whose residual is clipped to [−κ, κ], 0 < κ ≤ 1.

    κ = ½ halves what a change of the whole record can do and leaves a change of the label as it
    is, so it is what ordinary differential privacy should use.
    """

    residual_clip: float

    def __post_init__(self) -> None:
        number = isinstance(self.residual_clip, (int, float)) and self.residual_clip is not True
        if not (number and 0 < self.residual_clip <= 1):
            raise ConfigurationError(f"residual_clip={self.residual_clip!r} must lie in (0, 1]")

    @property
    def residual_bound(self) -> float:
        """κ."""
        return float(self.residual_clip)

    @property
    def label_movement(self) -> float:
        """min(1, 2κ)."""
        return float(min(1.0, 2.0 * self.residual_clip))

    def movement(self, score_movement: FloatArray) -> FloatArray:
        """min(2κ, tanh(τ/4)): clipping is non-expansive."""
        return np.minimum(2.0 * self.residual_clip, Logistic().movement(score_movement))

    def residual(self, score: FloatArray, label: FloatArray) -> FloatArray:
        """σ(t) − y, clipped."""
        residual = Logistic().residual(score, label)
        return np.clip(residual, -self.residual_clip, self.residual_clip, out=residual)

    def value(self, score: FloatArray, label: FloatArray) -> FloatArray:
        """The logistic loss itself (what is reported, not what is descended)."""
        return Logistic().value(score, label)

    def to_dict(self) -> dict[str, Any]:
        """Name and clip."""
        return {"name": "clipped-logistic", "residual_clip": float(self.residual_clip)}


def network_loss_from_dict(plain: dict[str, Any]) -> Loss:
    """The loss that ``to_dict`` described, softmax and clipped logistic included."""
    if plain.get("name") == "softmax":
        return Softmax()
    if plain.get("name") == "clipped-logistic":
        return ClippedResidual(plain["residual_clip"])
    return loss_from_dict(plain)


@dataclass(frozen=True)
class ResidualRule:
    """Bound and movement of the weighted, rounded residual.

    Parameters
    ----------
    loss : Loss
    outputs : int
        C, the number of scores.
    class_weights : tuple of float, optional
        Public weight of each class; they multiply the clipped residual.
    bits : int, optional
        p of THEORY T14: every entry of the weighted residual is rounded to a multiple of 2^-p.
    """

    loss: Loss
    outputs: int = 1
    class_weights: tuple[float, ...] | None = None
    bits: int | None = None

    def __post_init__(self) -> None:
        if self.class_weights is not None:
            object.__setattr__(self, "class_weights", tuple(map(float, self.class_weights)))
        if not all(0 < weight < math.inf for weight in self.class_weights or ()):
            raise ConfigurationError(f"class_weights {self.class_weights} must be positive, finite")
        if (self.outputs > 1) != isinstance(self.loss, Softmax):
            raise ConfigurationError(
                f"{self.outputs} output(s) do not go with {type(self.loss).__name__}; "
                "several outputs need Softmax"
            )

    @property
    def step(self) -> float:
        """√C·2^-p plus a margin for float arithmetic: what rounding adds to a movement."""
        if self.bits is None:
            return 0.0
        return math.sqrt(self.outputs) * 2.0**-self.bits + FLOAT_MARGIN

    @property
    def exact_bound(self) -> float:
        """L after weights, before rounding."""
        return max(self.class_weights or (1.0,)) * self.loss.residual_bound

    @property
    def bound(self) -> float:
        """L after weights and rounding."""
        exact = self.exact_bound
        if self.bits is None:
            return exact
        if self.outputs == 1:
            return math.ceil(exact * 2.0**self.bits) * 2.0**-self.bits
        return exact + self.step

    def movement(self, score_movement: FloatArray, label: NDArray[np.bool_]) -> FloatArray:
        """ρ for score movements τ, where ``label`` says whether the label may change too."""
        weights = self.class_weights or (1.0,)
        low, high = min(weights), max(weights)
        limit = self.loss.residual_bound
        fixed = self.loss.movement(score_movement)
        both = np.minimum(2.0 * limit, fixed + self.loss.label_movement)
        # with a label-dependent weight ω_max·M alone is not a bound (THEORY T6)
        changing = np.maximum(high * both, low * both + (high - low) * limit)
        movement = np.where(label, changing, high * fixed) + self.step
        result: FloatArray = np.minimum(movement, 2.0 * self.bound)
        return result

    def residual(self, score: FloatArray, label: FloatArray) -> FloatArray:
        """The weighted residual before rounding, shape (n, C)."""
        if self.outputs == 1:
            residual = self.loss.residual(score[:, 0], label)[:, None]
        else:
            residual = self.loss.residual(score, label)
        if self.class_weights is not None:
            residual *= np.asarray(self.class_weights)[label.astype(np.int64)][:, None]
        return residual
