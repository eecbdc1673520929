"""Distance of a column for an observer who knows the other columns (THEORY T2).

With the background K = all other columns, d_i is the largest distance between P(s | u) and
P(s | u') over tuples u, u' that differ in u_i only; d_U, for all insensitive columns together, is
the largest over any two tuples. Neither the marginal nor the conditional distance bounds the
other. A tuple that has probability zero, or was never observed, counts as distance 1: u_1 = u_2 = s
would otherwise give 0, because no two tuples that occur differ in one column only.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corrdp.distance import bounds
from corrdp.distance.bounds import Method
from corrdp.distance.counting import contingency_table
from corrdp.distance.estimate import Origin
from corrdp.distance.events import widest_pair
from corrdp.distance.grid import (
    TableSpec,
    axis_codes,
    level_names,
    public_columns,
    table_specs,
)
from corrdp.distance.result import Distance, Distances, Resolution
from corrdp.distance.wording import assumptions
from corrdp.errors import AssumptionWarning, ConfigurationError
from corrdp.records import read_label, read_records
from corrdp.schema import Schema

__all__ = [
    "STRONGLY",
    "JointDistances",
    "estimate_conditional",
    "joint_distances",
    "warn_if_different",
]

STRONGLY = 0.3  # difference of marginal and conditional distance that is worth a warning
_MAX_ENTRIES = 5_000_000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class JointDistances:
    """Distances of every column of a known joint distribution.

    Attributes
    ----------
    marginal, conditional : tuple of float
        One per column: nothing else known, all other columns known.
    joint : float
        d_U of all columns together.
    """

    marginal: tuple[float, ...]
    conditional: tuple[float, ...]
    joint: float


def joint_distances(table: ArrayLike) -> JointDistances:
    """Marginal, conditional and joint distances of P(u_1, …, u_p, s), exactly (THEORY T2).

    Parameters
    ----------
    table
        Shape (levels of u_1, …, levels of u_p, cells): probabilities or counts, not normalised
        necessarily. Tuples with zero weight count as distance 1.

    Raises
    ------
    ConfigurationError
        Negative or missing weights, fewer than two levels or cells, or too large a domain.
    """
    weights = np.asarray(table, dtype=np.float64)
    if weights.ndim < 2 or min(weights.shape) < 2:
        raise ConfigurationError(f"a table of shape {weights.shape} needs two levels and two cells")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ConfigurationError("the table holds a negative or missing weight")
    _check_size(weights.shape)
    axes = range(weights.ndim - 1)
    marginal = [_widest(weights.sum(axis=tuple(j for j in axes if j != i))[None]) for i in axes]
    conditional = [_widest(_by_background(weights, i)) for i in axes]
    joint = _widest(weights.reshape(1, -1, weights.shape[-1]))
    return JointDistances(tuple(marginal), tuple(conditional), joint)


def warn_if_different(
    names: Sequence[str], marginal: Sequence[float], conditional: Sequence[float]
) -> None:
    """AssumptionWarning that names the columns whose two distances differ strongly."""
    far = [
        f"{name!r} {own:.2g} alone, {given:.2g} given the others"
        for name, own, given in zip(names, marginal, conditional, strict=True)
        if abs(own - given) > STRONGLY
    ]
    if far:
        warnings.warn(
            f"distances depend strongly on what else an observer knows: {'; '.join(far)}; "
            "protect interacting columns as a group or use the larger distance",
            AssumptionWarning,
            stacklevel=3,
        )


def estimate_conditional(
    schema: Schema,
    X: Any,
    y: Any,
    *,
    source: Origin,
    method: Method = "auto",
    gamma: float = 0.05,
    resolution: Resolution = "binned",
) -> Distances:
    """Conditional distance of every insensitive kind, and d_U as ``joint``.

    For small joint domains: all insensitive kinds, with public columns as background, are counted
    together. γ is shared by the kinds and d_U. Warns (AssumptionWarning) where marginal and
    conditional limits differ strongly. Arguments as for
    `corrdp.distance.estimate.estimate_distances`.

    Raises
    ------
    ConfigurationError
        The joint domain is too large to be counted; or as in `estimate_distances`.
    """
    if source not in ("public", "published"):
        raise ConfigurationError(f"source={source!r} is unknown; use 'public' or 'published'")
    specs = table_specs(schema, resolution, public_columns(schema))
    if not specs:
        return Distances({})
    counts = _joint_counts(schema, specs, X, y)
    share = bounds.checked_gamma(gamma) / (len(specs) + 1)
    columns, marginal = {}, []
    for position, spec in enumerate(specs):
        stratified = _by_background(counts, position + 1)
        columns[spec.name] = _limit(stratified, spec, schema, specs, source, method, share)
        others = tuple(j for j in range(1, counts.ndim - 1) if j != position + 1)
        marginal.append(bounds.upper_limit(counts.sum(axis=others), share, method).value)
    together = counts.reshape(counts.shape[0], -1, counts.shape[-1])
    joint = bounds.upper_limit(together, share, method).value
    warn_if_different(list(columns), marginal, [d.value for d in columns.values()])
    return Distances(columns, joint, gamma, assumptions(schema, specs))


def _joint_counts(schema: Schema, specs: Sequence[TableSpec], X: Any, y: Any) -> NDArray[np.int64]:
    """Counts of shape (background, levels of every kind …, cells)."""
    strata, cells = specs[0].strata, specs[0].cells
    shape = (strata.size, *(spec.levels.size for spec in specs), cells.size)
    _check_size(shape)
    records = read_records(X, schema)
    label = read_label(y, schema.label, records.size)
    rows = axis_codes(strata, schema, records, label)
    for spec in specs:
        rows = rows * spec.levels.size + axis_codes(spec.levels, schema, records, label)
    sensitive = axis_codes(cells, schema, records, label)
    flat = contingency_table(rows, sensitive, (int(np.prod(shape[:-1])), cells.size))
    return flat.reshape(shape)


def _limit(
    counts: NDArray[np.int64],
    spec: TableSpec,
    schema: Schema,
    specs: Sequence[TableSpec],
    source: Origin,
    method: Method,
    gamma: float,
) -> Distance:
    """Limit of one kind given all others, shape (background × others, levels, cells)."""
    value, rows = bounds.upper_limit(counts, gamma, method)
    names = level_names(spec.levels, schema)
    others = [name for other in specs if other is not spec for name in other.levels.columns]
    return Distance(
        value,
        source,
        method="conditional",
        low=min(value, bounds.lower_limit(counts, gamma)),
        high=value,
        pair=(names[rows[0]], names[rows[1]]),
        rarest_count=int(counts.sum(axis=2).min()),
        background=(*spec.strata.columns, *others),
        resolution=spec.resolution,
    )


def _by_background(weights: NDArray[Any], axis: int) -> NDArray[Any]:
    """(all other columns, levels of one column, cells)."""
    moved = np.moveaxis(weights, axis, -2)
    return moved.reshape(-1, *moved.shape[-2:])


def _widest(strata: Floats) -> float:
    """Largest distance of two rows within a stratum; 1 where a row has no weight."""
    totals = strata.sum(axis=2, keepdims=True)
    if (totals == 0).any():
        return 1.0
    return max(widest_pair(rows).value for rows in strata / totals)


def _check_size(shape: Sequence[int]) -> None:
    entries = 1
    for size in shape:
        entries *= int(size)
    if entries > _MAX_ENTRIES:
        raise ConfigurationError(
            f"the joint domain has {entries} entries, too many to count (at most {_MAX_ENTRIES}); "
            "declare coarser bins or fewer insensitive columns"
        )
