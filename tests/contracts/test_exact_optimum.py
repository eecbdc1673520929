"""``epsilon=inf`` finds scikit-learn's optimum on the encoded design: objective within 1e-6."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from corrdp import CorrDPLogisticRegression, CorrDPRidge, Schema
from corrdp.datasets import load_adult
from corrdp.records import read_records
from corrdp.schema import Label
from tests.contracts.cases import AMOUNT, CLASSES, COLUMNS, GROUPS, amounts, classes, table

PRECISION = 1e-6


def encoded(model: Any, X: Any) -> np.ndarray:
    """The design without the intercept."""
    design = model.encoder_.transform(read_records(X, model.encoder_.schema))
    unit = np.eye(model.encoder_.dimension)[:-1]
    return np.column_stack([design.scores(row) for row in unit])


def log_loss(weights: np.ndarray, score: np.ndarray, y: np.ndarray) -> float:
    return float((weights * (np.logaddexp(0, score) - y * score)).mean())


def compare_logistic(model: Any, X: Any, y: Any, positive: str) -> tuple[float, float]:
    """Our objective and scikit-learn's."""
    features, target = encoded(model, X), (np.asarray(y) == positive).astype(float)
    weight = model.class_weight or {}
    names = model.encoder_.schema.label.names
    weights = np.where(target == 1, weight.get(names[1], 1.0), weight.get(names[0], 1.0))
    strength = math.inf if model.alpha == 0 else 1 / (len(target) * model.alpha)
    other = LogisticRegression(C=strength, tol=1e-9, max_iter=5000, solver="lbfgs")
    other.fit(features, target, sample_weight=weights)
    found = []
    for coef, intercept in (
        (model.coef_[0], model.intercept_[0]),
        (other.coef_[0], other.intercept_[0]),
    ):
        value = log_loss(weights, features @ coef + intercept, target)
        found.append(value + 0.5 * model.alpha * float(coef @ coef))
    return found[0], found[1]


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 0.1])
@pytest.mark.parametrize("class_weight", [None, {"yes": 3.0, "no": 0.5}])
def test_logistic(alpha: float, class_weight: Any) -> None:
    X = table(0)
    y = classes(X)
    schema = Schema(COLUMNS, CLASSES, GROUPS)
    model = CorrDPLogisticRegression(
        schema, epsilon=math.inf, alpha=alpha, class_weight=class_weight
    )
    ours, theirs = compare_logistic(model.fit(X, y), X, y, "yes")
    assert ours == pytest.approx(theirs, rel=PRECISION)
    worse = model.coef_.copy()
    model.coef_ *= 1.01
    assert compare_logistic(model, X, y, "yes")[0] > theirs * (1 + PRECISION)
    assert not np.array_equal(worse, model.coef_)


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("scale", [None, 2.0])
def test_ridge(alpha: float, scale: float | None) -> None:
    X = table(0)
    y = amounts(X)
    schema = Schema(COLUMNS, AMOUNT, GROUPS)
    model = CorrDPRidge(schema, epsilon=math.inf, alpha=alpha, scale=scale).fit(X, y)
    features, target = encoded(model, X), np.clip(y, 0, 100) / 50 - 1
    # without a penalty scikit-learn's ridge misses the optimum of dependent columns
    other = LinearRegression() if alpha == 0 else Ridge(alpha=len(y) * alpha, solver="svd")
    other.fit(features, target)

    def objective(coef: np.ndarray, intercept: float) -> float:
        error = features @ coef + intercept - target
        return float(0.5 * (error**2).mean() + 0.5 * alpha * coef @ coef)

    ours = objective(model.coef_, model.intercept_)
    assert ours == pytest.approx(objective(other.coef_, other.intercept_), rel=PRECISION)
    assert model.predict(X) == pytest.approx(50 * (other.predict(features) + 1), abs=1e-6)


def test_ridge_without_schema_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.normal(size=60)
    model = CorrDPRidge(epsilon=math.inf, alpha=0.3).fit(X, y)
    other = Ridge(alpha=0.3 * 60).fit(X, y)
    assert model.coef_ == pytest.approx(other.coef_, rel=1e-9)
    assert model.intercept_ == pytest.approx(other.intercept_, rel=1e-9)


def test_logistic_without_schema_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + rng.normal(size=200) > 0
    model = CorrDPLogisticRegression(epsilon=math.inf, alpha=0.01).fit(X, y)
    other = LogisticRegression(C=1 / (200 * 0.01), tol=1e-9).fit(X, y)
    assert model.coef_ == pytest.approx(other.coef_, rel=1e-4)
    assert model.predict_proba(X) == pytest.approx(other.predict_proba(X), abs=1e-5)


def test_adult(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORRDP_DATA_HOME", str(data_dir))
    data = load_adult(frame="pandas")
    X, y = data.X.iloc[::20], data.y[::20]
    model = CorrDPLogisticRegression(data.schema, epsilon=math.inf, alpha=1e-4).fit(X, y)
    ours, theirs = compare_logistic(model, X, y, ">50K")
    assert ours == pytest.approx(theirs, rel=PRECISION)
    hours = Schema(
        {n: c for n, c in data.schema.columns.items() if n != "hours-per-week"},
        Label("hours-per-week", low=1, high=99),
    )
    table_, target = X.drop(columns="hours-per-week"), X["hours-per-week"].astype(float)
    ridge = CorrDPRidge(hours, epsilon=math.inf, alpha=1e-4).fit(table_, target)
    features = encoded(ridge, table_)
    other = Ridge(alpha=len(y) * 1e-4, solver="cholesky").fit(features, (target - 1) / 49 - 1)
    assert ridge.predict(table_) == pytest.approx(49 * (other.predict(features) + 1) + 1, abs=1e-5)
