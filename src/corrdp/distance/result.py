"""Distances of columns to the sensitive tuple, with where they come from (THEORY T2, T10)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from corrdp.errors import ConfigurationError

__all__ = ["Distance", "Distances", "Source"]

Source: TypeAlias = Literal["given", "public", "private", "published", "exact"]


def _unit(name: str, what: str, value: object) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (number and 0 <= value <= 1):  # type: ignore[operator]
        raise ConfigurationError(f"{what} of {name!r} is {value!r}; it must lie in [0, 1]")
    return float(value)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Distance:
    """d of one column or group.

    Attributes
    ----------
    value : float
        The distance that budgets use, in [0, 1].
    low, high : float, optional
        Interval that covers the population's distance with the result's confidence.
    source : {"given", "public", "private", "published", "exact"}
    pair : tuple of str, optional
        The two levels that differ most (never set for a private estimate's raw counts).
    rarest : float, optional
        Records of the rarest level (noisy when the source is private).
    """

    value: float
    low: float | None = None
    high: float | None = None
    source: Source = "given"
    pair: tuple[str, str] | None = None
    rarest: float | None = None

    def __post_init__(self) -> None:
        _unit("distance", "value", self.value)
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                _unit("distance", name, getattr(self, name))
        if self.source not in get_args(Source):
            raise ConfigurationError(f"source {self.source!r} is unknown; use {get_args(Source)}")
        if self.rarest is not None and math.isnan(self.rarest):
            raise ConfigurationError("the rarest level's count is NaN")
        if self.pair is not None:
            object.__setattr__(self, "pair", (str(self.pair[0]), str(self.pair[1])))


@dataclass(frozen=True)
class Distances(Mapping[str, Distance]):
    """Distances by neighbour kind (column or group name); a mapping.

    Attributes
    ----------
    entries : mapping of str to Distance
        A column without an entry counts as d = 1.
    joint : float, optional
        d_U of all insensitive columns at once; 1 when absent.
    confidence : float, optional
        1 − γ, the probability with which every interval covers.
    assumptions : tuple of str
        Sentences that a certificate must repeat.

    Examples
    --------
    >>> Distances.given({"age": 0.3})["age"].value
    0.3
    """

    entries: Mapping[str, Distance] = field(default_factory=dict)
    joint: float | None = None
    confidence: float | None = None
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all(isinstance(entry, Distance) for entry in self.entries.values()):
            raise ConfigurationError("entries must be Distance objects; use Distances.given({...})")
        object.__setattr__(self, "entries", MappingProxyType(dict(self.entries)))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        if self.joint is not None:
            _unit("all insensitive columns", "joint distance", self.joint)
        if self.confidence is not None:
            _unit("the distances", "confidence", self.confidence)

    def __getitem__(self, name: str) -> Distance:
        return self.entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Distances, (dict(self.entries), self.joint, self.confidence, self.assumptions))

    @classmethod
    def given(cls, values: Mapping[str, float], joint: float | None = None) -> Distances:
        """Distances that the user vouches for."""
        entries = {name: Distance(_unit(name, "distance", v)) for name, v in values.items()}
        return cls(entries, joint)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        columns = {
            name: {
                "value": entry.value,
                "low": entry.low,
                "high": entry.high,
                "source": entry.source,
                "pair": None if entry.pair is None else list(entry.pair),
                "rarest": entry.rarest,
            }
            for name, entry in self.entries.items()
        }
        return {
            "columns": columns,
            "joint": self.joint,
            "confidence": self.confidence,
            "assumptions": list(self.assumptions),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Distances:
        """The distances that :meth:`to_dict` wrote."""
        entries = {name: Distance(**entry) for name, entry in plain["columns"].items()}
        return cls(entries, plain["joint"], plain["confidence"], tuple(plain["assumptions"]))
