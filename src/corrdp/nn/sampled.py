"""Poisson-sampled steps of a network: what planning and accounting need of it (THEORY T7, T12).

A network's bounds depend on the released weights, the accountant's do not: a_k and c are fixed
before the run, and every step allocates noise from the table at its own weights so that no kind
moves the sum by more than a_k, and no contribution exceeds c, in units of that noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.erm.fixed_noise import fixed_sampling
from corrdp.erm.sampled_account import Reach
from corrdp.erm.sampling import (
    SampledBudgets,
    StepTable,
    checked_rate,
    default_rate,
    full_batch_presence,
    sampled_budgets,
)
from corrdp.nn.network import Network
from corrdp.nn.published import network_noise, standard_noise
from corrdp.nn.sensitivity import NetworkSensitivity
from corrdp.privacy.budgets import KindBudget
from corrdp.privacy.declaration import Declaration

__all__ = [
    "plan_published_sampling",
    "plan_sampling",
    "reach_of",
    "reference_parameters",
    "sampled_steps",
    "step_table",
]

FloatArray: TypeAlias = NDArray[np.float64]
# as for linear models: presence of a full-batch step over the rate, beyond which sampling is dear
DEAR_PRESENCE = 0.2
MOST_STEPS = 500
# norm of every unit's and every score's weights at the public reference point, where a full batch
# needs the noise that it needs on average over a run on Adult (benchmarks/networks_sampled.py)
REFERENCE_NORM = 1.0


def reference_parameters(network: Network) -> FloatArray:
    """A public point with moderate score movements; no two rows have the same signs."""
    index = np.arange(network.dimension)
    signs = 1.0 - 2.0 * (np.bitwise_count(index) % 2)
    parameters: FloatArray = signs.astype(np.float64)
    for layer in [network.first_layer(parameters), network.skip_layer(parameters)]:
        layer *= REFERENCE_NORM / math.sqrt(len(layer))
    for layer in network.deeper_layers(parameters):
        layer /= math.sqrt(len(layer))
    if network.output_weights == "trained":
        network.output_layer(parameters)[:] = network.fixed_output
    return parameters


def step_table(table: NetworkSensitivity, radius: float) -> StepTable:
    """Of a network whose skip weights stay in the ball of ``radius``."""
    network = table.query.network
    reference = table(reference_parameters(network))
    return StepTable(table.largest(radius), reference, table.presence, network.dimensions)


def reach_of(table: NetworkSensitivity, radius: float) -> Reach:
    """Bounds over all parameters, for what was fixed before the run."""
    return Reach(table.infimum, table.supremum(radius), table.least_presence)


def sampled_steps(step: StepTable, widest: FloatArray, rate: float, usual: int) -> int:
    """Steps at a rate of the user's: a small one is dear in few steps, so take more (THEORY T7)."""
    single = full_batch_presence(step, widest, 1)
    wanted = math.ceil(min((single / (DEAR_PRESENCE * rate)) ** 2, MOST_STEPS))
    return max(usual, wanted)


def plan_sampling(
    declaration: Declaration,
    budgets: Sequence[KindBudget],
    step: StepTable,
    steps: int,
    sample_rate: float | None,
) -> SampledBudgets:
    """Rate, presence and changes of T Poisson-sampled steps."""
    widest = np.array([one.fixed for one in budgets])
    full = full_batch_presence(step, widest, steps)
    rate = checked_rate(sample_rate, default_rate(full))
    return sampled_budgets(declaration, budgets, step, rate, steps, full)


def plan_published_sampling(
    declaration: Declaration,
    table: NetworkSensitivity,
    radius: float,
    steps: int,
    sample_rate: float | None,
) -> tuple[float, SampledBudgets]:
    """σ of the published calibration for sampled steps, and what it amounts to."""
    widest = np.array([one.fixed for one in declaration.budgets()])
    full = full_batch_presence(step_table(table, radius), widest, steps)
    rate = checked_rate(sample_rate, default_rate(full))
    base = standard_noise(declaration, table, steps, rate)
    return base, fixed_sampling(declaration, network_noise(table, radius, base), rate)
