"""Distances from noisy tables: the two releases, and what follows from them (THEORY T10).

Only :func:`private_tables` touches records' counts. Everything after it is post-processing, so a
verifier recomputes the distances from the ledger's noisy tables with :func:`private_distances`.

*What is proved.* d̂ of a kind is its upper limit, raised to the floor and rounded up to the public
grid of m values. A run that always used the grid's value g and (ε/g, δ/m) for that kind would be
(ε/g, δ/m); summed over the m values, the run that uses d̂ is (ε/d̂, δ) for it, whatever the true
distance is. `Distance.grid_size` holds m. Separately, d̂ ≥ d for all kinds at once except with
probability γ over records and noise.
"""

from __future__ import annotations

import bisect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from corrdp.distance import noisy
from corrdp.distance.counting import contingency_table
from corrdp.distance.grid import TableSpec, axis_codes, level_names
from corrdp.distance.noisy import NoisyTable
from corrdp.distance.noisy_split import split_limit
from corrdp.distance.plan import EstimatePlan, PlannedTable, plan_estimate
from corrdp.distance.result import Distance, Distances
from corrdp.distance.settings import EstimateSettings
from corrdp.distance.wording import assumptions
from corrdp.errors import ConfigurationError, DataError, UtilityWarning
from corrdp.records import Records
from corrdp.schema import Schema

__all__ = [
    "PrivateDistances",
    "count_tables",
    "estimate_private",
    "one_row_per_person",
    "private_distances",
    "private_tables",
]


