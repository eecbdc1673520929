"""Distances of a public table as they are counted, with and without rare levels."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from corrdp.distance.bounds import upper_limit
from corrdp.distance.plan import background_pairs, choose_background
from corrdp.distance.private import count_tables
from corrdp.experiments.results import Row
from corrdp.experiments.task import Task

__all__ = ["LEAST_RECORDS", "METHOD", "counted_distances", "frequent_distance"]

LEAST_RECORDS = 500
METHOD = "counted"


def frequent_distance(counts: NDArray[np.int64], least: int) -> float:
    """Largest TV between levels with at least ``least`` records; 0 where fewer than two have.

    ``counts`` has shape (levels, cells). Leaving levels out because they are rare conditions on
    the sample (THEORY T10): this is for looking at data, it calibrates nothing.
    """
    kept = counts[counts.sum(axis=1) >= least]
    if len(kept) < 2:
        return 0.0
    shares = kept / kept.sum(axis=1, keepdims=True)
    apart = 0.5 * np.abs(shares[:, None, :] - shares[None, :, :]).sum(axis=2)
    return float(apart.max())


def counted_distances(task: Task, dataset: str, label_role: str) -> list[Row]:
    """Rows of the plug-in distance of every column, of that among frequent levels, and UCBs."""
    records, label = task.train_data.records, task.train_data.label
    pairs = background_pairs(task.schema, "assume-smooth", "none")
    specs = [choose_background(*pair, "none", records.size, 0.05) for pair in pairs]
    tables = count_tables(specs, task.schema, records, label)
    rows = []
    for spec in specs:
        counts = tables[spec.name][0]
        values = {
            "plug-in": frequent_distance(counts, 1),
            "frequent": frequent_distance(counts, LEAST_RECORDS),
            "CP or H": upper_limit(tables[spec.name], 0.05 / len(specs), "auto").value,
            "UCB": task.published.value(spec.name),
            "rarest": float(counts.sum(axis=1).min()),
        }
        rows += [
            Row(
                dataset, label_role, METHOD, math.inf, task.delta, 0, f"{kind}:{spec.name}", value
            )
            for kind, value in values.items()
        ]  # fmt: skip
    return rows
