"""CSV as it is found in the wild: marks, separators, encodings, quotes, blank lines.

Layout is found from the first lines alone. Records come in chunks of columns, so that a million
rows need little more memory than the columns that are kept.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TextIO

from corrdp.errors import ConfigurationError, DataError
from corrdp.tables.options import FileOptions, check_names

__all__ = ["Chunk", "CsvFile", "csv_chunks", "open_csv"]

SEPARATORS = (",", ";", "\t", "|")
SAMPLE_LINES = 200
CHUNK_ROWS = 1_024
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_DECIMAL_POINT = re.compile(r"[+-]?\d+\.\d+")


@dataclass(frozen=True)
class CsvFile:
    """A CSV file whose layout is known.

    Attributes
    ----------
    path : Path
    encoding : str
    skip_lines : int
        Lines before the header or the first record.
    header : bool
        Whether the first line that is read holds the names.
    names : tuple of str
    names_given : bool
        Then lines of one field above the records are remarks and passed over.
    separator, decimal : str
    """

    path: Path
    encoding: str
    skip_lines: int
    header: bool
    names: tuple[str, ...]
    names_given: bool
    separator: str
    decimal: str


@dataclass(frozen=True, repr=False)
class Chunk:
    """Some records by column, padding stripped.

    Attributes
    ----------
    lines : tuple of int
        Line of the file in which each record ends, starting at 1.
    columns : dict of str to list of str
    """

    lines: tuple[int, ...]
    columns: dict[str, list[str]]


def open_csv(path: Path, options: FileOptions) -> CsvFile:
    """Find encoding, separator, decimal sign and names.

    Raises
    ------
    DataError
        If the file cannot be read, is empty, or has no header and no names were given.
    """
    encoding = find_encoding(path)
    with path.open(encoding=encoding, newline="") as file:
        lines = list(islice(file, options.skip_rows, options.skip_rows + SAMPLE_LINES))
    if not any(line.strip() for line in lines):
        raise DataError(f"{path.name}: is empty after {options.skip_rows} skipped line(s)")
    separator = options.separator or find_separator(lines, options.names)
    rows = _sample_rows(path, lines, separator)
    names = options.names
    if names is not None:  # a remark above records of known width
        rows = [row for row in rows if len(row) > 1] or rows
    first = tuple(cell.strip() for cell in rows[0])
    header = names is None or first == names
    if names is None:
        names = header_names(path, first, separator)
    decimal = options.decimal or find_decimal(rows, separator)
    given = options.names is not None
    return CsvFile(path, encoding, options.skip_rows, header, names, given, separator, decimal)


def csv_chunks(file: CsvFile) -> Iterator[Chunk]:
    """Records in chunks; blank lines are passed over.

    Raises
    ------
    DataError
        With the line number of a row that has too few or too many fields.
    """
    with file.path.open(encoding=file.encoding, newline="") as text:
        rows: list[list[str]] = []
        lines: list[int] = []
        for line, row in _records(file, text):
            rows.append(row)
            lines.append(line)
            if len(rows) == CHUNK_ROWS:
                yield _chunk(file, lines, rows)
                rows, lines = [], []
        if rows:
            yield _chunk(file, lines, rows)


def _records(file: CsvFile, text: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every record."""
    for _ in range(file.skip_lines):
        text.readline()
    reader = csv.reader(text, delimiter=file.separator, skipinitialspace=True)
    width, header, begun = len(file.names), file.header, not file.names_given
    try:
        for row in reader:
            if len(row) != width:
                if not row or (len(row) == 1 and (not begun or not row[0].strip())):
                    continue
                raise DataError(_ragged(file, file.skip_lines + reader.line_num, len(row)))
            begun = True
            if header:
                header = False
                continue
            yield file.skip_lines + reader.line_num, row
    except csv.Error as error:
        line = file.skip_lines + reader.line_num
        raise DataError(
            f"{file.path.name}, line {line}: {error}; look for a quote that is not closed"
        ) from None


def _ragged(file: CsvFile, line: int, found: int) -> str:
    width = len(file.names)
    mend = f"quote values that hold {file.separator!r}"
    if line == file.skip_lines + 1:
        mend = f"pass --skip-rows {line} if the line is a remark, or other --names"
    fields = "field" if found == 1 else "fields"
    return f"{file.path.name}, line {line}: {found} {fields} for {width} columns; {mend}"


def _chunk(file: CsvFile, lines: list[int], rows: list[list[str]]) -> Chunk:
    columns = {
        name: list(map(str.strip, cells))
        for name, cells in zip(file.names, zip(*rows, strict=True), strict=True)
    }
    return Chunk(tuple(lines), columns)


def find_encoding(path: Path) -> str:
    """UTF-8 (with or without a mark), UTF-16 with a mark, else Latin-1.

    Raises
    ------
    DataError
        If the file cannot be opened.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with path.open("rb") as file:
            start = file.read(2)
            if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                return "utf-16"
            file.seek(0)
            while block := file.read(1 << 20):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "latin-1"
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    return "utf-8-sig"


def find_separator(lines: Sequence[str], names: tuple[str, ...] | None) -> str:
    """The separator that cuts the most sample lines into equally many fields."""

    def score(separator: str) -> tuple[float, int]:
        rows = [r for r in _split(lines, separator) if r]
        width = len(rows[0]) if names is None else len(names)
        if width < 2:
            return (0.0, 0)
        return (sum(len(row) == width for row in rows) / len(rows), width)

    return max(SEPARATORS, key=score)


def _split(lines: Sequence[str], separator: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    except csv.Error:
        return [[]] * len(lines) + [[""]]


def _sample_rows(path: Path, lines: Sequence[str], separator: str) -> list[list[str]]:
    rows = [row for row in _split(lines, separator) if any(cell.strip() for cell in row)]
    if not rows:
        raise DataError(f"{path.name}: cannot be split into fields; look for unclosed quotes")
    return rows


def find_decimal(rows: Sequence[Sequence[str]], separator: str) -> str:
    """A comma only where the sample has numbers with a comma and none with a point."""
    if separator == ",":
        return "."
    cells = [cell.strip() for row in rows for cell in row]
    comma = any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    point = any(_DECIMAL_POINT.fullmatch(cell) for cell in cells)
    return "," if comma and not point else "."


def header_names(path: Path, first: tuple[str, ...], separator: str) -> tuple[str, ...]:
    """Names from the first line; a column without one is called ``unnamed k``.

    Raises
    ------
    DataError
        For one column only, repeated names, or a line that looks like a record.
    """
    if len(first) < 2:
        raise DataError(
            f"{path.name}: the first line holds one column ({first[0][:40]!r}) when split at "
            f"{separator!r}; pass --separator, or --skip-rows if the line is a remark"
        )
    if 2 * sum(_is_number(cell) for cell in first) >= len(first):
        raise DataError(
            f"{path.name}: the first line looks like a record ({', '.join(first[:3])[:40]}, …), "
            "not like column names; pass --names a,b,c"
        )
    names = tuple(name or f"unnamed {i + 1}" for i, name in enumerate(first))
    try:
        check_names(names, f"{path.name}, header")
    except ConfigurationError as error:
        raise DataError(str(error)) from None
    return names


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
