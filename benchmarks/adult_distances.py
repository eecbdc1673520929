"""Distances of Adult's columns from (race, sex): the table of docs/distances.md.

    CORRDP_DATA_HOME=FOLDER python benchmarks/adult_distances.py [--seeds 20]

prints a markdown table. Except for the private column these numbers are computed straight from
the records, which are public here; for a private table they would be a release.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace

import numpy as np

from corrdp.datasets import load_adult
from corrdp.distance import (
    EstimateSettings,
    distance_rows,
    estimate_distances,
    estimate_private,
    plan_estimate,
)
from corrdp.errors import UtilityWarning
from corrdp.noise import noise_source
from corrdp.privacy import gdp
from corrdp.records import read_label, read_records
from corrdp.schema import Numeric, Schema

#: Declared from what the columns mean: ages of life, stages of school, part and full time, and
#: an extra bin for the many zeros of the capital columns.
BINS = {
    "age": (17, 24, 34, 44, 54, 90),
    "education-num": (1, 8, 9, 12, 16),
    "hours-per-week": (1, 34, 40, 99),
    "capital-gain": (0, 0, 10_000),
    "capital-loss": (0, 0, 2_500),
}
EPSILON_ESTIMATE, DELTA = 0.15, 1e-6


def binned(schema: Schema) -> Schema:
    """The schema with the declared bins, seen by the model at their resolution."""
    columns = dict(schema.columns)
    for name, edges in BINS.items():
        column = columns[name]
        assert isinstance(column, Numeric)
        columns[name] = replace(column, bins=edges, resolution="binned")
    return Schema(columns, schema.label, schema.groups)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore", UtilityWarning)
    adult = load_adult(frame="dict")
    schema = binned(adult.schema)
    found = {
        method: estimate_distances(schema, adult.X, adult.y, source="published", method=method)
        for method in ("plug-in", "CP", "H", "published")
    }
    records = read_records(adult.X, schema)
    label = read_label(adult.y, schema.label, records.size)
    mu = float(gdp.mu(EPSILON_ESTIMATE, DELTA))
    plan = plan_estimate(schema, records.size, mu, EstimateSettings())
    private = [
        estimate_private(plan, records, label, noise_source(s)).distances for s in range(seeds)
    ]
    print("| column | levels | rarest | plug-in | CP | H | published | private | d̂ | reading |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    specs = {t.spec.name: t.spec for t in plan.tables} | {g.spec.name: g.spec for g in plan.skipped}
    for row in distance_rows(schema, found["CP"]):
        name = row["name"]
        limits = [d[name].high for d in private if d[name].high is not None]
        limit = f"{np.mean(limits):.3f}" if limits else "not released"
        used = np.mean([d[name].value for d in private])
        values = " | ".join(f"{found[m][name].value:.3f}" for m in found)
        print(
            f"| {name} | {specs[name].levels.size} | {row['rarest_count']} | {values} | {limit} | "
            f"{used:.2f} | {row['reading']} |"
        )
    print(f"\nprivate: ε = {EPSILON_ESTIMATE}, δ = {DELTA:g}, μ = {mu:.4f}, mean of {seeds} seeds")
    print(f"advice: {plan.advice()}")


if __name__ == "__main__":
    main()
