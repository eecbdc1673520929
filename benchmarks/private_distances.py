"""What privately estimated distances cost, as markdown tables of the test metric.

    python benchmarks/private_distances.py --seeds 20
    python benchmarks/private_distances.py --data credit sepsis medical thirds bits --seeds 10 \\
        --useful .15 .235 .35 .5 --shares .15 .3 .5

Every row spends the same (ε, δ) in total; the private rows pay for the estimate out of it. Log-loss
(lower is better), R² for medical. The second figure is the mean advantage over d = 1 with the same
seeds; after a private row stands how many of the tables were released. `--useful` and `--shares`
add rows with other values of `corrdp.distance.advice.USEFUL` and `EstimateSettings.share`. Adult
was used to choose the defaults, the other data were not. "thirds" and "bits" are simulated with
known distances (columns .3, label .2; columns .1, label .05).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from comparison import Task, data, interval, load, metrics, private, recipe
from sklearn.model_selection import train_test_split

from corrdp import Distances
from corrdp.datasets import load_sepsis, make_correlated
from corrdp.distance import EstimateSettings, advice, plan
from corrdp.erm.fit import fit_linear
from corrdp.noise import noise_source
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.estimate import plan_of
from corrdp.verification import certify

EPSILONS = (0.1, 0.5)
DELTA = 1e-6
SIMULATED: dict[str, dict[str, Any]] = {
    "thirds": {"columns": 8, "sensitive": 2, "strength": 0.3, "label_strength": 0.2},
    "bits": {
        "columns": 12, "sensitive": 1, "strength": 0.1, "label_strength": 0.05, "kind": "binary",
    },
}  # fmt: skip
Run = Callable[[float, int], float]


@dataclass(frozen=True)
class Choice:
    """A private row: settings, and what counts as a useful table."""

    settings: EstimateSettings
    useful: float = advice.USEFUL


def task_of(name: str) -> Task:
    """Training and test data with the distances that are given or true."""
    if name == "sepsis":
        return sepsis()
    if name not in SIMULATED:
        return load(name, "insensitive")
    train = make_correlated(30_000, **SIMULATED[name], random_state=1)
    test = make_correlated(30_000, **SIMULATED[name], random_state=2)
    schema = train.schema
    both = (data(schema, train.X, train.y), data(schema, test.X, test.y))
    return Task(name, schema, dict(train.distances), *both, DELTA)


def sepsis() -> Task:
    """S = sex; ages in years, rare ones pooled, seen by the model as they are measured."""
    from networks import pooled  # imports torch

    found = load_sepsis()
    schema = pooled(found.schema, np.asarray(found.X["age_years"]))
    episode = replace(schema.columns["episode_number"], resolution="binned")
    schema = replace(schema, columns={**schema.columns, "episode_number": episode})
    Xa, Xb, ya, yb = train_test_split(found.X, found.y, test_size=0.2, random_state=0)
    return Task("sepsis", schema, {}, data(schema, Xa, ya), data(schema, Xb, yb), DELTA)


def declared(task: Task, epsilon: float, settings: EstimateSettings) -> Declaration:
    schema = task.schema.binned() if settings.resolution == "binned" else task.schema
    target = PrivacyTarget(epsilon, task.delta)
    return Declaration(schema, target, task.train.records.size, Distances({}), True)


def estimated(task: Task, epsilon: float, seed: int, choice: Choice) -> float:
    """Test metric of one run with private distances, whose certificate holds."""
    with judged_by(choice.useful):
        theta, done, ledger = fit_linear(
            declared(task, epsilon, choice.settings),
            recipe(task),
            task.train,
            noise_source(seed),
            estimate=choice.settings,
        )
        certificate = certify(ledger)
    assert certificate.holds and certificate.joint["sensitive"] <= epsilon
    return metric(task, metrics(task, done.encoder.transform(task.test.records).scores(theta)))


def judged_by(useful: float) -> ExitStack:
    """Another threshold for useful tables; it is a constant of the library."""
    stack = ExitStack()
    for module in (advice, plan):
        stack.enter_context(patch.object(module, "USEFUL", useful))
    return stack


def released(task: Task, epsilon: float, choice: Choice) -> tuple[int, Any]:
    """Number of tables that would be released, and what tells runs apart; public numbers only."""
    declaration = declared(task, epsilon, choice.settings)
    with judged_by(choice.useful):
        found = plan_of(declaration, choice.settings)
    specs = tuple(table.spec for table in found.tables)
    return len(specs), (declaration.schema == task.schema, found.mu if specs else 0.0, specs)


def metric(task: Task, found: dict[str, float]) -> float:
    return found["log-loss" if task.classes else "R²"]


def fixed_rows(task: Task) -> dict[str, Run]:
    """Rows without an estimate."""
    schemas = {
        "DP (all sensitive)": (task.schema.all_sensitive(), {}),
        "d = 1": (task.schema, {}),
        "given": (task.schema, task.distances),
        "semi (insensitive public)": (task.schema.insensitive_as_public(), {}),
    }
    if not task.distances:
        del schemas["given"]
    return {
        name: lambda e, s, which=which: metric(task, private(task, *which, e, s)[0])
        for name, which in schemas.items()
    }


def choices(task: Task, useful: Sequence[float], shares: Sequence[float]) -> dict[str, Choice]:
    """Private rows by name; a numeric label cannot be shown to the model in bins."""
    usual = EstimateSettings()
    found = {
        "private, default": Choice(usual),
        "private, smooth": Choice(replace(usual, resolution="assume-smooth")),
    }
    if task.classes:
        found["private, binned"] = Choice(replace(usual, resolution="binned"))
    found |= {f"private, useful {u:g}": Choice(usual, u) for u in useful}
    found |= {f"private, share {s:g}": Choice(replace(usual, share=s)) for s in shares}
    return found


def table(task: Task, seeds: int, rows: dict[str, Choice]) -> None:
    """Print one data set; rows that release the same tables at the same cost are run once."""
    heads = [f"ε = {e:g} | better than d = 1" for e in EPSILONS]
    print(f"\n### {task.name}, {'log-loss' if task.classes else 'R²'}\n")
    print(f"| distances | {' | '.join(heads)} |\n|---|{'---|---|' * len(EPSILONS)}", flush=True)
    sign = -1.0 if task.classes else 1.0
    usual: dict[float, np.ndarray] = {}
    known: dict[Any, np.ndarray] = {}

    def show(name: str, values: dict[float, np.ndarray], notes: dict[float, str]) -> None:
        cells = []
        for e in EPSILONS:
            gain = interval((sign * (values[e] - usual[e])).tolist()) if e in usual else "–"
            cells += [interval(values[e].tolist()) + notes.get(e, ""), gain]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)

    fixed = fixed_rows(task)
    usual |= {e: np.array([fixed["d = 1"](e, s) for s in range(seeds)]) for e in EPSILONS}
    for name, run in fixed.items():
        found = usual if name == "d = 1" else {
            e: np.array([run(e, s) for s in range(seeds)]) for e in EPSILONS
        }  # fmt: skip
        show(name, found, {})
    for name, choice in rows.items():
        found, notes = {}, {}
        for e in EPSILONS:
            number, same = released(task, e, choice)
            if (e, same) not in known:
                runs = [estimated(task, e, s, choice) for s in range(seeds)]
                known[e, same] = np.array(runs)
            found[e], notes[e] = known[e, same], f" ({number})"
        show(name, found, notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = ["adult", "credit", "sepsis", "medical", *SIMULATED]
    parser.add_argument("--data", nargs="+", choices=names, default=["adult"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--useful", type=float, nargs="*", default=[])
    parser.add_argument("--shares", type=float, nargs="*", default=[])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.data:
        task = task_of(name)
        table(task, options.seeds, choices(task, options.useful, options.shares))


if __name__ == "__main__":
    main()
