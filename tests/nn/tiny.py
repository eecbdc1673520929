"""Tiny networks on grids of records, where every movement can be enumerated."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from corrdp.encoding import Encoder
from corrdp.erm.losses import Logistic, Squared
from corrdp.neighbours import neighbour_kinds
from corrdp.nn.gradients import Inputs, gradient_sum
from corrdp.nn.network import Network, NetworkLattice
from corrdp.nn.query import GradientQuery
from corrdp.nn.residual import Softmax
from corrdp.nn.sensitivity import NetworkSensitivity
from corrdp.records import Records
from corrdp.schema import Categorical, Label, Numeric, Schema

FEW = (0.0, 1.0)


def schema_of(label_role: str = "insensitive", classes: int = 2) -> Schema:
    """Two insensitive columns, two sensitive ones, one of each sort."""
    label = (
        Label("y", list(range(classes)), role=label_role)
        if classes
        else Label("y", low=-1, high=1, role=label_role)
    )
    columns: dict[str, Any] = {
        "x": Numeric(0, 1, role="insensitive"),
        "s": Numeric(0, 1, role="sensitive"),
        "c": Categorical(["a", "b", "d"], role="insensitive"),
        "t": Categorical(["a", "b"], role="sensitive"),
    }
    return Schema(columns, label)


@dataclass(frozen=True)
class Grid:
    """All records over a few values per column, encoded."""

    values: np.ndarray  # one row per record: x, s, c, t, y
    inputs: Inputs
    label: np.ndarray

    def contributions(self, query: GradientQuery, parameters: np.ndarray) -> np.ndarray:
        return np.array(
            [
                gradient_sum(query, parameters, Inputs(1, (chunk,)), self.label)
                for chunk in self.inputs.chunks
            ]
        )


NAMES = ("x", "s", "c", "t", "y")


def grid(network: Network, numbers: tuple[float, ...] = FEW) -> Grid:
    schema = network.encoder.schema
    classes = len(schema.label.names)
    labels = range(classes) if classes else (-1.0, 0.0, 1.0)
    values = np.array(list(itertools.product(numbers, numbers, range(3), range(2), labels)))
    columns = {
        "x": values[:, 0],
        "s": values[:, 1],
        "c": values[:, 2].astype(np.int64),
        "t": values[:, 3].astype(np.int64),
    }
    design = network.encoder.transform(Records(columns, len(values)))
    return Grid(values, Inputs.of(design, network, chunk=1), values[:, 4])


def loss_of(schema: Schema) -> Any:
    classes = len(schema.label.names)
    if classes == 0:
        return Squared(0.8, 2.0)
    return Logistic() if classes == 2 else Softmax()


def build(
    *,
    classes: int = 2,
    label_role: str = "insensitive",
    bits: tuple[int, int, int] | None = None,
    class_weights: tuple[float, ...] | None = None,
    clips: tuple[float, ...] = (),
    scale: float = 1.0,
    **network: Any,
) -> GradientQuery:
    schema = schema_of(label_role, classes)
    lattice = None if bits is None else NetworkLattice(*bits)
    encoder = Encoder(schema, scale, None if bits is None else bits[2])
    outputs = classes if classes > 2 else 1
    made = Network(encoder, outputs=outputs, **network)
    return GradientQuery(made, loss_of(schema), class_weights, clips, lattice)


def table_of(query: GradientQuery, rows: int = 1) -> NetworkSensitivity:
    return NetworkSensitivity(query, neighbour_kinds(query.network.encoder.schema), rows)


def random_parameters(network: Network, rng: np.random.Generator) -> np.ndarray:
    parameters = rng.normal(size=network.dimension)
    scales = 10.0 ** rng.uniform(-1.3, 0.7, size=len(network.blocks))
    parameters *= network.spread(scales)
    return network.project(parameters, 30.0)


def movements(query: GradientQuery, points: Grid, parameters: np.ndarray) -> np.ndarray:
    """Largest movement of every block under every kind, by trying all pairs."""
    network = query.network
    rows = points.contributions(query, parameters)
    kinds = neighbour_kinds(network.encoder.schema)
    result = np.zeros((len(kinds), len(network.blocks)))
    squared = np.stack(
        [_distances(rows[:, b.start : b.start + b.size]) for b in network.blocks], axis=-1
    )
    for number, kind in enumerate(kinds):
        changing = {*kind.columns, *(["y"] if kind.label_changes else [])}
        fixed = [i for i, name in enumerate(NAMES) if name not in changing]
        key = points.values[:, fixed]
        pair = (key[:, None, :] == key[None, :, :]).all(axis=-1)
        result[number] = np.sqrt(squared[pair].max(axis=0))
    return result


def _distances(rows: np.ndarray) -> np.ndarray:
    return ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=-1)


def worst_ratio(moved: np.ndarray, bound: np.ndarray) -> float:
    """Largest movement over bound; a movement where the bound is zero counts as infinite."""
    tiny = 1e-9
    return float(((moved - tiny).clip(0) / np.maximum(bound, 1e-15)).max())
