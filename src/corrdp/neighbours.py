"""Which parts of one record may change at once: the kinds of neighbouring tables.

Neighbours replace values in one record (substitution) and keep n. A kind lists the columns that
may take any other value together; everything else in the record stays (THEORY T1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from corrdp.errors import ConfigurationError
from corrdp.schema import Schema

__all__ = [
    "INSENSITIVE",
    "RECORD",
    "SENSITIVE",
    "Adjacency",
    "NeighbourKind",
    "check_adjacency",
    "neighbour_kinds",
]

Adjacency: TypeAlias = Literal["feature", "record"]

SENSITIVE = "<sensitive>"
INSENSITIVE = "<insensitive>"
RECORD = "<record>"


@dataclass(frozen=True)
class NeighbourKind:
    """One kind of change of one record.

    Parameters
    ----------
    name : str
        The column's or group's name, or one of ``<sensitive>``, ``<insensitive>``, ``<record>``.
    columns : tuple of str
        Columns that may change at once.
    label_changes : bool
        Whether the label may change with them.
    """

    name: str
    columns: tuple[str, ...]
    label_changes: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if not self.columns and not self.label_changes:
            raise ConfigurationError(f"neighbour kind {self.name!r} changes nothing")

    def covers(self, other: NeighbourKind) -> bool:
        """Whether every change of ``other`` is a change of this kind too."""
        label = self.label_changes or not other.label_changes
        return label and set(other.columns) <= set(self.columns)


def check_adjacency(adjacency: object) -> None:
    """Raise unless ``adjacency`` is ``"feature"`` or ``"record"``."""
    if adjacency not in ("feature", "record"):
        raise ConfigurationError(f"adjacency={adjacency!r} is unknown; use 'feature' or 'record'")


def neighbour_kinds(schema: Schema) -> tuple[NeighbourKind, ...]:
    """All kinds of a schema: S, each insensitive column or group, the label, then U and R.

    Kinds that would change nothing are left out. ``<insensitive>`` and ``<record>`` are always
    listed when they exist, because every certificate states their loss (THEORY T1).
    """
    sensitive = schema.names("sensitive")
    insensitive = schema.names("insensitive")
    label_role = schema.label.role
    kinds: list[NeighbourKind] = []
    if sensitive or label_role == "sensitive":
        kinds.append(NeighbourKind(SENSITIVE, sensitive, label_role == "sensitive"))
    for name in insensitive:
        group = schema.group_of(name)
        if group is None:
            kinds.append(NeighbourKind(name, (name,), label_changes=False))
        elif name == next(n for n in insensitive if n in group.columns):
            kinds.append(NeighbourKind(group.name, tuple(group.columns), label_changes=False))
    if label_role == "insensitive":
        kinds.append(NeighbourKind(schema.label.name, (), label_changes=True))
    if insensitive or label_role == "insensitive":
        kinds.append(NeighbourKind(INSENSITIVE, insensitive, label_role == "insensitive"))
    if kinds:
        changing = (*sensitive, *insensitive)
        kinds.append(NeighbourKind(RECORD, changing, label_role != "public"))
    return tuple(kinds)
