"""The whole table: its columns, label, roles and groups, in and out of TOML.

Public declarations only; nothing here looks at a record (THEORY, sharp edge 4).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tomli_w

from corrdp.columns import (
    OTHER,
    Categorical,
    Column,
    Group,
    Ignored,
    Label,
    Level,
    Numeric,
    Role,
    canonical_level,
)
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
    "Schema",
    "canonical_level",
]

RESERVED = ("<sensitive>", "<insensitive>", "<record>", "<intercept>", "<label>")


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
        if isinstance(self.groups, str) or not isinstance(self.groups, Sequence):
            raise SchemaError(f"groups={self.groups!r} must be a list of Group or of name tuples")
        groups = (g if isinstance(g, Group) else Group(g) for g in self.groups)
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
            # a kind is known by its name: groups, columns and the label must not share one
            if group.name in self.columns or group.name == self.label.name:
                raise SchemaError(f"group {group.name!r} is named like a column; rename the column")
        if len({group.name for group in self.declared_groups}) < len(self.declared_groups):
            raise SchemaError("two groups have the same name; rename a column that contains '+'")

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
        """Plain values for JSON; ``order`` keeps the columns' order, which JSON keys do not."""
        columns = {name: _column_to_dict(column) for name, column in self.columns.items()}
        plain: dict[str, Any] = {
            "order": list(self.columns),
            "columns": columns,
            "label": _to_dict(self.label),
        }
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
        _check_parts(plain)
        _refuse_unconfirmed(plain)
        order = plain.get("order", list(plain["columns"]))
        columns = {name: _column_from_dict(name, plain["columns"][name]) for name in order}
        label = _build(Label, "label", plain["label"])
        groups = tuple(_build(Group, "group", entry) for entry in plain.get("groups", ()))
        return cls(columns, label, groups)

    def to_toml(self) -> str:
        """TOML text with ``[columns.NAME]``, ``[label]`` and ``[[groups]]``."""
        return tomli_w.dumps({key: part for key, part in self.to_dict().items() if key != "order"})

    @classmethod
    def from_toml(cls, source: str | Path) -> Schema:
        """Read from TOML text or from a file (a :class:`~pathlib.Path`)."""
        try:
            text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
            return cls.from_dict(tomllib.loads(text))
        except (OSError, UnicodeDecodeError) as error:
            raise SchemaError(f"cannot read the schema {source}: {error}") from None
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


def _check_parts(plain: Mapping[str, Any]) -> None:
    """The parts of a schema are there and of the right shape."""
    known = {"order", "columns", "label", "groups"}
    if not isinstance(plain, Mapping) or not {"columns", "label"} <= set(plain) <= known:
        found = sorted(map(str, plain)) if isinstance(plain, Mapping) else type(plain).__name__
        raise SchemaError(f"a schema has [columns.NAME], [label] and [[groups]]; found {found}")
    columns, label, groups = plain["columns"], plain["label"], plain.get("groups", [])
    if not isinstance(columns, Mapping) or not isinstance(label, Mapping):
        raise SchemaError("a schema has the tables [columns.NAME] and [label]; found other values")
    if not isinstance(groups, list) or not all(isinstance(group, Mapping) for group in groups):
        raise SchemaError("groups must be tables [[groups]] with columns = [...]")
    order = plain.get("order", list(columns))
    if not isinstance(order, list) or sorted(map(str, order)) != sorted(columns):
        raise SchemaError("order must name every column once")


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
