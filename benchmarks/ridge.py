"""Ridge regression: moments and gradient descent, DP and CorrDP, beside predicting the mean.

    python benchmarks/ridge.py grid grid.jsonl --records 1000 10000 --columns 20 --epsilons .1 1
    python benchmarks/ridge.py table grid.jsonl
    python benchmarks/ridge.py medical --epsilons 1 3
    python benchmarks/ridge.py coverage --records 4000 20000 --columns 10 20 --seeds 400

``grid``: excess mean squared error over least squares, in the label's own unit (its range is 2.8;
half the squared error of the label on [−1, 1] is 3.92 times less), on `make_regression`, whose
distances are known. A line of the file is one data set; what is there already is not run again.
``table``: the means over seeds. ``medical``: R² on Medical Cost with sensitive sex and bmi.
``coverage``: how often 95 % intervals hold the true coefficients, over runs in which no eigenvalue
was floored. A star marks what ``solver="auto"`` takes.

Views: ``DP`` (everything sensitive), ``CorrDP`` (insensitive label at its true distance) and
``public`` (CorrDP with a public label). Where the label's distance is 1, gradient CorrDP is DP
(THEORY T6) and is not run a second time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from corrdp import CorrDPRidge, Distances, Schema
from corrdp.datasets import Simulated, load_medical_cost, make_regression
from corrdp.errors import UtilityWarning
from corrdp.noise import noise_source
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.declaration import Declaration
from corrdp.queries.coding import read_checked
from corrdp.queries.plan import QueryPlan, draw
from corrdp.queries.regression import (
    MOMENTS_BELOW,
    MOST_NOISE_RATIO,
    moments_of,
    noise_ratio,
    plan_moments,
    prefer_moments,
    relative_noise,
)
from corrdp.queries.ridge import solve_ridge

DELTA = 1e-6
# assumed for the comparison, not estimated
MEDICAL = {"age": 0.1, "children": 0.1, "smoker": 0.1, "region": 0.15, "charges": 0.3}
SOLVERS = ("moments", "gradient")
KEY = ("n", "m", "m_s", "d", "label", "correlation", "noise", "seed")

View: TypeAlias = tuple[Schema, dict[str, float]]


def fit(solver: str, view: View, epsilon: float, seed: int, data: Any) -> CorrDPRidge:
    """One private fit."""
    schema, distances = view
    model = CorrDPRidge(
        schema,
        epsilon=epsilon,
        delta=DELTA,
        distances=distances,
        solver=solver,
        random_state=seed,
    )
    return model.fit(*data)


def declared(view: View, epsilon: float, n: int) -> Declaration:
    schema, distances = view
    target = PrivacyTarget(epsilon, DELTA)
    return Declaration(schema, target, n, Distances.given(distances), True)


def takes_moments(view: View, epsilon: float, n: int) -> bool:
    """What ``solver="auto"`` decides."""
    return prefer_moments(declared(view, epsilon, n), CorrDPRidge().residual_clip)


def views_of(schema: Schema, distances: Mapping[str, float]) -> dict[str, View]:
    label = schema.label.name
    others = {name: d for name, d in distances.items() if name != label}
    return {
        "DP": (schema.all_sensitive(), {}),
        "CorrDP": (schema, dict(distances)),
        "public": (schema.with_roles({label: "public"}), others),
    }


def mixed(found: Simulated, correlation: float) -> Any:
    """Its table, numbers of the insensitive columns correlated by a common factor.

    This is for convergence alone: what the schema says about distances is no longer true.
    """
    if not correlation:
        return found.X
    common = np.random.default_rng(len(found.y)).uniform(-1.0, 1.0, len(found.y))
    return {
        name: x if name.startswith("s") else correlation * common + (1.0 - correlation) * x
        for name, x in found.X.items()
    }


def moments_theta(plan: QueryPlan, table: Any, y: Any, seed: int) -> Any:
    """One release: coefficients on numbers in [−1, 1], constant last; standard errors or None."""
    schema = plan.declaration.schema
    checked = read_checked({**table, schema.label.name: y}, schema)
    values = draw(plan, checked, noise_source(seed).child("moments"))
    model = solve_ridge(moments_of(plan, plan.released(values)), 0.0)
    return model.theta, model.standard_error


def run(
    cell: Mapping[str, Any], epsilons: Sequence[float], plans: dict[str, QueryPlan]
) -> dict[str, Any]:
    """Excess squared error of every view and solver at every ε, and of the mean."""
    found = make_regression(
        cell["n"],
        columns=cell["m"],
        sensitive=cell["m_s"],
        distance=cell["d"],
        label_distance=cell["label"],
        noise=cell["noise"],
        random_state=cell["seed"],
        frame="dict",
    )
    table = mixed(found, cell["correlation"])
    theta = np.array([*(found.coefficients or {}).values()])
    moved = np.column_stack([*table.values()]) - np.column_stack([*found.X.values()])
    low, high = found.schema.label.bounds
    y = np.clip(found.y + moved @ theta, low, high)
    X = np.column_stack([*table.values(), np.ones(len(y))])
    risk = float(np.mean((y - X @ np.linalg.lstsq(X, y, rcond=None)[0]) ** 2))

    def excess(prediction: Any) -> float:
        return float(np.mean((y - prediction) ** 2)) - risk

    out: dict[str, Any] = {"mean": float(y.var()) - risk}
    views = views_of(found.schema, found.distances)
    for epsilon, (name, view) in itertools.product(epsilons, views.items()):
        key = f"{epsilon:g} {name}"
        if key not in plans:
            plans[key] = plan_moments(declared(view, epsilon, len(y)))
        scaled = X @ moments_theta(plans[key], table, y, cell["seed"])[0]
        out[f"{key} moments"] = excess(high * scaled)  # the label's bounds are symmetric
        if (name, cell["label"]) != ("CorrDP", 1.0):
            model = fit("gradient", view, epsilon, cell["seed"], (table, y))
            out[f"{key} gradient"] = excess(model.predict(table))
        out[f"{key} E/n"] = relative_noise(plans[key])
        out[f"{key} ratio"] = noise_ratio(plans[key], CorrDPRidge().residual_clip)
    return out


def cells_of(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    chosen = itertools.product(
        options.records,
        options.columns,
        options.sensitive,
        options.distances,
        options.label_distances,
        options.correlations,
        options.noises,
        range(options.seeds),
    )
    return (dict(zip(KEY, values)) for values in chosen)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def grid(options: argparse.Namespace) -> None:
    done = [{name: line[name] for name in KEY} for line in read(options.file)]
    plans: dict[str, QueryPlan] = {}
    last: list[Any] = []
    for cell in cells_of(options):
        if cell in done:
            continue
        if [cell[name] for name in KEY[:-1]] != last:
            last, plans = [cell[name] for name in KEY[:-1]], {}
        line = json.dumps({**cell, **run(cell, options.epsilons, plans)})
        with options.file.open("a") as file:
            file.write(line + "\n")
        print(line, flush=True)


def short(value: float) -> str:
    """Two digits."""
    base, power = f"{value:.1e}".split("e")
    return f"{base}e{int(power)}"


def table(options: argparse.Namespace) -> None:
    lines = sorted(read(options.file), key=lambda line: [line[name] for name in KEY])
    # the label's distance decides whether gradient CorrDP is a column of its own
    columns = [name for name in max(lines, key=len) if name.endswith(SOLVERS)]
    fixed = [name for name in KEY[:-1] if len({line[name] for line in lines}) > 1]
    print(f"| {' | '.join([*fixed, 'mean', *columns])} | seeds |")
    print("|" + "---|" * (len(fixed) + len(columns) + 2))
    for key, members in itertools.groupby(lines, key=lambda line: [line[k] for k in fixed]):
        rows = list(members)
        entries = [short(float(np.mean([row["mean"] for row in rows])))]
        for name in columns:
            view, solver = name.rsplit(" ", 1)
            if name not in rows[0]:
                entries.append("as DP")
                continue
            small = rows[0][f"{view} E/n"] <= MOMENTS_BELOW
            small &= rows[0].get(f"{view} ratio", 0.0) <= MOST_NOISE_RATIO
            star = "*" if small == (solver == "moments") else ""
            entries.append(short(float(np.mean([row[name] for row in rows]))) + star)
        shown = [f"{value:g}" for value in key]
        print(f"| {' | '.join([*shown, *entries])} | {len(rows)} |")


def medical(options: argparse.Namespace) -> None:
    found = load_medical_cost(sensitive=("sex", "bmi"))
    data = (found.X, found.y)
    exact = CorrDPRidge(found.schema, epsilon=float("inf")).fit(*data).score(*data)
    views = views_of(found.schema, MEDICAL)
    cells = list(itertools.product(("DP", "CorrDP", "public"), SOLVERS))
    print(f"| ε | {' | '.join(' '.join(cell) for cell in cells)} | without privacy | mean |")
    print("|" + "---|" * (len(cells) + 3))
    for epsilon in options.epsilons:
        entries = []
        for name, solver in cells:
            scores = [
                fit(solver, views[name], epsilon, seed, data).score(*data)
                for seed in range(options.seeds)
            ]
            star = (
                "*"
                if SOLVERS[not takes_moments(views[name], epsilon, len(found.y))] == solver
                else ""
            )
            entries.append(f"{np.mean(scores):.3f}{star}")
        print(f"| {epsilon:g} | {' | '.join(entries)} | {exact:.3f} | 0 |", flush=True)


def held(found: Simulated, plan: QueryPlan, seed: int) -> list[bool] | None:
    """Which 95 % intervals hold the true coefficient; None where there are none."""
    theta, error = moments_theta(plan, found.X, found.y, seed)
    if error is None:
        return None
    true = np.array([*(found.coefficients or {}).values()]) / found.schema.label.bounds[1]
    inside: list[bool] = (np.abs(theta[:-1] - true) < 1.96 * error[:-1]).tolist()
    return inside


def coverage(options: argparse.Namespace) -> None:
    print("| n | m | d | ε | view | runs floored | intervals | coverage | least of a column |")
    print("|---|---|---|---|---|---|---|---|---|")
    settings = itertools.product(
        options.records, options.columns, options.sensitive, options.distances, options.epsilons
    )
    for n, m, m_s, d, epsilon in settings:
        plans: dict[str, QueryPlan] = {}
        hits: dict[str, list[list[bool]]] = {"DP": [], "CorrDP": [], "public": []}
        for seed in range(options.seeds):
            found = make_regression(
                n, columns=m, sensitive=m_s, distance=d, random_state=seed, frame="dict"
            )
            for name, view in views_of(found.schema, found.distances).items():
                if name not in plans:
                    plans[name] = plan_moments(declared(view, epsilon, n))
                inside = held(found, plans[name], seed)
                hits[name] += [] if inside is None else [inside]
        for name, rows in hits.items():
            share, least = "–", "–"
            if rows:
                share, least = f"{np.mean(rows):.3f}", f"{np.mean(rows, axis=0).min():.3f}"
            floored = f"{options.seeds - len(rows)} of {options.seeds}"
            print(
                f"| {n} | {m} | {d:g} | {epsilon:g} | {name} | {floored} | {len(rows) * m} | "
                f"{share} | {least} |",
                flush=True,
            )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["grid", "table", "medical", "coverage"])
    parser.add_argument("file", nargs="?", type=Path, default=Path("ridge.jsonl"))
    parser.add_argument("--records", nargs="+", type=int, default=[10_000])
    parser.add_argument("--columns", nargs="+", type=int, default=[20])
    parser.add_argument("--sensitive", nargs="+", type=int, default=[3])
    parser.add_argument("--distances", nargs="+", type=float, default=[0.1])
    parser.add_argument("--label-distances", nargs="+", type=float, default=[1.0])
    parser.add_argument("--correlations", nargs="+", type=float, default=[0.0])
    parser.add_argument("--noises", nargs="+", type=float, default=[0.1])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", UtilityWarning)
    {"grid": grid, "table": table, "medical": medical, "coverage": coverage}[options.what](options)


if __name__ == "__main__":
    main()
