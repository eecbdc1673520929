"""What a private estimate of the distances will release and cost, fixed before it (THEORY T10).

Two releases over the tables i = 1 … t (insensitive columns, groups, an insensitive label), each
table level × sensitive cell:

* *row totals* with noise N(0, τ_i²) on every total;
* *cells* with noise N(0, σ_i²) on every count.

Replacing a value of one record moves it from one row or cell of a table to another: two counts
change by one, an L2 change of √2 for that table. So, in squared μ (THEORY T4),

    kind                 totals            cells             together
    S                    0                 Σ_i 2/σ_i²        μ²
    U_i (or the label)   2/τ_i²            2/σ_i²            (1 + w_i)·μ²
    U, R                 Σ_i 2/τ_i²        Σ_i 2/σ_i²        (t + 1)·μ²

S moves every cell table at once and no total, because rows are levels of u_i and of public
columns. With public weights w_i, Σw_i = 1, and the budget μ of the estimate,

    σ_i = √(2/w_i)/μ,    τ_i = √2/μ,

which gives the last column. These numbers do not depend on the distances: U_i pays as for d = 1.
Public columns in the background never change, so they add nothing. All σ are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from corrdp.distance.advice import (
    USEFUL,
    Grown,
    coarser_grid,
    expected_excess,
    outgrown_message,
)
from corrdp.distance.grid import TableSpec, public_columns, table_specs
from corrdp.distance.result import Measured
from corrdp.distance.settings import Background, EstimateSettings
from corrdp.errors import ConfigurationError
from corrdp.neighbours import INSENSITIVE, RECORD, SENSITIVE
from corrdp.schema import Schema

__all__ = [
    "EstimatePlan",
    "PlannedTable",
    "background_pairs",
    "choose_background",
    "plan_estimate",
    "public_grid",
    "table_weights",
]

_UP = 1 + 1e-12


@dataclass(frozen=True)
class PlannedTable:
    """One table's share of the release.

    Attributes
    ----------
    spec : TableSpec
    weight : float
        w_i, its part of the cells' budget.
    total_sigma, cell_sigma : float
        τ_i and σ_i in records.
    gamma : float
        Error probability of its limit.
    grid : tuple of float
        Values its distance can take, rising from the floor to 1.
    """

    spec: TableSpec
    weight: float
    total_sigma: float
    cell_sigma: float
    gamma: float
    grid: tuple[float, ...]

    @property
    def totals_mu_squared(self) -> float:
        """2/τ², rounded up."""
        return 2.0 / self.total_sigma**2 * _UP

    @property
    def cells_mu_squared(self) -> float:
        """2/σ², rounded up."""
        return 2.0 / self.cell_sigma**2 * _UP


@dataclass(frozen=True)
class EstimatePlan:
    """Everything public about a private estimate; the cost table is in the module's docstring.

    Attributes
    ----------
    schema : Schema
    settings : EstimateSettings
    records : int
        n, the records that enter (one per person).
    mu : float
        Budget of the estimate; S is μ-GDP.
    tables : tuple of PlannedTable
        In the order of the kinds; empty where nothing can be estimated, which costs nothing.
    skipped : tuple of Grown
        Tables that are not released because their cells outgrow the data: d = 1.
    """

    schema: Schema
    settings: EstimateSettings
    records: int
    mu: float
    tables: tuple[PlannedTable, ...]
    skipped: tuple[Grown, ...] = ()

    def mu_squared(self, kind: str) -> float:
        """Squared μ of both releases for a neighbour kind, rounded up; 0 if it moves nothing."""
        if kind == SENSITIVE:
            return self._sum(lambda table: table.cells_mu_squared)
        if kind in (INSENSITIVE, RECORD):
            return self._sum(lambda table: table.totals_mu_squared + table.cells_mu_squared)
        own = [table for table in self.tables if table.spec.name == kind]
        return sum(table.totals_mu_squared + table.cells_mu_squared for table in own)

    def advice(self) -> str | None:
        """One line on the tables that were left out, and the coarser grid that would do."""
        if not self.skipped:
            return None
        return outgrown_message(self.schema, self.skipped, self.records)

    def without_background(self) -> tuple[str, ...]:
        """Kinds whose table leaves public columns out of what the observer knows."""
        public = public_columns(self.schema)
        return tuple(t.spec.name for t in self.tables if public and not t.spec.strata.columns)

    @property
    def draws(self) -> int:
        """Number of noisy counts, for the sampler's slack (THEORY T14)."""
        shapes = (table.spec.shape for table in self.tables)
        return sum(strata * levels * (cells + 1) for strata, levels, cells in shapes)

    @property
    def largest_sigma(self) -> float:
        """Largest noise in lattice units (whole records); 0 without a table."""
        return max((max(t.total_sigma, t.cell_sigma) for t in self.tables), default=0.0)

    def _sum(self, part: Callable[[PlannedTable], float]) -> float:
        return math.fsum(part(table) for table in self.tables)


