"""Distances of a schema's columns from a table that is not protected (THEORY T2, T10).

For a public reference table, or for looking at the private data itself without accounting. The
private way is `corrdp.distance.private`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corrdp.distance import bounds
from corrdp.distance.advice import coarser_grid, outgrown_message
from corrdp.distance.bounds import Method, checked_gamma
from corrdp.distance.exact import dobrushin_pair
from corrdp.distance.grid import TableSpec, level_names
from corrdp.distance.plan import background_pairs, choose_background
from corrdp.distance.private import count_tables
from corrdp.distance.result import Distance, Distances, Resolution
from corrdp.distance.settings import Background
from corrdp.distance.wording import assumptions
from corrdp.errors import ConfigurationError, DataError, UtilityWarning
from corrdp.records import read_label, read_records
from corrdp.schema import Schema

__all__ = ["estimate_distances", "exact_distances", "table_distance"]

Origin: TypeAlias = Literal["public", "published"]


def exact_distances(conditionals: Mapping[str, ArrayLike]) -> Distances:
    """Distances of known conditional tables P(s | u = a), by column (source ``exact``).

    Each table has shape (levels, cells); see `corrdp.distance.exact.dobrushin`.
    """
    columns = {}
    for name, table in conditionals.items():
        value, rows = dobrushin_pair(table)
        pair = (str(rows[0]), str(rows[1]))
        columns[name] = Distance(value, "exact", "exact", low=value, high=value, pair=pair)
    return Distances(columns)


def estimate_distances(
    schema: Schema,
    X: Any,
    y: Any,
    *,
    source: Origin,
    method: Method = "auto",
    gamma: float = 0.05,
    resolution: Resolution = "binned",
    background: Background = "auto",
) -> Distances:
    """Distance of every insensitive column, group and label from unprotected records.

    Parameters
    ----------
    schema : Schema
    X, y
        Table and label as for `fit`; missing values and unlisted levels by the schema's rules.
    source : {"public", "published"}
        A public reference table, or the private data itself: then the result is a release that
        no (ε, δ) accounts for, and says so.
    method : {"auto", "CP", "H", "published", "plug-in"}
        Upper confidence limit (default) or estimate, as in `corrdp.distance.bounds`.
    gamma : float
        Probability that any limit is below the true distance, shared equally by the tables.
    resolution, background
        As in `corrdp.distance.settings.EstimateSettings`.

    Raises
    ------
    DataError
        The table does not fit the schema; or, for ``plug-in``, all records agree in the sensitive
        columns, which would look like distance 0.
    ConfigurationError
        As in `corrdp.distance.grid.table_specs`.
    """
    if source not in ("public", "published"):
        raise ConfigurationError(f"source={source!r} is unknown; use 'public' or 'published'")
    checked_gamma(gamma)
    records = read_records(X, schema)
    label = read_label(y, schema.label, records.size)
    specs = _specs(schema, records.size, gamma, resolution, background)
    counts = count_tables(specs, schema, records, label)
    if method == "plug-in":
        _check_sensitive(counts, specs)
    shares = _shares(specs, method)
    columns = {
        spec.name: table_distance(
            counts[spec.name], spec, level_names(spec.levels, schema), source, method, gamma * share
        )
        for spec, share in zip(specs, shares)
    }
    sentences = assumptions(schema, specs)
    if source == "published" and specs:
        sentences += (
            "The distances were computed from the private records themselves; that release is not "
            "covered by the stated loss.",
        )
    return Distances(columns, gamma=None if method == "plug-in" else gamma, assumptions=sentences)


def table_distance(
    counts: NDArray[np.int64],
    spec: TableSpec,
    names: Sequence[str],
    source: Origin,
    method: Method,
    gamma: float,
) -> Distance:
    """The distance of one table of counts, shape ``spec.shape``, with its confidence limits."""
    used = bounds.choose(counts) if method == "auto" else method
    value, rows = bounds.upper_limit(counts, gamma, used)
    high = bounds.upper_limit(counts, gamma, "auto").value if used == "plug-in" else value
    return Distance(
        value=value,
        source=source,
        method=used,
        low=min(high, bounds.lower_limit(counts, gamma)),
        high=high,
        pair=(names[rows[0]], names[rows[1]]),
        rarest_count=int(counts.sum(axis=2).min()),
        background=spec.strata.columns,
        resolution=spec.resolution,
    )


def _specs(
    schema: Schema, records: int, gamma: float, resolution: Resolution, background: Background
) -> list[TableSpec]:
    """Tables with the background their cells allow; says so where cells outgrow the data."""
    pairs = background_pairs(schema, resolution, background)
    share = gamma / max(1, len(pairs))
    specs = [choose_background(*pair, background, records, share) for pair in pairs]
    found = (coarser_grid(spec, records, share) for spec in specs)
    grown = [table for table in found if table is not None]
    if grown:
        warnings.warn(outgrown_message(schema, grown, records), UtilityWarning, stacklevel=3)
    return specs


def _shares(specs: Sequence[TableSpec], method: Method) -> list[float]:
    """Part of γ per table; the published form spends it in equal parts over all rows."""
    if method != "published":
        return [1.0 / len(specs)] * len(specs)
    rows = [spec.shape[0] * spec.shape[1] for spec in specs]
    return [count / sum(rows) for count in rows]


def _check_sensitive(counts: Mapping[str, NDArray[np.int64]], specs: Sequence[TableSpec]) -> None:
    if specs and np.count_nonzero(counts[specs[0].name].sum(axis=(0, 1))) < 2:
        raise DataError(
            f"sensitive columns {list(specs[0].cells.columns)} have one value in every record: a "
            "plug-in distance would be 0 and protect nothing; use method='auto' or other records"
        )
