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
    "noise_ratio",
    "plan_moments",
    "prefer_moments",
    "regression_query",
    "relative_noise",
]

FloatArray: TypeAlias = NDArray[np.float64]
QUERY = "moments"
# E/n below which moments are as good as gradient descent, cheaper, and give standard errors (T11).
MOMENTS_BELOW = 0.01
# Above this ratio of variances gradient descent was better in every table (benchmarks/ridge.py).
MOST_NOISE_RATIO = 20.0


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


def noise_ratio(plan: QueryPlan, residual_clip: float) -> float:
    """Noise of Σφy against that of one gradient step, as variances; 0 where no kind is limited.

    The step spends the whole budget of the most limited kind on a residual that moves by its
    whole range 2L and all blocks with it (THEORY T5, T6); its noise is then the same for every ε.
    """
    declaration = plan.declaration
    zeros = plan.released([np.zeros(block.size) for block in plan.blocks])
    known = domain(declaration.schema)
    columns = [known[name] for name in declaration.schema.used]
    sizes = [c.domain_size if isinstance(c, Categorical) else 1 for c in columns]
    moved = 2.0 * residual_clip * (1.0 + sum(map(math.sqrt, sizes)))
    least = _smallest_budget(declaration)
    variance = float(moments_of(plan, zeros).cross_variance.sum())
    return variance * least / moved**2 if math.isfinite(least) else 0.0


def _smallest_budget(declaration: Declaration) -> float:
    """The least squared μ of a kind that changes columns; 0 where there is none."""
    return min((b.mu_squared for b in declaration.budgets() if b.kind.columns), default=0.0)


def prefer_moments(declaration: Declaration, residual_clip: float) -> bool:
    """Whether moments are taken by themselves, from public numbers alone.

    E/n must be small (THEORY T11), and so must the noise of Σφy beside that of a gradient step:
    where everything is sensitive gradient descent is better at any n.
    """
    # a column's products with the J others each move by √2 or more, so E ≥ 2√(2J/b): no need to
    # plan where that is too much already
    least = 2.0 * math.sqrt(2.0 * len(declaration.schema.used))
    if not least <= MOMENTS_BELOW * declaration.n * math.sqrt(_smallest_budget(declaration)):
        return False
    try:
        plan = plan_moments(declaration)
    except ConfigurationError:  # their noise leaves the sampler's reach
        return False
    small = relative_noise(plan) <= MOMENTS_BELOW
    return small and noise_ratio(plan, residual_clip) <= MOST_NOISE_RATIO


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
