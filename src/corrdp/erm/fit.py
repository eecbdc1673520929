"""One private training run: from a declaration and a design to a ledger.

The order is the guarantee: budgets are fixed and written to the ledger, then the noise is drawn,
then what came out is written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.encoding import Design, Encoder
from corrdp.erm.account import (
    LinearSetup,
    budget_entry,
    largest_noise,
    linear_table,
    release_entry,
)
from corrdp.erm.losses import Loss
from corrdp.erm.optimiser import Progress, averaged, train
from corrdp.erm.plan import TrainingPlan, default_plan
from corrdp.errors import ConfigurationError
from corrdp.noise import Lattice, NoiseSource
from corrdp.privacy.budget import Charge, PrivacyBudget
from corrdp.privacy.budgets import KindBudget
from corrdp.privacy.certificate import certified_loss
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.ledger import Ledger

__all__ = ["LinearTask", "PlanRequest", "fit_linear", "prepare"]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class PlanRequest:
    """What the user fixed of the plan; None leaves it to the public defaults."""

    steps: int | None = None
    learning_rate: float | None = None
    radius: float | None = None
    alpha: float = 0.0
    scale: float | None = None


@dataclass(frozen=True, repr=False)
class LinearTask:
    """A prepared run: nothing has been drawn yet.

    Attributes
    ----------
    declaration : Declaration
    budgets : tuple of KindBudget
    setup : LinearSetup
    """

    declaration: Declaration
    budgets: tuple[KindBudget, ...]
    setup: LinearSetup

    @property
    def encoder(self) -> Encoder:
        """The encoder that the mechanism uses."""
        return self.setup.table(self.declaration).encoder

    @property
    def plan(self) -> TrainingPlan:
        """The training plan."""
        return self.setup.plan


def default_scale(columns: int) -> float:
    """1/√J: encoded records then have norm about one."""
    return 1.0 / math.sqrt(columns)


def prepare(
    declaration: Declaration,
    loss: Loss,
    class_weights: tuple[float, ...] | None,
    request: PlanRequest,
    lattice: Lattice | None = None,
) -> LinearTask:
    """Fix everything that the guarantee rests on, from public numbers alone.

    Raises
    ------
    ConfigurationError
        If the sampler's slack does not fit into the reserved share of some kind's loss.
    """
    lattice = Lattice() if lattice is None else lattice
    scale = default_scale(len(declaration.schema.used)) if request.scale is None else request.scale
    table = linear_table(declaration, scale, loss, class_weights, lattice)
    budgets = declaration.budgets()
    budget = np.array([one.mu_squared for one in budgets])
    plan = default_plan(
        table,
        budget,
        declaration.n,
        steps=request.steps,
        learning_rate=request.learning_rate,
        radius=request.radius,
        alpha=request.alpha,
    )
    scale_limit = largest_noise(table, budget, plan) / lattice.spacing
    setup = LinearSetup(scale, loss, class_weights, lattice, plan, scale_limit)
    task = LinearTask(declaration, budgets, setup)
    check_slack(task)
    return task


def check_slack(task: LinearTask) -> None:
    """Refuse a run whose sampler would use more than the reserve (THEORY T14)."""
    sampler = task.setup.sampler(task.encoder)
    for budget in task.budgets:
        if not np.isfinite(budget.mu_squared):
            continue
        loss = certified_loss([float(np.sqrt(budget.mu_squared))], [sampler], budget.delta)
        if not loss <= budget.epsilon:
            raise ConfigurationError(
                f"the loss allowed for {budget.kind.name!r} (epsilon {budget.epsilon:g}) leaves no "
                "room for the sampler's finite precision; allow more or take fewer steps"
            )


def fit_linear(
    task: LinearTask,
    design: Design,
    label: FloatArray,
    noise: NoiseSource,
    budget: PrivacyBudget | None = None,
    progress: Progress | None = None,
) -> tuple[FloatArray, Ledger]:
    """Train and return (coefficients, ledger).

    Raises
    ------
    BudgetExceededError
        If ``budget`` has too little left; then nothing was drawn.
    """
    if budget is not None:
        target = task.declaration.target
        budget.charge(Charge.of("fit", target.epsilon, target.delta, task.budgets))
    ledger = Ledger().append("declaration", task.declaration.to_entry())
    ledger = ledger.append("linear-budget", budget_entry(task.setup, task.budgets))
    step_budget = np.array([one.mu_squared for one in task.budgets]) / task.plan.steps
    run = train(
        design,
        label,
        task.setup.table(task.declaration),
        step_budget,
        task.plan,
        task.setup.lattice,
        noise.child("gradient"),
        task.setup.max_scale,
        progress,
    )
    ledger = ledger.append("linear-release", release_entry(run, task.plan))
    return averaged(run.iterates, task.plan), ledger
