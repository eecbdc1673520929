"""The estimators: privacy, files, resumed runs, bad input; tests/contracts has the rest."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sklearn.base import clone

import corrdp
from corrdp import CorrDPMLPClassifier, CorrDPMLPRegressor
from corrdp.errors import (
    BudgetExceededError,
    ConfigurationError,
    DataError,
    UtilityWarning,
    VerificationError,
)
from corrdp.nn.checkpoint import Checkpoint
from corrdp.privacy.budget import PrivacyBudget
from corrdp.schema import Categorical, Label, Numeric, Schema


def schema_of(**label):
    return Schema(
        {
            "x": Numeric(0, 1, role="insensitive"),
            "c": Categorical(["a", "b", "d"], role="insensitive"),
            "s": Categorical(["m", "w"]),
        },
        Label("y", **{"role": "insensitive", **label}),
    )


def table(n=4000, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = {
        "x": rng.uniform(size=n),
        "c": rng.choice(["a", "b", "d"], n),
        "s": rng.choice(["m", "w"], n),
    }
    score = X["x"] + 0.3 * (X["c"] == "a") + 0.1 * rng.normal(size=n)
    if classes == 0:
        return X, np.abs(score - 0.5)
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


def fitted(**options):
    X, y = table()
    given = {"epsilon": 1.0, "distances": {"x": 0.2, "y": 0.2}, "steps": 30}
    options = {**given, "hidden_layer_sizes": (8,), **options}
    return CorrDPMLPClassifier(schema_of(levels=[0, 1]), random_state=0, **options).fit(X, y)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"output_weights": "trained"},
        {"sensitive_path": "hidden"},
        {"hidden_layer_sizes": (6, 5), "activation": "softplus", "record_epsilon": 6.0},
        {"activation": "relu", "adjacency": "record", "records_per_person": 2},
        {"distances": "private", "epsilon": 3.0},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::corrdp.errors.UtilityWarning")
def test_a_private_fit_is_certified_and_verifies(options):
    model = fitted(**options)
    X, y = table()
    assert model.score(X, y) > 0.7
    certificate = model.certificate_
    assert certificate.holds
    for row in certificate.columns:
        assert row["epsilon_holds"] is None or row["epsilon_holds"] <= row["epsilon_target"]
    assert certificate.joint["sensitive"] <= model.epsilon
    assert math.isfinite(certificate.joint["record"])
    assert corrdp.verify(certificate.to_dict()).holds


def test_more_classes_and_numbers():
    X, y = table(classes=3)
    options = {"hidden_layer_sizes": (8,), "steps": 80, "random_state": 0}
    schema = schema_of(levels=[0, 1, 2])
    model = CorrDPMLPClassifier(schema, epsilon=4.0, distances={"y": 0.2}, **options).fit(X, y)
    assert model.predict_proba(X).shape == (4000, 3)
    assert model.score(X, y) > 0.6
    X, y = table(classes=0)
    schema = schema_of(low=0, high=1)
    plain = CorrDPMLPRegressor(schema, epsilon=math.inf, **options).fit(X, y)
    assert plain.score(X, y) > 0.5
    private = CorrDPMLPRegressor(schema, epsilon=8.0, distances={}, **options).fit(X, y)
    assert private.score(X, y) > 0.3
    assert private.certificate_.holds


def test_without_privacy_it_learns_what_a_line_cannot():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, size=(1500, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = CorrDPMLPClassifier(
        epsilon=math.inf, initial_scale=1.0, hidden_layer_sizes=16, steps=150, random_state=0
    ).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.certificate_ is None


def test_a_ledger_that_was_changed_does_not_verify():
    plain = fitted().certificate_.to_dict()
    for step in (0, 29):
        broken = json.loads(json.dumps(plain))
        entry = broken["ledger"][-1]
        sigma = corrdp.privacy.ledger.decode_array(entry["sigma"]).copy()
        sigma[step] *= 0.9
        entry["sigma"] = corrdp.privacy.ledger.encode_array(sigma)
        assert not corrdp.verify(broken).holds
        rebuilt = corrdp.privacy.ledger.Ledger()
        for one in broken["ledger"]:
            body = {k: v for k, v in one.items() if k not in ("type", "previous", "digest")}
            rebuilt = rebuilt.append(one["type"], body)
        result = corrdp.verification.certify(rebuilt)
        assert not result.holds
        assert any("exceed their budget" in problem for problem in result.problems)


def test_save_and_load(tmp_path):
    model = fitted(hidden_layer_sizes=(5,), class_weight={0: 1.0, 1: 2.0})
    X, _ = table()
    model.save(tmp_path / "model.json")
    again = corrdp.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.certificate_.claims() == model.certificate_.claims()


class StopError(Exception):
    """Interrupts a fit."""


def stop_at(last):
    def progress(step, steps):
        if step == last:
            raise StopError

    return progress


@pytest.mark.filterwarnings("ignore::corrdp.errors.UtilityWarning")
@pytest.mark.parametrize("distances", [{"x": 0.2, "y": 0.2}, "private"], ids=str)
def test_a_resumed_run_is_the_run_and_is_certified_as_one(tmp_path, distances):
    path = tmp_path / "state.json"
    whole = fitted(distances=distances, epsilon=3.0)
    budget = PrivacyBudget(3.0, 1e-6, composition="basic")
    with pytest.raises(StopError):
        fitted(
            distances=distances,
            epsilon=3.0,
            checkpoint=path,
            progress=stop_at(13),
            budget=budget,
        )
    assert path.is_file()
    resumed = fitted(distances=distances, epsilon=3.0, checkpoint=path, budget=budget)
    assert not path.exists()
    np.testing.assert_array_equal(resumed.theta_, whole.theta_)
    assert resumed.certificate_.holds
    assert resumed.certificate_.claims() == whole.certificate_.claims()
    assert len(resumed.certificate_.ledger.of_type("network-release")) == 1
    with pytest.raises(BudgetExceededError):
        fitted(distances=distances, epsilon=3.0, budget=budget)


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "state.json"
    with pytest.raises(StopError):
        fitted(checkpoint=path, progress=stop_at(3))
    for change in ({"epsilon": 2.0}, {"steps": 31}, {"hidden_layer_sizes": (3,)}):
        with pytest.raises(ConfigurationError, match="another run"):
            fitted(checkpoint=path, **change)
    path.write_text(path.read_text().replace('"seeded":', '"seeded" :').replace("0", "1", 5))
    with pytest.raises(VerificationError):
        fitted(checkpoint=path)
    with pytest.raises(VerificationError, match="not a checkpoint"):
        path.write_text("[]")
        Checkpoint(path).read()


def test_seeds_clones_and_numpy_input():
    first, second = fitted(), fitted()
    np.testing.assert_array_equal(first.theta_, second.theta_)
    assert first.certificate_.seeded
    copy = clone(first).set_params(random_state=None, progress=None)
    X, y = table()
    fresh = copy.fit(X, y)
    assert not fresh.certificate_.seeded
    assert not np.array_equal(fresh.theta_, first.theta_)
    assert fresh.n_features_in_ == 3


BAD = [
    ({"normalization": "batch"}, "mixes records"),
    ({"hidden_layer_sizes": ()}, "hidden"),
    ({"hidden_layer_sizes": "16"}, "hidden_layer_sizes"),
    ({"activation": "gelu"}, "activation"),
    ({"sensitive_path": "none"}, "sensitive_path"),
    ({"output_weights": "free"}, "output_weights"),
    ({"output_norm": math.nan}, "output_norm"),
    ({"residual_clip": math.nan}, "residual_clip"),
    ({"clips": (1.0, 2.0)}, "clips"),
    ({"residual_clip": "none"}, "residual_clip"),
    ({"residual_clip": True}, "residual_clip"),
    ({"clips": math.nan}, "clips"),
    ({"clips": "none"}, "clips"),
    ({"clips": [None]}, "clips"),
    ({"clips": []}, "clips"),
    ({"clips": True}, "clips"),
    ({"clips": 1e300}, "add up exactly"),
    ({"output_norm": 1e-300}, "output_norm"),
    ({"output_norm": 1e300}, "output_norm"),
    ({"initial_scale": 1e300}, "initial_scale"),
    ({"checkpoint": 5}, "checkpoint"),
    ({"checkpoint": ""}, "checkpoint"),
    ({"checkpoint": "."}, "is a folder"),
    ({"checkpoint": f"{__file__}/state.json"}, "cannot write"),
    ({"steps": 0}, "steps"),
    ({"steps": 2.5}, "steps"),
    ({"learning_rate": math.nan}, "learning_rate"),
    ({"scale": -1.0}, "scale"),
    ({"epsilon": math.nan}, "epsilon"),
    ({"epsilon": 0.0}, "epsilon"),
    ({"delta": 0.5}, "delta"),
    ({"distances": "magic"}, "distances"),
    ({"records_per_person": 0}, "records_per_person"),
    ({"class_weight": "balanced"}, "class_weight"),
    ({"class_weight": {0: -1.0}}, "class_weight"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=str)
def test_bad_options_are_refused_before_anything_is_spent(options, message):
    budget = PrivacyBudget(5.0, 1e-5)
    with pytest.raises(ConfigurationError, match=message):
        fitted(**{"budget": budget, **options})
    assert budget.spent == 0.0


@pytest.mark.parametrize("steps", [0, -1, 2.5, True, "many"])
def test_steps_without_privacy_are_checked_too(steps):
    with pytest.raises(ConfigurationError, match="steps"):
        fitted(epsilon=math.inf, steps=steps)


@pytest.mark.parametrize("clip", [None, 0.0, math.nan, math.inf, "none", True])
def test_a_residual_clip_of_a_regression_is_a_number(clip):
    X, y = table(n=50, classes=0)
    model = CorrDPMLPRegressor(schema_of(low=0, high=1), distances=None, residual_clip=clip)
    with pytest.raises(ConfigurationError, match="residual_clip"):
        model.fit(X, y)


def test_too_few_records_are_warned_of():
    X, y = table(200)
    model = CorrDPMLPClassifier(schema_of(levels=[0, 1]), epsilon=0.1, distances={}, steps=2)
    with pytest.warns(UtilityWarning, match="too small for this epsilon"):
        model.fit(X, y)


def test_bad_tables_are_refused():
    X, y = table()
    model = CorrDPMLPClassifier(schema_of(levels=[0, 1]), distances={})
    with pytest.raises(DataError):
        model.fit({**X, "x": np.full(4000, math.nan)}, y)
    with pytest.raises(DataError):
        model.fit(X, np.full(4000, 7))
    with pytest.raises(ConfigurationError, match="is a number"):
        CorrDPMLPClassifier(schema_of(low=0, high=1), distances={}).fit(X, y)
    with pytest.raises(ConfigurationError, match="regression needs"):
        CorrDPMLPRegressor(schema_of(levels=[0, 1]), distances={}).fit(X, y)
    with pytest.raises(ConfigurationError, match="schema"):
        CorrDPMLPClassifier().fit(np.zeros((4, 2)), [0, 1, 0, 1])
    with pytest.raises(TypeError, match="dropout"):
        CorrDPMLPClassifier(dropout=0.5)


@pytest.mark.parametrize("sizes", [3, (4, 3)])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_vanishing_signals_train_without_warnings(sizes, activation):
    """Units that are dead or saturated send no signal at all; nothing overflows."""
    X, y = table(n=5)
    model = CorrDPMLPClassifier(
        schema_of(levels=[0, 1]),
        epsilon=math.inf,
        hidden_layer_sizes=sizes,
        activation=activation,
        output_weights="trained",
        scale=1000.0,
        steps=3,
    )
    assert np.isfinite(model.fit(X, y).predict_proba(X)).all()
