"""The default plan is a function of public numbers, stays in its limits, keeps what is given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from corrdp.encoding import Encoder
from corrdp.erm.losses import Logistic, Loss, Squared
from corrdp.erm.plan import (
    STEPS_MAX,
    STEPS_MIN,
    TrainingPlan,
    default_plan,
    largest_rate,
    single_step_noise,
)
from corrdp.erm.sensitivity import SensitivityTable
from corrdp.errors import ConfigurationError
from corrdp.neighbours import neighbour_kinds
from corrdp.schema import Categorical, Label, Numeric, Schema

SCHEMA = Schema(
    {"x": Numeric(0, 1, role="insensitive"), "c": Categorical(["a", "b"])},
    Label("y", [0, 1], role="insensitive"),
)


def table(loss: Loss | None = None, weights: tuple[float, ...] | None = None) -> SensitivityTable:
    return SensitivityTable(
        Encoder(SCHEMA, 0.5), loss or Logistic(), neighbour_kinds(SCHEMA), weights
    )


def budget(value: float) -> np.ndarray:
    """One finite budget per kind but the joint rows."""
    free = [kind.name in ("<insensitive>", "<record>") for kind in neighbour_kinds(SCHEMA)]
    return np.where(free, math.inf, value)


def plan(records: int = 10_000, squared_mu: float = 0.1, **given: Any) -> TrainingPlan:
    return default_plan(table(), budget(squared_mu), records, **given)


def test_noise_of_one_step() -> None:
    """√V falls as 1/n and as 1/μ."""
    first = single_step_noise(table(), budget(0.1), 20.0, 1000)
    assert single_step_noise(table(), budget(0.1), 20.0, 2000) == pytest.approx(first / 2)
    assert single_step_noise(table(), budget(0.4), 20.0, 1000) == pytest.approx(first / 2, rel=2e-3)


def test_more_information_travels_further() -> None:
    reach = [p.steps * p.learning_rate for p in (plan(100), plan(1000), plan(10_000))]
    assert reach == sorted(reach)
    assert reach[0] < reach[-1]
    steps = [plan(100).steps, plan(10**7).steps]
    assert steps[0] >= STEPS_MIN
    assert steps[1] <= STEPS_MAX


def test_rate_never_exceeds_the_stable_one() -> None:
    for loss in (Logistic(), Squared(0.3, 2.0)):
        for weights in (None, (1.0, 4.0)):
            one = table(loss, weights)
            made = default_plan(one, budget(1.0), 10**6)
            fastest = largest_rate(loss, one.encoder.norm_bound) / max(weights or (1.0,))
            assert 0 < made.learning_rate <= fastest * (1 + 1e-12)


def test_a_penalty_slows_the_rate() -> None:
    assert plan(10**6, alpha=10.0).learning_rate < plan(10**6).learning_rate / 5
    assert plan(alpha=0.5).alpha == 0.5


def test_largest_rate_is_stable_on_identical_records() -> None:
    """The worst case of curvature: all records alike, at the norm bound."""
    norm, target = 1.3, 0.75
    for loss, label in ((Logistic(), target), (Squared(10.0, 2.0), target)):
        rate, theta = 0.99 * largest_rate(loss, norm), 3.0
        for _ in range(2000):
            residual = loss.residual(np.array([theta * norm]), np.array([label]))[0]
            theta -= rate * residual * norm
        score = np.array([theta * norm])
        assert loss.residual(score, np.array([label]))[0] == pytest.approx(0, abs=1e-3)


def test_what_is_given_is_kept() -> None:
    made = plan(steps=np.int64(7), learning_rate=np.float32(0.5), radius=3, alpha=0)  # type: ignore[arg-type]
    assert (made.steps, made.learning_rate, made.radius, made.alpha) == (7, 0.5, 3.0, 0.0)
    assert {type(made.steps), type(made.learning_rate), type(made.radius)} == {int, float}
    assert made.average_from <= made.steps
    assert plan(learning_rate=0.3).learning_rate == 0.3


def test_unlimited_budgets() -> None:
    """No kind limits anything: no noise, and the longest plan."""
    made = default_plan(table(), np.full(len(neighbour_kinds(SCHEMA)), math.inf), 100)
    assert made.steps <= STEPS_MAX
    assert math.isfinite(made.learning_rate)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *(("steps", bad) for bad in (0, -1, 1.5, "3", math.nan, True, np.float64(2))),
        *(("learning_rate", bad) for bad in (0, -1, math.nan, math.inf, "1", True, 1e101)),
        *(("radius", bad) for bad in (0, -1, math.nan, math.inf, "1", True, 1e101)),
        *(("alpha", bad) for bad in (-1e-9, math.nan, math.inf, "1", None, True)),
    ],
)
def test_bad_wish(name: str, bad: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}="):
        plan(**{name: bad})


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 0},
        {"steps": True},
        {"steps": 2.0},
        {"learning_rate": math.nan},
        {"learning_rate": 0.0},
        {"radius": math.inf},
        {"radius": -1.0},
        {"average_from": -1},
        {"average_from": 9},
        {"average_from": math.nan},
        {"alpha": -1.0},
        {"alpha": math.nan},
        {"momentum": math.nan},
        {"momentum": 1.0},
        {"momentum": -0.1},
    ],
    ids=str,
)
def test_a_plan_checks_itself(changes: dict[str, Any]) -> None:
    values = {"steps": 8, "learning_rate": 0.1, "radius": 2.0, "average_from": 4}
    with pytest.raises(ConfigurationError):
        TrainingPlan(**{**values, **changes})
