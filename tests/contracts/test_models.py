"""What every fitted model promises: tables, names, secrets, certificates, files."""

from __future__ import annotations

import copy
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import corrdp
from corrdp.errors import CorrDPError, VerificationError
from corrdp.schema import Schema
from tests.contracts.cases import COLUMNS, DISTANCES, Case, Mechanism, N


def as_tables(X: dict[str, np.ndarray]) -> dict[str, Any]:
    """The same records in every kind of table."""
    frame = pd.DataFrame(X)
    backwards = list(X)[::-1]
    used = [name for name in X if name != "weight"]
    return {
        "mapping": X,
        "pandas": frame,
        "pandas reversed": frame[backwards].set_index(frame.index[::-1]),
        "pandas category": frame.astype({"job": "category", "sex": "category"}),
        "pandas arrow": frame.convert_dtypes(dtype_backend="pyarrow"),
        "pandas nullable": frame.convert_dtypes(),
        "polars": pl.DataFrame(X),
        "polars reversed": pl.DataFrame(X).select(backwards),
        "polars enum": pl.DataFrame(X).cast({"sex": pl.Enum(["M", "F"])}),
        "arrow": pa.table(X),
        "arrow dictionary": pa.table({**X, "job": pa.array(X["job"]).dictionary_encode()}),
        "numpy": frame.to_numpy(dtype=object),
        "numpy used": frame[used].to_numpy(dtype=object),
    }


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_kinds_of_tables_give_one_model(case: Case, epsilon: float) -> None:
    X, y = case.data(n=300)
    tables = as_tables(X)
    delta = 1e-3
    models = {
        name: case.make(epsilon=epsilon, delta=delta, random_state=5).fit(one, y)
        for name, one in tables.items()
    }
    first = models["mapping"]
    for name, model in models.items():
        assert np.array_equal(model.theta_, first.theta_), name
        assert np.array_equal(model.predict(tables[name]), first.predict(X)), name


def test_kinds_of_labels_give_one_model(case: Case) -> None:
    X, y = case.data()
    kinds = [list(y), pd.Series(y, index=range(N, 0, -1)), pl.Series(y), pa.chunked_array([y])]
    first = case.make(random_state=5).fit(X, y)
    for kind in kinds:
        assert np.array_equal(case.make(random_state=5).fit(X, kind).theta_, first.theta_)


def test_feature_names(case: Case) -> None:
    X, y = case.data()
    model = case.make().fit(X, y)
    assert model.feature_names_in_.tolist() == ["age", "job", "sex", "town"]
    assert model.n_features_in_ == 4
    names = [
        "age",
        "job=clerk",
        "job=nurse",
        "job=other",
        "sex=F",
        "sex=M",
        "town=north",
        "town=south",
    ]
    assert list(model.encoder_.feature_names_out()[:-1]) == names
    if case.linear:
        assert model.feature_names_out_.tolist() == names
        assert np.size(model.coef_) == len(names)


def test_fit_changes_no_parameter(case: Case) -> None:
    X, y = case.data()
    model = case.make(random_state=np.random.default_rng(0))
    before = dict(model.get_params(deep=False))
    frozen = copy.deepcopy({k: v for k, v in before.items() if k != "random_state"})
    model.fit(X, y)
    after = model.get_params(deep=False)
    assert all(after[name] is before[name] for name in before)
    assert all(after[name] == value for name, value in frozen.items())


def test_the_table_is_left_alone(case: Case) -> None:
    X, y = case.data()
    copies = {name: values.copy() for name, values in X.items()}
    label = y.copy()
    case.make().fit(X, y)
    assert all(np.array_equal(X[name], copies[name]) for name in X)
    assert np.array_equal(y, label)


def test_fresh_noise_every_time(case: Case) -> None:
    X, y = case.data()
    one, other = (case.make().fit(X, y) for _ in range(2))
    assert not np.array_equal(one.theta_, other.theta_)
    assert not one.certificate_.seeded


