"""Public grids: which levels and cells a distance is measured on, and the codes of records.

Levels of a categorical column are its declared ones; a number is measured on its declared bins
(`corrdp.schema.Numeric.edges`); several columns together, like the sensitive tuple, on the product
of their grids. Nothing here depends on a record's value except the codes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.distance.result import Measured, Resolution
from corrdp.errors import ConfigurationError
from corrdp.neighbours import INSENSITIVE, RECORD, SENSITIVE, neighbour_kinds
from corrdp.records import Records, bin_index
from corrdp.schema import Group, Level, Numeric, Schema, canonical_level

__all__ = [
    "Axis",
    "TableSpec",
    "axis",
    "axis_codes",
    "level_names",
    "numeric_column",
    "public_columns",
    "sensitive_axis",
    "table_specs",
]

Codes: TypeAlias = NDArray[np.int64]

_MAX_ENTRIES = 50_000_000  # of one table; beyond, memory is the first thing to run out


@dataclass(frozen=True)
class Axis:
    """The grid of some columns taken together.

    Attributes
    ----------
    columns : tuple of str
        Columns, the label possibly among them; empty for a grid of one point.
    sizes : tuple of int
        Levels or bins of each column; one number for a whole group that lists its joint values.
    """

    columns: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of points of the grid."""
        return math.prod(self.sizes)


