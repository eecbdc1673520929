"""From queries to the blocks they need, and from noisy blocks to answers (post-processing)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.encoding import INTERCEPT
from corrdp.errors import ConfigurationError
from corrdp.neighbours import INSENSITIVE, RECORD
from corrdp.privacy.declaration import Declaration
from corrdp.queries.blocks import (
    Block,
    CountBlock,
    RectangleBlock,
    SquareBlock,
    SumBlock,
    TableBlock,
    TriangleBlock,
    changed_names,
)
from corrdp.queries.coding import axis_names
from corrdp.queries.query import (
    ContingencyTable,
    Count,
    Covariance,
    Histogram,
    Mean,
    Query,
    Sum,
    Variance,
    domain,
)
from corrdp.schema import Numeric, Schema

__all__ = [
    "Answer",
    "Released",
    "answer",
    "blocks_of",
    "exchange_classes",
    "product_blocks",
    "product_matrix",
]

FloatArray: TypeAlias = NDArray[np.float64]
HALF = 0.5


@dataclass(frozen=True)
class Released:
    """Noisy sums: values and noise variance by block name, and the public n."""

    values: Mapping[str, FloatArray]
    variance: Mapping[str, float]
    n: int

    def entries(self, block: Block) -> tuple[FloatArray, float]:
        """Values and variance of a block's coordinates."""
        return self.values[block.name], self.variance[block.name]


@dataclass(frozen=True)
class Answer:
    """Value and standard error (of the noise) in the column's own unit, and names of the axes."""

    value: Any
    standard_error: Any
    levels: tuple[tuple[str, ...], ...] = ()


def exchange_classes(columns: Sequence[str], declaration: Declaration) -> list[tuple[str, ...]]:
    """Columns that may be swapped without changing any kind's budget (THEORY T11).

    Entries of one class can share a block: by symmetry and convexity the least noise for them is
    equal, and their joint movement is less than the sum of the single ones. Budgets are those
    fixed before the first release, because blocks must not follow released distances.
    """
    schema = declaration.schema
    signature: dict[str, list[object]] = {name: [] for name in columns}
    for budget in declaration.budgets():
        if budget.kind.name in (INSENSITIVE, RECORD):
            continue
        changed = changed_names(budget.kind, schema)
        single = len(changed) == 1
        for name in columns:
            if name in changed:
                identity = ("alone", budget.fixed) if single else budget.kind
                signature[name].append(identity)
    classes: list[tuple[list[object], list[str]]] = []
    for name in columns:
        for found, members in classes:
            if found == signature[name]:
                members.append(name)
                break
        else:
            classes.append((signature[name], [name]))
    return [tuple(members) for _, members in classes]


def product_blocks(classes: Sequence[tuple[str, ...]], half: float) -> list[Block]:
    """Σ c_i·c_j of all pairs and Σ c_i², in blocks of exchangeable entries."""
    blocks: list[Block] = []
    for members in classes:
        if squared(members):
            blocks.append(SquareBlock(squared(members), half))
        if len(members) > 1:
            blocks.append(TriangleBlock(members, half))
    for left, right in itertools.combinations(classes, 2):
        blocks.append(RectangleBlock(left, right, half))
    return blocks


def squared(members: tuple[str, ...]) -> tuple[str, ...]:
    """Members whose square is not known: the intercept's is."""
    return tuple(name for name in members if name != INTERCEPT)


