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
from corrdp.erm.sensitivity import SensitivityTable
from corrdp.errors import ConfigurationError
from corrdp.noise import Lattice, NoiseSource, release

__all__ = ["Run", "averaged", "project", "train"]

FloatArray: TypeAlias = NDArray[np.float64]
Progress: TypeAlias = Callable[[int, int], None]

TOLERANCE = 1e-3


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
) -> Run:
    """Run the plan; every step meets ``step_budget`` (squared μ per kind).

    Raises
    ------
    ConfigurationError
        If a step needed more noise than the sampler's error analysis was reserved for
        (``max_scale``, in lattice units).
    """
    encoder = design.encoder
    dimensions = encoder.dimensions
    spacing = lattice.spacing
    lattice.check_exact_sum(design.size, table.residual_bound * encoder.scale)
    weights = _record_weights(label, table)
    iterates = np.zeros((plan.steps + 1, encoder.dimension))
    sigmas = np.empty((plan.steps, len(dimensions)))
    penalised = np.ones(encoder.dimension)
    penalised[-1] = 0.0
    dual = None
    for step in range(plan.steps):
        theta = iterates[step]
        allocation = allocate(
            table(theta), step_budget, dimensions, start=dual, tolerance=TOLERANCE
        )
        dual = allocation.dual
        sigmas[step] = allocation.sigma
        if allocation.sigma.max() > max_scale * spacing:
            raise ConfigurationError("the noise outgrew what was reserved for the sampler")
        residual = table.loss.residual(design.scores(theta), label)
        if weights is not None:
            residual *= weights
        total = design.weighted_sum(lattice.round_residual(residual))
        noisy = release(total, encoder.spread(allocation.sigma), spacing, noise)
        gradient = noisy / design.size + plan.alpha * penalised * theta
        iterates[step + 1] = project(theta - plan.learning_rate * gradient, plan.radius)
        if progress is not None:
            progress(step + 1, plan.steps)
    return Run(iterates, sigmas)


def _record_weights(label: FloatArray, table: SensitivityTable) -> FloatArray | None:
    """Public class weight of every record, or None when all are one."""
    if table.class_weights is None:
        return None
    return np.asarray(table.class_weights)[label.astype(np.int64)]
