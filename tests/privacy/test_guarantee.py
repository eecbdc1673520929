"""T4: what fixed budgets guarantee, and why realised sums are no guarantee."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm

from corrdp.encoding import Encoder
from corrdp.erm.losses import Logistic, Squared
from corrdp.erm.sensitivity import SensitivityTable
from corrdp.errors import ConfigurationError
from corrdp.neighbours import INSENSITIVE, RECORD, SENSITIVE, NeighbourKind, neighbour_kinds
from corrdp.privacy import gdp
from corrdp.privacy.budgets import PrivacyTarget, kind_budgets
from corrdp.privacy.guarantee import chained, dual_bound, guaranteed_mu
from corrdp.schema import Categorical, Label, Numeric, Schema


def schema(label_role: str, u_role: str = "insensitive") -> Schema:
    return Schema(
        {
            "s": Categorical(["a", "b"]),
            "u": Numeric(0, 1, role=u_role),
            "v": Categorical(["a", "b", "c"], role=u_role),
        },
        Label("y", [0, 1], role=label_role),
    )


def setup(label_role: str, distances: dict[str, float], loss: object = None) -> tuple:
    one = schema(label_role)
    kinds = neighbour_kinds(one)
    table = SensitivityTable(Encoder(one), loss or Logistic(), kinds)  # type: ignore[arg-type]
    budgets = kind_budgets(PrivacyTarget(1.0, 1e-6), kinds, distances)
    beta = np.array([budget.mu_squared for budget in budgets])
    return kinds, table, beta


def row_of(kinds: tuple[NeighbourKind, ...], name: str) -> int:
    return [kind.name for kind in kinds].index(name)


def test_realised_epsilon_is_not_a_guarantee() -> None:
    """N(0,1) against N(1,1); stop if y ≥ 4.878, else release at μ = 3: T4 says 1.995·δ."""
    delta, stop = 1e-5, 4.878
    realised_stop = float(gdp.epsilon(1.0, delta))
    realised_on = float(gdp.epsilon(math.sqrt(10.0), delta))

    # loss of the pair: first release gives y − 1/2, the second 3z − 9/2
    def tail(y: float, threshold: float) -> float:
        need = (threshold - (y - 0.5) + 4.5) / 3.0
        p, q = norm.sf(need - 3.0), norm.sf(need)
        return float(norm.pdf(y - 1.0) * p - math.exp(threshold) * norm.pdf(y) * q)

    stopped = norm.sf(stop - 1.0) - math.exp(realised_stop) * norm.sf(stop)
    gone_on = integrate.quad(tail, -8, stop, args=(realised_on,), limit=400)[0]
    needed = stopped + gone_on
    assert needed > 1.9 * delta
    assert needed == pytest.approx(1.995 * delta, rel=0.02)
    # the budget that was fixed beforehand does hold
    fixed = math.sqrt(1.0 + 9.0)
    honest = float(gdp.epsilon(fixed, delta))
    by_fixed = integrate.quad(tail, -8, stop, args=(honest,), limit=400)[0]
    assert by_fixed + max(0.0, norm.sf(stop - 1.0) - math.exp(honest) * norm.sf(stop)) <= delta


def test_sensitive_label_makes_the_record_twice_the_sensitive_mu() -> None:
    kinds, table, beta = setup("sensitive", {"u": 0.0, "v": 0.0})
    high = table.supremum(math.inf)
    bound = dual_bound(beta, table.infimum, high[row_of(kinds, RECORD)])
    assert bound.multipliers[row_of(kinds, SENSITIVE)] == pytest.approx(4.0)
    mus = guaranteed_mu(kinds, beta, table.infimum, high)
    mu_s = math.sqrt(beta[row_of(kinds, SENSITIVE)])
    assert mus[row_of(kinds, RECORD)] == pytest.approx(2 * mu_s)
    assert mus[row_of(kinds, "u")] == pytest.approx(2 * mu_s)  # d = 0, and yet bounded
    # ε = 1, δ = 1e-6: ordinary DP at 2.12
    assert float(gdp.epsilon(2 * gdp.mu(1.0, 1e-6), 1e-6)) == pytest.approx(2.12, abs=0.01)


def test_insensitive_label_makes_the_record_twice_the_labels_mu() -> None:
    kinds, table, beta = setup("insensitive", {"u": 0.0, "v": 0.0, "y": 0.9})
    high = table.supremum(math.inf)
    bound = dual_bound(beta, table.infimum, high[row_of(kinds, RECORD)])
    assert bound.multipliers[row_of(kinds, "y")] == pytest.approx(4.0)
    mus = guaranteed_mu(kinds, beta, table.infimum, high)
    assert mus[row_of(kinds, RECORD)] == pytest.approx(2 * math.sqrt(beta[row_of(kinds, "y")]))


def test_public_label_with_free_columns_guarantees_nothing_for_them() -> None:
    kinds, table, beta = setup("public", {"u": 0.0, "v": 0.0})
    mus = guaranteed_mu(kinds, beta, table.infimum, table.supremum(20.0))
    for name in ("u", "v", INSENSITIVE, RECORD):
        assert math.isinf(mus[row_of(kinds, name)])
    assert math.isfinite(mus[row_of(kinds, SENSITIVE)])


@pytest.mark.parametrize(("clip", "span"), [(0.3, 2.0), (1.0, 2.0), (2.0, 1.0)])
def test_squared_loss_label_multiplier(clip: float, span: float) -> None:
    """λ_y = (2L / min(2L, Δ_y))²."""
    kinds, table, beta = setup("insensitive", {"u": 0.0, "v": 0.0}, Squared(clip, span))
    bound = dual_bound(beta, table.infimum, table.supremum(math.inf)[row_of(kinds, RECORD)])
    expected = (2 * clip / min(2 * clip, span)) ** 2
    assert bound.multipliers[row_of(kinds, "y")] == pytest.approx(expected)


def test_dual_bound_equals_the_primal_program() -> None:
    """max{Σ sup²w : Σ inf²w ≤ b} is attained, so the bound is not looser than stated."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(3)
    for _ in range(40):
        low = rng.uniform(0, 2, size=(4, 6)) * (rng.random((4, 6)) < 0.8)
        low[0] = rng.uniform(0.1, 1, size=6)
        beta = rng.uniform(0.01, 3, size=4)
        target = rng.uniform(0, 2, size=6)
        bound = dual_bound(beta, low, target)
        primal = linprog(-(target**2), A_ub=low**2, b_ub=beta, method="highs")
        assert bound.mu_squared >= -primal.fun * (1 - 1e-12)
        assert bound.mu_squared <= -primal.fun * (1 + 1e-6)
        multipliers = np.array(bound.multipliers)
        assert (multipliers @ low**2 >= target**2 * (1 - 1e-15)).all()
        # any w that meets the budgets meets the bound, for inf ≤ a ≤ sup
        for _ in range(50):
            w = rng.exponential(size=6)
            w /= ((low**2 @ w) / beta).max()
            assert target**2 @ w <= bound.mu_squared * (1 + 1e-9)


