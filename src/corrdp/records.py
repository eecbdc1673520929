"""From any table to checked columns: numbers inside public bounds, categories as codes.

The one place that looks at what kind of table it was given. Every value ends up inside the
declared domain or the table is refused; nothing is learned from the values.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from corrdp.errors import DataError
from corrdp.schema import (
    OTHER,
    Categorical,
    Group,
    Label,
    Numeric,
    Schema,
    canonical_level,
)

__all__ = ["Records", "bin_index", "bin_middle", "read_label", "read_records", "table_columns"]

Array: TypeAlias = NDArray[Any]
FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Records:
    """Checked columns of a table.

    Attributes
    ----------
    columns : mapping of str to array of shape (n,)
        ``float64`` within bounds for numeric columns, ``int64`` codes for categorical ones.
    size : int
        Number of records n (public).
    """

    columns: Mapping[str, Array]
    size: int

    def __repr__(self) -> str:
        return f"Records(columns={list(self.columns)}, size={self.size})"


def table_columns(table: Any, schema: Schema) -> dict[str, Array]:
    """Columns of a DataFrame, mapping or NumPy array by name, ignored ones left out.

    Raises
    ------
    DataError
        If the table is no table, or its columns are not the schema's (both lists are named).
    """
    if isinstance(table, Mapping):
        _check_unique(list(table))
        columns = {str(name): _array(f"column {name!r}", v) for name, v in table.items()}
    elif isinstance(table, np.ndarray) or (isinstance(table, list) and table):
        columns = _from_array(_array("the table", table), schema)
    else:
        columns = _from_frame(table)
    _check_names(columns, schema)
    for name in schema.used:
        if columns[name].ndim != 1:
            raise DataError(
                f"column {name!r} must be one-dimensional, got shape {columns[name].shape}"
            )
    lengths = {len(columns[name]) for name in schema.used}
    if len(lengths) != 1:
        raise DataError(f"columns have different lengths {sorted(lengths)}")
    if lengths == {0}:
        raise DataError("the table has no records; pass at least one")
    return {name: columns[name] for name in schema.used}


def _array(where: str, values: Any) -> Array:
    """An array; masked entries become missing values, ragged lists are refused."""
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _values(series)
    if isinstance(values, np.ma.MaskedArray):
        plain: Array = np.array(values, dtype=object)
        plain[np.ma.getmaskarray(values)] = None
        return plain
    try:
        return np.asarray(values)
    except ValueError:
        raise DataError(f"{where} is ragged: its entries have different lengths") from None


def _values(series: nw.Series[Any]) -> Array:
    """The series as an array; missing entries stay missing."""
    values: Array = series.to_numpy()
    if series.dtype == nw.Categorical and series.null_count():
        # PyArrow writes a missing entry of a dictionary as the dictionary's last level
        values = values.astype(object)
        values[series.is_null().to_numpy()] = None
    return values


def _check_unique(names: list[Any]) -> None:
    texts = [str(name) for name in names]
    repeated = sorted({name for name in texts if texts.count(name) > 1})
    if repeated:
        raise DataError(f"the table has the columns {repeated} more than once; keep one of each")


def _from_frame(table: Any) -> dict[str, Array]:
    try:
        frame = nw.from_native(table, eager_only=True)
        names = frame.columns
    except TypeError:
        raise DataError(
            f"cannot read a table from {type(table).__name__}; pass a DataFrame (pandas, Polars, "
            "PyArrow), a mapping of columns or a two-dimensional NumPy array"
        ) from None
    except ValueError:
        raise DataError("the table has a column name more than once; keep one of each") from None
    _check_unique(names)
    return {str(column.name): _values(column) for column in frame.iter_columns()}


def _from_array(array: Array, schema: Schema) -> dict[str, Array]:
    if array.ndim != 2:
        raise DataError(f"expected a two-dimensional array, got {array.ndim} dimension(s)")
    for names in (list(schema.used), list(schema.columns)):
        if array.shape[1] == len(names):
            return {name: array[:, i] for i, name in enumerate(names)}
    raise DataError(
        f"the array has {array.shape[1]} columns, the schema {len(schema.used)} used ones: "
        f"{list(schema.used)}"
    )


def _check_names(columns: Mapping[str, Array], schema: Schema) -> None:
    missing = [name for name in schema.used if name not in columns]
    extra = [name for name in columns if name not in schema.columns]
    if missing or extra:
        parts = []
        if missing:
            parts.append(f"in the schema but not in the table: {missing}")
        if schema.label.name in extra:
            extra.remove(schema.label.name)
            parts.append(f"the label {schema.label.name!r} stands in the table: pass it as y alone")
        if extra:
            parts.append(
                f"in the table but not in the schema: {extra} (declare a column or Ignored())"
            )
        raise DataError("; ".join(parts))


def read_records(table: Any, schema: Schema) -> Records:
    """Check a table against its schema: clamp numbers, code categories, apply missing rules.

    Raises
    ------
    DataError
        Names the column, the first offending value and the mend.
    """
    raw = table_columns(table, schema)
    columns: dict[str, Array] = {}
    for name, column in schema.used.items():
        if isinstance(column, Numeric):
            columns[name] = _numeric(name, raw[name], column)
        else:
            columns[name] = _codes(f"column {name!r}", raw[name], column)
    for group in schema.declared_groups:
        if group.values is not None:
            _map_group(columns, group, schema)
    return Records(columns, len(next(iter(columns.values()))))


def read_label(values: Any, label: Label, size: int) -> Array:
    """Label codes (``int64``, positive class 1) or numbers within the declared bounds.

    Raises
    ------
    DataError
        For a wrong length, missing values, unknown classes, or values that are not numbers.
    """
    array = _one_dimensional(values, label.name)
    if len(array) != size:
        raise DataError(f"label {label.name!r} has {len(array)} values for {size} records")
    if label.is_numeric:
        low, high = label.bounds
        return np.clip(_floats(f"label {label.name!r}", array, None), low, high)
    column = Categorical(label.names)
    return _codes(f"label {label.name!r}", array, column)


def _one_dimensional(values: Any, name: str) -> Array:
    if isinstance(values, (list, tuple, range, np.ndarray)):
        array = _array(f"label {name!r}", values)
    else:
        try:
            native = nw.from_native(values, eager_only=True, allow_series=True)
        except TypeError:
            raise DataError(f"label {name!r}: pass a series, list or NumPy array") from None
        if isinstance(native, nw.DataFrame) and native.shape[1] == 1:
            native = next(native.iter_columns())
        array = _values(native) if isinstance(native, nw.Series) else native.to_numpy()
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"label {name!r} must be one-dimensional, got shape {array.shape}")
    return array


def _is_missing(value: object) -> bool:
    """None, NaN, NaT, pandas' NA and blank text."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _floats(where: str, values: Array, missing: float | None) -> FloatArray:
    """Finite numbers; missing ones replaced by the declared value."""
    if values.dtype.kind in "mMcSV":
        raise DataError(f"{where} holds {values.dtype}, not numbers; convert it or ignore it")
    if values.dtype.kind in "OUT":
        values = np.array([_number(where, value) for value in values.tolist()], dtype=np.float64)
    numbers = values.astype(np.float64)
    absent = np.isnan(numbers)
    if absent.any():
        if missing is None:
            raise DataError(
                f"{where} has {int(absent.sum())} missing value(s), the first in record "
                f"{int(np.argmax(absent))}; {_missing_mend(where)}"
            )
        numbers[absent] = missing
    if np.isinf(numbers).any():
        row = int(np.argmax(np.isinf(numbers)))
        raise DataError(f"{where} holds an infinite value in record {row}; correct the record")
    return numbers


