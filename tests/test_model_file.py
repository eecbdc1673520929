"""Model files: JSON, whole, and tied to the ledger that they carry."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corrdp
from corrdp.errors import ConfigurationError, VerificationError
from corrdp.linear_model import CorrDPLogisticRegression
from corrdp.model_file import model_problems
from corrdp.privacy.ledger import digest
from tests.contracts.cases import CASES

CASE = CASES["logistic"]


@pytest.fixture(scope="module")
def model() -> Any:
    return CASE.make(class_weight={"yes": np.float64(2), "no": 1}, epsilon_cap=5.0).fit(
        *CASE.data()
    )


@pytest.fixture
def path(model: Any, tmp_path: Path) -> Path:
    model.save(tmp_path / "model.json")
    return tmp_path / "model.json"


def changed(path: Path, **parts: Any) -> Path:
    """The file with parts changed and its digest recomputed, as an attacker would."""
    body = {**json.loads(path.read_text()), **parts}
    del body["digest"]
    path.write_text(json.dumps({**body, "digest": digest(body)}))
    return path


def test_parameters_come_back(model: Any, path: Path) -> None:
    again = corrdp.load(path)
    assert again.class_weight == {"yes": 2.0, "no": 1}
    assert (again.epsilon, again.delta, again.epsilon_cap) == (1.0, 1e-6, 5.0)
    assert again.n_iter_ == model.n_iter_
    assert np.array_equal(again.classes_, model.classes_)
    assert again.predict_proba(CASE.data()[0]) == pytest.approx(model.predict_proba(CASE.data()[0]))


def test_processes_are_not_saved(path: Path) -> None:
    parameters = json.loads(path.read_text())["parameters"]
    assert not {"schema", "distances", "budget", "progress", "random_state"} & set(parameters)


def test_infinite_epsilon(tmp_path: Path) -> None:
    plain = CASE.make(epsilon=math.inf).fit(*CASE.data())
    plain.save(tmp_path / "m.json")
    again = corrdp.load(str(tmp_path / "m.json"))
    assert again.epsilon == math.inf
    assert again.certificate_ is None


def test_class_weights_keyed_by_numpy_integers(tmp_path: Path) -> None:
    from corrdp.schema import Label, Numeric, Schema

    schema = Schema({"x": Numeric(0, 1)}, Label("y", [0, 1]))
    weights = {np.int64(1): np.float32(2)}
    fitted = CorrDPLogisticRegression(
        schema, distances=None, delta=1e-4, steps=2, class_weight=weights
    ).fit({"x": np.linspace(0, 1, 500)}, np.arange(500) % 2)
    fitted.save(tmp_path / "m.json")
    assert corrdp.load(tmp_path / "m.json").class_weight == {1: 2.0}


def test_nothing_to_save(tmp_path: Path) -> None:
    plain = CorrDPLogisticRegression(epsilon=math.inf).fit(np.arange(6.0)[:, None], [0, 1] * 3)
    for one in (plain, CASE.make()):
        with pytest.raises(ConfigurationError, match="nothing to save"):
            one.save(tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '"x"', "{}", '{"digest": "0"}'])
def test_not_a_model(tmp_path: Path, text: str) -> None:
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(VerificationError, match=r"m\.json"):
        corrdp.load(path)


def test_missing_and_binary_file(tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match="cannot be read as a model"):
        corrdp.load(tmp_path / "absent.json")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    with pytest.raises(VerificationError, match="cannot be read as a model"):
        corrdp.load(tmp_path / "b.json")


def test_any_edit_is_noticed(path: Path) -> None:
    path.write_text(path.read_text().replace('"steps": 8', '"steps": 9'))
    with pytest.raises(VerificationError, match="changed after it was written"):
        corrdp.load(path)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"estimator": "os.system"}, "estimator 'os.system' is unknown"),
        ({"estimator": None}, "estimator None is unknown"),
        ({"parameters": {"no_such": 1}}, "the model is damaged"),
        ({"coefficients": {"shape": [2], "float64": "AAAA"}}, "damaged"),
        ({"schema": {}}, "the model is damaged"),
        ({"scale": -1}, "the model is damaged"),
        ({"certificate": {"ledger": []}}, "the model is damaged"),
        ({"certificate": {}}, "the model is damaged"),
    ],
)
def test_a_forged_part_does_not_load(path: Path, parts: dict[str, Any], message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        corrdp.load(changed(path, **parts))


def test_swapped_classes_do_not_load(path: Path) -> None:
    """The same coefficients with the classes exchanged would predict the opposite."""
    schema = json.loads(path.read_text())["schema"]
    schema["label"]["levels"] = schema["label"]["levels"][::-1]
    with pytest.raises(VerificationError, match="schema is not the certificate's"):
        corrdp.load(changed(path, schema=schema))


def test_sorted_keys_are_the_same_model(model: Any, path: Path) -> None:
    """JSON tools may sort keys; the order of the columns does not hang on it."""
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    again = corrdp.load(path)
    assert again.feature_names_out_.tolist() == model.feature_names_out_.tolist()
    X = CASE.data()[0]
    assert np.array_equal(again.decision_function(X), model.decision_function(X))


def test_problems_between_model_and_certificate(model: Any, path: Path) -> None:
    assert model_problems(path, model.certificate_) == []
    other = CASE.make().fit(*CASE.data()).certificate_
    found = model_problems(path, other)
    assert any("swapped" in problem for problem in found)
    assert any("another run" in problem for problem in found)
    changed(path, certificate=None)
    assert model_problems(path, model.certificate_) == ["model.json was trained without privacy"]
    path.write_text("{")
    assert "damaged" in model_problems(path, model.certificate_)[0]