def test_a_dual_bound_ten_percent_smaller_would_be_exceeded() -> None:
    low, beta, target = np.array([[1.0, 0.5]]), np.array([0.3]), np.array([1.0, 1.0])
    bound = dual_bound(beta, low, target)
    w = np.array([0.0, 0.3 / 0.25])
    assert low[0] ** 2 @ w <= beta[0]
    assert target**2 @ w > 0.9 * bound.mu_squared


def test_infinite_budgets_cannot_help_and_nan_is_refused() -> None:
    assert math.isinf(dual_bound([math.inf], [[1.0]], [1.0]).mu_squared)
    assert dual_bound([1.0], [[1.0]], [0.0]).mu_squared == 0.0
    with pytest.raises(ConfigurationError, match="NaN"):
        dual_bound([math.nan], [[1.0]], [1.0])


def test_chain_and_wider_kinds() -> None:
    kinds = (
        NeighbourKind(SENSITIVE, ("s",), False),
        NeighbourKind("u", ("u",), False),
        NeighbourKind("v", ("v",), False),
        NeighbourKind(INSENSITIVE, ("u", "v"), False),
        NeighbourKind(RECORD, ("s", "u", "v"), False),
    )
    mus = chained(kinds, np.array([0.5, 1.0, 2.0, math.inf, math.inf]))
    assert mus.tolist() == [0.5, 1.0, 2.0, 3.0, 3.5]
    capped = chained(kinds, np.array([0.5, 1.0, math.inf, math.inf, 0.7]))
    assert capped.tolist() == [0.5, 0.7, 0.7, 0.7, 0.7]
    nothing = chained(kinds, np.array([0.5, 1.0, math.inf, math.inf, math.inf]))
    assert math.isinf(nothing[2]) and math.isinf(nothing[4])


