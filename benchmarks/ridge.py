"""Ridge regression: moments and gradient descent, DP and CorrDP, beside predicting the mean.

    python benchmarks/ridge.py simulated --records 1000 10000 --columns 20 --epsilons .1 1
    python benchmarks/ridge.py medical --epsilons 1 3
    python benchmarks/ridge.py coverage

``simulated``: excess mean squared error over least squares, in the label's own unit, on
`make_regression` (known distances; the label has d = 1 there). ``medical``: R² on Medical Cost with
sensitive sex and bmi. ``coverage``: how often 95 % intervals hold the true coefficients, over runs
in which no eigenvalue was floored. A star marks what ``solver="auto"`` takes.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from corrdp import CorrDPRidge, Distances, Schema
from corrdp.datasets import load_medical_cost, make_regression
from corrdp.errors import UtilityWarning
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.declaration import Declaration
from corrdp.queries.regression import MOMENTS_BELOW, plan_moments, relative_noise

DELTA = 1e-6
# assumed for the comparison, not estimated
MEDICAL = {"age": 0.1, "children": 0.1, "smoker": 0.1, "region": 0.15, "charges": 0.3}
CELLS = list(itertools.product(("DP", "CorrDP"), ("moments", "gradient")))


def fit(
    solver: str, schema: Schema, distances: dict[str, float], epsilon: float, seed: int, data: Any
) -> CorrDPRidge:
    """One private fit."""
    model = CorrDPRidge(
        schema,
        epsilon=epsilon,
        delta=DELTA,
        distances=distances,
        solver=solver,
        random_state=seed,
    )
    return model.fit(*data)


def noise_of(schema: Schema, distances: dict[str, float], epsilon: float, n: int) -> float:
    """E/n of the moments."""
    target = PrivacyTarget(epsilon, DELTA)
    declaration = Declaration(schema, target, n, Distances.given(distances), True)
    return relative_noise(plan_moments(declaration))


def both(schema: Schema, distances: dict[str, float]) -> dict[str, tuple[Schema, dict[str, float]]]:
    return {"DP": (schema.all_sensitive(), {}), "CorrDP": (schema, distances)}


def excess(found: Any, epsilon: float, seed: int) -> tuple[list[float], list[float]]:
    """Excess squared error of every cell, then of the mean; E/n under DP and CorrDP."""
    X = np.column_stack([*found.X.values(), np.ones(len(found.y))])
    best = X @ np.linalg.lstsq(X, found.y, rcond=None)[0]
    risk = float(np.mean((found.y - best) ** 2))
    views = both(found.schema, dict(found.distances))
    errors = []
    for view, solver in CELLS:
        model = fit(solver, *views[view], epsilon, seed, (found.X, found.y))
        errors.append(float(np.mean((found.y - model.predict(found.X)) ** 2)) - risk)
    errors.append(float(found.y.var()) - risk)
    return errors, [noise_of(*views[view], epsilon, len(found.y)) for view in views]


def simulated(options: argparse.Namespace) -> None:
    names = [f"{view} {solver}" for view, solver in CELLS]
    print(f"| n | m | m_s | d | ε | {' | '.join(names)} | mean | E/n DP, CorrDP |")
    print("|" + "---|" * (len(CELLS) + 7))
    settings = itertools.product(
        options.records, options.columns, options.sensitive, options.distances, options.epsilons
    )
    for n, m, m_s, d, epsilon in settings:
        rows, noise = [], [0.0, 0.0]
        for seed in range(options.seeds):
            found = make_regression(
                n, columns=m, sensitive=m_s, distance=d, random_state=seed, frame="dict"
            )
            errors, noise = excess(found, epsilon, seed)
            rows.append(errors)
        means = np.mean(rows, axis=0)
        cells = [f"{value:.2e}" for value in means]
        for at, (view, _) in enumerate(CELLS):
            small = noise[0 if view == "DP" else 1] <= MOMENTS_BELOW
            if (CELLS[at][1] == "moments") == small:
                cells[at] += "*"
        print(
            f"| {n} | {m} | {m_s} | {d:g} | {epsilon:g} | {' | '.join(cells)} | "
            f"{noise[0]:.3f}, {noise[1]:.3f} |",
            flush=True,
        )


def medical(options: argparse.Namespace) -> None:
    found = load_medical_cost(sensitive=("sex", "bmi"))
    data = (found.X, found.y)
    exact = CorrDPRidge(found.schema, epsilon=float("inf")).fit(*data).score(*data)
    names = [f"{view} {solver}" for view, solver in CELLS]
    print(f"| ε | {' | '.join(names)} | without privacy | mean |")
    print("|" + "---|" * (len(CELLS) + 3))
    views = both(found.schema, MEDICAL)
    for epsilon in options.epsilons:
        cells = []
        for view, solver in CELLS:
            scores = [
                fit(solver, *views[view], epsilon, seed, data).score(*data)
                for seed in range(options.seeds)
            ]
            cells.append(f"{np.mean(scores):.3f}")
        print(f"| {epsilon:g} | {' | '.join(cells)} | {exact:.3f} | 0 |", flush=True)


def coverage(options: argparse.Namespace) -> None:
    print("| n | m | ε | view | runs floored | coverage |")
    print("|---|---|---|---|---|---|")
    settings = itertools.product(options.records, options.columns, options.epsilons)
    for n, m, epsilon in settings:
        hits: dict[str, list[bool]] = {"DP": [], "CorrDP": []}
        floored = dict.fromkeys(hits, 0)
        for seed in range(options.seeds):
            found = make_regression(n, columns=m, random_state=seed, frame="dict")
            for view, (schema, distances) in both(found.schema, dict(found.distances)).items():
                model = fit("moments", schema, distances, epsilon, seed, (found.X, found.y))
                if model.coef_standard_error_ is None:
                    floored[view] += 1
                    continue
                low, high = schema.label.bounds
                true = np.array([*found.coefficients.values()]) * 2 / (high - low)
                gap = np.abs(model.coef_ * model.encoder_.scale - true)
                error = model.coef_standard_error_ * model.encoder_.scale
                hits[view].extend((gap < 1.96 * error).tolist())
        for view, found_hits in hits.items():
            share = f"{np.mean(found_hits):.3f}" if found_hits else "–"
            print(
                f"| {n} | {m} | {epsilon:g} | {view} | {floored[view]} of {options.seeds} | "
                f"{share} |",
                flush=True,
            )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["simulated", "medical", "coverage"])
    parser.add_argument("--records", nargs="+", type=int, default=[10_000])
    parser.add_argument("--columns", nargs="+", type=int, default=[20])
    parser.add_argument("--sensitive", nargs="+", type=int, default=[3])
    parser.add_argument("--distances", nargs="+", type=float, default=[0.1])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", UtilityWarning)
    {"simulated": simulated, "medical": medical, "coverage": coverage}[options.what](options)


if __name__ == "__main__":
    main()
