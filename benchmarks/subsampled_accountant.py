"""Compare the subsampled accountant with dp_accounting's, as a Markdown table.

    python benchmarks/subsampled_accountant.py > table.md

Columns: this library's ε when a replacement may move a contribution by all of 2c; dp_accounting's
ε for REPLACE_ONE, the same mechanism and relation; its add-or-remove ε turned into one for
replacement by the group rule (remove, then add: 2ε₁ with δ₁ chosen so that δ₁(1 + e^{ε₁}) = δ);
and this library's ε for a kind that moves a quarter of 2c, which no add-or-remove bound can use.
"""

from __future__ import annotations

import math
import time

from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant

from corrdp.privacy import subsampled

CASES = [
    # sample rate, noise multiplier σ (so presence is 1/σ), steps
    (0.001, 0.7, 2000),
    (0.01, 0.8, 500),
    (0.01, 1.0, 1000),
    (0.01, 2.0, 5000),
    (0.05, 1.0, 200),
    (0.05, 4.0, 1000),
    (0.2, 3.0, 100),
    (0.5, 10.0, 300),
]
DELTAS = (1e-5, 1e-8)


def accountant(
    relation: NeighboringRelation, rate: float, noise: float, steps: int
) -> PLDAccountant:
    """dp_accounting's loss distribution of `steps` Poisson-sampled Gaussian steps."""
    event = PoissonSampledDpEvent(rate, GaussianDpEvent(noise))
    return PLDAccountant(relation).compose(event, steps)


def by_group_rule(single: PLDAccountant, delta: float) -> float:
    """Replacement ε from an add-or-remove accountant at equal δ; inf where its δ has a floor."""
    low, high = 0.0, 1.0
    while single.get_delta(high) * (1 + math.exp(high)) > delta:
        high *= 2
        if high > 500:
            return math.inf
    for _ in range(40):
        middle = (low + high) / 2
        if single.get_delta(middle) * (1 + math.exp(middle)) > delta:
            low = middle
        else:
            high = middle
    return 2 * high


def row(rate: float, noise: float, steps: int, delta: float) -> list[float]:
    """Epsilons of the four columns, then milliseconds of the first."""
    started = time.perf_counter()
    ours = subsampled.epsilon(rate, 1 / noise, 2 / noise, steps, delta)
    took = (time.perf_counter() - started) * 1e3
    replace = accountant(NeighboringRelation.REPLACE_ONE, rate, noise, steps)
    single = accountant(NeighboringRelation.ADD_OR_REMOVE_ONE, rate, noise, steps)
    quarter = subsampled.epsilon(rate, 1 / noise, 0.5 / noise, steps, delta)
    return [ours, replace.get_epsilon(delta), by_group_rule(single, delta), quarter, took]


def main() -> None:
    """Print the table."""
    print("| q | σ | T | δ | corrdp, a = 2c | REPLACE_ONE | group rule | corrdp, a = c/2 | ms |")
    print("|---|---|---|---|---|---|---|---|---|")
    for rate, noise, steps in CASES:
        for delta in DELTAS:
            *epsilons, took = row(rate, noise, steps, delta)
            values = " | ".join(f"{value:.4f}" for value in epsilons)
            print(f"| {rate} | {noise} | {steps} | {delta} | {values} | {took:.0f} |")


if __name__ == "__main__":
    main()
