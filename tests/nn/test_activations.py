"""Activations: values, slopes, and how far both move."""

from __future__ import annotations

import numpy as np
import pytest

from corrdp.errors import ConfigurationError
from corrdp.nn.activations import ACTIVATIONS, activation

POINTS = np.concatenate([np.linspace(-12, 12, 4801), [-800.0, 800.0]])


def slope_at(shape, a):
    return shape.slope(shape.value(a))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values_and_slopes(name):
    shape = activation(name)
    exact = {
        "tanh": np.tanh(POINTS),
        "sigmoid": 0.5 + 0.5 * np.tanh(0.5 * POINTS),
        "softplus": np.logaddexp(0.0, POINTS),
        "relu": np.maximum(POINTS, 0.0),
    }[name]
    assert np.abs(shape.value(POINTS) - exact).max() < 1e-13
    away = np.abs(POINTS) > 1e-3
    small = 1e-6
    numeric = (shape.value(POINTS + small) - shape.value(POINTS - small)) / (2 * small)
    assert np.abs(slope_at(shape, POINTS) - numeric)[away].max() < 1e-7
    assert slope_at(shape, POINTS).max() <= shape.slope_bound + 2e-12
    assert np.abs(shape.value(POINTS)).max() <= shape.value_bound


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.1, 0.7, 1.3, 3.0, 9.0, 40.0])
def test_steps_are_attained_and_never_exceeded(name, delta):
    shape = activation(name)
    start = np.sort(
        np.concatenate([np.linspace(-45, 45, 60001), np.linspace(-3, 1, 20001), -POINTS])
    )
    values = np.abs(shape.value(start + delta) - shape.value(start)).max()
    slopes = np.abs(slope_at(shape, start + delta) - slope_at(shape, start)).max()
    bound = shape.step(np.array([delta]))[0], shape.slope_step(np.array([delta]))[0]
    assert values <= bound[0] + 1e-12
    assert slopes <= bound[1] + 1e-12
    assert values >= 0.999 * bound[0]
    assert slopes >= 0.998 * bound[1]


def test_known_slope_of_the_slope():
    """β of tanh is 4/(3√3); no change moves nothing."""
    tanh = activation("tanh")
    assert tanh.slope_step(np.array([1e-6]))[0] == pytest.approx(4e-6 / (3 * 3**0.5), rel=1e-6)
    for shape in ACTIVATIONS.values():
        assert shape.step(np.zeros(2)).tolist() == [0.0, 0.0]
        assert shape.slope_step(np.zeros(2)).tolist() == [0.0, 0.0]
        assert shape.slope_step(np.array([np.inf]))[0] <= shape.slope_bound + 2e-12


def test_an_unknown_activation_is_refused():
    with pytest.raises(ConfigurationError, match="gelu"):
        activation("gelu")
