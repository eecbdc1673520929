"""What the columns are and who is protected: public declarations only.

Nothing here looks at a record. Bounds, levels, roles and groups are statements about the domain
that anybody may know; learning them from the private file would be a release (THEORY, sharp
edge 4).
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import tomli_w

from corrdp.errors import SchemaError

__all__ = [
    "Categorical",
    "Column",
    "Group",
    "Ignored",
    "Label",
    "Level",
    "Numeric",
    "Role",
    "Schema",
    "canonical_level",
]

Role: TypeAlias = Literal["sensitive", "insensitive", "public"]
Level: TypeAlias = str | int | float | bool
ROLES = ("sensitive", "insensitive", "public")
OTHER = "other"
RESERVED = ("<sensitive>", "<insensitive>", "<record>", "<intercept>")
DEFAULT_BINS = 10


def canonical_level(value: object) -> str:
    """The text that identifies a level: ``1``, ``1.0`` and ``"1"`` are the same level.

    Examples
    --------
    >>> canonical_level(1.0), canonical_level("1"), canonical_level(True)
    ('1', '1', 'True')
    """
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _check_role(name: str, role: object) -> None:
    if role not in ROLES:
        raise SchemaError(f"{name}: role {role!r} is unknown; use one of {', '.join(ROLES)}")


def _finite(name: str, what: str, value: object) -> float:
    """A finite number, or an error that names the column."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise SchemaError(f"{name}: {what} must be a finite number, got {value!r}")
    return float(value)


def _check_bounds(name: str, low: object, high: object) -> None:
    if low is None or high is None:
        raise SchemaError(f"{name}: declare public bounds low and high (got {low!r}, {high!r})")
    if not _finite(name, "low", low) < _finite(name, "high", high):
        raise SchemaError(f"{name}: low {low!r} must be below high {high!r}; swap or correct them")


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
            object.__setattr__(self, "bins", tuple(float(edge) for edge in self.bins))
            self._check_bins()

    def _check_bins(self) -> None:
        edges = self.bins or ()
        ordered = all(a <= b for a, b in itertools.pairwise(edges))
        if len(edges) < 2 or not ordered or any(not math.isfinite(edge) for edge in edges):
            raise SchemaError(f"bins {edges} must be at least two finite edges in rising order")
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
        if isinstance(self.levels, str) or not isinstance(self.levels, Sequence):
            raise SchemaError(f"levels must be a list, got {self.levels!r}")
        object.__setattr__(self, "levels", tuple(self.levels))
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


def _check_levels(name: str, names: Sequence[str], minimum: int) -> None:
    repeated = sorted({level for level in names if list(names).count(level) > 1})
    if repeated:
        raise SchemaError(f"{name}: levels {repeated} are listed twice")
    if any(level in ("nan", "None", "") for level in names):
        raise SchemaError(f"{name}: an empty level is not allowed; declare missing= instead")
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
        if self.levels is None:
            _check_bounds(f"label {self.name!r}", self.low, self.high)
            return
        if self.low is not None or self.high is not None:
            raise SchemaError(f"label {self.name!r}: give levels or bounds, not both")
        if isinstance(self.levels, str) or not isinstance(self.levels, Sequence):
            raise SchemaError(f"label {self.name!r}: levels must be a list, got {self.levels!r}")
        object.__setattr__(self, "levels", tuple(self.levels))
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
        object.__setattr__(self, "columns", tuple(self.columns))
        if len(self.columns) < 2 or len(set(self.columns)) != len(self.columns):
            raise SchemaError(f"group {self.columns}: needs two or more different columns")
        if (self.values is None) != (self.otherwise is None):
            raise SchemaError(f"group {self.name}: declare values and otherwise together")
        if self.values is None or self.otherwise is None:
            return
        object.__setattr__(self, "values", tuple(tuple(value) for value in self.values))
        object.__setattr__(self, "otherwise", tuple(self.otherwise))
        if any(len(value) != len(self.columns) for value in (*self.values, self.otherwise)):
            raise SchemaError(f"group {self.name}: each value needs {len(self.columns)} entries")
        if self.otherwise not in self.values or len(self.values) < 2:
            raise SchemaError(f"group {self.name}: otherwise must be one of two or more values")

    @property
    def name(self) -> str:
        """Name of the neighbour kind."""
        return "+".join(self.columns)