def _missing_mend(where: str) -> str:
    """A label has no rule for missing values: such records cannot be learned from."""
    drop = "drop these records"
    return drop if where.startswith("label") else f"declare missing= for it or {drop}"


def _number(where: str, value: object) -> float:
    if _is_missing(value):
        return float("nan")
    try:
        if isinstance(value, (bytes, bytearray)):
            raise TypeError
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max  # type: ignore[operator]
    except (TypeError, ValueError):
        raise DataError(
            f"{where} holds {str(value)[:40]!r}, not a number; declare it categorical or correct it"
        ) from None


def _numeric(name: str, values: Array, column: Numeric) -> FloatArray:
    numbers = _floats(f"column {name!r}", values, column.missing)
    return np.clip(numbers, column.low, column.high)


def _codes(where: str, values: Array, column: Categorical) -> Array:
    """Positions in the list of levels; unlisted values go to ``other`` or raise."""
    names = {level: code for code, level in enumerate(column.names)}
    if values.dtype.kind in "biuf":
        distinct, inverse = np.unique(values, return_inverse=True)
        plain = distinct.tolist()
        if values.dtype.kind == "f" and values.dtype.itemsize < 8:
            plain = [float(str(value)) for value in distinct]  # the shortest text: 0.1, not 0.1000…
        return np.array([_code(where, v, names, column) for v in plain])[inverse]
    if values.dtype.kind in "mMcSV":
        raise DataError(f"{where} holds {values.dtype}; convert it to text or ignore the column")
    # 1 == True in Python, but they are different levels: the type belongs to the key
    known: dict[tuple[type, Any], int] = {}
    codes = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values.tolist()):
        if _is_missing(value):
            codes[row] = _code(where, None, names, column)
            continue
        if isinstance(value, Decimal):
            value = float(value)
        if not isinstance(value, (str, int, float, np.number, np.bool_)):
            raise DataError(
                f"{where} holds a value of type {type(value).__name__}, neither text nor number; "
                "convert it to text or ignore the column"
            )
        key = (type(value), value)
        code = known.get(key)
        if code is None:
            code = known[key] = _code(where, value, names, column)
        codes[row] = code
    return codes


