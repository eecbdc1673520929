"""What was fixed before anything was released: the first entry of every ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from corrdp.distance import Distances
from corrdp.errors import ConfigurationError, CorrDPError, VerificationError
from corrdp.neighbours import NeighbourKind, neighbour_kinds
from corrdp.privacy.budgets import (
    KindBudget,
    PrivacyTarget,
    PureTarget,
    kind_budgets,
    reserved_mu_squared,
)
from corrdp.schema import Schema

__all__ = ["Declaration", "EstimateCost"]


@dataclass(frozen=True)
class EstimateCost:
    """What a private estimate of the distances took from every kind (THEORY T10).

    Attributes
    ----------
    mu_squared : mapping of str to float
        Cost per neighbour kind, fixed before the estimate.
    floors : mapping of str to float
        Least value that each estimated distance can take.
    draws : int
        Noisy counts released.
    largest_sigma : float
        Their largest noise, in counts.
    """

    mu_squared: Mapping[str, float]
    floors: Mapping[str, float]
    draws: int
    largest_sigma: float


@dataclass(frozen=True)
class Declaration:
    """Schema, target, distances and number of records.

    Attributes
    ----------
    schema : Schema
    target : PrivacyTarget
    n : int
        Number of records (public).
    distances : Distances
        Distance of every insensitive column that has one, by neighbour kind.
    seeded : bool
        Whether the noise can be reproduced; then nothing is private.
    estimate : EstimateCost, optional
        Set once the distances were released by this ledger; budgets are what is left.
    """

    schema: Schema
    target: PrivacyTarget
    n: int
    distances: Distances
    seeded: bool
    estimate: EstimateCost | None = None

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n < 1:
            raise ConfigurationError(f"n={self.n!r} must be a whole number >= 1")
        names = {kind.name for kind in self.kinds}
        if not names:
            raise ConfigurationError(
                "no column is protected: every role is public; use epsilon=inf, or mark columns "
                "as sensitive or insensitive"
            )
        unknown = sorted(name for name in self.distances if name not in names)
        if unknown:
            raise ConfigurationError(
                f"distances name {unknown}, which are not insensitive columns or groups of the "
                f"schema; those are {sorted(n for n in names if not n.startswith('<'))}"
            )

    @property
    def kinds(self) -> tuple[NeighbourKind, ...]:
        """All neighbour kinds of the schema."""
        return neighbour_kinds(self.schema)

    def budgets(self) -> tuple[KindBudget, ...]:
        """Allowed loss of every kind; after an estimate, what it left (THEORY T3, T4, T10)."""
        values = {name: entry.value for name, entry in self.distances.items()}
        budgets = kind_budgets(self.target, self.kinds, values, self.distances.joint)
        if self.estimate is None:
            return budgets
        return tuple(self._left(budget, self.estimate) for budget in budgets)

    def _left(self, budget: KindBudget, estimate: EstimateCost) -> KindBudget:
        """The budget of a kind less its share of the estimate.

        A distance released on a grid of m values is calibrated at δ/m, and limited by what its
        floor would allow, which was fixed before the release.
        """
        name = budget.kind.name
        cost = estimate.mu_squared.get(name, 0.0)
        entry = self.distances.get(name)
        grid = 1 if entry is None else entry.grid_size
        delta = budget.delta / grid
        total = reserved_mu_squared(budget.epsilon, delta)
        widest = total
        if grid > 1:
            at_floor = self.target.allowed(budget.kind, estimate.floors[name])
            widest = reserved_mu_squared(at_floor, delta)
        if not total > cost:
            raise ConfigurationError(
                f"the estimate of the distances takes all of the loss allowed for {name!r}; lower "
                "its share (EstimateSettings(share=...)) or drop the cap on that kind"
            )
        left = (total - cost) * (1.0 - 1e-15)
        return replace(budget, delta=delta, mu_squared=left, fixed=widest - cost)

    def to_entry(self) -> dict[str, Any]:
        """Content of the ledger entry."""
        return {
            "schema": self.schema.to_dict(),
            "target": asdict(self.target),
            "n": self.n,
            "distances": self.distances.to_dict(),
            "seeded": self.seeded,
        }

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Declaration:
        """Read back from a ledger entry; a broken one does not verify."""
        try:
            return cls(
                Schema.from_dict(entry["schema"]),
                _target(entry["target"]),
                entry["n"],
                Distances.from_dict(entry["distances"]),
                bool(entry["seeded"]),
            )
        except (KeyError, TypeError, CorrDPError) as error:
            raise VerificationError(f"the declaration is damaged: {error}") from None


def _target(plain: Mapping[str, Any]) -> PrivacyTarget:
    return PureTarget(**plain) if plain.get("delta") == 0.0 else PrivacyTarget(**plain)
