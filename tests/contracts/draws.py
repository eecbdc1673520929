"""Random schemas and options of estimators, and the kinds of change written anew (THEORY T1)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from corrdp import (
    Categorical,
    CorrDPLogisticRegression,
    CorrDPMLPClassifier,
    CorrDPMLPRegressor,
    CorrDPRidge,
    Group,
    Ignored,
    Label,
    Numeric,
    PrivacyBudget,
    Schema,
)
from corrdp.distance import EstimateSettings

ROLES = ("sensitive", "insensitive", "public")
ESTIMATORS: dict[str, Any] = {
    "logistic": CorrDPLogisticRegression,
    "ridge": CorrDPRidge,
    "classes": CorrDPMLPClassifier,
    "network": CorrDPMLPRegressor,
}
OWN: dict[str, dict[str, list[Any]]] = {
    "logistic": {
        "solver": ["sgd"],
        "radius": [1e-3, 1e3],
        "class_weight": [{0: 0.01, 1: 100.0}],
        "alpha": [5.0],
    },
    "ridge": {
        "solver": ["sgd", "moments", "gradient"],
        "radius": [1e-3, 1e3],
        "residual_clip": [0.01, 5.0],
    },
    "classes": {
        "activation": ["relu", "softplus"],
        "output_weights": ["trained"],
        "sensitive_path": ["hidden"],
        "class_weight": [{0: 0.01, 1: 100.0}],
        "solver": ["sgd"],
    },
    "network": {
        "activation": ["sigmoid"],
        "output_weights": ["trained"],
        "clips": [0.1, 5.0],
        "solver": ["sgd"],
    },
}


@dataclass(frozen=True)
class Drawn:
    """One combination of schema, table size and parameters."""

    name: str
    schema: Schema
    n: int
    parameters: dict[str, Any]

    def data(self, seed: int) -> tuple[dict[str, Any], Any]:
        """Records with values out of bounds, unlisted levels and gaps where they are declared."""
        rng = np.random.default_rng(seed)
        X: dict[str, Any] = {}
        for name, column in self.schema.columns.items():
            gaps = rng.random(self.n) < 0.1
            if isinstance(column, Numeric):
                values = rng.uniform(column.low, 1.1 * column.high, self.n)
                X[name] = np.where(gaps, np.nan, values) if column.missing is not None else values
            elif isinstance(column, Categorical):
                X[name] = rng.choice(np.array(column.levels, dtype=object), self.n)
                X[name][gaps & column.other] = "unlisted"
                X[name][gaps & (column.missing is not None)] = None
            else:
                X[name] = np.arange(self.n)
        if self.schema.label.is_numeric:
            return X, rng.uniform(-2, 2, self.n)
        return X, np.arange(self.n) % 2

    def fit(self, seed: int, **changed: Any) -> Any:
        model = ESTIMATORS[self.name](self.schema, **{**self.parameters, **changed})
        return model.fit(*self.data(seed))


def draw_schema(pick: random.Random, name: str) -> Schema:
    def role() -> Any:
        return pick.choice(ROLES)

    columns: dict[str, Any] = {
        "a": Numeric(0, pick.choice([1, 1e-9, 1e12]), role=role()),
        "b": Categorical(["u", "v", "w"], role=role(), other=pick.random() < 0.4),
        "c": Numeric(-1, 1, role=role(), missing=pick.choice([None, 0.0])),
        "d": Categorical([0, 1], role=role(), missing=pick.choice([None, 0])),
    }
    for gone in pick.sample("acd", pick.choice([0, 0, 0, 2])):
        columns[gone] = Ignored()
    used = [column for column, kind in columns.items() if not isinstance(kind, Ignored)]
    groups = []
    if len(used) == 4 and pick.random() < 0.2:
        values = [("u", 0), ("v", 1), ("w", 1)]
        groups = [Group(("b", "d"), values=values, otherwise=("u", 0))]
    elif len(used) > 1 and pick.random() < 0.4:
        groups = [Group(pick.sample(used, 2))]
    if name in ("logistic", "classes"):
        return Schema(columns, Label("y", [0, 1], role=role()), groups)
    return Schema(columns, Label("y", low=-1, high=1, role=role()), groups)


def draw_distances(pick: random.Random, schema: Schema) -> dict[str, float]:
    kinds = [kind.name for kind in insensitive_kinds(schema)]
    return {name: pick.choice([0.0, 0.02, 0.1, 0.5, 1.0]) for name in kinds if pick.random() < 0.8}


def draw_limits(pick: random.Random, epsilon: float) -> Iterator[tuple[str, Any]]:
    choices: dict[str, list[Any]] = {
        "adjacency": ["record"],
        "epsilon_cap": [epsilon, 20 * epsilon],
        "record_epsilon": [0.7 * epsilon, 3 * epsilon],
        "insensitive_epsilon": [epsilon, 2 * epsilon],
        "records_per_person": [2, 50],
        "scale": [0.1, 100.0],
    }
    for name, values in choices.items():
        if pick.random() < 0.3:
            yield name, pick.choice(values)


def draw(seed: int) -> Drawn:
    pick = random.Random(seed)
    name = pick.choice(list(ESTIMATORS))
    schema, n = draw_schema(pick, name), pick.choice([2, 50, 300])
    epsilon = pick.choice([1e-4, 0.3, 1.0, 1.0, 5.0, 1e4])
    distances = pick.choice(
        [None, "private", "published", EstimateSettings(form="split"), *"ddddd"]
    )
    parameters = {
        "epsilon": epsilon,
        "delta": pick.choice([1e-6, 1e-30, 1 / n]),
        "distances": draw_distances(pick, schema) if distances == "d" else distances,
        "steps": pick.choice([1, 3]),
        **dict(draw_limits(pick, epsilon)),
    }
    if name in ("classes", "network"):
        parameters["hidden_layer_sizes"] = pick.choice([2, (3, 2)])
    for option, values in OWN[name].items():
        if pick.random() < 0.3:
            parameters[option] = pick.choice(values)
    if parameters.get("solver") == "moments":
        del parameters["steps"]
    if pick.random() < 0.15:
        parameters["calibration"] = "published"
    if pick.random() < 0.15:
        parameters["budget"] = PrivacyBudget(2 * epsilon, parameters["delta"])
    return Drawn(name, schema, n, parameters)


def draw_linear(seed: int) -> Drawn:
    """A full-batch linear fit with given distances and a loss within the sampler's reach."""
    pick = random.Random(seed)
    name = pick.choice(["logistic", "ridge"])
    schema, epsilon = draw_schema(pick, name), pick.choice([0.05, 1.0, 5.0])
    parameters = {
        "epsilon": epsilon,
        "delta": pick.choice([1e-6, 1e-20]),
        "steps": pick.choice([1, 2]),
        **dict(draw_limits(pick, epsilon)),
        "distances": draw_distances(pick, schema),
        "radius": pick.choice([1e-3, 1.0, 1e3]),
        "learning_rate": pick.choice([1e-3, 10.0]),
        "solver": "gradient",
    }
    if name == "logistic" and pick.random() < 0.4:
        parameters["class_weight"] = {0: 0.01, 1: 100.0}
    if name == "ridge" and pick.random() < 0.6:
        parameters["residual_clip"] = pick.choice([0.01, 2.0, 50.0])
    return Drawn(name, schema, pick.choice([2, 300]), parameters)


@dataclass(frozen=True)
class Kind:
    """What may change at once and the loss that is allowed for it."""

    name: str
    columns: frozenset[str]
    label: bool
    epsilon: float = math.inf


def role_of(schema: Schema, name: str) -> str:
    group = next((g for g in schema.declared_groups if name in g.columns), None)
    names = (name,) if group is None else group.columns
    roles = {schema.used[one].role for one in names}
    return roles.pop() if len(roles) == 1 else "sensitive"


def insensitive_kinds(schema: Schema) -> list[Kind]:
    names = [name for name in schema.used if role_of(schema, name) == "insensitive"]
    kinds: list[Kind] = []
    for name in names:
        group = next((g for g in schema.declared_groups if name in g.columns), None)
        columns = (name,) if group is None else tuple(group.columns)
        if not any(name in kind.columns for kind in kinds):
            kinds.append(Kind("+".join(columns), frozenset(columns), False))
    if schema.label.role == "insensitive":
        kinds.append(Kind(schema.label.name, frozenset(), True))
    return kinds
