"""μ against (ε, δ): references at 60 digits, rounding directions, limits (THEORY T3, T4)."""

from __future__ import annotations

import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from corrdp.errors import ConfigurationError
from corrdp.privacy import gdp

ORACLE = Path(__file__).parents[1] / "oracles" / "t4_gdp.json"
CASES = json.loads(ORACLE.read_text(encoding="utf-8"))


def exact_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """δ_μ(ε) as T4 writes it, at 90 digits (30 of them for cancellation)."""
    with mpmath.workdps(90):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        below = mpmath.ncdf(-e / m + m / 2)
        return below - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


def random_grid(count: int, seed: int) -> list[tuple[float, float]]:
    rng = np.random.default_rng(seed)
    epsilons = 10 ** rng.uniform(-6, 7, count)
    deltas = 10 ** np.where(
        rng.random(count) < 0.5, rng.uniform(-300, -0.4, count), rng.uniform(-12, -0.4, count)
    )
    corners = [(e, d) for e in (1e-6, 1.0, 1e9) for d in (1e-300, 1e-6, 0.4)]
    return [*zip(epsilons.tolist(), deltas.tolist(), strict=True), *corners]


GRID = random_grid(150, seed=1)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['epsilon']}-{c['delta']}")
def test_mu_matches_the_oracle_from_below(case: dict[str, str]) -> None:
    true = mpmath.mpf(case["mu"])
    got = gdp.mu(case["epsilon"], case["delta"])
    assert 0 <= (true - mpmath.mpf(got)) / true <= 1e-9


def test_mu_never_claims_too_much_and_wastes_nothing() -> None:
    for epsilon, delta in GRID:
        got = gdp.mu(epsilon, delta)
        assert exact_delta(got, epsilon) <= delta
        assert exact_delta(got * (1 + 1e-11), epsilon) > delta


def test_a_budget_ten_percent_too_large_is_caught() -> None:
    for epsilon, delta in GRID:
        assert exact_delta(1.1 * gdp.mu(epsilon, delta), epsilon) > delta


def test_delta_is_rounded_up_and_tight() -> None:
    for epsilon, delta in GRID:
        mu = gdp.mu(epsilon, delta)
        true = exact_delta(mu, epsilon)
        got = mpmath.mpf(gdp.delta(mu, epsilon))
        assert true <= got <= true * (1 + 1e-8)
        assert mpmath.log(true) <= mpmath.mpf(gdp.log_delta(mu, epsilon))


def test_delta_over_independent_mu_and_epsilon() -> None:
    rng = np.random.default_rng(2)
    mus, epsilons = 10 ** rng.uniform(-6, 3, 150), 10 ** rng.uniform(-6, 5, 150)
    for mu, epsilon in zip(mus.tolist(), epsilons.tolist(), strict=True):
        if epsilon / mu > 1e5:
            continue  # past what 90 digits resolve
        true = exact_delta(mu, epsilon)
        assert 0 < true <= mpmath.mpf(gdp.delta(mu, epsilon))
        log_true = mpmath.log(true)
        slack = mpmath.mpf(gdp.log_delta(mu, epsilon)) - log_true
        assert 0 <= slack <= 1e-8 * max(1, -log_true)


def test_epsilon_is_rounded_up_and_tight() -> None:
    for wanted, delta in GRID:
        mu = gdp.mu(wanted, delta)
        got = gdp.epsilon(mu, delta)
        assert exact_delta(mu, got) <= delta
        # where ε is tiny beside δ the equation itself only fixes ε to about 1e-14
        below = got * (1 - 1e-9) - 1e-13
        assert below <= 0 or exact_delta(mu, below) > delta


def test_an_epsilon_ten_percent_too_small_is_caught() -> None:
    for wanted, delta in GRID:
        mu = gdp.mu(wanted, delta)
        assert exact_delta(mu, 0.9 * gdp.epsilon(mu, delta)) > delta