@dataclass(frozen=True)
class TableSpec:
    """One contingency table: strata (background) × levels × sensitive cells.

    Attributes
    ----------
    name : str
        Neighbour kind whose distance the table gives.
    levels, cells, strata : Axis
        The kind's own columns, the sensitive tuple, the public background.
    resolution : {"binned", "assume-smooth"}, optional
        How numeric columns of the kind are treated; None if it has none.
    """

    name: str
    levels: Axis
    cells: Axis
    strata: Axis
    resolution: Resolution | None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(strata, levels, cells)."""
        return self.strata.size, self.levels.size, self.cells.size

    def rows(self, schema: Schema, records: Records, label: NDArray[Any]) -> Codes:
        """Code of (stratum, level) of every record, shape (n,)."""
        level = axis_codes(self.levels, schema, records, label)
        if not self.strata.columns:
            return level
        return axis_codes(self.strata, schema, records, label) * self.levels.size + level


def table_specs(
    schema: Schema, resolution: Measured, background: Sequence[str] = ()
) -> tuple[TableSpec, ...]:
    """A table for every insensitive column, group and label, in the order of the kinds.

    Parameters
    ----------
    schema : Schema
    resolution : {"as-declared", "binned", "assume-smooth"}
        ``"as-declared"`` leaves out numeric columns that the model sees exactly (they keep d = 1);
        ``"binned"`` demands that the model sees numeric columns at their bins' resolution;
        ``"assume-smooth"`` accepts that P(s | u) is assumed constant within bins (THEORY T10).
    background : sequence of str
        Public columns (the label, if public) that an observer is supposed to know.

    Raises
    ------
    ConfigurationError
        Nothing is sensitive, the sensitive tuple has a single cell, a numeric column is neither
        binned nor assumed smooth, or a table would not fit into memory.
    """
    cells = sensitive_axis(schema)
    strata = axis(schema, background)
    specs = []
    for kind in neighbour_kinds(schema):
        if kind.name in (SENSITIVE, INSENSITIVE, RECORD):
            continue
        columns = kind.columns or (schema.label.name,)
        if resolution == "as-declared" and _exact(schema, columns):
            continue
        spec = TableSpec(
            kind.name,
            axis(schema, columns),
            cells,
            strata,
            _resolution(schema, columns, "binned" if resolution == "as-declared" else resolution),
        )
        if math.prod(spec.shape) > _MAX_ENTRIES:
            raise ConfigurationError(
                f"column {kind.name!r}: a table of {' × '.join(map(str, spec.shape))} (background, "
                "levels, sensitive cells) is too large; declare coarser bins or fewer levels"
            )
        specs.append(spec)
    return tuple(specs)


def sensitive_axis(schema: Schema) -> Axis:
    """The grid of the joint sensitive tuple, a sensitive label included."""
    names = schema.names("sensitive")
    if schema.label.role == "sensitive":
        names = (*names, schema.label.name)
    cells = axis(schema, names)
    if cells.size < 2:
        raise ConfigurationError(
            f"the sensitive columns {list(names)} have {cells.size} joint value(s): nothing could "
            "be told about them; mark a column with two or more levels as sensitive"
        )
    return cells


def public_columns(schema: Schema) -> tuple[str, ...]:
    """Columns everybody knows, a public label included."""
    label = (schema.label.name,) if schema.label.role == "public" else ()
    return (*schema.names("public"), *label)


def axis(schema: Schema, columns: Sequence[str]) -> Axis:
    """The grid of some columns; a group with listed joint values counts as one factor."""
    return Axis(tuple(columns), tuple(_size(schema, f) for f in _factors(schema, columns)))


def axis_codes(of: Axis, schema: Schema, records: Records, label: NDArray[Any]) -> Codes:
    """Position of every record on the grid, the last factor running fastest."""
    codes = np.zeros(records.size, dtype=np.int64)
    for factor, size in zip(_factors(schema, of.columns), of.sizes):
        if isinstance(factor, Group):
            own = _group_codes(factor, schema, records)
        else:
            values = label if factor == schema.label.name else records.columns[factor]
            numeric = numeric_column(schema, factor)
            own = values if numeric is None else bin_index(values, numeric)
        codes = codes * size + own
    return codes


def level_names(of: Axis, schema: Schema) -> list[str]:
    """Text for every point of the grid, in the order of the codes."""
    parts = [_names(schema, factor) for factor in _factors(schema, of.columns)]
    return [", ".join(point) for point in itertools.product(*parts)]


def _factors(schema: Schema, columns: Sequence[str]) -> list[str | Group]:
    """Columns, with every group that lists its joint values and stands there whole as one."""
    factors: list[str | Group] = []
    for name in columns:
        group = schema.group_of(name) if name != schema.label.name else None
        if group is None or group.values is None or not set(group.columns) <= set(columns):
            factors.append(name)
        elif group not in factors:
            factors.append(group)
    return factors


def numeric_column(schema: Schema, name: str) -> Numeric | None:
    """The numeric declaration behind a column or label, if it is one."""
    if name == schema.label.name:
        if not schema.label.is_numeric:
            return None
        return Numeric(*schema.label.bounds)
    column = schema.used[name]
    return column if isinstance(column, Numeric) else None


def _size(schema: Schema, factor: str | Group) -> int:
    return len(_names(schema, factor))


def _names(schema: Schema, factor: str | Group) -> tuple[str, ...]:
    """Names of the levels, bins or joint values of one factor."""
    if isinstance(factor, Group):
        values = factor.values or ()
        return tuple(" & ".join(map(canonical_level, value)) for value in values)
    numeric = numeric_column(schema, factor)
    if numeric is not None:
        pairs = itertools.pairwise(numeric.edges)
        return tuple(f"={a:g}" if a == b else f"{a:g}–{b:g}" for a, b in pairs)
    if factor == schema.label.name:
        return schema.label.names
    column = schema.used[factor]
    return () if isinstance(column, Numeric) else column.names


def _resolution(schema: Schema, columns: Sequence[str], wanted: Resolution) -> Resolution | None:
    """What holds for a kind's numeric columns, or an error where a choice is missing."""
    exact = _exact(schema, columns)
    if exact and wanted == "binned":
        raise ConfigurationError(
            f"column {exact[0]!r} is numeric and its distance is measured on bins: let the model "
            "see the bins only (Numeric(..., resolution='binned'), Schema.binned()) or accept the "
            "assumption that P(sensitive | column) is constant within bins "
            "(resolution='assume-smooth')"
        )
    if exact:
        return "assume-smooth"
    return "binned" if _numeric(schema, columns) else None


def _numeric(schema: Schema, columns: Sequence[str]) -> dict[str, Numeric]:
    """Numeric columns that stand alone in a kind, not in a list of joint values."""
    single = [f for f in _factors(schema, columns) if isinstance(f, str)]
    found = {name: numeric_column(schema, name) for name in single}
    return {name: column for name, column in found.items() if column is not None}


def _exact(schema: Schema, columns: Sequence[str]) -> list[str]:
    """Those of them that the model sees at full resolution."""
    return [n for n, column in _numeric(schema, columns).items() if column.resolution == "exact"]


def _group_codes(group: Group, schema: Schema, records: Records) -> Codes:
    """Position in the group's list; records outside it stand at ``otherwise`` already."""
    codes = np.full(records.size, -1, dtype=np.int64)
    for position, value in enumerate(group.values or ()):
        match = np.ones(records.size, dtype=bool)
        for name, entry in zip(group.columns, value):
            match &= records.columns[name] == _coded(schema, name, entry)
        codes[match & (codes < 0)] = position
    return codes


def _coded(schema: Schema, name: str, entry: Level) -> float:
    column = schema.used[name]
    if isinstance(column, Numeric):
        return min(max(float(entry), column.low), column.high)
    return float(column.names.index(canonical_level(entry)))
