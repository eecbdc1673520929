"""Five queries on Adult in one release; the whole comparison is benchmarks/queries_adult.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from corrdp import Distances, Schema
from corrdp.datasets import load_adult
from corrdp.privacy.budgets import PureTarget
from corrdp.privacy.declaration import Declaration
from corrdp.queries import Covariance, Histogram, Mean, Query, release
from corrdp.queries.plan import Calibration, plan_queries

QUERIES: dict[str, Query] = {
    "sex": Histogram("sex"),
    "age": Mean("age"),
    "hours": Mean("hours-per-week"),
    "race": Histogram("race"),
    "covariance": Covariance(["age", "hours-per-week"]),
}


def mean_age_error(
    schema: Schema, distances: dict[str, float], epsilon: float, calibration: Calibration
) -> float:
    """Expected absolute error of the mean age in years under Laplace noise."""
    declaration = Declaration(schema, PureTarget(epsilon), 32_561, Distances.given(distances), True)
    plan = plan_queries(declaration, QUERIES, "laplace", calibration)
    at = [block.name for block in plan.blocks].index("sum 'age'")
    return float(plan.noise[at]) * (90 - 17) / 32_561


def test_expected_errors(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORRDP_DATA_HOME", str(data_dir))
    found = load_adult(frame="dict")
    given = dict(found.distances or {})
    everything = found.schema.all_sensitive()
    one_scale = mean_age_error(everything, {}, 0.1, "one-scale")
    # counts 2 + 2, two sums, a product ½ and two squares ¼: Δ = 7
    assert one_scale == pytest.approx(7 / 0.1 * 73 / 32_561)
    published = mean_age_error(found.schema, given, 0.1, "one-scale")
    best = mean_age_error(found.schema, given, 0.1, "optimal")
    assert best < 0.2 * published < 0.2 * one_scale

    results = release(
        {**found.X, "income": found.y},
        found.schema,
        QUERIES,
        epsilon=0.1,
        distances=given,
        mechanism="laplace",
        random_state=0,
    )
    assert results.certificate.holds
    record = results.certificate.joint["record"]
    assert record is not None
    assert 0.1 < record < 0.7
    # with that much for ordinary differential privacy, the mean age would still be worse
    assert best < 0.5 * mean_age_error(everything, {}, record, "optimal")
    exact = np.mean(found.X["age"])
    assert abs(results["age"].value - exact) < 6 * results["age"].standard_error
    assert results["sex"].value.sum() == pytest.approx(32_561, abs=1000)
