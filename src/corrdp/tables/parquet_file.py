"""Parquet through PyArrow, which the extra ``parquet`` brings."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.errors import DataError, MissingExtraError
from corrdp.schema import canonical_level
from corrdp.tables.csv_file import CHUNK_ROWS, Chunk

__all__ = ["parquet_chunks", "parquet_columns", "parquet_names"]

Array: TypeAlias = NDArray[Any]


def _open(path: Path) -> Any:
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtraError(
            f"{path.name}: Parquet needs PyArrow: pip install 'corrdp[parquet]'"
        ) from None
    try:
        return parquet.ParquetFile(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except Exception as error:  # PyArrow's own errors share no base with the standard ones
        reason = str(error).splitlines()[0]
        raise DataError(f"{path.name}: is not a readable Parquet file ({reason})") from None


def parquet_names(path: Path) -> tuple[str, ...]:
    """Column names in order."""
    names = tuple(str(name) for name in _open(path).schema_arrow.names)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"{path.name}: the column name(s) {repeated} occur more than once")
    return names


def parquet_columns(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """Some columns as arrays; nulls are NaN or None."""
    table = _open(path).read(columns=list(names))
    return {name: _array(table.column(name)) for name in names}


def _array(column: Any) -> Array:
    arrow: Any = importlib.import_module("pyarrow")
    if arrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    array: Array = column.to_numpy()
    return np.asarray(array)


def parquet_chunks(path: Path) -> Iterator[Chunk]:
    """Records as text by column, as a CSV file would hold them."""
    start = 0
    for batch in _open(path).iter_batches(batch_size=CHUNK_ROWS):
        names = batch.schema.names
        columns = {n: [_text(v) for v in batch.column(i).to_pylist()] for i, n in enumerate(names)}
        yield Chunk(tuple(range(start + 1, start + batch.num_rows + 1)), columns)
        start += batch.num_rows


def _text(value: object) -> str:
    if value is None or value != value:
        return ""
    return canonical_level(value)
