"""Speed as ratios within one run: a training step against a sparse matrix-vector pair.

    python benchmarks/speed.py

The yardstick is one CSR product with the design and one with its transpose.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from comparison import load, recipe
from scipy import sparse

from corrdp import Distances
from corrdp.erm.optimiser import _Allocator, _gradient_sum
from corrdp.noise import noise_source, release
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.declaration import Declaration


def best(run: Callable[[], object], times: int = 200) -> float:
    """Least time of one call, in seconds."""
    fastest = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        run()
        fastest = min(fastest, time.perf_counter() - started)
    return fastest


def main() -> None:
    print("| data | CSR pair, ms | gradient | + allocation | + noise |")
    print("|---|---|---|---|---|")
    for name in ("adult", "credit"):
        task = load(name, "insensitive")
        declaration = Declaration(
            task.schema,
            PrivacyTarget(0.5, 1e-6),
            task.train.records.size,
            Distances.given(task.distances),
            True,
        )
        prepared = recipe(task).prepare(declaration)
        table = prepared.setup.table(declaration)
        lattice = prepared.setup.lattice
        design = table.encoder.transform(task.train.records)
        columns = [design.scores(unit) for unit in np.eye(table.encoder.dimension)]
        matrix = sparse.csr_array(np.column_stack(columns))
        transposed = sparse.csr_array(matrix.T)
        rng = np.random.default_rng(0)
        theta = rng.normal(size=table.encoder.dimension)
        residual = rng.normal(size=design.size)
        pair = best(lambda: (matrix @ theta, transposed @ residual))
        gradient = best(lambda: _gradient_sum(design, task.train.scaled, table, theta, lattice))
        budget = np.array([b.mu_squared for b in prepared.budgets]) / prepared.plan.steps
        allocator = _Allocator(table, budget, None)
        moving = [theta * (1 + 0.01 * i) for i in range(8)]

        def cycle() -> None:
            for point in moving:
                allocator.sigma(point)

        allocation = best(cycle) / len(moving)
        sigma = allocator.sigma(theta)
        source = noise_source(None)
        total = _gradient_sum(design, task.train.scaled, table, theta, lattice)
        spread = table.encoder.spread(sigma)
        noise = best(lambda: release(total, spread, lattice.spacing, source))
        print(
            f"| {name} | {1e3 * pair:.2f} | ×{gradient / pair:.2f} "
            f"| ×{(gradient + allocation) / pair:.2f} "
            f"| ×{(gradient + allocation + noise) / pair:.2f} |"
        )


if __name__ == "__main__":
    main()
