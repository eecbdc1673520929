"""Noisy full-batch gradient descent with noise re-allocated at every released iterate.

The iterates are released, so the sensitivity table may be taken at the current one: each step
spends exactly its fixed budget b_k = β_k/T on the least noise that this table needs (THEORY T4,
T5, T6). Projection, the public penalty and averaging are post-processing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.allocation import allocate
from corrdp.encoding import Design
from corrdp.erm.plan import TrainingPlan
from corrdp.erm.sampling import SampledBudgets, with_presence
from corrdp.erm.sensitivity import SensitivityTable
from corrdp.errors import ConfigurationError
from corrdp.noise import Lattice, NoiseSource, release

__all__ = ["Run", "averaged", "project", "train"]

FloatArray: TypeAlias = NDArray[np.float64]
Progress: TypeAlias = Callable[[int, int], None]

TOLERANCE = 1e-3
RESOLVE_EVERY = 4


@dataclass(frozen=True, repr=False)
class Run:
    """Everything that training released.

    Attributes
    ----------
    iterates : array of shape (T + 1, m)
        θ_0 .. θ_T.
    sigma : array of shape (T, blocks)
        Noise of every step on the gradient sum.
    """

    iterates: FloatArray
    sigma: FloatArray

    def __repr__(self) -> str:
        return f"Run(steps={len(self.sigma)}, parameters={self.iterates.shape[1]})"


def project(theta: FloatArray, radius: float) -> FloatArray:
    """Nearest point of the ball ‖θ‖ ≤ radius."""
    norm = float(np.linalg.norm(theta))
    return theta if norm <= radius else theta * (radius / norm) * (1.0 - 1e-15)


def averaged(iterates: FloatArray, plan: TrainingPlan) -> FloatArray:
    """The model: mean of the later iterates."""
    mean: FloatArray = iterates[plan.average_from :].mean(axis=0)
    return mean


def train(
    design: Design,
    label: FloatArray,
    table: SensitivityTable,
    step_budget: FloatArray,
    plan: TrainingPlan,
    lattice: Lattice,
    noise: NoiseSource,
    max_scale: float,
    progress: Progress | None = None,
    sampling: SampledBudgets | None = None,
    fixed_noise: FloatArray | None = None,
) -> Run:
    """Run the plan; every step meets ``step_budget`` (squared μ, or squared change, per kind).

    With ``sampling`` each step takes a Poisson sample and meets the presence row too; an empty
    sample is a noise-only step, and sums are divided by the fixed q·n (THEORY T7). With
    ``fixed_noise`` (σ per block) no step is allocated: what it certifies is computed afterwards.

    Raises
    ------
    ConfigurationError
        If a step needed more noise than the sampler's error analysis was reserved for
        (``max_scale``, in lattice units).
    """
    encoder = design.encoder
    dimensions = encoder.dimensions
    lattice.check_exact_sum(design.size, table.residual_bound * encoder.scale)
    expected = design.size * (1.0 if sampling is None else sampling.rate)
    coins, gauss = noise.child("sample"), noise.child("noise")
    iterates = np.zeros((plan.steps + 1, encoder.dimension))
    sigmas = np.empty((plan.steps, len(dimensions)))
    penalised = np.ones(encoder.dimension)
    penalised[-1] = 0.0
    velocity = np.zeros(encoder.dimension)
    allocator = _Allocator(table, step_budget, sampling)
    for step in range(plan.steps):
        theta = iterates[step]
        sigmas[step] = allocator.sigma(theta) if fixed_noise is None else fixed_noise
        if sigmas[step].max() > max_scale * lattice.spacing:
            raise ConfigurationError("the noise outgrew what was reserved for the sampler")
        if sampling is None:
            total = _gradient_sum(design, label, design.scores(theta), table, lattice)
        else:
            index = coins.poisson_sample(design.size, sampling.rate)
            batch = design.rows(index)
            total = _gradient_sum(batch, label[index], batch.scores_apart(theta), table, lattice)
        noisy = release(total, encoder.spread(sigmas[step]), lattice.spacing, gauss)
        gradient = noisy / expected + plan.alpha * penalised * theta
        velocity = plan.momentum * velocity + gradient
        iterates[step + 1] = project(theta - plan.learning_rate * velocity, plan.radius)
        if progress is not None:
            progress(step + 1, plan.steps)
    return Run(iterates, sigmas)


class _Allocator:
    """Noise of every step: the program is solved anew every few steps, rescaled in between.

    Rescaling to the current table keeps every budget exactly; only optimality waits.
    """

    def __init__(
        self,
        table: SensitivityTable,
        step_budget: FloatArray,
        sampling: SampledBudgets | None,
    ) -> None:
        self.table = table
        self.presence = None if sampling is None else table.presence
        self.budget = step_budget
        if sampling is not None:
            self.budget = np.append(step_budget, sampling.presence**2)
        self.count = 0
        self.dual: FloatArray | None = None
        self.weight: FloatArray | None = None

    def sigma(self, theta: FloatArray) -> FloatArray:
        """σ_j at θ."""
        rows = self.table(theta)
        if self.presence is not None:
            rows = with_presence(rows, self.presence)
        due = self.count % RESOLVE_EVERY == 0 or self.count < RESOLVE_EVERY
        self.count += 1
        if not due and self.weight is not None:
            return self._rescaled(rows, self.weight)
        found = allocate(
            rows, self.budget, self.table.encoder.dimensions, start=self.dual, tolerance=TOLERANCE
        )
        self.dual = found.dual
        with np.errstate(divide="ignore"):
            self.weight = 1.0 / found.sigma**2
        return found.sigma

    def _rescaled(self, rows: FloatArray, last: FloatArray) -> FloatArray:
        """The last weights, scaled so that the tightest budget is just met."""
        limited = np.isfinite(self.budget)
        weight = np.where(np.isfinite(last), last, 0.0)
        ratio = float(((rows[limited] ** 2 @ weight) / self.budget[limited]).max(initial=0.0))
        if ratio <= 0:
            return np.zeros(len(weight))
        with np.errstate(divide="ignore"):
            sigma = np.sqrt(ratio / weight) * (1.0 + 1e-12)
        return np.where(weight > 0, sigma, 0.0)


def _gradient_sum(
    batch: Design, label: FloatArray, score: FloatArray, table: SensitivityTable, lattice: Lattice
) -> FloatArray:
    """Σ_i r̃_iφ_i on the lattice, exact in any order of summation."""
    residual = table.loss.residual(score, label)
    weights = _record_weights(label, table)
    if weights is not None:
        residual *= weights
    return batch.weighted_sum(lattice.round_residual(residual))


def _record_weights(label: FloatArray, table: SensitivityTable) -> FloatArray | None:
    """Public class weight of every record, or None when all are one."""
    if table.class_weights is None:
        return None
    return np.asarray(table.class_weights)[label.astype(np.int64)]