def plan_estimate(
    schema: Schema, records: int, mu: float, settings: EstimateSettings | None = None
) -> EstimatePlan:
    """Noise, tables and grids of a private estimate, from public numbers alone.

    Parameters
    ----------
    schema : Schema
    records : int
        n, the records that will enter.
    mu : float
        What the estimate may cost the sensitive columns, μ(share·ε, δ) by default; the other
        kinds pay what the module's docstring says.
    settings : EstimateSettings, optional

    Raises
    ------
    ConfigurationError
        `mu` or `records` is not positive, a name in ``settings.columns`` is unknown, or
        `corrdp.distance.grid.table_specs` refuses.
    """
    settings = EstimateSettings() if settings is None else settings
    if not 0 < mu < math.inf:
        raise ConfigurationError(f"mu={mu!r} of the estimate must be positive and finite")
    if isinstance(records, bool) or not isinstance(records, int) or records < 1:
        raise ConfigurationError(f"records={records!r} must be a whole number >= 1")
    pairs = _candidates(schema, settings)
    skipped: list[Grown] = []
    while True:
        tables = _planned(pairs, schema, settings, records, mu)
        grown = [
            coarser_grid(t.spec, records, t.gamma, t.cell_sigma)
            if settings.columns is None
            else None
            for t in tables
        ]
        worst = max(range(len(tables)), key=lambda i: _excess(grown[i]), default=None)
        found = None if worst is None else grown[worst]
        if worst is None or found is None:
            return EstimatePlan(schema, settings, records, float(mu), tuple(tables), tuple(skipped))
        skipped.append(found)
        del pairs[worst]


def table_weights(names: Sequence[str], label: str, label_weight: float) -> list[float]:
    """Public weights w_i: `label_weight` for the label's table, the rest in equal parts."""
    if label not in names or len(names) <= 1:
        return [1.0 / len(names) for _ in names]
    rest = (1.0 - label_weight) / (len(names) - 1)
    return [label_weight if name == label else rest for name in names]


def public_grid(floor: float, size: int) -> tuple[float, ...]:
    """Values in equal ratios from the floor to 1, rounded to four digits."""
    if floor == 1:
        return (1.0,)
    values = {round(float(v), 4) for v in np.geomspace(floor, 1.0, size)[1:-1]}
    return (float(floor), *sorted(v for v in values if floor < v < 1), 1.0)


def background_pairs(
    schema: Schema, resolution: Measured, background: Background
) -> list[tuple[TableSpec, TableSpec | None]]:
    """Every table without and, if wanted and possible, with public columns as background."""
    plain = table_specs(schema, resolution)
    public = public_columns(schema)
    wide: Sequence[TableSpec | None] = [None] * len(plain)
    if public and background == "public":
        wide = table_specs(schema, resolution, public)
    elif public and background == "auto":
        with suppress(ConfigurationError):  # too large: then its cells do not allow it either
            wide = table_specs(schema, resolution, public)
    return list(zip(plain, wide, strict=True))


def _candidates(
    schema: Schema, settings: EstimateSettings
) -> list[tuple[TableSpec, TableSpec | None]]:
    """The tables that the settings ask for."""
    pairs = background_pairs(schema, settings.resolution, settings.background)
    if settings.columns is None:
        return pairs
    kinds = [plain.name for plain, _ in pairs]
    unknown = sorted(set(settings.columns) - set(kinds))
    if unknown:
        raise ConfigurationError(f"columns={unknown} cannot be estimated; the kinds are {kinds}")
    return [pair for pair in pairs if pair[0].name in settings.columns]


def _planned(
    pairs: Sequence[tuple[TableSpec, TableSpec | None]],
    schema: Schema,
    settings: EstimateSettings,
    records: int,
    mu: float,
) -> list[PlannedTable]:
    names = [plain.name for plain, _ in pairs]
    label = schema.label.name
    weights = table_weights(names, label, settings.label_weight)
    gamma = settings.gamma / max(1, len(pairs))
    total_sigma = math.sqrt(2.0) / mu * _UP * _UP
    tables = []
    for (plain, wide), weight in zip(pairs, weights):
        cell_sigma = math.sqrt(2.0 / weight) / mu * _UP * _UP
        floor = settings.label_floor if plain.name == label else settings.column_floor
        spec = choose_background(plain, wide, settings.background, records, gamma, cell_sigma)
        grid = public_grid(floor, settings.grid_size)
        tables.append(PlannedTable(spec, weight, total_sigma, cell_sigma, gamma, grid))
    return tables


def choose_background(
    plain: TableSpec,
    wide: TableSpec | None,
    background: Background,
    records: int,
    gamma: float,
    cell_sigma: float = 0.0,
) -> TableSpec:
    """The table with public columns as background, unless its cells would not allow it."""
    if wide is None or background == "none":
        return plain
    strata, levels, cells = wide.shape
    excess = expected_excess(records, strata * levels, cells, gamma, cell_sigma)
    return wide if background == "public" or excess <= USEFUL else plain


def _excess(grown: Grown | None) -> float:
    return -1.0 if grown is None else grown.excess
