"""From a file to the arrays that the estimators take, the label split off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.errors import DataError
from corrdp.schema import Categorical, Label, Numeric, Schema, canonical_level
from corrdp.tables.csv_file import Chunk, CsvFile, csv_chunks, open_csv
from corrdp.tables.options import FileOptions
from corrdp.tables.parquet_file import parquet_chunks, parquet_columns, parquet_names

__all__ = ["Table", "column_chunks", "is_parquet", "read_table"]

Array: TypeAlias = NDArray[Any]
FloatArray: TypeAlias = NDArray[np.float64]
PARQUET_MARK = b"PAR1"


@dataclass(frozen=True, repr=False)
class Table:
    """Used columns of a file and its label.

    Attributes
    ----------
    columns : dict of str to array of shape (n,)
        Numbers as float64 (NaN: missing), levels as text ("" or None: missing).
    label : array of shape (n,) or None
        None where it was not asked for.
    size : int
    """

    columns: dict[str, Array]
    label: Array | None
    size: int

    def __repr__(self) -> str:
        return f"Table(columns={list(self.columns)}, size={self.size})"


def is_parquet(path: Path) -> bool:
    """Whether a file starts like Parquet, whatever its name.

    Raises
    ------
    DataError
        If the file cannot be opened.
    """
    try:
        with path.open("rb") as file:
            return file.read(4) == PARQUET_MARK
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path") from None


def read_table(
    path: str | Path,
    schema: Schema,
    options: FileOptions | None = None,
    label: Literal["required", "ignored"] = "required",
) -> Table:
    """Read what a schema uses of a CSV or Parquet file.

    Raises
    ------
    DataError
        If the columns are not the schema's, or a cell of a numeric column is not a number; the
        line, the column and the value are named.
    """
    path = Path(path)
    options = FileOptions() if options is None else options
    parquet = is_parquet(path)
    file = None if parquet else open_csv(path, options)
    names = parquet_names(path) if file is None else file.names
    _check_columns(path, names, schema, label)
    wanted = [*schema.used, *([schema.label.name] if label == "required" else [])]
    if file is None:
        columns = parquet_columns(path, wanted)
    else:
        columns = _csv_columns(file, wanted, schema, options)
    size = len(next(iter(columns.values())))
    if size == 0:
        raise DataError(f"{path.name}: holds no records")
    target = columns.pop(schema.label.name) if label == "required" else None
    return Table(columns, target, size)


def column_chunks(
    path: str | Path, options: FileOptions | None = None
) -> tuple[CsvFile | None, Iterator[Chunk]]:
    """All columns as text, chunk by chunk; for a CSV file also its layout."""
    path = Path(path)
    if is_parquet(path):
        parquet_names(path)
        return None, parquet_chunks(path)
    file = open_csv(path, FileOptions() if options is None else options)
    return file, csv_chunks(file)


def _check_columns(path: Path, names: Sequence[str], schema: Schema, label: str) -> None:
    known = [*schema.columns, schema.label.name]
    if not set(names) & set(known):
        raise DataError(
            f"{path.name}: the first line ({', '.join(names)[:60]}) holds none of the schema's "
            "column names; pass --names a,b,c for a file without a header, or --skip-rows"
        )
    missing = [name for name in schema.used if name not in names]
    if label == "required" and schema.label.name not in names:
        missing.append(schema.label.name)
    extra = [name for name in names if name not in known]
    parts = []
    if missing:
        parts.append(f"in the schema but not in the file: {missing}")
    if extra:
        parts.append(f'in the file but not in the schema: {extra} (declare kind = "ignored")')
    if parts:
        raise DataError(f"{path.name}: {'; '.join(parts)}")


def _csv_columns(
    file: CsvFile, wanted: Sequence[str], schema: Schema, options: FileOptions
) -> dict[str, Array]:
    parts: dict[str, list[Array]] = {name: [] for name in wanted}
    readers: dict[str, _Numbers | _Levels] = {}
    for name in wanted:
        column = schema.label if name == schema.label.name else schema.used[name]
        if isinstance(column, Numeric) or (isinstance(column, Label) and column.is_numeric):
            readers[name] = _Numbers(name, file, frozenset(options.missing))
        else:
            readers[name] = _Levels(column, frozenset(options.missing))
    for chunk in csv_chunks(file):
        for name in wanted:
            parts[name].append(readers[name].read(chunk.columns[name], chunk.lines))
    return {n: np.concatenate(p) if p else np.empty(0) for n, p in parts.items()}


@dataclass(frozen=True)
class _Numbers:
    """Cells of a numeric column."""

    name: str
    file: CsvFile
    marks: frozenset[str]

    def read(self, cells: list[str], lines: Sequence[int]) -> FloatArray:
        if self.marks:
            cells = ["" if cell in self.marks else cell for cell in cells]
        if self.file.decimal == ",":
            cells = [cell.replace(",", ".") for cell in cells]
        try:
            return np.array(list(map(float, cells)))
        except ValueError:
            return np.array([self._number(c, line) for c, line in zip(cells, lines)])

    def _number(self, cell: str, line: int) -> float:
        if not cell:
            return float("nan")
        try:
            return float(cell)
        except ValueError:
            raise DataError(
                f"{self.file.path.name}, line {line}: column {self.name!r} holds {cell[:40]!r}, "
                "not a number; correct it, declare the column categorical, or list the mark under "
                "missing in [file]"
            ) from None


class _Levels:
    """Cells of a categorical column; equal cells share one text."""

    def __init__(self, column: Numeric | Categorical | Label, marks: frozenset[str]) -> None:
        names = () if isinstance(column, Numeric) else column.names
        self.declared = frozenset(names)
        self.seen: dict[str, str] = dict.fromkeys(marks, "")

    def read(self, cells: list[str], lines: Sequence[int]) -> Array:
        seen = self.seen
        for cell in set(cells).difference(seen):
            seen[cell] = self._level(cell)
        return np.array([seen[cell] for cell in cells], dtype=object)

    def _level(self, cell: str) -> str:
        """The declared spelling of a number (1.0 for 1), else the cell itself."""
        if cell in self.declared:
            return cell
        try:
            plain = canonical_level(float(cell))
        except (ValueError, OverflowError):
            return cell
        return plain if plain in self.declared else cell
