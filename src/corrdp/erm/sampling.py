"""Poisson-sampled steps: rate, presence and per-kind changes that meet every budget (THEORY T7).

In units of the noise a contribution is at most c (``presence``) and a change of kind k moves it
by at most a_k. Both are fixed before the run; each step's allocation meets a_k² for every kind
and c² for the presence row, so the accountant's (q, c, a_k, T) hold whatever the iterates are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from corrdp.allocation import allocate
from corrdp.erm.sensitivity import SensitivityTable
from corrdp.errors import ConfigurationError
from corrdp.privacy import subsampled
from corrdp.privacy.budgets import RESERVE, KindBudget, sampler_refusal
from corrdp.privacy.certificate import SamplerUse, Subsampling, certified_loss, subsampled_loss
from corrdp.privacy.declaration import Declaration, EstimateCost

__all__ = [
    "SampledBudgets",
    "Solver",
    "StepTable",
    "calibrate_changes",
    "check_sampled_slack",
    "check_solver",
    "checked_rate",
    "choose_presence",
    "default_rate",
    "floor_targets",
    "full_batch_presence",
    "linear_step_table",
    "sampled_budgets",
    "sampled_targets",
    "with_presence",
]

FloatArray: TypeAlias = NDArray[np.float64]
Solver: TypeAlias = Literal["gradient", "sgd"]

# Presence of a full-batch step above which sampling starts to cost noise (THEORY T7).
FULL_BATCH_PRESENCE = 0.05
SEARCH_STEPS = 8
# half width of a search in ln c, and a c beyond which a sampled record stands out anyway
REACH, LARGEST_START = 1.5, 3.0
# at q near one a larger c costs nothing; 2c must stay within what the sampler's noise reaches
LARGEST_PRESENCE = 12.0


@dataclass(frozen=True)
class SampledBudgets:
    """What a sampled run fixes beforehand.

    Attributes
    ----------
    rate : float
        q, probability that a record joins a step.
    presence : float
        c.
    change : tuple of float
        a_k² per kind that each step meets.
    fixed : tuple of float
        Upper limit of a_k² that was fixed before the first release of any kind.
    """

    rate: float
    presence: float
    change: tuple[float, ...]
    fixed: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ConfigurationError(f"sample_rate={self.rate!r} must lie in (0, 1]")
        if not 0 < self.presence < math.inf:
            raise ConfigurationError(f"presence={self.presence!r} must be positive and finite")
        object.__setattr__(self, "change", tuple(map(float, self.change)))
        object.__setattr__(self, "fixed", tuple(map(float, self.fixed)))
        if not all(value > 0 for value in (*self.change, *self.fixed)):
            raise ConfigurationError("a kind's change must be positive")

    def use(self, steps: int, records_per_person: int) -> Subsampling:
        """Sampling as a person sees it: with k rows the rate is 1 − (1 − q)^k."""
        rate = subsampled.person_rate(self.rate, records_per_person)
        return Subsampling(rate, steps, self.presence)


@dataclass(frozen=True, repr=False)
class StepTable:
    """What one record can do to the sums of a step, block by block; public numbers.

    Attributes
    ----------
    largest : array of shape (kinds, blocks)
        Movement under every kind at the far end of the parameters.
    reference : array of shape (kinds, blocks)
        The same at a public point with moderate movements.
    presence : array of shape (blocks,)
        Largest contribution, at any parameters.
    dimensions : array of shape (blocks,)
        Coordinates per block.
    """

    largest: FloatArray
    reference: FloatArray
    presence: FloatArray
    dimensions: NDArray[np.int64]


def linear_step_table(table: SensitivityTable, radius: float) -> StepTable:
    """Of a linear model whose iterates stay in the ball of ``radius``."""
    reference = table(_reference(table))
    return StepTable(table.supremum(radius), reference, table.presence, table.encoder.dimensions)


def with_presence(rows: FloatArray, presence: FloatArray) -> FloatArray:
    """The table with the presence row appended: shape (kinds + 1, blocks)."""
    return np.vstack([rows, presence])


def check_solver(solver: object, sample_rate: object) -> None:
    """Refuse an unknown solver, and a rate that nothing would use."""
    if solver not in get_args(Solver):
        raise ConfigurationError(
            f"solver={solver!r} is unknown; use one of {', '.join(get_args(Solver))}"
        )
    if sample_rate is not None and solver != "sgd":
        raise ConfigurationError(
            f"sample_rate={sample_rate!r} needs solver='sgd'; full-batch steps use all records"
        )


def checked_rate(rate: object, suggested: float) -> float:
    """The user's sample rate, or the suggested one where there is none."""
    rate = suggested if rate is None else rate
    number = isinstance(rate, (int, float, np.integer, np.floating)) and not isinstance(rate, bool)
    if not (number and 0 < rate <= 1):  # type: ignore[operator]
        raise ConfigurationError(f"sample_rate={rate!r} must lie in (0, 1]")
    return float(rate)  # type: ignore[arg-type]


