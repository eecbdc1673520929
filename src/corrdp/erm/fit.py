"""One private training run: from a declaration and a design to a ledger.

The order is the guarantee: budgets are fixed and written to the ledger, then the noise is drawn,
then what came out is written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from corrdp.distance import EstimateSettings
from corrdp.encoding import Encoder
from corrdp.erm.account import (
    LinearSetup,
    budget_entry,
    largest_noise,
    linear_table,
    release_entry,
)
from corrdp.erm.fixed_noise import fixed_sampling
from corrdp.erm.losses import Loss
from corrdp.erm.optimiser import Progress, averaged, train
from corrdp.erm.plan import STEPS_MAX, TrainingPlan, default_plan, single_step_noise
from corrdp.erm.published import (
    Calibration,
    block_noise,
    known_distances,
    least_distances,
    linear_noise,
    published_account,
    standard_noise,
)
from corrdp.erm.sampling import (
    Solver,
    check_full_batch_slack,
    check_sampled_slack,
    check_solver,
    checked_rate,
    default_rate,
    full_batch_presence,
    linear_step_table,
    sampled_budgets,
)
from corrdp.erm.sensitivity import SensitivityTable
from corrdp.errors import ConfigurationError
from corrdp.noise import Lattice, NoiseSource
from corrdp.privacy.budget import Charge, PrivacyBudget
from corrdp.privacy.budgets import KindBudget
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.estimate import check_affordable, plan_of, release_distances
from corrdp.privacy.ledger import Ledger
from corrdp.records import Records

__all__ = [
    "LinearTask",
    "PlanRequest",
    "Recipe",
    "Solver",
    "TrainingData",
    "fit_linear",
    "prepare",
]

FloatArray: TypeAlias = NDArray[np.float64]
# presence of a full-batch step over the sample rate, beyond which sampling costs much noise
DEAR_PRESENCE = 0.2


@dataclass(frozen=True)
class PlanRequest:
    """What the user fixed of the plan; None leaves it to the public defaults."""

    steps: int | None = None
    learning_rate: float | None = None
    radius: float | None = None
    alpha: float = 0.0
    scale: float | None = None
    solver: Solver = "gradient"
    sample_rate: float | None = None
    calibration: Calibration = "optimal"

    def __post_init__(self) -> None:
        if self.calibration not in get_args(Calibration):
            raise ConfigurationError(
                f"calibration={self.calibration!r} is unknown; use one of "
                f"{', '.join(get_args(Calibration))}"
            )
        check_solver(self.solver, self.sample_rate)


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

    @property
    def fixed_noise(self) -> FloatArray | None:
        """σ per block of the published calibration; None where steps are allocated."""
        base = self.setup.base_noise
        if base is None:
            return None
        table = self.setup.table(self.declaration)
        return block_noise(table, base, known_distances(self.declaration))


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
    if request.solver == "sgd":
        # the number of steps enters the accountant, so it must not follow a released distance
        budget = np.array([one.fixed for one in budgets])
    plan = plan_training(declaration, table, budget, request)
    if request.calibration == "published":
        setup = plan_published(
            declaration, LinearSetup(scale, loss, class_weights, lattice, plan, 0.0), request
        )
        return LinearTask(declaration, budgets, setup)
    sampling = None
    if request.solver == "sgd":
        step = linear_step_table(table, plan.radius)
        full = full_batch_presence(step, budget, plan.steps)
        rate = checked_rate(request.sample_rate, default_rate(full))
        sampling = sampled_budgets(declaration, budgets, step, rate, plan.steps, full)
    scale_limit = largest_noise(table, budget, plan, sampling) / lattice.spacing
    setup = LinearSetup(scale, loss, class_weights, lattice, plan, scale_limit, sampling)
    task = LinearTask(declaration, budgets, setup)
    check_slack(task)
    return task


def plan_training(
    declaration: Declaration, table: SensitivityTable, budget: FloatArray, request: PlanRequest
) -> TrainingPlan:
    """Steps, rate, radius and penalty from public numbers; see :func:`default_plan`."""

    def plan(budget: FloatArray, steps: int | None = request.steps) -> TrainingPlan:
        return default_plan(
            table,
            budget,
            declaration.n,
            steps=steps,
            learning_rate=request.learning_rate,
            radius=request.radius,
            alpha=request.alpha,
        )

    found = plan(budget)
    if request.calibration == "optimal":
        if request.steps is None and request.sample_rate is not None:
            # a small rate is dear in few steps (THEORY T7): take more, and smaller ones
            rate = checked_rate(request.sample_rate, 1.0)
            single = full_batch_presence(linear_step_table(table, found.radius), budget, 1)
            steps = (single / (DEAR_PRESENCE * rate)) ** 2
            if steps > found.steps:
                return plan(budget, max(found.steps, min(math.ceil(steps), STEPS_MAX)))
        return found
    # budgets that would need as much noise as the published rule adds
    needed = single_step_noise(table, budget, found.radius, declaration.n)
    base = standard_noise(declaration, declaration.budgets(), table, 1)
    noise = block_noise(table, base, least_distances(declaration))
    added = math.sqrt(float(table.encoder.dimensions @ noise**2)) / declaration.n
    if not (needed > 0 and added > 0):
        return found
    return plan(budget * (needed / added) ** 2)


def plan_published(
    declaration: Declaration, setup: LinearSetup, request: PlanRequest
) -> LinearSetup:
    """Noise, and for sampled steps rate, presence and changes, of the published calibration."""
    table, budgets, plan = setup.table(declaration), declaration.budgets(), setup.plan
    rate, sampling = None, None
    if request.solver == "sgd":
        widest = np.array([one.fixed for one in budgets])
        full = full_batch_presence(linear_step_table(table, plan.radius), widest, plan.steps)
        rate = checked_rate(request.sample_rate, default_rate(full))
    base = standard_noise(declaration, budgets, table, plan.steps, rate)
    if rate is not None:
        sampling = fixed_sampling(declaration, linear_noise(table, plan.radius, base), rate)
    noise = block_noise(table, base, known_distances(declaration))
    most = float(noise.max()) / setup.lattice.spacing
    return replace(setup, max_scale=most, sampling=sampling, base_noise=base)


def check_slack(task: LinearTask) -> None:
    """Refuse a run whose sampler would use more than the reserve (THEORY T14)."""
    mend, sampler = "allow more or take fewer steps", task.setup.sampler(task.encoder)
    if task.setup.sampling is None:
        check_full_batch_slack(task.declaration, task.budgets, sampler, mend)
    else:
        check_sampled_slack(task.declaration, task.budgets, task.setup.sampling, sampler, mend)


@dataclass(frozen=True)
class Recipe:
    """What is trained, apart from the data and its declaration.

    Attributes
    ----------
    loss : Loss
    class_weights : tuple of float, optional
    request : PlanRequest
    """

    loss: Loss
    class_weights: tuple[float, ...] | None
    request: PlanRequest

    def prepare(self, declaration: Declaration) -> LinearTask:
        """See :func:`prepare`."""
        return prepare(declaration, self.loss, self.class_weights, self.request)


@dataclass(frozen=True, repr=False)
class TrainingData:
    """Checked records; never printed.

    Attributes
    ----------
    records : Records
    label : array of shape (n,)
        Codes or numbers within bounds, as declared.
    scaled : array of shape (n,)
        The label as the loss takes it.
    """

    records: Records
    label: NDArray[Any]
    scaled: FloatArray


def fit_linear(
    declaration: Declaration,
    recipe: Recipe,
    data: TrainingData,
    noise: NoiseSource,
    *,
    estimate: EstimateSettings | None = None,
    budget: PrivacyBudget | None = None,
    progress: Progress | None = None,
) -> tuple[FloatArray, LinearTask, Ledger]:
    """Estimate distances if asked to, train, and return (coefficients, task, ledger).

    Raises
    ------
    BudgetExceededError
        If ``budget`` has too little left; then nothing was drawn.
    ConfigurationError
        If some kind's loss leaves no room; nothing was drawn.
    """
    ledger = Ledger().append("declaration", declaration.to_entry())
    task = recipe.prepare(declaration)
    if estimate is not None:
        plan = plan_of(declaration, estimate)
        recipe.prepare(check_affordable(declaration, plan))
    if budget is not None:
        check_chargeable(task, adaptive=estimate is not None)
        budget.charge(charge_of(task, adaptive=estimate is not None))
    if estimate is not None:
        declaration, ledger = release_distances(
            declaration, plan, data.records, data.label, noise.child("distances"), ledger
        )
        task = recipe.prepare(declaration)
    ledger = ledger.append("linear-budget", budget_entry(task.setup, task.budgets))
    table = task.setup.table(declaration)
    sampling = task.setup.sampling
    step_budget = np.array([one.mu_squared for one in task.budgets]) / task.plan.steps
    if sampling is not None:
        step_budget = np.array(sampling.change)
    run = train(
        table.encoder.transform(data.records),
        data.scaled,
        table,
        step_budget,
        task.plan,
        task.setup.lattice,
        noise.child("gradient"),
        task.setup.max_scale,
        progress,
        sampling,
        task.fixed_noise,
    )
    ledger = ledger.append("linear-release", release_entry(run, task.plan))
    return averaged(run.iterates, task.plan), task, ledger


def check_chargeable(task: LinearTask, *, adaptive: bool) -> None:
    """Refuse to charge a shared budget with a target that the published noise does not meet."""
    setup = task.setup
    if setup.base_noise is None:
        return
    if adaptive:
        raise ConfigurationError(
            "calibration='published' after private distances has no target that a shared budget "
            "could be charged with; use calibration='optimal' or given distances"
        )
    table, sampler = setup.table(task.declaration), setup.sampler(task.encoder)
    rate = None if setup.sampling is None else setup.sampling.rate
    account = published_account(
        task.declaration, table, setup.plan, setup.base_noise, sampler, rate
    )
    if account.problems:
        raise ConfigurationError(
            f"budget= cannot be charged: {account.problems[0]}; use calibration='optimal'"
        )


def charge_of(task: LinearTask, *, adaptive: bool) -> Charge:
    """What a run takes from a shared budget."""
    target = task.declaration.target
    charge = Charge.of("fit", target, task.budgets)
    if task.setup.sampling is not None:
        # certified at one (ε, δ) by T7: no μ that could be added to others
        charge = replace(charge, mu_squared={})
    return replace(charge, distances={}, mu_squared={}, adaptive=True) if adaptive else charge
