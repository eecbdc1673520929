"""Ledger entries of a network's training, and their recomputation (THEORY T4, T12).

``network-budget`` is written before the first step and fixes every number that the guarantee
rests on; ``network-release`` holds what came out. :func:`network_accounts` recomputes the
sensitivity table from the schema and the released iterates alone.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.allocation import allocate
from corrdp.encoding import Encoder
from corrdp.erm.account import read_budgets
from corrdp.erm.losses import Loss
from corrdp.erm.published import known_distances
from corrdp.erm.sampled_account import (
    TOLERANCE,
    presence_use,
    sampled_account,
    step_problems,
)
from corrdp.erm.sampling import SampledBudgets, with_presence
from corrdp.errors import CorrDPError, VerificationError
from corrdp.nn.network import LATTICES, Network, NetworkLattice
from corrdp.nn.published import block_noise, published_account, standard_noise
from corrdp.nn.query import GradientQuery
from corrdp.nn.residual import network_loss_from_dict
from corrdp.nn.sampled import reach_of
from corrdp.nn.sensitivity import NetworkSensitivity
from corrdp.nn.trainer import NetworkPlan, NetworkRun, averaged
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

__all__ = [
    "NetworkSetup",
    "budget_entry",
    "decode_single",
    "encode_single",
    "network_accounts",
    "release_entry",
]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class NetworkSetup:
    """Everything public that defines the mechanism.

    Attributes
    ----------
    scale : float
        h of the encoder, before it is put on the lattice.
    shape : mapping
        The network's options besides the encoder (``Network.to_dict``).
    loss : Loss
    class_weights : tuple of float, optional
    clips : tuple of float
    lattice : NetworkLattice
    plan : NetworkPlan
    max_scale : float
        Largest noise in lattice units that the sampler's slack is reserved for.
    base : float, optional
        σ of the published calibration; None where noise is allocated at every step.
    sampling : SampledBudgets, optional
        Set for Poisson-sampled steps.
    """

    scale: float
    shape: Mapping[str, Any]
    loss: Loss
    class_weights: tuple[float, ...] | None
    clips: tuple[float, ...]
    lattice: NetworkLattice
    plan: NetworkPlan
    max_scale: float
    base: float | None = None
    sampling: SampledBudgets | None = None

    def table(self, declaration: Declaration) -> NetworkSensitivity:
        """The sensitivity table of all kinds."""
        encoder = Encoder(declaration.schema, self.scale, self.lattice.feature_bits)
        network = Network(encoder, **{**self.shape, "hidden": tuple(self.shape["hidden"])})
        query = GradientQuery(network, self.loss, self.class_weights, self.clips, self.lattice)
        return NetworkSensitivity(query, declaration.kinds, declaration.target.records_per_person)

    def sampler(self, dimension: int) -> SamplerUse:
        """How much the lattice sampler is used."""
        return SamplerUse(dimension * self.plan.steps, self.max_scale, self.plan.steps)


def largest_noise(
    table: NetworkSensitivity,
    step_budget: FloatArray,
    skip_radius: float,
    sampling: SampledBudgets | None = None,
) -> float:
    """Four times the largest σ that a step needs at the far end of the parameters."""
    rows = table.largest(skip_radius)
    if sampling is not None:
        rows = with_presence(rows, table.presence)
        step_budget = np.append(sampling.change, sampling.presence**2)
    noise = allocate(rows, step_budget, table.query.network.dimensions, tolerance=1e-3)
    return 4.0 * float(noise.sigma.max())


def encode_single(values: FloatArray) -> dict[str, Any]:
    """Single-precision values as ``{"shape": [...], "float32": base64}``; exact for iterates."""
    array = np.ascontiguousarray(values, dtype="<f4")
    return {"shape": list(array.shape), "float32": base64.b64encode(array.tobytes()).decode()}


def decode_single(plain: Any) -> FloatArray:
    """The array that :func:`encode_single` wrote; anything else does not verify."""
    try:
        raw = base64.b64decode(plain["float32"], validate=True)
        return np.frombuffer(raw, dtype="<f4").reshape(plain["shape"]).astype(np.float64)
    except (KeyError, TypeError, ValueError):
        raise VerificationError("an array in the ledger is damaged") from None


def budget_entry(setup: NetworkSetup, budgets: Sequence[KindBudget]) -> dict[str, Any]:
    """Content of the ``network-budget`` entry."""
    return {
        "scale": setup.scale,
        "network": dict(setup.shape),
        "loss": setup.loss.to_dict(),
        "class_weights": None if setup.class_weights is None else list(setup.class_weights),
        "clips": list(setup.clips),
        "lattice": asdict(setup.lattice),
        "plan": asdict(setup.plan),
        "max_scale": setup.max_scale,
        "base": setup.base,
        "sampling": None if setup.sampling is None else asdict(setup.sampling),
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


def release_entry(run: NetworkRun, plan: NetworkPlan) -> dict[str, Any]:
    """Content of the ``network-release`` entry; the model is the mean of the later iterates."""
    return {
        "iterates": encode_single(run.iterates),
        "sigma": encode_array(run.sigma),
        "coefficients": encode_array(averaged(run.iterates, plan)),
    }


def read_setup(entry: Mapping[str, Any]) -> NetworkSetup:
    """The setup that a ``network-budget`` entry describes."""
    try:
        weights = entry["class_weights"]
        return NetworkSetup(
            decode_number(entry["scale"]),
            dict(entry["network"]),
            network_loss_from_dict(entry["loss"]),
            None if weights is None else tuple(weights),
            tuple(entry["clips"]),
            NetworkLattice(**entry["lattice"]),
            NetworkPlan(**entry["plan"]),
            decode_number(entry["max_scale"]),
            None if entry["base"] is None else decode_number(entry["base"]),
            None if entry["sampling"] is None else SampledBudgets(**entry["sampling"]),
        )
    except (KeyError, TypeError, CorrDPError) as error:
        raise VerificationError(f"the training entry is damaged: {error}") from None


def network_accounts(declaration: Declaration, ledger: Ledger) -> list[ReleaseAccount]:
    """Recompute what each training run of a network spent.

    Raises
    ------
    VerificationError
        If entries are missing or damaged. What is readable but does not hold is listed in the
        account's ``problems``.
    """
    before = ledger.of_type("network-budget")
    after = ledger.of_type("network-release")
    if len(before) != len(after):
        raise VerificationError("a training run has no release, or a release no budget")
    return [_account(declaration, *pair) for pair in zip(before, after, strict=True)]


def _account(
    declaration: Declaration, before: Mapping[str, Any], after: Mapping[str, Any]
) -> ReleaseAccount:
    setup = read_setup(before)
    try:
        table = setup.table(declaration)
    except (TypeError, KeyError, CorrDPError) as error:
        raise VerificationError(f"the training entry is damaged: {error}") from None
    network, steps = table.query.network, setup.plan.steps
    iterates, sigma = decode_single(after["iterates"]), decode_array(after["sigma"])
    shape = (steps, len(network.blocks))
    if iterates.shape != (steps + 1, network.dimension) or sigma.shape != shape:
        raise VerificationError(
            f"the ledger fixed {steps} steps and holds {len(sigma)}; steps were added or removed"
        )
    problems = _model_problems(setup, network, iterates, sigma, decode_array(after["coefficients"]))
    if setup.base is not None:
        return _published(declaration, setup, setup.base, table, sigma, problems)
    use, sampler = step_use(table, iterates, sigma), setup.sampler(network.dimension)
    if setup.sampling is not None:
        reach = reach_of(table, setup.plan.skip_radius)
        present = presence_use(table.presence, sigma)
        return sampled_account(
            "network-release", declaration, setup.sampling, sampler, reach, use, present, problems
        )
    budget, fixed, found = read_budgets(before, declaration, steps)
    problems += [*found, *step_problems(declaration.kinds, use, budget / steps)]
    # where a step used more than its budget the larger of the two is printed, marked as not held
    spent = steps * use.max(axis=0, initial=0.0)
    exceeded = spent > budget * (1.0 + TOLERANCE)
    run = np.where(exceeded, spent, budget)
    fixed = np.where(exceeded, np.maximum(fixed, spent), fixed)
    mus = _guaranteed(declaration, setup, table, fixed)
    return ReleaseAccount("network-release", run, mus, sampler, tuple(problems))


def _guaranteed(
    declaration: Declaration, setup: NetworkSetup, table: NetworkSensitivity, fixed: FloatArray
) -> FloatArray:
    """μ guaranteed for every kind.

    Where the run released distances, its lattice may have followed them: then the largest over
    all lattices counts, which was fixed before (THEORY T4).
    """
    tables = [table]
    if declaration.estimate is not None:
        tables += [replace(setup, lattice=one).table(declaration) for one in LATTICES]
    radius = setup.plan.skip_radius
    found = [
        guaranteed_mu(declaration.kinds, fixed, one.infimum, one.supremum(radius)) for one in tables
    ]
    largest: FloatArray = np.max(found, axis=0)
    return largest


def _published(
    declaration: Declaration,
    setup: NetworkSetup,
    base: float,
    table: NetworkSensitivity,
    sigma: FloatArray,
    problems: list[str],
) -> ReleaseAccount:
    """Account of a run with the published noise; noise below the rule counts for what it is."""
    network = table.query.network
    rule = block_noise(network, base, known_distances(declaration))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(rule > 0, sigma / rule, 1.0)
    if not np.allclose(ratio, 1.0, rtol=TOLERANCE, atol=0.0):
        problems = [*problems, "the noise is not that of the published calibration"]
        base *= min(1.0, float(ratio.min()))
    rate = None if setup.sampling is None else setup.sampling.rate
    if not base >= standard_noise(declaration, table, setup.plan.steps, rate) * (1.0 - 1e-6):
        problems = [*problems, "the noise is less than the published calibration's standard noise"]
    sampler = setup.sampler(network.dimension)
    radius = setup.plan.skip_radius
    account = published_account(declaration, table, radius, base, sampler, rate)
    return replace(account, problems=(*problems, *account.problems))


def step_use(table: NetworkSensitivity, iterates: FloatArray, sigma: FloatArray) -> FloatArray:
    """Σ_j a_kj(θ_t)²/σ_tj² of every step and kind, shape (steps, kinds)."""
    use = np.empty((len(sigma), len(table.kinds)))
    for step, noise in enumerate(sigma):
        squared = table(iterates[step]) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            use[step] = np.where(squared > 0, squared / noise**2, 0.0).sum(axis=1)
    return use


def _model_problems(
    setup: NetworkSetup,
    network: Network,
    iterates: FloatArray,
    sigma: FloatArray,
    coefficients: FloatArray,
) -> list[str]:
    if not (np.isfinite(iterates).all() and np.isfinite(sigma).all() and (sigma >= 0).all()):
        raise VerificationError("iterates or noise in the ledger are not finite")
    problems = []
    skip = max(float(np.linalg.norm(network.skip_layer(one))) for one in iterates)
    output = max(float(np.linalg.norm(network.output_layer(one))) for one in iterates)
    trained = network.output_weights == "trained"
    if skip > setup.plan.skip_radius or (trained and output > network.output_radius):
        problems.append("an iterate lies outside the ball that the guarantee rests on")
    if sigma.max(initial=0.0) > setup.max_scale * setup.lattice.spacing * (1.0 + TOLERANCE):
        problems.append("a step's noise is larger than the sampler's slack was reserved for")
    model = averaged(iterates, setup.plan)
    if coefficients.shape != model.shape or not np.allclose(
        coefficients, model, rtol=TOLERANCE, atol=TOLERANCE
    ):
        problems.append("the model is not the mean of the released iterates")
    return problems
