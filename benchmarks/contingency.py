"""Speed of counting: 10 million records × 20 columns against 10 sensitive cells.

    python benchmarks/contingency.py [--records 10000000] [--columns 20] [--pandas-columns 2]

prints seconds per column for this library, for a loop of `numpy.bincount`, and for a loop of
`pandas.crosstab` (on fewer columns, it is slow). All three results are compared.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from corrdp.distance.counting import contingency_tables

LEVELS, CELLS = 16, 10


def timed(
    run: Callable[[], list[NDArray[np.int64]]], repeats: int
) -> tuple[float, list[NDArray[np.int64]]]:
    """Least seconds of some runs, and the result."""
    best, result = float("inf"), []
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - start)
    return best, result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--pandas-columns", type=int, default=2)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    cells = rng.integers(0, CELLS, args.records)
    columns = [rng.integers(0, LEVELS, args.records) for _ in range(args.columns)]
    shape = (LEVELS, CELLS)

    ours, tables = timed(
        lambda: contingency_tables(columns, cells, [LEVELS] * len(columns), CELLS), 3
    )
    bincount, reference = timed(
        lambda: [
            np.bincount(u * CELLS + cells, minlength=LEVELS * CELLS).reshape(shape) for u in columns
        ],
        3,
    )
    few = columns[: args.pandas_columns]
    crosstab, frames = timed(lambda: [pd.crosstab(u, cells).to_numpy() for u in few], 1)
    assert all((a == b).all() for a, b in zip(tables, reference))
    assert all((a == b).all() for a, b in zip(tables, frames))

    tracemalloc.start()
    contingency_tables(columns, cells, [LEVELS] * len(columns), CELLS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    per = {
        "corrdp": ours / len(columns),
        "bincount": bincount / len(columns),
        "crosstab": crosstab / len(few),
    }
    for name, seconds in per.items():
        print(f"{name:9s} {seconds:8.4f} s a column")
    print(f"corrdp / bincount {per['corrdp'] / per['bincount']:.2f} (at most 1.5)")
    print(f"crosstab / corrdp {per['crosstab'] / per['corrdp']:.1f} (at least 20)")
    print(f"peak extra memory {peak / 2**20:.1f} MB")


if __name__ == "__main__":
    main()
