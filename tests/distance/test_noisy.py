"""Limits from noisy tables: against plain formulas, exact tail probabilities and wrong noise."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

from corrdp.distance import bounds, noisy
from corrdp.distance.noisy import NoisyTable, lower_limit, total_interval, upper_limit
from corrdp.distance.noisy_split import row_limits, split_limit
from corrdp.errors import ConfigurationError


def released(counts, total_sigma, cell_sigma, seed):
    rng = np.random.default_rng(seed)
    counts = np.asarray(counts)
    totals = counts.sum(axis=-1) + np.rint(rng.normal(0, total_sigma, counts.shape[:-1]))
    cells = counts + np.rint(rng.normal(0, cell_sigma, counts.shape))
    return NoisyTable(totals.astype(np.int64), cells.astype(np.int64), total_sigma, cell_sigma)


def sets_of(cells):
    """Every set that is neither empty nor full, and its complement."""
    for e in itertools.product((0, 1), repeat=cells):
        if 0 < sum(e) < cells:
            yield [j for j in range(cells) if e[j]], [j for j in range(cells) if not e[j]]


@functools.lru_cache
def tangents(alpha):
    """(y, h, ln(Φ(−y)/α)) of the module's docstring."""
    return [
        (y, stats.norm.pdf(y) / stats.norm.sf(y), math.log(stats.norm.sf(y) / alpha))
        for y in np.linspace(-2, stats.norm.isf(alpha), 16)
    ]


def reach_by_formula(low, high, k, size, sigma, alpha):
    """t of the module's docstring for two totals at the worst ends, plus rounding."""
    w = size * (k - size) / k
    v = (1 / low[0] + 1 / low[1]) / 4
    most = sigma * math.sqrt(w * (1 / low[0] ** 2 + 1 / low[1] ** 2))
    least = sigma * math.sqrt(w * (1 / high[0] ** 2 + 1 / high[1] ** 2))
    best = math.sqrt(2 * math.log(1 / alpha) * (most**2 + v))
    for y, h, log_ratio in tangents(alpha):
        factor = y + log_ratio / h
        best = min(best, max(factor * most, factor * least) + h * v / (2 * least))
    return best + w * (1 / low[0] + 1 / low[1])


@pytest.mark.parametrize("seed", range(12))
def test_pair_form_is_the_maximum_over_triples_and_corners(seed):
    rng = np.random.default_rng(seed)
    k, gamma = int(rng.integers(2, 6)), 0.05
    sigma = float(rng.choice([0.5, 10.0, 25.0]))
    table = released(rng.integers(50, 200, (1, 3, k)), 5.0, sigma, seed)
    low, high = (ends[0] for ends in total_interval(table, 0.02 * gamma))
    best = -math.inf
    for a, b in itertools.permutations(range(3), 2):
        for inside, outside in sets_of(k):
            c = (k - len(inside)) / k
            ends = ([low[a], low[b]], [high[a], high[b]])
            reach = reach_by_formula(*ends, k, len(inside), sigma, 0.92 * gamma)
            for n_a, n_b in itertools.product((low[a], high[a]), (low[b], high[b])):
                estimates = [
                    (c * row[inside].sum() + (1 - c) * (n - row[outside].sum())) / n
                    for row, n in ((table.cells[0, a], n_a), (table.cells[0, b], n_b))
                ]
                best = max(best, estimates[0] - estimates[1] + reach)
    assert upper_limit(table, gamma).value == pytest.approx(min(1.0, best), abs=2e-4)
    assert upper_limit(table, gamma).value >= min(1.0, best) - 1e-12


