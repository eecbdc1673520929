"""The noise that training really added, recovered from iterates and data, has the stated law."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from corrdp.distance import Distances
from corrdp.erm.fit import LinearTask, PlanRequest, Recipe, TrainingData, fit_linear
from corrdp.erm.losses import Logistic, Loss, Squared
from corrdp.noise import noise_source
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.ledger import decode_array
from corrdp.records import Records
from corrdp.schema import Categorical, Label, Numeric, Schema

N = 3000


def schema(label: Label) -> Schema:
    return Schema(
        {
            "s": Categorical(["a", "b"]),
            "u": Numeric(0, 1, role="insensitive"),
            "v": Categorical(["a", "b", "c"], role="insensitive"),
            "w": Numeric(0, 1, role="public"),
        },
        label,
    )


def run(loss: Loss, label: Label, seed: int) -> tuple[LinearTask, TrainingData, Any]:
    rng = np.random.default_rng(7)
    columns = {
        "s": rng.integers(0, 2, N),
        "u": rng.random(N),
        "v": rng.integers(0, 3, N),
        "w": rng.random(N),
    }
    values = (columns["u"] > 0.4).astype(float)
    scaled = values if isinstance(loss, Logistic) else 2 * columns["u"] - 1
    data = TrainingData(Records(columns, N), values, scaled)
    target = PrivacyTarget(0.5, 1e-6)
    distances = Distances.given({"u": 0.2, "y": 0.3})
    declaration = Declaration(schema(label), target, N, distances, True)
    recipe = Recipe(loss, None, PlanRequest(steps=60, radius=1e6))
    _, task, ledger = fit_linear(declaration, recipe, data, noise_source(seed))
    return task, data, ledger.one("linear-release")


def standardised_noise(loss: Loss, label: Label, seed: int) -> np.ndarray:
    """(released sum − exact sum)/σ of every noisy coordinate and step, without library code."""
    task, data, entry = run(loss, label, seed)
    plan, design = task.plan, task.encoder.transform(data.records)
    iterates, sigma = decode_array(entry["iterates"]), decode_array(entry["sigma"])
    rows = np.column_stack([design.scores(unit) for unit in np.eye(task.encoder.dimension)])
    velocity = (iterates[:-1] - iterates[1:]) / plan.learning_rate
    before = np.vstack([np.zeros(velocity.shape[1]), velocity[:-1]])
    released = N * (velocity - plan.momentum * before)
    found = []
    for step, theta in enumerate(iterates[:-1]):
        score = rows @ theta
        residual = 1 / (1 + np.exp(-score)) - data.scaled
        if isinstance(loss, Squared):
            residual = np.clip(score - data.scaled, -loss.residual_clip, loss.residual_clip)
        exact = rows.T @ (np.round(residual * 128) / 128)
        spread = np.repeat(sigma[step], task.encoder.dimensions)
        noisy = spread > 0
        assert np.allclose(released[step][~noisy], exact[~noisy], atol=1e-3)
        found.append(((released[step] - exact) / spread)[noisy])
    return np.concatenate(found)


CASES = [
    (Logistic(), Label("y", [0, 1], role="insensitive")),
    (Squared(0.3, 2.0), Label("y", low=0, high=1, role="insensitive")),
]


@pytest.mark.parametrize(("loss", "label"), CASES, ids=["logistic", "squared"])
def test_noise_of_every_step_is_standard_normal_after_scaling(loss: Loss, label: Label) -> None:
    z = np.concatenate([standardised_noise(loss, label, seed) for seed in range(6)])
    assert z.size > 2000
    assert kstest(z, "norm").pvalue > 1e-3
    total = float(z @ z)
    low, high = chi2.ppf([1e-4, 1 - 1e-4], z.size)
    assert low < total < high
    for wrong in (0.9, 1.1):  # a scale 10 % off is rejected
        assert not low < total * wrong**2 < high


def test_streams_of_different_runs_and_steps_are_independent() -> None:
    loss, label = CASES[0]
    first, second = (standardised_noise(loss, label, seed) for seed in (1, 2))
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / math.sqrt(first.size)
    width = first.size // 60
    steps = first.reshape(60, width)
    assert abs(np.corrcoef(steps[:-1].ravel(), steps[1:].ravel())[0, 1]) < 5 / math.sqrt(first.size)
    assert not np.array_equal(first, second)
