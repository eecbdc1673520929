"""Quick runs of all five experiments from the command line, on the real data sets.

Each leaves results, figures, certificates, a page and a summary with every claim judged; and at
these fixed seeds the directions that reproduce, and those that do not, are those documented.
Whoever changes noise, allocation or the training's defaults so that a direction turns finds out
here. Thresholds leave room for other platforms, not for another direction.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from corrdp.experiments import synthetic
from corrdp.experiments.catalogue import NAMES, experiment_named
from corrdp.experiments.experiment import Experiment, planned
from corrdp.experiments.results import Results, read_rows
from corrdp.experiments.settings import ExperimentSettings
from corrdp.verification import verify
from tests.cli.conftest import Command, corrdp

__all__ = ["corrdp"]

SMALL, LARGE = 0.1, 1.0


@dataclass(frozen=True)
class Means:
    """Means over the seeds of one metric in one table."""

    results: Results
    table: tuple[str, str]
    metric: str

    def __call__(self, method: str, epsilon: float) -> float:
        found = self.results.estimate(self.table, method, epsilon, self.metric)
        assert found.runs, f"{method} at {epsilon} was not run"
        return found.mean


def ridge(results: Results) -> None:
    """Claims (a), (f) and (g): near semi with a public label, DP with a label of distance 1."""
    risk = Means(results, ("synthetic", "public"), "excess risk")
    for epsilon in (SMALL, LARGE):
        dp, given, semi = (risk(name, epsilon) for name in ("DP", "CorrDP given", "semi"))
        assert dp > 2 * given
        assert dp - given > 0.8 * (dp - semi)
    assert risk("CorrDP private", SMALL) < 0.7 * risk("DP", SMALL)
    noise = Means(results, ("synthetic", "insensitive"), "noise")
    assert noise("CorrDP given", SMALL) == pytest.approx(noise("DP", SMALL), rel=0.02)
    ratios = []
    for columns in (5, 20, 80):
        swept = Means(results, (synthetic.width_name(columns), "public"), "noise")
        ratios.append(swept("DP, one scale", 0.5) / swept("published, given", 0.5))
    # √(m / noise dimension): 1.4, 2.8, 4.6
    assert ratios[1] > 1.6 * ratios[0] > 1.6
    assert ratios[2] > 1.4 * ratios[1]
    certified = Means(results, ("synthetic", "public"), "holds")
    assert certified("published, given", LARGE) == 0.0


def income(results: Results) -> None:
    """Claims (b) and (g): between semi and DP; the estimate keeps a part of it."""
    loss = Means(results, ("adult", "insensitive"), "log-loss")
    assert loss("semi", SMALL) < loss("CorrDP given", SMALL) < loss("DP", SMALL) - 0.02
    assert loss("CorrDP given", SMALL) < loss("CorrDP private", SMALL) < loss("DP", SMALL)
    noise = Means(results, ("adult", "sensitive"), "noise")
    same = noise("d = 1 per column", SMALL)
    assert noise("CorrDP given", SMALL) == pytest.approx(same, rel=0.01)
    kinds = {row.metric.partition(":")[0] for row in results.rows if row.method == "counted"}
    assert {"plug-in", "frequent", "UCB", "rarest"} <= kinds


def survival(results: Results) -> None:
    """Claim (c): near semi and ahead of DP; nothing gained with a sensitive label."""
    loss = Means(results, ("sepsis", "insensitive"), "log-loss")
    for epsilon in (SMALL, LARGE):
        dp, given, semi = (loss(name, epsilon) for name in ("DP", "CorrDP given", "semi"))
        assert given < dp - 0.02
        assert given - semi < 0.3 * (dp - semi)
    secret = Means(results, ("sepsis", "sensitive"), "log-loss")
    assert secret("CorrDP given", LARGE) == pytest.approx(secret("semi", LARGE), abs=1e-4)


def default(results: Results) -> None:
    """Claims (d) and (g): by stated distances with semi; nothing gained with a sensitive label."""
    noise = Means(results, ("credit", "insensitive"), "noise")
    assert max(noise("semi", SMALL), noise("CorrDP given", SMALL)) < 0.4 * noise("DP", SMALL)
    loss = Means(results, ("credit", "insensitive"), "log-loss")
    assert loss("CorrDP given", SMALL) < loss("DP", SMALL) - 0.01
    assert loss("CorrDP private", SMALL) < loss("DP", SMALL)
    secret = Means(results, ("credit", "sensitive"), "noise")
    same = secret("d = 1 per column", SMALL)
    assert secret("CorrDP given", SMALL) == pytest.approx(same, rel=0.01)


def charges(results: Results) -> None:
    """Claim (d): nothing gained for sex and smoker, which charges tell; something for sex, bmi."""
    usual, other = (
        Means(results, (dataset, "insensitive"), "noise")
        for dataset in ("medical", "medical S=sex,bmi")
    )
    for epsilon in (SMALL, LARGE):
        dp = usual("DP", epsilon)
        assert usual("CorrDP given", epsilon) == pytest.approx(dp, rel=0.02)
        assert usual("semi", epsilon) < 0.95 * dp
        assert other("CorrDP given", epsilon) < 0.6 * dp


DIRECTIONS: dict[str, Callable[[Results], None]] = {
    "synthetic": ridge,
    "adult": income,
    "sepsis": survival,
    "credit": default,
    "medical": charges,
}


def check_files(experiment: Experiment, folder: Path) -> Results:
    """Every run, certificate, figure, the page and the summary are there."""
    results = Results(read_rows(folder / "results.csv"))
    done = {(r.dataset, r.label_role, r.method, r.epsilon, r.seed) for r in results.rows}
    runs = planned(experiment, ExperimentSettings(quick=True))
    assert {key for run in runs for key in run.keys} <= done
    kept = {run.certificate for run in runs if run.method.private}
    assert kept == {row.certificate for row in results.rows if row.certificate}
    assert all((folder / path).is_file() for path in kept)
    for table in experiment.tables:
        if table.epsilons is None:
            name = "-".join(table.key).replace(" ", "-").replace("=", "-").replace(",", "-")
            assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
            assert "<svg" in (folder / f"{name}.svg").read_text(encoding="utf-8")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert all(f"{', '.join(table.key)} label" in page for table in experiment.tables)
    return results


def check_certificates(experiment: Experiment, folder: Path) -> None:
    """One of every way verifies; the paper's fixed noise may state that it does not hold."""
    table = experiment.tables[0]
    runs = planned(experiment, ExperimentSettings(seeds=1, epsilons=(LARGE,), quick=True))
    checked = [run for run in runs if run.table is table or run.table.key == table.key]
    assert len(checked) == len(table.methods)
    for run in checked:
        if run.method.private:
            found = verify(folder / run.certificate)
            assert found.certificate is not None
            assert found.holds or run.method.name.startswith("published,")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_quick_run(
    corrdp: Command, tmp_path: Path, name: str, request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if name != "synthetic":
        monkeypatch.setenv("CORRDP_DATA_HOME", str(request.getfixturevalue("data_dir")))
    done = corrdp("experiments", name, "--quick", "-o", tmp_path, "--json")
    assert done.code == 0
    experiment, folder = experiment_named(name), tmp_path / name
    results = check_files(experiment, folder)
    check_certificates(experiment, folder)
    claims = done.data[name]["claims"]
    assert claims == json.loads((folder / "summary.json").read_text(encoding="utf-8"))["claims"]
    assert all(claim["verdict"] != "not run" and claim["figures"] for claim in claims)
    DIRECTIONS[name](results)
