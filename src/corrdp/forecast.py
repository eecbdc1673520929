"""What a plan will cost, from public numbers alone: noise by column, and what would change it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.allocation import allocate
from corrdp.distance import Distances
from corrdp.errors import ConfigurationError
from corrdp.neighbours import INSENSITIVE, RECORD, SENSITIVE
from corrdp.plan_file import Plan
from corrdp.privacy.budgets import KindBudget

__all__ = ["ColumnNoise", "Forecast", "Scenario", "forecast"]

FloatArray: TypeAlias = NDArray[np.float64]
TRIED = (0.0, 0.1, 1.0)
KNOWN = {"solver": "gradient", "calibration": "optimal"}


@dataclass(frozen=True)
class ColumnNoise:
    """One block of the gradient.

    Attributes
    ----------
    name, role : str
    distance : float or None
        d of the column's kind; None for the intercept and public columns.
    epsilon : float or None
        Loss allowed for a change of the column (or of its group).
    bound : float or None
        Most that a change of one record can move the block of the mean gradient (L2 norm); None
        for the label, which has no block: its distance limits the noise of all the others.
    noise_start, noise_edge : float or None
        Standard deviation of the noise on each coordinate of that block, if a single step spent
        the whole budget (a step of a run with T steps gets √T times as much): at θ = 0, and at
        the far end of the public ball. Noise is re-allocated at every iterate and lies between.
    """

    name: str
    role: str
    distance: float | None
    epsilon: float | None
    bound: float | None
    noise_start: float | None
    noise_edge: float | None


@dataclass(frozen=True)
class Scenario:
    """Norm of that noise over all coordinates, under other circumstances."""

    name: str
    start: float
    edge: float


@dataclass(frozen=True)
class Forecast:
    """Result of :func:`forecast`.

    Attributes
    ----------
    records, steps : int
    epsilon, delta, learning_rate : float
    largest : float
        Largest possible norm of the mean gradient, to compare noise with.
    supposed : mapping
        Parameters that the forecast replaced because it knows full-batch steps with the least
        noise only.
    distances_known : bool
        False where distances will be estimated: then d = 1 was assumed in ``columns``.
    columns : tuple of ColumnNoise
    scenarios : tuple of Scenario
    """

    records: int
    epsilon: float
    delta: float
    steps: int
    learning_rate: float
    largest: float
    supposed: Mapping[str, Any]
    distances_known: bool
    columns: tuple[ColumnNoise, ...]
    scenarios: tuple[Scenario, ...]


def forecast(plan: Plan, records: int) -> Forecast:
    """Noise of a plan for a number of records; reads no data.

    Raises
    ------
    ConfigurationError
        If the plan trains without privacy, or the model has no forecast.
    """
    model = plan.estimator()
    if not hasattr(model, "_task"):
        raise ConfigurationError(f"corrdp plan knows no forecast for model = {plan.model!r}")
    if math.isinf(model.epsilon):
        raise ConfigurationError("epsilon = inf is training without privacy: there is no noise")
    known = isinstance(model.distances, (Mapping, Distances))
    if not known:
        model.set_params(distances=None)
    supposed = _suppose(model)
    task = model._task(records, False)
    table = task.setup.table(task.declaration)
    return Forecast(
        records=records,
        epsilon=float(model.epsilon),
        delta=float(model.delta),
        steps=task.plan.steps,
        learning_rate=task.plan.learning_rate,
        largest=float(table.residual_bound * table.encoder.norm_bound),
        supposed=supposed,
        distances_known=known,
        columns=_columns(task, plan),
        scenarios=tuple(_scenarios(model, records, task)),
    )


def _suppose(model: Any) -> dict[str, Any]:
    """Replace what has no forecast; returns the replacements."""
    params = model.get_params(deep=False)
    supposed = {key: value for key, value in KNOWN.items() if params.get(key, value) != value}
    if "solver" in supposed:
        model.set_params(sample_rate=None)
    model.set_params(**supposed)
    return supposed


def _sigma(task: Any) -> tuple[FloatArray, FloatArray]:
    """Noise per block on the mean gradient, the whole budget in one step: at θ = 0, at the edge."""
    table, n = task.setup.table(task.declaration), task.declaration.n
    budget = np.array([one.mu_squared for one in task.budgets])

    def noise(sensitivity: FloatArray) -> FloatArray:
        dimensions = table.encoder.dimensions
        sigma: FloatArray = allocate(sensitivity, budget, dimensions, tolerance=1e-3).sigma / n
        return sigma

    return noise(table.infimum), noise(table.supremum(task.plan.radius))


def _scenario(name: str, task: Any) -> Scenario:
    dimensions = task.encoder.dimensions
    start, edge = (float(np.sqrt(np.sum(dimensions * sigma**2))) for sigma in _sigma(task))
    return Scenario(name, start, edge)


def _columns(task: Any, plan: Plan) -> tuple[ColumnNoise, ...]:
    table, n = task.setup.table(task.declaration), task.declaration.n
    schema = plan.schema
    budgets: dict[str, KindBudget] = {budget.kind.name: budget for budget in task.budgets}
    limited = [i for i, budget in enumerate(task.budgets) if math.isfinite(budget.mu_squared)]
    bounds = table.supremum(task.plan.radius)[limited].max(axis=0) / n
    rows = []
    for block, *numbers in zip(table.encoder.blocks, bounds, *_sigma(task)):
        rows.append(_row(block.name, plan, budgets, *map(float, numbers)))
    return (*rows, _row(schema.label.name, plan, budgets))


def _row(
    name: str,
    plan: Plan,
    budgets: Mapping[str, KindBudget],
    bound: float | None = None,
    start: float | None = None,
    edge: float | None = None,
) -> ColumnNoise:
    schema = plan.schema
    known = name in schema.used or name == schema.label.name
    role = schema.role(name) if known else "–"
    group = schema.group_of(name)
    budget = budgets.get(SENSITIVE if role == "sensitive" else group.name if group else name)
    distance = None if budget is None else budget.distance
    epsilon = None if budget is None else budget.epsilon
    return ColumnNoise(name, role, distance, epsilon, bound, start, edge)


def _scenarios(model: Any, records: int, task: Any) -> list[Scenario]:
    """Halved ε, doubled n, ordinary DP, and one distance for all columns."""
    params = model.get_params(deep=False)
    schema, epsilon = params["schema"], params["epsilon"]
    kinds = [kind.name for kind in task.declaration.kinds]
    kinds = [name for name in kinds if name not in (SENSITIVE, INSENSITIVE, RECORD)]

    def changed(name: str, changes: dict[str, Any], n: int = records) -> Scenario:
        return _scenario(name, type(model)(**{**params, **changes})._task(n, False))

    cases = [_scenario("as planned", task)]
    for d in TRIED if kinds else ():
        cases.append(changed(f"all distances {d:g}", {"distances": dict.fromkeys(kinds, d)}))
    ordinary = schema.all_sensitive()
    cases.append(changed("ordinary DP", {"schema": ordinary, "distances": None}))
    cases.append(changed("half the epsilon", {"epsilon": epsilon / 2}))
    cases.append(changed("twice the records", {}, 2 * records))
    return cases
