"""Noisy gradient descent: the right sums, exactly the noise it states, every budget met."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from corrdp.encoding import Design, Encoder
from corrdp.erm.account import step_use
from corrdp.erm.losses import Logistic, Squared
from corrdp.erm.optimiser import Run, averaged, project, train
from corrdp.erm.plan import TrainingPlan
from corrdp.erm.sensitivity import SensitivityTable
from corrdp.errors import ConfigurationError
from corrdp.neighbours import INSENSITIVE, RECORD, neighbour_kinds
from corrdp.noise import Lattice, noise_source
from corrdp.records import read_records
from corrdp.schema import Categorical, Label, Numeric, Schema

LATTICE = Lattice(7, 7)
SCHEMA = Schema(
    {
        "x": Numeric(0, 1, role="insensitive"),
        "c": Categorical(["a", "b", "c"]),
        "z": Numeric(-1, 1, role="insensitive"),
    },
    Label("y", [0, 1], role="insensitive"),
)
ENCODER = Encoder(SCHEMA, 0.5, 7)
KINDS = neighbour_kinds(SCHEMA)
FREE = np.array([kind.name in (INSENSITIVE, RECORD) for kind in KINDS])
NO_LIMIT = np.full(len(KINDS), math.inf)


def data(n: int = 400) -> tuple[Design, np.ndarray]:
    rng = np.random.default_rng(1)
    X = {"x": rng.random(n), "c": rng.choice(["a", "b", "c"], n), "z": rng.uniform(-1, 1, n)}
    y = (X["x"] + 0.3 * rng.normal(size=n) > 0.5).astype(float)
    return ENCODER.transform(read_records(X, SCHEMA)), y


def plan(steps: int = 12, rate: float = 1.0, radius: float = 5.0, **more: Any) -> TrainingPlan:
    return TrainingPlan(steps, rate, radius, steps // 2, **more)


def table(weights: tuple[float, float] | None = None) -> SensitivityTable:
    return SensitivityTable(ENCODER, Logistic(), KINDS, weights, residual_bits=7)


def run(
    budget: np.ndarray,
    one: TrainingPlan,
    weights: tuple[float, float] | None = None,
    seed: int | None = 0,
    max_scale: float = 1e12,
    progress: Any = None,
) -> Run:
    design, y = data()
    source = noise_source(seed)
    return train(design, y, table(weights), budget, one, LATTICE, source, max_scale, progress)


def dense(design: Design) -> np.ndarray:
    return np.column_stack([design.scores(row) for row in np.eye(ENCODER.dimension)])


@pytest.mark.parametrize("weights", [None, (1.0, 3.0)])
@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_without_limits_it_is_gradient_descent(weights: Any, alpha: float) -> None:
    """No kind limits anything: no noise, and the steps are those of the rounded gradients."""
    one = plan(alpha=alpha)
    found = run(NO_LIMIT, one, weights)
    design, y = data()
    features, theta = dense(design), np.zeros(ENCODER.dimension)
    factor = np.ones(len(y)) if weights is None else np.asarray(weights)[y.astype(int)]
    for step in range(one.steps):
        residual = factor * (1 / (1 + np.exp(-features @ theta)) - y)
        gradient = features.T @ (np.rint(residual * 128) / 128) / len(y)
        gradient[:-1] += alpha * theta[:-1]
        theta = theta - gradient
        assert found.iterates[step + 1] == pytest.approx(theta, abs=1e-12)
    assert (found.sigma == 0).all()


def test_every_step_meets_its_budget_at_its_own_iterate() -> None:
    """Σ_j a_kj(θ_t)²/σ_tj² ≤ b_k at every step and kind, with equality for some kind."""
    budget = np.where(FREE, math.inf, np.geomspace(0.002, 0.02, len(KINDS)))
    found = run(budget, plan(40))
    use = step_use(table(), found.iterates, found.sigma)
    limited = np.isfinite(budget)
    ratio = use[:, limited] / budget[limited]
    assert ratio.max() <= 1 + 1e-9
    assert (ratio.max(axis=1) >= 1 - 1e-9).all()
    lowered = step_use(table(), found.iterates, 0.9 * found.sigma)[:, limited] / budget[limited]
    assert (lowered.max(axis=1) > 1.2).all()


def test_noise_has_the_stated_scale() -> None:
    """Released minus true gradient sums are normal with the ledger's σ; 10 % off is rejected."""
    budget = np.where(FREE, math.inf, 0.01)
    one = plan(400, rate=1e-3)
    found = run(budget, one)
    design, y = data()
    features = dense(design)
    residual = 1 / (1 + np.exp(-found.iterates[:-1] @ features.T)) - y
    exact = (np.rint(residual * 128) / 128) @ features
    released = (found.iterates[:-1] - found.iterates[1:]) / one.learning_rate * len(y)
    sigma = np.array([ENCODER.spread(row) for row in found.sigma])
    standard = ((released - exact) / sigma).ravel()
    assert stats.kstest(standard, "norm").pvalue > 1e-3
    square = (standard**2).sum()
    low, high = stats.chi2(standard.size).ppf([1e-4, 1 - 1e-4])
    assert low < square < high
    assert not low < square / 0.9**2 < high
    assert not low < square / 1.1**2 < high


