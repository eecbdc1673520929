"""``corrdp report``: the page that a privacy officer signs."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import Annotated, Any

import typer

from corrdp.cli.console import Output, note
from corrdp.cli.options import Json

__all__ = ["find_certificate", "run"]

PAGE = "report.html"


def run(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder of a fit, or its certificate.json."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; report.html in the folder by default."),
    ] = None,
    comparison: Annotated[
        Path | None,
        typer.Option(help="JSON list of {method, epsilon, accuracy} for a picture of accuracy."),
    ] = None,
    json: Json = False,
) -> None:
    """Write the report of a fit as one HTML file.

    Everything is recomputed from the ledger first; a certificate that does not hold is said not
    to hold on the page, and the command then exits with 1.
    """
    from corrdp.errors import VerificationError
    from corrdp.report import write_report
    from corrdp.verification import verify

    out = Output(json)
    path = find_certificate(folder)
    points = _points(comparison)
    result = verify(path)
    if result.certificate is None:
        raise VerificationError(f"{path}: {result.problems[0]}")
    target = path.with_name(PAGE) if output is None else output
    write_report(_marked(result), target, comparison=points)
    for problem in result.problems:
        note(f"does not hold: {problem}")
    out.line(f"{target}")
    out.result({"file": target, "holds": result.holds, "problems": result.problems})
    if not result.holds:
        raise typer.Exit(1)


def find_certificate(place: Path) -> Path:
    """The certificate of a folder, or the file itself."""
    from corrdp.errors import DataError

    path = place / "certificate.json" if place.is_dir() else place
    if not path.is_file():
        raise DataError(f"{path}: there is no such file; give the folder of a fit")
    return path


def _marked(result: Any) -> Any:
    """The recomputed certificate with all problems that verifying found."""
    from dataclasses import replace

    return replace(result.certificate, holds=result.holds, problems=tuple(result.problems))


def _points(path: Path | None) -> list[Any]:
    from corrdp.errors import DataError

    if path is None:
        return []
    try:
        points = json_.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as JSON ({error})") from None
    if not isinstance(points, list) or not all(isinstance(point, dict) for point in points):
        raise DataError(f"{path}: needs a list of {{method, epsilon, accuracy}}")
    return points
