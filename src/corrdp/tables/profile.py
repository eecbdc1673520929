"""What the columns of a file look like, in one pass and little memory.

A profile is read from private records: it serves a person who drafts a plan, and nothing of it
is private. Text cells only, as :func:`corrdp.tables.column_chunks` gives them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from corrdp.tables.csv_file import Chunk

__all__ = ["MARKS", "ColumnProfile", "Shape", "profile_columns"]

Shape: TypeAlias = Literal["number", "levels", "text", "date", "id", "constant", "empty"]

MOST_LEVELS = 50
KEPT_LEVELS = 1000
# written for a missing number by common programs
MARKS = frozenset({"NA", "N/A", "n/a", "nan", "NaN", "NULL", "null", "None", "?", "-", "."})
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})([T ].*)?")
_CODE = re.compile(r"[+-]?0\d+")  # 0123 is a code, not a number


@dataclass
class ColumnProfile:
    """One column's summary, updated chunk by chunk.

    Attributes
    ----------
    name : str
    decimal : str
        Decimal sign of the file.
    size, missing : int
        Cells, and empty ones among them.
    levels : set of str
        Different cells, kept up to a limit.
    marks : Counter
        Cells that look like a mark for a missing number.
    low, high : float
        Range of the numbers.
    numeric, whole, unique, overflown, mixed : bool
        Only numbers; only whole ones; no cell twice; more levels than are kept; numbers and texts.
    oddity : str
        A cell that is not a number.
    """

    name: str
    decimal: str = "."
    size: int = 0
    missing: int = 0
    levels: set[str] = field(default_factory=set)
    marks: Counter[str] = field(default_factory=Counter)
    low: float = float("inf")
    high: float = float("-inf")
    numeric: bool = True
    whole: bool = True
    unique: bool = True
    overflown: bool = False
    oddity: str = ""
    mixed: bool = False
    _seen: set[str] = field(default_factory=set)

    def update(self, cells: list[str]) -> None:
        """Take in the next cells."""
        self.size += len(cells)
        counts = Counter(cells)
        self.missing += counts.pop("", 0)
        for mark in MARKS.intersection(counts):
            self.marks[mark] += counts[mark]
        different = set(counts)
        if self.unique:
            self._check_unique(different, sum(counts.values()))
        if len(self.levels) <= KEPT_LEVELS:
            self.levels |= different
            self.overflown = len(self.levels) > KEPT_LEVELS
        if self.numeric:
            self._take_numbers(different - MARKS)

    def _check_unique(self, different: set[str], present: int) -> None:
        if len(different) < present or not self._seen.isdisjoint(different):
            self.unique = False
            self._seen = set()
        else:
            self._seen |= different

    def _take_numbers(self, cells: set[str]) -> None:
        """Range of the numbers; the first other text ends the search."""
        if not cells:
            return
        try:
            values = np.array(list(map(self._value, cells)))
        except ValueError:
            values = np.array([np.nan])
        if not np.isfinite(values).all() or any(map(_CODE.fullmatch, cells)):
            self.numeric = False
            self.oddity = min(cell for cell in cells if not self._is_number(cell))
            self.mixed = self.low <= self.high or any(map(self._is_number, cells))
            return
        self.low, self.high = (
            min(self.low, float(values.min())),
            max(self.high, float(values.max())),
        )
        if self.whole and not (values == np.floor(values)).all():
            self.whole, self.unique, self._seen = False, False, set()

    def _value(self, cell: str) -> float:
        return float(cell.replace(",", ".") if self.decimal == "," else cell)

    def _is_number(self, cell: str) -> bool:
        try:
            return math.isfinite(self._value(cell)) and not _CODE.fullmatch(cell)
        except ValueError:
            return False

    @property
    def shape(self) -> Shape:
        """What the column is, by the plain rules of the draft."""
        numbers = self.numeric and self.high >= self.low
        present = self.levels - set(self.marks) if numbers else self.levels
        if not self.levels or (not present and not numbers):
            return "empty"
        if len(present) == 1:
            return "constant"
        if self.unique and self.size - self.missing > MOST_LEVELS and (self.whole or not numbers):
            return "id"
        if numbers:
            return "number" if len(present) > 2 or self.overflown else "levels"
        if self._looks_like_dates():
            return "date"
        return "levels" if len(self.levels) <= MOST_LEVELS else "text"

    def _looks_like_dates(self) -> bool:
        cells = self.levels - MARKS
        return bool(cells) and all(_DATE.fullmatch(cell) for cell in cells)

    def cells_missing(self, marks: Iterable[str]) -> int:
        """Empty cells and those that hold one of the marks."""
        return self.missing + sum(self.marks[mark] for mark in marks)

    def level_list(self, marks: Iterable[str]) -> list[str]:
        """Different cells in a readable order, marks left out."""
        cells = self.levels - set(marks)
        if self.numeric:
            return sorted(cells - set(self.marks), key=lambda cell: float(cell.replace(",", ".")))
        return sorted(cells)


def profile_columns(chunks: Iterable[Chunk], decimal: str = ".") -> list[ColumnProfile]:
    """Profiles of all columns, in the order of the file."""
    profiles: dict[str, ColumnProfile] = {}
    for chunk in chunks:
        for name, cells in chunk.columns.items():
            if name not in profiles:
                profiles[name] = ColumnProfile(name, decimal)
            profiles[name].update(cells)
    return list(profiles.values())
