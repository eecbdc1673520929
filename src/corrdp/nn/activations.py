"""Activations, described by what privacy needs to know of them.

For h = σ(a) and a change of a by at most Δ, with a anywhere:

===================  ============================================================
``slope(h)``         σ'(a), written in h
``step(Δ)``          the most h moves: sup |σ(a + Δ) − σ(a)|
``slope_step(Δ)``    the most σ' moves: sup |σ'(a + Δ) − σ'(a)|
``slope_bound``      sup σ' (every σ here is non-decreasing)
``value_bound``      sup |σ|, ``inf`` where there is none
===================  ============================================================

tanh: symmetric steps move it most, by 2·tanh(Δ/2). Its slope moves most between the two points
with mean m, cosh 2m = u, where u solves u² − u·cosh Δ − 2 = 0; for small Δ this is
4Δ/(3√3), the β of THEORY T12. Sigmoid and softplus follow from tanh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.errors import ConfigurationError

__all__ = ["ACTIVATIONS", "Activation", "ActivationName", "activation"]

FloatArray: TypeAlias = NDArray[np.float64]
ActivationName: TypeAlias = Literal["tanh", "sigmoid", "softplus", "relu"]


@dataclass(frozen=True)
class Activation:
    """One activation; the module's table says what each field means."""

    name: ActivationName
    value: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    step: Callable[[FloatArray], FloatArray]
    slope_step: Callable[[FloatArray], FloatArray]
    slope_bound: float
    value_bound: float


def _tanh(a: FloatArray) -> FloatArray:
    """1 − 2/(e^{2a} + 1): the exponential is several times faster than NumPy's tanh."""
    value: FloatArray = a + a
    with np.errstate(over="ignore"):
        np.exp(value, out=value)
    value += 1.0
    np.divide(-2.0, value, out=value)
    value += 1.0
    return value


def _tanh_slope(h: FloatArray) -> FloatArray:
    slope: FloatArray = h * h
    np.subtract(1.0, slope, out=slope)
    return slope


def _tanh_step(delta: FloatArray) -> FloatArray:
    """2·tanh(Δ/2) by one exponential, rounded up."""
    shrunk: FloatArray = np.exp(-delta)
    step: FloatArray = 2.0 * (1.0 - shrunk) / (1.0 + shrunk)
    return np.where(delta > 0, step * (1.0 + 1e-12) + 1e-15, 0.0)


def _tanh_slope_step(delta: FloatArray) -> FloatArray:
    """4·sinh Δ·√(u² − 1)/(u + cosh Δ)², every factor times 2e^{−Δ} against overflow, rounded up."""
    shrunk: FloatArray = np.exp(-delta)
    square = shrunk * shrunk
    c = 1.0 + square
    u = 0.5 * (c + np.sqrt(c * c + 32.0 * square))
    step = 4.0 * (1.0 - square) * np.sqrt(u * u - 4.0 * square) / (u + c) ** 2
    return np.where(delta > 0, np.minimum(1.0, step * (1.0 + 1e-12) + 1e-15), 0.0)


def _sigmoid(a: FloatArray) -> FloatArray:
    value: FloatArray = -a
    with np.errstate(over="ignore"):
        np.exp(value, out=value)
    value += 1.0
    np.reciprocal(value, out=value)
    return value


def _sigmoid_slope(h: FloatArray) -> FloatArray:
    slope: FloatArray = h * (1.0 - h)
    return slope


def _sigmoid_step(delta: FloatArray) -> FloatArray:
    return 0.5 * _tanh_step(0.5 * delta)


def _sigmoid_slope_step(delta: FloatArray) -> FloatArray:
    return 0.25 * _tanh_slope_step(0.5 * delta)


def _softplus(a: FloatArray) -> FloatArray:
    value: FloatArray = np.abs(a)
    np.negative(value, out=value)
    np.exp(value, out=value)
    value += 1.0
    np.log(value, out=value)
    value += np.maximum(a, 0.0)
    return value


def _softplus_slope(h: FloatArray) -> FloatArray:
    slope: FloatArray = -np.expm1(-h)
    return slope


def _identity(delta: FloatArray) -> FloatArray:
    return delta


def _relu(a: FloatArray) -> FloatArray:
    value: FloatArray = np.maximum(a, 0.0)
    return value


def _relu_slope(h: FloatArray) -> FloatArray:
    return (h > 0).astype(np.float64)


def _relu_slope_step(delta: FloatArray) -> FloatArray:
    """The slope jumps at the kink, however small the change."""
    return (delta > 0).astype(np.float64)


ACTIVATIONS: dict[str, Activation] = {
    "tanh": Activation("tanh", _tanh, _tanh_slope, _tanh_step, _tanh_slope_step, 1.0, 1.0),
    "sigmoid": Activation(
        "sigmoid", _sigmoid, _sigmoid_slope, _sigmoid_step, _sigmoid_slope_step, 0.25, 1.0
    ),
    "softplus": Activation(
        "softplus", _softplus, _softplus_slope, _identity, _sigmoid_step, 1.0, float("inf")
    ),
    "relu": Activation("relu", _relu, _relu_slope, _identity, _relu_slope_step, 1.0, float("inf")),
}


def activation(name: str) -> Activation:
    """The activation of that name; an unknown one is refused."""
    if name not in ACTIVATIONS:
        raise ConfigurationError(f"activation={name!r} is unknown; use {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]
