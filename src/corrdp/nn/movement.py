"""How far scores, hidden values and score gradients move when a record changes (THEORY T12).

A kind of change moves the first pre-activations by one of a list of candidate vectors Δa ≥ 0, one
number per unit: every pair of levels for a single categorical column, the sum of the columns'
largest moves otherwise. From there

* one hidden layer, unit by unit: |Δt| ≤ Σ_i |w_i|·step(Δa_i), and the score gradient
  V = σ'(a) ⊙ W_out moves by at most ‖slope_step(Δa) ⊙ W_out‖;
* any depth, norms: see :func:`deep_movement`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.encoding import Block
from corrdp.neighbours import NeighbourKind
from corrdp.nn.activations import Activation
from corrdp.nn.network import Network
from corrdp.nn.query import norm_bound

__all__ = ["Candidates", "Movement", "deep_movement", "shallow_movement", "skip_movement"]

FloatArray: TypeAlias = NDArray[np.float64]
# beyond so many pairs of levels the per-unit range over levels is taken instead
MOST_PAIRS = 2000


@dataclass(frozen=True)
class Movement:
    """Bounds per kind, each of shape (kinds,).

    Attributes
    ----------
    score : array
        τ: change of the score (of the difference of two scores for several outputs).
    value : array
        ‖Δh‖ of the last hidden layer.
    gradient : array of shape (kinds, hidden layers)
        Change of every layer's score gradient: ‖ΔV‖ for one hidden layer and for the first layer
        of deeper nets, ‖Δ(V ⊗ (h, 1))‖ for the layers after it.
    """

    score: FloatArray
    value: FloatArray
    gradient: FloatArray


@dataclass(frozen=True, repr=False)
class Candidates:
    """Which moves of the first pre-activations every kind can make.

    ``first`` and ``second`` are rows of W_1 whose difference a candidate of a single categorical
    column is; the other candidates are sums of the columns' ranges, by ``changed``.
    """

    columns: tuple[Block, ...]
    changed: NDArray[np.bool_]
    paired: NDArray[np.bool_]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, columns: tuple[Block, ...], kinds: Sequence[NeighbourKind]) -> Candidates:
        """For the columns of the hidden path, in their order."""
        changed = np.array(
            [[c.name in kind.columns for c in columns] for kind in kinds], dtype=bool
        )
        changed = changed.reshape(len(kinds), len(columns))
        offsets = np.cumsum([0, *[column.size for column in columns]])
        paired = np.zeros(len(kinds), dtype=bool)
        first: list[int] = []
        second: list[int] = []
        starts: list[int] = []
        for number, row in enumerate(changed):
            if row.sum() != 1:
                continue
            place = int(np.flatnonzero(row)[0])
            size = columns[place].size
            if columns[place].kind == "one-hot" and size * (size - 1) // 2 <= MOST_PAIRS:
                paired[number] = True
                starts.append(len(first))
                for one, other in itertools.combinations(range(size), 2):
                    first.append(int(offsets[place]) + one)
                    second.append(int(offsets[place]) + other)
        index = np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)
        return cls(columns, changed, paired, *index, np.array(starts, dtype=np.int64))

    def moves(self, weights: FloatArray) -> FloatArray:
        """Δa of all candidates, shape (candidates, width): pairs first, then whole kinds."""
        pairs = np.abs(weights[self.first] - weights[self.second])
        if len(pairs):
            pairs *= next(c.radius for c in self.columns if c.kind == "one-hot")
        single = self.changed[~self.paired].astype(np.float64) @ self._ranges(weights)
        return np.concatenate([pairs, single])

    def _ranges(self, weights: FloatArray) -> FloatArray:
        """Largest move of every unit per column, shape (columns, width)."""
        starts = np.cumsum([0, *[column.size for column in self.columns[:-1]]])
        high = np.maximum.reduceat(weights, starts, axis=0)
        low = np.minimum.reduceat(weights, starts, axis=0)
        one_hot = np.array([column.kind == "one-hot" for column in self.columns])[:, None]
        factor = np.array([_spread_factor(column) for column in self.columns])[:, None]
        ranges: FloatArray = np.where(one_hot, high - low, np.abs(high)) * factor
        return ranges

    def worst(self, values: FloatArray) -> FloatArray:
        """Largest value over every kind's candidates, shape (kinds,)."""
        result = np.empty(len(self.paired))
        if self.starts.size:
            result[self.paired] = np.maximum.reduceat(values[: len(self.first)], self.starts)
        result[~self.paired] = values[len(self.first) :]
        return result


def _spread_factor(column: Block) -> float:
    """Numeric: D. One-hot: h. Intercept: 0."""
    return column.radius if column.kind == "one-hot" else column.diameter


def score_range(weights: FloatArray) -> FloatArray:
    """Per row, how much a unit of it moves the score, or the difference of two scores."""
    if weights.shape[1] == 1:
        return np.abs(weights[:, 0])
    result: FloatArray = weights.max(axis=1) - weights.min(axis=1)
    return result


