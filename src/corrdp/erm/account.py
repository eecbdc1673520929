"""Ledger entries of a linear model's training, and their recomputation (THEORY T4, T6).

Two entries: ``linear-budget`` is written before the first step and fixes every number that the
guarantee rests on; ``linear-release`` holds what came out. :func:`linear_accounts` recomputes the
sensitivity table from the schema and the released iterates alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.allocation import allocate
from corrdp.encoding import Encoder
from corrdp.erm.losses import Loss, loss_from_dict
from corrdp.erm.optimiser import Run, averaged
from corrdp.erm.plan import TrainingPlan
from corrdp.erm.published import Calibration, noise_problems, published_account, standard_noise
from corrdp.erm.sampled_account import (
    TOLERANCE,
    Reach,
    presence_use,
    sampled_account,
    step_problems,
)
from corrdp.erm.sampling import SampledBudgets, with_presence
from corrdp.erm.sensitivity import SensitivityTable
from corrdp.errors import ConfigurationError, CorrDPError, VerificationError
from corrdp.noise import Lattice
from corrdp.privacy.budgets import KindBudget
from corrdp.privacy.certificate import ReleaseAccount, SamplerUse
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.guarantee import guaranteed_mu
from corrdp.privacy.ledger import (
    Ledger,
    decode_array,
    decode_number,
    encode_array,
    encode_number,
)

__all__ = ["LinearSetup", "budget_entry", "linear_accounts", "release_entry"]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class LinearSetup:
    """Everything public that defines the mechanism.

    Attributes
    ----------
    scale : float
        h of the encoder, before it is put on the lattice.
    loss : Loss
    class_weights : tuple of float, optional
    lattice : Lattice
    plan : TrainingPlan
    max_scale : float
        Largest noise in lattice units that the sampler's slack is reserved for.
    sampling : SampledBudgets, optional
        Set for Poisson-sampled steps.
    base_noise : float, optional
        Set for the published calibration: σ of a step on sensitive coordinates (THEORY T8).
    """

    scale: float
    loss: Loss
    class_weights: tuple[float, ...] | None
    lattice: Lattice
    plan: TrainingPlan
    max_scale: float
    sampling: SampledBudgets | None = None
    base_noise: float | None = None

    def __post_init__(self) -> None:
        if self.base_noise is not None and not 0 < self.base_noise < math.inf:
            raise ConfigurationError(f"base_noise={self.base_noise!r} must be positive and finite")

    @property
    def calibration(self) -> Calibration:
        """Whether noise was allocated by budgets or fixed by the published rule."""
        return "optimal" if self.base_noise is None else "published"

    def table(self, declaration: Declaration) -> SensitivityTable:
        """The sensitivity table of all kinds."""
        return linear_table(declaration, self.scale, self.loss, self.class_weights, self.lattice)

    def sampler(self, encoder: Encoder) -> SamplerUse:
        """How much the lattice sampler is used."""
        return SamplerUse(encoder.dimension * self.plan.steps, self.max_scale, self.plan.steps)


def linear_table(
    declaration: Declaration,
    scale: float,
    loss: Loss,
    class_weights: tuple[float, ...] | None,
    lattice: Lattice,
) -> SensitivityTable:
    """Sensitivity table of a linear model on a lattice."""
    return SensitivityTable(
        Encoder(declaration.schema, scale, lattice.feature_bits),
        loss,
        declaration.kinds,
        class_weights,
        declaration.target.records_per_person,
        lattice.residual_bits,
    )


def largest_noise(
    table: SensitivityTable,
    budget: FloatArray,
    plan: TrainingPlan,
    sampling: SampledBudgets | None = None,
) -> float:
    """Four times the largest σ that a step needs at the far end of the ball."""
    rows, step = table.supremum(plan.radius), budget / plan.steps
    if sampling is not None:
        rows = with_presence(rows, table.presence)
        step = np.append(sampling.change, sampling.presence**2)
    noise = allocate(rows, step, table.encoder.dimensions, tolerance=1e-3)
    return 4.0 * float(noise.sigma.max())


def budget_entry(setup: LinearSetup, budgets: Sequence[KindBudget]) -> dict[str, Any]:
    """Content of the ``linear-budget`` entry."""
    return {
        "scale": setup.scale,
        "loss": setup.loss.to_dict(),
        "class_weights": None if setup.class_weights is None else list(setup.class_weights),
        "lattice": asdict(setup.lattice),
        "plan": asdict(setup.plan),
        "max_scale": setup.max_scale,
        "sampling": None if setup.sampling is None else asdict(setup.sampling),
        "calibration": setup.calibration,
        "base_noise": setup.base_noise,
        "kinds": [
            {
                "name": budget.kind.name,
                "run": encode_number(budget.mu_squared),
                "step": encode_number(budget.mu_squared / setup.plan.steps),
                "fixed": encode_number(budget.fixed),
            }
            for budget in budgets
        ],
    }


def release_entry(run: Run, plan: TrainingPlan) -> dict[str, Any]:
    """Content of the ``linear-release`` entry; the model is the mean of the later iterates."""
    return {
        "iterates": encode_array(run.iterates),
        "sigma": encode_array(run.sigma),
        "coefficients": encode_array(averaged(run.iterates, plan)),
    }


def read_setup(entry: Mapping[str, Any]) -> LinearSetup:
    """The setup that a ``linear-budget`` entry describes."""
    try:
        weights = entry["class_weights"]
        base = entry["base_noise"]
        if entry["calibration"] != ("optimal" if base is None else "published"):
            raise ConfigurationError(f"calibration {entry['calibration']!r} does not fit its noise")
        return LinearSetup(
            decode_number(entry["scale"]),
            loss_from_dict(entry["loss"]),
            None if weights is None else tuple(weights),
            Lattice(**entry["lattice"]),
            TrainingPlan(**entry["plan"]),
            decode_number(entry["max_scale"]),
            None if entry["sampling"] is None else SampledBudgets(**entry["sampling"]),
            None if base is None else decode_number(base),
        )
    except (KeyError, TypeError, CorrDPError) as error:
        raise VerificationError(f"the training entry is damaged: {error}") from None


def linear_accounts(declaration: Declaration, ledger: Ledger) -> list[ReleaseAccount]:
    """Recompute what each training run of a linear model spent.

    Raises
    ------
    VerificationError
        If entries are missing or damaged. What is readable but does not hold is listed in the
        account's ``problems``.
    """
    before = ledger.of_type("linear-budget")
    after = ledger.of_type("linear-release")
    if len(before) != len(after):
        raise VerificationError("a training run has no release, or a release no budget")
    return [_account(declaration, *pair) for pair in zip(before, after, strict=True)]


def _account(
    declaration: Declaration, before: Mapping[str, Any], after: Mapping[str, Any]
) -> ReleaseAccount:
    setup = read_setup(before)
    table = setup.table(declaration)
    kinds = declaration.kinds
    iterates, sigma = decode_array(after["iterates"]), decode_array(after["sigma"])
    shape = (setup.plan.steps, len(table.encoder.blocks))
    if iterates.shape != (shape[0] + 1, table.encoder.dimension) or sigma.shape != shape:
        raise VerificationError(
            f"the ledger fixed {shape[0]} steps and holds {len(sigma)}; steps were added or removed"
        )
    problems = _model_problems(setup, iterates, sigma, decode_array(after["coefficients"]))
    if setup.base_noise is not None:
        return _published_account(declaration, setup, table, sigma, problems)
    use, sampler = step_use(table, iterates, sigma), setup.sampler(table.encoder)
    high = table.supremum(setup.plan.radius)
    if setup.sampling is not None:
        reach = Reach(table.infimum, high, table.presence)
        present = presence_use(table.presence, sigma)
        return sampled_account(
            "linear-release", declaration, setup.sampling, sampler, reach, use, present, problems
        )
    run_budget, fixed, found = read_budgets(before, declaration, setup.plan.steps)
    problems += [*found, *step_problems(kinds, use, run_budget / setup.plan.steps)]
    # where a step used more than its budget the larger of the two is printed, marked as not held
    spent = setup.plan.steps * use.max(axis=0, initial=0.0)
    exceeded = spent > run_budget * (1.0 + TOLERANCE)
    run = np.where(exceeded, spent, run_budget)
    fixed = np.where(exceeded, np.maximum(fixed, spent), fixed)
    mus = guaranteed_mu(kinds, fixed, table.infimum, high)
    return ReleaseAccount("linear-release", run, mus, sampler, tuple(problems))


def _published_account(
    declaration: Declaration,
    setup: LinearSetup,
    table: SensitivityTable,
    sigma: FloatArray,
    problems: list[str],
) -> ReleaseAccount:
    """Account of fixed noise: what it certifies over the whole ball (THEORY T4, T8)."""
    steps, sampler = setup.plan.steps, setup.sampler(table.encoder)
    rate = None if setup.sampling is None else setup.sampling.rate

    def standard() -> float:
        return standard_noise(declaration, declaration.budgets(), table, steps, rate)

    base = math.nan if setup.base_noise is None else setup.base_noise
    found, reached = noise_problems(table, declaration, sigma, base, standard)
    account = published_account(declaration, table, setup.plan, reached, sampler, rate)
    return replace(account, problems=(*problems, *found, *account.problems))


def read_budgets(
    entry: Mapping[str, Any], declaration: Declaration, steps: int
) -> tuple[FloatArray, FloatArray, list[str]]:
    """Run budgets and their fixed limits; what exceeds the declared target is a problem."""
    rows = entry["kinds"]
    expected = declaration.budgets()
    if [row["name"] for row in rows] != [budget.kind.name for budget in expected]:
        raise VerificationError("the kinds of the budget entry are not those of the schema")
    run = np.array([decode_number(row["run"]) for row in rows])
    step = np.array([decode_number(row["step"]) for row in rows])
    fixed = np.array([decode_number(row["fixed"]) for row in rows])
    problems = []
    for row, got, single, limit, budget in zip(rows, run, step, fixed, expected, strict=True):
        if got > budget.mu_squared * (1.0 + TOLERANCE) or limit > budget.fixed * (1.0 + TOLERANCE):
            problems.append(f"kind {row['name']!r}: the run budget exceeds the declared loss")
        if math.isfinite(got) and single * steps > got * (1.0 + TOLERANCE):
            problems.append(
                f"kind {row['name']!r}: the steps' budgets add up to more than the run's"
            )
    return run, fixed, problems


def step_use(table: SensitivityTable, iterates: FloatArray, sigma: FloatArray) -> FloatArray:
    """Σ_j a_kj(θ_t)²/σ_tj² of every step and kind, shape (steps, kinds)."""
    use = np.empty((len(sigma), len(table.kinds)))
    for step, noise in enumerate(sigma):
        squared = table(iterates[step]) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(squared > 0, squared / noise**2, 0.0)
        use[step] = ratio.sum(axis=1)
    return use


def _model_problems(
    setup: LinearSetup, iterates: FloatArray, sigma: FloatArray, coefficients: FloatArray
) -> list[str]:
    problems = []
    if not (np.isfinite(iterates).all() and np.isfinite(sigma).all() and (sigma >= 0).all()):
        problems.append("iterates or noise are not finite")
    elif np.linalg.norm(iterates, axis=1).max() > setup.plan.radius * (1.0 + TOLERANCE):
        problems.append("an iterate lies outside the ball that the guarantee rests on")
    elif sigma.max(initial=0.0) > setup.max_scale * setup.lattice.spacing * (1.0 + TOLERANCE):
        problems.append("a step's noise is larger than the sampler's slack was reserved for")
    model = averaged(iterates, setup.plan)
    if coefficients.shape != model.shape or not np.allclose(
        coefficients, model, rtol=TOLERANCE, atol=TOLERANCE
    ):
        problems.append("the model is not the mean of the released iterates")
    return problems