def full_batch_presence(table: StepTable, budget: FloatArray, steps: int) -> float:
    """Presence of one of T full-batch steps with these budgets."""
    noise = allocate(table.largest, budget, table.dimensions, tolerance=1e-3)
    with np.errstate(divide="ignore"):
        weight = np.where(noise.sigma > 0, 1.0 / noise.sigma**2, 0.0)
    return math.sqrt(float(table.presence**2 @ weight) / steps)


def default_rate(presence: float) -> float:
    """q = min(1, presence of a full-batch step / .05); 1 where full batches need no noise."""
    return min(1.0, presence / FULL_BATCH_PRESENCE) if presence > 0 else 1.0


def sampled_targets(
    declaration: Declaration, budgets: Sequence[KindBudget]
) -> list[tuple[float, float]]:
    """(ε_k, δ_k) left for the training of every kind, before the sampler's reserve.

    After an estimate the two are added by basic composition with δ halved (THEORY T10).
    """
    estimate = declaration.estimate
    if estimate is None:
        return [(budget.epsilon, budget.delta) for budget in budgets]
    return [_after(estimate, budget, budget.epsilon) for budget in budgets]


def _after(estimate: EstimateCost, budget: KindBudget, epsilon: float) -> tuple[float, float]:
    cost = math.sqrt(estimate.mu_squared.get(budget.kind.name, 0.0))
    if cost == 0 or math.isinf(epsilon):
        return epsilon, budget.delta / 2.0
    sampler = SamplerUse(estimate.draws, estimate.largest_sigma, steps=1)
    left = epsilon - certified_loss([cost], [sampler], budget.delta / 2.0)
    if not left > 0:
        raise ConfigurationError(
            f"the estimate of the distances takes all of the loss allowed for "
            f"{budget.kind.name!r}; lower its share (EstimateSettings(share=...))"
        )
    return left, budget.delta / 2.0


def floor_targets(
    declaration: Declaration, budgets: Sequence[KindBudget]
) -> list[tuple[float, float]]:
    """The targets that the kinds would have if every released distance were at its floor."""
    estimate = declaration.estimate
    if estimate is None:
        return sampled_targets(declaration, budgets)
    targets = []
    for budget in budgets:
        entry = declaration.distances.get(budget.kind.name)
        epsilon = budget.epsilon
        if entry is not None and entry.grid_size > 1:
            floor = estimate.floors[budget.kind.name]
            epsilon = declaration.target.allowed(budget.kind, floor)
        targets.append(_after(estimate, budget, epsilon))
    return targets


def calibrate_changes(
    rate: float, steps: int, presence: float, targets: Sequence[tuple[float, float]]
) -> FloatArray:
    """Largest a_k of every kind, the sampler's reserve kept back."""
    kept = [(epsilon * (1.0 - RESERVE), delta * (1.0 - RESERVE)) for epsilon, delta in targets]
    return np.asarray(subsampled.calibrate(rate, steps, presence, kept))


