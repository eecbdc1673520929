"""Second moments of all columns, released once (THEORY T11).

Coordinates are those of :class:`corrdp.encoding.Encoder` with scale 1: numbers in [−1, 1], one-hot
levels, and a constant 1 at the end. Within one categorical column only the diagonal is not zero
and equals the counts, so it is released once; entries of exchangeable columns share a block.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.encoding import INTERCEPT
from corrdp.privacy.declaration import Declaration
from corrdp.queries.answers import Released, exchange_classes, product_blocks, product_matrix
from corrdp.queries.blocks import Block, LevelBlock, TableBlock
from corrdp.queries.query import Query, _names, domain
from corrdp.schema import Categorical, Schema

__all__ = ["SecondMoments"]

FloatArray: TypeAlias = NDArray[np.float64]
HALF = 1.0


@dataclass(frozen=True)
class SecondMoments(Query):
    """Σψψᵀ of the encoded columns and a constant: what any linear regression among them needs."""

    over: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "over", _names(self.over, 1, "SecondMoments"))

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns in the order of their coordinates."""
        return tuple(self.over)

    @property
    def numeric_only(self) -> bool:
        """Levels or numbers."""
        return False

    def _parts(
        self, declaration: Declaration
    ) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]], dict[str, int]]:
        """Classes of numbers, the same with the intercept, and levels by categorical column."""
        known = domain(declaration.schema)
        levels = {n: c.domain_size for n in self.columns if isinstance(c := known[n], Categorical)}
        numbers = [name for name in self.columns if name not in levels]
        classes = exchange_classes(numbers, declaration)
        if len(classes) == 1:
            # the constant moves with nobody: joining costs one class nothing (THEORY T11)
            return classes, [(INTERCEPT, *classes[0])], levels
        return classes, [(INTERCEPT,), *classes], levels

    def blocks(self, declaration: Declaration) -> list[Block]:
        """Every entry of the upper triangle that is not known, once."""
        classes, groups, levels = self._parts(declaration)
        blocks = product_blocks(groups, HALF)
        for name, size in levels.items():
            blocks.append(TableBlock((name,), (size,)))
            blocks.extend(LevelBlock(name, size, members, HALF) for members in classes)
        for one, two in itertools.combinations(levels, 2):
            blocks.append(TableBlock((one, two), (levels[one], levels[two])))
        return blocks

    def matrix(
        self, declaration: Declaration, released: Released
    ) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
        """Noisy moments, their noise variances, and names of the coordinates (constant last)."""
        classes, groups, levels = self._parts(declaration)
        starts, names = self.layout(declaration.schema)
        size = len(names)
        values, variances = np.zeros((size, size)), np.zeros((size, size))

        def put(rows: Any, columns: Any, entries: FloatArray, spread: FloatArray | float) -> None:
            values[np.ix_(rows, columns)] = entries
            values[np.ix_(columns, rows)] = entries.T
            variances[np.ix_(rows, columns)] = spread
            variances[np.ix_(columns, rows)] = np.transpose(spread)

        order = [name for name in (*self.columns, INTERCEPT) if name not in levels]
        at = [starts[name] for name in order]
        put(at, at, *product_matrix(groups, HALF, released, order))
        values[-1, -1], variances[-1, -1] = released.n, 0.0
        for name, length in levels.items():
            rows = np.arange(starts[name], starts[name] + length)
            counts, spread = released.entries(TableBlock((name,), (length,)))
            put(rows, rows, np.diag(counts), np.diag(np.full(length, spread)))
            put(rows, [size - 1], counts[:, None], spread)
            for members in classes:
                sums, spread = released.entries(LevelBlock(name, length, members, HALF))
                at = [starts[member] for member in members]
                put(rows, at, sums.reshape(length, len(members)), spread)
        for one, two in itertools.combinations(levels, 2):
            shape = (levels[one], levels[two])
            counts, spread = released.entries(TableBlock((one, two), shape))
            rows, columns = (np.arange(starts[n], starts[n] + levels[n]) for n in (one, two))
            put(rows, columns, counts.reshape(shape), spread)
        return values, variances, names

    def layout(self, schema: Schema) -> tuple[dict[str, int], tuple[str, ...]]:
        """First coordinate of every column, and the names of all coordinates."""
        known = domain(schema)
        starts: dict[str, int] = {}
        names: list[str] = []
        for name in self.columns:
            starts[name] = len(names)
            column = known[name]
            if isinstance(column, Categorical):
                names.extend(f"{name}={level}" for level in column.names)
            else:
                names.append(name)
        starts[INTERCEPT] = len(names)
        return starts, (*names, INTERCEPT)
