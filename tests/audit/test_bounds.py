"""Lower bounds stay below the truth with their confidence, and come close to it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from corrdp.audit import epsilon_lower_bound, mu_lower_bound
from corrdp.audit.bounds import lower_limit, upper_limit
from corrdp.errors import ConfigurationError
from corrdp.privacy import gdp


@pytest.mark.parametrize("hits", [0, 1, 17, 49, 50])
def test_limits_are_clopper_pearson(hits: int) -> None:
    interval = stats.binomtest(hits, 50).proportion_ci(0.95, method="exact")
    assert lower_limit(hits, 50, 0.025) == pytest.approx(interval.low, abs=1e-12)
    assert upper_limit(hits, 50, 0.025) == pytest.approx(interval.high, abs=1e-12)


def gaussians(mu: float, runs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=runs), rng.normal(size=runs) + mu


def test_mu_bound_covers_at_its_confidence_and_finds_twice_the_claim() -> None:
    rng = np.random.default_rng(0)
    bounds = np.array([mu_lower_bound(*gaussians(1.0, 600, rng), 0.8) for _ in range(150)])
    # at most 20 % may exceed the truth; 150 draws leave room for four deviations
    assert np.mean(bounds > 1.0) < 0.2 + 4 * math.sqrt(0.2 * 0.8 / 150)
    assert np.median(bounds) > 0.5
    doubled = [mu_lower_bound(*gaussians(2.0, 1000, rng), 0.95) for _ in range(20)]
    assert min(doubled) > 1.0


def test_epsilon_bound_of_randomised_response() -> None:
    rng = np.random.default_rng(1)
    truth = math.log(3)
    keep = 0.75  # says the truth with probability 3/4: exactly ln 3
    bounds = [
        epsilon_lower_bound(rng.random(1000) > keep, rng.random(1000) < keep, 0.0, 0.9)
        for _ in range(200)
    ]
    assert np.mean(np.array(bounds) > truth) < 0.1 + 4 * math.sqrt(0.1 * 0.9 / 200)
    assert np.median(bounds) > 0.75 * truth


def test_epsilon_bound_uses_delta() -> None:
    rng = np.random.default_rng(2)
    a, b = gaussians(1.0, 20_000, rng)
    truth = float(gdp.epsilon(1.0, 0.1))
    assert 0.5 * truth < epsilon_lower_bound(a, b, 0.1, 0.95) < truth
    assert epsilon_lower_bound(a, b, 0.6, 0.95) == 0.0


def test_either_order_and_either_tail_are_found() -> None:
    rng = np.random.default_rng(3)
    a, b = gaussians(3.0, 1000, rng)
    for first, second in ((a, b), (b, a), (-a, -b), (-b, -a)):
        assert mu_lower_bound(first, second) > 2.0


def test_statistics_are_combined() -> None:
    rng = np.random.default_rng(4)
    shared = rng.normal(size=(2, 1000)) * 10
    # only the difference of the two statistics tells the sides apart
    a = np.column_stack([shared[0], shared[0] + 0.1 * rng.normal(size=1000)])
    b = np.column_stack([shared[1], shared[1] + 0.1 * rng.normal(size=1000) + 0.5])
    assert mu_lower_bound(a[:, 0], b[:, 0]) == 0.0
    assert mu_lower_bound(a, b) > 3.0


def test_equal_outputs_give_nothing_and_certain_ones_are_limited_by_the_runs() -> None:
    same = np.zeros(1000)
    assert mu_lower_bound(same, same) == 0.0 and epsilon_lower_bound(same, same, 0.0) == 0.0
    certain = epsilon_lower_bound(same, same + 1, 0.0)
    assert 4.5 < certain < math.log(1000)


@pytest.mark.parametrize(
    ("a", "b", "delta", "confidence"),
    [
        ([1.0, 2.0, math.nan, 4.0], [1.0] * 4, 0.0, 0.95),
        ([1.0] * 3, [1.0] * 4, 0.0, 0.95),
        ([[1.0, 2.0]] * 4, [1.0] * 4, 0.0, 0.95),
        ([1.0] * 4, [1.0] * 4, 1.0, 0.95),
        ([1.0] * 4, [1.0] * 4, math.nan, 0.95),
        ([1.0] * 4, [1.0] * 4, 0.0, math.nan),
    ],
)
def test_what_is_no_sample_is_refused(a: list, b: list, delta: float, confidence: float) -> None:
    with pytest.raises(ConfigurationError):
        epsilon_lower_bound(a, b, delta, confidence)
