"""What an experiment consists of, and the runs that it asks for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from corrdp.errors import ConfigurationError
from corrdp.experiments.claims import Claim
from corrdp.experiments.methods import METHODS, Method
from corrdp.experiments.results import Results, Row
from corrdp.experiments.task import Task

__all__ = ["EPSILONS", "QUICK_EPSILONS", "Experiment", "Run", "Table", "planned"]

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
QUICK_EPSILONS = (0.1, 1.0)
SEEDS, QUICK_SEEDS = 10, 3
ALL = tuple(method.name for method in METHODS)
Direction: TypeAlias = Literal["higher", "lower"]


@dataclass(frozen=True)
class Table:
    """One table of results: a data set with its sensitive columns, and the label's role.

    Attributes
    ----------
    dataset, label_role : str
    methods : tuple of str
    epsilons : tuple of float, optional
        The grid of this table, whatever the user asks for.
    fresh : bool
        Whether every seed draws its own records; else only the noise differs.
    """

    dataset: str
    label_role: str
    methods: tuple[str, ...] = ALL
    epsilons: tuple[float, ...] | None = None
    fresh: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What identifies it in results."""
        return self.dataset, self.label_role


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper.

    Attributes
    ----------
    name, title, about : str
    metric : str
        The metric that claims and figures are about.
    better : {"higher", "lower"}
    shown : tuple of str
        Metrics that are printed, the main one first.
    tables : tuple of Table
    load : callable
        (data set, label role, seed, quick) to a task; real data sets ignore the seed.
    judge : callable
        Results to claims.
    facts : callable, optional
        (quick) to rows about the data themselves, computed once.
    """

    name: str
    title: str
    about: str
    metric: str
    better: Direction
    shown: tuple[str, ...]
    tables: tuple[Table, ...]
    load: Callable[[str, str, int, bool], Task]
    judge: Callable[[Results], list[Claim]]
    facts: Callable[[bool], list[Row]] | None = None


@dataclass(frozen=True)
class Run:
    """One training to do, and the tables that its numbers belong to."""

    dataset: str
    label_role: str
    method: Method
    epsilon: float
    seed: int
    roles: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, str, float, int]:
        """What identifies it in results."""
        return self.dataset, self.label_role, self.method.name, self.epsilon, self.seed

    @property
    def certificate(self) -> str:
        """File name of its certificate."""
        folder = f"{self.dataset}/{self.label_role}".replace(" ", "-").replace(",", "")
        name = f"{self.method.name}-{self.epsilon:g}-{self.seed}"
        return f"certificates/{folder}/{name.replace(' ', '-').replace(',', '')}.json"


def planned(experiment: Experiment, seeds: int, epsilons: Sequence[float]) -> list[Run]:
    """Every run, seed after seed, so that a run that is stopped leaves whole seeds behind.

    A method that does not look at the roles is run once for all tables of a data set, and one
    without noise for the first seed only.

    Raises
    ------
    ConfigurationError
        Names the ε or the number of seeds that is out of range.
    """
    if isinstance(seeds, bool) or not seeds >= 1:
        raise ConfigurationError(f"seeds={seeds!r} must be a whole number >= 1")
    for epsilon in epsilons:
        if not 0 < epsilon < math.inf:
            raise ConfigurationError(f"epsilon={epsilon!r} must be a positive finite number")
    runs: list[Run] = []
    for seed in range(seeds):
        for table in experiment.tables:
            for method in METHODS:
                if method.name in table.methods and not _run_elsewhere(experiment, table, method):
                    runs += _runs(experiment, table, method, epsilons, seed)
    return runs


def _run_elsewhere(experiment: Experiment, table: Table, method: Method) -> bool:
    """Whether an earlier table of the same data set has this method's numbers."""
    first = next(
        other
        for other in experiment.tables
        if other.dataset == table.dataset and method.name in other.methods
    )
    return method.blind and first is not table


def _runs(
    experiment: Experiment,
    table: Table,
    method: Method,
    epsilons: Sequence[float],
    seed: int,
) -> list[Run]:
    grid = epsilons if table.epsilons is None else table.epsilons
    if not method.private:
        if seed and not table.fresh:
            return []
        grid = (math.inf,)
    roles: tuple[str, ...] = (table.label_role,)
    if method.blind:
        roles = tuple(
            other.label_role
            for other in experiment.tables
            if other.dataset == table.dataset and method.name in other.methods
        )
    return [
        Run(table.dataset, table.label_role, method, float(epsilon), seed, roles)
        for epsilon in grid
    ]
