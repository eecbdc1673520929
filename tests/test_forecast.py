"""The forecast is the noise that a run would draw, and reads no data."""

from __future__ import annotations

import math

import pytest

from corrdp.errors import ConfigurationError
from corrdp.forecast import forecast
from corrdp.plan_file import read_plan
from corrdp.privacy import gdp

PLAN = """
[columns.x]
kind = "numeric"
low = 0
high = 1
role = "{role}"
[columns.c]
kind = "categorical"
levels = ["a", "b", "c"]
[label]
name = "y"
levels = [0, 1]
role = "{role}"
[privacy]
epsilon = {epsilon}
delta = 1e-6
"""


def plan(role: str = "sensitive", epsilon: str = "0.5", more: str = "") -> str:
    return PLAN.format(role=role, epsilon=epsilon) + more


def test_one_kind_spends_its_whole_budget() -> None:
    """Everything sensitive: Σ_j (bound_j/noise_j)² is μ², up to reserve and tolerance."""
    found = forecast(read_plan(plan()), 10_000)
    spent = sum((row.bound / row.noise_edge) ** 2 for row in found.columns if row.bound)  # type: ignore[operator]
    allowed = float(gdp.mu(0.5, 1e-6)) ** 2
    assert 0.98 * allowed < spent <= allowed
    assert {row.epsilon for row in found.columns if row.name in ("x", "c", "y")} == {0.5}


def test_noise_at_the_start_is_not_above_that_at_the_edge() -> None:
    more = "[privacy.distances]\nx = 0.1\ny = 0.1\n"
    found = forecast(read_plan(plan("insensitive", more=more)), 10_000)
    assert found.distances_known
    assert all(row.noise_start <= row.noise_edge for row in found.columns if row.noise_edge)  # type: ignore[operator]
    row = found.columns[0]
    assert (row.name, row.distance, row.epsilon) == ("x", 0.1, pytest.approx(5.0))
    cases = {case.name: case for case in found.scenarios}
    assert cases["all distances 0"].start < cases["as planned"].start < cases["ordinary DP"].start
    assert cases["half the epsilon"].edge > 1.7 * cases["as planned"].edge
    assert math.isclose(cases["twice the records"].edge * 2, cases["as planned"].edge, rel_tol=0.01)


def test_estimated_distances_count_as_one() -> None:
    found = forecast(read_plan(plan("insensitive", more='distances = "private"\n')), 10_000)
    assert not found.distances_known
    assert found.columns[0].distance == 1.0


def test_without_privacy_there_is_nothing_to_forecast() -> None:
    with pytest.raises(ConfigurationError, match="inf"):
        forecast(read_plan(plan(epsilon="inf")), 100)


@pytest.mark.parametrize(
    ("training", "supposed"),
    [
        ('solver = "sgd"\nsample_rate = 0.1', {"solver": "gradient"}),
        ('calibration = "published"', {"calibration": "optimal"}),
        ("steps = 40", {}),
    ],
)
def test_what_has_no_forecast_is_replaced_and_said(training: str, supposed: dict[str, str]) -> None:
    found = forecast(read_plan(plan(more=f"[training]\n{training}\n")), 10_000)
    assert found.supposed == supposed
    assert found.columns == forecast(read_plan(plan()), 10_000).columns


def test_networks_have_none() -> None:
    with pytest.raises(ConfigurationError, match="mlp"):
        forecast(read_plan(plan(more='[training]\nmodel = "mlp"\n')), 10_000)
