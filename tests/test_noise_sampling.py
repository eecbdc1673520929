"""The samplers with injected words: exact uniforms, reach, cell edges, exact discrete laws.

THEORY T14; the bounds checked here are those that ``gaussian_slack`` charges for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from corrdp import _sampling, _slack
from corrdp.noise import noise_source

UNIT = 2.0**-53


def script(values: Iterable[int]) -> _sampling.Words:
    """Words that were written down beforehand; zeros when they run out."""
    rest: Iterator[int] = iter(values)
    return lambda count: np.array([next(rest, 0) for _ in range(count)], dtype=np.uint64)


def nearest_double(exact: Fraction) -> float:
    return exact.numerator / exact.denominator  # Python divides integers with correct rounding


@given(st.lists(st.integers(0, 2**64 - 1), min_size=20, max_size=20), st.integers(0, 63))
def test_a_uniform_is_its_word_rounded_to_the_nearest_double(words: list[int], zeros: int) -> None:
    first = (words[0] >> zeros) | 1
    magnitude = first if first < 2**63 else 2**64 - first
    value = _sampling.signed_half_uniform(script([first, *words[1:]]), 1)[0]
    exact = Fraction(magnitude, 2**64)
    if nearest_double(exact) <= 2.0**-10:  # too short for 53 bits: one more word
        assert nearest_double(exact - Fraction(1, 2**64)) <= abs(value)
        assert abs(value) <= nearest_double(exact + Fraction(1, 2**64))
        exact = Fraction(2 * ((magnitude >> 1) << 64 | words[1]) + 1, 2**128)
    if exact >= Fraction(2**54, 2**128):
        assert abs(value) == nearest_double(exact)
    assert (value > 0) == (first < 2**63)


@pytest.mark.parametrize("leading", range(15))
def test_uniforms_have_53_bits_at_every_magnitude(leading: int) -> None:
    words = [1] + [0] * leading + [0x8000_0000_0000_0401, 2**63]
    value = _sampling.signed_half_uniform(script(words), 1)[0]
    exact = Fraction(0x8000_0000_0000_0401, 2 ** (64 * (leading + 2) - 1))
    assert value == pytest.approx(float(exact), rel=2 * UNIT, abs=0)
    assert value != float(Fraction(2**63, 2 ** (64 * (leading + 2) - 1)))


def test_a_uniform_without_more_bits_is_the_middle_of_what_is_left_open() -> None:
    """The interval ends half-way between two doubles; its middle does not."""
    value = _sampling.signed_half_uniform(script([1, 2**53 + 1]), 1)[0]
    assert value == math.ldexp(2**54 + 4, -128)


def test_uniforms_for_simulations_stay_inside() -> None:
    source = noise_source(1)
    source._words = script([0, 2**64 - 1, 2**63])
    np.testing.assert_array_equal(source.uniform(3), [2.0**-53, 1 - 2.0**-53, 0.5 + 2.0**-53])


def test_zero_never_occurs() -> None:
    value = _sampling.signed_half_uniform(script([]), 3)
    assert (value > 0).all()
    noise = _sampling.standard_normal(script([]), 3)
    assert np.isfinite(noise).all()
    assert np.abs(noise).min() > 38


def test_the_centre_and_both_signs_are_reached() -> None:
    centre = [2**63 - 1, 2**63 + 1]
    np.testing.assert_array_equal(_sampling.signed_half_uniform(script(centre), 2), [0.5, -0.5])
    mirrored = _sampling.standard_normal(script([2**60 + 1, 2**64 - 2**60 - 1]), 2)
    assert mirrored[0] == -mirrored[1] != 0


def words_of(probability: float) -> tuple[int, int, int]:
    """Three words whose uniform is ``probability``; the third is drawn only where it is needed."""
    bits = int(Fraction(probability) * 2**191)
    return bits >> 128 << 1, bits >> 64 & 2**64 - 1, bits & 2**64 - 1


@pytest.mark.parametrize("z", [8.3, 9.8, 12.0])
def test_no_holes_in_the_tail(z: float) -> None:
    top = float(ndtr(-z))
    inputs = top * (1 + np.arange(200) * 2.0**-52)
    words = script(np.array([words_of(p) for p in inputs], dtype=object).T.ravel())
    noise = np.abs(_sampling.standard_normal(words, inputs.size))
    np.testing.assert_allclose(noise, z, rtol=1e-12)
    # Neighbouring inputs are less than a thousandth of a cell apart at the one-layer limit ...
    assert np.abs(np.diff(noise)).max() * _sampling.TWO_LAYERS < 1e-3
    # ... where uniforms k·2^-53 end at 8.2 and skip cells before.
    naive = -ndtri(np.arange(1, 4) * UNIT)
    assert naive[0] < 8.3
    assert np.abs(np.diff(naive)).min() * _sampling.TWO_LAYERS > 1000


def quantile(probability: mpmath.mpf) -> mpmath.mpf:
    """|z| with P(Z > |z|) = probability, to 100 bits, by Newton from the double."""
    z = mpmath.mpf(-float(ndtri(float(probability))))
    for _ in range(3):
        excess = mpmath.erfc(z / mpmath.sqrt(2)) / 2 - mpmath.mpf(probability)
        z += excess / mpmath.npdf(z)
    return z


def test_the_quantile_is_within_nine_units() -> None:
    z = np.concatenate([np.linspace(1e-3, 2.5, 1500), np.geomspace(2.5, 37.5, 500)])
    worst = 0.0
    with mpmath.workprec(120):
        for p in ndtr(-z):
            exact = quantile(p)
            worst = max(worst, float(abs(-float(ndtri(p)) - exact) / exact))
    assert worst <= 9 * UNIT
    assert worst > 3 * UNIT  # the bound is of the right size


def edge(scale: float, k: int) -> mpmath.mpf:
    """The real uniform at which noise of ``scale`` starts to round to less than k.

    It lies half-way between the last double with k or more and the next one.
    """
    low, high = 0.0, 0.5
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if np.rint(-scale * ndtri(middle)) >= k else (low, middle)
    return (mpmath.mpf(low) + mpmath.mpf(high)) / 2


@pytest.mark.parametrize("scale", [0.7, 20.0, 5e3, _sampling.TWO_LAYERS, 5e6, 1e9])
def test_cell_edges_move_less_than_charged(scale: float) -> None:
    used = []
    with mpmath.workprec(120):
        for z in np.linspace(0.02, 36.0, 60):
            k = max(1, round(z * scale))
            ideal = (mpmath.mpf(k) - 0.5) / mpmath.mpf(scale)
            moved = abs(float(quantile(edge(scale, k)) - ideal))
            used.append(moved / (_slack._ETA * float(ideal) + _slack._MILLS))
    assert max(used) <= 1.0
    assert max(used) > 0.1  # not vacuous


@pytest.mark.parametrize("scale", [0.4, 3.0, 5e3, _sampling.TWO_LAYERS])
def test_cell_probabilities_change_less_than_charged(scale: float) -> None:
    """Worst case of moved edges against the closed bound, cell by cell, to 36 deviations."""
    with mpmath.workprec(200):
        for a in np.linspace(0.0, 36.0, 73):
            b = mpmath.mpf(a) + 1 / mpmath.mpf(scale)
            shift = [_slack._ETA * e + _slack._MILLS for e in (mpmath.mpf(a), b)]
            ideal = mpmath.ncdf(-a) - mpmath.ncdf(-b)
            wide = mpmath.ncdf(-(a - shift[0])) - mpmath.ncdf(-(b + shift[1]))
            narrow = mpmath.ncdf(-(a + shift[0])) - mpmath.ncdf(-(b - shift[1]))
            change = max(wide / ideal - 1, 1 - narrow / ideal)
            assert 0 < change <= _slack.cell_error(scale, max(a, 1.0)) * (1 + 1e-6)


def cells(scale: float, reach: int) -> np.ndarray:
    """P(round(N(0, scale²)) = k) for |k| ≤ reach."""
    k = np.arange(reach + 1)
    upper = ndtr(-(k - 0.5) / scale) - ndtr(-(k + 0.5) / scale)
    return np.concatenate([upper[:0:-1], upper])


def two_layer_ratio(step: int, factor: float, scale: float) -> float:
    """Largest relative difference of the two-layer law from the ideal one, up to 8 deviations."""
    fine = factor * step
    coarse = math.sqrt(scale**2 - fine**2) / step
    reach = math.ceil(12 * coarse)
    spread = np.zeros(2 * reach * step + 1)
    spread[::step] = cells(coarse, reach)
    actual = np.convolve(spread, cells(fine, math.ceil(12 * fine)))
    middle = actual.size // 2
    outputs = np.arange(0, math.ceil(8 * scale))
    nodes, weights = np.polynomial.legendre.leggauss(12)
    t = outputs[:, None] + nodes / 2
    density = (ndtr(-(t - step / 2) / scale) - ndtr(-(t + step / 2) / scale)) / step
    ideal = density @ weights / 2
    return float(np.abs(actual[middle + outputs] / ideal - 1).max())


def test_two_layers_are_a_gaussian_plus_a_uniform() -> None:
    assert two_layer_ratio(8, _sampling.FINE_FACTOR, 256.0) < 1e-10
    assert two_layer_ratio(8, 1.0, 256.0) > 1e-9  # a fine layer of one step would alias
    assert two_layer_ratio(8, 0.5, 256.0) > 1e-2


@pytest.mark.parametrize("scale", np.geomspace(_sampling.TWO_LAYERS * 1.001, 2.0**47, 40))
def test_layers_are_as_small_as_charged_and_never_below_the_scale(scale: float) -> None:
    words, seen = noise_source(1)._words, []

    def spy(_: _sampling.Words, layers: np.ndarray) -> np.ndarray:
        seen.extend(layers)
        return np.zeros(layers.size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sampling, "_one_layer", spy)
        _sampling._two_layers(words, np.array([scale]))
    coarse, fine = seen
    step = fine / _sampling.FINE_FACTOR
    assert math.log2(step).is_integer()
    assert max(coarse, fine) <= math.sqrt(8 * scale)
    variance = Fraction(coarse) ** 2 * Fraction(step) ** 2 + Fraction(fine) ** 2
    assert 0 <= variance / Fraction(scale) ** 2 - 1 < 2.0**-48


@pytest.mark.parametrize("z", [0.0, 10.0, 36.0])
@pytest.mark.parametrize("scale", [2.0**16 + 1, 2.0**17 - 1, 2.0**20])
def test_layers_stay_in_reach_given_the_sum(scale: float, z: float) -> None:
    """The coarse layer within z + 0.2 and the fine one within z/50 + 10, up to 1e-20."""
    step = 2.0 ** ((math.frexp(scale)[1] >> 1) - 1)
    fine = _sampling.FINE_FACTOR * step
    coarse = math.sqrt(scale**2 - fine**2)
    centre, spread = z * coarse**2 / scale, coarse * fine / scale
    x = step * np.arange((centre - 20 * spread) // step, (centre + 20 * spread) // step)
    weight = np.exp(-((x - centre) ** 2) / (2 * spread**2))
    out = (np.abs(x) > (z + 0.2) * coarse) | (np.abs(z * scale - x) > (z / 50 + 10) * fine)
    assert weight[out].sum() / weight.sum() < 1e-21  # a tenth left for rounding x to the lattice


def leaves(run: Callable[[_sampling.Below], object], depth: int) -> dict[object, Fraction]:
    """Exact law of ``run``'s result, over all outcomes of its first ``depth`` uniform integers.

    What is still open then has the key None.
    """
    law: dict[object, Fraction] = {}

    def explore(past: list[int], weight: Fraction) -> None:
        bounds: list[int] = []

        def below(bound: int) -> int:
            if len(bounds) < len(past):
                bounds.append(bound)
                return past[len(bounds) - 1]
            raise LookupError(bound)

        try:
            result = run(below)
        except LookupError as more:
            bound = more.args[0]
            if len(past) < depth:
                for value in range(bound):
                    explore([*past, value], weight / bound)
                return
            result = None
        law[result] = law.get(result, Fraction(0)) + weight

    explore([], Fraction(1))
    return law


@pytest.mark.parametrize("numerator, denominator", [(0, 1), (1, 1), (1, 2), (2, 3)])
def test_bernoulli_exp_is_exact(numerator: int, denominator: int) -> None:
    law = leaves(lambda below: _sampling._bernoulli_exp(below, numerator, denominator), 5)
    exact = math.exp(-numerator / denominator)
    low = float(law.get(True, Fraction(0)))
    assert low - 1e-15 <= exact <= low + float(law.get(None, Fraction(0))) + 1e-15
    assert law.get(None, Fraction(0)) <= Fraction(numerator, denominator) ** 5 / 120


def test_uniform_integers_are_exact() -> None:
    for bound in range(1, 9):
        counts = dict.fromkeys(range(bound), 0)
        for top in range(8):  # every value of the three leading bits, then a stop mark of zeros
            below = _sampling._uniform_below(script([0] * 15 + [top << 61]), 1)
            value = below(bound)
            bits = (bound - 1).bit_length()
            if top >> (3 - bits) < bound:  # accepted at once
                assert value == top >> (3 - bits)
                counts[value] += 1
        assert len(set(counts.values())) == 1


def test_uniform_integers_of_many_words() -> None:
    below = _sampling._uniform_below(script([0] * 13 + [2**63, 3, 5]), 1)
    assert below(2**128) == (5 << 64) + 3
    assert below(2) == 1


def test_bernoulli_compares_every_bit() -> None:
    """All 2^16 uniforms of two bytes against 0.3: as many successes as there are below it."""
    pairs = np.arange(2**16)
    first = (pairs >> 8).astype(np.uint8)
    digit = int(0.3 * 256)
    second = (pairs & 255).astype(np.uint8)[first == digit]
    feed = [first.view(np.uint64), second.view(np.uint64)]

    def words(count: int) -> np.ndarray:
        return feed.pop(0) if feed else np.zeros(count, dtype=np.uint64)

    chosen = _sampling.bernoulli(words, 0.3, pairs.size)
    np.testing.assert_array_equal(chosen, np.flatnonzero(pairs <= math.floor(0.3 * 2**16)))


def test_bernoulli_of_a_short_fraction_needs_one_byte() -> None:
    every_byte = np.arange(256, dtype=np.uint8).view(np.uint64)
    for numerator in range(257):
        chosen = _sampling.bernoulli(lambda _: every_byte, numerator / 256, 256)
        np.testing.assert_array_equal(chosen, np.arange(numerator))
