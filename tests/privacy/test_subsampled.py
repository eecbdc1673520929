"""The subsampled accountant against brute force, oracles, T4 and another accountant (THEORY T7)."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.privacy_accountant import NeighboringRelation
from numpy.typing import NDArray
from scipy import stats

from corrdp.errors import ConfigurationError
from corrdp.privacy import gdp, many_steps, subsampled
from tests.conftest import load_oracle

Floats = NDArray[np.float64]

ORACLE = load_oracle("t7_subsampled.json")
LOSSES = np.array([-3.0, -1.0, -0.2, -0.02, 0.0, 0.01, 0.1, 0.5, 1.0, 2.5])


# --- one step -------------------------------------------------------------------------------------


def exact_on_a_line(epsilon: float, q: float, v: float, v_new: float) -> float:
    """H(P‖Q; e^ε) of two one-dimensional pairs by adding up the positive part on a fine grid."""
    y = np.linspace(min(0.0, v, v_new) - 12, max(0.0, v, v_new) + 12, 40_001)
    p = (1 - q) * stats.norm.pdf(y) + q * stats.norm.pdf(y - v)
    other = (1 - q) * stats.norm.pdf(y) + q * stats.norm.pdf(y - v_new)
    return float(np.sum(np.maximum(p - math.exp(epsilon) * other, 0.0)) * (y[1] - y[0]))


def exact_in_the_plane(q: float, v: Floats, v_new: Floats) -> Floats:
    """The same for contributions in the plane, one value for each of LOSSES."""
    axis = np.linspace(-8.0, 8.0, 241)
    x, y = np.meshgrid(axis, axis)

    def density(centre: Floats) -> Floats:
        return np.exp(-0.5 * ((x - centre[0]) ** 2 + (y - centre[1]) ** 2)) / (2 * math.pi)

    absent = (1 - q) * density(np.zeros(2))
    p, other = absent + q * density(v), absent + q * density(v_new)
    cell = (axis[1] - axis[0]) ** 2
    return np.array([np.sum(np.maximum(p - math.exp(e) * other, 0.0)) * cell for e in LOSSES])


@pytest.mark.parametrize(
    ("q", "c", "a"), [(0.01, 1.0, 0.4), (0.3, 2.0, 1.0), (0.05, 0.7, 1.4), (0.9, 1.5, 0.3)]
)
def test_no_pair_in_the_plane_exceeds_the_profile(q: float, c: float, a: float) -> None:
    rng = np.random.default_rng(11)
    bound = np.asarray(subsampled.profile(LOSSES, q, c, a))
    closest = np.zeros(len(LOSSES))
    for trial in range(25):
        angle, turn = rng.uniform(0, 2 * math.pi, 2)
        v = (c if trial % 2 else c * rng.random()) * np.array([math.cos(angle), math.sin(angle)])
        moved = v + a * (1 if trial % 3 else rng.random()) * np.array(
            [math.cos(turn), math.sin(turn)]
        )
        if np.linalg.norm(moved) > c:
            moved *= c / np.linalg.norm(moved)  # projection on the ball does not lengthen v − v′
        for pair in ((v, moved), (moved, v)):
            found = exact_in_the_plane(q, *pair)
            assert np.all(found <= bound * (1 + 1e-4) + 1e-7)
            closest = np.maximum(closest, found / bound)
    assert closest.max() > 0.5


@pytest.mark.parametrize(
    ("q", "c", "a"), list(itertools.product([0.01, 0.2, 0.9], [0.5, 2.0], [0.1, 0.5, 1.0]))
)
def test_the_collinear_pair_attains_it(q: float, c: float, a: float) -> None:
    for e in (0.0, 0.05, 0.3, 1.0):
        bound = float(subsampled.profile(e, q, c, a))
        exact = exact_on_a_line(e, q, c, c - a)
        assert exact * (1 - 1e-6) <= bound <= exact * (1 + 1e-3) + 1e-12
        # the other order is the mirror
        bound = float(subsampled.profile(-e, q, c, a))
        exact = exact_on_a_line(-e, q, c - a, c)
        assert exact * (1 - 1e-6) <= bound <= exact * (1 + 1e-3) + 1e-12


@pytest.mark.parametrize("q", [0.01, 0.5])
def test_a_bound_ten_per_cent_too_small_is_caught(q: float) -> None:
    for e in (0.0, 0.2):
        exact = exact_on_a_line(e, q, 1.0, 0.5)
        assert float(subsampled.profile(e, q, 1.0, 0.9 * 0.5)) < 0.97 * exact
        assert float(subsampled.profile(e, 0.9 * q, 1.0, 0.5)) < 0.97 * exact


def test_ignoring_presence_is_caught() -> None:
    """With the least presence that a change a allows, a/2, the profile is too small."""
    exact = exact_on_a_line(0.05, 0.05, 2.0, 1.5)
    assert float(subsampled.profile(0.05, 0.05, 2.0, 0.5)) >= exact * (1 - 1e-6)
    assert float(subsampled.profile(0.05, 0.05, 0.25, 0.5)) < 0.5 * exact
    little = subsampled.epsilon(0.05, 0.25, 0.5, 400, 1e-5)
    assert little < 0.8 * subsampled.epsilon(0.05, 2.0, 0.5, 400, 1e-5)


def test_profile_to_fifty_digits() -> None:
    mpmath.mp.dps = 60
    rng = np.random.default_rng(5)
    for _ in range(60):
        q = float(10 ** rng.uniform(-6, 0))
        c = float(10 ** rng.uniform(-5, 1))
        a = float(2 * c * 10 ** rng.uniform(-5, 0))
        e = float(a * rng.uniform(0, 6) * (q if rng.random() < 0.5 else 1.0))
        exact = reference_profile(e, q, c, a)
        bound = float(subsampled.profile(e, q, c, a))
        if exact > 1e-200:
            assert exact <= bound <= exact * (1 + 1e-9)


def reference_profile(e: float, q: float, c: float, a: float) -> float:
    """The closed form of T7, its root by bisection, in 60 digits; rounded down to a float."""
    e_, q_, c_, a_ = (mpmath.mpf(value) for value in (e, q, c, a))
    gamma = mpmath.exp(e_)
    kappa = (gamma - 1) * (1 - q_) / q_

    def too_left(x: mpmath.mpf) -> bool:
        first = kappa * mpmath.exp(-c_ * x - c_**2 / 2)
        return bool(first + gamma * mpmath.exp(-a_ * x - a_**2 / 2) > 1)

    low, high = -a_, mpmath.mpf(1)
    while too_left(high):
        high *= 2
    for _ in range(190):
        middle = (low + high) / 2
        low, high = (middle, high) if too_left(middle) else (low, middle)

    def upper(t: mpmath.mpf) -> mpmath.mpf:
        return mpmath.erfc(t / mpmath.sqrt(2)) / 2

    value = q_ * (upper(low) - kappa * upper(low + c_) - gamma * upper(low + a_))
    return float(value * (1 - mpmath.mpf(10) ** -15))


def test_profile_is_a_convex_hockey_stick() -> None:
    gammas = np.linspace(0.05, 4.0, 80)
    for q, c, a in [(0.01, 1.0, 0.3), (0.4, 3.0, 2.0), (1e-6, 2.0, 4.0)]:
        values = np.asarray(subsampled.profile(np.log(gammas), q, c, a))
        assert np.all(np.diff(values) <= 1e-15)
        assert np.all(np.diff(values, 2) >= -1e-13)
        assert np.all(values >= np.maximum(0.0, 1 - gammas))
        assert np.all(values <= 1.0)


def test_profile_at_the_edges() -> None:
    for e in (0.0, 0.3, 2.0):
        full = float(subsampled.profile(e, 1.0, 5.0, 0.7))
        assert full == pytest.approx(float(gdp.delta(0.7, e)), rel=1e-10)
        # an endless contribution hides nothing: q times the unsampled change
        endless = float(subsampled.profile(e, 0.1, math.inf, 0.7))
        assert endless == pytest.approx(0.1 * float(gdp.delta(0.7, e)), rel=1e-10)
        near = float(subsampled.profile(e, 0.1, 900.0, 0.7))
        assert 0.995 * endless <= near <= endless * (1 + 1e-7)
        assert subsampled.profile(e, 0.1, 1e6, 2e6) == pytest.approx(0.1)
        assert subsampled.profile(e, 0.1, math.inf, math.inf) == pytest.approx(0.1)
        assert subsampled.profile(e, 0.1, 1.0, 0.0) == 0.0
        # more than 2c cannot move
        assert subsampled.profile(e, 0.1, 1.0, 7.0) == subsampled.profile(e, 0.1, 1.0, 2.0)
    tiny = float(subsampled.profile(0.0, 1e-6, 1.0, 1e-9))
    assert tiny == pytest.approx(1e-15 / math.sqrt(2 * math.pi), rel=1e-6)
    assert subsampled.profile(-0.5, 0.1, 1.0, 0.0) == pytest.approx(1 - math.exp(-0.5))
    assert np.asarray(subsampled.profile(np.zeros((2, 3)), 0.1, 1.0, 1.0)).shape == (2, 3)


# --- many steps -----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ORACLE)
def test_oracle(case: dict[str, float]) -> None:
    q, c, a = case["sampling_rate"], case["presence"], case["change"]
    steps, delta = int(case["steps"]), case["delta"]
    value = subsampled.epsilon(q, c, a, steps, delta)
    ratio = value / case["epsilon_lower"]
    assert 0.999 <= ratio <= (1.003 if a == 2 * c else 1.25)
    again = subsampled.delta(q, c, a, steps, value)
    assert delta * 0.98 <= again <= delta * 1.02


def test_oracle_catches_noise_that_is_too_small() -> None:
    for case in (one for one in ORACLE if one["change"] == 2 * one["presence"]):
        q, c, a = case["sampling_rate"], case["presence"], case["change"]
        steps, delta = int(case["steps"]), case["delta"]
        for less in ((0.9 * q, c, a), (q, c, 0.9 * a), (q, 0.9 * c, 0.9 * a)):
            assert subsampled.epsilon(*less, steps, delta) < 0.99 * case["epsilon_lower"]
        assert subsampled.epsilon(q, c, a, round(0.9 * steps), delta) < 0.99 * case["epsilon_lower"]


def test_known_value() -> None:
    value = subsampled.epsilon(0.01, 1.0, 2.0, 1000, 1e-5)
    assert 2.8434 * 0.9999 <= value <= 2.845


def test_the_symmetric_pair_costs_up_to_a_quarter_for_small_changes() -> None:
    """One pair for both orders of a replacement: nothing at a = 2c, most near c = 1."""
    ratio = {
        case["change"]: subsampled.epsilon(0.01, 1.0, case["change"], 1000, 1e-5)
        / case["epsilon_lower"]
        for case in ORACLE
        if case["sampling_rate"] == 0.01
    }
    assert ratio[2.0] < 1.001
    assert 1.1 < ratio[1.0] < 1.25
    assert 1.1 < ratio[0.5] < 1.25


@pytest.mark.parametrize("steps", [1, 7, 1000])
def test_full_batch_is_gaussian_dp(steps: int) -> None:
    for mu, delta in itertools.product([1e-3, 0.5, 3.0, 40.0], [1e-12, 1e-5, 0.1]):
        change = mu / math.sqrt(steps)
        value = subsampled.epsilon(1.0, change, change, steps, delta)
        exact = float(gdp.epsilon(mu, delta))
        assert exact * (1 - 1e-12) <= value <= exact * (1 + 1e-6)
        back = subsampled.delta(1.0, change, change, steps, 0.7)
        assert back == pytest.approx(float(gdp.delta(mu, 0.7)), rel=1e-6)


def test_nearly_full_batch_approaches_gaussian_dp() -> None:
    exact = float(gdp.epsilon(1.0, 1e-6))
    change = 1.0 / math.sqrt(50)
    values = [subsampled.epsilon(q, change, change, 50, 1e-6) for q in (0.9, 0.999, 1 - 1e-9)]
    assert values[0] < values[1] < values[2]
    assert exact * (1 - 1e-6) <= values[2] <= exact * 1.001


def test_one_step_is_the_profile() -> None:
    for q, c, a in [(0.01, 1.0, 0.5), (0.5, 3.0, 6.0), (1e-4, 2.0, 1.0)]:
        for e in (0.0, 0.1, 1.0):
            value = subsampled.delta(q, c, a, 1, e)
            assert value == pytest.approx(float(subsampled.profile(e, q, c, a)), rel=1e-12)
            if value < 1e-9 or e == 0:
                continue
            back = subsampled.epsilon(q, c, a, 1, value)
            assert back == pytest.approx(e, rel=1e-6)
            assert float(subsampled.profile(back, q, c, a)) <= value
    assert subsampled.epsilon(0.01, 1.0, 0.5, 1, 0.01) == 0.0


@pytest.mark.parametrize(
    ("q", "c", "a", "steps", "delta"),
    [
        (1e-6, 1.0, 2.0, 1000, 1e-9),
        (1e-6, 5.0, 0.1, 10, 1e-5),
        (1e-4, 3.3, 1.0, 100_000, 1e-9),
        (0.01, 1e-9, 1e-9, 1000, 1e-12),
        (0.01, 1e6, 1e-3, 1000, 1e-5),
        (0.01, 1e-310, 1e-310, 1000, 1e-12),
        (0.01, 1e6, 2e6, 1000, 1e-5),
        (0.01, math.inf, 0.3, 200, 1e-5),
        (0.01, 1.0, 1e-8, 1000, 1e-5),
        (0.999, 10.0, 20.0, 2, 1e-30),
        (0.02, 0.5, 0.5, 300, 1e-100),
        (0.01, 1.0, 2.0, 1000, 0.9),
    ],
)
def test_extremes_are_numbers(q: float, c: float, a: float, steps: int, delta: float) -> None:
    value = subsampled.epsilon(q, c, a, steps, delta)
    assert 0 <= value < math.inf
    # never below the loss of a single step, and never above that of a full batch
    assert value >= subsampled.epsilon(q, c, a, 1, delta) * (1 - 1e-9)
    full = float(gdp.epsilon(a * math.sqrt(steps), delta))
    assert value <= full * 1.002 + 1e-90
    assert 0 <= subsampled.delta(q, c, a, steps, value) <= max(3 * delta, 1e-280)


def test_zero_and_unbounded() -> None:
    assert subsampled.epsilon(0.1, 1.0, 0.0, 10, 1e-5) == 0.0
    assert subsampled.delta(0.1, 1.0, 0.0, 10, 0.0) == 0.0
    assert subsampled.delta(0.1, 1.0, 1.0, 10, math.inf) == 0.0
    assert subsampled.epsilon(0.1, math.inf, math.inf, 10, 1e-5) == math.inf
    # a person who is never drawn loses nothing
    assert subsampled.epsilon(0.1, math.inf, math.inf, 10, 0.7) == 0.0
    assert subsampled.delta(0.1, math.inf, math.inf, 10, 3.0) == pytest.approx(1 - 0.9**10)
    with pytest.raises(ConfigurationError, match="larger delta"):
        subsampled.epsilon(0.1, 1.0, 1.0, 10, 1e-300)


def test_more_of_anything_costs_more() -> None:
    base = (0.02, 0.8, 0.6, 300, 1e-6)
    value = subsampled.epsilon(*base)
    more = [(0.03, 0.8, 0.6, 300, 1e-6), (0.02, 1.0, 0.6, 300, 1e-6), (0.02, 0.8, 0.7, 300, 1e-6)]
    more += [(0.02, 0.8, 0.6, 400, 1e-6), (0.02, 0.8, 0.6, 300, 1e-7)]
    for arguments in more:
        assert subsampled.epsilon(*arguments) > 1.02 * value
    losses = [subsampled.delta(*base[:4], e) for e in (0.0, 0.2, 0.5, 1.0, 3.0)]
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize(("q", "c", "a"), [(0.2, 1.0, 0.6), (0.05, 2.0, 1.0), (0.5, 0.5, 1.0)])
def test_two_steps_in_any_orders(q: float, c: float, a: float) -> None:
    """The larger contribution may lie on either side in each step; sums over a plane of outputs."""
    y = np.linspace(-9.0, 9.0 + c, 500)
    absent = (1 - q) * stats.norm.pdf(y)
    longer = absent + q * stats.norm.pdf(y - c)
    shorter = absent + q * stats.norm.pdf(y - c + a)
    cell = (y[1] - y[0]) ** 2
    same = np.outer(longer, longer), np.outer(shorter, shorter)
    mixed = np.outer(longer, shorter), np.outer(shorter, longer)
    for e in (0.0, 0.1, 0.5):
        bound = subsampled.delta(q, c, a, 2, e)
        worst = 0.0
        for p, other in (same, same[::-1], mixed):
            exact = float(np.sum(np.maximum(p - math.exp(e) * other, 0.0)) * cell)
            assert exact <= bound * (1 + 1e-4)
            worst = max(worst, exact)
        assert worst >= 0.6 * bound
        assert subsampled.delta(q, c, 0.5 * a, 2, e) < worst


def test_a_finer_grid_changes_little_and_never_by_much_downwards() -> None:
    for pair, steps, delta in [
        ((0.01, 1.0, 1.0), 1000, 1e-5),
        ((1e-3, 2.5, 0.3), 5000, 1e-8),
        ((0.3, 0.2, 0.4), 40, 1e-12),
        ((1e-5, 3.0, 6.0), 200, 1e-7),
    ]:
        usual = many_steps.composed_epsilon(*pair, steps, delta, many_steps.GRID)
        fine = many_steps.composed_epsilon(*pair, steps, delta, many_steps.GRID / 5)
        assert fine * (1 - 1e-6) <= usual <= fine * 1.001


# --- another accountant ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("q", "noise", "steps"), [(0.01, 1.0, 300), (0.05, 2.0, 200), (0.2, 4.0, 60), (0.002, 0.8, 500)]
)
@pytest.mark.parametrize("delta", [1e-5, 1e-7])
def test_against_add_or_remove_with_the_group_rule(
    q: float, noise: float, steps: int, delta: float
) -> None:
    """Remove and add, (ε₁, δ₁) each, cost 2ε₁ at δ₁(1 + e^{ε₁}); a replacement never costs more."""
    both = {
        relation: privacy_loss_distribution.from_gaussian_mechanism(
            noise,
            value_discretization_interval=1e-3,
            sampling_prob=q,
            neighboring_relation=relation,
        ).self_compose(steps)
        for relation in (NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE)
    }
    ours = subsampled.epsilon(q, 1 / noise, 2 / noise, steps, delta)
    single = both[NeighboringRelation.ADD_OR_REMOVE_ONE]
    low, high = 0.0, 30.0
    for _ in range(40):
        middle = (low + high) / 2
        fits = single.get_delta_for_epsilon(middle) * (1 + math.exp(middle)) <= delta
        low, high = (low, middle) if fits else (middle, high)
    assert ours <= 2 * high
    # the same relation: equal to the grids' accuracy (theirs is coarse here)
    theirs = both[NeighboringRelation.REPLACE_ONE].get_epsilon_for_delta(delta)
    assert ours == pytest.approx(theirs, rel=0.01)


# --- several rows a person ------------------------------------------------------------------------


def test_person_rate() -> None:
    assert subsampled.person_rate(0.01, 10) == pytest.approx(0.0956, abs=1e-4)
    assert subsampled.person_rate(0.01, 1) == 0.01
    assert subsampled.person_rate(1.0, 5) == 1.0
    assert subsampled.person_rate(1e-12, 3) == pytest.approx(3e-12, rel=1e-9)
    exact = 1 - (1 - mpmath.mpf(0.3)) ** 7
    assert exact <= subsampled.person_rate(0.3, 7) <= exact * (1 + 1e-13)


def test_row_sampling_needs_the_person_rate() -> None:
    """Ten rows a person at q = .01: plain q says .01 where simulation finds .096 (THEORY T3)."""
    rows, q, draws, length = 10, 0.01, 200_000, 8.0
    rng = np.random.default_rng(2)
    joined = rng.binomial(rows, q, size=(2, draws))
    noise = rng.standard_normal((2, draws))
    before, after = length * joined[0] + noise[0], -length * joined[1] + noise[1]
    # the event "large": one side of the hockey stick at ε = 0
    found = float(np.mean(before > 4) - np.mean(after > 4))
    error = 4 * math.sqrt(2 * 0.1 / draws)
    assert found == pytest.approx(0.0956, abs=error)
    c, a = rows * length, 2 * rows * length
    assert float(subsampled.profile(0.0, q, c, a)) < found - 10 * error
    right = float(subsampled.profile(0.0, subsampled.person_rate(q, rows), c, a))
    assert found <= right + error


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0.0, 1.0, 1.0, 10, 1e-5), "sample_rate"),
        ((1.1, 1.0, 1.0, 10, 1e-5), "sample_rate"),
        ((math.nan, 1.0, 1.0, 10, 1e-5), "sample_rate"),
        ((0.1, -1.0, 1.0, 10, 1e-5), "presence"),
        ((0.1, math.nan, 1.0, 10, 1e-5), "presence"),
        ((0.1, 1.0, math.nan, 10, 1e-5), "change"),
        ((0.1, 1.0, -1.0, 10, 1e-5), "change"),
        ((0.1, 1.0, 1.0, 0, 1e-5), "steps"),
        ((0.1, 1.0, 1.0, 2.5, 1e-5), "steps"),
        ((0.1, 1.0, 1.0, True, 1e-5), "steps"),
        ((0.1, 1.0, 1.0, 10, 0.0), "delta"),
        ((0.1, 1.0, 1.0, 10, 1.0), "delta"),
        ((0.1, 1.0, 1.0, 10, math.nan), "delta"),
    ],
)
def test_wrong_arguments(arguments: tuple[float, float, float, int, float], name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        subsampled.epsilon(*arguments)


def test_more_wrong_arguments() -> None:
    with pytest.raises(ConfigurationError, match="epsilon"):
        subsampled.delta(0.1, 1.0, 1.0, 10, math.nan)
    with pytest.raises(ConfigurationError, match="epsilon"):
        subsampled.delta(0.1, 1.0, 1.0, 10, -1.0)
    with pytest.raises(ConfigurationError, match="epsilon"):
        subsampled.profile([0.0, math.nan], 0.1, 1.0, 1.0)
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(ConfigurationError, match="records_per_person"):
            subsampled.person_rate(0.1, wrong)  # type: ignore[arg-type]
