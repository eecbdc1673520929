"""Budgets refuse before drawing, and whatever is wrong is said before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from corrdp import CorrDPRidge, PrivacyBudget
from corrdp.errors import BudgetExceededError, ConfigurationError, DataError, SchemaError
from corrdp.neighbours import neighbour_kinds
from corrdp.noise import NoiseSource
from corrdp.privacy import gdp
from corrdp.privacy.budgets import KindBudget, PrivacyTarget, PureTarget
from corrdp.queries import (
    ContingencyTable,
    Count,
    Covariance,
    Histogram,
    Mean,
    Query,
    SecondMoments,
    Sum,
    Variance,
    release,
)
from corrdp.queries.query import query_from_dict
from corrdp.schema import Categorical, Label, Numeric, Schema
from tests.queries.test_release import table
from tests.queries.tiny import DISTANCES, SCHEMA


def ask(queries: Any = None, **settings: Any) -> Any:
    given: dict[str, Any] = {
        "table": table(),
        "schema": SCHEMA,
        "queries": [Mean("u")] if queries is None else queries,
        "epsilon": 1.0,
        "delta": 1e-6,
        "distances": DISTANCES,
        **settings,
    }
    return release(given.pop("table"), given.pop("schema"), given.pop("queries"), **given)


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Any draw fails the test."""

    def drawn(*_: object) -> None:
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(NoiseSource, "gaussian", drawn)
    monkeypatch.setattr(NoiseSource, "discrete_laplace", drawn)
    yield


# --- budgets -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("composition", ["gdp", "basic"])
def test_overspending_is_refused_before_drawing(composition: Any) -> None:
    budget = PrivacyBudget(0.5, 1e-6, composition=composition)
    with pytest.raises(BudgetExceededError, match="left"):
        ask([Mean("t")], budget=budget, epsilon=1.0)
    with pytest.raises(BudgetExceededError, match="left"):
        ask([Mean("t")], budget=budget, epsilon=1.0, mechanism="laplace", delta=0.0)
    assert budget.charges == ()


def test_pure_releases_enter_gaussian_composition_by_their_mu() -> None:
    budget = PrivacyBudget(1.0, 1e-6)
    for _ in range(2):
        ask([Mean("t")], budget=budget, epsilon=0.1, mechanism="laplace", delta=0.0)
    squared = [charge.mu_squared["<sensitive>"] for charge in budget.charges]
    assert squared == pytest.approx([gdp.mu_of_pure(0.1) ** 2] * 2, rel=1e-9)
    assert budget.spent == pytest.approx(
        gdp.epsilon(math.sqrt(2) * gdp.mu_of_pure(0.1), 1e-6), rel=1e-6
    )


def test_pure_releases_alone_take_a_budget_without_delta() -> None:
    budget = PrivacyBudget(0.5, 0.0, composition="basic")
    ask([Mean("t")], budget=budget, epsilon=0.3, mechanism="laplace", delta=0.0)
    assert budget.spent == pytest.approx(0.3)
    with pytest.raises(BudgetExceededError):
        ask([Mean("t")], budget=budget, epsilon=0.3, mechanism="laplace", delta=0.0)
    with pytest.raises(BudgetExceededError):
        ask([Mean("t")], budget=budget, epsilon=0.1, delta=1e-9)
    with pytest.raises(ConfigurationError):
        PrivacyBudget(0.5, 0.0)


def test_queries_and_models_share_a_budget_kind_by_kind() -> None:
    budget = PrivacyBudget(1.0, 1e-6)
    data = table()
    ask([Mean("u")], budget=budget, epsilon=0.5)
    # u alone was asked for: nothing was taken from the sensitive columns
    assert budget.charges[0].mu_squared["<sensitive>"] == 0.0
    assert budget.charges[0].mu_squared["u"] > 0.0
    features = {name: values for name, values in data.items() if name != "y"}
    model = CorrDPRidge(
        SCHEMA, epsilon=0.8, delta=1e-6, distances=DISTANCES, budget=budget, solver="moments"
    )
    model.fit(features, data["y"])
    assert [charge.name for charge in budget.charges] == ["queries", "fit"]
    with pytest.raises(BudgetExceededError):
        ask([Mean("t")], budget=budget, epsilon=0.8)
    ask([Mean("t")], budget=budget, epsilon=0.3)
    with pytest.raises(ConfigurationError, match="other columns"):
        ask([Mean("u")], budget=budget, epsilon=0.01, distances={})


def test_a_pure_target_is_only_for_exact_noise() -> None:
    assert PureTarget(1.0).delta == 0.0
    with pytest.raises(ConfigurationError, match="delta"):
        PureTarget(1.0, 1e-6)
    with pytest.raises(ConfigurationError, match="delta"):
        PrivacyTarget(1.0, 0.0)
    with pytest.raises(ConfigurationError):
        PureTarget(math.nan)
    with pytest.raises(ConfigurationError, match="delta"):
        CorrDPRidge(SCHEMA, delta=PureTarget(1.0).delta, distances=DISTANCES).fit(
            {k: v for k, v in table().items() if k != "y"}, table()["y"]
        )
    with pytest.raises(ConfigurationError):
        KindBudget(neighbour_kinds(SCHEMA)[0], 1.0, 1.0, -0.1, 1.0)


# --- what is wrong is said before anything is drawn ----------------------------------------------


def with_values(name: str, values: Any) -> dict[str, Any]:
    return {**table(), name: np.asarray(values)}


def first(value: float) -> np.ndarray:
    column = table()["u"].copy()
    column[7] = value
    return column


