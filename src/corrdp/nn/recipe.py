"""What is trained, and everything that is fixed before the first step, from public numbers alone.

Steps, rates, clip, lattice and noise follow from the declaration: bounds, budgets and n. A recipe
makes them into a task; nothing has been drawn then.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.allocation import allocate
from corrdp.distance import Distances
from corrdp.encoding import Encoder
from corrdp.erm.losses import Loss, Squared
from corrdp.erm.plan import SMALLEST, checked_number, checked_whole
from corrdp.erm.published import Calibration, known_distances
from corrdp.erm.sampling import (
    SampledBudgets,
    Solver,
    check_full_batch_slack,
    check_sampled_slack,
    check_solver,
    checked_rate,
)
from corrdp.errors import ConfigurationError, UtilityWarning
from corrdp.nn.account import NetworkSetup, largest_noise
from corrdp.nn.network import LATTICES, Network, NetworkLattice
from corrdp.nn.published import block_noise, standard_noise
from corrdp.nn.query import GradientQuery
from corrdp.nn.sampled import (
    plan_published_sampling,
    plan_sampling,
    sampled_steps,
    step_table,
)
from corrdp.nn.sensitivity import NetworkSensitivity
from corrdp.nn.trainer import NetworkPlan
from corrdp.privacy.budgets import KindBudget, sampler_refusal
from corrdp.privacy.certificate import SamplerUse, subsampled_loss
from corrdp.privacy.declaration import Declaration

__all__ = ["NetworkRecipe", "NetworkTask", "warn_if_drowned"]

FloatArray: TypeAlias = NDArray[np.float64]

SKIP_RADIUS = 20.0
STEPS_MIN, STEPS_MAX = 40, 250
# Near the best of a grid on Adult: steps per inverse noise, and η·B² of a logistic and of a
# squared loss.
REACH = 7.5
RATE_LOGISTIC, RATE_SQUARED = 15.0, 5.0
# With fewer steps than these, noise costs more than a tighter clip's bias.
ENOUGH_STEPS = 200
# Where noise would allow for more steps than these, skip weights move faster, up to B times.
CALM_STEPS = 500


@dataclass(frozen=True, repr=False)
class NetworkTask:
    """A prepared run: nothing has been drawn yet."""

    declaration: Declaration
    budgets: tuple[KindBudget, ...]
    setup: NetworkSetup
    table: NetworkSensitivity

    @property
    def encoder(self) -> Encoder:
        """The encoder that the mechanism uses."""
        return self.table.query.network.encoder

    @property
    def fixed_noise(self) -> FloatArray | None:
        """σ per block of the published calibration, None where noise is allocated."""
        if self.setup.base is None:
            return None
        network = self.table.query.network
        return block_noise(network, self.setup.base, known_distances(self.declaration))


@dataclass(frozen=True)
class NetworkRecipe:
    """What is trained, apart from the data and its declaration.

    Attributes
    ----------
    shape : Network
        Its encoder is replaced by the declaration's.
    loss : Loss
    gentler : tuple of Loss
        With smaller bounds each, for more noise: see ``suited``.
    class_weights : tuple of float, optional
    clips : tuple of float
        Empty for the defaults.
    steps, learning_rate : optional
        What the user fixed of the plan.
    calibration : {"optimal", "published"}
        Allocate noise at every step, or fix it by THEORY T8's rule.
    solver : {"gradient", "sgd"}
        Full batches, or Poisson-sampled ones (THEORY T7).
    sample_rate : float, optional
        Probability that a record joins a step, only with ``solver="sgd"``.
    """

    shape: Network
    loss: Loss
    gentler: tuple[Loss, ...] = ()
    class_weights: tuple[float, ...] | None = None
    clips: tuple[float, ...] = ()
    steps: int | None = None
    learning_rate: float | None = None
    calibration: Calibration = "optimal"
    solver: Solver = "gradient"
    sample_rate: float | None = None

    def __post_init__(self) -> None:
        if self.calibration not in ("optimal", "published"):
            raise ConfigurationError(
                f"calibration={self.calibration!r} is unknown; use 'optimal' or 'published'"
            )
        check_solver(self.solver, self.sample_rate)

    def suited(self, declaration: Declaration) -> NetworkRecipe:
        """The same with the first loss whose noise leaves enough steps, or the gentlest.

        A clipped residual is biased, at any ε; without a clip a record moves more. What decides
        is public: bounds, budgets and n. Distances that the run released itself do not: what the
        joint rows are guaranteed depends on the clip, and was fixed before (THEORY T4).
        """
        recipe, before = replace(self, gentler=()), declaration
        if declaration.estimate is not None:
            before = replace(declaration, distances=Distances({}), estimate=None)
        budget = np.array([one.mu_squared for one in before.budgets()])
        for loss in self.gentler:
            table = recipe._table(LATTICES[0], before)
            if recipe._reach(table, budget, before.n) >= ENOUGH_STEPS:
                break
            recipe = replace(recipe, loss=loss)
        return recipe

    def prepare(self, declaration: Declaration) -> NetworkTask:
        """Fix everything that the guarantee rests on, from public numbers alone.

        Raises
        ------
        ConfigurationError
            If the sampler's slack does not fit into the reserved share of some kind's loss, or
            the sums over n records would not be exact on any lattice.
        """
        problem, task, recipe = "", None, self.suited(declaration)
        for lattice in LATTICES:
            task = recipe._on(lattice, declaration, task)
            problem = _rounding_problem(task) or _slack_problem(task)
            if not problem:
                return task
        raise ConfigurationError(problem)

    def _table(self, lattice: NetworkLattice, declaration: Declaration) -> NetworkSensitivity:
        encoder = Encoder(declaration.schema, self.shape.encoder.scale, lattice.feature_bits)
        network = replace(self.shape, encoder=encoder)
        query = GradientQuery(network, self.loss, self.class_weights, self.clips, lattice)
        return NetworkSensitivity(query, declaration.kinds, declaration.target.records_per_person)

    def _budget(self, declaration: Declaration) -> FloatArray:
        """β_k; under sampling without what a released distance adds, as the accountant's T."""
        if self.solver == "sgd":
            return np.array([one.fixed for one in declaration.budgets()])
        return np.array([one.mu_squared for one in declaration.budgets()])

    @staticmethod
    def _reach(table: NetworkSensitivity, budget: FloatArray, records: int) -> float:
        """How many steps the noise allows for."""
        return REACH / max(relative_noise(table, budget, records), 1e-12)

    def _on(
        self, lattice: NetworkLattice, declaration: Declaration, finer: NetworkTask | None
    ) -> NetworkTask:
        """The task on a lattice; ``finer`` is the one that was tried before."""
        table = self._table(lattice, declaration)
        query, network = table.query, table.query.network
        budgets, budget = declaration.budgets(), self._budget(declaration)
        base, sampling = None, None if finer is None else finer.setup.sampling
        if finer is not None and sampling is not None and self.calibration == "optimal":
            # rate, presence, changes and steps hold on any lattice: each step's noise meets them
            plan = finer.setup.plan
        else:
            plan = self._plan(table, budget, declaration.n)
            base, sampling = self._noise(declaration, table, budgets, plan)
        if base is None:
            limit = largest_noise(table, budget / plan.steps, plan.skip_radius, sampling)
        else:
            limit = 1.01 * base
        setup = NetworkSetup(
            self.shape.encoder.scale,
            network.to_dict(),
            self.loss,
            query.class_weights,
            query.clips,
            lattice,
            plan,
            limit / lattice.spacing,
            base,
            sampling,
        )
        return NetworkTask(declaration, budgets, setup, table)

    def _noise(
        self,
        declaration: Declaration,
        table: NetworkSensitivity,
        budgets: Sequence[KindBudget],
        plan: NetworkPlan,
    ) -> tuple[float | None, SampledBudgets | None]:
        """σ of the published calibration, and what sampled steps fix beforehand."""
        radius, steps = plan.skip_radius, plan.steps
        if self.solver == "gradient":
            published = self.calibration == "published"
            return (standard_noise(declaration, table, steps) if published else None), None
        if self.calibration == "published":
            return plan_published_sampling(declaration, table, radius, steps, self.sample_rate)
        step = step_table(table, radius)
        return None, plan_sampling(declaration, budgets, step, steps, self.sample_rate)

    def _plan(self, table: NetworkSensitivity, budget: FloatArray, records: int) -> NetworkPlan:
        """Steps grow as the inverse of one step's noise; the rate keeps η·B² fixed.

        Where a sample rate of the user's asks for more steps, they are smaller ones.
        """
        network, reach = table.query.network, self._reach(table, budget, records)
        steps = None if self.steps is None else checked_whole("steps", self.steps)
        if steps is None:
            steps = int(np.clip(round(reach), STEPS_MIN, STEPS_MAX))
        smaller = 1.0
        if self.steps is None and self.sample_rate is not None and self.calibration == "optimal":
            sample_rate, usual = checked_rate(self.sample_rate, 1.0), steps
            steps = sampled_steps(step_table(table, SKIP_RADIUS), budget, sample_rate, usual)
            smaller = usual / steps
        if self.learning_rate is None:
            product = RATE_SQUARED if isinstance(self.loss, Squared) else RATE_LOGISTIC
            rate = smaller * product / network.output_norm**2
        else:
            rate = checked_number("learning_rate", self.learning_rate, SMALLEST)
        calm = float(np.clip(reach / CALM_STEPS, 1.0, max(1.0, network.output_norm)))
        return NetworkPlan(steps, rate, SKIP_RADIUS, (4 * steps) // 5, calm)


def relative_noise(table: NetworkSensitivity, budget: FloatArray, records: int) -> float:
    """Noise on the mean gradient if one step spent the whole budget, in units of B·‖φ‖."""
    network = table.query.network
    noise = allocate(table.largest(SKIP_RADIUS), budget, network.dimensions, tolerance=1e-3)
    largest = network.output_norm * network.encoder.norm_bound
    return math.sqrt(noise.total_variance) / records / largest


def warn_if_drowned(task: NetworkTask) -> None:
    """Warn when the noise of one step exceeds any possible mean gradient."""
    budget = np.array([one.mu_squared for one in task.budgets])
    records = task.declaration.n
    noise = relative_noise(task.table, budget, records)
    if noise > 1:
        warnings.warn(
            f"n={records} is too small for this epsilon: the noise exceeds any possible gradient "
            f"by a factor {noise:.1f}; about {math.ceil(records * noise)} records are needed",
            UtilityWarning,
            stacklevel=2,
        )


def _rounding_problem(task: NetworkTask) -> str:
    """Why sums over n records would not be exact on the task's lattice, or an empty text."""
    try:
        task.table.query.check_exact_sum(task.declaration.n)
    except ConfigurationError as error:
        return str(error)
    return ""


def _slack_problem(task: NetworkTask) -> str:
    """Why the sampler would use more than the reserve (THEORY T14), or an empty text."""
    declaration, budgets, sampling = task.declaration, task.budgets, task.setup.sampling
    sampler = task.setup.sampler(task.table.query.network.dimension)
    mend = "allow more, or take fewer steps or units"
    if sampling is not None and task.setup.base is not None:
        return _published_slack_problem(task, sampling, sampler, mend)
    try:
        if sampling is None:
            check_full_batch_slack(declaration, budgets, sampler, mend)
        else:
            check_sampled_slack(declaration, budgets, sampling, sampler, mend)
    except ConfigurationError as error:
        return str(error)
    return ""


def _published_slack_problem(
    task: NetworkTask, sampling: SampledBudgets, sampler: SamplerUse, mend: str
) -> str:
    """The same for sampled steps of published noise, certified with whatever slack it has."""
    rows = task.declaration.target.records_per_person
    use = sampling.use(sampler.steps, rows)
    for budget in task.budgets:
        if math.isinf(subsampled_loss(use, 2.0 * use.presence, sampler, budget.delta)):
            return str(sampler_refusal(budget.kind.name, budget.epsilon, mend))
    return ""
