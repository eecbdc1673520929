"""How far confidence limits lie above the distance (docs/distances.md).

    python benchmarks/tightness.py [--draws 200]

prints a markdown table: mean limit minus distance per population, number of records and method.
The private column releases one table (or a label and six columns, the label's table having half
the weight) at the ε named, δ = 1e-6.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from coverage import GAMMA, Counts, Design, even_levels, skewed

from corrdp.distance import bounds, noisy, noisy_split
from corrdp.distance.noisy import NoisyTable
from corrdp.privacy import gdp

RECORDS = (1_000, 10_000, 100_000)
DELTA = 1e-6


def populations() -> list[Design]:
    """5 × 10 tables with skewed cells, and a 2 × 2 one.

    Levels even, skewed as the cells are, and the same with cells drawn at random. With even levels
    the published limit, H and CP exceed d by .115, .046 and .051 at n = 10,000.
    """
    one = skewed()
    rng = np.random.default_rng(1)
    base = 1 / np.arange(1, 11)
    drawn = rng.dirichlet(20 * base / base.sum(), 5)
    even = np.array([[0.65, 0.35], [0.35, 0.65]])
    return [
        even_levels(),
        one,
        Design("5 × 10, drawn at random", one.share, drawn, one.records),
        Design("2 × 2, even", np.array([0.5, 0.5]), even, one.records),
    ]


def release(counts: Counts, epsilon: float, weight: float, rng: np.random.Generator) -> NoisyTable:
    """A table whose cells get `weight` of the estimate's budget, totals as much as S."""
    mu = float(gdp.mu(epsilon, DELTA))
    tau, sigma = math.sqrt(2) / mu, math.sqrt(2 / weight) / mu
    totals = counts.sum(axis=1)
    noisy_totals = totals + np.rint(rng.normal(0, tau, totals.shape)).astype(np.int64)
    noisy_cells = counts + np.rint(rng.normal(0, sigma, counts.shape)).astype(np.int64)
    return NoisyTable(noisy_totals[None], noisy_cells[None], tau, sigma)


def limits(counts: Counts, rng: np.random.Generator) -> dict[str, float]:
    """Every method's limit for one draw."""
    alone, n = release(counts, 0.15, 1.0, rng), int(counts.sum())
    return {
        "published": bounds.upper_limit(counts, GAMMA, "published").value,
        "H": bounds.upper_limit(counts, GAMMA, "H").value,
        "CP": bounds.upper_limit(counts, GAMMA, "CP").value,
        "private ε .15": noisy.upper_limit(alone, GAMMA, n).value,
        "split form": noisy_split.split_limit(alone, GAMMA, n).value,
        "private ε .3": noisy.upper_limit(release(counts, 0.3, 1.0, rng), GAMMA, n).value,
        "label of 7 tables, ε .15": noisy.upper_limit(
            release(counts, 0.15, 0.5, rng), GAMMA / 7, n
        ).value,
        "column of 7, ε .15": noisy.upper_limit(
            release(counts, 0.15, 0.5 / 6, rng), GAMMA / 7, n
        ).value,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=200)
    draws = parser.parse_args().draws
    head = None
    for design in populations():
        for records in RECORDS:
            rng = np.random.default_rng(records)
            found = [limits(design.draw(rng, records), rng) for _ in range(draws)]
            if head is None:
                head = list(found[0])
                print("| population | d | n | " + " | ".join(head) + " |")
                print("|---|---|---|" + "---|" * len(head))
            excess = [np.mean([one[name] for one in found]) - design.truth for name in head]
            cells = " | ".join(f"{value:.3f}" for value in excess)
            print(f"| {design.name} | {design.truth:.3f} | {records} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
