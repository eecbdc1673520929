"""Sums over records in blocks, and how far a change of one record moves each (THEORY T5, T11).

A block is the unit of noise: all its coordinates get the same. Numbers are written c = half·z with
z ∈ [−1, 1] on a lattice, so they never leave [−half, half] and no bound needs widening.

Products of numbers. Σ z_i·z_j over pairs of columns is affine in every single z_i, so the norm of
its change is largest where all z are ±1. There an entry either stays or changes sign, which moves
it by 2; with f of the coordinates flipped exactly the pairs with one flipped member change. The
largest number of such pairs F gives 2F·half² in L1 and 2√F·half² in L2, for all entries together.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.neighbours import NeighbourKind
from corrdp.queries.coding import Coded
from corrdp.schema import Categorical, Level, Numeric, Schema, canonical_level

__all__ = [
    "Block",
    "CountBlock",
    "LevelBlock",
    "RectangleBlock",
    "SquareBlock",
    "SumBlock",
    "TableBlock",
    "TriangleBlock",
    "changed_names",
    "sensitivity_rows",
]

FloatArray: TypeAlias = NDArray[np.float64]
# Outweighs the rounding of a square root.
_UP = 1.0 + 2.0**-52


class Block(Protocol):
    """A sum over records of bounded vectors."""

    @property
    def name(self) -> str:
        """Identity: blocks with one name hold the same sum and are released once."""

    @property
    def size(self) -> int:
        """Number of coordinates."""

    @property
    def largest(self) -> float:
        """Bound of one record's contribution to one coordinate."""

    def spacing(self, bits: int) -> float:
        """Lattice that contributions lie on when z are multiples of 2^-bits."""

    def movement(self, changed: Collection[str]) -> tuple[float, float]:
        """(L1, L2) bounds when one record changes in these columns at once."""

    def total(self, data: Coded) -> FloatArray:
        """The exact sum, shape (size,)."""


def _touches(columns: Sequence[str], changed: Collection[str]) -> int:
    return sum(name in changed for name in columns)


def _flipped(entries: float, half: float) -> tuple[float, float]:
    """(L1, L2) when at most this many products change sign."""
    return 2.0 * entries * half**2, 2.0 * math.sqrt(entries) * half**2 * _UP


@dataclass(frozen=True)
class CountBlock:
    """Records that meet every condition: moves by 1.

    ``conditions`` hold a column and its admitted codes, or its (low, high).
    """

    conditions: tuple[tuple[str, tuple[int, ...] | tuple[float, float]], ...]
    numeric: frozenset[str]

    @classmethod
    def of(
        cls, where: dict[str, tuple[Level, ...]], known: dict[str, Numeric | Categorical]
    ) -> CountBlock:
        """Conditions on levels and intervals as codes."""
        coded: list[tuple[str, tuple[int, ...] | tuple[float, float]]] = []
        for name, values in sorted(where.items()):
            column = known[name]
            if isinstance(column, Categorical):
                codes = {column.names.index(canonical_level(value)) for value in values}
                coded.append((name, tuple(sorted(codes))))
            else:
                coded.append((name, (float(values[0]), float(values[1]))))
        numeric = frozenset(n for n in where if isinstance(known[n], Numeric))
        return cls(tuple(coded), numeric)

    name = property(lambda self: f"count {list(self.conditions)}")
    size = property(lambda self: 1)
    largest = property(lambda self: 1.0)

    def spacing(self, bits: int) -> float:
        """Whole numbers."""
        return 1.0

    def movement(self, changed: Collection[str]) -> tuple[float, float]:
        """1 if a condition may change."""
        moved = float(_touches([name for name, _ in self.conditions], changed) > 0)
        return moved, moved

    def total(self, data: Coded) -> FloatArray:
        """Number of matching records."""
        match = np.ones(data.size, dtype=bool)
        for name, admitted in self.conditions:
            if name in self.numeric:
                low, high = admitted
                match &= (data.values[name] >= low) & (data.values[name] <= high)
            else:
                match &= np.isin(data.codes[name], admitted)
        return np.array([float(match.sum())])


@dataclass(frozen=True)
class TableBlock:
    """Records per combination of levels: one record leaves a cell and enters another."""

    columns: tuple[str, ...]
    shape: tuple[int, ...]

    name = property(lambda self: f"table {list(self.columns)}")
    size = property(lambda self: math.prod(self.shape))
    largest = property(lambda self: 1.0)

    def spacing(self, bits: int) -> float:
        """Whole numbers."""
        return 1.0

    def movement(self, changed: Collection[str]) -> tuple[float, float]:
        """2 and √2 if any axis may change."""
        moved = float(_touches(self.columns, changed) > 0)
        return 2.0 * moved, math.sqrt(2.0) * moved * _UP

    def total(self, data: Coded) -> FloatArray:
        """Counts in row-major order."""
        cell = np.zeros(data.size, dtype=np.int64)
        for name, length in zip(self.columns, self.shape, strict=True):
            cell = cell * length + data.codes[name]
        return np.bincount(cell, minlength=self.size).astype(np.float64)


