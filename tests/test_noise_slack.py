"""The price of double precision: formulas, brute force on tiny domains, quoted sizes (T14)."""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrdp import _slack
from corrdp._sampling import LARGEST_SCALE, TWO_LAYERS
from corrdp.errors import ConfigurationError
from corrdp.noise import Slack, gaussian_slack

UNIT = 2.0**-53


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def product(law: np.ndarray, times: int) -> np.ndarray:
    return np.array([np.prod(cell) for cell in itertools.product(law, repeat=times)])


def perturbed(law: np.ndarray, first: float) -> np.ndarray:
    """The first cell times ``first``, the others share the rest."""
    rest = (1 - first * law[0]) / (1 - law[0])
    return np.concatenate([[first * law[0]], rest * law[1:]])


@pytest.mark.parametrize("draws", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
def test_the_certain_bound_holds_by_enumeration(draws: int, epsilon: float) -> None:
    p, q, xi = np.array([0.3, 0.5, 0.2]), np.array([0.1, 0.6, 0.3]), 0.05
    ideal = product(p, draws), product(q, draws)
    actual = product(perturbed(p, math.exp(xi)), draws), product(perturbed(q, math.exp(-xi)), draws)
    for one, other in ((0, 1), (1, 0)):
        delta = hockey_stick(ideal[one], ideal[other], epsilon)
        claim = Slack(eta=draws * xi).apply(epsilon, delta)
        assert hockey_stick(actual[one], actual[other], claim[0]) <= claim[1]


def test_a_tenth_less_than_the_certain_bound_is_caught() -> None:
    p, q, xi = np.array([0.3, 0.7]), np.array([0.1, 0.9]), 0.05
    loss = 3 * math.log(3)  # of the first cell, three times, which is the largest
    actual = product(perturbed(p, math.exp(xi)), 3), product(perturbed(q, math.exp(-xi)), 3)
    exact = Slack(eta=3 * xi).apply(loss, 0.0)
    assert hockey_stick(*actual, exact[0]) <= exact[1] == 0.0
    short = Slack(eta=0.9 * 3 * xi).apply(loss, 0.0)
    assert hockey_stick(*actual, short[0]) > short[1]


@pytest.mark.parametrize("xi", [1e-3, 1e-2])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_the_martingale_bound_holds_by_counting(xi: float, epsilon: float) -> None:
    """400 draws of two cells: only the count of the first matters."""
    draws, failure, p, q = 400, 1e-4, 0.5, 0.52
    count = np.arange(draws + 1)
    ways = np.array([math.comb(draws, k) for k in range(draws + 1)], dtype=float)

    def law(cell: float) -> np.ndarray:
        return ways * cell**count * (1 - cell) ** (draws - count)

    eta = xi * math.sqrt(2 * draws * math.log(1 / failure)) + draws * xi**2 / 2
    slack = Slack(eta, failure, 0.0, draws * xi)
    for a, b in ((p, q), (q, p)):
        for sign in (-1, 1):
            noisy = law(a * math.exp(sign * xi)), law(b * math.exp(-sign * xi))
            delta = hockey_stick(law(a), law(b), epsilon)
            claim = slack.apply(epsilon, delta)
            assert hockey_stick(*noisy, claim[0]) <= claim[1]
            ratio = sign * xi * count + (draws - count) * math.log(
                (1 - a * math.exp(sign * xi)) / (1 - a)
            )
            assert noisy[0][ratio > eta].sum() <= failure


def exact_xi(scale: float, z: mpmath.mpf) -> mpmath.mpf:
    """ξ from the formulas of the module docstring, without floats."""

    def change(s: float | mpmath.mpf, reach: mpmath.mpf) -> mpmath.mpf:
        return 2 * (10 * reach + mpmath.mpf("1.26")) * UNIT * (s + reach + 1.5)

    largest = change(min(scale, TWO_LAYERS), z)
    if scale > TWO_LAYERS:
        layer = mpmath.sqrt(8 * mpmath.mpf(scale))
        largest = max(largest, change(layer, z + 0.2) + change(layer, z / 50 + 10))
    return -mpmath.log(1 - largest)


@pytest.mark.parametrize("draws", [1, 1000, 10**9])
@pytest.mark.parametrize("scale", [1e-3, 30.0, 5e6, 1e11, LARGEST_SCALE])
@pytest.mark.parametrize("shift", [0.0, 0.1, 20.0])
@pytest.mark.parametrize("failure", [0.0, 1e-9, 1e-200])
def test_the_slack_is_the_formula_rounded_up(
    draws: int, scale: float, shift: float, failure: float
) -> None:
    slack = gaussian_slack(draws, scale, shift, failure)
    with mpmath.workdps(60):
        margin = shift + mpmath.mpf("0.01")
        z = mpmath.mpf(_slack.REACH)
        if failure > 0:
            half = mpmath.mpf(failure) / draws / 2

            def excess(t: mpmath.mpf) -> mpmath.mpf:
                return mpmath.log(mpmath.erfc(t / mpmath.sqrt(2)) / 2) - mpmath.log(half)

            z = min(z, max(1, mpmath.findroot(excess, mpmath.sqrt(-2 * mpmath.log(half))) + margin))
        xi = exact_xi(scale, z)
        tail = draws * mpmath.erfc((z - margin) / mpmath.sqrt(2))
        certain = draws * xi
        assert 1 <= slack.certain / certain < 1 + 1e-5
        assert 1 - 1e-9 <= slack.tail / tail < 1 + 1e-9
        likely = certain
        if failure > 0:
            likely = xi * mpmath.sqrt(2 * draws * mpmath.log(1 / mpmath.mpf(failure)))
            likely = min(certain, likely + draws * xi**2 / 2)
        assert 1 <= slack.eta / likely < 1 + 1e-5
        assert slack.failure == (failure if likely < certain else 0.0)


def test_the_sizes_that_the_theory_quotes() -> None:
    """One layer, quantile error 7.7 units, z_max = 38, 105 coordinates, 200 steps, movement 1."""
    mu = 0.2367  # of ε = 1, δ = 1e-6
    draws, sigma = 200 * 105, math.sqrt(200) / mu

    def loss(bits: int) -> float:
        return draws * 2 * (7.7 * 38 + 1.26) * UNIT * sigma * 2.0**bits

    assert loss(20 + 18) == pytest.approx(24_000, rel=0.1)
    assert loss(7 + 7) == pytest.approx(1e-3, rel=0.4)
    # The two layers in use cost far less, on either lattice, than the thousandth set aside.
    for bits, most in ((7 + 7, 1e-4), (20 + 18, 1e-3)):
        slack = gaussian_slack(draws, sigma * 2.0**bits, 1 / sigma, 1e-10)
        epsilon, delta = slack.apply(1.0, 1e-6)
        assert epsilon - 1 < most
        assert delta < 1.002e-6


@given(
    st.integers(0, 10**9),
    st.floats(0, 1e12),
    st.floats(0, 20),
    st.sampled_from([0.0, 1e-250, 1e-12, 1e-6]),
    st.sampled_from([(1, 1.0, 0.0), (0, 3.0, 0.0), (0, 1.0, 0.5)]),
)
def test_more_draws_larger_scale_or_shift_never_cost_less(
    draws: int, scale: float, shift: float, failure: float, more: tuple[int, float, float]
) -> None:
    less = gaussian_slack(draws, scale, shift, failure)
    grown = gaussian_slack(draws + more[0], scale * more[1], shift + more[2], failure)
    assert grown.eta >= less.eta * (1 - 1e-9)
    assert grown.certain >= less.certain * (1 - 1e-9)


def test_no_draws_or_no_noise_cost_nothing() -> None:
    for slack in (gaussian_slack(0, 10.0, 1.0, 1e-9), gaussian_slack(9, 0.0, 0.0, 0.0), Slack()):
        assert (slack.eta, slack.failure, slack.tail, slack.certain) == (0, 0, 0, 0)
        assert slack.apply(0.7, 1e-7) == (0.7, 1e-7)


def test_a_neighbour_out_of_reach_is_refused_with_the_largest_shift() -> None:
    gaussian_slack(10**6, 100.0, 23.0, 1e-9)
    with pytest.raises(ConfigurationError, match=r"shift=30 .*at most (\d+\.\d)") as error:
        gaussian_slack(10**6, 100.0, 30.0, 1e-9)
    most = float(str(error.value).split("at most ")[1].split(" ")[0])
    gaussian_slack(10**6, 100.0, most, 1e-9)
    with pytest.raises(ConfigurationError, match="epsilon_cap"):
        gaussian_slack(10**6, 100.0, most + 0.1, 1e-31)


@pytest.mark.parametrize(
    "arguments",
    [
        (-1, 1.0, 0.0, 1e-9),
        (1.5, 1.0, 0.0, 1e-9),
        (True, 1.0, 0.0, 1e-9),
        (1, np.nan, 0.0, 1e-9),
        (1, -1.0, 0.0, 1e-9),
        (1, np.inf, 0.0, 1e-9),
        (1, 2.0**48, 0.0, 1e-9),
        (1, 1.0, np.nan, 1e-9),
        (1, 1.0, -1.0, 1e-9),
        (1, 1.0, np.inf, 1e-9),
        (1, 1.0, 0.0, np.nan),
        (1, 1.0, 0.0, -1e-9),
        (1, 1.0, 0.0, 1.0),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any) -> None:
    with pytest.raises(ConfigurationError, match="is not"):
        gaussian_slack(*arguments)


@pytest.mark.parametrize("name", ["eta", "failure", "tail", "certain"])
@pytest.mark.parametrize("wrong", [np.nan, -1e-9])
def test_wrong_slacks_are_refused(name: str, wrong: float) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Slack(**{name: wrong})


@pytest.mark.parametrize("epsilon, delta", [(np.nan, 0.1), (-1, 0.1), (1, np.nan), (1, 2), (1, -1)])
def test_wrong_guarantees_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(ConfigurationError, match="is not"):
        Slack().apply(epsilon, delta)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 20.0, 600.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.3])
