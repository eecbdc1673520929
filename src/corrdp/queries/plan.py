"""One release of several queries: everything that is fixed before noise is drawn (THEORY T4, T5).

The noise is a function of public quantities alone, so what a kind of change loses is known
beforehand and is a guarantee: Σ_j a_kj²/σ_j² squared μ, or Σ_j a_kj/scale_j pure ε, also for the
joint rows. No multiplier λ of T4 can give less, since Σ_j a_κj v_j ≤ Σ_k λ_k Σ_j a_kj v_j. Where
distances were released before, the noise follows them and the multipliers are needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from corrdp.errors import ConfigurationError
from corrdp.noise import NoiseSource
from corrdp.privacy import gdp
from corrdp.privacy.budget import Charge
from corrdp.privacy.budgets import KindBudget, PureTarget, sampler_refusal
from corrdp.privacy.certificate import SamplerUse, certified_loss
from corrdp.privacy.declaration import Declaration
from corrdp.queries.answers import Released, blocks_of
from corrdp.queries.blocks import Block, sensitivity_rows
from corrdp.queries.coding import Checked
from corrdp.queries.gaussian import (
    draw_gaussian,
    gaussian_noise,
    gaussian_use,
    gaussian_variance,
)
from corrdp.queries.laplace import draw_laplace, laplace_scales, laplace_use, laplace_variance
from corrdp.queries.query import Query

__all__ = [
    "Calibration",
    "Mechanism",
    "QueryPlan",
    "add_noise",
    "draw",
    "exact_sums",
    "plan_queries",
]

FloatArray: TypeAlias = NDArray[np.float64]
Mechanism: TypeAlias = Literal["gaussian", "laplace"]
Calibration: TypeAlias = Literal["optimal", "one-scale"]

MOST_BITS = 20
EXACT = 2.0**53
# Noise in lattice cells: far inside what the samplers reach, and its slack is negligible.
MOST_CELLS = 2.0**42


@dataclass(frozen=True, eq=False)
class QueryPlan:
    """Queries, blocks, and noise.

    Attributes
    ----------
    declaration : Declaration
    queries : mapping of str to Query
    mechanism, calibration : str
    blocks : tuple of Block
        Every sum once, however many queries need it.
    noise : array of shape (blocks,)
        σ or Laplace scale, in the unit of the block.
    bits : int
        Numbers are multiples of 2^-bits of half their range.
    """

    declaration: Declaration
    queries: Mapping[str, Query]
    mechanism: Mechanism
    calibration: Calibration
    blocks: tuple[Block, ...]
    noise: FloatArray
    bits: int

    def __post_init__(self) -> None:
        if not (np.isfinite(self.noise).all() and (self.noise >= 0).all()):
            raise ConfigurationError("the noise of a release must be finite and not negative")
        pure = isinstance(self.declaration.target, PureTarget)
        if pure != (self.mechanism == "laplace"):
            raise ConfigurationError("mechanism 'laplace' needs delta=0, 'gaussian' a positive one")

    @property
    def sensitivity(self) -> FloatArray:
        """a_kj, shape (kinds, blocks): L1 for Laplace, L2 for Gaussian noise."""
        one, two = self._rows
        return one if self.mechanism == "laplace" else two

    @property
    def spacing(self) -> FloatArray:
        """Lattice of every block."""
        return np.array([block.spacing(self.bits) for block in self.blocks])

    def use(self) -> FloatArray:
        """What every kind loses: ε (Laplace) or squared μ (Gaussian), known beforehand."""
        spent = laplace_use if self.mechanism == "laplace" else gaussian_use
        return spent(self.sensitivity, self.noise)

    def sampler(self) -> SamplerUse:
        """How the Gaussian sampler is used; nothing for the exact Laplace one."""
        if self.mechanism == "laplace":
            return SamplerUse(0, 0.0, 1)
        draws = sum(block.size for block, sigma in zip(self.blocks, self.noise) if sigma > 0)
        return SamplerUse(draws, float((self.noise / self.spacing).max(initial=0.0)), 1)

    def spent_budgets(self) -> tuple[KindBudget, ...]:
        """The kinds' budgets with what this release takes of them, in squared μ."""
        use = self.use()
        if self.mechanism == "laplace":
            use = np.array([float(gdp.mu_of_pure(e)) ** 2 if e > 0 else 0.0 for e in use])
        budgets = self.declaration.budgets()
        return tuple(replace(b, mu_squared=float(u)) for b, u in zip(budgets, use, strict=True))

    def charge(self) -> Charge:
        """What a :class:`~corrdp.privacy.budget.PrivacyBudget` is asked for."""
        target = self.declaration.target
        return Charge.of("queries", target, self.spent_budgets())

    def variance(self) -> FloatArray:
        """Noise variance per coordinate of every block."""
        law = laplace_variance if self.mechanism == "laplace" else gaussian_variance
        return np.array([law(float(s), h) for s, h in zip(self.noise, self.spacing, strict=True)])

    def released(self, values: Sequence[FloatArray]) -> Released:
        """Noisy sums by block, with their variances."""
        names = [block.name for block in self.blocks]
        return Released(
            dict(zip(names, values, strict=True)),
            dict(zip(names, map(float, self.variance()), strict=True)),
            self.declaration.n,
        )

    @cached_property
    def _rows(self) -> tuple[FloatArray, FloatArray]:
        declaration = self.declaration
        people = declaration.target.records_per_person
        return sensitivity_rows(self.blocks, declaration.kinds, declaration.schema, people)


