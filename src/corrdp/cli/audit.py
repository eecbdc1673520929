"""``corrdp audit``: attack the mechanism of a fit and compare with its claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corrdp.cli.console import Output, steps_bar
from corrdp.cli.options import Json
from corrdp.cli.report import find_certificate

__all__ = ["run"]


def run(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder of a fit, or its certificate.json."),
    ],
    runs: Annotated[int, typer.Option(help="Runs on either side of every attack.")] = 1000,
    steps: Annotated[
        int, typer.Option(help="Length of the runs under attack (linear models).")
    ] = 3,
    confidence: Annotated[float, typer.Option(help="For all rows together.")] = 0.95,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds after which no new runs start.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 takes all cores.")] = 1,
    seed: Annotated[int | None, typer.Option(help="For a repeatable audit.")] = None,
    json: Json = False,
) -> None:
    """Attack the mechanism behind a certificate; no data is read.

    For every kind of change two neighbouring worst-case tables are built that the mechanism
    tells apart as well as its bounds allow. Exits with 1 when a lower bound exceeds its claim. An
    audit can refute a claim, it cannot prove one.
    """
    from corrdp.audit import attacks_on, run_attacks
    from corrdp.errors import VerificationError
    from corrdp.verification import verify

    out = Output(json)
    result = verify(find_certificate(folder))
    if result.certificate is None:
        raise VerificationError(f"{folder}: {result.problems[0]}")
    attacks = attacks_on(result.certificate, steps)
    with steps_bar("attacking", out) as progress:
        report = run_attacks(
            attacks,
            runs=runs,
            confidence=confidence,
            time_limit=time_limit,
            n_jobs=jobs,
            progress=progress,
            random_state=seed,
        )
    out.line(str(report))
    out.result({**report.to_dict(), "violated": len(report.violated)})
    if report.violated:
        raise typer.Exit(1)