@dataclass(frozen=True)
class Schema:
    """The table's columns, label, roles and groups.

    Parameters
    ----------
    columns : mapping of str to Numeric, Categorical or Ignored
        In the order in which the model's blocks stand.
    label : Label
        What is predicted; it is not one of ``columns``.
    groups : sequence of Group or of column-name tuples
        Columns that change together.

    Raises
    ------
    SchemaError
        For anything that contradicts itself, in one line.
    """

    columns: Mapping[str, Column]
    label: Label
    groups: Sequence[Group | Sequence[str]] = field(default=())

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise SchemaError("columns must be a non-empty mapping from name to column")
        if not isinstance(self.label, Label):
            raise SchemaError(f"label must be a Label, got {self.label!r}")
        for name, column in self.columns.items():
            if not isinstance(name, str) or not name or name in RESERVED:
                raise SchemaError(f"column name {name!r} is not allowed; rename it")
            if not isinstance(column, (Numeric, Categorical, Ignored)):
                raise SchemaError(f"column {name!r}: use Numeric, Categorical or Ignored")
        if self.label.name in self.columns or self.label.name in RESERVED:
            raise SchemaError(f"label {self.label.name!r} also stands among the columns")
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        groups = (g if isinstance(g, Group) else Group(tuple(g)) for g in self.groups)
        object.__setattr__(self, "groups", tuple(groups))
        self._check_groups()
        if not self.used:
            raise SchemaError("every column is ignored: nothing is left to learn from")

    def _check_groups(self) -> None:
        seen: set[str] = set()
        for group in self.declared_groups:
            for name in group.columns:
                if name not in self.columns or isinstance(self.columns[name], Ignored):
                    raise SchemaError(f"group {group.name}: no used column {name!r}")
                if name in seen:
                    raise SchemaError(f"column {name!r} stands in two groups")
                seen.add(name)
            if group.name in self.columns:
                raise SchemaError(f"group {group.name!r} is named like a column; rename the column")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Schema, (dict(self.columns), self.label, self.groups))

    @property
    def declared_groups(self) -> tuple[Group, ...]:
        """The groups, each as a :class:`Group`."""
        return tuple(group for group in self.groups if isinstance(group, Group))

    @property
    def used(self) -> dict[str, Numeric | Categorical]:
        """Columns that are not ignored, in order."""
        return {n: c for n, c in self.columns.items() if not isinstance(c, Ignored)}

    def group_of(self, name: str) -> Group | None:
        """The group that holds a column, if any."""
        return next((g for g in self.declared_groups if name in g.columns), None)

    def role(self, name: str) -> Role:
        """Role of a used column or of the label; a group that mixes roles is sensitive."""
        if name == self.label.name:
            return self.label.role
        group = self.group_of(name)
        roles = {self.used[n].role for n in (group.columns if group else (name,))}
        return roles.pop() if len(roles) == 1 else "sensitive"

    def names(self, role: Role) -> tuple[str, ...]:
        """Used columns of one role, in order (the label is not among them)."""
        return tuple(name for name in self.used if self.role(name) == role)

    def with_roles(self, roles: Mapping[str, Role]) -> Schema:
        """The same schema with other roles for the named columns (or the label)."""
        known = {*self.used, self.label.name}
        unknown = sorted(set(roles) - known)
        if unknown:
            raise SchemaError(f"no used column {unknown}; the schema has {sorted(known)}")
        columns: dict[str, Column] = dict(self.columns)
        for name, column in self.used.items():
            columns[name] = replace(column, role=roles.get(name, column.role))
        label = replace(self.label, role=roles.get(self.label.name, self.label.role))
        return Schema(columns, label, self.groups)

    def all_sensitive(self) -> Schema:
        """Everything sensitive, the label too: ordinary differential privacy."""
        return self.with_roles(dict.fromkeys((*self.used, self.label.name), "sensitive"))

    def insensitive_as_public(self) -> Schema:
        """Insensitive columns and an insensitive label public: semi-sensitive privacy."""
        names = (*self.names("insensitive"), self.label.name)
        return self.with_roles({n: "public" for n in names if self.role(n) == "insensitive"})

    def drop_sensitive(self) -> Schema:
        """Sensitive columns ignored: what is left when they are not used at all."""
        gone = self.names("sensitive")
        columns = {n: Ignored() if n in gone else c for n, c in self.columns.items()}
        groups = tuple(g for g in self.declared_groups if not set(g.columns) & set(gone))
        return Schema(columns, self.label, groups)

    def binned(self) -> Schema:
        """Insensitive numeric columns seen by the model only at their bins' resolution."""
        columns: dict[str, Column] = dict(self.columns)
        for name, column in self.used.items():
            if isinstance(column, Numeric) and self.role(name) == "insensitive":
                columns[name] = replace(column, resolution="binned")
        return Schema(columns, self.label, self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as TOML and JSON write them."""
        columns = {name: _column_to_dict(column) for name, column in self.columns.items()}
        plain: dict[str, Any] = {"columns": columns, "label": _to_dict(self.label)}
        if self.groups:
            plain["groups"] = [_to_dict(group) for group in self.declared_groups]
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Schema:
        """The schema that :meth:`to_dict` wrote; every unknown key is an error.

        Raises
        ------
        SchemaError
            For unknown keys, missing parts and entries with ``confirmed = false``.
        """
        unknown = sorted(set(plain) - {"columns", "label", "groups"})
        if unknown or "columns" not in plain or "label" not in plain:
            raise SchemaError(f"a schema has [columns.NAME] and [label]; not understood: {unknown}")
        _refuse_unconfirmed(plain)
        columns = {name: _column_from_dict(name, entry) for name, entry in plain["columns"].items()}
        label = _build(Label, "label", plain["label"])
        groups = tuple(_build(Group, "group", entry) for entry in plain.get("groups", ()))
        return cls(columns, label, groups)

    def to_toml(self) -> str:
        """TOML text with ``[columns.NAME]``, ``[label]`` and ``[[groups]]``."""
        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_toml(cls, source: str | Path) -> Schema:
        """Read from TOML text or from a file (a :class:`~pathlib.Path`)."""
        text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
        try:
            return cls.from_dict(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise SchemaError(f"the TOML text is broken: {error}") from None


def _to_dict(part: Label | Group | Numeric | Categorical) -> dict[str, Any]:
    """Fields that differ from their default (roles are always written)."""
    plain: dict[str, Any] = {}
    for item in fields(part):
        value = getattr(part, item.name)
        if item.name != "role" and (value is None or value == item.default):
            continue
        plain[item.name] = _listed(value)
    return plain


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


_KINDS: dict[str, type[Numeric] | type[Categorical] | type[Ignored]] = {
    "numeric": Numeric,
    "categorical": Categorical,
    "ignored": Ignored,
}


def _column_to_dict(column: Column) -> dict[str, Any]:
    kind = next(word for word, cls in _KINDS.items() if isinstance(column, cls))
    return {"kind": kind} if isinstance(column, Ignored) else {"kind": kind, **_to_dict(column)}


def _column_from_dict(name: str, entry: Mapping[str, Any]) -> Column:
    if not isinstance(entry, Mapping) or entry.get("kind") not in _KINDS:
        raise SchemaError(f"column {name!r}: kind must be one of {', '.join(_KINDS)}")
    column: Column = _build(
        _KINDS[entry["kind"]], f"column {name!r}", {k: v for k, v in entry.items() if k != "kind"}
    )
    return column


def _build(cls: Any, where: str, entry: Mapping[str, Any]) -> Any:
    """Construct a declaration from plain values, naming the entry in every error."""
    values = {k: v for k, v in entry.items() if k != "confirmed"}
    known = [item.name for item in fields(cls)]
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise SchemaError(f"{where}: {unknown} not understood; known are {known}")
    for key in ("levels", "bins", "columns", "otherwise"):
        if isinstance(values.get(key), list):
            values[key] = tuple(values[key])
    try:
        return cls(**values)
    except TypeError as error:
        raise SchemaError(f"{where}: {str(error).split('__init__() ')[-1]}") from None
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") from None


def _refuse_unconfirmed(plain: Mapping[str, Any]) -> None:
    entries = {**plain["columns"], plain["label"].get("name", "label"): plain["label"]}
    open_names = [n for n, e in entries.items() if isinstance(e, Mapping) and not _confirmed(e)]
    if open_names:
        raise SchemaError(
            f"not confirmed: {', '.join(map(repr, open_names))}; check bounds, levels and role "
            "against public knowledge, then set confirmed = true"
        )


def _confirmed(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("confirmed", True))
