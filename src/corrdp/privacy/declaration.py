"""What was fixed before anything was released: the first entry of every ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from corrdp.distance import Distances
from corrdp.errors import ConfigurationError, CorrDPError, VerificationError
from corrdp.neighbours import NeighbourKind, neighbour_kinds
from corrdp.privacy.budgets import KindBudget, PrivacyTarget, PureTarget, kind_budgets
from corrdp.schema import Schema

__all__ = ["Declaration"]


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
    """

    schema: Schema
    target: PrivacyTarget
    n: int
    distances: Distances
    seeded: bool

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
        """Allowed loss of every kind (THEORY T3, T4)."""
        values = {name: entry.value for name, entry in self.distances.items()}
        return kind_budgets(self.target, self.kinds, values, self.distances.joint)

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
