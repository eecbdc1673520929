"""How far one record's gradient can move, block by block and kind by kind (THEORY T6).

A record's gradient is r·φ with φ in blocks. For a change of kind k:

* the score moves by at most τ_k = Σ_{j changed} spread_j(θ);
* the residual moves by at most ρ_k, from the loss and from whether the label may change;
* an unchanged block moves by at most ρ_k·R_j, a changed numeric one by
  min(2LR_j, L·D_j + ρ_k·R_j), a changed one-hot one by h·max(√2·L, ρ_k).

Class weights enter L and ρ_k, rounding of the residual to 2^-p widens both by one step
(THEORY T14), and with several rows per person every bound is multiplied by their number (T3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.encoding import Encoder
from corrdp.erm.losses import Loss
from corrdp.errors import ConfigurationError
from corrdp.neighbours import NeighbourKind

__all__ = ["SensitivityTable", "gradient_sensitivity"]

FloatArray: TypeAlias = NDArray[np.float64]
# Scores and residuals are computed in double precision; their error (below 1e-12 for any
# admissible θ) is charged to the residual's movement, generously.
FLOAT_MARGIN = 1e-9


@dataclass(frozen=True, repr=False)
class _Layout:
    """The table's constant parts as arrays: one entry per block, or per kind (and block)."""

    starts: NDArray[np.int64]
    factor: FloatArray
    radius: FloatArray
    diameter: FloatArray
    one_hot: NDArray[np.bool_]
    changed: NDArray[np.bool_]
    label: NDArray[np.bool_]

    @classmethod
    def of(cls, encoder: Encoder, kinds: Sequence[NeighbourKind]) -> _Layout:
        blocks = encoder.blocks
        changed = np.array([[b.name in kind.columns for b in blocks] for kind in kinds], dtype=bool)
        return cls(
            starts=np.array([block.start for block in blocks]),
            factor=np.array([_spread_factor(block.kind, block.diameter) for block in blocks]),
            radius=np.array([block.radius for block in blocks]),
            diameter=np.array([block.diameter for block in blocks]),
            one_hot=np.array([block.kind == "one-hot" for block in blocks]),
            changed=changed.reshape(len(kinds), len(blocks)),
            label=np.array([kind.label_changes for kind in kinds], dtype=bool),
        )


