"""Are the data-free defaults good? A grid picked on 5 seeds against the default on fresh ones.

    python benchmarks/defaults.py adult credit medical

For every data set and ε: 20 settings (steps and learning rate as multiples of the default's) are
ranked by their mean test metric on 5 seeds; the best one is compared with the default on fresh
seeds, paired. Positive differences mean that the grid's best is better.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from comparison import Task, interval, load, private, recipe

from corrdp import Distances
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.declaration import Declaration

STEPS = (0.25, 0.5, 1.0, 1.5, 2.0)
RATES = (0.25, 0.5, 0.75, 1.0)
EPSILONS = {"adult": (0.1, 1.0), "credit": (0.1, 1.0), "medical": (1.0, 3.0)}


def default_of(task: Task, epsilon: float) -> tuple[int, float]:
    """Steps and rate that the defaults choose."""
    declaration = Declaration(
        task.schema,
        PrivacyTarget(epsilon, task.delta),
        task.train.records.size,
        Distances.given(task.distances),
        True,
    )
    plan = recipe(task).prepare(declaration).plan
    return plan.steps, plan.learning_rate


def score(task: Task, epsilon: float, seed: int, **plan: float) -> float:
    """The first metric, signed so that more is better."""
    found = private(task, task.schema, task.distances, epsilon, seed, **plan)[0]
    name, value = next(iter(found.items()))
    return -value if name == "log-loss" else value


def compare(task: Task, epsilon: float, fresh: int) -> str:
    steps, rate = default_of(task, epsilon)
    best, best_value = (1.0, 1.0), -np.inf
    for more_steps, more_rate in itertools.product(STEPS, RATES):
        plan = {"steps": max(1, round(steps * more_steps)), "learning_rate": rate * more_rate}
        value = float(np.mean([score(task, epsilon, seed, **plan) for seed in range(5)]))
        if value > best_value:
            best, best_value = (more_steps, more_rate), value
    plan = {"steps": max(1, round(steps * best[0])), "learning_rate": rate * best[1]}
    seeds = range(100, 100 + fresh)
    grid = np.array([score(task, epsilon, seed, **plan) for seed in seeds])
    default = np.array([score(task, epsilon, seed) for seed in seeds])
    return (
        f"| {task.name} | {epsilon:g} | {steps}, {rate:.2f} | ×{best[0]:g}, ×{best[1]:g} | "
        f"{abs(default.mean()):.4f} | {abs(grid.mean()):.4f} | "
        f"{interval((grid - default).tolist())} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=sorted(EPSILONS))
    parser.add_argument("--fresh", type=int, default=20)
    options = parser.parse_args()
    print("| data | ε | default T, η | best of grid | default | grid's best | difference |")
    print("|---|---|---|---|---|---|---|")
    for name in options.names:
        task = load(name, "insensitive")
        for epsilon in EPSILONS[name]:
            print(compare(task, epsilon, options.fresh), flush=True)


if __name__ == "__main__":
    main()
