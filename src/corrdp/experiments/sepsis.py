"""Sepsis survival: a two-layer network; claim (c).

Age is a binned column of the study cohort: its bins are years, and years with fewer than 500
admissions in the primary cohort are pooled with the next older ones. The given distances are
exact plug-in values on these bins in the primary cohort, rounded up to two digits, one set for
each role of the label. The primary cohort contains the study cohort; both are public here, and
elsewhere bins and distances of this making would be a release.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from corrdp.datasets import load_sepsis
from corrdp.experiments.claims import Claim, Question
from corrdp.experiments.comparison import close_to_semi, estimated_distances
from corrdp.experiments.experiment import Experiment, Table
from corrdp.experiments.results import Results
from corrdp.experiments.settings import ExperimentSettings
from corrdp.experiments.task import Task, fixed_split
from corrdp.schema import Numeric, Schema

__all__ = ["EXPERIMENT"]

NAME = "sepsis"
SENSITIVE = ("sex_0male_1female",)
QUICK_RECORDS = 2_000
AGE, EPISODE, OUTCOME = "age_years", "episode_number", "hospital_outcome_1alive_0dead"
LEAST_ADMISSIONS = 500
# by the label's role: an insensitive one has a distance, a sensitive one joins sex in the tuple
GIVEN = {
    "insensitive": {AGE: 0.29, EPISODE: 0.09, OUTCOME: 0.04},
    "sensitive": {AGE: 0.34, EPISODE: 0.09},
}


def pooled_edges(ages: NDArray[np.int64], low: int, high: int, least: int) -> tuple[float, ...]:
    """Edges of bins between whole years, from young to old, each with ``least`` ages at least.

    The last bin takes what would be left over, so that it has as many too.
    """
    counts = np.bincount(ages, minlength=high + 1)
    edges, rows = [float(low)], 0
    for year in range(low, high):
        rows += int(counts[year])
        if rows >= least and counts[year + 1 :].sum() >= least:
            edges.append(year + 0.5)
            rows = 0
    return (*edges, float(high))


@lru_cache(maxsize=1)
def age_edges() -> tuple[float, ...]:
    """Bins of age, from the primary cohort."""
    found = load_sepsis(frame="dict", cohort="primary")
    column = found.schema.columns[AGE]
    assert isinstance(column, Numeric)
    ages = np.asarray(found.X[AGE], dtype=np.int64)
    return pooled_edges(ages, int(column.low), int(column.high), LEAST_ADMISSIONS)


def with_bins(schema: Schema) -> Schema:
    """The schema with age and episode in bins, which is all that a model sees of them.

    A table of bins alone has few cells, on which networks train fast.
    """
    age, episode = schema.columns[AGE], schema.columns[EPISODE]
    assert isinstance(age, Numeric)
    assert isinstance(episode, Numeric)
    columns = {
        **schema.columns,
        AGE: replace(age, bins=age_edges(), resolution="binned"),
        EPISODE: replace(episode, resolution="binned"),
    }
    return Schema(columns, schema.label, schema.groups)


def load(table: Table, seed: int, settings: ExperimentSettings) -> Task:
    """The study cohort, split 80 : 20."""
    found = load_sepsis(
        frame="dict", cohort="study", sensitive=table.sensitive, label_role=table.label_role
    )
    return Task(
        with_bins(found.schema),
        GIVEN[table.label_role] if table.given else None,
        *fixed_split(found, QUICK_RECORDS if settings.quick else None),
        model="network",
        delta=settings.target_delta,
        solver=settings.solver,
    )


def judge(results: Results) -> list[Claim]:
    """Claims (c) and (g)."""
    question = Question(results, (NAME, "insensitive"), "log-loss", "lower")
    sensitive = Question(results, (NAME, "sensitive"), "log-loss", "lower")
    why = (
        "A network gains where the label is not sensitive and tells little about sex. With a "
        "sensitive label a change of the label moves every block and distances gain nothing."
    )
    return [
        close_to_semi(
            "c",
            "Sepsis survival, two-layer network: matches semi, ahead of DP.",
            question,
            [sensitive],
            why,
        ),
        estimated_distances(
            results,
            question,
            "A bin of age that holds 500 admissions of the primary cohort holds far fewer of the "
            "study cohort: age and the episode are estimated at 1, and what is gained comes of the "
            "outcome's estimate, which has its price.",
        ),
    ]


EXPERIMENT = Experiment(
    name=NAME,
    title="Sepsis survival: a two-layer network",
    about=(
        "Study cohort, 19,051 admissions, a fixed fifth of them for testing; sex is sensitive. 32 "
        "hidden units, sensitive columns by a linear skip. Age is seen in 81 bins: years, those "
        "with fewer than 500 admissions in the primary cohort pooled with older ones. Given "
        "distances are exact plug-in values on these bins in the primary cohort (110,204 "
        "admissions, the study cohort among them), rounded up: age .29, episode .09, outcome .04; "
        "to sex and a sensitive outcome together age .34, episode .09. Both cohorts are public; "
        "of a private file bins and distances of this making would be a release. A record is an "
        "admission, and ε protects one admission. Most survive: accuracy says nothing."
    ),
    metric="log-loss",
    better="lower",
    shown=("log-loss", "AUC", "balanced accuracy"),
    tables=(Table(NAME, "insensitive", SENSITIVE), Table(NAME, "sensitive", SENSITIVE)),
    load=load,
    judge=judge,
)
