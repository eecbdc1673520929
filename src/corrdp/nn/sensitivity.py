"""How far one record's contribution can move, block by block and kind by kind (THEORY T12).

Every block's contribution is input ⊗ signal. With a bound B on the signal and Δ on its movement,
hidden and skip slices follow the rule of linear models (THEORY T6): unchanged Δ·R_j, changed
numeric min(2B·R_j, B·D_j + Δ·R_j), changed one-hot h·max(√2·B, Δ). What differs is the signal:

* skip: the residual itself, B = L, Δ = ρ;
* one hidden layer: V·r̂ clipped to C, B = min(C, L‖W_out‖), Δ = min(2B, ρ‖W_out‖ + L·ΔV);
* deeper nets: clip(∇_l t, C_l) times r, B = L·C_l, Δ = min(2B, ρ·C_l + L·min(2C_l, Δ∇_l)).

Where only columns of the skip change, V and ∇_l t stay as they are and Δ holds no more than ρ.

Rounding (THEORY T14). r̂ is rounded to the nearest after scaling: movement + ‖V‖√C·2^-p, norm
+ half of it. Score gradients and hidden values are truncated toward zero: norms stay, movement
grows by 2^-s (2^-q) per entry wherever they move at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.encoding import Block
from corrdp.errors import ConfigurationError
from corrdp.neighbours import NeighbourKind
from corrdp.nn.movement import (
    Candidates,
    Movement,
    deep_movement,
    shallow_movement,
    skip_movement,
)
from corrdp.nn.query import GradientQuery, norm_bound

__all__ = ["NetworkSensitivity"]

FloatArray: TypeAlias = NDArray[np.float64]
UP = 1.0 + 1e-12


@dataclass(frozen=True, repr=False)
class _Slices:
    """Hidden or skip columns as arrays, one entry per column (and kind)."""

    radius: FloatArray
    diameter: FloatArray
    one_hot: NDArray[np.bool_]
    changed: NDArray[np.bool_]

    @classmethod
    def of(cls, blocks: Sequence[Block], kinds: Sequence[NeighbourKind]) -> _Slices:
        changed = np.array([[b.name in kind.columns for b in blocks] for kind in kinds], dtype=bool)
        return cls(
            np.array([block.radius for block in blocks]),
            np.array([block.diameter for block in blocks]),
            np.array([block.kind == "one-hot" for block in blocks]),
            changed.reshape(len(kinds), len(blocks)),
        )

    def table(self, bound: float, movement: FloatArray) -> FloatArray:
        """Rule of THEORY T6 for signals within ``bound`` that move by ``movement`` (kinds,)."""
        unchanged = movement[:, None] * self.radius
        numeric = np.minimum(2.0 * bound * self.radius, bound * self.diameter + unchanged)
        one_hot = self.radius * np.maximum(math.sqrt(2.0) * bound, movement[:, None])
        return np.where(self.changed, np.where(self.one_hot, one_hot, numeric), unchanged)


@dataclass(frozen=True)
class NetworkSensitivity:
    """L2 bounds on the movement of the gradient sum: rows are kinds, columns are blocks.

    Parameters
    ----------
    query : GradientQuery
    kinds : sequence of NeighbourKind
    records_per_person : int
        Rows that one person may own; multiplies every bound.

    Called with flat parameters it gives the table at them. It supposes that trained output
    weights lie in the ball of ``network.output_radius``.
    """

    query: GradientQuery
    kinds: tuple[NeighbourKind, ...]
    records_per_person: int = 1
    hidden: _Slices = field(init=False, repr=False, compare=False)
    skip: _Slices = field(init=False, repr=False, compare=False)
    candidates: Candidates = field(init=False, repr=False, compare=False)
    label: NDArray[np.bool_] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", tuple(self.kinds))
        rows = self.records_per_person
        if isinstance(rows, bool) or not (isinstance(rows, int) and rows >= 1):
            raise ConfigurationError(f"records_per_person={rows!r} must be a whole number >= 1")
        network = self.query.network
        known = {block.name for block in network.encoder.blocks}
        for kind in self.kinds:
            unknown = sorted(set(kind.columns) - known)
            if unknown:
                raise ConfigurationError(f"kind {kind.name!r} changes unknown columns {unknown}")
        object.__setattr__(self, "hidden", _Slices.of(network.hidden_columns, self.kinds))
        object.__setattr__(self, "skip", _Slices.of(network.skip_columns, self.kinds))
        object.__setattr__(self, "candidates", Candidates.of(network.hidden_columns, self.kinds))
        object.__setattr__(self, "label", np.array([k.label_changes for k in self.kinds], bool))

    def __call__(self, parameters: FloatArray) -> FloatArray:
        """The table at these parameters: array of shape (kinds, blocks)."""
        network = self.query.network
        flat = network.check_parameters(parameters)
        if network.depth == 1:
            moved = shallow_movement(network, flat, self.candidates)
        else:
            moved = deep_movement(network, flat, self.candidates, self.query.value_step)
        by_skip = skip_movement(network, network.skip_layer(flat))
        moved = Movement(moved.score + self.skip.changed @ by_skip, moved.value, moved.gradient)
        return self._table(moved, norm_bound(network.output_layer(flat)))

    @property
    def infimum(self) -> FloatArray:
        """inf over parameters of the table.

        With trained output weights and one hidden layer the hidden slices of every kind are
        proportional to B(θ); there ``infimum`` and ``supremum`` bound the ratio to B(θ), which is
        what the dual bound of THEORY T4 compares, block by block.
        """
        kinds, depth = len(self.kinds), self.query.network.depth
        still = Movement(np.zeros(kinds), np.zeros(kinds), np.zeros((kinds, depth)))
        if not self._relative:
            return self._table(still, norm_bound(self.query.network.fixed_output))
        rho = self.query.rule.movement(still.score, self.label)
        least = np.minimum(2.0, (rho / self.query.rule.bound))
        return self._table(still, 0.0, relative=least)

    def supremum(self, radius: float) -> FloatArray:
        """sup of the table over skip weights with norm ≤ radius and any hidden weights."""
        if not radius > 0:
            raise ConfigurationError(f"radius={radius!r} must be positive")
        network = self.query.network
        # a difference of two scores sees √2 times the norm of a row
        factor = math.sqrt(2.0) if network.outputs > 1 else 1.0
        slope = factor * np.sqrt(self.skip.changed @ self.skip.diameter**2)
        by_skip = np.where(slope > 0, radius * np.where(slope > 0, slope, 1.0), 0.0)
        changes = self.hidden.changed.any(axis=1)
        far = np.where(changes, math.inf, 0.0)
        everything = Movement(by_skip + far, far, np.tile(far[:, None], (1, network.depth)))
        if not self._relative:
            return self._table(everything, norm_bound(network.fixed_output))
        rho = self.query.rule.movement(everything.score, self.label)
        most = np.where((rho > 0) | changes, 2.0, 0.0)
        return self._table(everything, network.output_radius, relative=most)

    def largest(self, radius: float) -> FloatArray:
        """:meth:`supremum` with every block in its own unit, to reserve for."""
        table = self.supremum(radius)
        if self._relative:
            slices = len(self.hidden.radius)
            table[:, :slices] *= self._signal_bound(self.query.network.output_radius)
        return table

    @property
    def presence(self) -> FloatArray:
        """Largest norm of a record's contribution per block, at any parameters (THEORY T7)."""
        query, network = self.query, self.query.network
        trained = network.output_weights == "trained"
        output = network.output_radius if trained else norm_bound(network.fixed_output)
        bound = query.rule.bound
        parts = [self._signal_bound(output * UP) * self.hidden.radius]
        parts.append(bound * np.array(query.clips[1 : network.depth]))
        if trained:
            parts.append(np.array([bound * self._value_bound]))
        parts.append(bound * self.skip.radius)
        presence: FloatArray = self.records_per_person * np.concatenate(parts) * UP
        return presence

    @property
    def least_presence(self) -> FloatArray:
        """:attr:`presence` in the units of :attr:`infimum`, where it is least.

        Presence is the same at all parameters; B(θ), the unit of hidden slices there, is largest
        at the edge of the output weights' ball.
        """
        presence = self.presence
        if self._relative:
            presence[: len(self.hidden.radius)] = self.records_per_person * self.hidden.radius
        return presence

    @property
    def _relative(self) -> bool:
        network = self.query.network
        return network.depth == 1 and network.output_weights == "trained"

    @property
    def _value_bound(self) -> float:
        """Bound on the clipped hidden values that meet trained output weights."""
        network = self.query.network
        limit = math.sqrt(network.hidden[-1]) * network.nonlinearity.value_bound
        return min(self.query.clips[-1], limit) * UP

    def _signal_bound(self, output: float) -> float:
        """B of the first layer, rounding included; ``output`` bounds ‖W_out‖."""
        query, rule = self.query, self.query.rule
        if query.network.depth > 1:
            return rule.bound * query.clips[0] * UP
        size = self._truncated_norm(output)
        return min(size * rule.bound, query.clips[0] + 0.5 * size * rule.step) * UP

    def _truncated_norm(self, output: float) -> float:
        """Bound on the spectral norm of the truncated V of a net with one hidden layer."""
        network = self.query.network
        size = network.nonlinearity.slope_bound * output
        if network.outputs == 1:
            return size
        return size + math.sqrt(network.hidden[0] * network.outputs) * self.query.signal_step

    def _table(
        self, moved: Movement, output: float, relative: FloatArray | None = None
    ) -> FloatArray:
        """All blocks side by side; ``relative`` replaces the hidden slices' (B, Δ) by (1, it)."""
        network, rule = self.query.network, self.query.rule
        rho = rule.movement(moved.score, self.label)
        if relative is not None:
            parts = [self.hidden.table(1.0, relative)]
        else:
            bound = self._signal_bound(output)
            parts = [self.hidden.table(bound, self._signal(moved, rho, output, bound))]
        for number in range(1, network.depth):
            parts.append(self._deeper(moved.gradient[:, number], rho, number)[:, None])
        if network.output_weights == "trained":
            parts.append(self._output(moved.value, rho)[:, None])
        parts.append(self.skip.table(rule.bound, rho))
        table: FloatArray = self.records_per_person * np.concatenate(parts, axis=1)
        return table

    def _signal(self, moved: Movement, rho: FloatArray, output: float, bound: float) -> FloatArray:
        """Δ of the first layer's signal per kind."""
        query, network, rule = self.query, self.query.network, self.query.rule
        change = moved.gradient[:, 0]
        entries = math.sqrt(network.hidden[0] * network.outputs)
        change = np.where(change > 0, change + entries * query.signal_step, 0.0)
        if network.depth == 1:
            size = self._truncated_norm(output)
        else:
            size = query.clips[0]
            change = np.minimum(2.0 * size, change)
        result: FloatArray = np.minimum(2.0 * bound, (size * rho + rule.bound * change) * UP)
        return result

    def _output(self, change: FloatArray, rho: FloatArray) -> FloatArray:
        """Movement of the trained output weights' block, per kind."""
        query, bound = self.query, self.query.rule.bound
        limit = self._value_bound
        rounding = math.sqrt(query.network.hidden[-1]) * query.value_step
        moved = np.where(change > 0, np.minimum(2.0 * limit, change + rounding), 0.0)
        result: FloatArray = np.minimum(2.0 * bound * limit, rho * limit + bound * moved)
        return result

    def _deeper(self, change: FloatArray, rho: FloatArray, number: int) -> FloatArray:
        """Δ of layer ``number`` (0 is the first) of a deeper net, per kind."""
        query, network, rule = self.query, self.query.network, self.query.rule
        clip = query.clips[number] * UP
        rounding = 0.0
        if query.signal_step > 0:
            below = network.hidden[number - 1]
            limit = math.sqrt(1.0 + below * network.nonlinearity.value_bound**2)
            entries = math.sqrt(network.hidden[number] * network.outputs)
            rounding = 2.0 * entries * limit * query.signal_step
        moved = np.where(change > 0, np.minimum(2.0 * clip, change + rounding), 0.0)
        result: FloatArray = np.minimum(2.0 * rule.bound * clip, rho * clip + rule.bound * moved)
        return result
