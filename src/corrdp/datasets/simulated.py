"""What a simulation returns: a table and its exact distances; the pieces simulations share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.datasets.dataset import Array, check_distances, check_rows
from corrdp.errors import ConfigurationError
from corrdp.noise import NoiseSource, RandomState
from corrdp.schema import Schema

__all__ = [
    "LABEL",
    "TOO_LARGE",
    "Seed",
    "Simulated",
    "check_count",
    "check_unit",
    "draw_levels",
    "per_column",
]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Seed: TypeAlias = RandomState | NoiseSource
LABEL = "y"
TOO_LARGE = "the joint domain is too large to enumerate"


@dataclass(frozen=True, repr=False, eq=False)
class Simulated:
    """A simulated table with its exact distances (THEORY T2).

    Attributes
    ----------
    name : str
    X : table of shape (n, columns)
    y : array of shape (n,)
    schema : Schema
    distances : mapping of str to float
        Distance of every insensitive column (and of an insensitive label) to the joint sensitive
        tuple, given the columns named in ``background``. A sensitive label is part of the tuple.
    background : tuple of str
        What is known besides the column: empty for the marginal distance, the label if public.
    joint_distance : float or None
        d_U: all insensitive columns (and an insensitive label) change at once, same background.
    conditional_distances : mapping of str to float, or None
        The same as ``distances`` given all other columns that are not sensitive.
    reason : str
        Why a distance is None; empty when none is.
    coefficients : mapping of str to float, or None
        True coefficients of a linear label.
    """

    name: str
    X: Any
    y: Array
    schema: Schema
    distances: Mapping[str, float]
    background: tuple[str, ...] = ()
    joint_distance: float | None = None
    conditional_distances: Mapping[str, float] | None = None
    reason: str = ""
    coefficients: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        check_rows(self.name, self.X, self.y)
        check_distances(self.name, self.distances, self.schema)
        check_distances(self.name, self.conditional_distances or {}, self.schema)
        if self.joint_distance is not None and not 0.0 <= self.joint_distance <= 1.0:
            raise ConfigurationError(f"joint_distance={self.joint_distance} is not in [0, 1]")
        unknown = self.joint_distance is None or self.conditional_distances is None
        if unknown != bool(self.reason):
            raise ConfigurationError("reason must say why a distance is None, and only then")

    def __repr__(self) -> str:
        return f"Simulated({self.name!r}, records={len(self.y)})"


def check_count(name: str, value: int, low: int, high: int | None = None) -> None:
    """A whole number in [low, high]."""
    top = np.inf if high is None else high
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not (whole and low <= value <= top):
        limits = f"at least {low}" if high is None else f"between {low} and {high}"
        raise ConfigurationError(f"{name}={value!r} must be a whole number {limits}")


def check_unit(name: str, value: float) -> float:
    """A number in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)):
        raise ConfigurationError(f"{name}={value!r} must be a number between 0 and 1")
    if not 0.0 <= value <= 1.0:
        raise ConfigurationError(f"{name}={value!r} must lie between 0 and 1")
    return float(value)


def per_column(name: str, value: float | Sequence[float], count: int) -> tuple[float, ...]:
    """One number in [0, 1] per insensitive column."""
    if isinstance(value, (Sequence, np.ndarray)):
        if len(value) != count:
            raise ConfigurationError(f"{name} has {len(value)} entries for {count} columns")
        return tuple(check_unit(f"{name}[{i}]", entry) for i, entry in enumerate(value))
    return (check_unit(name, value),) * count


def draw_levels(shares: FloatArray, uniform: FloatArray) -> IntArray:
    """Levels with these probabilities (shape (levels,) or (n, levels)) from uniforms in (0, 1)."""
    edges = np.cumsum(shares, axis=-1)[..., :-1]
    levels: IntArray = np.sum(uniform[:, None] > edges, axis=1, dtype=np.int64)
    return levels
