"""Noisy gradient descent on a network, noise re-allocated at every released iterate.

As for linear models (THEORY T4, T5): the iterates are released, so every step takes the
sensitivity table at the current one and spends exactly its fixed budget β_k/T, or, with
Poisson-sampled steps, its fixed changes a_k² and presence c² (THEORY T7). Projection,
rounding of the parameters to single precision and averaging are post-processing. Every step has
its own noise stream, so a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.allocation import allocate
from corrdp.erm.sampling import SampledBudgets, with_presence
from corrdp.errors import ConfigurationError
from corrdp.nn.gradients import Inputs, gradient_sum
from corrdp.nn.network import Network
from corrdp.nn.query import GradientQuery
from corrdp.nn.sensitivity import NetworkSensitivity
from corrdp.noise import NoiseSource, release

__all__ = ["NetworkPlan", "NetworkRun", "averaged", "minimise_network", "train_network"]

FloatArray: TypeAlias = NDArray[np.float64]
Progress: TypeAlias = Callable[[int, int], None]
Keep: TypeAlias = Callable[["NetworkRun"], None]

TOLERANCE = 1e-3


@dataclass(frozen=True)
class NetworkPlan:
    """Fixed before the first step.

    Attributes
    ----------
    steps : int
        T.
    learning_rate : float
        η, on the mean gradient.
    skip_radius : float
        Ball that the skip weights are projected on, output bias included.
    average_from : int
        The model is the mean of iterates average_from .. T.
    skip_factor : float
        η of the skip weights is so many times as large: nothing amplifies them as the output
        weights do the hidden layer.
    """

    steps: int
    learning_rate: float
    skip_radius: float
    average_from: int
    skip_factor: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise ConfigurationError(f"steps={self.steps!r} must be a whole number >= 1")
        for name in ("learning_rate", "skip_radius", "skip_factor"):
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not (number and 0 < value < math.inf):
                raise ConfigurationError(f"{name}={value!r} must be a positive finite number")
        if not 0 <= self.average_from <= self.steps:
            raise ConfigurationError(f"average_from={self.average_from!r} must lie in 0..steps")

    def rates(self, network: Network) -> FloatArray:
        """η of every parameter."""
        factor = [self.skip_factor if b.path == "skip" else 1.0 for b in network.blocks]
        return self.learning_rate * network.spread(np.array(factor))


@dataclass(frozen=True, repr=False)
class NetworkRun:
    """Everything that training released so far.

    Attributes
    ----------
    iterates : array of shape (steps done + 1, parameters)
        In single precision's values; the first is the public start.
    sigma : array of shape (steps done, blocks)
        Noise of every step on the gradient sum.
    dual : array, optional
        Solution of the last allocation, from which the next one starts.
    """

    iterates: FloatArray
    sigma: FloatArray
    dual: FloatArray | None = None

    def __repr__(self) -> str:
        return f"NetworkRun(steps={len(self.sigma)}, parameters={self.iterates.shape[1]})"


def single_precision(parameters: FloatArray) -> FloatArray:
    """The nearest single-precision values: half the size in a ledger."""
    return parameters.astype(np.float32).astype(np.float64)


def averaged(iterates: FloatArray, plan: NetworkPlan) -> FloatArray:
    """The model: mean of the later iterates."""
    mean: FloatArray = iterates[plan.average_from :].mean(axis=0)
    return mean


def train_network(
    inputs: Inputs,
    label: FloatArray,
    table: NetworkSensitivity,
    step_budget: FloatArray,
    plan: NetworkPlan,
    noise: NoiseSource,
    max_scale: float,
    *,
    sampling: SampledBudgets | None = None,
    fixed_noise: FloatArray | None = None,
    start: NetworkRun | None = None,
    progress: Progress | None = None,
    keep: Keep | None = None,
) -> NetworkRun:
    """Run the plan, or the rest of it after ``start``; every step meets ``step_budget``.

    Parameters
    ----------
    step_budget : array of shape (kinds,)
        Squared μ, or squared change, per kind and step.
    max_scale : float
        Largest noise in lattice units that the sampler's slack was reserved for.
    sampling : SampledBudgets, optional
        Each step takes a Poisson sample and meets the presence bound too; an empty sample is a
        noise-only step, and sums are divided by the fixed q·n.
    fixed_noise : array of shape (blocks,), optional
        σ of every step, fixed in advance, instead of an allocation.
    keep : callable, optional
        Called with what was released after every step.

    Raises
    ------
    ConfigurationError
        If a step needs more noise than was reserved for.
    """
    query, network = table.query, table.query.network
    if query.lattice is None:
        raise ConfigurationError("private training needs a lattice")
    query.check_exact_sum(inputs.size)
    expected = inputs.size * (1.0 if sampling is None else sampling.rate)
    rates, run = plan.rates(network), _begun(plan, network, noise, start)
    iterates, sigmas = run.iterates, run.sigma
    allocator = _Allocator(table, step_budget, sampling, run.dual)
    for step in range(0 if start is None else len(start.sigma), plan.steps):
        parameters = iterates[step]
        sigmas[step] = allocator.sigma(parameters) if fixed_noise is None else fixed_noise
        if sigmas[step].max() > max_scale * query.lattice.spacing:
            raise ConfigurationError("the noise outgrew what was reserved for the sampler")
        batch = inputs
        if sampling is not None:
            coins = noise.child("sample", step)
            batch = inputs.sampled(coins.poisson_sample(inputs.size, sampling.rate))
        total = gradient_sum(query, parameters, batch, label)
        spread = network.spread(sigmas[step])
        noisy = release(total, spread, query.lattice.spacing, noise.child("gradient", step))
        moved = parameters - rates / expected * noisy
        iterates[step + 1] = single_precision(network.project(moved, plan.skip_radius))
        if keep is not None:
            keep(NetworkRun(iterates[: step + 2], sigmas[: step + 1], allocator.dual))
        if progress is not None:
            progress(step + 1, plan.steps)
    return run


def _begun(
    plan: NetworkPlan, network: Network, noise: NoiseSource, start: NetworkRun | None
) -> NetworkRun:
    """Room for the whole run, filled as far as it went before."""
    iterates = np.empty((plan.steps + 1, network.dimension))
    sigmas = np.empty((plan.steps, len(network.blocks)))
    if start is None:
        iterates[0] = single_precision(network.initial(noise.child("start")))
    else:
        first = len(start.sigma)
        iterates[: first + 1], sigmas[:first] = start.iterates, start.sigma
    return NetworkRun(iterates, sigmas, None if start is None else start.dual)


class _Allocator:
    """Least noise at the current parameters that meets every fixed budget of a step."""

    def __init__(
        self,
        table: NetworkSensitivity,
        step_budget: FloatArray,
        sampling: SampledBudgets | None,
        dual: FloatArray | None,
    ) -> None:
        self.table = table
        self.presence = None if sampling is None else table.presence
        self.budget = step_budget
        if sampling is not None:
            self.budget = np.append(step_budget, sampling.presence**2)
        self.dual = dual

    def sigma(self, parameters: FloatArray) -> FloatArray:
        """σ_j of every block."""
        rows = self.table(parameters)
        if self.presence is not None:
            rows = with_presence(rows, self.presence)
        dimensions = self.table.query.network.dimensions
        found = allocate(rows, self.budget, dimensions, start=self.dual, tolerance=TOLERANCE)
        self.dual = found.dual
        return found.sigma


def minimise_network(
    query: GradientQuery,
    inputs: Inputs,
    label: FloatArray,
    start: FloatArray,
    *,
    steps: int,
    rate: float = 0.05,
) -> FloatArray:
    """Training without privacy: Adam on the full-batch gradient, the rate falling to zero."""
    network: Network = query.network
    parameters = start.copy()
    mean, square = np.zeros_like(start), np.zeros_like(start)
    for step in range(1, steps + 1):
        gradient = gradient_sum(query, parameters, inputs, label) / max(inputs.size, 1)
        mean += 0.1 * (gradient - mean)
        square += 0.01 * (gradient**2 - square)
        size = np.sqrt(square / (1.0 - 0.99**step)) + 1e-8
        decay = 0.5 * (1.0 + math.cos(math.pi * step / (steps + 1)))
        parameters = parameters - rate * decay * (mean / (1.0 - 0.9**step)) / size
        network.project(parameters, 1e9)
    return parameters
