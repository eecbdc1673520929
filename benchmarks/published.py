"""Where the published calibration certifies its target, and where it falls short (THEORY T8).

    CORRDP_DATA_HOME=... python benchmarks/published.py > table.md

prints a Markdown table (docs/published-calibration.md). Nothing is trained: the noise is fixed
beforehand, and what it certifies follows from the schema, the distances and the ball.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from corrdp.datasets import load_adult, load_credit, make_regression
from corrdp.distance import Distances
from corrdp.erm.fit import LinearTask, PlanRequest, prepare
from corrdp.erm.losses import Logistic, Squared
from corrdp.erm.plan import single_step_noise
from corrdp.erm.published import block_noise, known_distances, published_account, variance_factors
from corrdp.neighbours import INSENSITIVE, RECORD, SENSITIVE
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.certificate import loss_together
from corrdp.privacy.declaration import Declaration
from corrdp.schema import Schema

EPSILON, DELTA = 0.5, 1e-6
RADII = (1.0, 2.5, 5.0, 20.0, 1000.0)


@dataclass(frozen=True)
class Case:
    """A table as declared: nothing of it but its size is used."""

    name: str
    schema: Schema
    distances: dict[str, float]
    records: int
    solver: str = "gradient"
    sample_rate: float | None = None


def everywhere(schema: Schema, value: float, label: float | None = None) -> dict[str, float]:
    """One distance for all insensitive columns, and one for an insensitive label."""
    found = dict.fromkeys(schema.names("insensitive"), value)
    if schema.label.role == "insensitive":
        found[schema.label.name] = value if label is None else label
    return found


def given(data: Any) -> dict[str, float]:
    """The distances that come with a data set."""
    return {name: getattr(d, "value", d) for name, d in data.distances.items()}


def cases() -> Iterator[Case]:
    ridge = make_regression(10_000, frame="dict", random_state=0)
    known = make_regression(10_000, label_role="public", frame="dict", random_state=0)
    yield Case("ridge, label d = 1", ridge.schema, given_simulated(ridge), 10_000)
    low = everywhere(ridge.schema, 0.1)
    yield Case("ridge, label d = .1", ridge.schema, low, 10_000)
    yield Case("ridge, public label", known.schema, given_simulated(known), 10_000)
    adult = load_adult(frame="dict")
    n = len(adult.y)
    yield Case("Adult, given", adult.schema, given(adult), n)
    yield Case("Adult, given, sampled at .05", adult.schema, given(adult), n, "sgd", 0.05)
    yield Case("Adult, all d = .1", adult.schema, everywhere(adult.schema, 0.1), n)
    tiny = everywhere(adult.schema, 0.01, label=0.31)
    yield Case("Adult, d = .01, label .31", adult.schema, tiny, n)
    secret = load_adult(frame="dict", label_role="sensitive").schema
    yield Case("Adult, sensitive label, d = .3", secret, everywhere(secret, 0.3), n)
    yield Case("Adult, sensitive label, d = .1", secret, everywhere(secret, 0.1), n)
    credit = load_credit(frame="dict")
    n = len(credit.y)
    yield Case("credit, given", credit.schema, given(credit), n)
    yield Case("credit, all d = .05", credit.schema, everywhere(credit.schema, 0.05), n)
    secret = load_credit(frame="dict", label_role="sensitive").schema
    yield Case("credit, sensitive label, d = .3", secret, everywhere(secret, 0.3), n)


def given_simulated(data: Any) -> dict[str, float]:
    return dict(data.distances)


def planned(case: Case, radius: float) -> LinearTask:
    """The run that would be made."""
    given = Distances.given(case.distances)
    target = PrivacyTarget(EPSILON, DELTA)
    declaration = Declaration(case.schema, target, case.records, given, seeded=False)
    loss = Squared(0.3, 2.0) if case.schema.label.is_numeric else Logistic()
    request = PlanRequest(
        200,
        radius=radius,
        solver=case.solver,  # type: ignore[arg-type]
        sample_rate=case.sample_rate,
        calibration="published",
    )
    return prepare(declaration, loss, None, request)


def losses(task: LinearTask) -> dict[str, float]:
    """Certified ε over target for every kind that has one; above 1 it falls short."""
    setup, declaration = task.setup, task.declaration
    assert setup.base_noise is not None
    account = published_account(
        declaration,
        setup.table(declaration),
        setup.plan,
        setup.base_noise,
        setup.sampler(task.encoder),
        None if setup.sampling is None else setup.sampling.rate,
    )
    found = {}
    for position, budget in enumerate(task.budgets):
        if math.isfinite(budget.epsilon):
            loss = loss_together([account], position, DELTA)
            found[budget.kind.name] = loss / budget.epsilon
    return found


def condition(task: LinearTask) -> tuple[float, float]:
    """Shares of Δ² that a change of S takes: in sensitive blocks, in the others (their sum ≤ 1)."""
    setup, declaration = task.setup, task.declaration
    table = setup.table(declaration)
    names = [kind.name for kind in table.kinds]
    moved = table.supremum(setup.plan.radius)[names.index(SENSITIVE)] ** 2
    moved = moved / variance_factors(task.encoder, known_distances(declaration))
    secret = [declaration.schema.role(b.name) == "sensitive" for b in task.encoder.blocks[:-1]]
    inside = np.array([*secret, False])
    whole = 4.0 * float(np.sum(table.presence**2))
    return float(moved[inside].sum()) / whole, float(moved[~inside].sum()) / whole


def against_optimal(task: LinearTask) -> float:
    """Norm of the published noise over that of the least noise that meets every target."""
    declaration, setup = task.declaration, task.setup
    assert setup.base_noise is not None
    table = setup.table(declaration)
    noise = block_noise(table, setup.base_noise, known_distances(declaration))
    rate = 1.0 if setup.sampling is None else setup.sampling.rate
    added = math.sqrt(float(task.encoder.dimensions @ noise**2) / setup.plan.steps) / rate
    budget = np.array([one.mu_squared for one in task.budgets])
    return added / single_step_noise(table, budget, setup.plan.radius, 1)


def row(case: Case, radius: float) -> str:
    task = planned(case, radius)
    found = losses(task)
    label = case.schema.label.name
    columns = {
        name: loss
        for name, loss in found.items()
        if name not in (SENSITIVE, INSENSITIVE, RECORD, label)
    }
    worst = max(columns, key=lambda name: columns[name])
    inside, outside = condition(task)
    short = [name for name, loss in found.items() if loss > 1.0]
    verdict = "certifies" if not short else f"{max(found.values()):.2f} × too much"
    own = f"{found[label]:.2f}" if label in found else "–"
    return (
        f"| {case.name} | {radius:g} | {verdict} | {found[SENSITIVE]:.2f} | "
        f"{inside:.2f} + {outside:.2f} | {worst} {columns[worst]:.2f} | {own} | "
        f"{against_optimal(task):.2f} |"
    )


def main() -> None:
    print(
        "| table | radius | result | S | a_S²/Δ² + a_U²/Δ² | worst column | label | "
        "noise against optimal |\n|---|---|---|---|---|---|---|---|"
    )
    for case in cases():
        for radius in RADII:
            print(row(case, radius), flush=True)


if __name__ == "__main__":
    main()
