"""The laws of the noise, by fixed-seed tests that must also reject a slightly wrong law (T14).

A right law has to pass at the level ``ACCEPT``; a wrong one has to fail at ``REJECT``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from corrdp import _sampling
from corrdp.noise import noise_source, release

ACCEPT = 1e-4
REJECT = 1e-9
WRONG = 1.05
DRAWS = 100_000


def lattice_bins(scale: float, cdf: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """At most 60 bins of whole cells, cut at half-integers, each with 1 ‰ or more."""
    cells = np.arange(-np.ceil(4 * scale) - 1, np.ceil(4 * scale) + 1) + 0.5
    share = cdf(cells)
    cuts = [cells[0]]
    last = share[0]
    for cut, below in zip(cells, share, strict=True):
        if below - last > 1 / 60 and 1 - below > 1e-3:
            cuts.append(cut)
            last = below
    return np.array(cuts)


def goodness(noise: np.ndarray, cuts: np.ndarray, below: np.ndarray) -> float:
    """p-value of the chi-square test of ``noise`` against P(noise < cut) = below."""
    expected = np.diff(np.concatenate([[0.0], below, [1.0]])) * noise.size
    place = np.searchsorted(cuts, noise)
    observed = np.bincount(place, minlength=cuts.size + 1)
    keep = expected > 5
    rest = observed[~keep].sum(), expected[~keep].sum()
    observed = np.append(observed[keep], rest[0])
    expected = np.append(expected[keep], max(rest[1], 1e-9))
    if expected[-1] < 5:
        observed, expected = observed[:-1], expected[:-1]
        expected = expected * observed.sum() / expected.sum()
    return float(stats.chisquare(observed, expected).pvalue)


GAUSSIAN = [0.3, 1.0, 7.3, 300.0, _sampling.TWO_LAYERS, 1.01 * _sampling.TWO_LAYERS, 5e6, 1e12]


@pytest.mark.parametrize("scale", GAUSSIAN)
def test_gaussian_noise_has_its_law(scale: float) -> None:
    noise = noise_source(11).gaussian(np.full(DRAWS, scale))
    if scale < 1000:
        cuts = lattice_bins(scale, lambda t: stats.norm.cdf(t / scale))
    else:  # a cell is far below what can be seen
        cuts = np.rint(scale * stats.norm.ppf(np.arange(1, 60) / 60)) + 0.5
    assert goodness(noise, cuts, stats.norm.cdf(cuts / scale)) > ACCEPT
    for wrong in (scale * WRONG, scale / WRONG):
        assert goodness(noise, cuts, stats.norm.cdf(cuts / wrong)) < REJECT


@pytest.mark.parametrize("scale", [200.0, 1.01 * _sampling.TWO_LAYERS, 5e6])
def test_gaussian_tails_have_their_weight(scale: float) -> None:
    noise = noise_source(12).gaussian(np.full(5 * DRAWS, scale)) / scale
    for z in (2.0, 3.0, 4.0):
        for beyond in ((noise > z).sum(), (noise < -z).sum()):
            assert stats.binomtest(beyond, noise.size, stats.norm.sf(z)).pvalue > ACCEPT


def test_low_digits_of_two_layers_are_even() -> None:
    """The fine layer fills the coarse cells: every residue is as likely as every other."""
    noise = noise_source(13).gaussian(np.full(DRAWS, 5e6))
    for modulus in (7, 64, 2048):
        counts = np.bincount(np.mod(noise, modulus).astype(int) * 7 // modulus)
        exact = np.bincount(np.arange(modulus) * 7 // modulus) / modulus
        assert stats.chisquare(counts, exact * DRAWS).pvalue > ACCEPT


def test_mixed_scales_keep_their_own_law() -> None:
    scale = np.tile([0.0, 2.0, 1e6, 3e5, 50.0], 20_000)
    noise = noise_source(14).gaussian(scale)
    assert not noise[scale == 0].any()
    for s in (2.0, 50.0, 3e5, 1e6):
        spread = (noise[scale == s] ** 2).mean() / (s * s + 1 / 12)
        assert spread == pytest.approx(1.0, abs=4 * np.sqrt(2 / 20_000))


def laplace_below(cuts: np.ndarray, scale: float) -> np.ndarray:
    """P(discrete Laplace < cut) for half-integers."""
    ratio = np.exp(-1 / scale)
    outer = ratio ** (np.abs(cuts) + 0.5) / (1 + ratio)
    return np.where(cuts < 0, outer, 1 - outer)


LAPLACE = [Fraction(1, 3), 0.7, 1, Fraction(5, 2), 10.1, 1000.25]


@pytest.mark.parametrize("scale", LAPLACE)
def test_discrete_laplace_has_its_law(scale: float | Fraction) -> None:
    noise = noise_source(15).discrete_laplace([scale] * 20_000)
    exact = float(scale)
    cuts = lattice_bins(2 * exact, lambda t: laplace_below(t, exact))
    assert goodness(noise, cuts, laplace_below(cuts, exact)) > ACCEPT
    for wrong in (exact * 1.1, exact / 1.1):
        assert goodness(noise, cuts, laplace_below(cuts, wrong)) < 1e-6


def opendp_draws(scale: float, family: str, count: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import opendp.prelude as dp

        dp.enable_features("contrib")
        if family == "laplace":
            space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
            draw = dp.m.make_laplace(*space, scale=scale)
            return np.array(draw([0] * count))
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=count)
        draw = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale, k=-20)
        return np.rint(draw([0.0] * count))


def same_law(first: np.ndarray, second: np.ndarray) -> float:
    """p-value of the two-sample chi-square test on 20 bins of the pooled sample."""
    cuts = np.unique(np.quantile(np.concatenate([first, second]), np.arange(1, 20) / 20)) + 0.5
    table = [
        np.bincount(np.searchsorted(cuts, x), minlength=cuts.size + 1) for x in (first, second)
    ]
    counts = np.array(table)
    return float(stats.chi2_contingency(counts[:, counts.sum(axis=0) > 10]).pvalue)


@pytest.mark.parametrize("scale", [0.7, 3.0, 40.0])
def test_noise_agrees_with_exact_samplers(scale: float) -> None:
    """The reference draws from the operating system, so the level is lower."""
    count, source = 6_000, noise_source(16)
    laplace = opendp_draws(scale, "laplace", count)
    assert same_law(source.discrete_laplace([scale] * count), laplace) > 1e-7
    assert same_law(source.discrete_laplace([scale * 1.3] * count), laplace) < 1e-7
    gaussian = opendp_draws(scale, "gaussian", count)
    assert same_law(source.gaussian(np.full(count, scale)), gaussian) > 1e-7
    assert same_law(source.gaussian(np.full(count, scale * 1.3)), gaussian) < 1e-7


@pytest.mark.parametrize("rate", [0.5, 0.3, 1 / 3, 0.05])
def test_poisson_samples_have_their_law(rate: float) -> None:
    """All 2^5 subsets of five records: marginals, pairs and the size at once."""
    source, rounds, n = noise_source(17), 50_000, 5
    # One sample of many records is many samples of five: records are independent.
    flat = source.poisson_sample(n * rounds, rate)
    member = np.zeros(n * rounds, dtype=int)
    member[flat] = 1
    observed = np.bincount(member.reshape(rounds, n) @ (1 << np.arange(n)), minlength=2**n)

    def fit(q: float) -> float:
        sizes = np.bitwise_count(np.arange(2**n)).astype(float)
        expected = q**sizes * (1 - q) ** (n - sizes) * rounds
        seen = expected > 5
        pooled = np.append(observed[seen], observed[~seen].sum())
        weight = np.append(expected[seen], expected[~seen].sum())
        return float(stats.chisquare(pooled[weight > 0], weight[weight > 0]).pvalue)

    assert fit(rate) > ACCEPT
    assert fit(rate * 1.1) < 1e-6
    assert fit(rate / 1.1) < 1e-6


def test_poisson_samples_of_separate_calls() -> None:
    source, n, rate, rounds = noise_source(18), 40, 0.2, 3000
    samples = [source.poisson_sample(n, rate) for _ in range(rounds)]
    sizes = np.array([s.size for s in samples])
    below = stats.binom.cdf(np.arange(n), n, rate)
    assert goodness(sizes, np.arange(n) + 0.5, below) > ACCEPT
    included = np.bincount(np.concatenate(samples), minlength=n)
    spread = ((included - rounds * rate) ** 2).sum() / (rounds * rate * (1 - rate))
    assert stats.chi2(n).sf(spread) > ACCEPT
    neighbours = sum((np.diff(s) == 1).sum() for s in samples)
    assert stats.binomtest(int(neighbours), rounds * (n - 1), rate**2).pvalue > 1e-4


def test_uniforms_and_normals() -> None:
    source = noise_source(19)
    assert stats.kstest(source.uniform(DRAWS), "uniform").pvalue > ACCEPT
    normal = source.standard_normal(DRAWS)
    assert stats.kstest(normal, "norm").pvalue > ACCEPT
    assert stats.kstest(normal * WRONG, "norm").pvalue < REJECT


def test_child_streams_are_independent() -> None:
    root = noise_source(20)
    streams = [root, root.child("a"), root.child("b")]
    streams += [root.child("a", i) for i in range(20)] + [root.child("a").child("a")]
    draws = np.array([stream.standard_normal(4000) for stream in streams])
    correlation = np.corrcoef(draws)[np.triu_indices(len(streams), 1)]
    assert stats.kstest(correlation * np.sqrt(4000), "norm").pvalue > ACCEPT
    neighbouring = [noise_source(seed).standard_normal(4000) for seed in range(20)]
    correlation = np.corrcoef(neighbouring)[np.triu_indices(20, 1)]
    assert stats.kstest(correlation * np.sqrt(4000), "norm").pvalue > ACCEPT


def reachable(outputs: np.ndarray, value: float, scale: float) -> np.ndarray:
    """Which outputs value + float Laplace noise can give at all (Mironov 2012).

    The noise is ±scale·log of a multiple of 2^-52; the multiples around the nearest are tried.
    """
    noise = outputs - value
    nearest = np.rint(np.exp(-np.abs(noise) / scale) * 2.0**52)
    found = np.zeros(outputs.shape, dtype=bool)
    for offset in range(-20, 21):
        uniform = np.clip(nearest + offset, 1, 2.0**52 - 1) * 2.0**-52
        found |= value - np.sign(noise) * scale * np.log(uniform) == outputs
    return found


def test_low_bits_of_float_noise_tell_the_value_and_lattice_noise_does_not() -> None:
    source, scale, count = noise_source(21), 10.0, 4000
    uniform = np.floor(source.uniform(count) * 2.0**52).clip(1) * 2.0**-52
    noise = -np.where(source.uniform(count) < 0.5, -1, 1) * scale * np.log(uniform)
    impossible = [1 - reachable(value + noise, 0.0, scale).mean() for value in (0.0, 1.0)]
    assert impossible[0] == 0.0
    assert impossible[1] > 0.75  # an (ε = 0.1) mechanism, told apart three times in four
    # On the lattice every output of the one value is an output of the other.
    spacing = 2.0**-4
    released = [
        release(np.full(DRAWS, value), scale, spacing, source) / spacing for value in (0.0, 1.0)
    ]
    assert all((cells == np.rint(cells)).all() for cells in released)
    window = [set(cells[np.abs(cells) < 160].tolist()) for cells in released]
    assert window[0] == window[1] == set(np.arange(-159.0, 160.0).tolist())


def off_the_noise_lattice(outputs: np.ndarray, value: float, scale: float) -> np.ndarray:
    """Which outputs minus ``value`` are not exactly scale·log of a multiple of 2^-52."""
    noise = np.abs(outputs - value)
    uniform = np.rint(np.exp(-noise / scale) * 2.0**52).clip(1) * 2.0**-52
    return -scale * np.log(uniform) != noise


def test_a_guess_at_the_value_is_confirmed_by_float_noise_and_not_by_lattice_noise() -> None:
    """The guess 1: only the last rounding of value + noise takes its own outputs off."""
    source, scale = noise_source(22), 10.0
    centred = np.floor(source.uniform(DRAWS) * 2.0**53) * 2.0**-53 - 0.5
    noise = -np.sign(centred) * scale * np.log(1.0 - 2.0 * np.abs(centred))
    naive = [off_the_noise_lattice(value + noise, 1.0, scale).mean() for value in (1.0, 0.0)]
    assert naive == pytest.approx([0.09, 0.81], abs=0.01)
    # both values give the same outputs, so whatever is off for one is off for the other
    cells = [source.discrete_laplace([Fraction(160)] * 20_000) + 16 * v for v in (1, 0)]
    seen = [set(found[np.abs(found) < 320].tolist()) for found in cells]
    assert seen[0] == seen[1] == set(range(-319, 320))
    ours = [off_the_noise_lattice(found / 16, 1.0, scale).mean() for found in cells]
    assert ours[0] == pytest.approx(ours[1], abs=0.02)
