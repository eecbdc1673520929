"""Noise dimension, risk bounds, and whether measured risk scales with them (THEORY T9)."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from corrdp.distance import Distances
from corrdp.encoding import Encoder
from corrdp.erm import published, theory
from corrdp.erm.fit import PlanRequest
from corrdp.erm.losses import Logistic, Squared
from corrdp.errors import ConfigurationError
from corrdp.schema import Categorical, Label, Numeric, Schema

SCHEMA = Schema(
    {
        "s": Categorical(["a", "b", "c"]),
        "u": Numeric(0, 1, role="insensitive"),
        "v": Categorical(["a", "b"], role="insensitive"),
        "w": Numeric(0, 1, role="public"),
    },
    Label("y", [0, 1], role="insensitive"),
)


@pytest.fixture(scope="module")
def scaling() -> ModuleType:
    """benchmarks/theory.py, which measures the same in full."""
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "theory.py"
    spec = importlib.util.spec_from_file_location("scaling", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["scaling"] = module
    spec.loader.exec_module(module)
    return module


# --- formulas ------------------------------------------------------------------------------------


def test_noise_dimension_by_hand() -> None:
    assert theory.noise_dimension(2, [0.1, 0.0, 0.5]) == pytest.approx(2 + 0.16 + 0.16 + 0.5)
    assert theory.noise_dimension(0, [0.1, 0.2]) == pytest.approx(0.3)
    assert theory.noise_dimension(4, []) == 4
    assert theory.gain_factor(1, [0.0] * 99) == pytest.approx(10, rel=0.01)
    assert theory.gain_factor(3, [1.0] * 17) == 1.0


def test_the_limit_is_never_below() -> None:
    rng = np.random.default_rng(1)
    closest = 0.0
    for _ in range(500):
        sensitive, others = int(rng.integers(0, 30)), int(rng.integers(1, 30))
        d = rng.random(others) * rng.choice([0.0, 0.02, 0.2, 1.0])
        exact = theory.noise_dimension(sensitive, d)
        assert exact <= theory.noise_dimension_limit(sensitive, d) * (1 + 1e-12)
        assert exact <= sensitive + others
        if exact == 0:
            assert theory.gain_factor(sensitive, d) == math.inf
            continue
        closest = max(closest, exact / theory.noise_dimension_limit(sensitive, d))
        assert (
            1 <= theory.gain_factor(sensitive, d) <= math.sqrt((sensitive + others) / exact) + 1e-9
        )
    assert closest > 0.9  # a limit 10 % smaller would be caught


def test_it_is_the_norm_of_the_published_noise() -> None:
    """σ·√(noise dimension) is √Σn_jσ_j², for a design with every role."""
    distances = {"u": 0.3, "v": 0.01, "y": 0.2}
    encoder = Encoder(SCHEMA)
    bound = theory.utility_bound(encoder, Logistic(), distances, 20.0)
    factors = published.variance_factors(encoder, distances)
    assert bound.dimension == pytest.approx(float(encoder.dimensions @ factors))
    assert (bound.coordinates, bound.sensitive, bound.confidence) == (8, 3, None)
    assert bound.gradient_bound == pytest.approx(math.sqrt(5))
    assert bound.dimension <= bound.limit
    assert bound.gain == pytest.approx(
        bound.dp_excess_risk(1000, 1.0, 1e-5) / bound.excess_risk(1000, 1.0, 1e-5)
    )
    squared = theory.utility_bound(encoder, Squared(0.3, 2.0), distances, 20.0)
    assert squared.excess_risk(10, 1.0, 1e-5) == pytest.approx(
        0.3 * bound.excess_risk(10, 1.0, 1e-5)
    )


def test_estimated_distances_carry_their_confidence() -> None:
    from dataclasses import replace

    given = Distances.given({"u": 0.3, "v": 0.2, "y": 0.2})
    estimated = replace(given, gamma=0.05)
    bound = theory.utility_bound(Encoder(SCHEMA), Logistic(), estimated, 5.0)
    assert bound.confidence == pytest.approx(0.95)
    wider = Distances.given({"u": 0.4, "v": 0.2, "y": 0.2})
    assert theory.utility_bound(Encoder(SCHEMA), Logistic(), wider, 5.0).dimension > bound.dimension


def test_rate() -> None:
    rate = theory.excess_risk_rate(4.0, 2.0, 3.0, 100, 0.5, math.exp(-9.0))
    assert rate == pytest.approx(2 * 3 * 6 / 50)
    bound, step = theory.averaged_risk_bound(2.0, 1.0, 100, 3.0)
    assert bound == pytest.approx(0.4) and step == pytest.approx(0.1)
    # the chosen rate is the best: D²/(2ηT) + η(G² + v)/2
    risks = [4 / (2 * s * 100) + s * 4 / 2 for s in (0.9 * step, step, 1.1 * step)]
    assert risks[1] == pytest.approx(bound) and risks[1] == min(risks)


@pytest.mark.parametrize(
    ("sensitive", "distances"),
    [(-1, [0.1]), (True, [0.1]), (1.5, [0.1]), (1, [1.1]), (1, [math.nan]), (1, [[0.1]]), (0, [])],
)
def test_wrong_dimensions(sensitive: Any, distances: Any) -> None:
    for function in (theory.noise_dimension, theory.noise_dimension_limit, theory.gain_factor):
        with pytest.raises(ConfigurationError):
            function(sensitive, distances)


@pytest.mark.parametrize("position", range(6))
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf])
def test_wrong_rates(position: int, value: float) -> None:
    arguments: list[Any] = [4.0, 2.0, 3.0, 100, 0.5, 1e-5]
    arguments[position] = value
    with pytest.raises(ConfigurationError):
        theory.excess_risk_rate(*arguments)


def test_wrong_averages() -> None:
    for wrong in ((0, 1, 1, 1), (1, math.nan, 1, 1), (1, 1, 0, 1), (1, 1, 1, math.inf)):
        with pytest.raises(ConfigurationError):
            theory.averaged_risk_bound(*wrong)


# --- measured risk -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("n", (1000, 2000, 4000)),
        ("epsilon", (0.4, 0.8, 1.6)),
        ("sensitive", (1, 4, 16)),
        ("distance", (0.03, 0.2, 1.0)),
    ],
)
def test_ridge_risk_scales_with_the_bound(scaling: ModuleType, name: str, values: Any) -> None:
    """Near a minimiser with curvature the risk is the square of the rate, in every variable."""
    base = scaling.Setting("ridge", n=2000, epsilon=0.8)
    found, low, high, risks = scaling.sweep("ridge", name, values, range(5), base, PlanRequest(150))
    assert all(risk > 0 for risk in risks)
    assert low < 2.3 and high > 1.7 and 1.3 < found < 2.7
    assert low > 0.9  # neither flat nor below the rate


@pytest.mark.parametrize(("name", "values"), [("n", (1000, 2000, 4000)), ("distance", (0.03, 1.0))])
def test_logistic_risk_scales_with_the_bound(scaling: ModuleType, name: str, values: Any) -> None:
    """Less curved: between the rate and its square."""
    base = scaling.Setting("logistic", n=4000, epsilon=0.8)
    found, low, high, _ = scaling.sweep("logistic", name, values, range(5), base, PlanRequest(100))
    assert 0.9 < found < 2.4 and low > 0.5 and high < 3.0


@pytest.mark.parametrize("loss", ["ridge", "logistic"])
def test_risk_stays_below_the_bound_with_constants(scaling: ModuleType, loss: str) -> None:
    for n in (1000, 4000):
        risk, bound = scaling.explicit(scaling.Setting(loss, n), 60, range(3))
        assert 0 < risk <= bound
        assert risk > 0.02 * bound


def test_ordinary_noise_does_not_follow_the_distance(scaling: ModuleType) -> None:
    """The same measurement rejects noise that ignores distances: its risk is flat."""
    flat = []
    for d in (0.03, 1.0):
        setting = scaling.Setting("ridge", n=2000, epsilon=0.8, distance=d, sensitive=20)
        flat.append(
            float(scaling.excess(scaling.problem(setting, PlanRequest(150)), range(4)).mean())
        )
    assert flat[1] / flat[0] < 2
