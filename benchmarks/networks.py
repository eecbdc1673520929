"""Networks under CorrDP against their baselines on the public data sets, as markdown tables.

    python benchmarks/networks.py adult sepsis-sex sepsis-age credit --epsilons .02 .1 .5 --seeds 5

Per row: mean over seeds with a 95 % interval (Student's t) on the test set, and the loss that the
certificate guarantees for the sensitive columns and for the whole record. Distances are given for
Adult and credit; those of sepsis are plug-in values of the file itself, which is public here and
would be a release elsewhere. Balanced accuracy cuts at the training set's share of the positive
class.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from corrdp import CorrDPLogisticRegression, CorrDPMLPClassifier, Schema
from corrdp.datasets import load_adult, load_credit, load_sepsis
from corrdp.distance import estimate_distances
from corrdp.errors import CorrDPWarning
from corrdp.schema import Numeric, canonical_level

LEAST_ROWS = 500


@dataclass(frozen=True)
class Task:
    """A data set split once, with schema and distances."""

    schema: Schema
    distances: dict[str, float]
    train: tuple[Any, np.ndarray]
    test: tuple[Any, np.ndarray]


def load(name: str) -> Task:
    if name == "adult":
        found = load_adult()
        distances = {k: getattr(v, "value", v) for k, v in (found.distances or {}).items()}
        return Task(found.schema, distances, (found.X, found.y), (found.X_test, found.y_test))
    if name == "credit":
        found = load_credit()
        distances = {k: getattr(v, "value", v) for k, v in (found.distances or {}).items()}
        Xa, Xb, ya, yb = train_test_split(found.X, found.y, test_size=0.2, random_state=0)
        return Task(found.schema, distances, (Xa, ya), (Xb, yb))
    column = "age_years" if name == "sepsis-age" else "sex_0male_1female"
    found = load_sepsis(sensitive=(column,))
    schema = pooled(found.schema, np.asarray(found.X["age_years"]))
    measured = estimate_distances(
        schema, found.X, found.y, source="published", method="plug-in", resolution="assume-smooth"
    )
    distances = {key: entry.value for key, entry in measured.items()}
    Xa, Xb, ya, yb = train_test_split(found.X, found.y, test_size=0.2, random_state=0)
    return Task(schema, distances, (Xa, ya), (Xb, yb))


def pooled(schema: Schema, age: np.ndarray) -> Schema:
    """Ages in years, those with few rows pooled along the order of age; episodes one by one."""
    edges, rows = [0.0], 0
    for year in range(100):
        rows += int((age == year).sum())
        if rows >= LEAST_ROWS and (age > year).sum() >= LEAST_ROWS:
            edges.append(year + 0.5)
            rows = 0
    column = schema.columns["age_years"]
    assert isinstance(column, Numeric)
    episode = schema.columns["episode_number"]
    assert isinstance(episode, Numeric)
    columns = {
        **schema.columns,
        "age_years": replace(column, bins=(*edges, 100.0), resolution="binned"),
        "episode_number": replace(episode, resolution="binned"),
    }
    return Schema(columns, schema.label, schema.groups)


def measure(task: Task, model: Any) -> dict[str, float]:
    positive = task.schema.label.names[1]
    truth = np.array([canonical_level(v) == positive for v in np.asarray(task.test[1]).tolist()])
    share = np.mean([canonical_level(v) == positive for v in np.asarray(task.train[1]).tolist()])
    likely = model.predict_proba(task.test[0])[:, 1]
    return {
        "log-loss": float(log_loss(truth, likely)),
        "AUC": float(roc_auc_score(truth, likely)),
        "balanced accuracy": float(balanced_accuracy_score(truth, likely > share)),
    }


def network(schema: Schema, distances: Any, epsilon: float, **options: Any) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        return CorrDPMLPClassifier(
            schema, epsilon=epsilon, distances=distances, random_state=seed, **options
        )

    return make


def variants(task: Task, epsilon: float) -> dict[str, Callable[[int], Any]]:
    schema, distances = task.schema, task.distances
    dropped = schema.drop_sensitive()
    left = {k: v for k, v in distances.items() if k in (*dropped.used, dropped.label.name)}

    def linear(seed: int) -> Any:
        return CorrDPLogisticRegression(
            schema, epsilon=epsilon, distances=distances, random_state=seed
        )

    return {
        "DP": network(schema.all_sensitive(), {}, epsilon),
        "DP, one scale": network(schema.all_sensitive(), {}, epsilon, calibration="published"),
        "d = 1 per column": network(schema, {}, epsilon),
        "CorrDP": network(schema, distances, epsilon),
        "CorrDP, S hidden": network(schema, distances, epsilon, sensitive_path="hidden"),
        "CorrDP published": network(schema, distances, epsilon, calibration="published"),
        "semi": network(schema.insensitive_as_public(), {}, epsilon),
        "CorrDP linear": linear,
        "S dropped": network(dropped, left, epsilon),
    }


def shown(values: list[float]) -> str:
    mean = float(np.mean(values))
    if len(values) < 2:
        return f"{mean:.4f}"
    half = float(student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1))
    return f"{mean:.4f} ±{half / math.sqrt(len(values)):.4f}"


def number(value: float | None) -> str:
    return "–" if value is None else "∞" if math.isinf(value) else f"{value:.3g}"


def report(task: Task, name: str, make: Callable[[int], Any], seeds: int) -> None:
    """Fit with every seed and print one row."""
    started = time.perf_counter()
    results, model = [], None
    for seed in range(seeds):
        model = make(seed).fit(*task.train)
        results.append(measure(task, model))
    certificate = getattr(model, "certificate_", None)
    joint = ["∞", "∞"]
    if certificate is not None:
        joint = [number(certificate.joint[key]) for key in ("sensitive", "record")]
    cells = [shown([one[key] for one in results]) for key in results[0]]
    seconds = (time.perf_counter() - started) / seeds
    print("| " + " | ".join([name, *joint, *cells, f"{seconds:.0f}"]) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = ["adult", "credit", "sepsis-sex", "sepsis-age"]
    parser.add_argument("names", nargs="+", choices=names)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.02, 0.05, 0.1, 0.5, 2.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="+", help="rows to run; all by default")
    options = parser.parse_args()
    warnings.simplefilter("ignore", CorrDPWarning)
    for name in options.names:
        task = load(name)
        print(f"\n{name}: distances { ({k: round(v, 3) for k, v in task.distances.items()}) }")
        for epsilon in options.epsilons:
            print(f"\n### {name}, ε = {epsilon:g}, δ = 1e-6\n")
            print("| | S ε | record ε | log-loss | AUC | balanced accuracy | s per fit |")
            print("|" + "---|" * 7)
            for row, make in variants(task, epsilon).items():
                if options.only is None or row in options.only:
                    report(task, row, make, options.seeds)
        if options.only is None or "non-private" in options.only:
            report(task, "non-private", network(task.schema, None, math.inf), options.seeds)


if __name__ == "__main__":
    main()