def _code(where: str, value: object, names: Mapping[str, int], column: Categorical) -> int:
    if _is_missing(value):
        if column.missing is None:
            raise DataError(f"{where} has missing values; {_missing_mend(where)}")
        return names[canonical_level(column.missing)]
    level = canonical_level(value)
    # text files pad their fields, and tables hold booleans where 0 and 1 were declared
    spellings = [level, level.strip()]
    if isinstance(value, (bool, np.bool_)):
        spellings.append(str(int(value)))
    for spelling in spellings:
        if spelling in names:
            return names[spelling]
    if column.other:
        return names[OTHER]
    mend = "add it to levels" if where.startswith("label") else "add it to levels or set other=True"
    raise DataError(f"{where}: level {level[:40]!r} is not declared; {mend}")


def _map_group(columns: dict[str, Array], group: Group, schema: Schema) -> None:
    """Replace undeclared joint values by the group's public ``otherwise``."""
    listed = [_coded_value(group, value, schema) for value in group.values or ()]
    otherwise = _coded_value(group, group.otherwise or (), schema)
    rows = np.column_stack([columns[name].astype(np.float64) for name in group.columns])
    known = np.zeros(len(rows), dtype=bool)
    for value in listed:
        known |= (rows == value).all(axis=1)
    for position, name in enumerate(group.columns):
        columns[name] = columns[name].copy()
        columns[name][~known] = otherwise[position]


def _coded_value(group: Group, value: Sequence[Any], schema: Schema) -> FloatArray:
    coded = []
    for name, entry in zip(group.columns, value, strict=True):
        column = schema.used[name]
        single = np.array([entry])
        where = f"group {group.name!r}, column {name!r}"
        if isinstance(column, Numeric):
            coded.append(float(_numeric(where, single, column)[0]))
        else:
            coded.append(float(_codes(where, single, column)[0]))
    return np.array(coded)


def bin_index(values: FloatArray, column: Numeric) -> NDArray[np.int64]:
    """Bin of each value; a bin holds its upper edge, a spike bin exactly its value."""
    edges = np.asarray(column.edges)
    lower, upper = edges[:-1], edges[1:]
    index = np.searchsorted(upper, values, side="left").astype(np.int64)
    # the first interval is closed below unless its lower edge is a spike of its own
    index = np.minimum(index, len(upper) - 1)
    spikes = np.flatnonzero(lower == upper)
    for spike in spikes:
        index[values == upper[spike]] = spike
    return index


def bin_middle(column: Numeric) -> FloatArray:
    """The value that stands for each bin."""
    edges = np.asarray(column.edges)
    middle: FloatArray = (edges[:-1] + edges[1:]) / 2.0
    return middle
