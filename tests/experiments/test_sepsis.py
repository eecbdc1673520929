"""Bins of age and given distances of sepsis, against direct counts of the primary cohort."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corrdp.datasets import load_sepsis
from corrdp.experiments import sepsis
from corrdp.experiments.fitting import fit
from corrdp.experiments.methods import method_named
from corrdp.experiments.settings import ExperimentSettings
from corrdp.experiments.task import Task, first_records
from corrdp.schema import Numeric, Role

SEX = "sex_0male_1female"


@pytest.fixture
def primary(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, np.ndarray]]:
    """The primary cohort as columns, the label one of them."""
    monkeypatch.setenv("CORRDP_DATA_HOME", str(data_dir))
    found = load_sepsis(frame="dict", cohort="primary")
    columns = {name: np.asarray(values) for name, values in found.X.items()}
    yield {**columns, sepsis.OUTCOME: np.asarray(found.y)}


def farthest(levels: np.ndarray, secret: np.ndarray) -> float:
    """Largest TV distance of the secret between two levels, by counting."""
    shares = [
        np.array([np.mean(secret[levels == level] == value) for value in np.unique(secret)])
        for level in np.unique(levels)
    ]
    return max(0.5 * float(np.abs(a - b).sum()) for a in shares for b in shares)


def test_pooling_follows_the_order_and_leaves_no_rare_bin() -> None:
    ages = np.repeat([0, 1, 2, 3, 4, 5], [3, 2, 5, 1, 1, 4])
    assert sepsis.pooled_edges(ages, 0, 5, 5) == (0.0, 1.5, 2.5, 5.0)
    # two at the end are too few for a bin of their own
    assert sepsis.pooled_edges(np.repeat([0, 1, 2], [5, 5, 2]), 0, 2, 5) == (0.0, 0.5, 2.0)
    assert sepsis.pooled_edges(np.repeat([0, 2], [5, 5]), 0, 2, 5) == (0.0, 0.5, 2.0)


def test_no_bin_of_the_primary_cohort_is_rare(primary: dict[str, np.ndarray]) -> None:
    edges = sepsis.age_edges()
    counts = np.histogram(primary[sepsis.AGE], edges)[0]
    assert len(counts) == 81
    assert counts.min() >= sepsis.LEAST_ADMISSIONS
    assert counts.sum() == 110_204
    # a year with enough admissions stands alone after a bin that is full
    assert {year + 0.5 for year in range(45, 94)} <= set(edges)


@pytest.mark.parametrize("role", ["insensitive", "sensitive"])
def test_given_distances_are_counted_and_rounded_up(
    primary: dict[str, np.ndarray], role: str
) -> None:
    secret = primary[SEX] if role == "insensitive" else 2 * primary[SEX] + primary[sepsis.OUTCOME]
    bins = np.searchsorted(sepsis.age_edges()[1:-1], primary[sepsis.AGE])
    for name, stated in sepsis.GIVEN[role].items():
        levels = bins if name == sepsis.AGE else primary[name]
        counted = farthest(levels, secret)
        assert stated == pytest.approx(math.ceil(100 * counted) / 100)
        assert counted <= stated


def quick_task(role: Role = "insensitive", **chosen: Any) -> Task:
    (table,) = (one for one in sepsis.EXPERIMENT.tables if one.label_role == role)
    return sepsis.load(table, 0, ExperimentSettings(quick=True, **chosen))


def test_the_solver_reaches_networks_with_noise(primary: dict[str, np.ndarray]) -> None:
    task = quick_task(solver="sgd", delta=1e-5)
    task = replace(task, train=first_records(task.train, 300))
    certificate = fit(task, method_named("CorrDP given"), 1.0, 0).certificate
    assert certificate is not None
    assert certificate.holds
    assert certificate.delta == 1e-5
    assert '"rate": 0.' in json.dumps(certificate.to_dict())
    assert fit(task, method_named("non-private"), 1.0, 0).certificate is None


def test_the_model_sees_only_bins(primary: dict[str, np.ndarray]) -> None:
    task = quick_task()
    column = task.schema.columns[sepsis.AGE]
    assert isinstance(column, Numeric)
    assert (column.resolution, column.bins) == ("binned", sepsis.age_edges())
    assert task.schema.names("sensitive") == (SEX,)
