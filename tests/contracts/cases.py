"""One line per estimator; every contract runs over all of them.

A case holds the estimator's class, a schema whose label it understands, a table of simulated
records, and parameters that keep a fit short.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from corrdp import PrivacyBudget
from corrdp.erm.account import read_setup as read_linear
from corrdp.linear_base import LinearModel
from corrdp.linear_model import CorrDPLogisticRegression, CorrDPRidge
from corrdp.nn.account import decode_single
from corrdp.nn.account import read_setup as read_network
from corrdp.nn.estimators import CorrDPMLPClassifier, CorrDPMLPRegressor
from corrdp.privacy.estimate import declaration_of
from corrdp.privacy.ledger import decode_array
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


DELTA = 1e-6


@dataclass(frozen=True)
class Case:
    """An estimator and what to fit it on.

    Where a contract cannot be the same for all, it asks one of these:

    * ``linear``: has ``coef_``, named by ``feature_names_out_``, a ball of its own (``radius``) and
      a penalty, and is exact without privacy;
    * ``sampled``: Poisson-sampled steps have no μ to add up, so that a shared budget adds by basic
      composition, and presence bounds what any change can do, so that nothing is unlimited.
    """

    estimator: type
    label: Label
    target: Any
    parameters: Mapping[str, Any] = field(default_factory=dict)
    plain: Mapping[str, Any] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        return Schema(COLUMNS, self.label, GROUPS)

    @property
    def linear(self) -> bool:
        return issubclass(self.estimator, LinearModel)

    @property
    def sampled(self) -> bool:
        return self.parameters.get("solver") == "sgd"

    def data(self, seed: int = 0, n: int = N) -> tuple[dict[str, np.ndarray], np.ndarray]:
        X = table(seed, n)
        return X, self.target(X)

    def make(self, **parameters: Any) -> Any:
        """A short private fit: ε = 1, given distances, no seed."""
        values = {"schema": self.schema, "distances": DISTANCES, "delta": DELTA, **self.parameters}
        return self.estimator(**{**values, **parameters})

    def without_privacy(self) -> Any:
        """The estimator as scikit-learn's own checks meet it."""
        return self.estimator(epsilon=math.inf, **self.plain)

    def account(self, epsilon: float, path: Path | None = None) -> PrivacyBudget:
        """A shared budget of this ε, with room in δ for a few fits."""
        if self.sampled:
            return PrivacyBudget(epsilon, 10 * DELTA, composition="basic", path=path)
        return PrivacyBudget(epsilon, DELTA, path=path)

    def room(self, fits: int, path: Path | None = None) -> PrivacyBudget:
        """A shared budget for so many fits (1 or 2) at ε = 1 and no more."""
        together = {1: 1.0, 2: 1.6}[fits]
        return self.account(float(fits) if self.sampled else together, path)


@dataclass(frozen=True)
class Mechanism:
    """What a certificate's ledger says of a training run, in the same words for all.

    Attributes
    ----------
    table : array of shape (kinds, blocks)
        Bounds at the first iterate.
    presence : array of shape (blocks,)
    dimensions : array of shape (blocks,)
    step_budget : array of shape (kinds,)
        What a step may use of every kind.
    presence_budget : float
        What a contribution may use; ``inf`` in full batches.
    sigma : array of shape (steps, blocks)
    """

    table: np.ndarray
    presence: np.ndarray
    dimensions: np.ndarray
    step_budget: np.ndarray
    presence_budget: float
    sigma: np.ndarray

    @classmethod
    def of(cls, model: Any) -> Mechanism:
        ledger = model.certificate_.ledger
        declaration = declaration_of(ledger)
        if ledger.of_type("linear-budget"):
            setup: Any = read_linear(ledger.one("linear-budget"))
            released, decode = ledger.one("linear-release"), decode_array
            bounds: Any = setup.table(declaration)
            dimensions = bounds.encoder.dimensions
        else:
            setup = read_network(ledger.one("network-budget"))
            released, decode = ledger.one("network-release"), decode_single
            bounds = setup.table(declaration)
            dimensions = bounds.query.network.dimensions
        budget = np.array([one.mu_squared for one in declaration.budgets()]) / setup.plan.steps
        present = math.inf
        if setup.sampling is not None:
            budget, present = np.array(setup.sampling.change), setup.sampling.presence**2
        start = decode(released["iterates"])[0]
        sigma = decode_array(released["sigma"])
        return cls(bounds(start), bounds.presence, dimensions, budget, present, sigma)

    @property
    def variance(self) -> float:
        """Noise of the first step, over all parameters."""
        return float(self.dimensions @ self.sigma[0] ** 2)


CLASSES = Label("y", ["no", "yes"], role="insensitive")
AMOUNT = Label("y", low=0, high=100, role="insensitive")
SHORT = {"steps": 4, "hidden_layer_sizes": (3,)}
BATCHES = {**SHORT, "solver": "sgd", "sample_rate": 0.25}
PLAIN = {"steps": 80, "hidden_layer_sizes": (16,)}
CASES = {
    "logistic": Case(CorrDPLogisticRegression, CLASSES, classes, {"steps": 8}),
    "ridge": Case(CorrDPRidge, AMOUNT, amounts, {"steps": 8, "solver": "gradient"}),
    "mlp-classes": Case(CorrDPMLPClassifier, CLASSES, classes, SHORT, PLAIN),
    "mlp-number": Case(CorrDPMLPRegressor, AMOUNT, amounts, SHORT, PLAIN),
    "mlp-classes-sampled": Case(CorrDPMLPClassifier, CLASSES, classes, BATCHES, PLAIN),
    "mlp-number-sampled": Case(CorrDPMLPRegressor, AMOUNT, amounts, BATCHES, PLAIN),
}
