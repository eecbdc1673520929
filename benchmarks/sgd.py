"""Poisson-sampled against full-batch training at equal ε, and a million simulated rows.

    CORRDP_DATA_HOME=... python benchmarks/sgd.py [--seeds 20] [--rows 1000000] [--only NAME]

prints Markdown tables: test log-loss (Adult, credit) or R² (medical cost) as mean ± standard error
over seeds, the difference in standard errors, and seconds a fit; then time and memory of one fit
with 50 columns. Distances are given ones; credit and medical cost are split 80 : 20 by a fixed
permutation.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, r2_score

from corrdp import CorrDPLogisticRegression, CorrDPRidge
from corrdp.datasets import load_adult, load_credit, load_medical_cost, make_correlated
from corrdp.erm.account import read_setup
from corrdp.errors import UtilityWarning

DELTA = 1e-6
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """Training and test table, estimator, and what is measured on the test table."""

    name: str
    model: Any
    train: tuple[Any, Any]
    test: tuple[Any, Any]
    measure: str
    epsilons: Sequence[float]


def split(X: dict[str, Any], y: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """80 : 20 by a fixed permutation."""
    order = np.random.default_rng(0).permutation(len(y))
    cut = int(0.8 * len(y))

    def part(index: Any) -> tuple[Any, Any]:
        return {name: np.asarray(values)[index] for name, values in X.items()}, np.asarray(y)[index]

    return part(order[:cut]), part(order[cut:])


def adult() -> Task:
    data = load_adult(frame="dict")
    model = CorrDPLogisticRegression(data.schema, delta=DELTA, distances=data.distances)
    test = data.X_test, data.y_test
    return Task("adult", model, (data.X, data.y), test, "log-loss", (0.1, 0.5))


def credit() -> Task:
    data = load_credit(frame="dict")
    model = CorrDPLogisticRegression(data.schema, delta=DELTA, distances=data.distances)
    return Task("credit", model, *split(data.X, data.y), "log-loss", (0.1, 0.5))


def medical() -> Task:
    data = load_medical_cost(frame="dict", sensitive=("sex", "bmi"))
    model = CorrDPRidge(
        data.schema, delta=DELTA, distances=dict(data.distances or {}), solver="gradient"
    )
    return Task("medical cost", model, *split(data.X, data.y), "R²", (1.0, 5.0))


TASKS: dict[str, Callable[[], Task]] = {"adult": adult, "credit": credit, "medical": medical}


def score(task: Task, model: Any) -> float:
    """Log-loss or R² on the test table."""
    X, y = task.test
    if task.measure == "R²":
        return float(r2_score(np.asarray(y, dtype=float), model.predict(X)))
    positive = np.asarray(y) == model.classes_[1]
    return float(log_loss(positive, model.predict_proba(X)[:, 1]))


def fits(task: Task, seeds: Sequence[int], **settings: Any) -> tuple[Floats, float, float]:
    """Scores over seeds, seconds a fit, and the sample rate (1 for full batches)."""
    scores, seconds, rate = [], [], 1.0
    for seed in seeds:
        model = task.model.__class__(**{**task.model.get_params(), **settings})
        model.set_params(random_state=seed)
        start = time.process_time()
        model.fit(*task.train)
        seconds.append(time.process_time() - start)
        scores.append(score(task, model))
        sampling = read_setup(model.certificate_.ledger.one("linear-budget")).sampling
        rate = 1.0 if sampling is None else sampling.rate
        assert model.certificate_.holds
    return np.array(scores), float(np.median(seconds)), rate


def compare(task: Task, seeds: Sequence[int]) -> None:
    """Two rows a value of ε, with the difference in standard errors."""
    for epsilon in task.epsilons:
        full, full_time, _ = fits(task, seeds, epsilon=epsilon, solver="gradient")
        sgd, sgd_time, rate = fits(task, seeds, epsilon=epsilon, solver="sgd")
        error = np.hypot(full.std(ddof=1), sgd.std(ddof=1)) / np.sqrt(len(seeds))
        print(
            f"| {task.name} | {epsilon} | {task.measure} | {shown(full)} | {shown(sgd)} | "
            f"{(sgd.mean() - full.mean()) / error:+.1f} | {rate:.3f} | {full_time:.1f} | "
            f"{sgd_time:.1f} |",
            flush=True,
        )


def shown(values: Floats) -> str:
    return f"{values.mean():.4f} ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}"


def large(rows: int) -> None:
    """One fit on simulated rows with 50 columns, sampled and full batch."""
    data = make_correlated(
        rows, columns=50, sensitive=5, strength=0.1, kind="numeric", frame="dict", random_state=0
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print("\n| rows | solver | sample rate | steps | CPU seconds | peak memory, GiB | accuracy |")
    print("|---|---|---|---|---|---|---|")
    print(f"| {rows} | the table alone | | | | {before:.2f} | |")
    for solver, rate in (("sgd", 0.01), ("sgd", None), ("gradient", None)):
        model = CorrDPLogisticRegression(
            data.schema,
            epsilon=0.1,
            delta=1e-7,
            distances=data.distances,
            solver=solver,
            sample_rate=rate,
            random_state=0,
        )
        start = time.process_time()
        model.fit(data.X, data.y)
        seconds = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        sampling = read_setup(model.certificate_.ledger.one("linear-budget")).sampling
        q = 1.0 if sampling is None else sampling.rate
        few = {name: values[:100_000] for name, values in data.X.items()}
        accuracy = float(np.mean(model.predict(few) == data.y[:100_000]))
        print(
            f"| {rows} | {solver} | {q:.4f} | {model.n_iter_} | {seconds:.0f} | {peak:.2f} | "
            f"{accuracy:.4f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", choices=[*TASKS, "large"])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UtilityWarning)
    chosen = [arguments.only] if arguments.only else [*TASKS, "large"]
    print(
        "| data | ε | measure | full batch | sampled | difference / its error | rate | "
        "CPU s full | CPU s sampled |\n|---|---|---|---|---|---|---|---|---|"
    )
    for name in chosen:
        if name in TASKS:
            compare(TASKS[name](), range(arguments.seeds))
    if "large" in chosen:
        large(arguments.rows)


if __name__ == "__main__":
    main()