def sampled_budgets(
    declaration: Declaration,
    budgets: Sequence[KindBudget],
    table: StepTable,
    rate: float,
    steps: int,
    full: float,
) -> SampledBudgets:
    """Presence and changes of T steps at rate q; ``full`` is a full-batch step's presence.

    Rate and presence are chosen at the distances' floors, before any distance is released, so
    that everything the joint rows rest on was fixed beforehand (THEORY T4).
    """
    person = subsampled.person_rate(rate, declaration.target.records_per_person)
    floors = floor_targets(declaration, budgets)
    presence = choose_presence(table, rate, steps, floors, person, full / rate)
    fixed = calibrate_changes(person, steps, presence, floors)
    change = fixed
    if declaration.estimate is not None:
        targets = sampled_targets(declaration, budgets)
        change = calibrate_changes(person, steps, presence, targets)
    return SampledBudgets(rate, presence, tuple(change**2), tuple(fixed**2))


def check_full_batch_slack(
    declaration: Declaration, budgets: Sequence[KindBudget], sampler: SamplerUse, mend: str
) -> None:
    """Refuse full batches whose sampler would use more than the reserve (THEORY T14)."""
    samplers, estimate = [sampler], declaration.estimate
    if estimate is not None:
        samplers.append(SamplerUse(estimate.draws, estimate.largest_sigma, steps=1))
    for budget in budgets:
        if not np.isfinite(budget.mu_squared):
            continue
        mus = [math.sqrt(budget.mu_squared)]
        if estimate is not None:
            mus.append(math.sqrt(estimate.mu_squared[budget.kind.name]))
        if not certified_loss(mus, samplers, budget.delta) <= budget.epsilon:
            raise sampler_refusal(budget.kind.name, budget.epsilon, mend)


def check_sampled_slack(
    declaration: Declaration,
    budgets: Sequence[KindBudget],
    sampling: SampledBudgets,
    sampler: SamplerUse,
    mend: str,
) -> None:
    """The same for Poisson-sampled steps."""
    use = sampling.use(sampler.steps, declaration.target.records_per_person)
    targets = sampled_targets(declaration, budgets)
    for budget, squared, (epsilon, delta) in zip(budgets, sampling.change, targets, strict=True):
        if not subsampled_loss(use, math.sqrt(squared), sampler, delta) <= epsilon:
            raise sampler_refusal(budget.kind.name, epsilon, mend)


def choose_presence(
    table: StepTable,
    rate: float,
    steps: int,
    targets: Sequence[tuple[float, float]],
    person_rate: float,
    start: float,
) -> float:
    """The c that needs the least noise at a public reference point.

    A larger c leaves smaller changes for the same loss, a smaller one forces noise on every
    block. The search is one-dimensional, in ln c, from a full-batch step's presence over q.
    """
    rows = with_presence(table.reference, table.presence)

    def noise(log_presence: float) -> float:
        presence = math.exp(log_presence)
        try:
            change = calibrate_changes(person_rate, steps, presence, targets)
        except ConfigurationError:
            return math.inf
        budget = np.append(change**2, presence**2)
        found = allocate(rows, budget, table.dimensions, tolerance=1e-3)
        return math.log(found.total_variance)

    start = min(start, LARGEST_START) if start > 0 else LARGEST_START
    return math.exp(_search(noise, math.log(start)))


def _search(objective: Callable[[float], float], start: float) -> float:
    """A scalar minimum near ``start``: a few evaluations, again where it lies at an end."""
    for _ in range(4):
        result = minimize_scalar(
            objective,
            bounds=(start - REACH, min(start + REACH, math.log(LARGEST_PRESENCE))),
            method="bounded",
            options={"maxiter": SEARCH_STEPS, "xatol": 0.02},
        )
        if abs(float(result.x) - start) < 0.9 * REACH:
            break
        start = float(result.x)
    if not math.isfinite(float(result.fun)):
        raise ConfigurationError(
            "no presence bound meets the allowed losses at this sample rate; lower sample_rate or "
            "steps, or allow more"
        )
    return float(result.x)


def _reference(table: SensitivityTable) -> FloatArray:
    """A public point with moderate score movements: alternating signs, norm 5."""
    theta = np.where(np.arange(table.encoder.dimension) % 2 == 0, 1.0, -1.0)
    scaled: FloatArray = theta * (5.0 / float(np.linalg.norm(theta)))
    return scaled