def test_released_sums_lie_on_the_lattice() -> None:
    one = plan(5)
    found = run(np.where(FREE, math.inf, 0.01), one)
    released = (
        (found.iterates[:-1] - found.iterates[1:]) / one.learning_rate * 400 / LATTICE.spacing
    )
    assert np.abs(released - np.rint(released)).max() < 1e-6


def test_iterates_stay_in_the_ball() -> None:
    found = run(np.where(FREE, math.inf, 1e-4), plan(30, rate=5.0, radius=0.7))
    norms = np.linalg.norm(found.iterates, axis=1)
    assert norms.max() <= 0.7
    assert norms.max() > 0.69


def test_fresh_noise_without_a_seed() -> None:
    budget = np.where(FREE, math.inf, 0.01)
    first, second = run(budget, plan(2), seed=None), run(budget, plan(2), seed=None)
    assert not np.array_equal(first.iterates, second.iterates)
    assert np.array_equal(run(budget, plan(2)).iterates, run(budget, plan(2)).iterates)


def test_steps_do_not_share_noise() -> None:
    found = run(np.where(FREE, math.inf, 1e-6), plan(50, rate=1e-4))
    steps = np.diff(found.iterates, axis=0)
    correlation = np.corrcoef(steps[:-1].ravel(), steps[1:].ravel())[0, 1]
    assert abs(correlation) < 0.2


def test_more_noise_than_reserved_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="outgrew what was reserved"):
        run(np.where(FREE, math.inf, 1e-6), plan(3), max_scale=10.0)


def test_progress_sees_steps_only() -> None:
    seen: list[tuple[int, int]] = []
    run(NO_LIMIT, plan(3), progress=lambda *step: seen.append(step))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_sums_that_would_not_be_exact_are_refused() -> None:
    design, y = data(50)
    loss = Squared(2.0**45, 2.0)
    wide = SensitivityTable(ENCODER, loss, KINDS, residual_bits=7)
    with pytest.raises(ConfigurationError, match="do not add up exactly"):
        train(design, y, wide, NO_LIMIT, plan(1), LATTICE, noise_source(0), 1e12)


def test_project_and_average() -> None:
    inside = np.array([0.3, 0.4])
    assert project(inside, 0.5) is inside
    outside = project(np.array([30.0, 40.0]), 0.5)
    assert np.linalg.norm(outside) <= 0.5
    assert outside == pytest.approx([0.3, 0.4])
    iterates = np.arange(10.0)[:, None]
    assert averaged(iterates, TrainingPlan(9, 1.0, 1.0, 7)).tolist() == [8.0]
    assert averaged(iterates, TrainingPlan(9, 1.0, 1.0, 9)).tolist() == [9.0]


def test_repr_shows_no_iterate() -> None:
    assert repr(run(NO_LIMIT, plan(2))) == "Run(steps=2, parameters=6)"
