"""Audits of logistic and ridge regression at full length: ``python benchmarks/audits.py [runs]``.

Prints claim, lower bound and verdict for every kind of change (THEORY T13); no row may be
violated. No data is needed: worst-case tables are built from the schema alone.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from corrdp import Categorical, CorrDPLogisticRegression, CorrDPRidge, Label, Numeric, Schema
from corrdp.audit import linear_attacks, linear_task, run_attacks

COLUMNS = {
    "age": Numeric(17, 90, role="insensitive"),
    "job": Categorical(["office", "craft", "field", "none"], role="insensitive"),
    "sex": Categorical(["f", "m"]),
    "race": Categorical(["a", "b", "c"]),
}


def certificate(kind: str, epsilon: float, distances: dict[str, float]) -> object:
    """A short fit on random records: only its schema, budgets and settings matter."""
    rng = np.random.default_rng(0)
    n = 2000
    X = {
        "age": rng.uniform(17, 90, n),
        "job": rng.choice(["office", "craft", "field", "none"], n),
        "sex": rng.choice(["f", "m"], n),
        "race": rng.choice(["a", "b", "c"], n),
    }
    settings = {"epsilon": epsilon, "delta": 1e-6, "distances": distances, "steps": 3}
    if kind == "ridge":
        schema = Schema(COLUMNS, Label("y", low=0, high=1, role="insensitive"))
        return CorrDPRidge(schema, **settings).fit(X, rng.random(n)).certificate_
    schema = Schema(COLUMNS, Label("y", [0, 1], role="insensitive"))
    return CorrDPLogisticRegression(schema, **settings).fit(X, rng.integers(0, 2, n)).certificate_


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    cases = [(4.0, {"age": 0.9, "job": 0.9, "y": 0.3}), (4.0, {"age": 0.3, "job": 0.5, "y": 0.3})]
    for epsilon, distances in cases:
        for kind in ("logistic", "ridge"):
            start = time.perf_counter()
            attacks = linear_attacks(linear_task(certificate(kind, epsilon, distances), steps=3))
            report = run_attacks(attacks, runs=runs)
            spent = time.perf_counter() - start
            print(f"{kind}, epsilon={epsilon}, distances={distances}: {spent:.0f} s")
            print(report, "\n", flush=True)


if __name__ == "__main__":
    main()
