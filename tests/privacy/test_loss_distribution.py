"""Connect-the-dots and composition by tilted FFT against direct sums and T4 (THEORY T7)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import fft

from corrdp.errors import ConfigurationError
from corrdp.privacy import gdp
from corrdp.privacy.loss_distribution import (
    LossDistribution,
    compose,
    connect_the_dots,
    least_delta,
    least_epsilon,
)
from corrdp.privacy.one_step import hockey_stick, loss_distributions, loss_scale

Floats = NDArray[np.float64]


def coarse_pair() -> LossDistribution:
    """A loss with few masses, so that its composition can be added up directly."""
    index = np.arange(0, 13)
    value, error = hockey_stick(0.25 * index, 0.3, 1.0, 0.8)
    return connect_the_dots(index, value, error, 0.25)


def directly(loss: LossDistribution, steps: int, epsilon: float) -> float:
    """δ(ε) of the composition by repeated convolution of the masses."""
    dense = np.zeros(int(loss.index[-1] - loss.index[0]) + 1)
    dense[loss.index - loss.index[0]] = loss.mass
    total = np.array([1.0])
    for _ in range(steps):
        total = np.convolve(total, dense)
    losses = loss.step * (np.arange(len(total)) + steps * loss.index[0])
    finite = float(np.sum(total * -np.expm1(np.minimum(epsilon - losses, 0.0))))
    return finite + 1 - (1 - loss.infinite) ** steps


def test_the_chords_lie_above_the_profile_and_touch_it() -> None:
    loss = coarse_pair()
    losses = loss.step * loss.index
    for e in np.linspace(-2.5, 2.9, 55):
        chord = float(np.sum(loss.mass * np.maximum(-np.expm1(e - losses), 0.0))) + loss.infinite
        exact = float(hockey_stick(np.array([abs(e)]), 0.3, 1.0, 0.8)[0][0])
        exact = exact if e >= 0 else -math.expm1(e) + math.exp(e) * exact
        assert chord >= exact * (1 - 1e-12)
        if abs(e / 0.25 - round(e / 0.25)) < 1e-9:
            assert chord == pytest.approx(exact, rel=1e-9)


def test_the_pair_is_symmetric_and_complete() -> None:
    loss = coarse_pair()
    assert float(np.sum(loss.mass)) + loss.infinite == pytest.approx(1.0, abs=1e-12)
    assert np.array_equal(loss.index, -loss.index[::-1])
    under_q = loss.mass * np.exp(-loss.step * loss.index)
    assert under_q == pytest.approx(loss.mass[::-1], rel=1e-9)


@pytest.mark.parametrize("steps", [2, 5, 40])
def test_composition_is_the_direct_sum(steps: int) -> None:
    loss = coarse_pair()
    for epsilon in (0.0, 0.4, 1.03, 3.0, 5.21):
        tilt, bound = least_delta(loss, steps, epsilon)
        exact = directly(loss, steps, epsilon)
        assert exact - loss.infinite_after(steps) <= math.exp(bound) * (1 + 1e-9)
        value = compose(loss, steps, tilt).delta(epsilon)
        assert exact * (1 - 1e-13) <= value <= exact * (1 + 1e-5)
        if epsilon > 0:
            tilt, near = least_epsilon(loss, steps, math.log(value - loss.infinite_after(steps)))
            back = compose(loss, steps, tilt).epsilon(value, near)
            assert back == pytest.approx(epsilon, rel=1e-6)
            assert directly(loss, steps, back) <= value
            assert near >= epsilon


def test_the_tilt_does_not_matter_where_it_need_not() -> None:
    loss = coarse_pair()
    values = [compose(loss, 20, tilt).delta(2.0) for tilt in (0.2, 0.6, 1.5)]
    assert max(values) / min(values) < 1 + 1e-6


@pytest.mark.parametrize("steps", [10, 1000])
@pytest.mark.parametrize("delta", [1e-5, 1e-30, 1e-200])
def test_far_tails_by_tilting(steps: int, delta: float) -> None:
    """At q = 1 the dots must reproduce T4, from above, however small δ is."""
    for mu in (0.05, 2.0):
        change = mu / math.sqrt(steps)
        scale = loss_scale(1.0, change, change)
        loss, _ = loss_distributions(1.0, change, change, 0.04 * scale, 0.01, 1e-5 * delta / steps)
        room = delta - loss.infinite_after(steps)
        tilt, near = least_epsilon(loss, steps, math.log(room))
        value = compose(loss, steps, tilt).epsilon(delta, near)
        exact = float(gdp.epsilon(mu, delta))
        assert exact <= value <= 1.002 * exact
        assert value <= near


def test_a_plain_transform_is_wrong_below_1e_10() -> None:
    """Without tilting the rounding error of the transform swamps a small δ."""
    steps, change = 1000, 1.0 / math.sqrt(1000)
    step = 0.05 * loss_scale(1.0, change, change)
    loss, _ = loss_distributions(1.0, change, change, step, 0.01, 1e-40)
    count = 2**15
    folded = np.bincount(loss.index % count, weights=loss.mass, minlength=count)
    total = fft.irfft(fft.rfft(folded) ** steps, count)
    losses = step * (np.arange(count) - count // 4)
    total = np.roll(total, count // 4)

    def plain(epsilon: float) -> float:
        return float(np.sum(total * np.maximum(-np.expm1(epsilon - losses), 0.0)))

    for delta, right in [(1e-5, True), (1e-20, False)]:
        epsilon = float(gdp.epsilon(1.0, delta))
        tilt, _bound = least_delta(loss, steps, epsilon)
        tilted = compose(loss, steps, tilt).delta(epsilon)
        assert delta <= tilted <= 1.05 * delta
        assert (abs(plain(epsilon) / tilted - 1) < 1e-3) is right


def test_the_error_bound_of_the_transform_holds() -> None:
    """The error added to each weight exceeds what extended precision finds."""
    for steps, change in [(50, 0.2), (5000, 0.02), (100_000, 0.01)]:
        step = 0.05 * loss_scale(0.3, 0.5, change)
        loss, _ = loss_distributions(0.3, 0.5, change, step, 0.01, 1e-20)
        tilt, _near = least_epsilon(loss, steps, math.log(1e-8))
        composed = compose(loss, steps, tilt)
        count = len(composed.weight)
        log_moment = composed.log_scale / steps
        tilted = np.exp(
            np.log(loss.mass.astype(np.longdouble))
            + np.longdouble(tilt) * np.longdouble(step) * loss.index
            - np.longdouble(log_moment)
        )
        folded = np.zeros(count, dtype=np.longdouble)
        np.add.at(folded, loss.index % count, tilted)
        spectrum = fft.rfft(folded)
        modulus = np.maximum(np.abs(spectrum), np.longdouble(1e-300))
        angle = np.arctan2(spectrum.imag, spectrum.real)
        power = np.exp(steps * np.log(modulus)) * np.exp(1j * steps * angle)
        exact = np.roll(fft.irfft(power, count), -(composed.first % count))
        assert np.all(composed.weight >= exact.astype(np.float64))
        assert float(np.max(composed.weight - exact)) < 1e-6 * float(np.max(exact))


def test_mass_beyond_the_window_is_counted() -> None:
    """Losses of many sizes: what leaves the window at the top is in δ at the top."""
    index = np.array([-40, -1, 0, 1, 40])
    loss = LossDistribution(index, np.array([1e-9, 0.3, 0.4, 0.3, 1e-6]), 0.1, 0.0)
    composed = compose(loss, 200, 0.5)
    top = composed.step * (composed.first + len(composed.weight))
    assert composed.delta(0.5 * top) >= directly(loss, 200, 0.5 * top)
    assert composed.delta(top + 0.1) >= directly(loss, 200, top + 0.1)
    assert composed.delta(composed.first * composed.step - 1.0) == 1.0


def test_too_small_a_delta_has_no_epsilon() -> None:
    loss = coarse_pair()
    composed = compose(loss, 3, 1.0)
    assert composed.epsilon(loss.infinite, 1.0) == math.inf


@pytest.mark.parametrize(
    ("index", "mass", "step", "infinite"),
    [
        ([0, 1], [0.5, 0.5], 0.0, 0.0),
        ([0, 1], [0.5, 0.5], math.nan, 0.0),
        ([0, 1], [0.5, 0.5], 0.1, -0.1),
        ([0, 1], [0.5, 0.5], 0.1, math.nan),
        ([0, 1], [0.5, math.nan], 0.1, 0.0),
        ([0, 1], [0.5, -0.5], 0.1, 0.0),
        ([0], [0.5, 0.5], 0.1, 0.0),
    ],
)
def test_wrong_fields(index: list[int], mass: list[float], step: float, infinite: float) -> None:
    with pytest.raises(ConfigurationError):
        LossDistribution(np.array(index), np.array(mass), step, infinite)