@dataclass(frozen=True)
class SumBlock:
    """Σ ½z of one column: one record moves it by its range, which is the unit."""

    column: str

    name = property(lambda self: f"sum {self.column!r}")
    size = property(lambda self: 1)
    largest = property(lambda self: 0.5)

    def spacing(self, bits: int) -> float:
        """Half a lattice step of z."""
        return 2.0 ** -(bits + 1)

    def movement(self, changed: Collection[str]) -> tuple[float, float]:
        """1 if the column may change."""
        moved = float(self.column in changed)
        return moved, moved

    def total(self, data: Coded) -> FloatArray:
        """The centred sum in ranges."""
        return np.array([0.5 * data.numbers[self.column].sum()])


class _Products:
    """Lattice and bound shared by blocks whose entries are products of two numbers."""

    half: float

    @property
    def largest(self) -> float:
        """half²."""
        return self.half**2

    def spacing(self, bits: int) -> float:
        """The product of two steps."""
        return (self.half * 2.0**-bits) ** 2


@dataclass(frozen=True)
class TriangleBlock(_Products):
    """Σ c_i·c_j over pairs i < j of columns."""

    columns: tuple[str, ...]
    half: float

    name = property(lambda self: f"pairs {list(self.columns)} {self.half}")
    size = property(lambda self: len(self.columns) * (len(self.columns) - 1) // 2)

    def movement(self, changed: Collection[str]) -> tuple[float, float]:
        """f(p − f) of p coordinates' pairs change sign when f do; f ≤ those that may."""
        p, c = len(self.columns), _touches(self.columns, changed)
        f = min(c, p // 2)
        return _flipped(f * (p - f), self.half)

    def total(self, data: Coded) -> FloatArray:
        """Upper triangle in row-major order."""
        z = np.column_stack([data.numbers[name] for name in self.columns])
        total: FloatArray = (z.T @ z)[np.triu_indices(len(self.columns), 1)]
        return total * self.half**2


@dataclass(frozen=True)
class RectangleBlock(_Products):
    """Σ c_i·c_j over i in one set of columns and j in another."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    half: float

    name = property(lambda self: f"products {list(self.left)} {list(self.right)} {self.half}")
    size = property(lambda self: len(self.left) * len(self.right))

    def movement(self, changed: Collection[str]) -> tuple[float, float]:
        """f of p and g of q flipped change f(q − g) + (p − f)g signs; largest at a corner."""
        p, q = len(self.left), len(self.right)
        f, g = _touches(self.left, changed), _touches(self.right, changed)
        return _flipped(max(f * q, p * g, f * (q - g) + (p - f) * g), self.half)

    def total(self, data: Coded) -> FloatArray:
        """Row-major."""
        left = np.column_stack([data.numbers[name] for name in self.left])
        right = np.column_stack([data.numbers[name] for name in self.right])
        total: FloatArray = (left.T @ right).ravel()
        return total * self.half**2


@dataclass(frozen=True)
class SquareBlock(_Products):
    """Σ c_i² of every column: a square moves by at most half²."""

    columns: tuple[str, ...]
    half: float

    name = property(lambda self: f"squares {list(self.columns)} {self.half}")
    size = property(lambda self: len(self.columns))

    def movement(self, changed: Collection[str]) -> tuple[float, float]:
        """Each changed column's square moves on its own."""
        c = _touches(self.columns, changed)
        return c * self.half**2, math.sqrt(c) * self.half**2 * _UP

    def total(self, data: Coded) -> FloatArray:
        """In the order of the columns."""
        return np.array([np.square(data.numbers[n]).sum() for n in self.columns]) * self.half**2


@dataclass(frozen=True)
class LevelBlock:
    """Σ c_j over the records of every level of a categorical column, for some numbers j."""

    category: str
    levels: int
    columns: tuple[str, ...]
    half: float

    name = property(lambda self: f"sums of {list(self.columns)} by {self.category!r} {self.half}")
    size = property(lambda self: self.levels * len(self.columns))
    largest = property(lambda self: self.half)

    def spacing(self, bits: int) -> float:
        """A step of c."""
        return self.half * 2.0**-bits

    def movement(self, changed: Collection[str]) -> tuple[float, float]:
        """A changed level moves all p numbers away and here; a changed number moves by 2·half."""
        p, c = len(self.columns), _touches(self.columns, changed)
        if self.category in changed:
            most = max(math.sqrt(2.0 * p) * _UP, 2.0 * math.sqrt(c) * _UP)
            return 2.0 * p * self.half, most * self.half
        return 2.0 * c * self.half, 2.0 * math.sqrt(c) * self.half * _UP

    def total(self, data: Coded) -> FloatArray:
        """Shape (levels, numbers), row-major."""
        codes = data.codes[self.category]
        sums = [np.bincount(codes, data.numbers[n], self.levels) for n in self.columns]
        total: FloatArray = np.column_stack(sums).ravel().astype(np.float64)
        return total * self.half


def changed_names(kind: NeighbourKind, schema: Schema) -> frozenset[str]:
    """Columns that a kind changes, the label by its name."""
    label = (schema.label.name,) if kind.label_changes else ()
    return frozenset((*kind.columns, *label))


def sensitivity_rows(
    blocks: Sequence[Block],
    kinds: Sequence[NeighbourKind],
    schema: Schema,
    records_per_person: int,
) -> tuple[FloatArray, FloatArray]:
    """L1 and L2 bounds a_kj of shape (kinds, blocks) (THEORY T5), times the rows per person."""
    moved = np.array(
        [[block.movement(changed_names(kind, schema)) for block in blocks] for kind in kinds]
    ).reshape(len(kinds), len(blocks), 2)
    return records_per_person * moved[..., 0], records_per_person * moved[..., 1]
