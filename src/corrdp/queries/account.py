"""Ledger entries of a release of queries, and their recomputation (THEORY T4, T5).

``query-budget`` fixes queries and noise before anything is drawn, ``query-release`` holds the
noisy sums; a ``moments-model`` is post-processing of the release before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.errors import CorrDPError, VerificationError
from corrdp.neighbours import NeighbourKind
from corrdp.noise import NoiseSource
from corrdp.privacy import gdp
from corrdp.privacy.certificate import ReleaseAccount
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.guarantee import guaranteed_mu
from corrdp.privacy.ledger import (
    Ledger,
    decode_array,
    decode_number,
    encode_array,
)
from corrdp.queries.answers import Released
from corrdp.queries.coding import Checked
from corrdp.queries.plan import MOST_BITS, QueryPlan, draw, exact_sums, plan_queries
from corrdp.queries.query import query_from_dict

__all__ = ["model_accounts", "query_accounts", "write_release"]

FloatArray: TypeAlias = NDArray[np.float64]
TOLERANCE = 1e-9


def budget_entry(plan: QueryPlan) -> dict[str, Any]:
    """Content of the ``query-budget`` entry."""
    return {
        "queries": [{"name": name, **query.to_dict()} for name, query in plan.queries.items()],
        "mechanism": plan.mechanism,
        "calibration": plan.calibration,
        "bits": plan.bits,
        "noise": [float(value) for value in plan.noise],
    }


def release_entry(plan: QueryPlan, values: Sequence[FloatArray]) -> dict[str, Any]:
    """Content of the ``query-release`` entry: noisy sums, a block a piece."""
    blocks = zip(plan.blocks, values, strict=True)
    return {"blocks": [{"name": block.name, "values": encode_array(v)} for block, v in blocks]}


def write_release(
    plan: QueryPlan, table: Checked, source: NoiseSource, ledger: Ledger
) -> tuple[Ledger, Released]:
    """Write down what is fixed, draw, write down what came out."""
    ledger = ledger.append("query-budget", budget_entry(plan))
    values = draw(plan, table, source)
    return ledger.append("query-release", release_entry(plan, values)), plan.released(values)


def query_accounts(declaration: Declaration, ledger: Ledger) -> list[ReleaseAccount]:
    """Recompute what each release of queries spent.

    Raises
    ------
    VerificationError
        If entries are missing or damaged. What is readable but does not hold is listed in the
        account's ``problems``.
    """
    before = ledger.of_type("query-budget")
    after = ledger.of_type("query-release")
    if len(before) != len(after):
        raise VerificationError("queries have no release, or a release no budget")
    accounts = []
    for budget, release in zip(before, after, strict=True):
        plan = read_plan(declaration, budget)
        problems = _value_problems(plan, read_release(plan, release))
        problems += _model_problems(plan, ledger, release)
        accounts.append(_account(plan, problems))
    return accounts


def model_accounts(declaration: Declaration, ledger: Ledger) -> list[ReleaseAccount]:
    """Models spend nothing, but each must stand right behind the release that it follows from.

    There :func:`query_accounts` recomputes it; anywhere else nobody would.
    """
    types = [entry["type"] for entry in ledger.entries]
    if any(
        here == "moments-model" and before != "query-release"
        for before, here in zip(["", *types], types)
    ):
        raise VerificationError("a model does not stand behind the release that it follows from")
    return []


def read_plan(declaration: Declaration, entry: Mapping[str, Any]) -> QueryPlan:
    """The plan that an entry fixed, with the noise that was written there."""
    try:
        queries = {
            one["name"]: query_from_dict({k: v for k, v in one.items() if k != "name"})
            for one in entry["queries"]
        }
        own = plan_queries(declaration, queries, entry["mechanism"], entry["calibration"])
        noise = np.array([decode_number(value) for value in entry["noise"]])
        bits = entry["bits"]
        if noise.shape != own.noise.shape or len(queries) != len(entry["queries"]):
            raise VerificationError("the noise of a release is not that of its queries")
        whole = isinstance(bits, int) and not isinstance(bits, bool) and 1 <= bits <= MOST_BITS
        if not whole or not exact_sums(own.blocks, bits, declaration.n):
            raise VerificationError(f"a lattice of {bits!r} bits does not fit this release")
        return QueryPlan(
            declaration, queries, own.mechanism, own.calibration, own.blocks, noise, bits
        )
    except (KeyError, TypeError, CorrDPError) as error:
        raise VerificationError(f"the entry of a release is damaged: {error}") from None


def read_release(plan: QueryPlan, entry: Mapping[str, Any]) -> list[FloatArray]:
    """Noisy sums in the order of the plan's blocks."""
    try:
        pieces = {one["name"]: decode_array(one["values"]) for one in entry["blocks"]}
        values = [pieces[block.name] for block in plan.blocks]
    except (KeyError, TypeError):
        raise VerificationError("a release lacks a block of its queries") from None
    if len(entry["blocks"]) != len(values) or any(
        v.shape != (block.size,) for v, block in zip(values, plan.blocks, strict=True)
    ):
        raise VerificationError("a release holds other sums than its queries")
    return values


def _account(plan: QueryPlan, problems: list[str]) -> ReleaseAccount:
    kinds = plan.declaration.kinds
    budgets = plan.declaration.budgets()
    use = plan.use()
    pure = plan.mechanism == "laplace"
    allowed = np.array([b.epsilon if pure else b.mu_squared for b in budgets])
    problems = problems + _budget_problems(kinds, use, allowed)
    # the noise meets budgets in exact arithmetic; only the rounding up of the sum may exceed
    use = np.where(use <= allowed * (1.0 + TOLERANCE), np.minimum(use, allowed), use)
    if not pure:
        fixed = np.sqrt(use)
        if plan.declaration.estimate is not None:
            # the noise follows released distances: what it happens to allow is no guarantee (T4)
            limits = np.maximum([budget.fixed for budget in budgets], use)
            fixed = guaranteed_mu(kinds, limits, plan.sensitivity, plan.sensitivity)
        return ReleaseAccount("query-release", use, fixed, plan.sampler(), tuple(problems))
    mus = np.array([float(gdp.mu_of_pure(e)) if e > 0 else 0.0 for e in use])
    return ReleaseAccount("query-release", mus**2, mus, plan.sampler(), tuple(problems), use)


def _budget_problems(
    kinds: Sequence[NeighbourKind], use: FloatArray, allowed: FloatArray
) -> list[str]:
    return [
        f"kind {kind.name!r}: the noise allows a loss {spent / limit:.4g} times what was declared"
        for kind, spent, limit in zip(kinds, use, allowed, strict=True)
        if spent > limit * (1.0 + TOLERANCE)
    ]


def _value_problems(plan: QueryPlan, values: Sequence[FloatArray]) -> list[str]:
    problems = []
    for block, value, spacing in zip(plan.blocks, values, plan.spacing, strict=True):
        if not np.isfinite(value).all():
            problems.append(f"{block.name}: a released value is not finite")
        elif not (value / spacing == np.rint(value / spacing)).all():
            problems.append(f"{block.name}: a released value lies off the lattice")
    return problems


def _model_problems(plan: QueryPlan, ledger: Ledger, release: Mapping[str, Any]) -> list[str]:
    """A model must be the one that follows from the release before it."""
    from corrdp.queries.regression import model_problems

    at = [e["digest"] for e in ledger.entries].index(release["digest"]) + 1
    if at < len(ledger.entries) and ledger.entries[at]["type"] == "moments-model":
        return model_problems(plan, read_release(plan, release), ledger.entries[at])
    return []