def tail(n_a, n_b, p, q, sigma, w, reach):
    """P(error < −reach) exactly: binomials summed out, Gaussian in closed form."""
    x = np.arange(n_a + 1)[:, None] / n_a - p
    y = np.arange(n_b + 1)[None] / n_b - q
    mass = stats.binom.pmf(np.arange(n_a + 1), n_a, p)[:, None]
    mass = mass * stats.binom.pmf(np.arange(n_b + 1), n_b, q)[None]
    s = sigma * math.sqrt(w * (1 / n_a**2 + 1 / n_b**2))
    return float((mass * special.ndtr((-reach - (x - y)) / s)).sum())


@pytest.mark.parametrize(("n_a", "n_b"), [(60, 60), (30, 300), (200, 90)])
@pytest.mark.parametrize("sigma", [1.0, 4.0, 12.0, 40.0, 400.0])
@pytest.mark.parametrize("p", [0.02, 0.5, 0.97])
def test_reach_bounds_the_exact_tail(n_a, n_b, sigma, p):
    k, size, alpha = 4, 2, 0.05
    n = np.array([n_a, n_b], dtype=float)
    table = NoisyTable(np.ones((1, 2), int), np.ones((1, 2, k), int), 1.0, sigma)
    reach = noisy._reach(n, n, 0, table, alpha)[1, size - 1]
    w = size * (k - size) / k
    ideal = reach - w * (1 / n_a + 1 / n_b)  # without the allowance for rounding
    for q in (0.03, 0.5, 0.9):
        assert tail(n_a, n_b, p, q, sigma, w, ideal) <= alpha


def test_a_reach_ten_per_cent_too_small_is_caught():
    n = np.array([60.0, 60.0])
    table = NoisyTable(np.ones((1, 2), int), np.ones((1, 2, 4), int), 1.0, 400.0)
    ideal = noisy._reach(n, n, 0, table, 0.05)[1, 1] - (1 / 60 + 1 / 60)
    assert 0.0495 <= tail(60, 60, 0.5, 0.5, 400.0, 1.0, ideal) <= 0.05
    assert tail(60, 60, 0.5, 0.5, 400.0, 1.0, 0.9 * ideal) > 0.05


@pytest.mark.parametrize("sigma", [6.0, 9.0, 14.0])
def test_a_reach_without_the_sampling_error_is_caught(sigma):
    """Sampling and noise alike: the reach is nearly what the sum of variances would give."""
    n = np.array([200.0, 200.0])
    table = NoisyTable(np.ones((1, 2), int), np.ones((1, 2, 4), int), 1.0, sigma)
    ideal = noisy._reach(n, n, 0, table, 0.05)[1, 1] - (1 / 200 + 1 / 200)
    noise = sigma * math.sqrt(2) / 200
    assert 0.03 < tail(200, 200, 0.5, 0.5, sigma, 1.0, ideal) <= 0.05
    assert tail(200, 200, 0.5, 0.5, sigma, 1.0, stats.norm.isf(0.05) * noise) > 0.055
    together = stats.norm.isf(0.05) * math.sqrt(noise**2 + 0.25 * 2 / 200)
    assert together <= ideal < 1.12 * together


def test_totals_weigh_both_releases_and_the_number_of_records():
    cells = np.array([[[600, 410], [2, 1], [480, 520]]])
    table = NoisyTable(np.array([[1000, 3, 990]]), cells, 10.0, 20.0)
    low, high = total_interval(table, 0.01)
    z, weight = stats.norm.isf(0.01), 800 / 900  # of the noisy totals: 2·20² against 10²
    rounding = 0.5 * weight + 1.0 * (1 - weight)
    middle = weight * np.array([1000, 3, 990]) + (1 - weight) * np.array([1010, 3, 1000])
    reach = z * math.sqrt(weight * 100) + rounding
    assert high[0] == pytest.approx(middle + reach, rel=1e-6)
    assert low[0] == pytest.approx(np.maximum(middle - reach, 0.0), rel=1e-6)  # never negative
    low, high = total_interval(table, 0.01, 2010)
    reach = z * math.sqrt(weight * 100 * 2 / 3) + 2 * 2 / 3 * rounding
    assert high[0] == pytest.approx(middle - (middle.sum() - 2010) / 3 + reach, rel=1e-6)
    assert (high - low)[0, 0] == pytest.approx(2 * reach, rel=1e-6)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("total_sigma", "cell_sigma"), [(12.0, 17.0), (30.0, 10.0), (0.8, 0.7)])
