"""Linear regression from one release of noisy second moments (THEORY T11).

Ledger: the release of a :class:`corrdp.queries.moments.SecondMoments`, then a ``moments-model``
that anybody can recompute from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.distance import EstimateSettings
from corrdp.errors import ConfigurationError, VerificationError
from corrdp.noise import NoiseSource
from corrdp.privacy.budget import PrivacyBudget
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.estimate import check_affordable, plan_of, release_distances
from corrdp.privacy.ledger import Ledger, decode_array, decode_number, encode_array
from corrdp.queries.account import write_release
from corrdp.queries.answers import Released
from corrdp.queries.coding import checked_columns
from corrdp.queries.moments import SecondMoments
from corrdp.queries.plan import QueryPlan, plan_queries
from corrdp.queries.query import domain
from corrdp.queries.ridge import Moments, RidgeFit, solve_ridge
from corrdp.records import Records
from corrdp.schema import Categorical, Schema

__all__ = [
    "MOMENTS_BELOW",
    "fit_moments",
    "ledger_errors",
    "model_problems",
    "moments_of",
    "plan_moments",
    "prefer_moments",
    "regression_query",
    "relative_noise",
]

FloatArray: TypeAlias = NDArray[np.float64]
QUERY = "moments"
# E/n below which moments are as good as gradient descent, cheaper, and give standard errors (T11).
MOMENTS_BELOW = 0.01


def regression_query(schema: Schema) -> SecondMoments:
    """Moments of all used columns and of the label."""
    return SecondMoments((*schema.used, schema.label.name))


def moments_of(plan: QueryPlan, released: Released) -> Moments:
    """Features (constant last), their products with the label, and its square."""
    query = plan.queries[QUERY]
    if not isinstance(query, SecondMoments):
        raise VerificationError("a model needs released second moments")
    schema = plan.declaration.schema
    values, variances, _ = query.matrix(plan.declaration, released)
    label = len(values) - 2
    features = np.delete(np.arange(len(values)), label)
    known = domain(schema)
    one_hot = [known[n].domain_size for n in schema.used if isinstance(known[n], Categorical)]
    starts, _ = query.layout(schema)
    first = [starts[n] for n in schema.used if isinstance(known[n], Categorical)]
    pick = np.ix_(features, features)
    return Moments(
        values[pick],
        variances[pick],
        values[features, label],
        variances[features, label],
        float(values[label, label]),
        float(variances[label, label]),
        plan.declaration.n,
        tuple(zip(first, one_hot, strict=True)),
    )


def relative_noise(plan: QueryPlan) -> float:
    """E/n of THEORY T11: size of the noise matrix of the features against n, known beforehand."""
    zeros = plan.released([np.zeros(block.size) for block in plan.blocks])
    return moments_of(plan, zeros).noise_norm / plan.declaration.n


def prefer_moments(declaration: Declaration) -> bool:
    """Whether moments beat gradient descent, from public numbers alone (THEORY T11)."""
    # a column's products with the J others each move by √2 or more, so E ≥ 2√(2J/b): no need to
    # plan where that is too much already
    used = len(declaration.schema.used)
    smallest = min((b.mu_squared for b in declaration.budgets() if b.kind.columns), default=0.0)
    if not 2.0 * math.sqrt(2.0 * used) <= MOMENTS_BELOW * declaration.n * math.sqrt(smallest):
        return False
    try:
        return relative_noise(plan_moments(declaration)) <= MOMENTS_BELOW
    except ConfigurationError:  # their noise leaves the sampler's reach
        return False


def model_entry(fit: RidgeFit, penalty: float, scale: float) -> dict[str, Any]:
    """Content of the ``moments-model`` entry: θ of the encoder with that scale."""
    errors = fit.standard_error
    return {
        "penalty": penalty,
        "scale": scale,
        "ridge": fit.ridge,
        "floored": fit.floored,
        "coefficients": encode_array(fit.theta / scale),
        "standard_error": None if errors is None else encode_array(errors / scale),
    }


def model_problems(
    plan: QueryPlan, values: Sequence[FloatArray], entry: Mapping[str, Any]
) -> list[str]:
    """What a model entry says that does not follow from the release before it."""
    try:
        penalty, scale = decode_number(entry["penalty"]), decode_number(entry["scale"])
        ridge = decode_number(entry["ridge"])
        claimed, errors = decode_array(entry["coefficients"]), entry["standard_error"]
    except KeyError:
        raise VerificationError("the entry of a model is damaged") from None
    if not (penalty >= 0 and scale > 0 and ridge >= 0):
        raise VerificationError("the entry of a model is damaged")
    # the ridge as written: platforms may choose different ones where two are equally good
    fit = solve_ridge(moments_of(plan, plan.released(values)), penalty, ridge)
    problems = []
    if not _close(claimed, fit.theta / scale):
        problems.append("the model does not follow from the released moments")
    own = fit.standard_error
    same = (errors is None) == (own is None)
    if not same or (own is not None and not _close(decode_array(errors), own / scale)):
        problems.append("the standard errors do not follow from the released moments")
    return problems


def ledger_errors(ledger: Ledger) -> FloatArray | None:
    """Standard errors of the model in a ledger, constant last; None where there are none."""
    for entry in ledger.of_type("moments-model"):
        if entry["standard_error"] is not None:
            return decode_array(entry["standard_error"])
    return None


def _close(claimed: FloatArray, own: FloatArray) -> bool:
    return claimed.shape == own.shape and bool(np.allclose(claimed, own, rtol=1e-6, atol=1e-6))


def plan_moments(declaration: Declaration) -> QueryPlan:
    """The release of all moments that a regression needs; public numbers only."""
    query = regression_query(declaration.schema)
    return plan_queries(declaration, {QUERY: query}, "gaussian", "optimal")


def fit_moments(
    declaration: Declaration,
    records: Records,
    label: FloatArray,
    noise: NoiseSource,
    *,
    penalty: float,
    scale: float,
    estimate: EstimateSettings | None = None,
    budget: PrivacyBudget | None = None,
) -> tuple[RidgeFit, Ledger]:
    """Estimate distances if asked to, release the moments once, and solve.

    Parameters
    ----------
    declaration : Declaration
    records, label
        Checked columns and the label in its own unit.
    noise : NoiseSource
    penalty : float
        As in :func:`corrdp.queries.ridge.solve_ridge`.
    scale : float
        h of the encoder whose coefficients the ledger is to hold.

    Raises
    ------
    BudgetExceededError, ConfigurationError, DataError
        Before anything is drawn.
    """
    table = checked_columns(declaration.schema, {**records.columns}, label)
    ledger = Ledger().append("declaration", declaration.to_entry())
    plan = plan_moments(declaration)
    charge = replace(plan.charge(), name="fit")
    if estimate is not None:
        first = plan_of(declaration, estimate)
        plan_moments(check_affordable(declaration, first))
        charge = replace(charge, distances={}, mu_squared={}, adaptive=True)
    if budget is not None:
        budget.charge(charge)
    if estimate is not None:
        declaration, ledger = release_distances(
            declaration, first, records, label, noise.child("distances"), ledger
        )
        plan = plan_moments(declaration)
    ledger, released = write_release(plan, table, noise.child("moments"), ledger)
    fit = solve_ridge(moments_of(plan, released), penalty)
    return fit, ledger.append("moments-model", model_entry(fit, penalty, scale))
