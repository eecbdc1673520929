"""Audits of linear models: nothing above the claim, and every planted fault is found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from corrdp import Categorical, CorrDPLogisticRegression, CorrDPRidge, Label, Numeric, Schema
from corrdp.audit import Attack, run_attacks
from corrdp.audit.linear import linear_attacks, linear_task, run_attack, saturated, step_attack
from corrdp.erm import optimiser
from corrdp.erm.fit import LinearTask
from corrdp.erm.sensitivity import SensitivityTable
from corrdp.errors import ConfigurationError
from corrdp.noise import NoiseSource

# with these every kind binds somewhere, so that worst pairs attain their bounds
DISTANCES = {"x": 0.9, "c": 0.9, "y": 0.3}


def certificate(model: str, **parameters: Any) -> Any:
    columns = {
        "x": Numeric(0, 1, role="insensitive"),
        "c": Categorical(["a", "b", "c"], role="insensitive"),
        "s": Categorical(["p", "q"]),
    }
    rng = np.random.default_rng(0)
    X = {
        "x": rng.random(300),
        "c": rng.choice(["a", "b", "c"], 300),
        "s": rng.choice(["p", "q"], 300),
    }
    settings = {"epsilon": 6.0, "delta": 1e-5, "distances": DISTANCES, "steps": 3, **parameters}
    if model == "ridge":
        schema = Schema(columns, Label("y", low=0, high=1, role="insensitive"))
        return CorrDPRidge(schema, **settings).fit(X, rng.random(300)).certificate_
    schema = Schema(columns, Label("y", [0, 1], role="insensitive"))
    return CorrDPLogisticRegression(schema, **settings).fit(X, rng.integers(0, 2, 300)).certificate_


@pytest.fixture(scope="module", params=["logistic", "ridge"])
def task(request: Any) -> LinearTask:
    return linear_task(certificate(request.param), steps=2)


@pytest.fixture(scope="module")
def logistic() -> LinearTask:
    return linear_task(certificate("logistic"), steps=2)


def position(task: LinearTask, name: str) -> int:
    return [kind.name for kind in task.declaration.kinds].index(name)


def steps_of(task: LinearTask, *names: str) -> list[Attack]:
    return [step_attack(task, position(task, n), saturated(task), "later step") for n in names]


def test_steps_of_every_kind_stay_below_and_come_near(task: LinearTask) -> None:
    attacks = steps_of(task, "<sensitive>", "x", "c")
    attacks.append(step_attack(task, position(task, "y"), saturated(task) * 0, "step 1"))
    report = run_attacks(attacks, runs=100, random_state=1)
    assert report.violated == () and report.complete
    for finding in report.findings:
        assert finding.runs == 5000
        assert finding.reach is not None and finding.reach <= 1.0
    # pairs that attain the bound are told apart nearly as well as claimed
    sharp = [f for f in report.findings if f.reach is not None and f.reach > 0.9]
    assert len(sharp) == 4 and all(f.lower_bound > 0.6 * f.claimed for f in sharp)


def test_a_short_run_stays_below_its_guarantee(task: LinearTask) -> None:
    attack = run_attack(task, position(task, "y"))
    assert attack.reach is not None and 0.9 < attack.reach <= 1.0
    report = run_attacks([attack], runs=150, random_state=2)
    assert report.violated == ()
    assert report.findings[0].lower_bound > 0.4 * report.findings[0].claimed


def test_half_the_noise_is_found(logistic: LinearTask, monkeypatch: Any) -> None:
    honest = NoiseSource.gaussian
    monkeypatch.setattr(
        NoiseSource, "gaussian", lambda self, scale: honest(self, np.asarray(scale) / 2)
    )
    steps = run_attacks(steps_of(logistic, "<sensitive>", "x"), runs=20, random_state=3)
    assert len(steps.violated) == 2
    run = run_attacks([run_attack(logistic, position(logistic, "y"))], runs=200, random_state=3)
    assert len(run.violated) == 1


def test_noise_a_fifth_too_small_is_found(logistic: LinearTask, monkeypatch: Any) -> None:
    honest = NoiseSource.gaussian
    monkeypatch.setattr(
        NoiseSource, "gaussian", lambda self, scale: honest(self, np.asarray(scale) * 0.8)
    )
    report = run_attacks(steps_of(logistic, "<sensitive>"), runs=400, random_state=4)
    assert len(report.violated) == 1


def test_a_forgotten_block_is_found(logistic: LinearTask, monkeypatch: Any) -> None:
    honest = SensitivityTable.__call__
    blocks = [block.name for block in logistic.encoder.blocks]

    def forgetful(self: SensitivityTable, theta: Any) -> Any:
        table = honest(self, theta).copy()
        table[:, blocks.index("x")] *= 0.1
        return table

    monkeypatch.setattr(SensitivityTable, "__call__", forgetful)
    report = run_attacks(steps_of(logistic, "x"), runs=20, random_state=5)
    assert len(report.violated) == 1


def test_noise_used_twice_is_found(logistic: LinearTask, monkeypatch: Any) -> None:
    honest = optimiser.release

    def lazy(total: Any, sigma: Any, spacing: float, source: NoiseSource) -> Any:
        return honest(total, sigma, spacing, NoiseSource(source._key))

    monkeypatch.setattr(optimiser, "release", lazy)
    attack = run_attack(logistic, position(logistic, "<sensitive>"))
    report = run_attacks([attack], runs=60, random_state=6)
    assert len(report.violated) == 1
    assert report.findings[0].lower_bound > 1.2 * report.findings[0].claimed


def test_all_kinds_with_a_finite_guarantee_are_attacked(logistic: LinearTask) -> None:
    kinds = {attack.kind for attack in linear_attacks(logistic)}
    assert kinds == {kind.name for kind in logistic.declaration.kinds}


def test_time_limit_progress_and_reproducibility(logistic: LinearTask) -> None:
    attacks = steps_of(logistic, "x")
    seen: list[tuple[int, int]] = []
    report = run_attacks(
        attacks,
        runs=120,
        time_limit=0.0,
        progress=lambda done, total: seen.append((done, total)),
        random_state=7,
    )
    assert not report.complete and seen == [(100, 240)]
    assert report == run_attacks(attacks, runs=120, time_limit=0.0, random_state=7)
    assert "time limit" in str(report)
    assert max(map(len, str(report).split("\n"))) <= 80


def test_other_mechanisms_are_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="full-batch"):
        linear_task(certificate("logistic", solver="sgd", sample_rate=0.5))
    with pytest.raises(ConfigurationError, match="nothing to audit"):
        run_attacks([])
    assert math.isfinite(linear_task(certificate("logistic", epsilon=1.0)).plan.learning_rate)
