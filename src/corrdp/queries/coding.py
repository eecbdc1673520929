"""A table as queries see it: numbers on a public lattice in [−1, 1], levels and bins as codes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from corrdp.encoding import INTERCEPT
from corrdp.errors import DataError
from corrdp.queries.query import domain
from corrdp.records import bin_index, bin_middle, read_label, read_records
from corrdp.schema import Categorical, Numeric, Schema

__all__ = ["Checked", "Coded", "axis_names", "checked_columns", "read_checked"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True, repr=False)
class Coded:
    """What contributions are made of.

    Attributes
    ----------
    size : int
        n.
    numbers : mapping of str to array of shape (n,)
        z in [−1, 1], multiples of 2^-bits; the intercept is 1.
    codes : mapping of str to array of shape (n,)
        Level of a categorical column, bin of a number.
    values : mapping of str to array of shape (n,)
        Clamped numbers in the column's own unit.
    """

    size: int
    numbers: Mapping[str, FloatArray]
    codes: Mapping[str, IntArray]
    values: Mapping[str, FloatArray]


@dataclass(frozen=True, repr=False)
class Checked:
    """Columns inside their declared domain, not yet on a lattice.

    Attributes
    ----------
    schema : Schema
    columns : mapping of str to array of shape (n,)
        As in :class:`corrdp.records.Records`, the label among them if it was given.
    size : int
    """

    schema: Schema
    columns: Mapping[str, Array]
    size: int

    def coded(self, bits: int) -> Coded:
        """Numbers rounded to multiples of 2^-bits of half their range, each record alone."""
        numbers: dict[str, FloatArray] = {INTERCEPT: np.ones(self.size)}
        codes: dict[str, IntArray] = {}
        values: dict[str, FloatArray] = {}
        known = domain(self.schema)
        for name, column in self.columns.items():
            described = known[name]
            if isinstance(described, Numeric):
                codes[name] = bin_index(column, described)
                values[name] = seen(column, described)
                numbers[name] = _on_lattice(values[name], described, bits)
            else:
                codes[name] = column
        return Coded(self.size, numbers, codes, values)


def seen(values: FloatArray, column: Numeric) -> FloatArray:
    """What a query may see of a number: itself, or the middle of its bin (THEORY T10)."""
    if column.resolution == "binned":
        return bin_middle(column)[bin_index(values, column)]
    return values


def _on_lattice(values: FloatArray, column: Numeric, bits: int) -> FloatArray:
    unit = 2.0 * (values - column.low) / (column.high - column.low) - 1.0
    rounded: FloatArray = np.rint(np.clip(unit, -1.0, 1.0) * 2.0**bits) * 2.0**-bits
    return rounded


def read_checked(table: Any, schema: Schema, label: Any = None) -> Checked:
    """Read a table; the label is taken from ``label`` or from the table's column of its name.

    Raises
    ------
    DataError
        Names the column and the mend; also for an empty table or a single record.
    """
    if label is None:
        table, label = _split(table, schema.label.name)
    records = read_records(table, schema)
    values = None
    if label is not None:
        values = read_label(label, schema.label, records.size)
    return checked_columns(schema, records.columns, values)


def checked_columns(schema: Schema, columns: Mapping[str, Array], label: Array | None) -> Checked:
    """Columns and label that were read already; a single record is refused."""
    size = len(next(iter(columns.values())))
    if size < 2:
        raise DataError("the table has one record: nothing can be summed up; use two or more")
    named = {} if label is None else {schema.label.name: label}
    return Checked(schema, {**columns, **named}, size)


def _split(table: Any, name: str) -> tuple[Any, Any]:
    """The table without the label's column, and that column or None."""
    if isinstance(table, Mapping):
        rest = {key: values for key, values in table.items() if key != name}
        return rest, table.get(name)
    if isinstance(table, (np.ndarray, list)):
        return table, None
    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        return table, None  # read_records says what is wrong with it
    if isinstance(frame, nw.DataFrame) and frame.columns.count(name) == 1:
        return frame.drop(name).to_native(), frame[name].to_numpy()
    return table, None


def axis_names(column: Numeric | Categorical) -> tuple[str, ...]:
    """Names of a column's levels or bins, in the order of codes."""
    if isinstance(column, Categorical):
        return column.names
    edges = column.edges
    names = []
    for position, (low, high) in enumerate(itertools.pairwise(edges)):
        if low == high:
            names.append(f"{low:g}")
        else:
            names.append(f"{'[' if position == 0 else '('}{low:g}, {high:g}]")
    return tuple(names)
