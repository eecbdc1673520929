"""A data set made ready for an experiment: read once, split once, with its distances."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from corrdp.datasets import Dataset
from corrdp.distance import Distances, estimate_distances
from corrdp.erm.fit import TrainingData
from corrdp.erm.sampling import Solver
from corrdp.errors import ConfigurationError, UtilityWarning
from corrdp.experiments.settings import DELTA
from corrdp.records import read_label, read_records
from corrdp.schema import Schema

__all__ = ["Pair", "Task", "fixed_split", "scaled_label", "training_data"]

TEST_SHARE = 0.2
Pair: TypeAlias = tuple[Any, NDArray[Any]]
Model: TypeAlias = Literal["linear", "network"]


def scaled_label(schema: Schema, label: NDArray[Any]) -> NDArray[np.float64]:
    """The label as a loss takes it: codes of classes, or numbers on [−1, 1]."""
    if not schema.label.is_numeric:
        return label.astype(np.float64)
    low, high = schema.label.bounds
    scaled: NDArray[np.float64] = 2.0 * (label - low) / (high - low) - 1.0
    return scaled


def training_data(schema: Schema, X: Any, y: Any) -> TrainingData:
    """A table and its label, checked."""
    records = read_records(X, schema)
    label = read_label(y, schema.label, records.size)
    return TrainingData(records, label, scaled_label(schema, label))


def first_records(pair: Pair, count: int) -> Pair:
    """The first records of a table of columns and its label."""
    table, label = pair
    return {name: values[:count] for name, values in table.items()}, label[:count]


def fixed_split(data: Dataset, count: int | None = None) -> tuple[Pair, Pair]:
    """(train, test): 80 : 20, always the same; ``count`` keeps the first records of either."""
    parts = train_test_split(np.arange(len(data.y)), test_size=TEST_SHARE, random_state=0)
    train, test = (
        ({name: values[rows[:count]] for name, values in data.X.items()}, data.y[rows[:count]])
        for rows in parts
    )
    return train, test


@dataclass(frozen=True, repr=False, eq=False)
class Task:
    """One data set with one choice of roles.

    Attributes
    ----------
    schema : Schema
        With the roles of CorrDP; methods derive theirs from it.
    given : mapping of str to float, or None
        Stated distances; None where nobody stated any.
    train, test : (table, label)
    alpha : float
        Penalty of a linear model.
    model : {"linear", "network"}
    excess : bool
        Whether the excess empirical risk is measured.
    delta : float
        Below 1/n.
    solver : {"gradient", "sgd"}
        Steps on all records or on Poisson samples.
    """

    schema: Schema
    given: Mapping[str, float] | None
    train: Pair
    test: Pair
    alpha: float = 0.0
    model: Model = "linear"
    excess: bool = False
    delta: float = DELTA
    solver: Solver = "gradient"

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1.0 / len(self.train[1]):
            raise ConfigurationError(
                f"delta={self.delta!r} must be positive and lie below 1/n = "
                f"{1.0 / len(self.train[1]):.3g}, the share of one record; choose a smaller one"
            )

    @property
    def classes(self) -> bool:
        """Whether the label has classes."""
        return not self.schema.label.is_numeric

    @cached_property
    def train_data(self) -> TrainingData:
        """The training records, checked once."""
        return training_data(self.schema, *self.train)

    @cached_property
    def test_data(self) -> TrainingData:
        """The test records, checked once."""
        return training_data(self.schema, *self.test)

    @cached_property
    def published(self) -> Distances:
        """Upper confidence bounds as the paper has them, straight from the training records."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UtilityWarning)
            return estimate_distances(
                self.schema,
                *self.train,
                source="published",
                method="published",
                resolution="assume-smooth",
            )

    def distances(self, source: str) -> Distances:
        """What is known before a run.

        Raises
        ------
        ConfigurationError
            If distances should be given and nobody did.
        """
        if source == "published":
            return self.published
        if source != "given":
            return Distances({})
        if self.given is None:
            raise ConfigurationError("no distances are given for these roles")
        return Distances.given(self.given)