def test_chain_law_by_two_gaussians() -> None:
    """Two moves of μ_1 and μ_2 are one move of μ_1 + μ_2 at worst, and not less."""
    epsilon = 1.3
    exact = norm.sf(epsilon / 1.5 - 0.75) - math.exp(epsilon) * norm.sf(epsilon / 1.5 + 0.75)
    assert float(gdp.delta(0.5 + 1.0, epsilon)) == pytest.approx(exact, rel=1e-9)


def test_budgets_of_all_kinds() -> None:
    kinds = neighbour_kinds(schema("insensitive"))
    target = PrivacyTarget(1.0, 1e-6, epsilon_cap=4.0, record_epsilon=2.0, insensitive_epsilon=3.0)
    found = {
        b.kind.name: b.epsilon for b in kind_budgets(target, kinds, {"u": 0.1, "v": 0.5, "y": 0.0})
    }
    assert found == {
        SENSITIVE: 1.0,
        "u": 4.0,
        "v": 2.0,
        "y": 4.0,
        INSENSITIVE: 3.0,
        RECORD: 2.0,
    }
    record = PrivacyTarget(1.0, 1e-6, adjacency="record")
    joint = {b.kind.name: b.epsilon for b in kind_budgets(record, kinds, {}, joint_distance=0.5)}
    assert joint[INSENSITIVE] == 2.0
    plain = {b.kind.name: b.epsilon for b in kind_budgets(record, kinds, {})}
    assert plain[INSENSITIVE] == 1.0  # without a joint distance d_U = 1


def test_budgets_never_exceed_the_allowed_loss() -> None:
    kinds = neighbour_kinds(schema("insensitive"))
    for epsilon in (1e-4, 0.1, 1.0, 30.0):
        for budget in kind_budgets(PrivacyTarget(epsilon, 1e-9), kinds, {"u": 1e-3, "y": 0.2}):
            if math.isfinite(budget.mu_squared):
                loss = float(gdp.epsilon(math.sqrt(budget.mu_squared), budget.delta))
                assert loss <= budget.epsilon
                assert loss >= 0.99 * budget.epsilon


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epsilon", 0.0),
        ("epsilon", -1.0),
        ("epsilon", math.nan),
        ("epsilon", math.inf),
        ("epsilon", "1"),
        ("epsilon", True),
        ("delta", 0.0),
        ("delta", 1.0),
        ("delta", math.nan),
        ("delta", -0.1),
        ("adjacency", "both"),
        ("epsilon_cap", 0.5),
        ("record_epsilon", math.nan),
        ("insensitive_epsilon", 0.1),
        ("records_per_person", 0),
        ("records_per_person", 1.0),
    ],
)
def test_bad_targets_are_refused(field: str, value: object) -> None:
    settings = {"epsilon": 1.0, "delta": 1e-6, field: value}
    with pytest.raises(ConfigurationError, match=field):
        PrivacyTarget(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("distance", [-0.1, 1.1, math.nan])
def test_bad_distances_are_refused(distance: float) -> None:
    kinds = neighbour_kinds(schema("insensitive"))
    with pytest.raises(ConfigurationError, match="u"):
        kind_budgets(PrivacyTarget(1.0, 1e-6), kinds, {"u": distance})
