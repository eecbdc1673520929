"""Accuracy of CorrDP against its baselines on the public data sets, as a markdown table.

    python benchmarks/comparison.py adult credit medical --seeds 20 --epsilons .05 .1 .5 1

Per row: mean over seeds with a 95 % interval. "DP at joint ε" is ordinary DP at the loss that the
CorrDP certificate guarantees for the whole record, so both columns promise the same for it.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from corrdp import Distances, Schema
from corrdp.datasets import load_adult, load_credit, load_medical_cost
from corrdp.encoding import Encoder
from corrdp.erm.exact import least_squares, minimise
from corrdp.erm.fit import PlanRequest, Recipe, TrainingData, default_scale, fit_linear
from corrdp.erm.losses import Logistic, Squared
from corrdp.noise import noise_source
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.declaration import Declaration
from corrdp.records import read_label, read_records
from corrdp.verification import certify


@dataclass(frozen=True)
class Task:
    """A data set split once, with schema and distances."""

    name: str
    schema: Schema
    distances: dict[str, float]
    train: TrainingData
    test: TrainingData
    delta: float

    @property
    def classes(self) -> bool:
        return not self.schema.label.is_numeric


def scaled(schema: Schema, label: np.ndarray) -> np.ndarray:
    if not schema.label.is_numeric:
        return label.astype(float)
    low, high = schema.label.bounds
    return 2.0 * (label - low) / (high - low) - 1.0


def data(schema: Schema, X: Any, y: Any) -> TrainingData:
    records = read_records(X, schema)
    label = read_label(y, schema.label, records.size)
    return TrainingData(records, label, scaled(schema, label))


def load(name: str, label_role: str) -> Task:
    """Adult has its own test file; the others are split 80:20 by a fixed seed."""
    if name == "adult":
        found = load_adult(label_role=label_role)
        distances = dict(found.distances or {})
        train, test = (found.X, found.y), (found.X_test, found.y_test)
    else:
        found = load_credit(label_role=label_role) if name == "credit" else None
        if found is None:
            found = load_medical_cost(sensitive=("sex", "bmi"), label_role=label_role)
        distances = dict(found.distances or {})
        Xa, Xb, ya, yb = train_test_split(found.X, found.y, test_size=0.2, random_state=0)
        train, test = (Xa, ya), (Xb, yb)
    values = {k: getattr(v, "value", v) for k, v in distances.items()}
    if not values:
        values = GIVEN[name, label_role]
    schema = found.schema
    delta = 1e-6
    return Task(name, schema, values, data(schema, *train), data(schema, *test), delta)


CREDIT = ("LIMIT_BAL", "EDUCATION", "PAY_0", *(f"PAY_{i}" for i in range(2, 7)))
CREDIT += (*(f"BILL_AMT{i}" for i in range(1, 7)), *(f"PAY_AMT{i}" for i in range(1, 7)))
ADULT = {
    "age": 0.3, "capital-gain": 0.25, "capital-loss": 0.15, "education-num": 0.5,
    "hours-per-week": 0.5,
}  # fmt: skip
GIVEN: dict[tuple[str, str], dict[str, float]] = {
    ("adult", "sensitive"): ADULT,
    ("credit", "sensitive"): dict.fromkeys(CREDIT, 0.3),
    ("medical", "insensitive"): {
        "age": 0.3, "children": 0.3, "smoker": 0.3, "region": 0.3, "charges": 0.3,
    },
    ("medical", "sensitive"): {"age": 0.3, "children": 0.3, "smoker": 0.3, "region": 0.3},
}  # fmt: skip


def metrics(task: Task, score: np.ndarray) -> dict[str, float]:
    y = task.test.scaled
    if not task.classes:
        error = float(((score - y) ** 2).mean() / y.var())
        return {"R²": 1.0 - error}
    loss = float(Logistic().value(score, y).mean())
    accuracy = float(((score > 0) == (y > 0.5)).mean())
    return {"log-loss": loss, "accuracy": accuracy, "AUC": float(roc_auc_score(y, score))}


def recipe(task: Task, **plan: Any) -> Recipe:
    loss = Logistic() if task.classes else Squared(0.3, 2.0)
    return Recipe(loss, None, PlanRequest(**plan))


def private(
    task: Task,
    schema: Schema,
    distances: dict[str, float],
    epsilon: float,
    seed: int,
    record_epsilon: float | None = None,
    **plan: Any,
) -> tuple[dict[str, float], Any]:
    """One private run: test metrics and its certificate."""
    target = PrivacyTarget(epsilon, task.delta, record_epsilon=record_epsilon)
    declaration = Declaration(
        schema, target, task.train.records.size, Distances.given(distances), True
    )
    theta, done, ledger = fit_linear(
        declaration, recipe(task, **plan), task.train, noise_source(seed)
    )
    score = done.encoder.transform(task.test.records).scores(theta)
    return metrics(task, score), (lambda: certify(ledger))


def nonprivate(task: Task) -> dict[str, float]:
    encoder = Encoder(task.schema, default_scale(len(task.schema.used)))
    design = encoder.transform(task.train.records)
    if task.classes:
        theta, _ = minimise(
            design.scores, design.weighted_sum, task.train.scaled, np.ones(design.size),
            Logistic(), 0.0, encoder.dimension,
        )  # fmt: skip
    else:
        features = np.column_stack([design.scores(unit) for unit in np.eye(encoder.dimension)])
        theta = least_squares(features[:, :-1], task.train.scaled, 0.0)
        theta[-1] /= encoder.scale
    return metrics(task, encoder.transform(task.test.records).scores(theta))


Run = Callable[[int], dict[str, float]]


def interval(values: Sequence[float]) -> str:
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return f"{mean:.4f} ±{1.96 * spread / math.sqrt(len(values)):.4f}"


def rows(task: Task, epsilon: float, seeds: int) -> tuple[list[list[str]], str]:
    """Table rows of one data set, label role and ε; and the paired comparison."""
    schema = task.schema
    _, certificate = private(task, schema, task.distances, epsilon, 0)
    joint = certificate().joint["record"]
    variants: dict[str, Run] = {
        "DP": lambda s: private(task, schema.all_sensitive(), {}, epsilon, s)[0],
        "d = 1 per column": lambda s: private(task, schema, {}, epsilon, s)[0],
        "CorrDP": lambda s: private(task, schema, task.distances, epsilon, s)[0],
        "semi": lambda s: private(task, schema.insensitive_as_public(), {}, epsilon, s)[0],
        "DP at joint ε": lambda s: private(task, schema.all_sensitive(), {}, joint, s)[0],
    }
    losses = {
        "DP": epsilon,
        "d = 1 per column": private(task, schema, {}, epsilon, 0)[1]().joint["record"],
        "CorrDP": joint,
        "semi": math.inf,
        "DP at joint ε": joint,
    }
    table, first = [], {}
    exact = nonprivate(task)
    table.append(["non-private", "∞", *(f"{value:.4f}" for value in exact.values())])
    for name, run in variants.items():
        found = [run(seed) for seed in range(seeds)]
        key = next(iter(exact))
        first[name] = np.array([one[key] for one in found])
        loss = "∞" if math.isinf(losses[name]) else f"{losses[name]:.3g}"
        table.append([name, loss, *(interval([one[k] for one in found]) for k in exact)])
    gap = first["CorrDP"] - first["DP"]
    return table, f"CorrDP − DP, paired: {interval(gap.tolist())} ({next(iter(exact))})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=["adult", "credit", "medical"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.05, 0.1, 0.5, 1.0])
    parser.add_argument("--roles", nargs="+", default=["insensitive", "sensitive"])
    options = parser.parse_args()
    for name in options.names:
        for role in options.roles:
            task = load(name, role)
            for epsilon in options.epsilons:
                started = time.perf_counter()
                table, paired = rows(task, epsilon, options.seeds)
                keys = list(nonprivate(task))
                print(f"\n### {name}, label {role}, ε = {epsilon:g}, δ = 1e-6\n")
                print("| | record ε | " + " | ".join(keys) + " |")
                print("|" + "---|" * (2 + len(keys)))
                for row in table:
                    print("| " + " | ".join(row) + " |")
                print(f"\n{paired}; {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
