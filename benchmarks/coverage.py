"""How often confidence limits of the distance cover the truth (docs/distances.md).

    python benchmarks/coverage.py [--draws 2000] [--methods H "private, split"]

prints two markdown tables: coverage per design and method, which must not be below .95 by more
than simulation error, and coverage of procedures with a planted fault, which must.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corrdp.distance import bounds, dobrushin, noisy, noisy_split
from corrdp.distance.events import MAX_ENUMERATED_CELLS
from corrdp.distance.merging import pooled_limit
from corrdp.distance.noisy import NoisyTable

GAMMA = 0.05
TOTAL_SIGMA, CELL_SIGMA = 12.0, 17.0
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Design:
    """A population: how frequent levels are and what they tell."""

    name: str
    share: NDArray[np.float64]
    conditional: NDArray[np.float64]
    records: int

    @property
    def truth(self) -> float:
        return dobrushin(self.conditional)

    def draw(self, rng: np.random.Generator, records: int | None = None) -> Counts:
        totals = rng.multinomial(self.records if records is None else records, self.share)
        return np.array([rng.multinomial(n, p) for n, p in zip(totals, self.conditional)])


def _normal(weights: object) -> NDArray[np.float64]:
    values = np.asarray(weights, dtype=np.float64)
    return values / values.sum(axis=-1, keepdims=True)


def skewed(records: int = 10_000) -> Design:
    """5 levels × 10 cells, both with frequencies proportional to 1, 1/2, 1/3, …"""
    base = _normal(1 / np.arange(1, 11))
    rows = [(1 - 0.06 * a) * base + 0.06 * a * np.roll(base, a) for a in range(5)]
    return Design("5 × 10, skewed", _normal(1 / np.arange(1, 6)), _normal(rows), records)


def even_levels(records: int = 10_000) -> Design:
    """5 equally frequent levels × 10 cells with frequencies between 1, 1/2, 1/3, … and even."""
    base = _normal(1 / np.arange(1, 11))
    rows = [(1 - 0.06 * a) * base + 0.06 * a * 0.1 for a in range(5)]
    return Design("5 × 10, even levels", _normal(np.ones(5)), _normal(rows), records)


def rare_level(records: int = 10_000) -> Design:
    """2 levels × 2 cells, one level with 3 % of the records."""
    return Design("2 × 2, rare level", _normal([97, 3]), _normal([[7, 3], [3, 7]]), records)


def small(records: int = 600) -> Design:
    """2 levels × 2 cells with few records, where noise matters."""
    return Design("2 × 2, few records", _normal([1, 1]), _normal([[9, 1], [1, 9]]), records)


def designs() -> list[Design]:
    """Ten populations from 2 to 50 levels and 2 to 40 cells."""
    rng = np.random.default_rng(2026)
    many = np.tile([0.5, 0.5], (50, 1))
    many[7] = [0.62, 0.38]
    wide = np.array([_normal(1 / np.arange(1, 41)), _normal(1 / np.arange(1, 41)[::-1])])
    wide[1] = 0.85 * wide[0] + 0.15 * wide[1]
    rare = rng.dirichlet(np.ones(6), 10)
    zipf = _normal(rng.dirichlet(np.full(12, 3.0), 20))
    near_zero = _normal(
        [[970, 20, 5, 4, 1], [990, 5, 3, 1, 1], [940, 40, 10, 9, 1], [960, 1, 1, 1, 37]]
    )
    return [
        small(),
        rare_level(),
        skewed(),
        even_levels(),
        Design("50 × 2, one level deviates", _normal(np.ones(50)), many, 20_000),
        Design("2 × 40, skewed cells", _normal([3, 1]), wide, 5_000),
        Design("10 × 6, two rare levels", _normal([20] * 8 + [1, 1]), rare, 10_000),
        Design("3 × 10, distance 0", _normal([3, 2, 1]), np.full((3, 10), 0.1), 5_000),
        Design("20 × 12, skewed levels", _normal(1 / np.arange(1, 21)), zipf, 20_000),
        Design("4 × 5, cells near 0 and 1", _normal([4, 3, 2, 1]), near_zero, 8_000),
    ]


def add_noise(counts: Counts, rng: np.random.Generator) -> NoisyTable:
    """Totals and cells with whole-number noise, as `corrdp.distance.private` releases them."""
    totals = counts.sum(axis=1)
    noisy_totals = totals + np.rint(rng.normal(0, TOTAL_SIGMA, totals.shape)).astype(np.int64)
    noisy_cells = counts + np.rint(rng.normal(0, CELL_SIGMA, counts.shape)).astype(np.int64)
    return NoisyTable(noisy_totals[None], noisy_cells[None], TOTAL_SIGMA, CELL_SIGMA)


Limit = Callable[[Counts, np.random.Generator], float]

METHODS: dict[str, Limit] = {
    "H": lambda counts, rng: bounds.upper_limit(counts, GAMMA, "H").value,
    "CP": lambda counts, rng: bounds.upper_limit(counts, GAMMA, "CP").value,
    "published": lambda counts, rng: bounds.upper_limit(counts, GAMMA, "published").value,
    "private": lambda counts, rng: (
        noisy.upper_limit(add_noise(counts, rng), GAMMA, int(counts.sum())).value
    ),
    "private, split": lambda counts, rng: (
        noisy_split.split_limit(add_noise(counts, rng), GAMMA, int(counts.sum())).value
    ),
    "lower": lambda counts, rng: -bounds.lower_limit(counts, GAMMA),
    "private lower": lambda counts, rng: (
        -noisy.lower_limit(add_noise(counts, rng), GAMMA, int(counts.sum()))
    ),
}
ENUMERATED = ("CP", "private, split")


def coverage(design: Design, limit: Limit, draws: int, seed: int) -> float:
    """Fraction of draws whose limit is on the right side (negative values: lower limits)."""
    rng = np.random.default_rng(seed)
    truth = design.truth
    covered = 0
    for _ in range(draws):
        value = limit(design.draw(rng), rng)
        covered += value >= truth - 1e-12 if value > 0 else -value <= truth + 1e-12
    return covered / draws


def acceptable(draws: int) -> float:
    """1 − γ minus three standard errors of the simulation."""
    return 1 - GAMMA - 3 * np.sqrt(GAMMA * (1 - GAMMA) / draws)


# Procedures with a planted fault, and what they should have been.


def total_for_rows(counts: Counts, rng: np.random.Generator) -> float:
    """H with the total n where the rows' n_a belong."""
    radius = np.sqrt(0.5 * np.log(1 / GAMMA) * 2 / counts.sum())
    return min(1.0, bounds.plug_in(counts).value + float(radius))