def test_ends_of_totals_fail_as_often_as_stated(known, total_sigma, cell_sigma):
    rng, level, draws = np.random.default_rng(5), 0.1, 1500
    counts = rng.integers(80, 400, (1, 3, 2))
    true, failed, narrow = counts.sum(axis=2), 0, 0
    for seed in range(draws):
        table = released(counts, total_sigma, cell_sigma, seed)
        low, high = total_interval(table, level, int(true.sum()) if known else None)
        failed += int((true > high)[0, 1])
        middle, reach = (low + high) / 2, 0.9 * (high - low) / 2
        narrow += int((true > middle + reach)[0, 1])
    noise = 3 * math.sqrt(level * (1 - level) / draws)
    assert failed / draws <= level + noise
    if total_sigma > 1:  # else rounding prevails
        assert failed / draws >= 0.55 * level
        assert narrow > failed


def test_knowing_the_records_narrows_and_a_wrong_number_shows():
    counts = np.array([[[700, 300], [300, 700]]])
    table = released(counts, 40.0, 40.0, 3)
    free, known = upper_limit(table, 0.05).value, upper_limit(table, 0.05, 2000).value
    assert 0.4 < known < free
    assert split_limit(table, 0.05, 2000).value < split_limit(table, 0.05).value
    assert lower_limit(table, 0.05, 2000) >= lower_limit(table, 0.05)
    _, high = total_interval(table, 0.001, 2000)
    _, wrong = total_interval(table, 0.001, 1000)
    assert (high >= 1000).all() and (wrong < 1000).all()


@pytest.mark.parametrize("seed", range(8))
def test_split_form_solves_its_inequality(seed):
    """Against a fine grid of p and of totals, the plain reading of the inequality."""
    rng = np.random.default_rng(seed)
    k, sigma = int(rng.integers(2, 5)), float(rng.choice([1.0, 20.0, 60.0]))
    table = released(rng.integers(0, 200, (1, 2, k)), sigma, sigma, seed)
    low, high = (ends[0] for ends in total_interval(table, 0.002))
    ell, p = math.log(50), np.linspace(0, 1, 10001)
    limits = row_limits(table.cells[0], low, high, sigma, ell)
    for a in range(2):
        for e, (inside, outside) in enumerate(binary_sets(k)):
            c, w = (k - len(inside)) / k, len(inside) * len(outside) / k
            holds = np.zeros(p.shape, dtype=bool)
            for n in np.linspace(low[a], high[a], 7):
                row = table.cells[0, a]
                y = c * row[inside].sum() + (1 - c) * (n - row[outside].sum()) + w
                spread = np.sqrt(2 * ell * (high[a] * p * (1 - p) + sigma**2 * w))
                holds |= n * p - y <= spread + ell / 3
            if holds.any():
                assert limits[a, e] == pytest.approx(p[holds].max(), abs=2e-4)
            else:  # nothing fits: any value is valid, a count of zero is assumed
                assert 0 <= limits[a, e] <= 1


def binary_sets(k):
    for e in range(1, 2**k - 1):
        inside = [j for j in range(k) if e >> j & 1]
        yield inside, [j for j in range(k) if j not in inside]


def test_an_unlucky_set_does_not_make_every_distance_one():
    cells = np.array([[[10_000, 10_000, -500], [10_000, 10_000, 20]]])
    table = NoisyTable(np.array([[20_000, 20_020]]), cells, 5.0, 20.0)
    assert split_limit(table, 0.05).value < 0.1


