"""Noise allocation against references, brute force and exact arithmetic (THEORY T5)."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from corrdp import allocation
from corrdp.allocation import (
    Allocation,
    LaplaceAllocation,
    allocate,
    allocate_laplace,
    one_scale_laplace,
)
from corrdp.errors import ConfigurationError

ORACLE = Path(__file__).parent / "oracles" / "t5_allocation.json"
CASES = json.loads(ORACLE.read_text(encoding="utf-8"))


def overspent(sensitivity: Any, noise: Any, budget: Any, power: int) -> list[int]:
    """Kinds whose Σ_j (a_kj/noise_j)^power exceeds the budget, in exact arithmetic."""
    kinds = []
    for k, row in enumerate(np.asarray(sensitivity, dtype=float).tolist()):
        limit = float(budget[k])
        if math.isinf(limit):
            continue
        used = sum(
            (Fraction(a) / Fraction(s)) ** power
            for a, s in zip(row, np.asarray(noise).tolist(), strict=True)
            if a > 0
        )
        if used > Fraction(limit):
            kinds.append(k)
    return kinds


def dual_value(
    sensitivity: Any, budget: Any, cost: Any, dual: Any, power: int
) -> float:  # Σ c_j noise_j² of anything feasible is at least this
    a, b, c = (np.asarray(v, dtype=float) for v in (sensitivity, budget, cost))
    finite = np.isfinite(b)
    touched = a[finite].any(axis=0)
    s = dual[finite] @ (a[finite] ** 2 if power == 2 else a[finite])
    s, c = s[touched], c[touched]
    if power == 2:
        return float(2 * np.sqrt(c * s).sum() - dual[finite] @ b[finite])
    return float(3 * np.cbrt(c * (s / 2) ** 2).sum() - dual[finite] @ b[finite])


def random_problem(rng: np.random.Generator, spread: float, kinds: int, blocks: int) -> Any:
    """Sensitivities, budgets (most of them near binding when spread is 0) and dimensions."""
    a = np.abs(rng.normal(size=(kinds, blocks))) * (rng.random((kinds, blocks)) < 0.7)
    a *= 10 ** rng.uniform(-6 * spread, 3 * spread, a.shape)
    if rng.random() < 0.5:
        w = 10 ** rng.uniform(-3, 3, blocks)
        b = np.maximum(a**2 @ w, 1e-12) * rng.choice([1.0, 1.0, 1.5], kinds)
    else:
        b = 10 ** rng.uniform(-1 - 11 * spread, 1 + 11 * spread, kinds)
    return a, b, np.round(10 ** rng.uniform(0, 4, blocks))


SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("case", CASES)
def test_oracle(case: dict[str, Any]) -> None:
    found = allocate(case["sensitivity"], case["budget"], case["dimension"])
    assert found.total_variance <= case["total_variance"] * (1 + 1e-6)
    assert found.total_variance >= case["lower_bound"] * (1 - 1e-9)
    assert overspent(case["sensitivity"], found.sigma, case["budget"], 2) == []
    assert 0 <= found.gap <= 1e-8


@pytest.mark.parametrize("case", CASES)
def test_ten_percent_over_budget_is_caught(case: dict[str, Any]) -> None:
    sigma = allocate(case["sensitivity"], case["budget"], case["dimension"]).sigma
    assert overspent(case["sensitivity"], sigma / math.sqrt(1.1), case["budget"], 2) != []
    # and so is a part in 10^12: nothing is wasted beyond rounding
    assert overspent(case["sensitivity"], sigma * (1 - 1e-12), case["budget"], 2) != []


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.3, 1.0]), st.integers(1, 25), st.integers(1, 25))
def test_random_problems_are_feasible_and_optimal(
    seed: int, spread: float, kinds: int, blocks: int
) -> None:
    a, b, n = random_problem(np.random.default_rng(seed), spread, kinds, blocks)
    gauss, laplace = allocate(a, b, n), allocate_laplace(a, b, n)
    assert overspent(a, gauss.sigma, b, 2) == [] and overspent(a, laplace.scale, b, 1) == []
    assert gauss.gap <= 1e-8 and laplace.gap <= 1e-8
    # the certificate of optimality is the dual, evaluated here and not in the solver
    bound = dual_value(a, b, n, gauss.dual, 2)
    assert gauss.total_variance <= bound * (1 + 1.1e-8) + 1e-300
    bound = 2 * dual_value(a, b, n, laplace.dual, 1)
    assert laplace.total_variance <= bound * (1 + 1.1e-8) + 1e-300


def test_a_hundred_binding_kinds_of_wide_range_converge() -> None:
    rng = np.random.default_rng(10)
    a = rng.uniform(0, 1, (100, 100)) * 10 ** rng.uniform(-6, 3, (100, 1))
    w = 10 ** rng.uniform(-6, 6, 100)
    b, n = a**2 @ w, rng.integers(1, 1000, 100)
    found = allocate(a, b, n)
    assert found.gap <= 1e-8 and overspent(a, found.sigma, b, 2) == []
    assert found.total_variance <= n @ (1 / w) * (1 + 1e-8)  # w itself is feasible


def slsqp(a: Any, b: Any, n: Any, power: int) -> float:
    """Least Σ n_j noise_j² by a general solver in u_j = ln noise_j."""
    start = np.full(len(n), math.log(((a / b[:, None] ** (1 / power)).max() + 1) * len(n)))
    result = optimize.minimize(
        lambda u: math.log(n @ np.exp(2 * u)),
        start,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda u: 1 - a**power @ np.exp(-power * u) / b},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert result.success
    return math.exp(result.fun)


@pytest.mark.parametrize("seed", range(12))
def test_against_a_general_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds, blocks = rng.integers(2, 7, 2)
    a = rng.uniform(0.1, 2, (kinds, blocks))
    b, n = rng.uniform(0.5, 2, kinds), rng.integers(1, 9, blocks).astype(float)
    assert allocate(a, b, n).total_variance == pytest.approx(slsqp(a, b, n, 2), rel=1e-5)
    found = allocate_laplace(a, b, n).total_variance
    assert found == pytest.approx(2 * slsqp(a, b, n, 1), rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_against_every_direction_of_two_blocks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, n = rng.uniform(0, 2, (3, 2)), rng.uniform(0.1, 2, 3), np.array([3.0, 40.0])
    share = np.linspace(0, 1, 100_001)[1:-1]
    directions = np.stack([share, 1 - share])
    for power, total in (
        (2, allocate(a, b, n).total_variance),
        (1, allocate_laplace(a, b, n).total_variance / 2),
    ):
        precision = directions / (a**power @ directions / b[:, None]).max(axis=0)
        best = (n @ precision ** (-2 / power)).min()
        assert total <= best * (1 + 1e-8)
        assert total == pytest.approx(best, rel=1e-5)  # as fine as the directions


def test_one_kind_has_a_closed_form() -> None:
    a, n, b = np.array([0.5, 2.0, 1e-3]), np.array([1.0, 7.0, 100.0]), 0.3
    found = allocate([a], [b], n)
    expected = a / np.sqrt(n) * (a * np.sqrt(n)).sum() / b
    np.testing.assert_allclose(found.sigma**2, expected, rtol=1e-12)
    found_laplace = allocate_laplace([a], [b], n)
    shape = np.cbrt(n / a)  # v_j, up to the factor that spends ε
    np.testing.assert_allclose(found_laplace.scale, (a @ shape) / b / shape, rtol=1e-12)
    one = allocate([[2.0]], [0.25], [5])
    assert one.sigma[0] == pytest.approx(4.0, rel=1e-13) and one.sigma[0] >= 4.0
    assert one.total_variance == pytest.approx(80.0, rel=1e-12)


def test_merged_scalars_need_the_bound_of_the_whole_block() -> None:
    """Nine scalars that each move by a: one block of L2 bound 3a; a alone overspends ninefold."""
    a, b = 0.7, 0.4
    apart = allocate([[a] * 9], [b], [1] * 9)
    merged = allocate([[3 * a]], [b], [9])
    assert merged.total_variance == pytest.approx(apart.total_variance, rel=1e-12)
    wrong = allocate([[a]], [b], [9])
    assert overspent([[a] * 9], np.repeat(wrong.sigma, 9), [b], 2) == [0]


def test_infinite_and_empty_rows_are_dropped() -> None:
    rng = np.random.default_rng(3)
    a, b, n = rng.uniform(0.1, 1, (4, 5)), rng.uniform(0.1, 1, 4), np.arange(1, 6)
    more = np.vstack([a[:2], np.full(5, 9.0), np.zeros(5), a[2:]])
    budgets = np.array([*b[:2], math.inf, 0.0, *b[2:]])
    for solve in (allocate, allocate_laplace):
        plain, found = solve(a, b, n), solve(more, budgets, n)
        assert found.total_variance == pytest.approx(plain.total_variance, rel=1e-9)
        assert found.dual[2] == found.dual[3] == 0
        assert found.dual.shape == (6,)


def test_a_block_that_no_finite_kind_touches_gets_no_noise() -> None:
    found = allocate([[1.0, 0.0], [1.0, 1.0]], [1.0, math.inf], [2, 3])
    assert found.sigma[1] == 0 and found.sigma[0] == pytest.approx(1.0)
    silent = allocate([[1.0, 2.0]], [math.inf], [2, 3])
    assert silent.sigma.tolist() == [0, 0] and silent.total_variance == silent.gap == 0
    laplace = allocate_laplace([[1.0, 2.0]], [math.inf], [2, 3])
    assert laplace.scale.tolist() == [0, 0]


def test_noise_variance_is_inverse_to_the_budget() -> None:
    rng = np.random.default_rng(4)
    a, b, n = rng.uniform(0, 1, (6, 5)), rng.uniform(0.1, 1, 6), np.arange(1, 6)
    full, half = allocate(a, b, n), allocate(a, b / 2, n)
    assert half.total_variance == pytest.approx(2 * full.total_variance, rel=1e-12)
    full_scale, half_scale = allocate_laplace(a, b, n), allocate_laplace(a, b / 2, n)
    assert half_scale.total_variance == pytest.approx(4 * full_scale.total_variance, rel=1e-12)


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_a_larger_budget_or_smaller_sensitivity_never_costs_noise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, n = random_problem(rng, 0.0, 5, 4)
    base = allocate(a, b, n).total_variance
    assert allocate(a, b * rng.uniform(1, 3, 5), n).total_variance <= base * (1 + 1e-8)
    assert allocate(a * rng.uniform(0.2, 1, a.shape), b, n).total_variance <= base * (1 + 1e-8)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from(["near", "same", "arbitrary"]))
def test_a_warm_start_changes_nothing_but_the_time(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    a, b, n = random_problem(rng, 0.2, 8, 6)
    for solve in (allocate, allocate_laplace):
        cold = solve(a, b, n)
        start = {
            "same": cold.dual,
            "near": solve(a * np.exp(0.05 * rng.normal(size=a.shape)), b, n).dual,
            "arbitrary": 10 ** rng.uniform(-300, 300, 8) * (rng.random(8) < 0.7),
        }[kind]
        warm = solve(a, b, n, start=start)
        assert warm.gap <= 1e-8
        assert warm.total_variance == pytest.approx(cold.total_variance, rel=2e-8, abs=1e-300)


def test_loose_tolerance_reports_its_gap() -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        a, b, n = random_problem(rng, 0.0, 10, 10)
        best, loose = allocate(a, b, n), allocate(a, b, n, tolerance=1e-2)
        assert loose.gap <= 1e-2
        assert loose.total_variance <= best.total_variance * (1 + loose.gap + 1e-12)
        assert overspent(a, loose.sigma, b, 2) == []


def test_duplicated_and_dominated_kinds_change_nothing() -> None:
    rng = np.random.default_rng(8)
    a, b, n = rng.uniform(0, 1, (5, 6)), rng.uniform(0.1, 1, 5), np.arange(1, 7)
    many = np.vstack([a, a, a, 0.5 * a])
    budgets = np.concatenate([b, b, b, b])
    for solve in (allocate, allocate_laplace):
        alone, together = solve(a, b, n), solve(many, budgets, n)
        assert together.total_variance == pytest.approx(alone.total_variance, rel=2e-8)


def test_weights_enter_the_objective_only() -> None:
    rng = np.random.default_rng(9)
    a, b = rng.uniform(0.1, 1, (4, 3)), rng.uniform(0.1, 1, 4)
    n, eta_squared = np.array([2.0, 5.0, 1.0]), np.array([1.0, 0.01, 4.0])
    found = allocate(a, b, n, weights=eta_squared)
    as_dimension = allocate(a, b, np.maximum(n * eta_squared * 100, 1))
    np.testing.assert_allclose(found.sigma, as_dimension.sigma, rtol=1e-3)
    assert found.total_variance == pytest.approx(float(n @ found.sigma**2), rel=1e-14)
    bound = dual_value(a, b, n * eta_squared, found.dual, 2)
    assert (n * eta_squared) @ found.sigma**2 == pytest.approx(bound, rel=1e-7)
    unweighted = allocate(a, b, n)
    assert (n * eta_squared) @ found.sigma**2 <= (n * eta_squared) @ unweighted.sigma**2
    assert overspent(a, found.sigma, b, 2) == []


def test_a_solver_that_stalls_still_meets_every_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.array([[1.0, 0.2, 0.0], [0.1, 3.0, 1.0]]), np.array([0.1, 2.0])
    n = np.array([1.0, 10.0, 3.0])
    best = allocate(a, b, n).total_variance

    def fails(matrix: Any, right: Any) -> tuple[Any, Any, int]:
        return matrix, right, 1

    def nonsense(matrix: Any, right: Any) -> tuple[Any, Any, int]:
        return matrix, np.full_like(right, math.nan), 0

    for broken in (fails, nonsense):
        monkeypatch.setattr(allocation.lapack, "dposv", broken)
        for start in (None, [1.0, 0.0]):
            found = allocate(a, b, n, start=start)
            assert overspent(a, found.sigma, b, 2) == []
            assert found.gap > 1e-3
            assert best <= found.total_variance * (1 + 1e-8)
            assert found.total_variance <= best * (1 + found.gap)


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_the_one_scale_mechanism_is_a_feasible_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, d = rng.uniform(0, 2, (4, 3)), rng.uniform(0.01, 1, 4)
    epsilon, n = rng.uniform(0.1, 3), np.array([1.0, 4.0, 2.0])
    scale = one_scale_laplace(a.sum(axis=1), d, epsilon)
    budget = (epsilon / d) * (1 - 1e-12)
    best = allocate_laplace(a, budget, n)
    assert best.total_variance <= 2 * n.sum() * scale**2 * (1 + 1e-8)
    for total, distance in zip(a.sum(axis=1).tolist(), d.tolist(), strict=True):
        assert Fraction(distance) * Fraction(total) <= Fraction(scale) * Fraction(epsilon)
    assert scale == pytest.approx((d * a.sum(axis=1)).max() / epsilon, rel=1e-14)


def test_one_scale_limits_and_errors() -> None:
    assert one_scale_laplace([1.0, 2.0], [1.0, 0.0], 0.5) == pytest.approx(2.0)
    assert one_scale_laplace([1.0], [1.0], math.inf) == 0.0
    assert one_scale_laplace([3.0], [0.0], 1.0) == 0.0
    for bad in (
        ([-1.0], [1.0], 1.0),
        ([math.nan], [1.0], 1.0),
        ([math.inf], [1.0], 1.0),
        ([1.0], [1.5], 1.0),
        ([1.0], [math.nan], 1.0),
        ([1.0, 2.0], [1.0], 1.0),
        ([1.0], [1.0], 0.0),
        ([1.0], [1.0], math.nan),
        ([1e300], [1.0], 1e-300),
    ):
        with pytest.raises(ConfigurationError):
            one_scale_laplace(*bad)


GOOD = {"sensitivity": [[1.0, 2.0], [0.5, 1.0]], "budget": [1.0, 2.0], "dimension": [1, 2]}
BAD = [
    ("sensitivity", [[1.0, -2.0], [0.5, 1.0]]),
    ("sensitivity", [[1.0, math.nan], [0.5, 1.0]]),
    ("sensitivity", [[1.0, math.inf], [0.5, 1.0]]),
    ("sensitivity", [1.0, 2.0]),
    ("sensitivity", [["a", "b"], ["c", "d"]]),
    ("sensitivity", np.zeros((2, 0))),
    ("budget", [1.0, -1.0]),
    ("budget", [1.0, math.nan]),
    ("budget", [1.0, 0.0]),
    ("budget", [1.0]),
    ("budget", [1.0, 2.0, 3.0]),
    ("budget", 1.0),
    ("budget", [1e-310, 1e-310]),
    ("dimension", [0, 2]),
    ("dimension", [1, math.nan]),
    ("dimension", [1, math.inf]),
    ("dimension", [1, 2, 3]),
    ("start", [1.0]),
    ("start", [-1.0, 1.0]),
    ("start", [math.nan, 1.0]),
    ("tolerance", 0.0),
    ("tolerance", math.nan),
]


@pytest.mark.parametrize(("name", "value"), BAD, ids=lambda v: str(v)[:30])
def test_errors_name_the_parameter(name: str, value: Any) -> None:
    for solve in (allocate, allocate_laplace):
        with pytest.raises(ConfigurationError, match=r"sensitivity|" + name) as caught:
            solve(**{**GOOD, name: value})
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("weights", [[0.0, 1.0], [1.0, math.nan], [1.0], [math.inf, 1.0]])
def test_weights_are_checked(weights: list[float]) -> None:
    with pytest.raises(ConfigurationError, match="weights"):
        allocate(**GOOD, weights=weights)


@pytest.mark.parametrize("field", ["noise", "dual", "total_variance", "gap"])
@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_results_check_themselves_and_cannot_be_changed(field: str, bad: float) -> None:
    values = {"noise": [1.0], "dual": [1.0], "total_variance": 1.0, "gap": 0.0}
    values[field] = [bad] if isinstance(values[field], list) else bad
    arguments = [values[name] for name in ("noise", "total_variance", "gap", "dual")]
    for result in (Allocation, LaplaceAllocation):
        with pytest.raises(ConfigurationError):
            result(*arguments)
    found = allocate(**GOOD)
    with pytest.raises(ValueError, match="read-only"):
        found.sigma[0] = 0.0
