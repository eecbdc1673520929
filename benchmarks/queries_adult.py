"""Five queries on Adult in one release: expected absolute error under six ways to share a budget.

    python benchmarks/queries_adult.py --epsilons .1 1

Counts by level of sex, mean age, mean hours a week, a histogram of race, and the covariance of age
and hours; race and sex are sensitive. Errors follow from the noise law and are checked against
simulated releases (column "simulated": worst ratio of the two). "DP at CorrDP's record loss" is
ordinary DP at the ε that the CorrDP certificate guarantees for the whole record.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from corrdp import Distances, Schema
from corrdp.datasets import load_adult
from corrdp.noise import noise_source
from corrdp.privacy.budgets import PrivacyTarget, PureTarget
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.ledger import Ledger
from corrdp.queries import Covariance, Histogram, Mean, Query
from corrdp.queries.account import write_release
from corrdp.queries.answers import answer
from corrdp.queries.coding import Checked, read_checked
from corrdp.queries.plan import Calibration, QueryPlan, add_noise, plan_queries
from corrdp.verification import certify

QUERIES: dict[str, Query] = {
    "sex": Histogram("sex"),
    "age": Mean("age"),
    "hours": Mean("hours-per-week"),
    "race": Histogram("race"),
    "covariance": Covariance(["age", "hours-per-week"]),
}

HEADS = ("sex, a count", "mean age", "mean hours", "race, a count", "cov(age, hours)")


def plan_of(
    schema: Schema,
    distances: dict[str, float],
    epsilon: float,
    delta: float,
    n: int,
    how: Calibration,
) -> QueryPlan:
    """A release of all five queries."""
    target = PrivacyTarget(epsilon, delta) if delta else PureTarget(epsilon)
    declaration = Declaration(schema, target, n, Distances.given(distances), True)
    return plan_queries(declaration, QUERIES, "gaussian" if delta else "laplace", how)


def entry(value: object) -> float:
    """One number per query: the off-diagonal of the covariance, the first cell of a table."""
    array = np.asarray(value, dtype=float)
    return float(array[0, 1] if array.ndim == 2 else array.ravel()[0])


def expected(plan: QueryPlan, table: Checked, runs: int) -> tuple[list[float], float]:
    """Mean absolute error per query by the law of the noise, and the worst simulated ratio."""
    data = table.coded(plan.bits)
    exact = plan.released([block.total(data) for block in plan.blocks])
    true = {k: entry(answer(q, plan.declaration, exact).value) for k, q in QUERIES.items()}
    factor = math.sqrt(2 / math.pi) if plan.mechanism == "gaussian" else 1 / math.sqrt(2)
    errors = [
        factor * entry(answer(q, plan.declaration, exact).standard_error) for q in QUERIES.values()
    ]
    values = [block.total(data) for block in plan.blocks]
    gaps = []
    for seed in range(runs):
        noisy = plan.released(add_noise(plan, values, noise_source(seed)))
        found = [entry(answer(q, plan.declaration, noisy).value) for q in QUERIES.values()]
        gaps.append(np.abs(np.array(found) - list(true.values())))
    ratios = np.mean(gaps, axis=0) / errors
    return errors, float(np.abs(ratios - 1).max())


def record_loss(plan: QueryPlan, table: Checked) -> float:
    """ε of the whole record, as the certificate states it."""
    ledger = Ledger().append("declaration", plan.declaration.to_entry())
    ledger, _ = write_release(plan, table, noise_source(0), ledger)
    loss = certify(ledger).joint["record"]
    return math.inf if loss is None else loss


def rows(epsilon: float, delta: float, runs: int) -> list[str]:
    """One line per way."""
    found = load_adult()
    table = read_checked(found.X, found.schema, found.y)
    n, given = table.size, dict(found.distances or {})
    ones = dict.fromkeys(given, 1.0)
    everything = found.schema.all_sensitive()
    plans = {
        "DP, one scale": plan_of(everything, {}, epsilon, delta, n, "one-scale"),
        "DP, optimal": plan_of(everything, {}, epsilon, delta, n, "optimal"),
        "d = 1, optimal": plan_of(found.schema, ones, epsilon, delta, n, "optimal"),
        "CorrDP, one scale": plan_of(found.schema, given, epsilon, delta, n, "one-scale"),
        "CorrDP, optimal": plan_of(found.schema, given, epsilon, delta, n, "optimal"),
    }
    loss = record_loss(plans["CorrDP, optimal"], table)
    plans[f"DP at CorrDP's record loss {loss:.3f}, optimal"] = plan_of(
        everything, {}, loss, delta, n, "optimal"
    )
    lines = []
    for name, plan in plans.items():
        errors, ratio = expected(plan, table, runs)
        cells = " | ".join(f"{value:.3g}" for value in errors)
        lines.append(f"| {name} | {cells} | {record_loss(plan, table):.3f} | {ratio:.2f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0])
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args()
    for delta in (0.0, 1e-6):
        for epsilon in options.epsilons:
            law = "Laplace, pure" if delta == 0 else f"Gaussian, δ = {delta:g}"
            print(f"\n{law}, ε = {epsilon:g}\n")
            print(f"| | {' | '.join(HEADS)} | record ε | simulated |")
            print("|---|---|---|---|---|---|---|---|")
            print("\n".join(rows(epsilon, delta, options.runs)), flush=True)


if __name__ == "__main__":
    main()
