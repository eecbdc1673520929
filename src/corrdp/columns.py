"""What one column, the label or a group may be: public declarations that check themselves.

Nothing here looks at a record. Bounds, levels and roles are statements about the domain that
anybody may know; learning them from the private file would be a release (THEORY, sharp edge 4).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from corrdp.errors import SchemaError

__all__ = [
    "OTHER",
    "Categorical",
    "Column",
    "Group",
    "Ignored",
    "Label",
    "Level",
    "Numeric",
    "Role",
    "canonical_level",
]

Role: TypeAlias = Literal["sensitive", "insensitive", "public"]
Level: TypeAlias = str | int | float | bool
ROLES = ("sensitive", "insensitive", "public")
OTHER = "other"
DEFAULT_BINS = 10
# Twice the widest range must still be a finite double: the encoder computes 2(x − low).
LARGEST = 2.0**1021


def canonical_level(value: object) -> str:
    """The text that identifies a level: ``1``, ``1.0`` and ``"1"`` are the same level.

    Examples
    --------
    >>> canonical_level(1.0), canonical_level("1"), canonical_level(True)
    ('1', '1', 'True')
    """
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (int, str)):
        return str(value)
    if hasattr(value, "is_integer") and value.is_integer():
        return str(int(value))  # type: ignore[call-overload]
    return str(value)


def _plain(value: Any) -> Any:
    """A NumPy scalar as the Python value it holds."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


def _check_role(name: str, role: object) -> None:
    if role not in ROLES:
        raise SchemaError(f"{name}: role {role!r} is unknown; use one of {', '.join(ROLES)}")


