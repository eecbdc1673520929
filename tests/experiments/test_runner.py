"""Running, stopping, going on, and what is left behind; on a small simulated table."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from corrdp.errors import ConfigurationError
from corrdp.experiments import catalogue, runner, synthetic
from corrdp.experiments.document import document
from corrdp.experiments.experiment import Experiment, Table, planned
from corrdp.experiments.results import FIELDS, Results, read_rows
from corrdp.verification import verify
from tests.cli.conftest import Command, corrdp

__all__ = ["corrdp"]

METHODS = ("non-private", "DP", "semi", "CorrDP given")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """The synthetic experiment on 600 records of five columns, four ways, two roles."""
    for name, value in {"QUICK_RECORDS": 600, "COLUMNS": 5, "SENSITIVE": 1}.items():
        monkeypatch.setattr(synthetic, name, value)
    synthetic._simulated.cache_clear()
    runner._task.cache_clear()
    tables = tuple(
        Table(synthetic.MAIN, role, METHODS, fresh=True) for role in ("public", "insensitive")
    )
    experiment = replace(synthetic.EXPERIMENT, tables=tables)
    monkeypatch.setattr(synthetic, "EXPERIMENT", experiment)
    return experiment


def go(experiment: Experiment, folder: Path, seeds: int = 1, **options: float | None) -> Results:
    return runner.run_experiment(
        experiment, folder, seeds=seeds, epsilons=(1.0,), quick=True, **options
    )


def test_plan_runs_blind_ways_once(tiny: Experiment) -> None:
    runs = planned(tiny, 2, (0.5, 1.0))
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)
    blind = [run for run in runs if run.method.name in ("DP", "non-private")]
    assert {run.label_role for run in blind} == {"public"}
    assert {run.roles for run in blind} == {("public", "insensitive")}
    # per seed: non-private, DP at two ε, and two ways in two tables at two ε
    assert len(runs) == 2 * (1 + 2 + 2 * 2 * 2)


@pytest.mark.parametrize(("seeds", "epsilon"), [(0, 1.0), (1, 0.0), (1, math.nan), (1, math.inf)])
def test_plan_refuses(tiny: Experiment, seeds: int, epsilon: float) -> None:
    with pytest.raises(ConfigurationError):
        planned(tiny, seeds, (epsilon,))


def test_every_certificate_is_kept_and_verifies(tiny: Experiment, tmp_path: Path) -> None:
    results = go(tiny, tmp_path)
    kept = {row.certificate for row in results.rows if row.certificate}
    assert len(kept) == 5
    assert kept == {str(p.relative_to(tmp_path)) for p in tmp_path.glob("certificates/**/*.json")}
    for path in kept:
        found = verify(tmp_path / path)
        assert found.holds
        assert found.certificate is not None
        assert found.certificate.seeded
    noiseless = [row for row in results.rows if row.method == "non-private"]
    assert noiseless
    assert all(row.certificate == "" and math.isinf(row.epsilon) for row in noiseless)


def test_a_stopped_run_goes_on(
    tiny: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit, calls = runner.fit, []

    def counted(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fit(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "fit", counted)
    with pytest.raises(KeyboardInterrupt):
        go(tiny, tmp_path)
    assert len({row.method for row in read_rows(tmp_path / "results.csv")}) == 2
    results = go(tiny, tmp_path)
    assert len(calls) == 3 + 4
    again = go(tiny, tmp_path)
    assert len(calls) == 3 + 4
    assert again.rows == results.rows == read_rows(tmp_path / "results.csv")


def test_a_time_limit_starts_nothing_new(tiny: Experiment, tmp_path: Path) -> None:
    assert go(tiny, tmp_path, time_limit=-1.0).rows == ()
    assert (tmp_path / "results.csv").read_text(encoding="utf-8").strip() == ",".join(FIELDS)


def test_other_settings_are_refused(tiny: Experiment, tmp_path: Path) -> None:
    go(tiny, tmp_path, time_limit=-1.0)
    with pytest.raises(ConfigurationError, match="other settings"):
        runner.run_experiment(tiny, tmp_path, seeds=1, epsilons=(1.0,), quick=False)


def test_the_same_seed_gives_the_same_rows(tiny: Experiment, tmp_path: Path) -> None:
    first, second = (
        [row for row in go(tiny, tmp_path / name).rows if row.metric != "seconds"]
        for name in ("a", "b")
    )
    assert first == second


def test_unknown_names_are_listed() -> None:
    with pytest.raises(ConfigurationError, match="synthetic, adult, sepsis, credit, medical"):
        catalogue.experiment_named("iris")


def test_command_writes_everything(tiny: Experiment, corrdp: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = corrdp(
        "experiments",
        "synthetic",
        "--quick",
        "--seeds",
        2,
        "--epsilons",
        ".5,1",
        "-o",
        out,
        "--json",
    )
    assert done.code == 0
    claims = {claim["letter"]: claim for claim in done.data["synthetic"]["claims"]}
    assert set(claims) == {"a", "f", "g"}
    assert claims["f"]["verdict"] == "not run"
    names = {path.name for path in (out / "synthetic").iterdir()}
    assert {"results.csv", "report.html", "summary.json", "synthetic-public.png"} <= names
    assert {"synthetic-public.svg", "synthetic-insensitive.svg", "certificates"} <= names
    page = (out / "synthetic" / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert page.count("<svg") == 2
    assert "CorrDP given" in page
    stored = json.loads((out / "synthetic" / "summary.json").read_text(encoding="utf-8"))
    assert stored["claims"] == done.data["synthetic"]["claims"]


def test_document_has_every_claim(tiny: Experiment, corrdp: Command, tmp_path: Path) -> None:
    results = go(tiny, tmp_path / "synthetic", seeds=2)
    assert corrdp("experiments", "document", "-o", tmp_path).code == 0
    text = (tmp_path / "experiments.md").read_text(encoding="utf-8")
    assert text == document([(tiny, results)], {"synthetic"})
    assert "## Claim (a)" in text
    assert "| synthetic, public label | 2 | quick | 1 |  |" in text
    assert "nan" not in text


@pytest.mark.parametrize(
    "arguments", [("iris",), ("synthetic", "--epsilons", "x"), ("synthetic", "--seeds", "0")]
)
def test_wrong_arguments_are_one_line(
    corrdp: Command,
    tmp_path: Path,
    arguments: tuple[str, ...],
) -> None:
    done = corrdp("experiments", *arguments, "-o", tmp_path / "out")
    assert done.code == 2
    assert len(done.err.strip().splitlines()) == 1


def test_no_results_no_document(corrdp: Command, tmp_path: Path) -> None:
    done = corrdp("experiments", "document", "-o", tmp_path / "out")
    assert done.code == 2
    assert "no results" in done.err
    assert not (tmp_path / "out").exists()


def test_missing_extras_are_named_before_anything_runs(
    corrdp: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = corrdp("experiments", "synthetic", "-o", tmp_path / "out")
    assert done.code == 2
    assert "corrdp[report]" in done.err
