"""What an experiment consists of, and the runs that it asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from corrdp.errors import ConfigurationError, SchemaError
from corrdp.experiments.claims import Claim
from corrdp.experiments.methods import METHODS, Method, method_named
from corrdp.experiments.results import Results, Row
from corrdp.experiments.settings import CALIBRATIONS, ExperimentSettings
from corrdp.experiments.task import Task
from corrdp.schema import Role

__all__ = ["Experiment", "Run", "Table", "check", "chosen_tables", "planned", "remembered"]

ALL = tuple(method.name for method in METHODS)
Direction: TypeAlias = Literal["higher", "lower"]


@dataclass(frozen=True)
class Table:
    """One table of results: a data set with its sensitive columns, and the label's role.

    Attributes
    ----------
    dataset : str
    label_role : {"sensitive", "insensitive", "public"}
    sensitive : tuple of str
        Columns; a sensitive label joins them.
    methods : tuple of str
    epsilons : tuple of float, optional
        The grid of this table, whatever the user asks for.
    fresh : bool
        Whether every seed draws its own records; else only the noise differs.
    given : bool
        Whether the experiment's given distances are those to ``sensitive``.
    """

    dataset: str
    label_role: Role
    sensitive: tuple[str, ...]
    methods: tuple[str, ...] = ALL
    epsilons: tuple[float, ...] | None = None
    fresh: bool = False
    given: bool = True

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
        (table, seed, settings) to a task; real data sets ignore the seed.
    judge : callable
        Results to claims.
    facts : callable, optional
        (settings) to rows about the data themselves, computed once.
    bound : str
        Why other sensitive columns cannot be chosen; empty where they can.
    """

    name: str
    title: str
    about: str
    metric: str
    better: Direction
    shown: tuple[str, ...]
    tables: tuple[Table, ...]
    load: Callable[[Table, int, ExperimentSettings], Task]
    judge: Callable[[Results], list[Claim]]
    facts: Callable[[ExperimentSettings], list[Row]] | None = None
    bound: str = ""


@dataclass(frozen=True)
class Run:
    """One training to do, and the tables that its numbers belong to."""

    table: Table
    method: Method
    epsilon: float
    seed: int
    roles: tuple[str, ...]

    @property
    def keys(self) -> tuple[tuple[str, str, str, float, int], ...]:
        """What identifies it in results, once for every table."""
        dataset, method = self.table.dataset, self.method.name
        return tuple((dataset, role, method, self.epsilon, self.seed) for role in self.roles)

    @property
    def certificate(self) -> str:
        """File name of its certificate."""
        folder = "/".join(self.table.key).replace(" ", "-").replace(",", "")
        name = f"{self.method.name}-{self.epsilon:g}-{self.seed}"
        return f"certificates/{folder}/{name.replace(' ', '-').replace(',', '')}.json"


def chosen_tables(experiment: Experiment, settings: ExperimentSettings) -> tuple[Table, ...]:
    """The tables that the settings ask for, with the methods that can and shall be run.

    Sensitive columns that are those of some table choose it; others make tables of their own, for
    which no distances are given.

    Raises
    ------
    ConfigurationError
        If the experiment has no such tables, or its sensitive columns cannot be chosen.
    """
    tables = _with_sensitive(experiment, settings)
    roles = dict.fromkeys(table.label_role for table in tables)
    for role in settings.label_roles or ():
        if role not in roles:
            raise ConfigurationError(
                f"{experiment.name}: no table with a label of role {role!r}; use {', '.join(roles)}"
            )
    return tuple(
        replace(table, methods=_methods(table, settings))
        for table in tables
        if settings.label_roles is None or table.label_role in settings.label_roles
    )


def _with_sensitive(experiment: Experiment, settings: ExperimentSettings) -> tuple[Table, ...]:
    names = settings.sensitive
    if names is None:
        return experiment.tables
    own = tuple(table for table in experiment.tables if set(table.sensitive) == set(names))
    if not own and experiment.bound:
        raise ConfigurationError(
            f"{experiment.name}: sensitive={','.join(names)}: {experiment.bound}; leave it"
        )
    first, columns = experiment.tables[0].dataset, tuple(sorted(names))
    return own or tuple(
        replace(
            table, dataset=f"{first} S={','.join(columns)}", sensitive=columns, given=False
        )
        for table in experiment.tables
        if table.dataset == first
    )  # fmt: skip


def _methods(table: Table, settings: ExperimentSettings) -> tuple[str, ...]:
    """Baselines, and CorrDP's ways of the calibrations, by given distances where there are any."""

    def wanted(method: Method) -> bool:
        if method.distances == "none":
            return True
        known = table.given or method.distances != "given"
        return known and method.calibration in settings.calibration

    return tuple(name for name in table.methods if wanted(method_named(name)))


def remembered(experiment: Experiment, settings: ExperimentSettings) -> ExperimentSettings:
    """The settings that change what a run of the experiment is; the others as usual.

    Sensitive columns of the experiment's own are the usual ones.
    """
    own = all(table.given for table in chosen_tables(experiment, settings))
    return replace(
        settings,
        epsilons=None,
        sensitive=None if own else settings.sensitive,
        label_roles=None,
        seeds=None,
        calibration=CALIBRATIONS,
    )


def check(experiment: Experiment, settings: ExperimentSettings) -> None:
    """Refuse, before anything runs, what the experiment cannot do.

    Raises
    ------
    ConfigurationError
        Names the setting, its value and the mend: sensitive columns that are none, δ ≥ 1/n.
    """
    tables = chosen_tables(experiment, settings)
    if settings.delta is None and all(table.given for table in tables):
        return
    for table in {table.dataset: table for table in tables}.values():
        try:
            schema = experiment.load(table, 0, settings).schema
        except (ConfigurationError, SchemaError) as error:
            raise ConfigurationError(f"{experiment.name}: {error}") from None
        if set(schema.used) <= set(table.sensitive):
            raise ConfigurationError(
                f"{experiment.name}: sensitive={','.join(table.sensitive)} is every column; leave "
                "out at least one"
            )


def planned(experiment: Experiment, settings: ExperimentSettings) -> list[Run]:
    """Every run, seed after seed, so that a run that is stopped leaves whole seeds behind.

    A method that does not look at the roles is run once for all tables of a data set, and one
    without noise for the first seed only.

    Raises
    ------
    ConfigurationError
        As :func:`chosen_tables`.
    """
    tables = chosen_tables(experiment, settings)
    runs: list[Run] = []
    for seed in range(settings.seed_count):
        for table in tables:
            for method in METHODS:
                if method.name in table.methods:
                    sharing = _sharing(tables, table, method)
                    if sharing[0] is table:
                        roles = tuple(one.label_role for one in sharing)
                        runs += _runs(table, method, settings.grid, seed, roles)
    return runs


def _sharing(tables: tuple[Table, ...], table: Table, method: Method) -> list[Table]:
    """Tables that a run's numbers belong to; the first of them is where it is run."""
    if not method.blind:
        return [table]
    return [t for t in tables if t.dataset == table.dataset and method.name in t.methods]


def _runs(
    table: Table, method: Method, grid: tuple[float, ...], seed: int, roles: tuple[str, ...]
) -> list[Run]:
    grid = grid if table.epsilons is None else table.epsilons
    if not method.private:
        if seed and not table.fresh:
            return []
        grid = (math.inf,)
    return [Run(table, method, float(epsilon), seed, roles) for epsilon in grid]
