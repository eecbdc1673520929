"""One line per estimator; every contract runs over all of them.

A case holds the estimator's class, a schema whose label it understands, a table of simulated
records, and parameters that keep a fit short.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corrdp.linear_model import CorrDPLogisticRegression, CorrDPRidge
from corrdp.schema import Categorical, Group, Ignored, Label, Numeric, Schema

N = 2000


def table(seed: int, n: int = N) -> dict[str, np.ndarray]:
    """Records with two informative columns, one sensitive, one ignored."""
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(10, 95, n),
        "job": rng.choice(["clerk", "nurse", "smith"], n),
        "sex": rng.choice(["F", "M"], n),
        "town": rng.choice(["north", "south"], n),
        "weight": rng.uniform(0, 1, n),
    }


COLUMNS = {
    "age": Numeric(17, 90, role="insensitive"),
    "job": Categorical(["clerk", "nurse"], other=True, role="insensitive"),
    "sex": Categorical(["F", "M"]),
    "town": Categorical(["north", "south"], role="insensitive"),
    "weight": Ignored(),
}
GROUPS = [Group(("job", "town"))]
DISTANCES = {"age": 0.3, "job+town": 0.5, "y": 0.25}


def classes(X: Mapping[str, np.ndarray]) -> np.ndarray:
    score = (X["age"] - 50) / 20 + (X["job"] == "nurse")
    flipped = X["weight"] < 0.1  # noise in the label keeps the optimum finite
    return np.where((score > 0.3) ^ flipped, "yes", "no")


def amounts(X: Mapping[str, np.ndarray]) -> np.ndarray:
    return 100 * np.clip(X["age"] / 100 + 0.2 * (X["job"] == "nurse"), 0, 1.2)


@dataclass(frozen=True)
class Case:
    """An estimator and what to fit it on."""

    estimator: type
    label: Label
    target: Any
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        return Schema(COLUMNS, self.label, GROUPS)

    def data(self, seed: int = 0, n: int = N) -> tuple[dict[str, np.ndarray], np.ndarray]:
        X = table(seed, n)
        return X, self.target(X)

    def make(self, **parameters: Any) -> Any:
        """A short private fit: ε = 1, given distances, no seed."""
        values = {"schema": self.schema, "distances": DISTANCES, "delta": 1e-6, **self.parameters}
        return self.estimator(**{**values, **parameters})


CLASSES = Label("y", ["no", "yes"], role="insensitive")
AMOUNT = Label("y", low=0, high=100, role="insensitive")
CASES = {
    "logistic": Case(CorrDPLogisticRegression, CLASSES, classes, {"steps": 8}),
    "ridge": Case(CorrDPRidge, AMOUNT, amounts, {"steps": 8, "solver": "gradient"}),
}