@pytest.mark.parametrize(("mu", "epsilon"), [(0.2, 0.1), (1.0, 1.0), (1.0, 3.0), (4.0, 2.0)])
def test_delta_is_the_largest_gap_over_all_events(mu: float, epsilon: float) -> None:
    """∫ max(0, p − e^ε q) is attained by the best event; no formula of T4 is used."""
    grid = np.linspace(-12, 16, 400_001)
    gain = stats.norm.pdf(grid, mu) - math.exp(epsilon) * stats.norm.pdf(grid)
    largest = integrate.trapezoid(np.maximum(gain, 0), grid)
    assert gdp.delta(mu, epsilon) == pytest.approx(largest, rel=1e-6)
    assert gdp.delta(0.9 * mu, epsilon) < 0.99 * largest


def test_limits() -> None:
    assert gdp.mu(math.inf, 1e-6) == math.inf
    assert gdp.epsilon(math.inf, 1e-6) == math.inf
    assert gdp.epsilon(0.0, 1e-6) == 0.0
    assert gdp.delta(0.0, 1.0) == 0.0
    assert gdp.delta(1.0, math.inf) == 0.0
    assert gdp.delta(math.inf, 1.0) == 1.0
    assert gdp.log_delta(0.0, 1.0) == -math.inf
    assert gdp.mu_of_pure(math.inf) == math.inf
    assert gdp.tau(math.inf, 0.1) == 1.0
    assert gdp.epsilon(1e-3, 0.1) == 0.0  # δ alone is enough
    assert 0 < gdp.delta(1e-3, 1e6) <= 5e-324  # the true value underflows and is not zero
    assert gdp.log_delta(1e-300, 1e300) < -1e290


def test_extremes_stay_finite_and_on_the_safe_side() -> None:
    for epsilon in (5e-324, 1e-300, 1e-6, 1e9, 1e100, 1e308):
        for delta in (5e-324, 1e-300, 1e-6, 0.5, 1 - 2**-53):
            mu = gdp.mu(epsilon, delta)
            assert 0 <= mu < math.inf
            assert gdp.log_delta(mu, epsilon) <= math.log(delta)
            assert gdp.epsilon(mu, delta) >= 0
    assert gdp.epsilon(1e200, 1e-6) == math.inf


def test_arrays_broadcast_and_scalars_stay_scalars() -> None:
    epsilons = np.array([0.5, 1.0, math.inf])
    out = gdp.mu(epsilons, 1e-6)
    assert isinstance(out, np.ndarray) and out.shape == (3,)
    assert out[2] == math.inf
    assert type(gdp.mu(1, 1e-6)) is float and type(gdp.epsilon(1.0, 0.5)) is float
    table = gdp.delta(np.ones((2, 1)), np.ones((1, 3)))
    assert isinstance(table, np.ndarray) and table.shape == (2, 3)
    empty = gdp.epsilon([], 1e-6)
    assert isinstance(empty, np.ndarray) and empty.shape == (0,)
    with pytest.raises(ConfigurationError, match="broadcast"):
        gdp.mu([1.0, 2.0], [1e-6, 1e-6, 1e-6])


def test_an_entry_does_not_depend_on_its_neighbours() -> None:
    epsilons, deltas = (np.array(v) for v in zip(*GRID, strict=True))
    mus = gdp.mu(epsilons, deltas)
    assert [gdp.mu(e, d) for e, d in GRID] == np.asarray(mus).tolist()
    alone = [gdp.epsilon(m, d) for m, d in zip(np.asarray(mus).tolist(), deltas, strict=True)]
    assert alone == np.asarray(gdp.epsilon(mus, deltas)).tolist()


NAN = math.nan


@pytest.mark.parametrize("epsilon", [0.0, -1.0, NAN, [1.0, NAN], "much"])
def test_a_target_epsilon_must_be_positive(epsilon: object) -> None:
    with pytest.raises(ConfigurationError, match="epsilon"):
        gdp.mu(epsilon, 1e-6)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="epsilon"):
        gdp.mu_of_pure(epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0, NAN])
def test_delta_must_lie_inside_the_unit_interval(delta: float) -> None:
    with pytest.raises(ConfigurationError, match="delta"):
        gdp.mu(1.0, delta)
    with pytest.raises(ConfigurationError, match="delta"):
        gdp.epsilon(1.0, delta)