def test_copies_draw_fresh_noise(case: Case) -> None:
    X, y = case.data()
    model = case.make()
    copies = [model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    thetas = [one.fit(X, y).theta_ for one in copies]
    assert not any(np.array_equal(thetas[0], theta) for theta in thetas[1:])


def test_a_seed_is_marked(case: Case) -> None:
    X, y = case.data()
    models = [case.make(random_state=7).fit(X, y) for _ in range(2)]
    assert np.array_equal(models[0].theta_, models[1].theta_)
    assert models[0].certificate_.seeded
    assert "can be subtracted: this run is not private" in str(models[0].certificate_)


# Secrets


def test_no_record_in_what_people_see(case: Case) -> None:
    X, y = case.data()
    X["age"][:] = 55.4321987
    X["age"][7] = 66.1234567
    model = case.make().fit(X, y)
    shown = [repr(model), str(model), repr(model.certificate_), str(model.certificate_)]
    shown.append(json.dumps(model.certificate_.to_dict()))
    shown += [repr(vars(model)), str(model.__getstate__())]
    for text in shown:
        assert "66.1234" not in text
        assert "55.4321" not in text


def test_no_record_in_a_pickle(case: Case) -> None:
    """A fitted model holds released and public values: its size does not grow with n."""
    small = pickle.dumps(case.make(delta=1e-4).fit(*case.data(n=500)))
    large = pickle.dumps(case.make(delta=1e-4).fit(*case.data(n=5000)))
    assert abs(len(large) - len(small)) < 200


def test_no_seed_beyond_the_parameter(case: Case) -> None:
    """The seed stands in the constructor parameter alone: not in certificates or model files."""
    seed = 987654321
    model = case.make(random_state=seed).fit(*case.data())
    assert str(seed) not in json.dumps(model.certificate_.to_dict())
    assert str(seed) not in str(model.certificate_)
    learned = {key: value for key, value in vars(model).items() if key.endswith("_")}
    assert str(seed).encode() not in pickle.dumps(learned)
    assert "NoiseSource" not in repr(vars(model))


@pytest.mark.parametrize("bad", [np.nan, np.inf, "not a number"])
def test_errors_show_no_record(case: Case, bad: Any) -> None:
    X, y = case.data()
    ages = X["age"].astype(object)
    ages[3] = bad
    with pytest.raises(CorrDPError) as caught:
        case.make().fit({**X, "age": ages}, y)
    text = str(caught.value)
    assert "\n" not in text
    assert not any(f"{value:.4f}"[:6] in text for value in X["age"][:50])


# Certificates


def test_certificate_does_not_depend_on_the_data(case: Case) -> None:
    first = case.make().fit(*case.data(seed=0)).certificate_.claims()
    assert case.make().fit(*case.data(seed=1)).certificate_.claims() == first
    X, y = case.data()
    constant = {name: np.full_like(values, values[0]) for name, values in X.items()}
    assert case.make().fit(constant, y[:1].repeat(N)).certificate_.claims() == first
    assert first["holds"]


def test_claims_keep_their_targets(case: Case) -> None:
    certificate = case.make().fit(*case.data()).certificate_
    assert certificate.joint["sensitive"] <= 1.0
    for name, kind in (("age", "age"), ("job", "job+town"), ("town", "job+town"), ("y", "y")):
        row = certificate.row(name)
        assert row["epsilon_target"] == pytest.approx(1 / DISTANCES[kind])
        assert row["epsilon_holds"] <= row["epsilon_target"]
    assert certificate.row("sex")["epsilon_holds"] <= 1.0
    assert corrdp.verify(certificate.to_dict()).holds


def test_all_sensitive_is_ordinary_privacy(case: Case) -> None:
    """One kind of change: the sensitive columns are the record, and both lose the same."""
    model = case.make(schema=case.schema.all_sensitive(), distances=None).fit(*case.data())
    joint = model.certificate_.joint
    assert joint["sensitive"] == joint["record"] <= 1.0
    assert joint["insensitive"] is None
    assert {row["role"] for row in model.certificate_.columns} == {"sensitive"}


def test_all_sensitive_is_the_best_noise(case: Case) -> None:
    """Nothing is lost against plain DP: no noise is less, among all that the duals of T5 allow.

    One kind of change, and the presence row in sampled runs; with one row alone this is T5's
    formula σ_j² = (a_j/√n_j)Σa_l√n_l/b.
    """
    schema = case.schema.all_sensitive()
    found = Mechanism.of(case.make(schema=schema, distances=None).fit(*case.data()))
    rows = np.vstack(
        [
            found.table[0] ** 2 / found.step_budget[0],
            found.presence**2 / found.presence_budget,
        ]
    )
    assert (rows @ found.sigma[0] ** -2.0).max() <= 1 + 1e-12
    shares = np.linspace(0.0, 1.0, 401) if case.sampled else np.ones(1)
    weights = [np.sqrt(found.dimensions / (t * rows[0] + (1 - t) * rows[1])) for t in shares]
    scaled = [weight / (rows @ weight).max() for weight in weights]
    least = min(float((found.dimensions / weight).sum()) for weight in scaled)
    assert found.variance == pytest.approx(least, rel=2e-3)


def test_insensitive_as_public_equals_zero_distances(case: Case) -> None:
    """Semi: columns that nobody protects, or whose distance is 0, leave S alone."""
    X, y = case.data()
    semi = case.make(schema=case.schema.insensitive_as_public(), distances=None, random_state=2)
    zero = case.make(distances=dict.fromkeys(DISTANCES, 0.0), random_state=2)
    semi.fit(X, y)
    zero.fit(X, y)
    joint = zero.certificate_.joint
    if case.sampled:
        # rows that presence implies move the solver within its tolerance, and bound the record
        one, other = Mechanism.of(semi).variance, Mechanism.of(zero).variance
        assert one == pytest.approx(other, rel=0.05)
        assert semi.certificate_.joint["sensitive"] == pytest.approx(joint["sensitive"], rel=0.02)
        assert math.isfinite(joint["record"])
        return
    assert semi.theta_ == pytest.approx(zero.theta_, rel=1e-9, abs=1e-12)
    assert semi.certificate_.joint["sensitive"] == joint["sensitive"]
    # what is left for the record comes from the rounding of residuals alone
    assert joint["record"] > 100


def test_less_distance_less_noise(case: Case) -> None:
    """Plain DP, d = 1, the given distances and semi need less and less noise."""

    def variance(schema: Schema, distances: Any) -> float:
        # one start for all networks, and the clip of the others where everything is sensitive
        same = {"random_state": 0}
        if "residual_clip" in case.make().get_params():
            same["residual_clip"] = 0.7 if case.label.levels else 0.3
        model = case.make(schema=schema, distances=distances, **same)
        return Mechanism.of(model.fit(*case.data())).variance

    schema = case.schema
    ordered = [
        variance(schema.all_sensitive(), None),
        variance(schema, None),
        variance(schema, DISTANCES),
        variance(schema.insensitive_as_public(), None),
    ]
    assert ordered == sorted(ordered, reverse=True)
    assert ordered[-1] < 0.7 * ordered[0]


# Files


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_save_and_load(case: Case, tmp_path: Path, epsilon: float) -> None:
    X, y = case.data()
    model = case.make(epsilon=epsilon, random_state=11).fit(X, y)
    path = tmp_path / "out" / "model.json"
    model.save(path)
    again = corrdp.load(path)
    assert type(again) is type(model)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.schema == model.schema
    if math.isinf(epsilon):
        assert again.certificate_ is None
    else:
        assert again.certificate_.claims() == model.certificate_.claims()
        assert again.certificate_.ledger.head == model.certificate_.ledger.head
    parameters = {**model.get_params(), "random_state": None, "distances": again.distances}
    listed = {k: list(v) if isinstance(v, tuple) else v for k, v in parameters.items()}
    assert again.get_params() == listed


def test_a_certificate_file_verifies(case: Case, tmp_path: Path) -> None:
    model = case.make().fit(*case.data())
    model.save(tmp_path / "model.json")
    model.certificate_.save(tmp_path / "certificate.json")
    assert corrdp.verify(tmp_path / "certificate.json").holds
    case.make().fit(*case.data()).save(tmp_path / "model.json")
    found = corrdp.verify(tmp_path / "certificate.json")
    assert not found.holds
    assert "swapped" in found.problems[0]


@pytest.mark.parametrize("key", ["coefficients", "scale", "schema", "feature_bits"])
def test_a_changed_model_does_not_load(case: Case, tmp_path: Path, key: str) -> None:
    """Even with its digest recomputed: coefficients, columns and scale are the ledger's."""
    from corrdp.privacy.ledger import digest, encode_array

    path = tmp_path / "model.json"
    model = case.make().fit(*case.data())
    model.save(path)
    body = json.loads(path.read_text())
    del body["digest"]
    if key == "coefficients":
        body[key] = encode_array(-model.theta_)
    elif key == "schema":
        body[key]["order"] = body[key]["order"][::-1]
    elif key == "scale":
        body[key] /= 2
    else:
        body[key] += 1
    path.write_text(json.dumps({**body, "digest": digest(body)}))
    with pytest.raises(VerificationError):
        corrdp.load(path)


def test_pickled_model_predicts_and_keeps_its_account(case: Case) -> None:
    X, y = case.data()
    budget = case.room(1)
    model = case.make(budget=budget).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.certificate_.claims() == model.certificate_.claims()
    assert again.budget.spent == budget.spent
    with pytest.raises(CorrDPError):
        again.fit(X, y)
    assert len(budget.charges) == 1


def test_columns_of_the_case_are_of_every_role() -> None:
    roles = {getattr(column, "role", "ignored") for column in COLUMNS.values()}
    assert {"sensitive", "insensitive", "ignored"} <= roles