def product_matrix(
    classes: Sequence[tuple[str, ...]], half: float, released: Released, order: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """Values and variances of :func:`product_blocks` as symmetric matrices over ``order``."""
    size = len(order)
    values, variances = np.zeros((size, size)), np.zeros((size, size))
    place = {name: i for i, name in enumerate(order)}

    def put(rows: Sequence[int], columns: Sequence[int], block: Block) -> None:
        entries, variance = released.entries(block)
        values[rows, columns] = values[columns, rows] = entries
        variances[rows, columns] = variances[columns, rows] = variance

    for members in classes:
        own = [place[name] for name in squared(members)]
        if own:
            put(own, own, SquareBlock(squared(members), half))
        at = [place[name] for name in members]
        if len(members) > 1:
            pairs = list(itertools.combinations(at, 2))
            put([i for i, _ in pairs], [j for _, j in pairs], TriangleBlock(members, half))
    for left, right in itertools.combinations(classes, 2):
        grid = [(place[a], place[b]) for a in left for b in right]
        put([i for i, _ in grid], [j for _, j in grid], RectangleBlock(left, right, half))
    return values, variances


def blocks_of(query: Query, declaration: Declaration) -> list[Block]:
    """Sums that a query needs."""
    from corrdp.queries.moments import SecondMoments

    known = domain(declaration.schema)
    if isinstance(query, Count):
        return [CountBlock.of(query.conditions(), known)]
    if isinstance(query, (Histogram, ContingencyTable)):
        return [_table(query, declaration.schema)]
    if isinstance(query, (Sum, Mean)):
        return [SumBlock(query.column)]
    if isinstance(query, (Variance, Covariance)):
        classes = exchange_classes(query.columns, declaration)
        sums: list[Block] = [SumBlock(name) for name in query.columns]
        return sums + product_blocks(classes, HALF)
    if isinstance(query, SecondMoments):
        return query.blocks(declaration)
    raise ConfigurationError(f"query {query!r} is unknown")


def answer(query: Query, declaration: Declaration, released: Released) -> Answer:
    """What a query's noisy sums say, in the column's own unit."""
    from corrdp.queries.moments import SecondMoments

    known = domain(declaration.schema)
    if isinstance(query, Count):
        return _scalar(*released.entries(blocks_of(query, declaration)[0]))
    if isinstance(query, (Histogram, ContingencyTable)):
        block = _table(query, declaration.schema)
        values, variance = released.entries(block)
        names = tuple(axis_names(known[name]) for name in query.columns)
        table = values.reshape(block.shape)
        return Answer(table, np.full(block.shape, np.sqrt(variance)), names)
    if isinstance(query, (Sum, Mean)):
        column = _number(known[query.column])
        values, variance = released.entries(SumBlock(query.column))
        wide, middle = column.high - column.low, 0.5 * (column.low + column.high)
        total = released.n * middle + wide * values
        share = released.n if isinstance(query, Mean) else 1
        return _scalar(total / share, variance * (wide / share) ** 2)
    if isinstance(query, (Variance, Covariance)):
        return _covariance(query, declaration, released)
    if isinstance(query, SecondMoments):
        values, variances, axis = query.matrix(declaration, released)
        return Answer(values, np.sqrt(variances), (axis, axis))
    raise ConfigurationError(f"query {query!r} is unknown")


def _number(column: object) -> Numeric:
    if not isinstance(column, Numeric):
        raise ConfigurationError(f"{column!r} is not a number")
    return column


def _scalar(values: FloatArray, variance: float) -> Answer:
    return Answer(float(values[0]), float(np.sqrt(variance)))


def _table(query: Histogram | ContingencyTable, schema: Schema) -> TableBlock:
    known = domain(schema)
    return TableBlock(query.columns, tuple(known[name].domain_size for name in query.columns))


def _covariance(
    query: Variance | Covariance, declaration: Declaration, released: Released
) -> Answer:
    """P/n − m mᵀ of the centred columns, the noise's share in the square of a mean taken out."""
    names = query.columns
    known = domain(declaration.schema)
    wide = np.array([_number(known[n]).high - _number(known[n]).low for n in names])
    sums = [released.entries(SumBlock(name)) for name in names]
    mean = np.array([values[0] for values, _ in sums]) / released.n
    noise = np.array([variance for _, variance in sums]) / released.n**2
    classes = exchange_classes(names, declaration)
    products, variances = product_matrix(classes, HALF, released, names)
    value = products / released.n - np.outer(mean, mean) + np.diag(noise)
    # squared means are known up to noise too; their expected square is mean² − noise
    square = np.maximum(mean**2 - noise, 0.0)
    cross = np.outer(square, noise) + np.outer(noise, square)
    error = variances / released.n**2 + cross + np.outer(noise, noise)
    error += np.diag(2.0 * square * noise + np.square(noise))
    unit = np.outer(wide, wide)
    value, spread = value * unit, np.sqrt(error) * unit
    if isinstance(query, Variance):
        return Answer(float(value[0, 0]), float(spread[0, 0]))
    return Answer(value, spread, (tuple(names), tuple(names)))
