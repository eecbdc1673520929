"""What an experiment leaves: tidy rows, and the means, intervals and differences made of them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy.stats import t as student

from corrdp.errors import DataError
from corrdp.files import write_text

__all__ = ["FIELDS", "Estimate", "Results", "Row", "estimate", "read_rows", "write_rows"]

FIELDS = (
    "dataset",
    "label_role",
    "method",
    "epsilon",
    "delta",
    "seed",
    "metric",
    "value",
    "certificate",
)
CONFIDENCE = 0.95
Key: TypeAlias = tuple[str, str, str, float, str]


@dataclass(frozen=True)
class Row:
    """One number of one run.

    Attributes
    ----------
    dataset, label_role, method : str
    epsilon, delta : float
        Target; ``epsilon`` is ``inf`` for training without privacy.
    seed : int
    metric : str
    value : float
        May be infinite, or NaN where there is nothing to state.
    certificate : str
        File below the experiment's folder; empty for training without privacy.
    """

    dataset: str
    label_role: str
    method: str
    epsilon: float
    delta: float
    seed: int
    metric: str
    value: float
    certificate: str = ""

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise DataError(f"epsilon={self.epsilon!r} of a result must be positive")

    def cells(self) -> tuple[str, ...]:
        """The row as text, in the order of ``FIELDS``."""
        return tuple(
            repr(value) if isinstance(value, float) else str(value)
            for value in (getattr(self, name) for name in FIELDS)
        )


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Write a CSV file atomically."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FIELDS)
    writer.writerows(row.cells() for row in rows)
    write_text(path, text.getvalue())


def read_rows(path: Path) -> tuple[Row, ...]:
    """The rows of a CSV file; none where there is no file.

    Raises
    ------
    DataError
        If it is not a file of results.
    """
    if not path.is_file():
        return ()
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = [line for line in csv.reader(file) if line] or [[]]
    try:
        if tuple(header) != FIELDS:
            raise ValueError(f"columns {header}")
        return tuple(
            Row(
                dataset, role, method, float(epsilon), float(delta), int(seed), metric,
                float(value), certificate,
            )
            for dataset, role, method, epsilon, delta, seed, metric, value, certificate in lines
        )  # fmt: skip
    except ValueError as error:
        raise DataError(f"{path}: not results of an experiment ({error}); remove it") from None


@dataclass(frozen=True)
class Estimate:
    """A mean over runs with the half-width of its 95 % interval (Student's t).

    Attributes
    ----------
    mean, half : float
        ``half`` is NaN for a single run.
    runs : int
    """

    mean: float
    half: float
    runs: int

    @property
    def low(self) -> float:
        """Lower end; the mean itself for a single run."""
        return self.mean if math.isnan(self.half) else self.mean - self.half

    @property
    def high(self) -> float:
        """Upper end; the mean itself for a single run."""
        return self.mean if math.isnan(self.half) else self.mean + self.half

    def text(self, digits: int = 4) -> str:
        """``mean ± half`` with so many digits after the point, fewer for large numbers."""
        if math.isnan(self.mean):
            return "–"
        if math.isinf(self.mean):
            return "∞"
        size = abs(self.mean)
        if 0 < size < 0.01:
            return f"{self.mean:.2e}" + ("" if math.isnan(self.half) else f" ±{self.half:.0e}")
        shown = digits if size < 100 else 0
        mean = f"{self.mean:.{shown}f}"
        return mean if math.isnan(self.half) else f"{mean} ±{self.half:.{shown}f}"


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and 95 % interval; values that are all alike have an interval of width 0."""
    numbers = np.asarray(values, dtype=np.float64)
    if not len(numbers):
        return Estimate(math.nan, math.nan, 0)
    mean = float(numbers.mean())
    if len(numbers) < 2:
        return Estimate(mean, math.nan, 1)
    if not np.isfinite(numbers).all():
        return Estimate(mean, math.nan, len(numbers))
    quantile = float(student.ppf(0.5 + CONFIDENCE / 2.0, len(numbers) - 1))
    half = quantile * float(numbers.std(ddof=1)) / math.sqrt(len(numbers))
    return Estimate(mean, half, len(numbers))


@dataclass(frozen=True)
class Results:
    """All rows of an experiment, and questions to them.

    Attributes
    ----------
    rows : tuple of Row
    """

    rows: tuple[Row, ...]

    @cached_property
    def _values(self) -> dict[Key, dict[int, float]]:
        found: dict[Key, dict[int, float]] = {}
        for row in self.rows:
            key = (row.dataset, row.label_role, row.method, row.epsilon, row.metric)
            found.setdefault(key, {})[row.seed] = row.value
        return found

    @property
    def tables(self) -> tuple[tuple[str, str], ...]:
        """(data set, label role), in the order of the rows."""
        return tuple(dict.fromkeys((row.dataset, row.label_role) for row in self.rows))

    @property
    def delta(self) -> float:
        """δ of the runs, which is one for a folder; NaN where nothing was run."""
        return self.rows[0].delta if self.rows else math.nan

    def methods(self, table: tuple[str, str]) -> tuple[str, ...]:
        """Methods of a table, in the order of the rows."""
        return tuple(
            dict.fromkeys(r.method for r in self.rows if (r.dataset, r.label_role) == table)
        )

    def epsilons(self, table: tuple[str, str]) -> tuple[float, ...]:
        """Finite ε of a table, ascending."""
        return tuple(
            sorted(
                {
                    row.epsilon
                    for row in self.rows
                    if (row.dataset, row.label_role) == table and math.isfinite(row.epsilon)
                }
            )
        )

    def seeds(self, table: tuple[str, str], method: str, epsilon: float, metric: str) -> int:
        """Number of runs behind a cell."""
        return len(self.values(table, method, epsilon, metric))

    def values(
        self, table: tuple[str, str], method: str, epsilon: float, metric: str
    ) -> dict[int, float]:
        """Values by seed; a method without privacy answers for every ε."""
        own = self._values.get((*table, method, epsilon, metric))
        return self._values.get((*table, method, math.inf, metric), {}) if own is None else own

    def estimate(
        self, table: tuple[str, str], method: str, epsilon: float, metric: str
    ) -> Estimate:
        """Mean and interval of a cell."""
        return estimate(list(self.values(table, method, epsilon, metric).values()))

    def difference(
        self, table: tuple[str, str], methods: tuple[str, str], epsilon: float, metric: str
    ) -> Estimate:
        """First minus second method, paired by seed; one run without privacy pairs with all."""
        first, second = (self.values(table, method, epsilon, metric) for method in methods)
        if len(second) == 1 and len(first) > 1:
            second = dict.fromkeys(first, next(iter(second.values())))
        if len(first) == 1 and len(second) > 1:
            first = dict.fromkeys(second, next(iter(first.values())))
        return estimate([first[seed] - second[seed] for seed in first if seed in second])
