"""Counting contingency tables of level × sensitive cell in one pass and bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.errors import DataError

__all__ = ["contingency_table", "contingency_tables"]

Codes: TypeAlias = NDArray[Any]
Counts: TypeAlias = NDArray[np.int64]

CHUNK = 1 << 16  # records; the working arrays stay in the processor's cache


def contingency_table(levels: Codes, cells: Codes, shape: tuple[int, int]) -> Counts:
    """Counts of (level code, cell code) pairs, shape ``shape``.

    As `contingency_tables` for a single column.
    """
    return contingency_tables([levels], cells, [shape[0]], shape[1])[0]


def contingency_tables(
    columns: Sequence[Codes], cells: Codes, levels: Sequence[int], cell_count: int
) -> list[Counts]:
    """One table of level × sensitive cell per column.

    Parameters
    ----------
    columns
        Integer code arrays of shape (n,), codes 0 … levels[i] − 1.
    cells
        Integer codes of the joint sensitive tuple, shape (n,), 0 … cell_count − 1.
    levels
        Declared number of levels per column; levels without records are rows of zeros.
    cell_count
        Declared number of cells.

    Returns
    -------
    List of int64 arrays of shape (levels[i], cell_count), each summing to n. Memory beyond the
    result is one chunk of records, whatever n.

    Raises
    ------
    DataError
        Codes that are not integers (missing values included), lie outside the declaration, or
        have another length than `cells`.
    """
    _check_codes("sensitive cells", cells, len(cells))
    for position, column in enumerate(columns):
        _check_codes(f"column {position}", column, len(cells))
    tables = [np.zeros(count * cell_count, dtype=np.int64) for count in levels]
    code = np.empty(min(CHUNK, len(cells)), dtype=np.int64)
    cell = np.empty_like(code)
    for start in range(0, len(cells), CHUNK):
        part = slice(start, start + CHUNK)
        size = len(cells[part])
        cell[:size] = cells[part]
        if cell[:size].min() < 0 or cell[:size].max() >= cell_count:
            raise DataError(f"sensitive cells: a code outside 0 … {cell_count - 1}; declare it")
        for position, column in enumerate(columns):
            np.multiply(column[part], cell_count, out=code[:size], casting="unsafe", dtype=np.int64)
            code[:size] += cell[:size]
            _add_counts(tables[position], code[:size], f"column {position}", levels[position])
    return [table.reshape(count, cell_count) for table, count in zip(tables, levels)]


def _add_counts(table: Counts, codes: Counts, where: str, levels: int) -> None:
    """Add a chunk; a level outside the declaration shows in the sign or in the length."""
    try:
        found: Counts = np.bincount(codes, minlength=len(table))
    except ValueError:
        found = np.empty(0, dtype=np.int64)
    if len(found) != len(table):
        raise DataError(f"{where}: a level code outside 0 … {levels - 1}; declare the level")
    table += found


def _check_codes(where: str, codes: Codes, size: int) -> None:
    if not isinstance(codes, np.ndarray) or codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise DataError(
            f"{where}: codes must be a one-dimensional integer array without missing values"
        )
    if len(codes) != size:
        raise DataError(f"{where}: {len(codes)} codes for {size} records; give one per record")
