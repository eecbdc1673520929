"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from corrdp.tables import FileOptions

__all__ = [
    "DataFile",
    "Decimal",
    "Json",
    "Names",
    "PlanFile",
    "Separator",
    "SkipRows",
    "file_options",
]

DataFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="DATA", help="CSV or Parquet file.", show_default=False)
]
PlanFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="PLAN", help="plan.toml", show_default=False)
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of text.")
]
Names: TypeAlias = Annotated[
    str | None,
    typer.Option("--names", help="Column names a,b,c for a file without a header line."),
]
SkipRows: TypeAlias = Annotated[
    int | None, typer.Option("--skip-rows", help="Lines to leave out at the start of the file.")
]
Separator: TypeAlias = Annotated[
    str | None,
    typer.Option("--separator", help="One character, or tab; found from the file by default."),
]
Decimal: TypeAlias = Annotated[
    str | None, typer.Option("--decimal", help="Decimal sign, '.' or ','; found by default.")
]


def file_options(
    names: str | None, skip_rows: int | None, separator: str | None, decimal: str | None
) -> FileOptions:
    """The options as one value; what was not given keeps its default."""
    from corrdp.tables import FileOptions

    listed = None if names is None else tuple(name.strip() for name in names.split(","))
    mark = {"tab": "\t", "\\t": "\t"}.get(separator or "", separator)
    return FileOptions(listed, 0 if skip_rows is None else skip_rows, mark, decimal)