def _finite(name: str, what: str, value: object) -> float:
    """A finite number, or an error that names the column."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (number and abs(value) <= LARGEST):  # type: ignore[arg-type]
        shown = repr(value)
        raise SchemaError(f"{name}: {what} must be a finite number, got {shown[:40]}")
    return float(value)  # type: ignore[arg-type]


def _check_bounds(name: str, low: object, high: object) -> None:
    if low is None or high is None:
        raise SchemaError(f"{name}: declare public bounds low and high (got {low!r}, {high!r})")
    first, last = _finite(name, "low", low), _finite(name, "high", high)
    if not first < last:
        raise SchemaError(f"{name}: low {low!r} must be below high {high!r}; swap or correct them")
    step = (last - first) / DEFAULT_BINS
    if not (first < first + step and last - step < last):
        raise SchemaError(
            f"{name}: low {low!r} and high {high!r} are too close for double precision; subtract a "
            "public constant from the column or change its unit"
        )


@dataclass(frozen=True)
class Numeric:
    """A number between public bounds; values outside are clamped.

    Parameters
    ----------
    low, high : float
        Public bounds in the column's own unit, ``low < high``.
    role : {"sensitive", "insensitive", "public"}
        Defaults to sensitive: forgetting fails safe.
    missing : float, optional
        Public value that stands for a missing one; without it a missing value is an error.
    bins : tuple of float, optional
        Public edges from ``low`` to ``high`` on which distances are measured; an edge written
        twice is a bin of its own (zero-inflated columns). Default: ten equal widths.
    resolution : {"exact", "binned"}
        ``"binned"``: the model sees only the middle of the bin (THEORY T10).
    """

    low: float
    high: float
    role: Role = "sensitive"
    missing: float | None = None
    bins: Sequence[float] | None = None
    resolution: Literal["exact", "binned"] = "exact"

    def __post_init__(self) -> None:
        for name in ("low", "high", "missing"):
            object.__setattr__(self, name, _plain(getattr(self, name)))
        _check_role("numeric column", self.role)
        _check_bounds("numeric column", self.low, self.high)
        if self.missing is not None:
            value = _finite("numeric column", "missing", self.missing)
            if not self.low <= value <= self.high:
                raise SchemaError(
                    f"numeric column: missing={value:g} lies outside [{self.low:g}, {self.high:g}]"
                )
        if self.resolution not in ("exact", "binned"):
            raise SchemaError(f"resolution {self.resolution!r} is unknown; use exact or binned")
        if self.bins is not None:
            if isinstance(self.bins, str) or not hasattr(self.bins, "__iter__"):
                raise SchemaError(f"bins must be a list of edges, got {self.bins!r}")
            edges = tuple(_finite("bins", "an edge", _plain(edge)) for edge in self.bins)
            object.__setattr__(self, "bins", edges)
            self._check_bins()

    def _check_bins(self) -> None:
        edges = self.bins or ()
        ordered = all(a <= b for a, b in itertools.pairwise(edges))
        if len(edges) < 2 or not ordered:
            raise SchemaError(f"bins {edges} must be at least two edges in rising order")
        if edges[0] != self.low or edges[-1] != self.high:
            raise SchemaError(f"bins must run from low={self.low:g} to high={self.high:g}")
        if any(edges.count(edge) > 2 for edge in edges):
            raise SchemaError(f"bins {edges} write an edge more than twice")
        if self.bin_count < 2:
            raise SchemaError("bins leave a single bin: nothing could be measured; add an edge")

    @property
    def edges(self) -> tuple[float, ...]:
        """Bin edges, ten equal widths unless declared."""
        if self.bins is not None:
            return tuple(self.bins)
        step = (self.high - self.low) / DEFAULT_BINS
        inner = [self.low + step * i for i in range(1, DEFAULT_BINS)]
        return (float(self.low), *inner, float(self.high))

    @property
    def bin_count(self) -> int:
        """Number of bins, spike bins included."""
        return len(self.edges) - 1

    @property
    def domain_size(self) -> int:
        """Number of cells a distance is measured on."""
        return self.bin_count


@dataclass(frozen=True)
class Categorical:
    """One of a public list of levels.

    Parameters
    ----------
    levels : sequence of str or int
        At least two different levels (one suffices with ``other``).
    role : {"sensitive", "insensitive", "public"}
        Defaults to sensitive.
    other : {False, True}
        Adds a level named ``other`` that takes every value not listed.
    missing : str or int, optional
        Level that stands for a missing value; without it a missing value is an error.
    """

    levels: Sequence[Level]
    role: Role = "sensitive"
    other: bool = False
    missing: Level | None = None

    def __post_init__(self) -> None:
        _check_role("categorical column", self.role)
        object.__setattr__(self, "levels", _level_tuple("categorical column", self.levels))
        object.__setattr__(self, "missing", _plain(self.missing))
        if not isinstance(self.other, bool):
            raise SchemaError(f"other={self.other!r} must be True or False")
        _check_levels("categorical column", self.names, minimum=2)
        if self.missing is not None and canonical_level(self.missing) not in self.names:
            raise SchemaError(f"missing={self.missing!r} is not one of the levels {self.names}")

    @property
    def names(self) -> tuple[str, ...]:
        """Canonical level names, ``other`` last where it was asked for."""
        listed = tuple(canonical_level(level) for level in self.levels)
        return (*listed, OTHER) if self.other and OTHER not in listed else listed

    @property
    def domain_size(self) -> int:
        """Number of levels."""
        return len(self.names)


def _level_tuple(name: str, levels: Any) -> tuple[Level, ...]:
    """Levels as plain texts, numbers and booleans."""
    if isinstance(levels, str) or not isinstance(levels, Sequence):
        raise SchemaError(f"{name}: levels must be a list, got {levels!r}")
    plain = tuple(_plain(level) for level in levels)
    for level in plain:
        if level is None or level == "" or level != level:
            raise SchemaError(f"{name}: an empty level is not allowed; declare missing= instead")
        if not isinstance(level, (str, int, float)) or level in (math.inf, -math.inf):
            raise SchemaError(f"{name}: level {level!r} is no text, finite number or boolean")
    return plain


def _check_levels(name: str, names: Sequence[str], minimum: int) -> None:
    repeated = sorted({level for level in names if list(names).count(level) > 1})
    if repeated:
        raise SchemaError(f"{name}: levels {repeated} are listed twice")
    if len(names) < minimum:
        raise SchemaError(f"{name}: needs at least {minimum} levels, got {list(names)}")


@dataclass(frozen=True)
class Ignored:
    """A column that is in the table and never used."""


Column: TypeAlias = Numeric | Categorical | Ignored


@dataclass(frozen=True)
class Label:
    """What is predicted: ``levels`` for classes, or ``low`` and ``high`` for a number.

    The second level is the positive class. ``role`` defaults to sensitive; a sensitive label
    costs nearly all the gain (THEORY, sharp edge 3).
    """

    name: str
    levels: Sequence[Level] | None = None
    low: float | None = None
    high: float | None = None
    role: Role = "sensitive"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError(f"label: name must be a non-empty text, got {self.name!r}")
        _check_role(f"label {self.name!r}", self.role)
        for name in ("low", "high"):
            object.__setattr__(self, name, _plain(getattr(self, name)))
        if self.levels is None:
            _check_bounds(f"label {self.name!r}", self.low, self.high)
            return
        if self.low is not None or self.high is not None:
            raise SchemaError(f"label {self.name!r}: give levels or bounds, not both")
        object.__setattr__(self, "levels", _level_tuple(f"label {self.name!r}", self.levels))
        _check_levels(f"label {self.name!r}", self.names, minimum=2)

    @property
    def names(self) -> tuple[str, ...]:
        """Canonical names of the classes; empty for a number."""
        return tuple(canonical_level(level) for level in self.levels or ())

    @property
    def is_numeric(self) -> bool:
        """Whether the label is a number."""
        return self.levels is None

    @property
    def bounds(self) -> tuple[float, float]:
        """Public bounds of a numeric label."""
        if self.low is None or self.high is None:
            raise SchemaError(f"label {self.name!r} has classes, not bounds")
        return float(self.low), float(self.high)


@dataclass(frozen=True)
class Group:
    """Columns that are functions of each other: one neighbour kind, one distance.

    Parameters
    ----------
    columns : tuple of str
        Two or more column names.
    values : tuple of tuples, optional
        Public list of joint values. A record outside the list is replaced by ``otherwise``
        before encoding; without a list the joint domain is the product of the columns' domains.
    otherwise : tuple, optional
        Joint value from the list, needed with ``values``.
    """

    columns: Sequence[str]
    values: Sequence[Sequence[Level]] | None = None
    otherwise: Sequence[Level] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.columns, str) or not isinstance(self.columns, Sequence):
            raise SchemaError(f"group {self.columns!r}: pass a tuple of column names")
        object.__setattr__(self, "columns", tuple(self.columns))
        if not all(isinstance(name, str) for name in self.columns):
            raise SchemaError(f"group {self.columns}: column names are texts")
        if len(self.columns) < 2 or len(set(self.columns)) != len(self.columns):
            raise SchemaError(f"group {self.columns}: needs two or more different columns")
        if (self.values is None) != (self.otherwise is None):
            raise SchemaError(f"group {self.name}: declare values and otherwise together")
        if self.values is None or self.otherwise is None:
            return
        where = f"group {self.name}"
        object.__setattr__(self, "values", tuple(_level_tuple(where, v) for v in self.values))
        object.__setattr__(self, "otherwise", _level_tuple(where, self.otherwise))
        if any(len(value) != len(self.columns) for value in (*self.values, self.otherwise)):
            raise SchemaError(f"group {self.name}: each value needs {len(self.columns)} entries")
        if self.otherwise not in self.values or len(self.values) < 2:
            raise SchemaError(f"group {self.name}: otherwise must be one of two or more values")

    @property
    def name(self) -> str:
        """Name of the neighbour kind."""
        return "+".join(self.columns)
