"""Confidence limits of one table against enumeration over triples and over samples."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from corrdp.distance import bounds
from corrdp.distance.bounds import (
    choose,
    clopper_pearson,
    hoeffding,
    lower_limit,
    plug_in,
    published,
    upper_limit,
)
from corrdp.errors import ConfigurationError


@st.composite
def count_tables(draw, largest=40):
    levels, cells = draw(st.integers(2, 4)), draw(st.integers(2, 5))
    rows = st.lists(st.integers(0, largest), min_size=cells, max_size=cells).filter(any)
    return np.array(draw(st.lists(rows, min_size=levels, max_size=levels)))


def triples(counts):
    """Every (a, b, set), sets neither empty nor full."""
    levels, cells = counts.shape
    sets = [list(e) for e in itertools.product((False, True), repeat=cells) if 0 < sum(e) < cells]
    return [(a, b, e) for a, b in itertools.permutations(range(levels), 2) for e in sets]


@functools.cache
def one_sided_upper(x, n, level):
    """Clopper-Pearson by bisection on the binomial distribution function."""
    if x == n:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if special.bdtr(x, n, middle) > level:
            low = middle
        else:
            high = middle
    return high


@given(count_tables())
@settings(max_examples=60, deadline=None)
def test_h_and_plug_in_are_maxima_over_triples(counts):
    gamma = 0.03
    n = counts.sum(axis=1)
    excess = {
        (a, b): math.sqrt(0.5 * math.log(1 / gamma) * (1 / n[a] + 1 / n[b]))
        for a, b in itertools.permutations(range(len(n)), 2)
    }
    gaps = [
        (counts[a][e].sum() / n[a] - counts[b][e].sum() / n[b], (a, b))
        for a, b, e in triples(counts)
    ]
    assert plug_in(counts).value == pytest.approx(max(gap for gap, _ in gaps), abs=1e-12)
    wanted = min(1.0, max(gap + excess[pair] for gap, pair in gaps))
    assert hoeffding(counts, gamma).value == pytest.approx(wanted, abs=1e-10)


@given(count_tables(largest=12))
@settings(max_examples=25, deadline=None)
def test_cp_is_the_maximum_over_triples(counts):
    gamma = 0.05
    n = counts.sum(axis=1)
    wanted = max(
        one_sided_upper(int(counts[a][e].sum()), int(n[a]), gamma / 2)
        + one_sided_upper(int(n[b] - counts[b][e].sum()), int(n[b]), gamma / 2)
        - 1
        for a, b, e in triples(counts)
    )
    found = clopper_pearson(counts, gamma)
    assert found.value == pytest.approx(min(1.0, wanted), abs=1e-9)
    assert found.value >= wanted - 1e-14 or wanted > 1
    assert found.rows[0] != found.rows[1]


@given(count_tables())
@settings(max_examples=40, deadline=None)
def test_published_form(counts):
    gamma_row = 0.01
    n, k = counts.sum(axis=1), counts.shape[1]
    if k == 2:
        radii = []
        for row, total in zip(counts, n):
            interval = stats.binomtest(int(row[0]), int(total)).proportion_ci(1 - gamma_row)
            radii.append(max(interval.high - row[0] / total, row[0] / total - interval.low))
    else:
        radii = [
            min(
                0.5 * math.sqrt(2 * (math.log(2**k - 2) - math.log(gamma_row)) / total),
                0.5 * math.sqrt((k - 1) / total) + math.sqrt(-math.log(gamma_row) / (2 * total)),
            )
            for total in n
        ]
    wanted = max(
        counts[a][e].sum() / n[a] - counts[b][e].sum() / n[b] + radii[a] + radii[b]
        for a, b, e in triples(counts)
    )
    assert published(counts, gamma_row).value == pytest.approx(min(1.0, wanted), abs=1e-9)


def exact_coverage(limit, p, q, n_a, n_b):
    """Probability that the limit of a 2 × 2 table covers |p − q|, by enumeration."""
    covered = 0.0
    for x in range(n_a + 1):
        for y in range(n_b + 1):
            value = limit(np.array([[x, n_a - x], [y, n_b - y]]))
            if value >= abs(p - q) - 1e-12:
                covered += stats.binom.pmf(x, n_a, p) * stats.binom.pmf(y, n_b, q)
    return covered


@pytest.mark.parametrize(
    ("p", "q"), [(0.5, 0.5), (0.9, 0.2), (0.97, 0.03), (0.6, 0.35), (0.02, 0.5)]
)
@pytest.mark.parametrize("method", ["CP", "H", "published"])
def test_coverage_by_enumeration_of_all_samples(method, p, q):
    found = exact_coverage(lambda c: upper_limit(c, 0.1, method).value, p, q, 12, 5)
    assert found >= 0.9


def test_a_limit_that_is_ten_per_cent_too_small_is_caught_by_enumeration():
    def shortened(counts):
        return 0.9 * clopper_pearson(counts, 0.1).value

    right = exact_coverage(lambda c: clopper_pearson(c, 0.1).value, 0.97, 0.03, 12, 5)
    assert right >= 0.9
    assert exact_coverage(shortened, 0.97, 0.03, 12, 5) < 0.9


@given(count_tables())
@settings(max_examples=30, deadline=None)
def test_order_of_limits_and_monotone_in_gamma(counts):
    low = lower_limit(counts, 0.05)
    estimate = plug_in(counts).value
    assert 0 <= low <= estimate
    for method in ("H", "CP", "published"):
        wide, narrow = (upper_limit(counts, g, method).value for g in (0.01, 0.2))
        assert estimate - 1e-12 <= narrow <= wide <= 1


def test_lower_limit_is_above_the_truth_rarely():
    rng = np.random.default_rng(3)
    rows = np.array([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3]])
    for cells in (rows, np.repeat(rows / 5, 5, axis=1)):  # 3 cells, and 15: the other branch
        draws = [
            lower_limit(np.array([rng.multinomial(500, p) for p in cells]), 0.05)
            for _ in range(200)
        ]
        assert np.mean(np.array(draws) > 0.3) <= 0.05
        assert max(draws) > 0.05


def test_a_level_without_records_gives_one_and_names_itself():
    counts = np.array([[5, 5], [0, 0], [5, 5]])
    for method in ("plug-in", "auto", "CP", "H", "published"):
        value, rows = upper_limit(counts, 0.05, method)
        assert value == 1.0 and rows[0] == 1
    assert lower_limit(counts, 0.05) == 0.0
    assert lower_limit(np.array([[5, 5], [0, 0]]), 0.05) == 0.0


def test_strata_are_compared_within_only():
    # in each stratum both levels agree, across strata they are opposite
    strata = np.array([[[40, 0], [40, 0]], [[0, 40], [0, 40]]])
    assert plug_in(strata).value == 0.0
    assert plug_in(strata.reshape(4, 2)).value == 1.0
    single = [hoeffding(stratum, 0.05).value for stratum in strata]
    assert hoeffding(strata, 0.05).value == max(single)
    assert upper_limit(strata, 0.05, "published").value == published(strata, 0.05 / 4).value


def test_method_is_chosen_without_looking_at_the_cells():
    rng = np.random.default_rng(0)
    for cells in (2, 12, 13, 40):
        counts = rng.integers(1, 9, (3, cells))
        assert choose(counts) == choose(counts[:, ::-1]) == ("CP" if cells <= 12 else "H")
        assert upper_limit(counts, 0.05) == upper_limit(counts, 0.05, choose(counts))
    with pytest.raises(ConfigurationError, match="12 cells"):
        clopper_pearson(rng.integers(1, 9, (3, 13)), 0.05)


def test_many_sets_are_enumerated_once_per_distinct_count(monkeypatch):
    """16 levels × 10 cells: one vectorised inversion per level, not one per set and pair."""
    calls = []
    inverse = bounds.clopper_pearson_upper

    def counted(successes, trials, level):
        calls.append(np.size(successes))
        return inverse(successes, trials, level)

    monkeypatch.setattr(bounds, "clopper_pearson_upper", counted)
    counts = np.random.default_rng(1).integers(1, 300, (16, 10))
    clopper_pearson(counts, 0.05)
    assert len(calls) == 16
    assert max(calls) <= 2**10 - 2


@pytest.mark.parametrize(
    "counts",
    [
        [[1, 2]],
        [[1], [2]],
        [[1, -1], [2, 3]],
        [[1.5, 1], [2, 3]],
        [[float("nan"), 1], [2, 3]],
        [1, 2, 3],
        [["a", "b"], ["c", "d"]],
    ],
)
def test_what_is_no_table_of_counts_is_refused(counts):
    for limit in (plug_in, lambda c: hoeffding(c, 0.05), lambda c: lower_limit(c, 0.05)):
        with pytest.raises(ConfigurationError):
            limit(counts)


@pytest.mark.parametrize("gamma", [0.0, 1.0, -0.1, float("nan")])
def test_gamma_outside_the_unit_interval_is_refused(gamma):
    counts = [[3, 4], [5, 6]]
    for method in ("CP", "H", "published", "auto"):
        with pytest.raises(ConfigurationError, match="gamma"):
            upper_limit(counts, gamma, method)
    with pytest.raises(ConfigurationError, match="gamma"):
        lower_limit(counts, gamma)
    with pytest.raises(ConfigurationError, match="method"):
        upper_limit(counts, 0.05, "bootstrap")
