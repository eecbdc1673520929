"""A tiny table, all its neighbours of a kind, and the largest true movement of a block."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corrdp.distance import Distances
from corrdp.encoding import INTERCEPT
from corrdp.neighbours import NeighbourKind
from corrdp.privacy.budgets import PrivacyTarget, PureTarget
from corrdp.privacy.declaration import Declaration
from corrdp.queries.blocks import Block, changed_names
from corrdp.queries.coding import Coded
from corrdp.queries.query import domain
from corrdp.schema import Categorical, Group, Label, Numeric, Schema

# a sensitive pair, a group, two exchangeable numbers, a public column, an insensitive label
SCHEMA = Schema(
    {
        "s": Categorical(["a", "b"]),
        "t": Numeric(0, 10),
        "g": Categorical(["p", "q"], role="insensitive"),
        "h": Numeric(1, 3, role="insensitive"),
        "u": Numeric(-1, 1, role="insensitive"),
        "v": Numeric(0, 1, role="insensitive"),
        "w": Categorical(["k", "l"], role="public"),
    },
    Label("y", low=0, high=4, role="insensitive"),
    groups=[Group(("g", "h"))],
)
DISTANCES = {"g+h": 0.3, "u": 0.1, "v": 0.1, "y": 0.5}


def declaration(
    epsilon: float = 1.0,
    delta: float = 1e-6,
    n: int = 100,
    schema: Schema = SCHEMA,
    distances: dict[str, float] | None = None,
    **settings: Any,
) -> Declaration:
    """The tiny schema's declaration; pure where delta is 0."""
    target = PrivacyTarget if delta else PureTarget
    given = DISTANCES if distances is None else distances
    return Declaration(schema, target(epsilon, delta, **settings), n, Distances.given(given), True)


def levels(schema: Schema, name: str, grid: Sequence[float]) -> list[Any]:
    """Values of a column: codes of a categorical one, lattice points in [−1, 1] of a number."""
    column = domain(schema)[name]
    return list(range(column.domain_size)) if isinstance(column, Categorical) else list(grid)


def one_record(schema: Schema, record: dict[str, Any]) -> Coded:
    """A record as :class:`Coded`, with bins and values in its own unit."""
    numbers, codes, values = {INTERCEPT: np.ones(1)}, {}, {}
    for name, value in record.items():
        column = domain(schema)[name]
        if isinstance(column, Categorical):
            codes[name] = np.array([value])
            continue
        numbers[name] = np.array([float(value)])
        middle, half = 0.5 * (column.low + column.high), 0.5 * (column.high - column.low)
        values[name] = middle + half * numbers[name]
        edges = np.asarray(column.edges)[1:-1]
        codes[name] = np.searchsorted(edges, values[name], side="left")
    return Coded(1, numbers, codes, values)


def records(schema: Schema, columns: Sequence[str], grid: Sequence[float]) -> Iterator[Coded]:
    """Every record over ``columns``, the last column fastest."""
    for values in itertools.product(*(levels(schema, name, grid) for name in columns)):
        yield one_record(schema, dict(zip(columns, values)))


def movement(
    block: Block,
    columns: Sequence[str],
    kind: NeighbourKind,
    schema: Schema = SCHEMA,
    grid: Sequence[float] = (-1.0, 0.0, 1.0),
) -> tuple[float, float]:
    """Largest true (L1, L2) movement of one record's contribution to a block."""
    changed = changed_names(kind, schema)
    fixed = [name for name in columns if name not in changed]
    order = [*fixed, *(name for name in columns if name in changed)]
    terms = np.array([block.total(record) for record in records(schema, order, grid)])
    still = math.prod(len(levels(schema, name, grid)) for name in fixed)
    terms = terms.reshape(still, -1, block.size)
    gaps = np.abs(terms[:, :, None, :] - terms[:, None, :, :])
    return float(gaps.sum(axis=-1).max()), float(np.sqrt((gaps**2).sum(axis=-1)).max())
