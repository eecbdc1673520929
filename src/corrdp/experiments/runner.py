"""Runs an experiment: resumable, on several processes, every certificate kept."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from joblib import Parallel, delayed

from corrdp.errors import ConfigurationError
from corrdp.experiments.catalogue import experiment_named
from corrdp.experiments.experiment import Experiment, Run, planned
from corrdp.experiments.fitting import fit
from corrdp.experiments.results import Results, Row, read_rows, write_rows
from corrdp.experiments.task import Task
from corrdp.files import write_text
from corrdp.version import __version__

__all__ = ["RESULTS", "run_experiment", "was_quick"]

RESULTS, SETTINGS = "results.csv", "settings.json"
SAVE_EVERY = 10.0
Progress: TypeAlias = Callable[[int, int], None]


def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    seeds: int,
    epsilons: Sequence[float],
    quick: bool = False,
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
    seeds : int
    epsilons : sequence of float
    quick : bool
        Fewer records, as the experiment chooses.
    jobs : int
        Processes (joblib).
    time_limit : float, optional
        Seconds after which no new runs start.
    progress : callable, optional
        Called as ``progress(done, all)``.

    Raises
    ------
    ConfigurationError
        If the folder holds results of other settings.
    DatasetError
        If the data cannot be had.
    """
    runs = planned(experiment, seeds, epsilons)
    _check_settings(folder, {"quick": quick, "library_version": __version__})
    rows = list(read_rows(folder / RESULTS))
    done = {(r.dataset, r.label_role, r.method, r.epsilon, r.seed) for r in rows}
    missing = [one for one in runs if one.key not in done]
    if experiment.facts is not None and not rows:
        rows += experiment.facts(quick)
    finished, saved, started = len(runs) - len(missing), time.monotonic(), time.monotonic()
    try:
        with Parallel(n_jobs=jobs) as parallel:
            for batch in _batches(missing, max(1, 2 * jobs) if jobs != 1 else 1):
                if time_limit is not None and time.monotonic() - started > time_limit:
                    break
                todo = (delayed(_do)(experiment.name, one, folder, quick) for one in batch)
                for found in parallel(todo):
                    rows += found
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


def _check_settings(folder: Path, settings: dict[str, object]) -> None:
    """Results of different settings never stand in one file."""
    found = _settings(folder)
    if found is None:
        write_text(folder / SETTINGS, json.dumps(settings, indent=1) + "\n")
    elif found != settings:
        raise ConfigurationError(
            f"{folder} holds results of other settings ({found}); choose another --output or "
            "remove it"
        )


def _settings(folder: Path) -> object:
    """What stands in the folder's settings; None where there are none."""
    path = folder / SETTINGS
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return "unreadable"


def was_quick(folder: Path) -> bool:
    """Whether the results of a folder are those of a quick run."""
    found = _settings(folder)
    return isinstance(found, dict) and found.get("quick") is True


@lru_cache(maxsize=8)
def _task(name: str, dataset: str, label_role: str, seed: int, quick: bool) -> Task:
    """The task of a run; a process reads a data set once."""
    return experiment_named(name).load(dataset, label_role, seed, quick)


def _do(name: str, run: Run, folder: Path, quick: bool) -> list[Row]:
    """One run: its rows, for every table that they belong to; its certificate on disk."""
    task = _task(name, run.dataset, run.label_role, run.seed, quick)
    outcome = fit(task, run.method, run.epsilon, run.seed)
    kept = ""
    if outcome.certificate is not None:
        kept = run.certificate
        outcome.certificate.save(folder / kept)
    return [
        Row(
            run.dataset, role, run.method.name, run.epsilon, task.delta, run.seed, metric, value,
            kept,
        )
        for role in run.roles
        for metric, value in outcome.metrics.items()
    ]  # fmt: skip