def test_split_form_refuses_what_it_cannot_enumerate():
    table = NoisyTable(np.full((1, 2), 900), np.full((1, 2, 13), 70), 5.0, 5.0)
    with pytest.raises(ConfigurationError, match="pair"):
        split_limit(table, 0.05)
    assert upper_limit(table, 0.05).value < 1


@pytest.mark.parametrize("limit", [upper_limit, split_limit])
def test_a_level_that_may_be_empty_gives_one_and_names_itself(limit):
    table = NoisyTable(
        np.array([[900, 11, 900]]), np.array([[[450, 450], [5, 6], [450, 450]]]), 5.0, 5.0
    )
    value, rows = limit(table, 0.05)
    assert value == 1.0 and rows[0] == 1
    assert limit(NoisyTable(np.zeros((1, 2), int), np.zeros((1, 2, 2), int), 1.0, 1.0), 0.05) == (
        1.0,
        (0, 1),
    )


def test_strata_are_compared_within_only():
    cells = np.array([[[9000, 1000], [9000, 1000]], [[1000, 9000], [1000, 9000]]])
    table = NoisyTable(cells.sum(axis=2), cells, 2.0, 2.0)
    mixed = NoisyTable(table.totals.reshape(1, 4), cells.reshape(1, 4, 2), 2.0, 2.0)
    for limit in (upper_limit, split_limit):
        assert limit(table, 0.05).value < 0.1
        assert limit(mixed, 0.05).value > 0.7
    assert lower_limit(table, 0.05) == 0.0
    assert 0.7 < lower_limit(mixed, 0.05) <= 0.8


@pytest.mark.parametrize("seed", range(5))
def test_vanishing_noise_gives_the_limit_of_the_exact_table(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(100, 3000, (1, 4, 5))
    table = NoisyTable(counts.sum(axis=2), counts, 1e-3, 1e-3)
    exact = bounds.hoeffding(counts, 0.92 * 0.05).value
    # ½ a record of rounding is allowed for in each total and cell
    assert exact <= upper_limit(table, 0.05).value <= exact + 0.02
    assert lower_limit(table, 0.05) <= bounds.plug_in(counts).value


def test_more_noise_never_narrows_the_limits():
    cells = np.array([[[700, 200, 100], [400, 300, 300]]])
    ends = [
        (upper_limit(t, 0.05).value, lower_limit(t, 0.05))
        for t in (NoisyTable(cells.sum(axis=2), cells, s, s) for s in (1.0, 5.0, 20.0, 60.0))
    ]
    highs, lows = zip(*ends)
    assert list(highs) == sorted(highs) and list(lows) == sorted(lows, reverse=True)
    assert lows[0] > 0.1


def test_a_noisy_table_survives_json_and_refuses_nonsense():
    table = NoisyTable(np.array([[5, -3]]), np.array([[[5, 0], [-3, 1]]]), 1.25, 0.1)
    again = NoisyTable.from_dict(table.to_dict())
    assert again.to_dict() == table.to_dict()
    good = np.ones((1, 2), int), np.ones((1, 2, 2), int)
    for sigma in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigurationError, match="sigma"):
            NoisyTable(*good, sigma, 1.0)
        with pytest.raises(ConfigurationError, match="sigma"):
            NoisyTable(*good, 1.0, sigma)
    with pytest.raises(ConfigurationError, match="integers"):
        NoisyTable(good[0] * 1.0, good[1], 1.0, 1.0)
    for cells in (np.ones((1, 1, 2), int), np.ones((1, 2, 1), int), np.ones((2, 2), int)):
        with pytest.raises(ConfigurationError, match="strata"):
            NoisyTable(cells.sum(axis=-1), cells, 1.0, 1.0)
    for gamma in (0.0, float("nan"), 1.0):
        for limit in (upper_limit, lower_limit, split_limit):
            with pytest.raises(ConfigurationError, match="gamma"):
                limit(NoisyTable(*good, 1.0, 1.0), gamma)
