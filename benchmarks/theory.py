"""Does the excess risk fall as the theory says (THEORY T9)?

    python benchmarks/theory.py [--seeds 20]

prints a Markdown table: log–log slopes of the measured excess empirical risk against the rate
G·ϱ·√(noise dimension·ln(1/δ))/(n·ε), where in turn n, ε, m_s and Σd_i vary, with 95 % intervals
from the seeds. The rate is an upper bound for every convex loss, slope 1. Near a minimiser with
curvature the risk is quadratic and the slope is 2.

Data come from `make_regression` and `make_correlated`; roles and distances are then declared as
the sweep asks, because noise follows what is declared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corrdp.datasets import make_correlated, make_regression
from corrdp.distance import Distances
from corrdp.erm.exact import minimise
from corrdp.erm.fit import LinearTask, PlanRequest, prepare
from corrdp.erm.losses import Logistic, Loss, Squared
from corrdp.erm.optimiser import averaged, train
from corrdp.erm.theory import UtilityBound, averaged_risk_bound, utility_bound
from corrdp.noise import noise_source
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.declaration import Declaration
from corrdp.records import read_label, read_records
from corrdp.schema import Ignored, Schema

COLUMNS, DELTA = 20, 1e-6
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """One point of a sweep."""

    loss: str = "ridge"
    n: int = 8000
    epsilon: float = 0.5
    sensitive: int = 3
    distance: float = 0.1


SWEEPS: dict[str, Sequence[Any]] = {
    "n": (2000, 4000, 8000, 16000, 32000),
    "epsilon": (0.125, 0.25, 0.5, 1.0, 2.0),
    "sensitive": (1, 2, 4, 8, 16),
    "distance": (0.03, 0.1, 0.3, 1.0),
}


@dataclass(frozen=True)
class Problem:
    """An encoded table, its minimiser, and the run that the setting asks for."""

    task: LinearTask
    design: Any
    label: Floats
    bound: UtilityBound
    minimiser: Floats

    def risk(self, theta: Floats) -> float:
        """Mean loss over the table."""
        return float(self.task.setup.loss.value(self.design.scores(theta), self.label).mean())

    def iterates(self, seed: int) -> Floats:
        """θ_0 .. θ_T of one run with the published noise."""
        task = self.task
        table = task.setup.table(task.declaration)
        unused = np.ones(len(task.budgets))
        setup = task.setup
        run = train(
            self.design,
            self.label,
            table,
            unused,
            setup.plan,
            setup.lattice,
            noise_source(seed),
            setup.max_scale,
            fixed_noise=task.fixed_noise,
        )
        return run.iterates


def problem(setting: Setting, request: PlanRequest | None = None) -> Problem:
    """Simulate, declare roles and distances, find the minimiser."""
    declaration, (X, y), loss = _declared(setting)
    asked = PlanRequest() if request is None else request
    task = prepare(declaration, loss, None, replace(asked, calibration="published"))
    schema = declaration.schema
    design = task.encoder.transform(read_records(X, schema))
    label = read_label(y, schema.label, setting.n).astype(np.float64)
    if schema.label.is_numeric:
        low, high = schema.label.bounds
        label = 2.0 * (label - low) / (high - low) - 1.0
    distances = {name: entry.value for name, entry in declaration.distances.items()}
    bound = utility_bound(task.encoder, loss, distances, task.plan.radius)
    start = np.ones(setting.n), loss, 0.0, task.encoder.dimension
    minimiser, _ = minimise(design.scores, design.weighted_sum, label, *start)
    return Problem(task, design, label, bound, minimiser)


def _declared(setting: Setting) -> tuple[Declaration, Any, Loss]:
    """The same data for every setting with this n; the last columns become sensitive.

    All columns but the first are alike, so that a coordinate's noise counts the same everywhere.
    """
    loss: Loss = Squared(0.3, 2.0) if setting.loss == "ridge" else Logistic()
    table = simulated(setting.loss, 4000 if setting.n <= 4000 else 32_000)
    first, *names = table.schema.columns
    secret = names[len(names) - setting.sensitive :]
    columns: dict[str, Any] = {first: Ignored()}
    columns |= {
        name: replace(
            table.schema.columns[name], role="sensitive" if name in secret else "insensitive"
        )
        for name in names
    }
    label = replace(table.schema.label, role="insensitive")
    distances = {name: setting.distance for name in names if name not in secret}
    distances[label.name] = setting.distance
    target = PrivacyTarget(setting.epsilon, DELTA)
    given = Distances.given(distances)
    X = {name: values[: setting.n] for name, values in table.X.items()}
    declaration = Declaration(Schema(columns, label), target, setting.n, given, seeded=True)
    return declaration, (X, table.y[: setting.n]), loss


@cache
def simulated(loss: str, rows: int) -> Any:
    """The table whose first rows every setting takes."""
    if loss == "ridge":
        return make_regression(rows, columns=COLUMNS + 1, sensitive=1, frame="dict", random_state=0)
    return make_correlated(
        rows,
        columns=COLUMNS + 1,
        sensitive=1,
        label_signal=0.4,
        kind="numeric",
        frame="dict",
        random_state=0,
    )


def excess(one: Problem, seeds: Sequence[int]) -> Floats:
    """Excess empirical risk of the model, one value per seed."""
    least = one.risk(one.minimiser)
    runs = [averaged(one.iterates(seed), one.task.plan) for seed in seeds]
    return np.array([one.risk(theta) - least for theta in runs])


def slope(rates: Floats, risks: Sequence[Floats]) -> tuple[float, float, float]:
    """Least-squares slope of ln(mean risk) on ln(rate), and a 95 % bootstrap interval."""
    rng = np.random.default_rng(0)

    def fit(chosen: Sequence[Floats]) -> float:
        means = [max(float(values.mean()), 1e-300) for values in chosen]
        return float(np.polyfit(np.log(rates), np.log(means), 1)[0])

    again = [fit([rng.choice(values, len(values)) for values in risks]) for _ in range(400)]
    low, high = np.quantile(again, [0.025, 0.975])
    return fit(risks), float(low), float(high)


def sweep(
    loss: str,
    name: str,
    values: Sequence[Any],
    seeds: Sequence[int],
    base: Setting | None = None,
    request: PlanRequest | None = None,
) -> tuple[float, float, float, list[float]]:
    """Slope, its interval, and the mean excess risk at every value."""
    start = Setting(loss) if base is None else base
    rates, risks = [], []
    for value in values:
        setting = replace(start, **{name: value})
        one = problem(setting, request)
        rates.append(one.bound.excess_risk(setting.n, setting.epsilon, DELTA))
        risks.append(excess(one, seeds))
    return *slope(np.array(rates), risks), [float(r.mean()) for r in risks]


def without_momentum(one: Problem) -> Problem:
    """The bound speaks of plain gradient descent."""
    setup = one.task.setup
    plain = replace(setup, plan=replace(setup.plan, momentum=0.0))
    return replace(one, task=replace(one.task, setup=plain))


def explicit(setting: Setting, steps: int, seeds: Sequence[int]) -> tuple[float, float]:
    """(mean excess risk of the average of θ_0 .. θ_{T−1}, its bound with constants)."""
    plain = problem(setting, PlanRequest(steps, 1e-3))
    noise = plain.task.fixed_noise
    assert noise is not None
    variance = float(plain.task.encoder.dimensions @ noise**2) / setting.n**2
    far = float(np.linalg.norm(plain.minimiser))
    bound, rate = averaged_risk_bound(far, plain.bound.gradient_bound, steps, variance)
    one = without_momentum(problem(setting, PlanRequest(steps, rate)))
    least = one.risk(one.minimiser)
    means = [one.iterates(seed)[:-1].mean(axis=0) for seed in seeds]
    return float(np.mean([one.risk(theta) - least for theta in means])), bound


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    seeds = range(parser.parse_args().seeds)
    start = time.perf_counter()
    print("| loss | varied | values | mean excess risk | slope against the rate |")
    print("|---|---|---|---|---|")
    for loss in ("ridge", "logistic"):
        for name, values in SWEEPS.items():
            found, low, high, risks = sweep(loss, name, values, seeds)
            shown = ", ".join(f"{risk:.1e}" for risk in risks)
            given = ", ".join(map(str, values))
            print(
                f"| {loss} | {name} | {given} | {shown} | {found:.2f} [{low:.2f}, {high:.2f}] |",
                flush=True,
            )
    print("\n| loss | n | steps | mean excess risk | bound with constants |\n|---|---|---|---|---|")
    for loss in ("ridge", "logistic"):
        for n in (2000, 8000, 32000):
            risk, bound = explicit(Setting(loss, n), 100, seeds)
            print(f"| {loss} | {n} | 100 | {risk:.2e} | {bound:.2e} |", flush=True)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