@dataclass(frozen=True)
class SensitivityTable:
    """L2 bounds a_kj on the movement of Σ_i r_i φ_i: rows are kinds, columns are blocks.

    Parameters
    ----------
    encoder : Encoder
    loss : Loss
    kinds : sequence of NeighbourKind
    class_weights : sequence of float, optional
        Public weight of each class, in label order; they multiply the clipped residual.
    records_per_person : int
        Rows that one person may own; multiplies every bound.
    residual_bits : int, optional
        p of THEORY T14 when residuals are rounded to multiples of 2^-p.

    Examples
    --------
    >>> from corrdp.erm.losses import Logistic
    >>> from corrdp.schema import Schema, Numeric, Label
    >>> schema = Schema({"x": Numeric(-1, 1)}, Label("y", [0, 1], role="public"))
    >>> table = SensitivityTable(Encoder(schema), Logistic(), [NeighbourKind("x", ("x",), False)])
    >>> table(np.zeros(2)).tolist()
    [[2.0, 0.0]]
    """

    encoder: Encoder
    loss: Loss
    kinds: tuple[NeighbourKind, ...]
    class_weights: tuple[float, ...] | None = None
    records_per_person: int = 1
    residual_bits: int | None = None
    layout: _Layout = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", tuple(self.kinds))
        if not 0 < self.loss.residual_bound < math.inf:
            raise ConfigurationError(
                f"the residual is not bounded (L = {self.loss.residual_bound}); give a finite "
                "residual_clip"
            )
        if self.class_weights is not None:
            object.__setattr__(self, "class_weights", tuple(map(float, self.class_weights)))
        if not all(0 < weight < math.inf for weight in self.class_weights or ()):
            raise ConfigurationError(f"class_weights {self.class_weights} must be positive, finite")
        if isinstance(self.records_per_person, bool) or not (
            isinstance(self.records_per_person, int) and self.records_per_person >= 1
        ):
            raise ConfigurationError(
                f"records_per_person={self.records_per_person!r} must be a whole number >= 1"
            )
        known = {block.name for block in self.encoder.blocks}
        for kind in self.kinds:
            unknown = sorted(set(kind.columns) - known)
            if unknown:
                raise ConfigurationError(f"kind {kind.name!r} changes unknown columns {unknown}")
        object.__setattr__(self, "layout", _Layout.of(self.encoder, self.kinds))

    def __call__(self, theta: FloatArray) -> FloatArray:
        """The table at θ (shape (m,)): array of shape (kinds, blocks)."""
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != (self.encoder.dimension,) or not np.isfinite(theta).all():
            raise ConfigurationError(
                f"theta must be {self.encoder.dimension} finite numbers, got shape {theta.shape}"
            )
        return self._table(self.layout.changed @ self._spread(theta))

    @property
    def infimum(self) -> FloatArray:
        """inf over θ of the table: no score movement."""
        return self._table(np.zeros(len(self.kinds)))

    def supremum(self, radius: float) -> FloatArray:
        """sup of the table over ‖θ‖ ≤ radius.

        The largest Σ_j c_j‖θ_j‖ on the ball is radius·√Σc_j², with c_j = D_j for numeric and
        √2·h for one-hot blocks.
        """
        if not radius > 0:
            raise ConfigurationError(f"radius={radius!r} must be positive")
        slope = np.sqrt(self.layout.changed @ self.layout.diameter**2)
        with np.errstate(invalid="ignore"):
            movement = np.where(slope > 0, radius * slope, 0.0)
        return self._table(movement)

    @property
    def presence(self) -> FloatArray:
        """L·R_j per block: how far a record's contribution can be from nothing (THEORY T7)."""
        bound: FloatArray = self.records_per_person * self.residual_bound * self.layout.radius
        return bound

    @property
    def residual_bound(self) -> float:
        """L after weights and rounding."""
        bound = max(self.class_weights or (1.0,)) * self.loss.residual_bound
        if self.residual_bits is None:
            return bound
        return math.ceil(bound * 2.0**self.residual_bits) * 2.0**-self.residual_bits

    def _spread(self, theta: FloatArray) -> FloatArray:
        """Largest change of θ_jᵀφ_j per block."""
        starts = self.layout.starts
        high = np.maximum.reduceat(theta, starts)
        low = np.minimum.reduceat(theta, starts)
        range_ = np.where(self.layout.one_hot, high - low, np.abs(high))
        spread: FloatArray = range_ * self.layout.factor
        return spread

    def _residual_movement(self, score_movement: FloatArray) -> FloatArray:
        """ρ_k of every kind, weights and rounding included."""
        bound = self.loss.residual_bound
        weights = self.class_weights or (1.0,)
        low, high = min(weights), max(weights)
        fixed = self.loss.movement(score_movement)
        both = np.minimum(2.0 * bound, fixed + self.loss.label_movement)
        # with a label-dependent weight ω_max·M alone is not a bound (THEORY T6)
        changing = np.maximum(high * both, low * both + (high - low) * bound)
        movement = np.where(self.layout.label, changing, high * fixed)
        if self.residual_bits is not None:
            movement = movement + 2.0**-self.residual_bits + FLOAT_MARGIN
        return np.minimum(movement, 2.0 * self.residual_bound)

    def _table(self, score_movement: FloatArray) -> FloatArray:
        bound = self.residual_bound
        rho = self._residual_movement(score_movement)[:, None]
        radius, diameter = self.layout.radius, self.layout.diameter
        unchanged = rho * radius
        numeric = np.minimum(2.0 * bound * radius, bound * diameter + unchanged)
        one_hot = radius * np.maximum(math.sqrt(2.0) * bound, rho)
        moved = np.where(self.layout.one_hot, one_hot, numeric)
        table = np.where(self.layout.changed, moved, unchanged)
        result: FloatArray = self.records_per_person * table
        return result


def _spread_factor(kind: str, diameter: float) -> float:
    """Numeric: |θ|·D. One-hot: h·(max − min). Intercept: 0."""
    return diameter / math.sqrt(2.0) if kind == "one-hot" else diameter


def gradient_sensitivity(
    encoder: Encoder, loss: Loss, theta: FloatArray, kinds: Sequence[NeighbourKind]
) -> FloatArray:
    """The table at one θ, in one line: shape (kinds, blocks) (THEORY T6)."""
    return SensitivityTable(encoder, loss, tuple(kinds))(theta)
