"""``corrdp experiments``: the paper's evaluation, with honest baselines."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from corrdp.cli.console import Output, note, steps_bar
from corrdp.cli.folder import check_folder
from corrdp.cli.options import Json

if TYPE_CHECKING:
    from corrdp.experiments.settings import ExperimentSettings

__all__ = ["run"]

DOCUMENT, STOPPED = "experiments.md", 130

Name: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="synthetic, adult, sepsis, credit or medical; all; or document, which writes the "
        "tables of a folder's results.",
        show_default=False,
    ),
]
Folder: TypeAlias = Annotated[Path, typer.Option("--output", "-o", help="Folder for results.")]
Quick: TypeAlias = Annotated[
    bool, typer.Option("--quick", help="3 seeds, two ε, fewer records.")
]  # fmt: skip
Seeds: TypeAlias = Annotated[int | None, typer.Option(help="Runs behind every number; 10.")]
Epsilons: TypeAlias = Annotated[
    str | None, typer.Option(help="ε of the sensitive columns: .05,.1,.2,.5,1,2,5")
]
Delta: TypeAlias = Annotated[float | None, typer.Option(help="δ of every run; 1e-6.")]
Sensitive: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Sensitive columns, as sex,age; the experiment's own. No distances are given for "
        "others: what needs them is left out."
    ),
]
LabelRole: TypeAlias = Annotated[
    str | None, typer.Option(help="Tables to run: insensitive,sensitive (synthetic also public).")
]
SolverName: TypeAlias = Annotated[
    str, typer.Option(help="Steps on all records (gradient) or on samples (sgd).")
]
Calibrations: TypeAlias = Annotated[
    str, typer.Option("--calibration", help="CorrDP's ways to run; baselines always are.")
]
Jobs: TypeAlias = Annotated[int, typer.Option(help="Processes.", min=1)]
TimeLimit: TypeAlias = Annotated[
    float | None, typer.Option(help="Seconds after which no new runs start.")
]


def run(
    name: Name,
    output: Folder = Path("experiments-out"),
    quick: Quick = False,
    seeds: Seeds = None,
    epsilons: Epsilons = None,
    delta: Delta = None,
    sensitive: Sensitive = None,
    label_role: LabelRole = None,
    solver: SolverName = "gradient",
    calibration: Calibrations = "optimal,published",
    jobs: Jobs = 1,
    time_limit: TimeLimit = None,
    json: Json = False,
) -> None:
    """Run an experiment of the paper and judge its claims.

    Writes results.csv, figures, summary.json, report.html and every certificate to a folder of
    that name. A run that was stopped goes on from what is there.
    """
    from corrdp.experiments.catalogue import experiment_named
    from corrdp.experiments.experiment import check
    from corrdp.experiments.report import check_extras
    from corrdp.experiments.settings import ExperimentSettings

    out = Output(json)
    check_folder(output)
    check_extras()
    if name == "document":
        _document(out, output)
        return
    settings = ExperimentSettings(
        epsilons=_numbers(epsilons),
        delta=delta,
        sensitive=_list(sensitive),
        label_roles=_list(label_role),  # type: ignore[arg-type]  # the settings check names
        seeds=seeds,
        solver=solver,  # type: ignore[arg-type]
        calibration=_list(calibration),  # type: ignore[arg-type]
        quick=quick,
    )
    names = _names(name)
    for one in names:
        check(experiment_named(one), settings)
    told = {one: _one(out, one, output / one, settings, jobs, time_limit) for one in names}
    out.result(told)


def _names(name: str) -> tuple[str, ...]:
    from corrdp.experiments.catalogue import NAMES, experiment_named

    return NAMES if name == "all" else (experiment_named(name).name,)


def _list(text: str | None) -> tuple[str, ...] | None:
    """Names between commas."""
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def _numbers(text: str | None) -> tuple[float, ...] | None:
    from corrdp.errors import ConfigurationError

    try:
        return None if text is None else tuple(float(part) for part in _list(text) or ())
    except ValueError:
        raise ConfigurationError(f"--epsilons {text}: write numbers as .1,.5,1") from None


def _one(
    out: Output,
    name: str,
    folder: Path,
    settings: ExperimentSettings,
    jobs: int,
    time_limit: float | None,
) -> dict[str, Any]:
    """Run one experiment, write what it found and print the verdicts."""
    from corrdp.experiments.catalogue import experiment_named
    from corrdp.experiments.evaluation import Evaluation
    from corrdp.experiments.report import claims_text, summary, write_outputs
    from corrdp.experiments.runner import run_experiment

    experiment, started = experiment_named(name), time.perf_counter()
    try:
        with steps_bar(name, out) as progress:
            results = run_experiment(
                experiment,
                folder,
                settings,
                jobs=jobs,
                time_limit=time_limit,
                progress=progress,
            )
    except KeyboardInterrupt:
        note(f"stopped; finished runs are kept in {folder}, the same command goes on from there")
        raise typer.Exit(STOPPED) from None
    evaluation = Evaluation(experiment, settings, results)
    files = write_outputs(evaluation, folder)
    out.line(f"{experiment.title}: {time.perf_counter() - started:.0f} s")
    out.line(f"  {evaluation.described}")
    out.line(claims_text(evaluation.claims))
    out.line(f"  {files['report.html']}")
    return {**summary(evaluation), "files": files}


def _document(out: Output, output: Path) -> None:
    """Tables and verdicts of all results in a folder, as Markdown."""
    from corrdp.errors import DataError
    from corrdp.experiments.catalogue import NAMES, experiment_named
    from corrdp.experiments.document import document
    from corrdp.experiments.evaluation import Evaluation
    from corrdp.experiments.results import Results, read_rows
    from corrdp.experiments.runner import RESULTS, folder_settings
    from corrdp.files import write_text

    found: list[Evaluation] = []
    for name in NAMES:
        rows = read_rows(output / name / RESULTS)
        if rows:
            settings = folder_settings(output / name)
            found.append(Evaluation(experiment_named(name), settings, Results(rows)))
    if not found:
        raise DataError(f"{output}: no results of experiments; run corrdp experiments all first")
    path = output / DOCUMENT
    write_text(path, document(found))
    out.line(f"{path}")
    out.result({"file": path, "experiments": [one.experiment.name for one in found]})
