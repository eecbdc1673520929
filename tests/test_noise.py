"""Noise sources and releases: seeding, streams, processes, refusals (THEORY T14)."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrdp.errors import ConfigurationError
from corrdp.noise import Lattice, NoiseSource, noise_source, release


def draws(source: NoiseSource) -> list[np.ndarray]:
    return [
        source.gaussian([0.5, 40.0, 1e6]),
        source.discrete_laplace([3, 0.25, Fraction(1000, 3)]),
        source.poisson_sample(100, 0.3),
        source.uniform((2, 3)),
        source.standard_normal(4),
    ]


def test_a_seed_reproduces_every_kind_of_draw() -> None:
    for first, second in zip(draws(noise_source(7)), draws(noise_source(7)), strict=True):
        np.testing.assert_array_equal(first, second)
    assert not np.array_equal(noise_source(7).uniform(4), noise_source(8).uniform(4))
    assert noise_source(7).seeded


def test_no_seed_is_operating_system_entropy() -> None:
    source = noise_source(None)
    assert not source.seeded
    assert not np.array_equal(source.uniform(4), source.uniform(4))
    assert not np.array_equal(source.child("a").uniform(4), source.child("a").uniform(4))
    assert len(draws(source)) == 5


def test_a_source_is_passed_through() -> None:
    for source in (noise_source(None), noise_source(3)):
        assert noise_source(source) is source


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_numpy_generators_are_seeds(make: Any) -> None:
    first, second = noise_source(make(5)), noise_source(make(5))
    assert first.seeded
    np.testing.assert_array_equal(first.uniform(3), second.uniform(3))
    shared = make(5)
    assert not np.array_equal(noise_source(shared).uniform(3), noise_source(shared).uniform(3))


@pytest.mark.parametrize("wrong", [-1, True, 1.0, float("nan"), "7", b"7", np.random, [1]])
def test_other_random_states_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="random_state"):
        noise_source(wrong)


def test_numpy_integers_are_integers() -> None:
    np.testing.assert_array_equal(noise_source(np.int64(7)).uniform(2), noise_source(7).uniform(2))


def test_the_seed_shows_nowhere() -> None:
    seed = 918273645
    for source in (noise_source(seed), noise_source(seed).child("x", 1)):
        assert repr(source) == "NoiseSource(seeded=True)"
        assert str(seed) not in f"{source} {pickle.dumps(source)!r}"
    assert repr(noise_source(None)) == "NoiseSource(seeded=False)"


def test_children_are_reproducible_and_do_not_depend_on_other_draws() -> None:
    expected = noise_source(1).child("gradient", 4).uniform(5)
    busy = noise_source(1)
    busy.uniform(100)
    busy.child("distances").gaussian(np.ones(10))
    np.testing.assert_array_equal(busy.child("gradient", 4).uniform(5), expected)


def test_names_and_indices_give_distinct_streams() -> None:
    root = noise_source(1)
    streams = [root, root.child("a"), root.child("b"), root.child("a", 0), root.child("a", 1)]
    streams += [root.child("a", 1, 2), root.child("a", 12), root.child("a").child("a")]
    streams += [root.child('a", 1'), root.child("a").child("b"), root.child("b").child("a")]
    first = [tuple(stream.uniform(2)) for stream in streams]
    assert len(set(first)) == len(streams)


def test_a_child_goes_on_and_never_starts_again() -> None:
    whole = noise_source(1).child("x").uniform(8)
    root = noise_source(1)
    parts = [root.child("x").uniform(4), root.child("x").uniform(4)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("arguments", [("",), (3,), ("a", -1), ("a", 1.5), ("a", True)])
def test_wrong_names_of_children_are_refused(arguments: Any) -> None:
    for source in (noise_source(None), noise_source(1)):
        with pytest.raises(ConfigurationError, match="is not"):
            source.child(*arguments)


def test_pickles_of_an_unseeded_source_carry_no_state() -> None:
    source = noise_source(None)
    before = pickle.dumps(source)
    draws(source)
    assert pickle.dumps(source) == before
    assert len(before) < 100
    loaded = pickle.loads(before)
    assert not loaded.seeded
    assert not np.array_equal(loaded.uniform(4), pickle.loads(before).uniform(4))
    assert not copy.deepcopy(source).seeded


def test_pickles_of_a_seeded_source_continue() -> None:
    source = noise_source(2)
    source.uniform(3)
    source.child("x").uniform(3)
    loaded = pickle.loads(pickle.dumps(source))
    assert loaded.seeded
    np.testing.assert_array_equal(loaded.child("x").uniform(3), source.child("x").uniform(3))
    np.testing.assert_array_equal(loaded.uniform(3), source.uniform(3))


def assert_all_distinct(drawn: list[np.ndarray]) -> None:
    values = np.concatenate(drawn)
    assert len(set(values.tolist())) == values.size > 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize(
    "method", sorted({"fork", "spawn"} & set(multiprocessing.get_all_start_methods()))
)
def test_processes_never_repeat_noise(method: str) -> None:
    source = noise_source(None)
    with multiprocessing.get_context(method).Pool(2) as pool:
        drawn = pool.starmap(NoiseSource.uniform, [(source, 8)] * 6, chunksize=1)
    assert_all_distinct([*drawn, source.uniform(8)])


def test_threads_never_repeat_noise() -> None:
    for source in (noise_source(None), noise_source(3)):
        with ThreadPoolExecutor(4) as pool:
            drawn = list(pool.map(source.uniform, [50] * 40))
        assert_all_distinct(drawn)


def test_joblib_workers_never_repeat_noise() -> None:
    source = noise_source(None)
    drawn = joblib.Parallel(n_jobs=2)(joblib.delayed(source.uniform)(8) for _ in range(4))
    assert_all_distinct([*drawn, source.uniform(8)])


def test_gaussian_keeps_shapes_and_gives_integers() -> None:
    source = noise_source(1)
    for scale in (3.0, np.full(5, 0.4), np.full((2, 3), 1e6), np.array([[0.0, 2e5, 7.0]])):
        noise = source.gaussian(scale)
        assert noise.shape == np.shape(scale)
        assert noise.dtype == np.float64
        np.testing.assert_array_equal(noise, np.rint(noise))
    for empty in (np.empty(0), np.empty((3, 0))):
        assert source.gaussian(empty).shape == empty.shape
        assert source.discrete_laplace(empty).shape == empty.shape


def test_no_scale_means_no_noise_and_zero_has_no_sign() -> None:
    source = noise_source(1)
    for scale in (np.zeros(50), np.full(50, 1e-3), np.array([0.0, 1e9, 0.0])):
        noise = source.gaussian(scale)
        zero = noise[scale < 1]
        np.testing.assert_array_equal(zero, 0.0)
        assert not np.signbit(zero).any()
    assert not source.discrete_laplace(np.zeros(5)).any()
    assert source.discrete_laplace(0).shape == ()


def test_the_largest_scale_stays_exact() -> None:
    noise = noise_source(1).gaussian(np.full(1000, 2.0**47))
    assert np.abs(noise).max() < 2**53
    np.testing.assert_array_equal(noise, np.rint(noise))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, -1.0, 2.0**48])
def test_wrong_scales_are_refused(wrong: float) -> None:
    source = noise_source(1)
    with pytest.raises(ConfigurationError, match="scale"):
        source.gaussian([1.0, wrong])
    with pytest.raises(ConfigurationError, match="scale"):
        source.discrete_laplace([1.0, wrong])


@pytest.mark.parametrize("wrong", [True, "1", None, 1j])
def test_laplace_scales_are_real_numbers(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="not a number"):
        noise_source(1).discrete_laplace(wrong)


def test_poisson_samples_at_the_ends() -> None:
    source = noise_source(1)
    np.testing.assert_array_equal(source.poisson_sample(5, 1), np.arange(5))
    for n, rate in ((5, 0), (0, 0.5), (0, 1), (1000, 5e-324)):
        assert source.poisson_sample(n, rate).shape == (0,)
    sample = source.poisson_sample(1000, 0.25)
    assert sample.dtype == np.int64
    assert (np.diff(sample) > 0).all()


@pytest.mark.parametrize("n, rate", [(5, np.nan), (5, -0.1), (5, 1.1), (-1, 0.5), (2.0, 0.5)])
def test_wrong_poisson_samples_are_refused(n: Any, rate: float) -> None:
    with pytest.raises(ConfigurationError, match="is not"):
        noise_source(1).poisson_sample(n, rate)


def test_simulated_numbers() -> None:
    uniform = noise_source(1).uniform((50, 40))
    assert uniform.shape == (50, 40)
    assert uniform.min() > 0 and uniform.max() < 1
    assert noise_source(1).standard_normal(()).shape == ()
    with pytest.raises(ConfigurationError, match="size"):
        noise_source(1).uniform(-1)


H = Lattice().spacing


@given(st.lists(st.integers(-(2**52), 2**52), min_size=1, max_size=8), st.integers(0, 2**32))
def test_released_noise_does_not_depend_on_the_total(cells: list[int], seed: int) -> None:
    total = np.array(cells) * H
    sigma = np.geomspace(0.1, 100.0, len(cells)) * H
    zero = release(np.zeros(len(cells)), sigma, H, noise_source(seed))
    noisy = release(total, sigma, H, noise_source(seed))
    np.testing.assert_array_equal(noisy / H - np.array(cells), zero / H)


def test_adding_before_rounding_is_not_translation_equivariant() -> None:
    half = 0.5  # a tie: half to even goes down at 0 and up at 1
    assert np.rint(0 + half) - 0 == 0
    assert np.rint(1 + half) - 1 == 1
    assert (0 + np.rint(half)) - 0 == (1 + np.rint(half)) - 1


def test_entries_without_noise_are_released_as_they_are() -> None:
    total = np.array([[1.0, -2.5], [H, 0.0]])
    np.testing.assert_array_equal(release(total, 0.0, H, noise_source(1)), total)
    mixed = release(total, np.array([0.0, 5.0]), H, noise_source(1))
    np.testing.assert_array_equal(mixed[:, 0], total[:, 0])
    assert (mixed[:, 1] != total[:, 1]).all()


def test_a_release_lies_on_the_lattice_and_scales_with_sigma() -> None:
    source = noise_source(1)
    released = release(np.full(4000, 3 * H), 2.0, H, source)
    np.testing.assert_array_equal(released / H, np.rint(released / H))
    assert released.std() == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("wrong", [H / 2, np.nan, np.inf, 2.0**53 * H])
def test_totals_off_the_lattice_are_refused_before_drawing(wrong: float) -> None:
    source = noise_source(1)
    with pytest.raises(ConfigurationError, match="lattice") as error:
        release(np.array([0.0, wrong]), 1.0, H, source)
    assert repr(wrong) not in str(error.value)
    np.testing.assert_array_equal(source.uniform(3), noise_source(1).uniform(3))


@pytest.mark.parametrize("spacing", [0.3, 0.0, -0.5, np.nan, np.inf])
def test_spacings_are_powers_of_two(spacing: float) -> None:
    with pytest.raises(ConfigurationError, match="lattice_spacing"):
        release(np.zeros(2), 1.0, spacing, noise_source(1))


@pytest.mark.parametrize("sigma", [np.nan, -1.0, np.inf])
def test_wrong_noise_is_refused(sigma: float) -> None:
    with pytest.raises(ConfigurationError, match="scale"):
        release(np.zeros(2), sigma, H, noise_source(1))
