"""Gradient sums against a loop over records that follows the definition literally."""

from __future__ import annotations

import math

import numpy as np
import pytest

from corrdp.errors import ConfigurationError
from corrdp.nn.gradients import Inputs, gradient_sum, scores
from corrdp.nn.network import Network, NetworkLattice
from corrdp.nn.query import GradientQuery
from corrdp.records import Records

from .tiny import build, grid, random_parameters


def encoded(query, columns, records):
    """Dense rows φ of every record, intercept last."""
    design = query.network.encoder.transform(Records(columns, records))
    rows = np.zeros((records, query.network.encoder.dimension))
    rows[:, query.network.encoder.numeric_index] = design.numeric
    rows[:, query.network.encoder.one_hot_index] = design.one_hot.toarray()
    rows[:, -1] = query.network.encoder.scale
    return design, rows


def sigma(name, a):
    if name == "tanh":
        return np.tanh(a), 1 - np.tanh(a) ** 2
    if name == "relu":
        return np.maximum(a, 0), (a > 0).astype(float)
    logistic = 1 / (1 + np.exp(-a))
    return (
        (logistic, logistic * (1 - logistic))
        if name == "sigmoid"
        else (
            np.log1p(np.exp(a)),
            logistic,
        )
    )


def toward_zero(x, bits):
    return x if bits is None else np.trunc(x * 2.0**bits) / 2.0**bits


def nearest(x, bits):
    return x if bits is None else np.rint(x * 2.0**bits) / 2.0**bits


def one_record(query, parameters, phi, y):
    """Contribution of one record, block by block, by the book."""
    net, lattice = query.network, query.lattice
    bits = (
        (None,) * 3
        if lattice is None
        else (
            lattice.residual_bits,
            lattice.signal_bits,
            lattice.feature_bits,
        )
    )
    hidden_in, skip_in = (
        np.concatenate([phi[c.start : c.start + c.size] for c in columns])
        for columns in (net.hidden_columns, net.skip_columns)
    )
    layers = [net.first_layer(parameters), *net.deeper_layers(parameters)]
    values, slopes = [], []
    for number, weights in enumerate(layers):
        a = hidden_in @ weights if number == 0 else np.append(values[-1], 1.0) @ weights
        value, slope = sigma(net.activation, a)
        values.append(value)
        slopes.append(slope)
    out = net.output_layer(parameters)
    t = values[-1] @ out + skip_in @ net.skip_layer(parameters)
    r = query.loss.residual(t if net.outputs == 1 else t[None], np.array([y]))
    r = np.atleast_1d(np.squeeze(r)) * (query.class_weights[int(y)] if query.class_weights else 1)
    V = slopes[-1][:, None] * out
    parts = {}
    if net.depth == 1:
        V = toward_zero(V, bits[1])
        norm = np.linalg.norm(V @ r)
        scaled = nearest(r * min(1.0, query.clips[0] / max(norm, 1e-300)), bits[0])
        parts["hidden"] = np.outer(hidden_in, V @ scaled)
    for number in range(net.depth - 1, -1, -1):
        if net.depth == 1:
            break
        below = np.append(toward_zero(values[number - 1], bits[2]), 1.0) if number else hidden_in
        size = np.linalg.norm(V) * (np.linalg.norm(below) if number else 1.0)
        clipped = toward_zero(V * min(1.0, query.clips[number] / max(size, 1e-300)), bits[1])
        parts[number or "hidden"] = np.outer(below, clipped @ nearest(r, bits[0]))
        if number:
            V = slopes[number - 1][:, None] * (layers[number][:-1] @ V)
    flat = [parts["hidden"].ravel(), *(parts[n].ravel() for n in range(1, net.depth))]
    if net.output_weights == "trained":
        last = values[-1] * min(1.0, query.clips[-1] / max(np.linalg.norm(values[-1]), 1e-300))
        flat.append(np.outer(toward_zero(last, bits[2]), nearest(r, bits[0])).ravel())
    flat.append(np.outer(skip_in, nearest(r, bits[0])).ravel())
    return np.concatenate(flat)


