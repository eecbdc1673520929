"""Exact distances of finite populations, against the definition written out."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from corrdp.datasets.population import Population
from corrdp.errors import ConfigurationError

FloatArray = NDArray[np.float64]


def by_definition(
    prior: FloatArray,
    sensitive: Sequence[int],
    changed: Sequence[FloatArray],
    background: Sequence[FloatArray],
) -> float:
    """max over K, a, b of ½Σ_s |P(s|a,K) − P(s|b,K)|; undefined counts as 1."""

    def posterior(values: Sequence[int], channels: Sequence[FloatArray]) -> list[float] | None:
        mass: dict[int, float] = {}
        for cell, share in enumerate(prior):
            weight = share
            for value, channel in zip(values, channels, strict=True):
                weight *= channel[value, cell]
            mass[sensitive[cell]] = mass.get(sensitive[cell], 0.0) + weight
        total = sum(mass.values())
        return None if total == 0 else [mass[s] / total for s in sorted(mass)]

    def values_of(channels: Sequence[FloatArray]) -> list[tuple[int, ...]]:
        return list(itertools.product(*(range(len(channel)) for channel in channels)))

    largest = 0.0
    for known in values_of(background):
        channels = [*changed, *background]
        found = [posterior((*a, *known), channels) for a in values_of(changed)]
        if any(one is None for one in found):
            return 1.0
        for p, q in itertools.combinations([one for one in found if one is not None], 2):
            largest = max(largest, sum(abs(x - y) for x, y in zip(p, q, strict=True)) / 2)
    return largest


def random_channel(rng: np.random.Generator, levels: int, cells: int) -> FloatArray:
    channel = rng.dirichlet(np.ones(levels), size=cells).T
    return np.asarray(channel)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(0, 3))
def test_distance_is_the_definition(seed: int, repeats: int, others: int) -> None:
    rng = np.random.default_rng(seed)
    cells = 5
    prior = rng.dirichlet(np.ones(cells))
    sensitive = np.array([0, 1, 2, 1, 0])
    one, two = random_channel(rng, 2, cells), random_channel(rng, 3, cells)
    other = random_channel(rng, 2, cells)
    found = Population(prior, sensitive).distance([(one, repeats), (two, 1)], [(other, others)])
    expected = by_definition(prior, sensitive.tolist(), [one] * repeats + [two], [other] * others)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("where", ["changed", "background"])
def test_impossible_combinations_count_as_one(where: str) -> None:
    prior, sensitive = np.array([0.5, 0.5]), np.array([0, 0])
    copies, free = np.eye(2), np.full((2, 2), 0.5)
    population = Population(prior, sensitive)
    assert population.distance([(copies, 1)]) == 0.0  # there is one tuple only
    if where == "changed":
        assert population.distance([(copies, 2)]) == 1.0
    else:
        assert population.distance([(free, 1)], [(copies, 2)]) == 1.0


def test_thousands_of_weak_columns_do_not_underflow() -> None:
    channel = np.array([[0.55, 0.45], [0.45, 0.55]])
    population = Population(np.array([0.5, 0.5]), np.array([0, 1]))
    assert population.distance([(channel, 1)]) == pytest.approx(0.1, abs=1e-12)
    few = population.distance([(channel, 10)])
    # posterior odds of s after ten equal signs: (.55/.45)^10
    odds = (0.55 / 0.45) ** 10
    assert few == pytest.approx((odds - 1) / (odds + 1), abs=1e-12)
    assert population.distance([(channel, 3000)]) == pytest.approx(1.0, abs=1e-12)


def test_too_large_a_domain_is_not_enumerated() -> None:
    channels = [(np.array([[p, 0.5], [1 - p, 0.5]]), 1) for p in np.linspace(0.1, 0.9, 40)]
    population = Population(np.array([0.5, 0.5]), np.array([0, 1]))
    assert population.distance(channels) is None
    assert population.distance(channels[:1], channels[1:]) is None
    assert population.distance(channels[:3]) is not None


def test_population_checks_itself() -> None:
    for prior in ([0.5, 0.6], [0.0, 1.0], [float("nan"), 1.0]):
        with pytest.raises(ConfigurationError, match="prior"):
            Population(np.array(prior), np.array([0, 1]))
    with pytest.raises(ConfigurationError, match="one sensitive tuple"):
        Population(np.array([0.5, 0.5]), np.array([0, 1, 2]))