def test_apply_is_the_formula_rounded_up(epsilon: float, delta: float) -> None:
    failure = delta * 1e-4 * math.exp(-epsilon)
    slack = Slack(eta=1e-5, failure=failure, tail=delta / 7, certain=3.0)
    with mpmath.workdps(50):
        eta, chance = mpmath.mpf(slack.eta), mpmath.mpf(failure)
        exact = mpmath.exp(eta) * delta + chance * (1 + mpmath.exp(epsilon + eta)) + slack.tail
        if failure == 0:  # too small for a double: then eta is certain
            exact = mpmath.exp(eta) * delta + slack.tail
        claimed = slack.apply(epsilon, delta)
        assert mpmath.mpf(epsilon) + 2 * eta <= claimed[0] <= (epsilon + 2e-5) * (1 + 1e-12)
        assert exact <= claimed[1] <= exact * (1 + 1e-9)


def test_large_losses_fall_back_to_the_certain_bound() -> None:
    slack = gaussian_slack(10**5, 5e6, 15.0, 1e-12)
    assert slack.failure > 0
    for epsilon in (50.0, 1e3, 1e6):
        claimed = slack.apply(epsilon, 1e-6)
        assert epsilon + 2 * slack.certain <= claimed[0] < epsilon + 2.1 * slack.certain + 1e-9
        assert 1e-6 < claimed[1] < 1.001e-6
    assert slack.apply(0.1, 1e-6)[0] == pytest.approx(0.1 + 2 * slack.eta, rel=1e-12)
    assert slack.apply(math.inf, 1e-6) == (math.inf, 1e-6)
    epsilon, delta = slack.apply(2.0, 0.0)  # a pure mechanism keeps only the tail as δ
    assert (epsilon, delta) == pytest.approx((2 + 2 * slack.certain, slack.tail))


def test_a_useless_slack_says_so() -> None:
    epsilon, delta = Slack(eta=1.0, failure=0.1, certain=math.inf).apply(1e6, 1e-6)
    assert epsilon == pytest.approx(1e6 + 2)
    assert delta == 1.0


def test_slacks_of_several_releases_add_up() -> None:
    parts = [gaussian_slack(1000, 1e5, 0.1, 1e-10), gaussian_slack(50, 30.0, 0.0, 1e-10), Slack()]
    total = Slack.combine(*parts)
    for name in ("eta", "failure", "tail", "certain"):
        exact = sum(getattr(part, name) for part in parts)
        assert exact <= getattr(total, name) <= exact * (1 + 1e-12)
    assert Slack.combine() == Slack()
    one = gaussian_slack(2000, 1e5, 0.1, 1e-10)
    assert one.eta < Slack.combine(parts[0], parts[0]).eta