PUBLIC = Schema({"a": Categorical([0, 1], role="public")}, Label("b", [0, 1], role="public"))
CASES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "epsilon NaN": (lambda: ask(epsilon=math.nan), ConfigurationError, "epsilon"),
    "epsilon inf": (lambda: ask(epsilon=math.inf), ConfigurationError, "epsilon"),
    "epsilon 0": (lambda: ask(epsilon=0.0), ConfigurationError, "epsilon"),
    "epsilon text": (lambda: ask(epsilon="1"), ConfigurationError, "epsilon"),
    "delta NaN": (lambda: ask(delta=math.nan), ConfigurationError, "delta"),
    "delta text": (lambda: ask(delta="0"), ConfigurationError, "delta"),
    "delta large": (lambda: ask(delta=0.1), ConfigurationError, "1/n"),
    "gaussian without delta": (lambda: ask(delta=0.0), ConfigurationError, "delta"),
    "laplace with delta": (lambda: ask(mechanism="laplace"), ConfigurationError, "pure"),
    "mechanism": (lambda: ask(mechanism="cauchy"), ConfigurationError, "mechanism"),
    "calibration": (lambda: ask(calibration="best"), ConfigurationError, "calibration"),
    "value NaN": (lambda: ask(table=with_values("u", first(math.nan))), DataError, "missing"),
    "value inf": (lambda: ask(table=with_values("u", first(math.inf))), DataError, "infinite"),
    "empty": (lambda: ask(table={k: v[:0] for k, v in table().items()}), DataError, "no records"),
    "one record": (lambda: ask(table=table(1)), DataError, "one record"),
    "no column": (lambda: ask(table=with_values("x", first(0.0))), DataError, "not in the schema"),
    "lengths": (lambda: ask(table=with_values("u", [0.5])), DataError, "lengths"),
    "zero-width bounds": (lambda: Numeric(1.0, 1.0), SchemaError, "below"),
    "nothing asked": (lambda: ask([]), ConfigurationError, "empty"),
    "not a query": (lambda: ask(["mean"]), ConfigurationError, "queries"),
    "not a query by name": (lambda: ask({"a": "mean"}), ConfigurationError, "not a query"),
    "asked twice": (lambda: ask([Mean("u"), Mean("u")]), ConfigurationError, "twice"),
    "unknown column": (lambda: ask([Mean("z")]), ConfigurationError, "'z'"),
    "mean of levels": (lambda: ask([Mean("s")]), ConfigurationError, "levels"),
    "unknown level": (lambda: ask([Count({"s": "z"})]), ConfigurationError, "'z'"),
    "no interval": (lambda: ask([Count({"u": 3})]), ConfigurationError, "interval"),
    "NaN interval": (lambda: ask([Count({"u": (math.nan, 1)})]), ConfigurationError, "interval"),
    "empty interval": (lambda: ask([Count({"u": (1, 0)})]), ConfigurationError, "empty"),
    "no condition": (lambda: ask([Count({})]), ConfigurationError, "where"),
    "one axis": (lambda: ContingencyTable(["s"]), ConfigurationError, "2 or more"),
    "axis twice": (lambda: Covariance(["u", "u"]), ConfigurationError, "different"),
    "columns text": (lambda: Covariance("uv"), ConfigurationError, "list"),
    "no name": (lambda: Mean(""), ConfigurationError, "column"),
    "distance NaN": (lambda: ask(distances={"u": math.nan}), ConfigurationError, "distance"),
    "distance of s": (lambda: ask(distances={"s": 0.1}), ConfigurationError, "insensitive"),
    "distances text": (lambda: ask(distances="private"), ConfigurationError, "distances"),
    "tiny epsilon": (lambda: ask(epsilon=1e-300), ConfigurationError, ""),
    "label missing": (
        lambda: ask([Mean("y")], table={k: v for k, v in table().items() if k != "y"}),
        ConfigurationError,
        "label=",
    ),
    "nothing protected": (
        lambda: ask(
            [Histogram("a")],
            schema=Schema(
                {"a": Categorical([0, 1], role="public")}, Label("b", [0, 1], role="public")
            ),
            table={"a": [0, 1]},
            distances={},
        ),
        ConfigurationError,
        "no column is protected",
    ),
}


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("case", CASES)
def test_errors_come_before_noise(case: str) -> None:
    attempt, kind, words = CASES[case]
    with pytest.raises(kind) as caught:
        attempt()
    message = str(caught.value)
    assert words in message
    assert "\n" not in message


# --- queries as values ---------------------------------------------------------------------------

EVERY: list[Query] = [
    Count({"s": ["a", "b"], "u": (0, 1)}),
    Sum("u"),
    Mean("u"),
    Variance("u"),
    Histogram("s"),
    ContingencyTable(["s", "g"]),
    Covariance(["u", "v"]),
    SecondMoments(["s", "u"]),
]


@pytest.mark.parametrize("query", EVERY, ids=lambda query: query.name)
def test_queries_are_frozen_values(query: Query) -> None:
    import pickle

    assert query_from_dict(query.to_dict()) == query
    assert pickle.loads(pickle.dumps(query)) == query
    assert hash(query) == hash(query_from_dict(query.to_dict()))
    with pytest.raises(AttributeError):
        query.column = "other"  # type: ignore[attr-defined]


def test_an_unknown_query_is_refused() -> None:
    for plain in ({"query": "Max", "columns": ["u"]}, {"query": "Mean", "columns": ["u", "v"]}, {}):
        with pytest.raises(ConfigurationError, match="unknown"):
            query_from_dict(plain)
