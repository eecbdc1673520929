"""Runs an experiment: resumable, on several processes, every certificate kept."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from joblib import Parallel, delayed

from corrdp.errors import ConfigurationError, DataError
from corrdp.experiments.catalogue import experiment_named
from corrdp.experiments.experiment import (
    Experiment,
    Run,
    Table,
    check,
    chosen_tables,
    planned,
    remembered,
)
from corrdp.experiments.fitting import fit
from corrdp.experiments.results import Results, Row, read_rows, write_rows
from corrdp.experiments.settings import ExperimentSettings, remembered_settings
from corrdp.experiments.task import Task
from corrdp.files import write_text
from corrdp.version import __version__

__all__ = ["RESULTS", "folder_settings", "run_experiment"]

RESULTS, SETTINGS = "results.csv", "settings.json"
SAVE_EVERY = 10.0
Progress: TypeAlias = Callable[[int, int], None]


def run_experiment(
    experiment: Experiment,
    folder: Path,
    settings: ExperimentSettings,
    *,
    jobs: int = 1,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Results:
    """Do what is not done yet, and return everything that the folder then holds.

    Parameters
    ----------
    experiment : Experiment
    folder : Path
        Of this experiment; ``results.csv`` and ``certificates/`` are kept there as it goes, and
        runs that are there already are not done again.
    settings : ExperimentSettings
    jobs : int
        Processes (joblib).
    time_limit : float, optional
        Seconds after which no new runs start.
    progress : callable, optional
        Called as ``progress(done, all)``.

    Raises
    ------
    ConfigurationError
        If the experiment cannot be run so, or the folder holds results of other settings.
    DatasetError
        If the data cannot be had.
    """
    runs = planned(experiment, settings)
    _check_settings(folder, experiment, settings)
    rows = list(read_rows(folder / RESULTS))
    done = {_key(row) for row in rows}
    missing = [one for one in runs if not done.issuperset(one.keys)]
    if not rows:
        rows += _facts(experiment, settings)
    kept = remembered(experiment, settings)
    finished, saved, started = len(runs) - len(missing), time.monotonic(), time.monotonic()
    try:
        with Parallel(n_jobs=jobs) as parallel:
            for batch in _batches(missing, max(1, 2 * jobs) if jobs != 1 else 1):
                if time_limit is not None and not time.monotonic() - started <= time_limit:
                    break
                todo = (delayed(_do)(experiment.name, one, folder, kept) for one in batch)
                for found in parallel(todo):
                    rows += [row for row in found if _key(row) not in done]
                finished += len(batch)
                if progress is not None:
                    progress(finished, len(runs))
                if time.monotonic() - saved > SAVE_EVERY:
                    write_rows(rows, folder / RESULTS)
                    saved = time.monotonic()
    finally:
        write_rows(rows, folder / RESULTS)
    return Results(tuple(rows))


def _batches(runs: Sequence[Run], size: int) -> Iterable[Sequence[Run]]:
    return (runs[i : i + size] for i in range(0, len(runs), size))


def _key(row: Row) -> tuple[str, str, str, float, int]:
    return row.dataset, row.label_role, row.method, row.epsilon, row.seed


def _facts(experiment: Experiment, settings: ExperimentSettings) -> list[Row]:
    """Rows about the data, which are about the experiment's own sensitive columns."""
    own = all(table.given for table in chosen_tables(experiment, settings))
    return experiment.facts(settings) if own and experiment.facts is not None else []


def _check_settings(folder: Path, experiment: Experiment, settings: ExperimentSettings) -> None:
    """Refuse what cannot be run; results of different settings never stand in one file."""
    check(experiment, settings)
    entry = {**remembered(experiment, settings).to_entry(), "library_version": __version__}
    found = _stored(folder)
    if found is None:
        write_text(folder / SETTINGS, json.dumps(entry, indent=1) + "\n")
    elif found != entry:
        raise ConfigurationError(
            f"{folder} holds results of other settings ({found}, not {entry}); choose another "
            "--output or remove it"
        )


def _stored(folder: Path) -> object:
    """What stands in the folder's settings; None where there are none."""
    path = folder / SETTINGS
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return "unreadable"


def folder_settings(folder: Path) -> ExperimentSettings:
    """The settings behind the results of a folder; the usual where none are stored.

    Raises
    ------
    DataError
        If they cannot be read.
    """
    found = _stored(folder)
    if found is None:
        return ExperimentSettings()
    try:
        if not isinstance(found, dict):
            raise ConfigurationError("cannot be read")
        return remembered_settings({k: v for k, v in found.items() if k != "library_version"})
    except ConfigurationError as error:
        raise DataError(f"{folder / SETTINGS}: {error}; run the experiment anew") from None


@lru_cache(maxsize=8)
def _task(name: str, table: Table, seed: int, settings: ExperimentSettings) -> Task:
    """The task of a run; a process reads a data set once."""
    return experiment_named(name).load(table, seed, settings)


def _do(name: str, run: Run, folder: Path, settings: ExperimentSettings) -> list[Row]:
    """One run: its rows, for every table that they belong to; its certificate on disk."""
    seed = run.seed if run.table.fresh else 0
    task = _task(name, run.table, seed, settings)
    outcome = fit(task, run.method, run.epsilon, run.seed)
    kept = ""
    if outcome.certificate is not None:
        kept = run.certificate
        outcome.certificate.save(folder / kept)
    return [
        Row(
            run.table.dataset, role, run.method.name, run.epsilon, task.delta, run.seed, metric,
            value, kept,
        )
        for role in run.roles
        for metric, value in outcome.metrics.items()
    ]  # fmt: skip
