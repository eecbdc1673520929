"""Search for the two neighbouring records that a mechanism tells apart best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.neighbours import NeighbourKind
from corrdp.noise import NoiseSource, noise_source
from corrdp.schema import Numeric, Schema

__all__ = ["Columns", "Embedding", "RecordPair", "label_values", "random_rows", "worst_pair"]

FloatArray: TypeAlias = NDArray[np.float64]
Columns: TypeAlias = dict[str, NDArray[Any]]
Embedding: TypeAlias = Callable[[Columns, FloatArray], FloatArray]
POPULATION, ROUNDS = 400, 4


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
        Squared distance of their contributions in units of the noise.
    """

    kind: NeighbourKind
    columns: Columns
    label: FloatArray
    mu_squared: float


def worst_pair(
    schema: Schema,
    kind: NeighbourKind,
    embed: Embedding,
    *,
    seed: int = 0,
    population: int = POPULATION,
) -> RecordPair:
    """The pair furthest apart under ``embed`` that a random search with mutation finds.

    Parameters
    ----------
    schema : Schema
    kind : NeighbourKind
        What the two records may differ by.
    embed : callable
        (columns, encoded labels) → what each record adds to all released sums, in units of their
        noise, shape (records, numbers); squared distances are squared μ.
    seed : int
        Of the search; no privacy hangs on it.
    population : int
        Pairs tried in each of the rounds.
    """
    source = noise_source(seed).child("search")
    columns, label = random_rows(schema, population, source)
    best: RecordPair | None = None
    for _ in range(ROUNDS):
        other, other_label = _changed(schema, kind, columns, label, source)
        apart = np.sum((embed(columns, label) - embed(other, other_label)) ** 2, axis=1)
        order = np.argsort(-apart)[: population // 10]
        top = int(order[0])
        if best is None or apart[top] > best.mu_squared:
            both = {name: np.array([columns[name][top], other[name][top]]) for name in columns}
            pair_label = np.array([label[top], other_label[top]])
            best = RecordPair(kind, both, pair_label, float(apart[top]))
        columns, label = _mutated(schema, columns, label, order, source)
    assert best is not None
    return best


def label_values(schema: Schema) -> FloatArray:
    """Encoded labels worth trying: all classes, or ends and middle of a number."""
    label = schema.label
    return np.array([-1.0, 1.0, 0.0]) if label.is_numeric else np.arange(float(len(label.names)))


def random_rows(schema: Schema, count: int, source: NoiseSource) -> tuple[Columns, FloatArray]:
    """Random records at the corners of the public domain, with encoded labels."""
    columns = {name: _values(schema, name, count, source) for name in schema.used}
    return columns, _pick(label_values(schema), count, source)


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
    kind: NeighbourKind,
    columns: Columns,
    label: FloatArray,
    source: NoiseSource,
) -> tuple[Columns, FloatArray]:
    """The same records with other values where the kind allows it."""
    count = len(label)
    fresh = {name: _values(schema, name, count, source) for name in kind.columns}
    other = {name: fresh.get(name, values) for name, values in columns.items()}
    return other, _pick(label_values(schema), count, source) if kind.label_changes else label


def _mutated(
    schema: Schema,
    columns: Columns,
    label: FloatArray,
    parents: NDArray[np.int64],
    source: NoiseSource,
) -> tuple[Columns, FloatArray]:
    """Children of the best records: each value is redrawn with probability one quarter."""
    count = len(label)
    parent = parents[np.arange(count) % len(parents)]
    fresh, fresh_label = random_rows(schema, count, source)
    mixed = {
        name: np.where(source.uniform(count) < 0.25, fresh[name], values[parent])
        for name, values in columns.items()
    }
    return mixed, np.where(source.uniform(count) < 0.25, fresh_label, label[parent])
