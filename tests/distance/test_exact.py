"""Known distributions: total variation, Dobrushin coefficient, closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from corrdp.distance import dobrushin, exact_distances, total_variation, tv_bernoulli, tv_gaussians
from corrdp.distance.exact import dobrushin_pair
from corrdp.errors import ConfigurationError


@st.composite
def conditional_tables(draw):
    levels, cells = draw(st.integers(2, 4)), draw(st.integers(2, 5))
    weights = draw(
        st.lists(
            st.lists(st.integers(0, 9), min_size=cells, max_size=cells).filter(any),
            min_size=levels,
            max_size=levels,
        )
    )
    table = np.array(weights, dtype=float)
    return table / table.sum(axis=1, keepdims=True)


@given(conditional_tables())
@settings(max_examples=60, deadline=None)
def test_dobrushin_is_the_largest_difference_over_levels_and_sets(table):
    levels, cells = table.shape
    sets = list(itertools.product((False, True), repeat=cells))
    best = max(
        table[a][list(e)].sum() - table[b][list(e)].sum()
        for a in range(levels)
        for b in range(levels)
        for e in sets
    )
    assert dobrushin(table) == pytest.approx(best, abs=1e-12)
    value, (a, b) = dobrushin_pair(table)
    assert total_variation(table[a], table[b]) == pytest.approx(value, abs=1e-15)


@given(conditional_tables(), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_coarser_cells_never_tell_more(table, seed):
    cells = table.shape[1]
    merge = np.random.default_rng(seed).integers(0, 2, cells)
    coarse = np.array([table[:, merge == g].sum(axis=1) for g in (0, 1)]).T
    assert dobrushin(coarse) <= dobrushin(table) + 1e-12


@pytest.mark.parametrize(("difference", "sigma"), [(0.0, 1.0), (0.3, 1.0), (-2.0, 0.7), (5.0, 1.0)])
def test_gaussian_closed_form_against_integration(difference, sigma):
    def gap(x):
        return abs(stats.norm.pdf(x, 0, sigma) - stats.norm.pdf(x, difference, sigma))

    middle = difference / 2
    numeric = sum(integrate.quad(gap, lo, hi)[0] for lo, hi in ((-20, middle), (middle, 20))) / 2
    assert tv_gaussians(difference, sigma) == pytest.approx(numeric, abs=1e-8)


def test_bernoulli_closed_form():
    assert tv_bernoulli(0.3, 0.8) == total_variation([0.7, 0.3], [0.2, 0.8]) == pytest.approx(0.5)


def test_a_maximum_over_single_sensitive_columns_is_not_the_joint_distance():
    # u = s1 xor s2 with fair bits; cells are (s1, s2) = 00, 01, 10, 11
    joint = np.array([[0.5, 0.0, 0.0, 0.5], [0.0, 0.5, 0.5, 0.0]])
    first = joint.reshape(2, 2, 2).sum(axis=2)
    assert dobrushin(first) == 0.0
    assert dobrushin(joint) == 1.0


def test_exact_distances_name_source_and_pair():
    distances = exact_distances({"u": [[0.5, 0.5], [0.1, 0.9]]})
    assert distances["u"].value == distances["u"].low == distances["u"].high == pytest.approx(0.4)
    assert distances["u"].source == "exact"


@pytest.mark.parametrize(
    "table",
    [
        [[0.5, 0.5]],
        [[1.0], [1.0]],
        [[0.5, 0.6], [0.5, 0.5]],
        [[-0.1, 1.1], [0.5, 0.5]],
        [[float("nan"), 1.0], [0.5, 0.5]],
        [[0.0, 0.0], [0.5, 0.5]],
        [],
        [["a", "b"], ["c", "d"]],
    ],
)
def test_what_is_no_conditional_table_is_refused(table):
    with pytest.raises(ConfigurationError):
        dobrushin(table)


def test_other_bad_arguments():
    with pytest.raises(ConfigurationError, match="cells"):
        total_variation([1.0], [0.5, 0.5])
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(ConfigurationError, match="probability"):
            tv_bernoulli(wrong, 0.5)
    for sigma in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigurationError, match="sigma"):
            tv_gaussians(1.0, sigma)
    with pytest.raises(ConfigurationError, match="mean_difference"):
        tv_gaussians(float("nan"), 1.0)