class IntegerNoise(Protocol):
    """The part of `corrdp.noise.NoiseSource` that is needed."""

    def child(self, name: str, *indices: int) -> IntegerNoise:
        """An independent stream."""

    def gaussian(self, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Integers round(N(0, scale²))."""


@dataclass(frozen=True, eq=False)
class PrivateDistances:
    """A private estimate: what was planned, what was released, what follows.

    Attributes
    ----------
    plan : EstimatePlan
        ``plan.mu_squared(kind)`` is what the estimate cost each neighbour kind; subtract it from
        the kind's budget before training (full batch).
    tables : mapping of str to NoisyTable
        The releases, by neighbour kind.
    distances : Distances
        Values on the public grid; `Distance.high` and `low` are the limits before rounding.
    """

    plan: EstimatePlan
    tables: Mapping[str, NoisyTable]
    distances: Distances

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", MappingProxyType(dict(self.tables)))

    def to_dict(self) -> dict[str, Any]:
        """Content of a ledger entry: plan parameters, cost per kind, noisy tables."""
        kinds = ("<sensitive>", *self.tables, "<insensitive>", "<record>")
        return {
            "records": self.plan.records,
            "mu": self.plan.mu,
            "settings": self.plan.settings.to_dict(),
            "mu_squared": {kind: self.plan.mu_squared(kind) for kind in kinds},
            "tables": {name: table.to_dict() for name, table in self.tables.items()},
        }

    @classmethod
    def from_dict(cls, schema: Schema, plain: Mapping[str, Any]) -> PrivateDistances:
        """Recompute plan and distances from a ledger entry.

        Raises
        ------
        ConfigurationError
            The entry is damaged, or its tables or noise are not those of the plan.
        """
        try:
            settings = EstimateSettings.from_dict(plain["settings"])
            plan = plan_estimate(schema, plain["records"], plain["mu"], settings)
            tables = {n: NoisyTable.from_dict(table) for n, table in plain["tables"].items()}
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(f"the estimate's entry is damaged: {error}") from None
        return cls(plan, tables, private_distances(plan, tables))


def estimate_private(
    plan: EstimatePlan, records: Records, label: NDArray[Any], noise: IntegerNoise
) -> PrivateDistances:
    """Count, release and derive the distances of a schema's insensitive kinds.

    Parameters
    ----------
    plan : EstimatePlan
        Made before the data is looked at, for this number of records.
    records, label
        Checked columns (`corrdp.records.read_records`, `read_label`), one row per person where
        people own several (:func:`one_row_per_person`).
    noise : NoiseSource
        Streams ``distance-totals`` and ``distance-cells`` below it are used.

    Raises
    ------
    ConfigurationError
        The plan was made for another number of records.

    Guarantee: `EstimatePlan.mu_squared` per neighbour kind (THEORY T4, T10), up to the sampler's
    slack for ``plan.draws`` draws (THEORY T14).
    """
    if records.size != plan.records:
        raise ConfigurationError(
            f"the estimate was planned for {plan.records} records, got {records.size}; plan again"
        )
    message = plan.advice()
    if message is not None:
        warnings.warn(message, UtilityWarning, stacklevel=2)
    specs = [table.spec for table in plan.tables]
    tables = private_tables(count_tables(specs, plan.schema, records, label), plan, noise)
    return PrivateDistances(plan, tables, private_distances(plan, tables))


def count_tables(
    specs: Sequence[TableSpec], schema: Schema, records: Records, label: NDArray[Any]
) -> dict[str, NDArray[np.int64]]:
    """Exact counts of every table, shape (strata, levels, cells); not for release."""
    counts: dict[str, NDArray[np.int64]] = {}
    if not specs:
        return counts
    sensitive = axis_codes(specs[0].cells, schema, records, label)
    for spec in specs:
        strata, levels, cells = spec.shape
        rows = spec.rows(schema, records, label)
        table = contingency_table(rows, sensitive, (strata * levels, cells))
        counts[spec.name] = table.reshape(strata, levels, cells)
    return counts


def private_tables(
    counts: Mapping[str, NDArray[np.int64]], plan: EstimatePlan, noise: IntegerNoise
) -> dict[str, NoisyTable]:
    """The two releases: totals and cells of every planned table plus whole-number noise.

    Integer counts plus rounded Gaussian noise is post-processing of the Gaussian mechanism
    (THEORY T14). Raises ConfigurationError, before anything is drawn, if a table is missing or
    has another shape than planned.
    """
    for table in plan.tables:
        found = counts.get(table.spec.name)
        if found is None or found.shape != table.spec.shape or found.dtype.kind != "i":
            raise ConfigurationError(
                f"table {table.spec.name!r}: needs integer counts of shape {table.spec.shape}"
            )
    released = {}
    for position, table in enumerate(plan.tables):
        exact = counts[table.spec.name]
        totals = exact.sum(axis=2)
        released[table.spec.name] = NoisyTable(
            totals + _drawn(noise, "distance-totals", position, totals.shape, table.total_sigma),
            exact + _drawn(noise, "distance-cells", position, exact.shape, table.cell_sigma),
            table.total_sigma,
            table.cell_sigma,
        )
    return released


def private_distances(plan: EstimatePlan, tables: Mapping[str, NoisyTable]) -> Distances:
    """Distances that follow from released tables; no record is looked at.

    Raises
    ------
    ConfigurationError
        The tables are not those of the plan, or their noise is another.
    """
    if list(tables) != [table.spec.name for table in plan.tables]:
        raise ConfigurationError(f"tables {list(tables)} are not those of the estimate's plan")
    columns = {t.spec.name: _distance(plan, t, tables[t.spec.name]) for t in plan.tables}
    for grown in plan.skipped:
        columns[grown.spec.name] = Distance(1.0, "private", method="not released")
    specs = [table.spec for table in plan.tables]
    gamma = plan.settings.gamma if specs else None
    return Distances(columns, gamma=gamma, assumptions=assumptions(plan.schema, specs))


def one_row_per_person(persons: NDArray[Any]) -> NDArray[np.int64]:
    """Position of every person's first row, a rule that looks at no value (THEORY T3, T10).

    With one row per person, counts and confidence limits treat people as independent, and a
    person moves one count whatever number of rows they own.
    """
    owner = np.asarray(persons)
    if owner.ndim != 1 or owner.size == 0:
        raise DataError("persons: give one identifier per row")
    if owner.dtype.kind == "f" and np.isnan(owner).any():
        raise DataError("persons: an identifier is missing; every row needs one")
    return np.sort(np.unique(owner, return_index=True)[1]).astype(np.int64)


def _drawn(
    noise: IntegerNoise, name: str, position: int, shape: tuple[int, ...], sigma: float
) -> NDArray[np.int64]:
    return noise.child(name, position).gaussian(np.full(shape, sigma)).astype(np.int64)


def _distance(plan: EstimatePlan, planned: PlannedTable, table: NoisyTable) -> Distance:
    spec = planned.spec
    same_noise = (table.total_sigma, table.cell_sigma) == (planned.total_sigma, planned.cell_sigma)
    if table.cells.shape != spec.shape or not same_noise:
        raise ConfigurationError(f"table {spec.name!r} is not the one that was planned")
    limit = split_limit if plan.settings.form == "split" else noisy.upper_limit
    high, rows = limit(table, planned.gamma, plan.records)
    names = level_names(spec.levels, plan.schema)
    grid = planned.grid
    return Distance(
        value=grid[bisect.bisect_left(grid, high)],
        source="private",
        method=plan.settings.form,
        low=min(high, noisy.lower_limit(table, planned.gamma, plan.records)),
        high=high,
        pair=(names[rows[0]], names[rows[1]]),
        rarest_count=int(table.totals.min()),
        background=spec.strata.columns,
        resolution=spec.resolution,
        grid_size=len(grid),
    )
