"""Distances as rows for a table and as matrices for a heat map."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corrdp.distance.bounds import checked_counts
from corrdp.distance.result import Distance, Distances
from corrdp.errors import ConfigurationError
from corrdp.neighbours import INSENSITIVE, RECORD, SENSITIVE, neighbour_kinds
from corrdp.schema import Schema

__all__ = ["distance_rows", "level_distances", "reading"]

_NEAR_ONE = 0.8
_TELLS = 0.5


def distance_rows(schema: Schema, distances: Distances) -> list[dict[str, Any]]:
    """One row per insensitive column, group and label: what `corrdp distances` shows.

    Keys: ``name``, ``distance``, ``low``, ``high``, ``source``, ``method``, ``rarest_count``,
    ``pair``, ``background``, ``resolution``, ``reading``. A kind that is not listed has d = 1.
    """
    rows = []
    for kind in neighbour_kinds(schema):
        if kind.name in (SENSITIVE, INSENSITIVE, RECORD):
            continue
        entry = distances.get(kind.name)
        found = Distance(1.0, method="none given") if entry is None else entry
        rows.append(
            {
                "name": kind.name,
                "distance": found.value,
                "low": found.low,
                "high": found.high,
                "source": found.source,
                "method": found.method,
                "rarest_count": found.rarest_count,
                "pair": None if found.pair is None else list(found.pair),
                "background": list(found.background),
                "resolution": found.resolution,
                "reading": reading(found),
            }
        )
    return rows


def reading(distance: Distance) -> str:
    """Why a distance is what it is: it tells, too few records to know, or in between."""
    if distance.value == 0:
        return "tells nothing"
    if distance.low is not None and distance.low >= _TELLS:
        return "tells much"
    if distance.value < _NEAR_ONE:
        return "tells something"
    if distance.low is None:
        return "counts as telling everything"
    return "too few records in a level to know"


def level_distances(counts: ArrayLike) -> NDArray[np.float64]:
    """Total variation of the rows of every two levels, shape (levels, levels); for a heat map.

    `counts` has shape (levels, cells); negative (noisy) counts are set to 0; the distance to a
    level without records is 1.
    """
    table = np.asarray(counts)
    if table.ndim != 2:
        raise ConfigurationError(f"counts of shape {table.shape}: give levels × cells")
    rows = checked_counts(np.maximum(table, 0))[0].astype(np.float64)
    totals = rows.sum(axis=1)
    seen = totals > 0
    rows[seen] /= totals[seen, None]
    matrix = np.array([0.5 * np.abs(rows - row).sum(axis=1) for row in rows])
    matrix[~seen, :] = matrix[:, ~seen] = 1.0
    np.fill_diagonal(matrix, 0.0)
    clipped: NDArray[np.float64] = np.minimum(matrix, 1.0)
    return clipped
