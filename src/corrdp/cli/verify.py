"""``corrdp verify``: recompute a certificate from what was released."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corrdp.cli.console import Output, note
from corrdp.cli.options import Json

__all__ = ["run"]


def run(
    certificate: Annotated[
        Path,
        typer.Argument(metavar="CERTIFICATE", help="certificate.json, or the folder of a fit."),
    ],
    json: Json = False,
) -> None:
    """Check that a certificate holds.

    Recomputes sensitivities from the schema and the released iterates, checks the budget of
    every step, the stated guarantees, the digests, and the model beside the file. Exits with 1
    when anything does not hold. It proves the arithmetic, not that the run happened.
    """
    from corrdp.errors import DataError
    from corrdp.verification import verify

    out = Output(json)
    path = certificate / "certificate.json" if certificate.is_dir() else certificate
    if not path.is_file():
        raise DataError(f"{path}: there is no such file; give certificate.json of a fit")
    result = verify(path)
    if result.certificate is not None:
        out.line(str(result.certificate))
        out.line()
    if result.holds:
        out.line(f"{path}: everything was recomputed and holds.")
    for problem in result.problems:
        note(f"does not hold: {problem}")
    found = result.certificate
    out.result(
        {
            "holds": result.holds,
            "problems": result.problems,
            "certificate": None if found is None else found.claims(),
            "file": path,
        }
    )
    if not result.holds:
        raise typer.Exit(1)
