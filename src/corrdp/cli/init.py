"""``corrdp init``: draft a plan from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corrdp.cli.console import Output
from corrdp.cli.options import DataFile, Decimal, Json, Names, Separator, SkipRows, file_options

__all__ = ["run"]


def run(
    data: DataFile,
    label: Annotated[str, typer.Option(help="Column that is to be predicted.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")] = Path(
        "plan.toml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing plan.")] = False,
    names: Names = None,
    skip_rows: SkipRows = None,
    separator: Separator = None,
    decimal: Decimal = None,
    json: Json = False,
) -> None:
    """Draft plan.toml from a CSV or Parquet file.

    Kinds, levels and bounds are guessed from the file, and every guess carries confirmed = false:
    bounds learned from private records are a leak until a person has checked them against public
    knowledge. `corrdp fit` refuses until then.
    """
    from corrdp.draft import draft_plan
    from corrdp.errors import ConfigurationError
    from corrdp.files import write_text

    out = Output(json)
    if output.exists() and not force:
        raise ConfigurationError(f"{output} exists; choose another --output or pass --force")
    options = file_options(names, skip_rows, separator, decimal)
    draft = draft_plan(data, label, options, "private")
    write_text(output, draft.text)
    out.line(f"{data.name}: {draft.records:,} records, {len(draft.kinds)} columns")
    for kind in ("numeric", "categorical", "ignored", "label"):
        members = [name for name, drafted in draft.kinds.items() if drafted == kind]
        if members:
            out.line(f"  {kind:<12} {', '.join(members)}")
    for warning in draft.warnings:
        out.line(f"warning: {warning}")
    out.line()
    out.line(f"Wrote {output}. Now edit it: for every column check bounds or levels against")
    out.line("public knowledge, choose the role, set confirmed = true. Then:")
    out.line(f"  corrdp fit {data} {output} -o out/")
    out.result(
        {
            "plan": output,
            "records": draft.records,
            "columns": draft.kinds,
            "warnings": draft.warnings,
        }
    )