def plan_queries(
    declaration: Declaration,
    queries: Mapping[str, Query],
    mechanism: Mechanism,
    calibration: Calibration,
) -> QueryPlan:
    """Blocks, noise and lattice of a release, from public numbers alone.

    Raises
    ------
    ConfigurationError
        For a query that does not fit the schema, noise beyond the sampler, or an allowed loss that
        leaves no room for the sampler's slack.
    """
    for name, allowed in (("mechanism", Mechanism), ("calibration", Calibration)):
        value = mechanism if name == "mechanism" else calibration
        if value not in get_args(allowed):
            raise ConfigurationError(f"{name}={value!r} is unknown; use one of {get_args(allowed)}")
    _check_sources(declaration)
    blocks = _distinct(declaration, queries)
    target = declaration.target
    one, two = sensitivity_rows(
        blocks, declaration.kinds, declaration.schema, target.records_per_person
    )
    sizes = np.array([float(block.size) for block in blocks])
    budgets = declaration.budgets()
    if mechanism == "laplace":
        noise = laplace_scales(one, budgets, sizes, calibration)
    else:
        noise = gaussian_noise(two, budgets, sizes, calibration)
    bits = _bits(blocks, noise, declaration.n)
    plan = QueryPlan(declaration, dict(queries), mechanism, calibration, blocks, noise, bits)
    return _within_reserve(plan) if mechanism == "gaussian" else plan


def _check_sources(declaration: Declaration) -> None:
    private = [name for name, d in declaration.distances.items() if d.source == "private"]
    if private and declaration.estimate is None:
        raise ConfigurationError(
            f"distances of {private} were released from a private table; queries need distances "
            "that were known before: given, public or exact ones"
        )


def _distinct(declaration: Declaration, queries: Mapping[str, Query]) -> tuple[Block, ...]:
    if not queries:
        raise ConfigurationError("queries is empty; ask for at least one")
    found: dict[str, Block] = {}
    for query in queries.values():
        query.check(declaration.schema)
        for block in blocks_of(query, declaration):
            found.setdefault(block.name, block)
    return tuple(found.values())


def exact_sums(blocks: Sequence[Block], bits: int, n: int) -> bool:
    """Whether sums of n contributions are exact in float64 in any order (THEORY T14)."""
    return all(n * block.largest / block.spacing(bits) < EXACT for block in blocks)


def _bits(blocks: Sequence[Block], noise: FloatArray, n: int) -> int:
    """The finest lattice on which sums of n records are exact and the noise fits the sampler."""
    for bits in range(MOST_BITS, 0, -1):
        cells = [sigma / block.spacing(bits) for block, sigma in zip(blocks, noise, strict=True)]
        if exact_sums(blocks, bits, n) and max(cells) <= MOST_CELLS:
            return bits
    raise ConfigurationError(
        f"noise of up to {noise.max():.3g} units on {n} records is beyond the sampler; allow a "
        "larger epsilon"
    )


def _within_reserve(plan: QueryPlan) -> QueryPlan:
    """The plan on the finest lattice whose sampler stays within the reserve (THEORY T14)."""
    short = _short_of_room(plan)
    for bits in range(plan.bits - 1, 0, -1):
        if short is None:
            break
        plan = replace(plan, bits=bits)
        short = _short_of_room(plan)
    if short is not None:
        raise sampler_refusal(short.kind.name, short.epsilon, "allow more")
    return plan


def _short_of_room(plan: QueryPlan) -> KindBudget | None:
    """A kind that would lose more than it may through the sampler's finite precision."""
    sampler = plan.sampler()
    for budget, use in zip(plan.declaration.budgets(), plan.use(), strict=True):
        if not math.isfinite(budget.mu_squared):
            continue
        spent = min(float(use), budget.mu_squared)
        if not certified_loss([math.sqrt(spent)], [sampler], budget.delta) <= budget.epsilon:
            return budget
    return None


def draw(plan: QueryPlan, table: Checked, source: NoiseSource) -> list[FloatArray]:
    """Noisy sums of every block, in the plan's order."""
    data = table.coded(plan.bits)
    return add_noise(plan, [block.total(data) for block in plan.blocks], source)


def add_noise(
    plan: QueryPlan, totals: Sequence[FloatArray], source: NoiseSource
) -> list[FloatArray]:
    """Exact sums of every block plus the plan's noise, each block from its own stream."""
    add: Any = draw_laplace if plan.mechanism == "laplace" else draw_gaussian
    return [
        add(total, float(noise), float(spacing), source.child("query", position))
        for position, (total, noise, spacing) in enumerate(
            zip(totals, plan.noise, plan.spacing, strict=True)
        )
    ]
