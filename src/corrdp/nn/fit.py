"""One private training run of a network: from a declaration and records to a ledger.

The order is the guarantee, as for linear models: budgets are fixed and written to the ledger, then
noise is drawn, then what came out is written. A run can be interrupted: its checkpoint holds the
ledger so far and the released iterates, and the resumed run is certified as one.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.distance import EstimateSettings
from corrdp.erm.fit import TrainingData
from corrdp.errors import ConfigurationError
from corrdp.nn.account import (
    budget_entry,
    release_entry,
)
from corrdp.nn.cells import inputs_of
from corrdp.nn.checkpoint import Checkpoint, Latest
from corrdp.nn.recipe import NetworkRecipe, NetworkTask
from corrdp.nn.trainer import Progress, averaged, train_network
from corrdp.noise import NoiseSource
from corrdp.privacy.budget import Charge, PrivacyBudget
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.estimate import (
    check_affordable,
    declaration_of,
    plan_of,
    release_distances,
)
from corrdp.privacy.ledger import Ledger

__all__ = ["fit_network"]

FloatArray: TypeAlias = NDArray[np.float64]


def fit_network(
    declaration: Declaration,
    recipe: NetworkRecipe,
    data: TrainingData,
    noise: NoiseSource,
    *,
    estimate: EstimateSettings | None = None,
    budget: PrivacyBudget | None = None,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[FloatArray, NetworkTask, Ledger]:
    """Estimate distances if asked to, train, and return (parameters, task, ledger).

    Raises
    ------
    BudgetExceededError
        If ``budget`` has too little left; then nothing was drawn.
    ConfigurationError
        If some kind's loss leaves no room, or the checkpoint is of another run.
    """
    saved = None if checkpoint is None else checkpoint.read()
    if saved is None:
        task, ledger = _begin(declaration, recipe, data, noise, estimate, budget)
        run = None
    else:
        ledger, run = saved
        task = _resumed(declaration, recipe, ledger)
    state = Latest(checkpoint, ledger)
    table, plan = task.table, task.setup.plan
    inputs, label = inputs_of(task.encoder, table.query.network, data.records, data.scaled)
    sampling = task.setup.sampling
    step_budget = np.array([one.mu_squared for one in task.budgets]) / plan.steps
    if sampling is not None:
        step_budget = np.array(sampling.change)
    try:
        run = train_network(
            inputs,
            label,
            table,
            step_budget,
            plan,
            noise,
            task.setup.max_scale,
            sampling=sampling,
            fixed_noise=task.fixed_noise,
            start=run,
            progress=progress,
            keep=state.keep,
        )
    except BaseException:
        state.save()
        raise
    if checkpoint is not None:
        checkpoint.remove()
    ledger = ledger.append("network-release", release_entry(run, plan))
    return averaged(run.iterates, plan), task, ledger


def _begin(
    declaration: Declaration,
    recipe: NetworkRecipe,
    data: TrainingData,
    noise: NoiseSource,
    estimate: EstimateSettings | None,
    budget: PrivacyBudget | None,
) -> tuple[NetworkTask, Ledger]:
    """Charge, estimate the distances where asked to, and fix the training's budget."""
    ledger = Ledger().append("declaration", declaration.to_entry())
    task = recipe.prepare(declaration)
    if estimate is not None:
        plan = plan_of(declaration, estimate)
        recipe.prepare(check_affordable(declaration, plan))
    if budget is not None:
        budget.charge(_charge(task, adaptive=estimate is not None))
    if estimate is not None:
        declaration, ledger = release_distances(
            declaration, plan, data.records, data.label, noise.child("distances"), ledger
        )
        task = recipe.prepare(declaration)
    return task, ledger.append("network-budget", budget_entry(task.setup, task.budgets))


def _resumed(declaration: Declaration, recipe: NetworkRecipe, ledger: Ledger) -> NetworkTask:
    """The task of an interrupted run; declaration and plan must be the same."""
    same = _content(ledger.one("declaration")) == json.loads(json.dumps(declaration.to_entry()))
    task = recipe.prepare(declaration_of(ledger)) if same else None
    if task is None or _content(ledger.one("network-budget")) != json.loads(
        json.dumps(budget_entry(task.setup, task.budgets))
    ):
        raise ConfigurationError(
            "the checkpoint belongs to another run (schema, target, number of records or plan "
            "differ); name another file or delete it"
        )
    return task


def _content(entry: Any) -> dict[str, Any]:
    return {k: v for k, v in entry.items() if k not in ("type", "previous", "digest")}


def _charge(task: NetworkTask, *, adaptive: bool) -> Charge:
    """What a run takes from a shared budget; only calibrated noise stays within its target."""
    target = task.declaration.target
    if task.fixed_noise is not None:
        raise ConfigurationError(
            "budget= cannot be charged with calibration='published', whose noise is not proved to "
            "meet its target; use calibration='optimal'"
        )
    charge = Charge.of("fit", target, task.budgets)
    if task.setup.sampling is not None:
        # certified at one (ε, δ) by T7: no μ that could be added to others
        charge = replace(charge, mu_squared={})
    return replace(charge, distances={}, mu_squared={}, adaptive=True) if adaptive else charge
