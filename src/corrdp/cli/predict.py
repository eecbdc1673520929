"""``corrdp predict``: scores for new records."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated, Any

import typer

from corrdp.cli.console import Output
from corrdp.cli.options import DataFile, Decimal, Json, Names, Separator, SkipRows, file_options

__all__ = ["run"]


def run(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="Folder of a fit, or its model.json."),
    ],
    data: DataFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file to write; else printed.")
    ] = None,
    names: Names = None,
    skip_rows: SkipRows = None,
    separator: Separator = None,
    decimal: Decimal = None,
    json: Json = False,
) -> None:
    """Score the records of DATA, one line each, in their order.

    A label column in DATA is not needed and not used. Scores are computed from the released
    model: they cost the training records no further privacy.
    """
    from corrdp import load
    from corrdp.files import write_text
    from corrdp.plan_file import file_section
    from corrdp.tables import read_table

    out = Output(json)
    path = model / "model.json" if model.is_dir() else model
    fitted = load(path)
    stated = file_options(names, skip_rows, separator, decimal)
    options = file_section(path.with_name("plan.toml")).overridden(stated)
    table = read_table(data, fitted.schema, options, label="ignored")
    scores = score_columns(fitted, table.columns)
    result: dict[str, Any] = {"records": table.size, "model": path}
    if output is not None:
        write_text(output, as_csv(scores))
        out.line(f"Wrote {table.size:,} scores to {output}")
        result["file"] = output
    else:
        out.line(as_csv(scores).rstrip("\n"))
        result["scores"] = scores
    out.result(result)


def score_columns(model: Any, columns: Any) -> dict[str, list[Any]]:
    """``prediction``, and for classes the probability of the positive one."""
    if not hasattr(model, "predict_proba"):
        return {"prediction": [float(value) for value in model.predict(columns)]}
    probability = model.predict_proba(columns)[:, 1]
    predicted = model.classes_[(probability > 0.5).astype(int)].tolist()
    positive = f"probability of {model.classes_[1]}"
    return {"prediction": predicted, positive: [float(value) for value in probability]}


def as_csv(scores: dict[str, list[Any]]) -> str:
    """Columns as CSV text; numbers with ten digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(scores)
    columns = [[_cell(value) for value in values] for values in scores.values()]
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()


def _cell(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)
