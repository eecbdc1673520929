"""Private distances as the first release of a run: planned, charged, written, accounted (T10).

Ledger: ``estimate-budget`` fixes the plan before the tables are released, ``estimate-release``
holds the noisy tables; distances, costs and floors are recomputed from these two entries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corrdp.distance import EstimatePlan, EstimateSettings, PrivateDistances, plan_estimate
from corrdp.distance.private import IntegerNoise, estimate_private
from corrdp.errors import ConfigurationError, VerificationError
from corrdp.privacy import gdp
from corrdp.privacy.budgets import RESERVE
from corrdp.privacy.certificate import ReleaseAccount, SamplerUse
from corrdp.privacy.declaration import Declaration, EstimateCost
from corrdp.privacy.ledger import Ledger
from corrdp.records import Records

__all__ = [
    "after_estimate",
    "check_affordable",
    "declaration_of",
    "estimate_accounts",
    "plan_of",
    "release_distances",
]


def plan_of(declaration: Declaration, settings: EstimateSettings) -> EstimatePlan:
    """The estimate's plan: ``settings.share`` of ε at the full δ, less the sampler's reserve."""
    if declaration.target.records_per_person > 1:
        raise ConfigurationError(
            "records_per_person > 1: private distances need one row per person; estimate them on a "
            "public table or on a table of persons, and pass them as given"
        )
    epsilon = settings.share * declaration.target.epsilon * (1.0 - RESERVE)
    mu = float(gdp.mu(epsilon, declaration.target.delta * (1.0 - RESERVE)))
    return plan_estimate(declaration.schema, declaration.n, mu, settings)


def cost_of(declaration: Declaration, plan: EstimatePlan) -> EstimateCost:
    """Cost per kind, floors, and the use of the sampler."""
    return EstimateCost(
        {kind.name: plan.mu_squared(kind.name) for kind in declaration.kinds},
        {table.spec.name: table.grid[0] for table in plan.tables},
        plan.draws,
        plan.largest_sigma,
    )


def check_affordable(declaration: Declaration, plan: EstimatePlan) -> Declaration:
    """The declaration as it would be if every estimated distance came out as 1.

    Raises
    ------
    ConfigurationError
        If the estimate would take all that some kind may lose; nothing has been spent.
    """
    worst = replace(declaration, estimate=cost_of(declaration, plan))
    for budget in worst.budgets():
        smallest = replace(budget, delta=budget.delta / plan.settings.grid_size)
        allowed = declaration.target.allowed(budget.kind, 1.0)
        if math.isfinite(allowed):
            total = float(gdp.mu(allowed * (1 - RESERVE), smallest.delta * (1 - RESERVE))) ** 2
            if not total > plan.mu_squared(budget.kind.name):
                raise ConfigurationError(
                    f"the estimate of the distances could take all of the loss allowed for "
                    f"{budget.kind.name!r}; lower its share (EstimateSettings(share=...))"
                )
    return worst


def release_distances(
    declaration: Declaration,
    plan: EstimatePlan,
    records: Records,
    label: NDArray[Any],
    noise: IntegerNoise,
    ledger: Ledger,
) -> tuple[Declaration, Ledger]:
    """Write the plan, release the tables, and return what follows from them."""
    fixed = {"mu": plan.mu, "records": plan.records, "settings": plan.settings.to_dict()}
    ledger = ledger.append("estimate-budget", fixed)
    estimate = estimate_private(plan, records, label, noise)
    ledger = ledger.append("estimate-release", estimate.to_dict())
    return after_estimate(declaration, estimate), ledger


def after_estimate(declaration: Declaration, estimate: PrivateDistances) -> Declaration:
    """The declaration with estimated distances and what is left of every budget."""
    plan = estimate.plan
    return replace(declaration, distances=estimate.distances, estimate=cost_of(declaration, plan))


def declaration_of(ledger: Ledger) -> Declaration:
    """The declaration of a ledger, with distances that the ledger itself released."""
    declaration = Declaration.from_entry(ledger.one("declaration"))
    if not ledger.of_type("estimate-release"):
        return declaration
    return after_estimate(declaration, _read(declaration, ledger))


def _read(declaration: Declaration, ledger: Ledger) -> PrivateDistances:
    """The estimate of a ledger; its plan must be the one that was fixed before."""
    before, after = ledger.one("estimate-budget"), ledger.one("estimate-release")
    try:
        estimate = PrivateDistances.from_dict(declaration.schema, after)
        expected = plan_of(declaration, estimate.plan.settings)
    except ConfigurationError as error:
        raise VerificationError(f"the estimate of the distances is damaged: {error}") from None
    same = all(_equal(before[key], after[key]) for key in ("mu", "records", "settings"))
    if not same or estimate.plan.mu > expected.mu * (1.0 + 1e-9):
        raise VerificationError("the estimate is not the one that was fixed before it")
    if estimate.plan.records != declaration.n:
        raise VerificationError("the estimate speaks of another number of records")
    return estimate


def _equal(first: Any, second: Any) -> bool:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return dict(first) == dict(second)
    return bool(first == second)


def estimate_accounts(declaration: Declaration, ledger: Ledger) -> list[ReleaseAccount]:
    """What the two releases of the estimate spent, by kind."""
    plan = _read(declaration, ledger).plan
    if not plan.tables:
        return []
    squared = np.array([plan.mu_squared(kind.name) for kind in declaration.kinds])
    sampler = SamplerUse(plan.draws, plan.largest_sigma, steps=1)
    return [ReleaseAccount("estimate-release", squared, np.sqrt(squared), sampler)]
