"""Largest changes that meet the targets: never above, close, few evaluations (THEORY T7)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from corrdp.errors import ConfigurationError
from corrdp.privacy import gdp, many_steps, subsampled

CASES = [
    (0.01, 1000, 1.0, [(1 / d, 1e-5) for d in (1.0, 0.7, 0.4, 0.1, 0.02)]),
    (0.01, 1000, 2.0, [(0.1, 1e-5), (0.5, 1e-6), (0.5, 1e-5), (50.0, 1e-5)]),
    (1e-4, 100_000, 3.3, [(1.0, 1e-9), (10.0, 1e-9), (50.0, 1e-9)]),
    (0.05, 200, 0.2, [(0.01, 1e-5), (math.inf, 1e-5), (1e-6, 1e-4)]),
    (0.2, 1, 1.0, [(0.1, 1e-3), (0.01, 1e-4), (20.0, 1e-4)]),
]


@pytest.mark.parametrize(("q", "steps", "c", "targets"), CASES)
def test_never_above_the_target_and_close_to_it(
    q: float, steps: int, c: float, targets: list[tuple[float, float]]
) -> None:
    changes = subsampled.calibrate(q, steps, c, targets)
    assert changes.shape == (len(targets),)
    for change, (epsilon, delta) in zip(changes.tolist(), targets, strict=True):
        assert 0 < change <= 2 * c
        value = subsampled.epsilon(q, c, change, steps, delta)
        assert value <= epsilon
        if change < 2 * c:
            assert value >= 0.99 * epsilon
            # recomputed a rounding error smaller it still holds; ten per cent more is caught
            assert subsampled.epsilon(q, c, change * (1 - 1e-6), steps, delta) <= epsilon
            assert subsampled.epsilon(q, c, 1.1 * change, steps, delta) > epsilon
    assert np.all(changes[np.isinf([epsilon for epsilon, _ in targets])] == 2 * c)


def test_twenty_kinds_need_few_evaluations() -> None:
    targets = [(1 / d, 1e-5) for d in np.linspace(0.021, 1, 20)]
    many_steps.composed_epsilon.cache_clear()
    changes = subsampled.calibrate(0.01, 1000, 1.5, targets)
    assert many_steps.composed_epsilon.cache_info().misses <= 5 * 20
    assert np.all(np.diff(changes) <= 0)
    again = many_steps.composed_epsilon.cache_info().misses
    assert np.array_equal(subsampled.calibrate(0.01, 1000, 1.5, targets), changes)
    assert many_steps.composed_epsilon.cache_info().misses == again


def test_full_batch_inverts_gaussian_dp() -> None:
    targets = [(0.5, 1e-6), (2.0, 1e-6), (math.inf, 1e-6)]
    changes = subsampled.calibrate(1.0, 25, 1.0, targets)
    for change, (epsilon, delta) in zip(changes[:2], targets, strict=False):
        exact = float(gdp.mu(epsilon, delta)) / 5
        assert exact * (1 - 1e-12) <= change <= exact
        assert subsampled.epsilon(1.0, 1.0, float(change), 25, delta) <= epsilon
    assert changes[2] == 2.0


def test_more_presence_leaves_less_room_for_change() -> None:
    changes = [float(subsampled.calibrate(0.02, 300, c, [(0.5, 1e-6)])[0]) for c in (0.3, 0.8, 1.5)]
    assert changes[0] > changes[1] > changes[2] > 0


def test_no_rows_give_no_changes() -> None:
    assert subsampled.calibrate(0.1, 10, 1.0, np.empty((0, 2))).shape == (0,)


@pytest.mark.parametrize(
    ("q", "steps", "c", "targets", "match"),
    [
        (0.1, 10, 1.0, [(0.0, 1e-5)], "epsilon"),
        (0.1, 10, 1.0, [(math.nan, 1e-5)], "epsilon"),
        (0.1, 10, 1.0, [(1.0, 0.0)], "delta"),
        (0.1, 10, 1.0, [(1.0, math.nan)], "delta"),
        (0.1, 10, 1.0, [1.0, 1e-5], "targets"),
        (0.1, 10, 0.0, [(1.0, 1e-5)], "presence"),
        (0.1, 10, math.inf, [(1.0, 1e-5)], "presence"),
        (0.1, 0, 1.0, [(1.0, 1e-5)], "steps"),
        (math.nan, 10, 1.0, [(1.0, 1e-5)], "sample_rate"),
        (0.5, 10**6, 10.0, [(1e-14, 1e-200)], "no change"),
    ],
)
def test_wrong_arguments(
    q: float, steps: int, c: float, targets: list[tuple[float, float]], match: str
) -> None:
    with pytest.raises(ConfigurationError, match=match):
        subsampled.calibrate(q, steps, c, targets)
