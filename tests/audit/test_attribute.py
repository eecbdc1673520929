"""Guessing a sensitive value: within its bound, and beyond it when a claim is wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from corrdp import Categorical, CorrDPLogisticRegression, Label, Numeric, Schema
from corrdp.audit import RecordGuess, belief_shift_lower_bound, infer_attribute, linear_task
from corrdp.audit.claims import claims_of
from corrdp.audit.linear import _crowd
from corrdp.erm.fit import LinearTask
from corrdp.errors import ConfigurationError
from corrdp.privacy import gdp

DELTA = 1e-5
DISTANCES = (0.1, 0.4, 0.7)
EPSILONS = (0.5, 2.0)


def schema() -> Schema:
    return Schema(
        {
            "u": Categorical(["0", "1"], role="insensitive"),
            "s": Categorical(["0", "1"]),
            "x": Numeric(0, 1, role="insensitive"),
        },
        Label("y", [0, 1], role="insensitive"),
    )


def simulated(d: float, n: int = 400) -> tuple[dict[str, Any], np.ndarray]:
    """s fair; u copies it with probability d, else a fair coin: marginal distance d."""
    rng = np.random.default_rng(3)
    s = rng.integers(0, 2, n)
    u = np.where(rng.random(n) < d, s, rng.integers(0, 2, n))
    return {"u": u.astype(str), "s": s.astype(str), "x": rng.random(n)}, rng.integers(0, 2, n)


def private_task(claimed: float, epsilon: float, y_distance: float = 0.3) -> tuple[LinearTask, Any]:
    X, y = simulated(claimed)
    model = CorrDPLogisticRegression(
        schema(),
        epsilon=epsilon,
        delta=DELTA,
        distances={"u": claimed, "x": 0.1, "y": y_distance},
        steps=2,
    ).fit(X, y)
    return linear_task(model.certificate_, steps=2), claims_of(model.certificate_)


def guess(task: LinearTask, u: tuple[str, str], s: tuple[str, str]) -> RecordGuess:
    """Two records that differ in u, in s, or in both; all others known."""
    crowd, labels = _crowd(task, 1)
    candidates = {"u": np.array(u), "s": np.array(s), "x": np.zeros(2)}
    return RecordGuess.among(task, candidates, np.zeros(2), crowd, labels)


@pytest.mark.parametrize("d", DISTANCES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_advantage_stays_below_its_bound(d: float, epsilon: float) -> None:
    task, _ = private_task(d, epsilon)
    prior = ((1 + d) / 2, (1 - d) / 2)
    found = infer_attribute(
        guess(task, ("0", "0"), ("0", "1")), prior, epsilon, DELTA, trials=60, random_state=1
    )
    assert found.bound == pytest.approx(float(gdp.tau(epsilon, DELTA)))
    assert not found.violated and found.lower_limit <= found.bound
    assert found.prior == max(prior)


@pytest.mark.parametrize("d", DISTANCES)
def test_without_privacy_the_attack_beats_every_bound(d: float) -> None:
    X, y = simulated(d)
    models = []
    for s in ("0", "1"):
        table = {name: values.copy() for name, values in X.items()}
        table["s"][0] = s
        model = CorrDPLogisticRegression(schema(), epsilon=math.inf).fit(table, y)
        models.append(np.append(model.coef_, model.intercept_))

    def attack(truth: int, seed: int | None) -> list[float]:
        return [-1e12 * float(np.sum((models[truth] - other) ** 2)) for other in models]

    prior = ((1 + d) / 2, (1 - d) / 2)
    for epsilon in EPSILONS:
        found = infer_attribute(attack, prior, epsilon, DELTA, trials=300, random_state=2)
        assert found.violated and found.success == 1.0


def channel(d: float) -> list[list[float]]:
    return [[(1 + d) / 2, (1 - d) / 2], [(1 - d) / 2, (1 + d) / 2]]


@pytest.mark.parametrize("d", [0.3, 0.7])
def test_belief_moves_through_a_column_by_at_most_d_tau(d: float) -> None:
    """K = nothing, the direct use of s held fixed: the setting in which d·τ is stated."""
    task, claims = private_task(d, 2.0)
    shift = belief_shift_lower_bound(
        guess(task, ("0", "1"), ("0", "0")), (0.5, 0.5), channel(d), trials=150, random_state=3
    )
    assert shift <= d * float(gdp.tau(claims["u"].epsilon, DELTA))


def test_belief_shift_is_measured_exactly() -> None:
    # the output is the value itself: belief moves by d/2 on either side of one half
    shift = belief_shift_lower_bound(
        lambda value, seed: [0.0 if value == i else -math.inf for i in range(2)],
        (0.5, 0.5),
        channel(0.6),
        trials=5000,
        random_state=4,
    )
    assert shift == pytest.approx(0.3 - math.sqrt(math.log(20) / 10_000))


def test_distance_zero_for_a_copy_of_the_sensitive_column_is_found() -> None:
    epsilon = 0.5
    task, _ = private_task(0.0, epsilon, y_distance=0.05)
    moved = belief_shift_lower_bound(
        guess(task, ("0", "1"), ("0", "0")), (0.5, 0.5), channel(1.0), trials=150, random_state=5
    )
    assert moved > 0.0  # the claim is d·τ with d = 0
    together = infer_attribute(
        guess(task, ("0", "1"), ("0", "1")), (0.5, 0.5), epsilon, DELTA, trials=100, random_state=6
    )
    assert together.violated
    # told the truth, d = 1, the same attacks find nothing
    honest, _ = private_task(1.0, epsilon, y_distance=0.05)
    together = infer_attribute(
        guess(honest, ("0", "1"), ("0", "0")),
        (0.5, 0.5),
        epsilon,
        DELTA,
        trials=100,
        random_state=8,
    )
    assert not together.violated


def test_a_run_with_hardly_any_noise_is_found(monkeypatch: Any) -> None:
    from corrdp.noise import NoiseSource

    task, _ = private_task(0.4, 2.0)
    honest = NoiseSource.gaussian
    monkeypatch.setattr(
        NoiseSource, "gaussian", lambda self, scale: honest(self, np.asarray(scale) / 16)
    )
    found = infer_attribute(
        guess(task, ("0", "0"), ("0", "1")), (0.5, 0.5), 2.0, DELTA, trials=200, random_state=7
    )
    assert found.violated


@pytest.mark.parametrize("prior", [(1.0,), (0.5, 0.6), (1.0, 0.0), (math.nan, 1.0)])
def test_a_prior_that_is_none_is_refused(prior: tuple[float, ...]) -> None:
    with pytest.raises(ConfigurationError):
        infer_attribute(lambda truth, seed: [0.0, 0.0], prior, 1.0, DELTA)
