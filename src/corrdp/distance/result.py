"""The distances a run uses, with where each comes from (THEORY T2, T10)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from corrdp.errors import ConfigurationError

__all__ = ["Distance", "Distances", "Measured", "Resolution", "Source"]

Source: TypeAlias = Literal["given", "public", "private", "published", "exact"]
Resolution: TypeAlias = Literal["binned", "assume-smooth"]
Measured: TypeAlias = Literal["as-declared", "binned", "assume-smooth"]


@dataclass(frozen=True)
class Distance:
    """Distance of one neighbour kind: an insensitive column, a group or the label.

    Attributes
    ----------
    value : float
        d in [0, 1] that calibrates the noise; 1 means full protection, 0 none.
    source : {"given", "public", "private", "published", "exact"}
        Stated by the user; estimated on a public table; released privately; computed straight
        from the private data and not accounted for; computed from a known distribution.
    method : str, optional
        Estimator behind `value`, for example ``"CP"``.
    low, high : float, optional
        Confidence limits, each on its own with the error probability of this column.
    pair : tuple of str, optional
        The two levels that are furthest apart according to the estimate.
    rarest_count : int, optional
        Records in the rarest level, as far as released (noisy for a private source).
    background : tuple of str
        Columns an observer is supposed to know besides this one (K of THEORY T2).
    resolution : {"binned", "assume-smooth"}, optional
        For numeric columns: the model sees the binned column, or P(s | u) is assumed constant
        within bins. None for categorical columns.
    grid_size : int
        m: number of values on the public grid that `value` was rounded up to. The kind is
        calibrated at δ/m (THEORY T10); 1 where the value does not come from a release.
    """

    value: float
    source: Source = "given"
    method: str | None = None
    low: float | None = None
    high: float | None = None
    pair: tuple[str, str] | None = None
    rarest_count: int | None = None
    background: tuple[str, ...] = ()
    resolution: Resolution | None = None
    grid_size: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _unit("distance", self.value))
        if self.source not in get_args(Source):
            raise ConfigurationError(
                f"source={self.source!r} is unknown; use one of {', '.join(get_args(Source))}"
            )
        for name in ("low", "high"):
            limit = getattr(self, name)
            if limit is not None:
                object.__setattr__(self, name, _unit(name, limit))
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ConfigurationError(f"low={self.low!r} exceeds high={self.high!r}; swap them")
        if self.resolution not in (None, *get_args(Resolution)):
            raise ConfigurationError(
                f"resolution={self.resolution!r} is unknown; use 'binned' or 'assume-smooth'"
            )
        if not isinstance(self.grid_size, int) or not self.grid_size >= 1:
            raise ConfigurationError(f"grid_size={self.grid_size!r} must be a whole number >= 1")
        object.__setattr__(self, "background", tuple(self.background))
        if self.pair is not None:
            object.__setattr__(self, "pair", tuple(self.pair))

    @property
    def interval(self) -> tuple[float, float] | None:
        """(low, high) where both are known."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; what equals its default is left out."""
        plain: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in ("value", "source") or value != item.default:
                plain[item.name] = list(value) if isinstance(value, tuple) else value
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Distance:
        """The distance that :meth:`to_dict` wrote; unknown keys are an error."""
        known = {item.name for item in fields(cls)}
        if not isinstance(plain, Mapping) or "value" not in plain or set(plain) - known:
            raise ConfigurationError(f"not a distance: {plain!r}; it needs value, and only {known}")
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in plain.items()
        }
        return cls(**values)


@dataclass(frozen=True)
class Distances(Mapping[str, Distance]):
    """Distances by neighbour kind: insensitive column, group (``a+b``) or insensitive label.

    Behaves as a read-only mapping. A kind that is not listed has d = 1: `value` says so.

    Parameters
    ----------
    columns : mapping of str to Distance
    joint : float, optional
        d_U, the distance of all insensitive columns together, given or conditional; without it
        d_U = 1 (THEORY T2).
    gamma : float, optional
        Probability, over all columns together, that some estimated distance is below the true
        one; None where nothing was estimated.
    assumptions : tuple of str
        Sentences for the certificate.

    Examples
    --------
    >>> distances = Distances.given({"age": 0.3})
    >>> distances["age"].value, distances.value("race")
    (0.3, 1.0)
    """

    columns: Mapping[str, Distance]
    joint: float | None = None
    gamma: float | None = None
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping):
            raise ConfigurationError(
                f"distances must be a mapping from column to distance, got {self.columns!r}"
            )
        for name, distance in self.columns.items():
            if not isinstance(name, str) or not isinstance(distance, Distance):
                raise ConfigurationError(f"distance of {name!r} is {distance!r}, not a Distance")
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        if self.joint is not None:
            object.__setattr__(self, "joint", _unit("joint", self.joint))
        if self.gamma is not None and not 0 < self.gamma < 1:
            raise ConfigurationError(f"gamma={self.gamma!r}: give an error probability in (0, 1)")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Distances, (dict(self.columns), self.joint, self.gamma, self.assumptions))

    def __getitem__(self, name: str) -> Distance:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @classmethod
    def given(cls, values: Mapping[str, float | Distance], joint: float | None = None) -> Distances:
        """Distances stated by the user, numbers in [0, 1] by column, group or label name.

        Raises
        ------
        ConfigurationError
            Not a mapping, or a value that is NaN or outside [0, 1]; the column is named.
        """
        if not isinstance(values, Mapping):
            raise ConfigurationError(
                f"distances={values!r}: pass a mapping such as {{'age': 0.3}} or a Distances object"
            )
        columns = {}
        for name, value in values.items():
            stated = value if isinstance(value, Distance) else Distance(_unit(str(name), value))
            columns[str(name)] = stated
        return cls(columns, joint)

    def value(self, name: str) -> float:
        """d of a kind; 1 where none is listed."""
        return self.columns[name].value if name in self.columns else 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain: dict[str, Any] = {"columns": {n: d.to_dict() for n, d in self.columns.items()}}
        if self.joint is not None:
            plain["joint"] = self.joint
        if self.gamma is not None:
            plain["gamma"] = self.gamma
        if self.assumptions:
            plain["assumptions"] = list(self.assumptions)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Distances:
        """The distances that :meth:`to_dict` wrote; unknown keys are an error."""
        known = {"columns", "joint", "gamma", "assumptions"}
        if not isinstance(plain, Mapping) or "columns" not in plain or set(plain) - known:
            raise ConfigurationError(f"not distances: keys {sorted(plain)}; known are {known}")
        columns = {n: Distance.from_dict(d) for n, d in plain["columns"].items()}
        rest = {key: plain.get(key) for key in ("joint", "gamma")}
        return cls(columns, **rest, assumptions=tuple(plain.get("assumptions", ())))


def _unit(name: str, value: object) -> float:
    """A number in [0, 1]; NaN, booleans and texts are refused."""
    number = not isinstance(value, (bool, str)) and isinstance(value, (int, float))
    if not number and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return _unit(name, value.item())
    if not number or not (math.isfinite(value) and 0 <= value <= 1):  # type: ignore[arg-type,operator]
        raise ConfigurationError(f"distance of {name!r} is {value!r}; it must lie in [0, 1]")
    return float(value)  # type: ignore[arg-type]
