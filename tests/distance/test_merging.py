"""Pooling along a public order."""

from __future__ import annotations

import numpy as np
import pytest

from corrdp.distance.bounds import upper_limit
from corrdp.distance.merging import pool_tail, pooled_limit
from corrdp.errors import ConfigurationError

COUNTS = np.array([[40, 60], [1, 2], [30, 20], [2, 2]])


def test_the_end_of_the_order_is_pooled_until_it_is_large_enough():
    found = pool_tail(COUNTS, (0, 2, 3, 1), 7)
    assert found.kept == (0, 2) and found.pooled == (3, 1)
    assert found.counts.tolist() == [[40, 60], [30, 20], [3, 4]]
    assert pool_tail(COUNTS, (0, 2, 3, 1), 3).pooled == (1,)
    assert pool_tail(COUNTS, (0, 2, 3, 1), 8).pooled == (2, 3, 1)


def test_two_levels_always_remain():
    assert pool_tail(COUNTS, (0, 1, 2, 3), 10**6).kept == (0,)
    assert pool_tail(COUNTS, (3, 1, 2, 0), 158).kept == (3,)


def test_gamma_is_divided_by_the_number_of_levels():
    value, found = pooled_limit(COUNTS, (0, 2, 3, 1), 7, 0.05)
    assert value == upper_limit(found.counts, 0.05 / 4).value
    assert value > upper_limit(found.counts, 0.05).value


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 1, 2, 2), (0, 1, 2, 4)])
def test_the_order_names_each_level_once(order):
    with pytest.raises(ConfigurationError, match="order"):
        pool_tail(COUNTS, order, 5)


def test_other_bad_arguments():
    for minimum in (0, float("nan")):
        with pytest.raises(ConfigurationError, match="minimum"):
            pool_tail(COUNTS, (0, 1, 2, 3), minimum)
    with pytest.raises(ConfigurationError, match="gamma"):
        pooled_limit(COUNTS, (0, 1, 2, 3), 5, 0.0)
