"""Audits of queries and of any function; sampling that is accounted wrongly is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from joblib import parallel_config

from corrdp import Categorical, Label, Numeric, Schema
from corrdp.audit import Attack, Claim, audit, claims_of, run_attacks
from corrdp.errors import ConfigurationError
from corrdp.noise import noise_source
from corrdp.privacy import subsampled
from corrdp.privacy.estimate import declaration_of
from corrdp.queries import Histogram, Sum, release
from corrdp.queries.coding import read_checked
from corrdp.queries.plan import draw, plan_queries

RATE, PRESENCE, STEPS = 0.1, 6.0, 10


def outputs(sums: np.ndarray) -> np.ndarray:
    """What an attacker looks at in a run of several noisy sums."""
    return np.column_stack([sums.sum(axis=1), sums.max(axis=1), sums.min(axis=1)])


def poisson(side: int, count: int, seed: int | None) -> np.ndarray:
    rng = np.random.default_rng(seed)
    value = PRESENCE * (1 if side else -1)
    joined = rng.random((count, STEPS)) < RATE
    return outputs(value * joined + rng.normal(size=(count, STEPS)))


def shuffled(side: int, count: int, seed: int | None) -> np.ndarray:
    """A pass in fixed batches: every record joins exactly once."""
    rng = np.random.default_rng(seed)
    value = PRESENCE * (1 if side else -1)
    joined = rng.integers(0, STEPS, count)[:, None] == np.arange(STEPS)
    return outputs(value * joined + rng.normal(size=(count, STEPS)))


def test_fixed_batches_accounted_as_poisson_are_found() -> None:
    delta = 0.66
    epsilon = subsampled.epsilon(RATE, PRESENCE, 2 * PRESENCE, STEPS, delta)
    claim = Claim(epsilon, delta)
    attacks = [Attack("poisson", "R", claim, poisson), Attack("shuffled", "R", claim, shuffled)]
    report = run_attacks(attacks, runs=1000, random_state=1)
    assert [one.attack for one in report.violated] == ["shuffled"]


def rows_of_a_person(side: int, count: int, seed: int | None) -> np.ndarray:
    """Ten rows of one person, each joining with probability one in a hundred; one step."""
    rng = np.random.default_rng(seed)
    joined = rng.binomial(10, 0.01, count)
    return 4.0 * (1 if side else -1) * joined + rng.normal(size=count)


def test_plain_rate_with_many_rows_a_person_is_found() -> None:
    delta = 0.02
    wrong = Claim(subsampled.epsilon(0.01, 40.0, 80.0, 1, delta), delta)
    rate = subsampled.person_rate(0.01, 10)
    right = Claim(subsampled.epsilon(rate, 40.0, 80.0, 1, delta), delta)
    attacks = [
        Attack("plain rate", "R", wrong, rows_of_a_person),
        Attack("person rate", "R", right, rows_of_a_person),
    ]
    report = run_attacks(attacks, runs=2000, random_state=2)
    assert [one.attack for one in report.violated] == ["plain rate"]


SCHEMA = Schema(
    {"age": Numeric(0, 100, role="insensitive"), "sex": Categorical(["f", "m"])},
    Label("y", [0, 1], role="public"),
)


def tables() -> list[dict[str, Any]]:
    """A table, one with another age and one with another sex in the first record."""
    base = {"age": np.full(50, 50.0), "sex": np.array(["f"] * 50)}
    older, other = {**base, "age": base["age"].copy()}, {**base, "sex": base["sex"].copy()}
    base["age"] = base["age"].copy()
    base["age"][0], older["age"][0] = 0.0, 100.0
    other["age"][0], other["sex"][0] = 0.0, "m"
    return [base, older, other]


ASKED = [Sum("age"), Histogram("sex")]
SETTINGS: dict[str, Any] = {"epsilon": 3.0, "distances": {"age": 0.5}}


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_queries_stay_below_their_claims(mechanism: Any) -> None:
    delta = 1e-5 if mechanism == "gaussian" else 0.0
    base, older, other = tables()
    first = release(base, SCHEMA, ASKED, mechanism=mechanism, delta=delta, **SETTINGS)
    claims = claims_of(first.certificate)
    checked = [read_checked(table, SCHEMA, None) for table in (base, older, other)]
    declaration = declaration_of(first.certificate.ledger)
    plan = plan_queries(declaration, {str(i): q for i, q in enumerate(ASKED)}, mechanism, "optimal")

    def numbers(table: Any, seed: int | None) -> Any:
        return np.concatenate([np.ravel(part) for part in draw(plan, table, noise_source(seed))])

    base, older, other = checked
    report = audit(
        numbers,
        [("age", base, older), ("<sensitive>", base, other)],
        [claims["age"], claims["<sensitive>"]],
        runs=400,
        random_state=3,
    )
    assert report.violated == ()
    measure = "mu" if mechanism == "gaussian" else "epsilon"
    assert {one.measure for one in report.findings} == {measure}
    assert all(one.lower_bound > 0.3 * one.claimed for one in report.findings)


def test_workers_share_the_work_and_claims_are_checked() -> None:
    claim = Claim(0.1, 0.0, mu=0.1)
    with parallel_config(backend="threading"):
        report = run_attacks(
            [Attack("shuffled", "R", claim, shuffled)], runs=100, n_jobs=2, random_state=4
        )
    assert len(report.violated) == 1 and report.to_dict()["findings"][0]["verdict"] == "violated"
    for bad in ((float("nan"), 0.0), (1.0, 1.0), (-1.0, 0.0)):
        with pytest.raises(ConfigurationError):
            Claim(*bad)
    with pytest.raises(ConfigurationError, match="one for each"):
        audit(lambda table, seed: 0.0, [], [claim])


def test_too_few_runs_are_said_to_be_too_few() -> None:
    report = run_attacks(
        [
            Attack("poisson", "R", Claim(9.0, 0.0), poisson),
            Attack("poisson", "R", Claim(float("inf"), 0.0), poisson),
        ],
        runs=100,
        random_state=5,
    )
    assert [one.verdict for one in report.findings] == ["out of reach", "no claim"]
    assert "cannot prove" in str(report)
