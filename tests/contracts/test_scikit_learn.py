"""scikit-learn's own checks, and its tools on finite ε."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from corrdp import PrivacyBudget
from corrdp.errors import BudgetExceededError
from tests.contracts.cases import CASES, Case

# without privacy batches are full: one check per class
PLAIN = [case.without_privacy() for case in CASES.values() if not case.sampled]


@parametrize_with_checks(PLAIN)
def test_estimator_checks(estimator: Any, check: Any) -> None:
    assert check(estimator) is None


def sums(budget: PrivacyBudget) -> list[tuple[float, float]]:
    """ε and squared μ of S in every charge; a sampled run has no μ."""
    return [(one.epsilon, one.mu_squared.get("<sensitive>", 0.0)) for one in budget.charges]


def test_clone_keeps_parameters_and_account(case: Case) -> None:
    budget = case.account(3.0)
    model = case.make(budget=budget, random_state=3)
    X, y = case.data()
    model.fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "theta_")
    copy.fit(X, y)
    assert len(budget.charges) == 2
    assert budget.spent > 1.0


def test_not_fitted(case: Case) -> None:
    with pytest.raises(NotFittedError):
        case.make().predict(case.data()[0])


def test_pipeline(case: Case) -> None:
    X, y = case.data()
    frame = pd.DataFrame(X)
    alone = case.make(random_state=1).fit(frame, y)
    steps = [("same", FunctionTransformer()), ("model", case.make(random_state=1))]
    piped = Pipeline(steps).fit(frame, y)
    assert np.array_equal(piped.predict(frame), alone.predict(frame))
    assert piped[-1].certificate_.claims() == alone.certificate_.claims()


def test_grid_search_charges_every_fold(case: Case) -> None:
    """Two candidates, two folds and the refit are five releases."""
    budget = case.account(20.0)
    X, y = case.data()
    search = GridSearchCV(case.make(budget=budget), {"steps": np.array([4, 6])}, cv=2)
    search.fit(pd.DataFrame(X), y)
    assert len(budget.charges) == 5
    assert len(set(sums(budget))) == 1
    assert search.best_estimator_.budget is budget


def test_grid_search_stops_at_the_budget(case: Case) -> None:
    """ε = 1 has room for one fit at ε = 1: the second fold is refused and nothing more is spent."""
    budget = case.account(1.0)
    X, y = case.data()
    search = GridSearchCV(case.make(budget=budget), {"steps": [4]}, cv=2, error_score="raise")
    with pytest.raises(BudgetExceededError, match=r"fit needs (squared mu|epsilon)"):
        search.fit(pd.DataFrame(X), y)
    assert len(budget.charges) == 1
    assert budget.spent <= 1.0


def fit_one(model: Any, X: Any, y: Any) -> float:
    """In another process: fit, and say what was certified."""
    return float(model.fit(X, y).certificate_.joint["sensitive"])


def test_workers_share_one_account(case: Case, tmp_path: Path) -> None:
    """Copies in worker processes charge the same file; together they cannot overspend."""
    budget = case.room(2, tmp_path / "account.json")
    X, y = case.data()
    jobs = [joblib.delayed(attempt)(case.make(budget=budget), X, y) for _ in range(4)]
    outcomes = joblib.Parallel(n_jobs=2, backend="loky")(jobs)
    fitted = [one for one in outcomes if one != "refused"]
    assert len(budget.charges) == len(fitted) == 2
    assert outcomes.count("refused") == 2
    assert budget.spent <= budget.epsilon


def attempt(model: Any, X: Any, y: Any) -> float | str:
    """A fit, or the word that it was refused."""
    try:
        return fit_one(model, X, y)
    except BudgetExceededError:
        return "refused"


def test_parallel_search_charges_one_account(case: Case) -> None:
    budget = case.account(20.0)
    X, y = case.data()
    scores = cross_val_score(case.make(budget=budget), pd.DataFrame(X), y, cv=2, n_jobs=2)
    assert len(scores) == len(budget.charges) == 2


def test_refused_before_anything_is_drawn(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    from corrdp import _sampling

    drawn: list[int] = []
    original = _sampling.operating_system_words
    monkeypatch.setattr(
        _sampling, "operating_system_words", lambda count: drawn.append(count) or original(count)
    )
    budget = case.account(0.5)
    model = case.make(budget=budget, epsilon=1.0)
    X, y = case.data()
    with pytest.raises(BudgetExceededError):
        model.fit(X, y)
    assert drawn == []
    assert budget.charges == ()
    assert not hasattr(model, "theta_")
    model.set_params(epsilon=0.4).fit(X, y)
    assert drawn != []


def test_training_without_privacy_cannot_bypass_a_budget(case: Case) -> None:
    budget = case.account(5.0)
    X, y = case.data()
    with pytest.raises(BudgetExceededError, match="epsilon=inf"):
        case.make(budget=budget, epsilon=math.inf).fit(X, y)
    plain = case.estimator(epsilon=math.inf, budget=budget)
    with pytest.raises(BudgetExceededError, match="epsilon=inf"):
        plain.fit(np.zeros((4, 1)), [0, 1, 0, 1])
    assert budget.charges == ()


def test_tags(case: Case) -> None:
    assert is_classifier(case.make()) == (case.label.levels is not None)
