"""Running, stopping, going on, and what is left behind; on a small simulated table."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corrdp.errors import ConfigurationError
from corrdp.experiments import catalogue, runner, synthetic
from corrdp.experiments.document import document
from corrdp.experiments.evaluation import Evaluation
from corrdp.experiments.experiment import Experiment, Table, planned
from corrdp.experiments.report import costs
from corrdp.experiments.results import FIELDS, Results, Row, read_rows
from corrdp.experiments.settings import ExperimentSettings
from corrdp.schema import Role
from corrdp.verification import verify
from corrdp.version import __version__
from tests.cli.conftest import Command, corrdp

__all__ = ["corrdp"]

TABLE = (synthetic.MAIN, "public")
ROLES: tuple[Role, ...] = ("public", "insensitive")
METHODS = ("non-private", "DP", "semi", "CorrDP given")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """The synthetic experiment on 600 records of five columns, four ways, two roles."""
    for name, value in {"QUICK_RECORDS": 600, "COLUMNS": 5, "SENSITIVE": 1}.items():
        monkeypatch.setattr(synthetic, name, value)
    synthetic._simulated.cache_clear()
    runner._task.cache_clear()
    tables = tuple(Table(synthetic.MAIN, role, ("s1",), METHODS, fresh=True) for role in ROLES)
    experiment = replace(synthetic.EXPERIMENT, tables=tables)
    monkeypatch.setattr(synthetic, "EXPERIMENT", experiment)
    return experiment


ONE = ExperimentSettings(epsilons=(1.0,), seeds=1, quick=True)


def go(
    experiment: Experiment,
    folder: Path,
    settings: ExperimentSettings = ONE,
    time_limit: float | None = None,
) -> Results:
    return runner.run_experiment(experiment, folder, settings, time_limit=time_limit)


def without_time(results: Results) -> list[Row]:
    return [row for row in results.rows if row.metric != "seconds"]


def test_plan_runs_blind_ways_once(tiny: Experiment) -> None:
    runs = planned(tiny, ExperimentSettings(seeds=2, epsilons=(0.5, 1.0)))
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)
    blind = [run for run in runs if run.method.name in ("DP", "non-private")]
    assert {run.table.label_role for run in blind} == {"public"}
    assert {run.roles for run in blind} == {("public", "insensitive")}
    # per seed: non-private, DP at two ε, and two ways in two tables at two ε
    assert len(runs) == 2 * (1 + 2 + 2 * 2 * 2)


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


@pytest.mark.parametrize("limit", [-1.0, float("nan")])
def test_a_time_limit_starts_nothing_new(tiny: Experiment, tmp_path: Path, limit: float) -> None:
    assert go(tiny, tmp_path, time_limit=limit).rows == ()
    assert (tmp_path / "results.csv").read_text(encoding="utf-8").strip() == ",".join(FIELDS)


@pytest.mark.parametrize("other", [{"quick": False}, {"delta": 1e-7}, {"solver": "sgd"}])
def test_other_settings_are_refused(
    tiny: Experiment, tmp_path: Path, other: dict[str, Any]
) -> None:
    go(tiny, tmp_path, time_limit=-1.0)
    with pytest.raises(ConfigurationError, match="other settings"):
        go(tiny, tmp_path, replace(ONE, **other), time_limit=-1.0)


def test_a_folder_that_an_older_command_left_goes_on(tiny: Experiment, tmp_path: Path) -> None:
    old = {"quick": True, "library_version": __version__}
    (tmp_path / "settings.json").write_text(json.dumps(old, indent=1) + "\n", encoding="utf-8")
    before = (tmp_path / "settings.json").read_bytes()
    assert go(tiny, tmp_path).rows
    assert (tmp_path / "settings.json").read_bytes() == before
    assert runner.folder_settings(tmp_path) == ExperimentSettings(quick=True)


def test_what_cannot_be_run_leaves_nothing(tiny: Experiment, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="1/n"):
        go(tiny, tmp_path / "out", replace(ONE, delta=0.01))
    assert not (tmp_path / "out").exists()


def test_the_same_seed_gives_the_same_rows(tiny: Experiment, tmp_path: Path) -> None:
    first, second = (without_time(go(tiny, tmp_path / name)) for name in ("a", "b"))
    assert first == second


def test_one_table_first_and_the_others_later(tiny: Experiment, tmp_path: Path) -> None:
    alone = go(tiny, tmp_path / "a", replace(ONE, label_roles=("insensitive",)))
    assert alone.tables == ((synthetic.MAIN, "insensitive"),)
    later, at_once = go(tiny, tmp_path / "a"), go(tiny, tmp_path / "b")
    key = ["dataset", "label_role", "method", "metric"]
    first, second = (
        sorted((*(getattr(row, name) for name in key), row.value) for row in without_time(found))
        for found in (later, at_once)
    )
    assert first == second


def test_delta_and_solver_reach_the_certificate(tiny: Experiment, tmp_path: Path) -> None:
    asked = replace(ONE, label_roles=("public",))
    usual = go(tiny, tmp_path / "a", asked)
    sampled = go(tiny, tmp_path / "b", replace(asked, solver="sgd", delta=1e-5))
    assert {row.delta for row in sampled.rows} == {1e-5}
    noise = [found.estimate(TABLE, "DP", 1.0, "noise").mean for found in (usual, sampled)]
    assert noise[0] != noise[1]
    (path,) = {
        r.certificate for r in sampled.rows if r.method == "semi" and "public" in r.certificate
    }
    found = verify(tmp_path / "b" / path)
    assert found.holds
    assert found.certificate is not None
    assert found.certificate.delta == 1e-5
    assert '"rate": 0.' in (tmp_path / "b" / path).read_text(encoding="utf-8")


def test_time_counts_once_for_a_run_in_several_tables(tiny: Experiment, tmp_path: Path) -> None:
    found = costs(go(tiny, tmp_path))
    assert {table: runs for table, (runs, _) in found.items()} == {
        (synthetic.MAIN, "public"): 4,
        (synthetic.MAIN, "insensitive"): 2,
    }
    assert all(seconds > 0 for _, seconds in found.values())


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
    results = go(tiny, tmp_path / "synthetic", replace(ONE, seeds=2))
    assert corrdp("experiments", "document", "-o", tmp_path).code == 0
    text = (tmp_path / "experiments.md").read_text(encoding="utf-8")
    assert text == document([Evaluation(tiny, ExperimentSettings(quick=True), results)])
    assert "## Claim (a)" in text
    assert "| synthetic, public label | s1 | 1e-6 | full-batch | quick | 1 | 2 |  | 8 |" in text
    assert "(2 seeds: 12.7 standard errors)" in text
    assert "nan" not in text


@pytest.mark.parametrize(("seeds", "said"), [(3, "(3 seeds: 4.3 standard errors)"), (10, "")])
def test_document_calls_intervals_wide_only_where_they_are(seeds: int, said: str) -> None:
    rows = tuple(
        Row(*TABLE, method, 1.0, 1e-6, seed, "excess risk", 1.0 + seed)
        for method in ("DP", "semi", "CorrDP given")
        for seed in range(seeds)
    )
    settings = ExperimentSettings(delta=1e-7, solver="sgd")
    text = document([Evaluation(synthetic.EXPERIMENT, settings, Results(rows))])
    assert ("few seeds" in text) == bool(said)
    assert said in text
    row = next(line for line in text.splitlines() if line.startswith("| synthetic, public"))
    assert f"| s1, s2, s3 | 1e-7 | Poisson-sampled | all | 1 | {seeds} |" in row
    assert "1e-6" not in text.replace("penalty of 1e-6", "")


def test_other_sensitive_columns_are_said_everywhere(
    corrdp: Command, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORRDP_DATA_HOME", str(data_dir))
    asked = ("--sensitive", "sex", "--label-role", "insensitive", "--calibration", "optimal")
    few = ("--quick", "--seeds", 1, "--epsilons", 1, "-o", tmp_path)
    done = corrdp("experiments", "medical", *asked, *few, "--json")
    assert done.code == 0
    (claim,) = done.data["medical"]["claims"]
    assert claim["verdict"] == "not run"
    assert "No distances are given for the sensitive columns sex" in claim["why"]
    assert "'CorrDP given' and 'published, given'" in claim["why"]
    results = Results(read_rows(tmp_path / "medical" / "results.csv"))
    assert results.tables == (("medical S=sex", "insensitive"),)
    assert set(results.methods(results.tables[0])) == {
        "non-private", "partial", "DP", "DP, one scale", "semi", "d = 1 per column", "CorrDP UCB",
        "CorrDP private",
    }  # fmt: skip
    page = (tmp_path / "medical" / "report.html").read_text(encoding="utf-8")
    assert "No distances are given for the sensitive columns sex" in page
    assert "Not run: CorrDP given; published, given; published, UCB." in page
    assert corrdp("experiments", "document", "-o", tmp_path).code == 0
    text = (tmp_path / "experiments.md").read_text(encoding="utf-8")
    assert "No distances are given for the sensitive columns sex" in text
    assert "| medical S=sex, insensitive label | sex | 1e-6 |" in text
    refused = corrdp("experiments", "medical", "--quick", "-o", tmp_path)
    assert refused.code == 2
    assert "other settings" in refused.err


def test_all_goes_through_the_five(
    corrdp: Command, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORRDP_DATA_HOME", str(data_dir))
    done = corrdp("experiments", "all", "--quick", "--time-limit", -1, "-o", tmp_path, "--json")
    assert done.code == 0
    assert tuple(done.data) == catalogue.NAMES
    for name in catalogue.NAMES:
        assert (tmp_path / name / "summary.json").is_file()
        assert {claim["verdict"] for claim in done.data[name]["claims"]} == {"not run"}
        assert all(claim["why"] for claim in done.data[name]["claims"])
        assert done.data[name]["settings"]["delta"] == 1e-6


@pytest.mark.parametrize(
    ("option", "value"), [("--sensitive", "sex"), ("--delta", "0.1"), ("--label-role", "public")]
)
def test_all_refuses_before_anything_runs(
    corrdp: Command, tmp_path: Path, option: str, value: str
) -> None:
    done = corrdp("experiments", "all", "--quick", option, value, "-o", tmp_path / "out")
    assert done.code == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("iris",),
        ("synthetic", "--epsilons", "x"),
        ("synthetic", "--seeds", "0"),
        ("synthetic", "--delta", "0.01"),
        ("synthetic", "--delta", "nan"),
        ("synthetic", "--sensitive", "u1"),
        ("synthetic", "--label-role", "secret"),
        ("synthetic", "--calibration", "best"),
        ("synthetic", "--solver", "newton"),
    ],
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
