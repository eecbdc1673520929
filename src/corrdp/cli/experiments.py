"""``corrdp experiments``: the paper's evaluation, with honest baselines."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corrdp.cli.console import Output, note, steps_bar
from corrdp.cli.folder import check_folder
from corrdp.cli.options import Json

if TYPE_CHECKING:
    from corrdp.experiments.experiment import Experiment
    from corrdp.experiments.results import Results

__all__ = ["run"]

DOCUMENT, STOPPED = "experiments.md", 130


def run(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="synthetic, adult, sepsis, credit or medical; all; or document, which writes "
            "the tables of a folder's results.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for results.")] = Path(
        "experiments-out"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="3 seeds, two ε, fewer records.")] = False,
    seeds: Annotated[int | None, typer.Option(help="Runs behind every number; 10.")] = None,
    epsilons: Annotated[
        str | None, typer.Option(help="ε of the sensitive columns: .05,.1,.2,.5,1,2,5")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes.", min=1)] = 1,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds after which no new runs start.")
    ] = None,
    json: Json = False,
) -> None:
    """Run an experiment of the paper and judge its claims.

    Writes results.csv, figures, summary.json, report.html and every certificate to a folder of
    that name. A run that was stopped goes on from what is there.
    """
    from corrdp.experiments.report import check_extras

    out = Output(json)
    check_folder(output)
    check_extras()
    if name == "document":
        _document(out, output)
        return
    told = {
        one: _one(out, one, output, quick, seeds, epsilons, jobs, time_limit)
        for one in _names(name)
    }
    out.result(told)


def _names(name: str) -> tuple[str, ...]:
    from corrdp.experiments.catalogue import NAMES, experiment_named

    return NAMES if name == "all" else (experiment_named(name).name,)


def _one(
    out: Output,
    name: str,
    output: Path,
    quick: bool,
    seeds: int | None,
    epsilons: str | None,
    jobs: int,
    time_limit: float | None,
) -> dict[str, Any]:
    """Run one experiment, write what it found and print the verdicts."""
    from corrdp.experiments.catalogue import experiment_named
    from corrdp.experiments.experiment import EPSILONS, QUICK_EPSILONS, QUICK_SEEDS, SEEDS
    from corrdp.experiments.report import claims_text, summary, write_outputs
    from corrdp.experiments.runner import run_experiment

    experiment, folder = experiment_named(name), output / name
    usual = QUICK_SEEDS if quick else SEEDS
    grid = QUICK_EPSILONS if quick else EPSILONS
    started = time.perf_counter()
    try:
        with steps_bar(name, out) as progress:
            results = run_experiment(
                experiment,
                folder,
                seeds=usual if seeds is None else seeds,
                epsilons=grid if epsilons is None else _numbers(epsilons),
                quick=quick,
                jobs=jobs,
                time_limit=time_limit,
                progress=progress,
            )
    except KeyboardInterrupt:
        note(f"stopped; finished runs are kept in {folder}, the same command goes on from there")
        raise typer.Exit(STOPPED) from None
    files = write_outputs(experiment, results, folder)
    out.line(f"{experiment.title}: {time.perf_counter() - started:.0f} s")
    out.line(claims_text(experiment.judge(results)))
    out.line(f"  {files['report.html']}")
    return {**summary(experiment, results), "files": files}


def _numbers(text: str) -> tuple[float, ...]:
    from corrdp.errors import ConfigurationError

    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise ConfigurationError(f"--epsilons {text}: write numbers as .1,.5,1") from None


def _document(out: Output, output: Path) -> None:
    """Tables and verdicts of all results in a folder, as Markdown."""
    from corrdp.errors import DataError
    from corrdp.experiments.catalogue import NAMES, experiment_named
    from corrdp.experiments.document import document
    from corrdp.experiments.results import Results, read_rows
    from corrdp.experiments.runner import RESULTS, was_quick
    from corrdp.files import write_text

    found: list[tuple[Experiment, Results]] = []
    for name in NAMES:
        rows = read_rows(output / name / RESULTS)
        if rows:
            found.append((experiment_named(name), Results(rows)))
    if not found:
        raise DataError(f"{output}: no results of experiments; run corrdp experiments all first")
    path = output / DOCUMENT
    quick = {name for name in NAMES if was_quick(output / name)}
    write_text(path, document(found, quick))
    out.line(f"{path}")
    out.result({"file": path, "experiments": [one.name for one, _ in found]})