CASES = [
    {"hidden": (5,)},
    {"hidden": (5,), "activation": "relu", "output_weights": "trained"},
    {"hidden": (4,), "activation": "softplus", "sensitive_path": "hidden", "clips": (0.4,)},
    {"hidden": (5,), "classes": 3, "clips": (0.7, 1.0), "output_weights": "trained"},
    {"hidden": (4, 3), "activation": "sigmoid", "clips": (0.2, 0.3)},
    {"hidden": (4, 3, 3), "classes": 3, "output_weights": "trained"},
    {"hidden": (3, 4), "classes": 0, "clips": (0.5, 0.5), "activation": "relu"},
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("bits", [None, (6, 7, 5)], ids=str)
def test_sums_equal_a_loop_over_records(case, bits):
    classes = case.get("classes", 2)
    weights = None if classes == 0 else tuple(np.linspace(0.5, 1.7, classes))
    query = build(bits=bits, class_weights=weights, **case)
    rng = np.random.default_rng(5)
    n = 41
    columns = {
        "x": rng.uniform(size=n),
        "s": rng.uniform(size=n),
        "c": rng.integers(0, 3, n),
        "t": rng.integers(0, 2, n),
    }
    label = rng.uniform(-1, 1, n) if classes == 0 else rng.integers(0, classes, n).astype(float)
    design, rows = encoded(query, columns, n)
    parameters = random_parameters(query.network, rng)
    inputs = Inputs.of(design, query.network, chunk=16)
    expected = sum(
        one_record(query, parameters, phi, y) for phi, y in zip(rows, label, strict=True)
    )
    got = gradient_sum(query, parameters, inputs, label)
    assert np.abs(expected).max() > 0.1
    assert np.abs(got - expected).max() < 1e-6
    other_chunks = gradient_sum(query, parameters, Inputs.of(design, query.network), label)
    if bits is None:
        np.testing.assert_allclose(other_chunks, got, atol=1e-9)
    else:
        cells = got / query.lattice.spacing
        assert (cells == np.rint(cells)).all()
        assert (other_chunks == got).all()


@pytest.mark.parametrize("case", [CASES[1], CASES[3], CASES[5]], ids=str)
def test_without_clips_it_is_the_gradient_of_the_loss(case):
    """Finite differences of the loss itself."""
    case = {k: v for k, v in case.items() if k != "clips"}
    depth = len(case["hidden"]) + (case.get("output_weights") == "trained")
    query = build(clips=(1e6,) * depth, **case)
    points = grid(query.network)
    parameters = random_parameters(query.network, np.random.default_rng(8)) * 0.3
    outputs = query.network.outputs

    def total(theta):
        t = scores(query.network, theta, points.inputs)
        return query.loss.value(t if outputs > 1 else t[:, 0], points.label).sum()

    step = 1e-6
    numeric = np.array(
        [
            (total(parameters + step * e) - total(parameters - step * e)) / (2 * step)
            for e in np.eye(len(parameters))
        ]
    )
    got = gradient_sum(query, parameters, points.inputs, points.label)
    assert np.abs(got - numeric).max() < 1e-5


def test_no_record_adds_nothing():
    query = build(hidden=(3,))
    nothing = gradient_sum(query, np.zeros(query.network.dimension), Inputs(0, ()), np.zeros(0))
    assert not nothing.any()


def test_fixed_output_weights_are_balanced_and_of_the_declared_norm():
    query = build(hidden=(16,), classes=5)
    output = query.network.fixed_output
    np.testing.assert_allclose(np.linalg.norm(output, axis=0), 3.0)
    np.testing.assert_allclose(output.T @ output, 9.0 * np.eye(5), atol=1e-12)


def test_bad_networks_and_lattices_are_refused():
    encoder = build(hidden=(3,)).network.encoder
    for change in (
        {"hidden": ()},
        {"hidden": (0,)},
        {"hidden": (2.0,)},
        {"activation": "swish"},
        {"outputs": 0},
        {"sensitive_path": "both"},
        {"output_weights": "free"},
        {"output_norm": math.nan},
        {"initial_scale": -1.0},
    ):
        with pytest.raises(ConfigurationError, match=next(iter(change))):
            Network(encoder, **change)
    with pytest.raises(ConfigurationError, match="signal_bits"):
        NetworkLattice(signal_bits=40)
    with pytest.raises(ConfigurationError, match="rounds to None bits"):
        GradientQuery(Network(encoder), build(hidden=(3,)).loss, lattice=NetworkLattice())
    with pytest.raises(ConfigurationError, match="clips"):
        build(hidden=(3,), clips=(math.nan,))
    with pytest.raises(ConfigurationError, match="Softmax"):
        GradientQuery(Network(encoder, outputs=3), build(hidden=(3,)).loss)
    query = build(hidden=(3,), bits=(16, 16, 16))
    with pytest.raises(ConfigurationError, match="add up exactly"):
        query.check_exact_sum(10_000)
    build(hidden=(3,), bits=(7, 7, 7)).check_exact_sum(10_000)
    with pytest.raises(ConfigurationError, match="finite numbers"):
        query.network.check_parameters(np.full(query.network.dimension, math.nan))
