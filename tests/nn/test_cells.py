"""Sums over cells are the sums over records, and one record moves two counts alone."""

from __future__ import annotations

import numpy as np
import pytest

from corrdp import CorrDPMLPClassifier
from corrdp.encoding import Encoder
from corrdp.erm.losses import Logistic
from corrdp.nn.cells import collect, inputs_of
from corrdp.nn.gradients import Inputs, gradient_sum
from corrdp.nn.network import Network, NetworkLattice
from corrdp.nn.query import GradientQuery
from corrdp.nn.residual import Softmax
from corrdp.records import read_label, read_records
from corrdp.schema import Categorical, Label, Numeric, Schema

N = 2000
BITS = NetworkLattice(6, 7, 7)


def schema_of(classes=2, resolution="binned"):
    columns = {
        "age": Numeric(
            0, 100, role="insensitive", bins=(0, 0, 30, 60.5, 100), resolution=resolution
        ),
        "job": Categorical(["a", "b"], other=True, role="insensitive"),
        "sex": Categorical(["F", "M"]),
    }
    return Schema(columns, Label("y", list(range(classes)), role="insensitive"))


def table(n=N, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = {
        "age": np.where(rng.random(n) < 0.2, 0.0, rng.integers(0, 101, n)),
        "job": rng.choice(["a", "b", "c", "d"], n),
        "sex": rng.choice(["F", "M"], n),
    }
    return X, rng.integers(0, classes, n)


def prepared(hidden, output_weights, classes, n=N, seed=0):
    schema = schema_of(classes)
    X, y = table(n, classes, seed)
    encoder = Encoder(schema, 0.75, BITS.feature_bits)
    outputs = 1 if classes == 2 else classes
    network = Network(encoder, hidden=hidden, outputs=outputs, output_weights=output_weights)
    query = GradientQuery(network, Logistic() if classes == 2 else Softmax(), lattice=BITS)
    records = read_records(X, schema)
    label = read_label(y, schema.label, records.size).astype(float)
    return query, records, label


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("output_weights", ["fixed", "trained"])
@pytest.mark.parametrize("hidden", [(5,), (4, 3)])
def test_sum_over_cells_equals_sum_over_records(hidden, output_weights, classes):
    query, records, label = prepared(hidden, output_weights, classes)
    network = query.network
    inputs, classes_of_cells = inputs_of(network.encoder, network, records, label)
    assert inputs.size == N
    assert len(classes_of_cells) == 4 * 3 * 2 * classes
    parameters = np.random.default_rng(1).normal(0, 0.5, network.dimension)
    by_record = Inputs.of(network.encoder.transform(records), network)
    expected = gradient_sum(query, parameters, by_record, label)
    assert np.abs(expected).max() > 1
    np.testing.assert_array_equal(
        gradient_sum(query, parameters, inputs, classes_of_cells), expected
    )


def test_a_record_moves_two_counts_and_no_place():
    schema = schema_of()
    X, y = table()
    first = collect(schema, read_records(X, schema), y.astype(float))
    X["age"][7], X["job"][7] = 99.0, "b"
    other = collect(schema, read_records(X, schema), y.astype(float))
    for name in schema.used:
        np.testing.assert_array_equal(first.records.columns[name], other.records.columns[name])
    moved = other.counts - first.counts
    assert sorted(moved[moved != 0]) == [-1.0, 1.0]
    assert first.counts.sum() == other.counts.sum() == N


@pytest.mark.parametrize(
    ("schema", "n"),
    [(schema_of(resolution="exact"), N), (schema_of(), 95), (schema_of(), 2 * 48 - 1)],
    ids=["exact numbers", "few records", "one record too few"],
)
def test_records_stay_records_where_cells_are_not_fewer(schema, n):
    X, y = table(n)
    records = read_records(X, schema)
    found = collect(schema, records, y.astype(float))
    assert found.counts is None
    assert found.records is records


def test_whether_cells_are_used_depends_on_public_numbers_alone():
    constant = {"age": np.full(96, 5.0), "job": np.full(96, "a"), "sex": np.full(96, "F")}
    schema = schema_of()
    found = collect(schema, read_records(constant, schema), np.zeros(96))
    assert found.records.size == 48
    assert found.counts.max() == 96


def test_a_dropped_count_is_caught():
    query, records, label = prepared((5,), "fixed", 2)
    network = query.network
    inputs, classes = inputs_of(network.encoder, network, records, label)
    unweighted = Inputs(inputs.size, tuple(
        type(chunk)(chunk.place, chunk.hidden, chunk.skip) for chunk in inputs.chunks
    ))  # fmt: skip
    parameters = np.full(network.dimension, 0.1)
    right = gradient_sum(query, parameters, inputs, classes)
    assert np.abs(gradient_sum(query, parameters, unweighted, classes) - right).max() > 1


def test_estimators_give_the_same_model_either_way(monkeypatch):
    X, y = table()
    options = {"epsilon": 1.0, "distances": {"age": 0.2, "job": 0.2, "y": 0.3}, "steps": 5}
    by_cells = CorrDPMLPClassifier(schema_of(), random_state=3, **options).fit(X, y)
    monkeypatch.setattr("corrdp.nn.cells.FEWER", N)
    by_records = CorrDPMLPClassifier(schema_of(), random_state=3, **options).fit(X, y)
    np.testing.assert_array_equal(by_cells.theta_, by_records.theta_)
    assert by_cells.certificate_.to_dict() == by_records.certificate_.to_dict()
