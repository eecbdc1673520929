"""Search for the two neighbouring records that a linear model's steps tell apart best.

The true movement of a record's gradient is computed from the encoder and the loss alone, never
from the sensitivity table that is being audited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.erm.fit import LinearTask
from corrdp.neighbours import NeighbourKind
from corrdp.noise import NoiseSource, noise_source
from corrdp.records import read_records
from corrdp.schema import Numeric, Schema

__all__ = ["RecordPair", "Trajectory", "contributions", "dense_rows", "label_values", "random_rows"]
__all__ += ["worst_pair"]

FloatArray: TypeAlias = NDArray[np.float64]
Columns: TypeAlias = dict[str, NDArray[Any]]
POPULATION, KEPT, ROUNDS = 400, 40, 4


@dataclass(frozen=True)
class Trajectory:
    """Points θ_t, shape (steps, m), and the noise per block used there, shape (steps, blocks)."""

    theta: FloatArray
    sigma: FloatArray


@dataclass(frozen=True, repr=False)
class RecordPair:
    """Two records that differ by one kind of change.

    Attributes
    ----------
    kind : NeighbourKind
    columns : mapping of str to array of shape (2,)
        Raw values of both records.
    label : array of shape (2,)
        Encoded labels.
    mu_squared : float
        Σ_t Σ_j ‖movement of block j‖²/σ_tj² over the trajectory it was searched on.
    """

    kind: NeighbourKind
    columns: Columns
    label: FloatArray
    mu_squared: float


def dense_rows(task: LinearTask, columns: Columns) -> FloatArray:
    """Encoded records φ, shape (records, m)."""
    encoder = task.encoder
    design = encoder.transform(read_records(columns, encoder.schema))
    features = np.empty((design.size, encoder.dimension))
    features[:, encoder.numeric_index] = design.numeric
    features[:, encoder.one_hot_index] = design.one_hot.toarray()
    features[:, -1] = encoder.scale
    return features


def contributions(
    task: LinearTask, features: FloatArray, label: FloatArray, theta: FloatArray
) -> FloatArray:
    """r̃·φ of every record at θ as the mechanism rounds it, shape (records, m)."""
    setup = task.setup
    residual = setup.loss.residual(features @ theta, label)
    if setup.class_weights is not None:
        residual = residual * np.asarray(setup.class_weights)[label.astype(np.int64)]
    return setup.lattice.round_residual(residual)[:, None] * features


def worst_pair(
    task: LinearTask, kind: NeighbourKind, path: Trajectory, seed: int = 0
) -> RecordPair:
    """The pair with the largest μ² along the path that a random search with mutation finds.

    Parameters
    ----------
    task : LinearTask
    kind : NeighbourKind
        What the two records may differ by.
    path : Trajectory
    seed : int
        Of the search; no privacy hangs on it.
    """
    schema, source = task.declaration.schema, noise_source(seed).child("search")
    labels = label_values(task)
    columns, label = random_rows(schema, labels, POPULATION, source)
    best: RecordPair | None = None
    for _ in range(ROUNDS):
        other, other_label = _changed(schema, labels, kind, columns, label, source)
        score = _separation(task, path, (columns, label), (other, other_label))
        order = np.argsort(-score)[:KEPT]
        top = int(order[0])
        if best is None or score[top] > best.mu_squared:
            both = {name: np.array([columns[name][top], other[name][top]]) for name in columns}
            best = RecordPair(
                kind, both, np.array([label[top], other_label[top]]), float(score[top])
            )
        columns, label = _mutated(schema, labels, columns, label, order, source)
    assert best is not None
    return best


def _separation(
    task: LinearTask,
    path: Trajectory,
    one: tuple[Columns, FloatArray],
    other: tuple[Columns, FloatArray],
) -> FloatArray:
    """Squared μ of every candidate pair, summed over the path."""
    total = np.zeros(len(one[1]))
    first, second = dense_rows(task, one[0]), dense_rows(task, other[0])
    for theta, sigma in zip(path.theta, path.sigma, strict=True):
        moved = contributions(task, first, one[1], theta)
        moved -= contributions(task, second, other[1], theta)
        noise = task.encoder.spread(sigma)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(moved == 0, 0.0, moved / noise)
        total += np.sum(ratio**2, axis=1)
    return total


def label_values(task: LinearTask) -> FloatArray:
    """Encoded labels worth trying: all classes, or ends and middle of a number."""
    label = task.declaration.schema.label
    return np.array([-1.0, 1.0, 0.0]) if label.is_numeric else np.arange(float(len(label.names)))


def random_rows(
    schema: Schema, labels: FloatArray, count: int, source: NoiseSource
) -> tuple[Columns, FloatArray]:
    """Random records at the corners of the public domain, with encoded labels."""
    columns = {name: _values(schema, name, count, source) for name in schema.used}
    return columns, _pick(labels, count, source)


def _values(schema: Schema, name: str, count: int, source: NoiseSource) -> NDArray[Any]:
    column = schema.used[name]
    if isinstance(column, Numeric):
        middle = (column.low + column.high) / 2.0
        ends = np.array([column.low, column.high, column.low, column.high, middle], dtype=float)
        return _pick(ends, count, source)
    return _pick(np.array(column.names, dtype=object), count, source)


def _pick(choices: NDArray[Any], count: int, source: NoiseSource) -> NDArray[Any]:
    return choices[(source.uniform(count) * len(choices)).astype(np.int64)]


def _changed(
    schema: Schema,
    labels: FloatArray,
    kind: NeighbourKind,
    columns: Columns,
    label: FloatArray,
    source: NoiseSource,
) -> tuple[Columns, FloatArray]:
    """The same records with other values where the kind allows it."""
    count = len(label)
    fresh = {name: _values(schema, name, count, source) for name in kind.columns}
    other = {name: fresh.get(name, values) for name, values in columns.items()}
    return other, _pick(labels, count, source) if kind.label_changes else label


def _mutated(
    schema: Schema,
    labels: FloatArray,
    columns: Columns,
    label: FloatArray,
    parents: NDArray[np.int64],
    source: NoiseSource,
) -> tuple[Columns, FloatArray]:
    """Children of the best records: each value is redrawn with probability one quarter."""
    count = len(label)
    parent = parents[np.arange(count) % len(parents)]
    fresh, fresh_label = random_rows(schema, labels, count, source)
    mixed = {
        name: np.where(source.uniform(count) < 0.25, fresh[name], values[parent])
        for name, values in columns.items()
    }
    return mixed, np.where(source.uniform(count) < 0.25, fresh_label, label[parent])
