"""Parameters that every estimator shares: read and checked before a record is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.distance import Distances, EstimateSettings
from corrdp.errors import BudgetExceededError, ConfigurationError
from corrdp.privacy.budget import PrivacyBudget
from corrdp.schema import canonical_level

__all__ = [
    "DistanceChoice",
    "DistanceRequest",
    "RandomState",
    "check_alpha",
    "check_delta",
    "check_epsilon",
    "check_run",
    "distance_request",
    "require_infinite",
    "weights_of",
]

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None
DistanceChoice: TypeAlias = (
    Literal["private", "published"] | EstimateSettings | Distances | Mapping[str, float] | None
)


@dataclass(frozen=True)
class DistanceRequest:
    """What ``distances=`` asks for.

    Attributes
    ----------
    known : Distances
        Distances known before the fit.
    estimate : EstimateSettings, optional
        Set when the fit is to release them first.
    publish : bool
        Whether to compute them from the table itself, unaccounted.
    """

    known: Distances
    estimate: EstimateSettings | None = None
    publish: bool = False


def distance_request(distances: object) -> DistanceRequest:
    """Read ``distances=``; see :class:`CorrDPLogisticRegression`."""
    if distances is None:
        return DistanceRequest(Distances({}))
    if isinstance(distances, EstimateSettings):
        return DistanceRequest(Distances({}), distances)
    if isinstance(distances, str) and distances == "private":
        return DistanceRequest(Distances({}), EstimateSettings())
    if isinstance(distances, str) and distances == "published":
        return DistanceRequest(Distances({}), publish=True)
    if isinstance(distances, Distances):
        return DistanceRequest(distances)
    if isinstance(distances, Mapping):
        return DistanceRequest(Distances.given(distances))
    raise ConfigurationError(
        f"distances={distances!r} is not understood; pass 'private', 'published', an "
        "EstimateSettings, a mapping from column to d, a Distances object, or None for d = 1"
    )


def check_epsilon(epsilon: object) -> float:
    """A positive number, possibly ``inf``."""
    number = isinstance(epsilon, (int, float, np.floating, np.integer))
    if isinstance(epsilon, bool) or not number or not epsilon > 0:  # type: ignore[operator]
        raise ConfigurationError(f"epsilon={epsilon!r} must be positive (inf: no privacy)")
    return float(epsilon)  # type: ignore[arg-type]


def check_run(epsilon: float, budget: object, progress: object) -> None:
    """Check ``budget=`` and ``progress=``.

    Raises
    ------
    BudgetExceededError
        If training without privacy would bypass a budget.
    ConfigurationError
        If one of them is something else than a budget or a callable.
    """
    if progress is not None and not callable(progress):
        raise ConfigurationError(f"progress={progress!r} must be callable: progress(step, steps)")
    if budget is None:
        return
    if not isinstance(budget, PrivacyBudget):
        raise ConfigurationError(f"budget={budget!r} must be a corrdp.PrivacyBudget or None")
    if math.isinf(epsilon):
        raise BudgetExceededError(
            "epsilon=inf releases the table's own optimum: more than any budget; use budget=None"
        )


def check_delta(delta: object, records: int) -> None:
    """Refuse a δ that is no number, or above 1/n: publishing a random record would satisfy it."""
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 < delta < 1:
        raise ConfigurationError(f"delta={delta!r} must be a number strictly between 0 and 1")
    if delta * records > 1:
        raise ConfigurationError(
            f"delta={delta:g} exceeds 1/n = {1 / records:.3g}: publishing a random record would "
            "satisfy it; lower delta"
        )


def check_alpha(alpha: object) -> None:
    """Refuse a penalty that is not a finite number ≥ 0."""
    number = isinstance(alpha, (int, float, np.integer, np.floating))
    if isinstance(alpha, bool) or not number or not 0 <= alpha < math.inf:  # type: ignore[operator]
        raise ConfigurationError(f"alpha={alpha!r} must be a finite number >= 0")


def require_infinite(epsilon: object) -> None:
    """Without a schema only training without privacy is possible."""
    if not math.isinf(check_epsilon(epsilon)):
        raise ConfigurationError(
            f"epsilon={epsilon!r} needs a schema with public bounds, for example Schema("
            '{"age": Numeric(17, 90, role="insensitive"), "sex": Categorical(["F", "M"])}, '
            'Label("income", ["low", "high"])); or set epsilon=inf for training without privacy'
        )


def weights_of(class_weight: object, classes: NDArray[Any]) -> tuple[float, ...]:
    """Public weights in the order of the classes."""
    if not isinstance(class_weight, Mapping):
        raise ConfigurationError(
            f"class_weight={class_weight!r}: pass public numbers, {{class: weight}}; weights "
            "computed from the data are a release"
        )
    given = {canonical_level(key): value for key, value in class_weight.items()}
    names = [canonical_level(level) for level in classes.tolist()]
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise ConfigurationError(f"class_weight names {unknown}; the classes are {names}")
    weights = tuple(given.get(name, 1.0) for name in names)
    numbers = (int, float, np.integer, np.floating)
    if not all(isinstance(w, numbers) and w is not True and 0 < w < math.inf for w in weights):
        raise ConfigurationError(f"class_weight={class_weight!r} must be positive and finite")
    return tuple(float(w) for w in weights)