@pytest.mark.parametrize("bad", [-1.0, NAN])
def test_mu_and_epsilon_reject_nan_and_negatives(bad: float) -> None:
    for call in (
        lambda: gdp.delta(bad, 1.0),
        lambda: gdp.delta(1.0, bad),
        lambda: gdp.log_delta(bad, 1.0),
        lambda: gdp.epsilon(bad, 1e-6),
        lambda: gdp.group_chain([1.0, bad]),
        lambda: gdp.tau(bad, 0.0),
        lambda: gdp.tau(1.0, bad),
    ):
        with pytest.raises(ConfigurationError):
            call()


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-6, 1e9), st.floats(1e-6, 1e9), st.floats(1e-300, 0.4), st.floats(1e-300, 0.4))
def test_mu_grows_with_epsilon_and_delta(e1: float, e2: float, d1: float, d2: float) -> None:
    small = gdp.mu(min(e1, e2), min(d1, d2))
    large = gdp.mu(max(e1, e2), max(d1, d2))
    assert 0 < small <= large * (1 + 1e-12)


def test_mu_of_pure_covers_randomised_response() -> None:
    """The pair with odds e^ε is the worst ε-DP pair; its curve must lie below that of μ."""
    for epsilon in np.geomspace(1e-4, 30, 25).tolist():
        mu = gdp.mu_of_pure(epsilon)
        others = np.linspace(0, epsilon, 50)[:-1]
        worst = np.exp(others) * np.expm1(epsilon - others) / (1 + math.exp(epsilon))
        assert np.all(gdp.delta(mu, others) >= worst)
        assert np.any(gdp.delta(0.9 * mu, others) < worst)


def test_mu_of_pure_is_rounded_up_and_tight() -> None:
    for epsilon in np.geomspace(1e-9, 1e9, 60).tolist():
        mu = mpmath.mpf(gdp.mu_of_pure(epsilon))
        with mpmath.workdps(60):
            log_p = -mpmath.log1p(mpmath.exp(-mpmath.mpf(epsilon))) - epsilon
            assert mpmath.log(mpmath.ncdf(-mu / 2)) <= log_p
            assert mpmath.log(mpmath.ncdf(-mu / 2 * (1 - mpmath.mpf("1e-12")))) > log_p


def test_tau_bounds_total_variation_and_is_attained() -> None:
    rng = np.random.default_rng(5)
    for _ in range(300):
        p, q = rng.dirichlet(np.full(4, 0.5), 2)
        epsilon = rng.uniform(0, 3)
        odds = math.exp(epsilon)
        delta = max(np.maximum(p - odds * q, 0).sum(), np.maximum(q - odds * p, 0).sum())
        assert np.abs(p - q).sum() / 2 <= gdp.tau(epsilon, min(delta, 1 - 1e-12)) + 1e-12
    for epsilon, delta in [(0.1, 0.0), (1.0, 1e-5), (3.0, 0.2)]:
        high = 1 / (1 + math.exp(-epsilon))
        p = np.array([delta, 0, (1 - delta) * high, (1 - delta) * (1 - high)])
        attained = np.abs(p - p[[1, 0, 3, 2]]).sum() / 2
        assert gdp.tau(epsilon, delta) == pytest.approx(attained, rel=1e-12)


def test_tau_is_rounded_up() -> None:
    for epsilon in (0.0, 1e-9, 1e-3, 1.0, 40.0, 800.0):
        for delta in (0.0, 1e-300, 1e-6, 0.5):
            with mpmath.workdps(60):
                e = mpmath.mpf(epsilon)
                true = mpmath.tanh(e / 2) + 2 * mpmath.mpf(delta) / (mpmath.exp(e) + 1)
                got = mpmath.mpf(gdp.tau(epsilon, delta))
                assert got >= true or got == 1
                assert got <= true * (1 + 1e-14) + 1e-320


def test_group_chain_adds() -> None:
    assert gdp.group_chain([]) == 0.0
    assert gdp.group_chain([0.0]) == 0.0
    assert gdp.group_chain([1.0, math.inf]) == math.inf
    total = gdp.group_chain([0.1] * 10)
    assert 1.0 <= total <= 1.0 + 1e-15
