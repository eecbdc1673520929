"""From (ε, δ) and distances to the loss allowed for every neighbour kind (THEORY T1, T3, T4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corrdp.errors import ConfigurationError
from corrdp.neighbours import (
    INSENSITIVE,
    RECORD,
    SENSITIVE,
    Adjacency,
    NeighbourKind,
    check_adjacency,
)
from corrdp.privacy import gdp

__all__ = [
    "RESERVE",
    "KindBudget",
    "PrivacyTarget",
    "PureTarget",
    "kind_budgets",
    "sampler_refusal",
]

# Share of every allowed (ε, δ) that is kept back for the sampler's finite precision (THEORY T14).
RESERVE = 1e-3
# A loss above this is refused because noise is too small for the sampler, not too large.
AMPLE = 100.0


def _positive(name: str, value: object) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (number and value > 0):  # type: ignore[operator]
        raise ConfigurationError(f"{name}={value!r} must be a positive number")


@dataclass(frozen=True)
class PrivacyTarget:
    """The loss that is asked for; neighbours differ by substitution in one record.

    Parameters
    ----------
    epsilon : float
        Allowed loss of the sensitive columns, > 0.
    delta : float
        In (0, 1).
    adjacency : {"feature", "record"}
        One insensitive column at a time, or any set of them at once.
    epsilon_cap, record_epsilon, insensitive_epsilon : float, optional
        Upper limits: for every column, for the whole record (ordinary DP), for all insensitive
        columns at once.
    records_per_person : int
        Rows that one person may own.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency = "feature"
    epsilon_cap: float | None = None
    record_epsilon: float | None = None
    insensitive_epsilon: float | None = None
    records_per_person: int = 1

    def __post_init__(self) -> None:
        _positive("epsilon", self.epsilon)
        if not math.isfinite(self.epsilon):
            raise ConfigurationError("epsilon=inf is training without privacy: no target applies")
        self._check_delta()
        check_adjacency(self.adjacency)
        for name in ("epsilon_cap", "record_epsilon", "insensitive_epsilon"):
            value = getattr(self, name)
            if value is not None:
                _positive(name, value)
                if not math.isfinite(value):
                    raise ConfigurationError(f"{name}=inf limits nothing; leave it out (None)")
                if value < self.epsilon and name != "record_epsilon":
                    raise ConfigurationError(
                        f"{name}={value!r} is below epsilon={self.epsilon!r}; lower epsilon instead"
                    )
        rows = self.records_per_person
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise ConfigurationError(f"records_per_person={rows!r} must be a whole number >= 1")

    def _check_delta(self) -> None:
        if not (isinstance(self.delta, float) and 0 < self.delta < 1):
            raise ConfigurationError(f"delta={self.delta!r} must lie strictly between 0 and 1")

    def allowed(self, kind: NeighbourKind, distance: float) -> float:
        """ε_k: ε/d_k under the caps, ``inf`` where nothing limits the kind."""
        limit = math.inf if self.epsilon_cap is None else float(self.epsilon_cap)
        if kind.name == SENSITIVE:
            return float(self.epsilon)
        if kind.name == RECORD:
            return math.inf if self.record_epsilon is None else float(self.record_epsilon)
        if kind.name == INSENSITIVE:
            joint = math.inf if self.insensitive_epsilon is None else self.insensitive_epsilon
            if self.adjacency == "feature":
                return float(joint)
            limit = min(limit, joint)
        return min(limit, self.epsilon / distance) if distance > 0 else limit


@dataclass(frozen=True)
class PureTarget(PrivacyTarget):
    """A target with δ = 0, for mechanisms with exact discrete Laplace noise only (THEORY T14).

    Whatever uses Gaussian noise asks for a :class:`PrivacyTarget` and so refuses δ = 0.
    """

    delta: float = 0.0

    def _check_delta(self) -> None:
        if not (isinstance(self.delta, float) and self.delta == 0.0):
            raise ConfigurationError(f"delta={self.delta!r} must be 0.0 for a pure loss")


@dataclass(frozen=True)
class KindBudget:
    """What one kind may lose in the whole run, in (ε, δ) and in squared μ.

    Attributes
    ----------
    kind : NeighbourKind
    distance : float
        d_k (1 for the sensitive columns and the whole record).
    epsilon, delta : float
        Allowed loss; ``epsilon`` is ``inf`` where nothing limits the kind.
    mu_squared : float
        Run budget β_k = μ(ε_k, δ_k)² after the reserve, fixed before the run; with δ = 0 the
        squared μ that every ε_k-DP release satisfies, an upper limit of its cost.
    fixed : float
        Upper limit of ``mu_squared`` that was fixed before the first release of any kind; larger
        only where the distance was itself released (THEORY T10).
    """

    kind: NeighbourKind
    distance: float
    epsilon: float
    delta: float
    mu_squared: float
    fixed: float = math.nan

    def __post_init__(self) -> None:
        if math.isnan(self.fixed):
            object.__setattr__(self, "fixed", self.mu_squared)
        if not 0 <= self.distance <= 1:
            raise ConfigurationError(
                f"distance of {self.kind.name!r} is {self.distance!r}; it must lie in [0, 1]"
            )
        if not (self.epsilon > 0 and 0 <= self.delta < 1 and self.mu_squared >= 0):
            raise ConfigurationError(f"budget of {self.kind.name!r} is not a valid loss")


def reserved_mu_squared(epsilon: float, delta: float) -> float:
    """μ² allowed by (ε, δ) after the sampler's reserve, rounded down."""
    if math.isinf(epsilon):
        return math.inf
    return float(gdp.mu(epsilon * (1.0 - RESERVE), delta * (1.0 - RESERVE))) ** 2 * (1.0 - 1e-15)


def sampler_refusal(kind: str, epsilon: float, mend: str) -> ConfigurationError:
    """The error where the sampler's slack does not fit into the reserve of a kind's loss.

    ``mend`` is what helps where the loss is small; a loss above ``AMPLE`` asks for less noise
    than the sampler reaches over, and has to be limited.
    """
    limits = {
        SENSITIVE: "lower epsilon",
        INSENSITIVE: "lower insensitive_epsilon",
        RECORD: "lower record_epsilon",
    }
    if epsilon > AMPLE:
        mend = limits.get(kind, "set epsilon_cap") + f", {AMPLE:g} is as good as no protection"
    return ConfigurationError(
        f"the loss allowed for {kind!r} (epsilon {epsilon:g}) leaves no room for the sampler's "
        f"finite precision; {mend}"
    )


def kind_budgets(
    target: PrivacyTarget,
    kinds: Sequence[NeighbourKind],
    distances: Mapping[str, float],
    joint_distance: float | None = None,
) -> tuple[KindBudget, ...]:
    """Budgets of all kinds; a column without a distance gets d = 1, U without one d_U = 1."""
    budgets = []
    for kind in kinds:
        distance = 1.0
        if kind.name == INSENSITIVE:
            distance = 1.0 if joint_distance is None else float(joint_distance)
        elif kind.name not in (SENSITIVE, RECORD):
            distance = float(distances.get(kind.name, 1.0))
        if not 0 <= distance <= 1:
            raise ConfigurationError(
                f"distance of {kind.name!r} is {distance!r}; it must lie in [0, 1]"
            )
        allowed = target.allowed(kind, distance)
        if isinstance(target, PureTarget):
            squared = float(gdp.mu_of_pure(allowed)) ** 2 * (1.0 + 1e-15)
        else:
            squared = reserved_mu_squared(allowed, target.delta)
        budgets.append(KindBudget(kind, distance, allowed, target.delta, squared))
    return tuple(budgets)