def skip_movement(network: Network, skip: FloatArray) -> FloatArray:
    """Largest change of the score by every column of the skip, shape (skip columns,)."""
    spreads = []
    row = 0
    for column in network.skip_columns:
        part = skip[row : row + column.size]
        row += column.size
        if column.kind != "one-hot":
            spreads.append(column.diameter * float(score_range(part)[0]))
            continue
        # the largest change of a difference of two scores between two levels
        gaps = part[:, :, None] - part[:, None, :] if network.outputs > 1 else part[:, :, None]
        spreads.append(column.radius * float((gaps.max(axis=0) - gaps.min(axis=0)).max()))
    return np.array(spreads)


def shallow_movement(network: Network, parameters: FloatArray, candidates: Candidates) -> Movement:
    """One hidden layer, per unit."""
    shape = network.nonlinearity
    output = network.output_layer(parameters)
    moves = candidates.moves(network.first_layer(parameters))
    values = shape.step(moves)
    slopes = shape.slope_step(moves)
    score = values @ score_range(output)
    norms = np.sqrt(np.sum(output * output, axis=1))
    gradient = np.sqrt((slopes * slopes) @ (norms * norms))
    if network.outputs > 1:
        gradient = np.minimum(gradient, slopes.max(axis=1) * norm_bound(output))
    value = np.sqrt(np.einsum("ij,ij->i", values, values))
    gradient *= 1.0 + 1e-12
    return Movement(
        candidates.worst(score) * (1.0 + 1e-12),
        candidates.worst(value) * (1.0 + 1e-12),
        candidates.worst(gradient)[:, None],
    )


def vector_step(shape: Activation, norm: FloatArray, width: int) -> FloatArray:
    """sup ‖σ(a + Δ) − σ(a)‖ over ‖Δ‖ ≤ norm: step² is concave in Δ², so equal parts are worst."""
    result: FloatArray = math.sqrt(width) * shape.step(norm / math.sqrt(width))
    return result


def deep_movement(
    network: Network, parameters: FloatArray, candidates: Candidates, value_step: float = 0.0
) -> Movement:
    """Any depth, by norms of the layers; ``value_step`` is what rounding adds to a hidden value.

    Forward: ‖Δa_{l+1}‖ ≤ ‖W_{l+1}‖·‖Δh_l‖. Backward, with V_last = σ' ⊙ W_out and
    V_l = σ'_l ⊙ (W_{l+1}·V_{l+1}), norms of V in Frobenius:
    ΔV_l ≤ min(2‖V_l‖, ‖W_{l+1}‖(sup σ'·ΔV_{l+1} + ‖V_{l+1}‖·slope_step(Δa_l))).
    """
    shape = network.nonlinearity
    output = network.output_layer(parameters)
    spectral = [norm_bound(layer[:-1]) for layer in network.deeper_layers(parameters)]
    moves = candidates.moves(network.first_layer(parameters))
    slope_moves = [candidates.worst(shape.slope_step(moves).max(axis=1))]
    value_moves = [candidates.worst(np.sqrt(np.sum(shape.step(moves) ** 2, axis=1)))]
    for norm, width in zip(spectral, network.hidden[1:], strict=True):
        pre = norm * value_moves[-1]
        slope_moves.append(shape.slope_step(pre))
        value_moves.append(vector_step(shape, pre, width))
    score = value_moves[-1] * float(np.linalg.norm(score_range(output)))
    frobenius = float(np.linalg.norm(output))
    size = shape.slope_bound * frobenius
    moved = np.minimum(2.0 * size, frobenius * slope_moves[-1])
    gradient = []
    for number in range(network.depth - 1, 0, -1):
        width = network.hidden[number - 1]
        value = value_moves[number - 1]
        value = np.where(value > 0, value + math.sqrt(width) * value_step, 0.0)
        gradient.append(_outer_move(moved, math.sqrt(width) * shape.value_bound, size, value))
        weight = spectral[number - 1]
        moved = weight * (shape.slope_bound * moved + size * slope_moves[number - 1])
        size *= weight * shape.slope_bound
        moved = np.minimum(2.0 * size, moved)
    gradient.append(moved)
    up = 1.0 + 1e-9
    return Movement(score * up, value_moves[-1] * up, np.column_stack(gradient[::-1]) * up)


def _outer_move(
    gradient_move: FloatArray, value_bound: float, gradient_bound: float, value_move: FloatArray
) -> FloatArray:
    """‖Δ(V ⊗ (h, 1))‖ ≤ ΔV·‖(h, 1)‖ + ‖V‖·Δh; infinite where h has no bound."""
    limit = math.hypot(1.0, value_bound)
    first = np.where(gradient_move > 0, np.maximum(gradient_move, 1e-300) * limit, 0.0)
    result: FloatArray = first + gradient_bound * value_move
    return result
