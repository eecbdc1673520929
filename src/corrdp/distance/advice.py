"""Whether a grid is too fine for the data, judged from public numbers alone (THEORY T10).

For two rows with somewhat less than an even share of n records, the limit lies above the distance
by about its reach plus the mean of the estimated distance of two equal rows. Very rare levels make
it worse, so where this is large, nothing can come of the table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from corrdp.distance.grid import TableSpec, numeric_column
from corrdp.schema import Schema

__all__ = ["USEFUL", "Grown", "coarser_grid", "expected_excess", "outgrown_message"]

_RARE = 1.5  # an even share of the records over the share that the two rows are given
USEFUL = 0.235  # expected excess up to which a table is worth it; picked on Adult


def expected_excess(
    records: int, rows: int, cells: int, gamma: float, cell_sigma: float = 0.0
) -> float:
    """Expected limit minus distance, capped at 1; a rule of thumb, not a guarantee.

    Parameters
    ----------
    records, rows, cells : int
        n, strata × levels, sensitive cells.
    gamma : float
        Error probability of the table.
    cell_sigma : float
        Noise on a cell in records; 0 for a table that is not released privately.
    """
    share = _RARE * rows / records
    variance = 0.5 * share + 0.5 * cells * (cell_sigma * share) ** 2
    reach = math.sqrt(2 * math.log(1 / gamma) * variance)
    sampling = math.sqrt(0.5 * (cells - 1) * share)
    noise = cells * cell_sigma * share / math.sqrt(math.pi)
    return min(1.0, reach + math.hypot(sampling, noise))


class Grown(NamedTuple):
    """A table whose cells outgrow the data."""

    spec: TableSpec
    excess: float
    most_cells: int


def coarser_grid(
    spec: TableSpec, records: int, gamma: float, cell_sigma: float = 0.0
) -> Grown | None:
    """None where the table is useful, else the largest number of cells that would be (0: none)."""
    strata, levels, cells = spec.shape
    excess = expected_excess(records, strata * levels, cells, gamma, cell_sigma)
    if excess <= USEFUL:
        return None
    smaller = range(cells - 1, 1, -1)
    fits = (
        k
        for k in smaller
        if expected_excess(records, strata * levels, k, gamma, cell_sigma) <= USEFUL
    )
    return Grown(spec, excess, next(fits, 0))


def outgrown_message(schema: Schema, grown: Sequence[Grown], records: int) -> str:
    """One line: which columns, and which coarser grid of the sensitive columns would do."""
    cells = grown[0].spec.cells
    names = ", ".join(repr(table.spec.name) for table in grown)
    start = (
        f"{cells.size} sensitive cells outgrow {records} records for {names}: expect distances near"
        " 1 there; "
    )
    possible = [table.most_cells for table in grown if table.most_cells]
    if not possible:
        return start + "only fewer levels of these columns or more records would do"
    most = min(possible)
    bins = _bins_that_fit(schema, cells.columns, cells.sizes, most)
    if bins:
        listed = ", ".join(f"{count} bins for {name!r}" for name, count in bins.items())
        return start + f"at most {most} cells would do, for example {listed}"
    return start + f"at most {most} cells would do: merge sensitive levels, or mark fewer columns"


def _bins_that_fit(
    schema: Schema, columns: Sequence[str], sizes: Sequence[int], most: int
) -> dict[str, int]:
    """The finest equal coarsening of numeric sensitive columns to at most `most` cells."""
    if len(columns) != len(sizes):  # a group with listed values: nothing to coarsen by bins
        return {}
    numeric = [name for name in columns if numeric_column(schema, name) is not None]
    for bins in range(max(sizes), 1, -1):
        fitted = [min(s, bins) if c in numeric else s for c, s in zip(columns, sizes)]
        if numeric and math.prod(fitted) <= most:
            return {c: f for c, f in zip(columns, fitted) if c in numeric}
    return {}