def noise_omitted(counts: Counts, rng: np.random.Generator) -> float:
    """CP on noisy counts as if they were exact."""
    table = add_noise(counts, rng)
    return bounds.upper_limit(np.maximum(table.cells[0], 0), GAMMA, "CP").value


def coverage_of_columns(gamma: float, draws: int, seed: int, columns: int = 20) -> float:
    """All of 20 two-cell columns covered at once, each with level `gamma`."""
    design = rare_level()
    rng = np.random.default_rng(seed)
    covered = 0
    for _ in range(draws):
        values = [bounds.upper_limit(design.draw(rng), gamma, "CP").value for _ in range(columns)]
        covered += min(values) >= design.truth
    return covered / draws


def deviant_levels() -> Design:
    """A common level and a small one alike, and 30 deviant levels near the threshold 10."""
    share = np.array([600.0, 50.0] + [12.0] * 30)
    rows = np.array([[1.0, 0.0]] * 2 + [[0.0, 1.0]] * 30)
    return Design("2 + 30 deviant levels", _normal(share), rows, int(share.sum()))


def coverage_of_merging(by_sample: bool, draws: int, seed: int, minimum: int = 10) -> float:
    """The small level absorbs levels below the threshold: by sample totals, or by public order.

    The limit must cover the distance of the column merged in this very way.
    """
    design = deviant_levels()
    rng = np.random.default_rng(seed)
    covered = 0
    for _ in range(draws):
        counts = design.draw(rng)
        if by_sample:
            below = np.flatnonzero(counts.sum(axis=1) < minimum)
            tail = [1, *below[below > 1].tolist()]
            merged = np.array([counts[0], counts[tail].sum(axis=0)])
            value = bounds.upper_limit(merged, GAMMA, "CP").value
        else:
            value, pooled = pooled_limit(counts, range(len(counts)), 60, GAMMA, "CP")
            tail = list(pooled.pooled)
        covered += value >= _merged_truth(design, tail, whole=not by_sample) - 1e-12
    return covered / draws


def _merged_truth(design: Design, tail: list[int], whole: bool) -> float:
    """Distance of the merged level to the common one, or of the whole pooled column."""
    weights = design.share[tail][:, None]
    merged = (weights * design.conditional[tail]).sum(axis=0) / weights.sum()
    kept = [a for a in range(len(design.share)) if a not in tail] if whole else [0]
    return dobrushin(np.vstack([design.conditional[kept], merged]))


def faults(draws: int, seed: int = 7) -> list[tuple[str, float, float]]:
    """(fault, coverage with it, coverage without it)."""
    return [
        (
            "total n for n_a (H)",
            coverage(rare_level(), total_for_rows, draws, seed),
            coverage(rare_level(), METHODS["H"], draws, seed),
        ),
        (
            "noise omitted",
            coverage(small(), noise_omitted, draws, seed),
            coverage(small(), METHODS["private"], draws, seed),
        ),
        (
            "γ not split over 20 columns",
            coverage_of_columns(GAMMA, draws, seed),
            coverage_of_columns(GAMMA / 20, draws, seed),
        ),
        (
            "merged by sample totals",
            coverage_of_merging(True, draws, seed),
            coverage_of_merging(False, draws, seed),
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    draws, chosen = options.draws, {name: METHODS[name] for name in options.methods}
    start = time.perf_counter()
    print(f"{draws} draws, γ = {GAMMA}; acceptable from {acceptable(draws):.3f}\n")
    print("| population | n | d | " + " | ".join(chosen) + " |")
    print("|---|---|---|" + "---|" * len(chosen))
    for number, design in enumerate(designs()):
        many = design.conditional.shape[1] > MAX_ENUMERATED_CELLS
        found = [
            "–" if many and name in ENUMERATED else f"{coverage(design, m, draws, number):.4f}"
            for name, m in chosen.items()
        ]
        print(
            f"| {design.name} | {design.records} | {design.truth:.3f} | {' | '.join(found)} |",
            flush=True,
        )
    print("\n| fault | coverage | without it |\n|---|---|---|")
    for name, wrong, right in faults(draws):
        print(f"| {name} | {wrong:.3f} | {right:.3f} |", flush=True)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
