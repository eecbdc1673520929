"""What may be asked of a table: frozen descriptions, without data and without noise.

Every query is a sum over records of bounded contributions in a public unit: numbers are centred
at the middle of their bounds and divided by their range, so that one record moves a count, a sum
and a mean by at most one unit (THEORY T5, T11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from corrdp.errors import ConfigurationError
from corrdp.schema import Categorical, Level, Numeric, Schema, canonical_level

__all__ = [
    "ContingencyTable",
    "Count",
    "Covariance",
    "Histogram",
    "Mean",
    "Query",
    "Sum",
    "Variance",
    "domain",
    "query_from_dict",
]

Condition: TypeAlias = Level | Sequence[Level]


def domain(schema: Schema) -> dict[str, Numeric | Categorical]:
    """Every column that may be asked for, the label among them."""
    label = schema.label
    if label.is_numeric:
        low, high = label.bounds
        return {**schema.used, label.name: Numeric(low, high, role=label.role)}
    return {**schema.used, label.name: Categorical(label.names, role=label.role)}


def _names(columns: object, least: int, what: str) -> tuple[str, ...]:
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise ConfigurationError(f"{what}: columns={columns!r} must be a list of column names")
    names = tuple(columns)
    if len(set(names)) != len(names) or len(names) < least:
        raise ConfigurationError(
            f"{what}: columns={list(names)} must be {least} or more different columns"
        )
    return names


@dataclass(frozen=True)
class Query:
    """Base of all queries; :attr:`columns` are what it reads."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the answer depends on."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """Name under which the answer is found, unless the caller gives another."""
        return f"{type(self).__name__.lower()}({', '.join(self.columns)})"

    @property
    def numeric_only(self) -> bool:
        """Whether every column must be a number."""
        return True

    def check(self, schema: Schema) -> None:
        """Raise ConfigurationError where a column is not there or is of the wrong kind."""
        known = domain(schema)
        for column in self.columns:
            if column not in known:
                raise ConfigurationError(
                    f"{self.name}: no used column {column!r}; the schema has {sorted(known)}"
                )
            if self.numeric_only and not isinstance(known[column], Numeric):
                raise ConfigurationError(
                    f"{self.name}: column {column!r} has levels, not numbers; ask for a Histogram"
                )

    def to_dict(self) -> dict[str, Any]:
        """Plain values that :func:`query_from_dict` reads."""
        return {"query": type(self).__name__, "columns": list(self.columns)}


@dataclass(frozen=True)
class _OneColumn(Query):
    column: str

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise ConfigurationError(f"{type(self).__name__}: column={self.column!r} is not a name")

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)


@dataclass(frozen=True)
class Sum(_OneColumn):
    """Σ of a number over all records; unit: the column's range."""


@dataclass(frozen=True)
class Mean(_OneColumn):
    """Mean of a number; unit: the column's range over n."""


@dataclass(frozen=True)
class Variance(_OneColumn):
    """Mean squared distance from the mean (divided by n); unit: the squared range over n."""


@dataclass(frozen=True)
class Histogram(_OneColumn):
    """Records in every level, or in every declared bin of a number; unit: one record."""

    @property
    def numeric_only(self) -> bool:
        """Levels or numbers."""
        return False


@dataclass(frozen=True)
class ContingencyTable(Query):
    """Records in every combination of levels (or bins) of two or more columns."""

    over: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "over", _names(self.over, 2, "ContingencyTable"))

    @property
    def columns(self) -> tuple[str, ...]:
        """Axes of the table, in order."""
        return tuple(self.over)

    @property
    def numeric_only(self) -> bool:
        """Levels or numbers."""
        return False


@dataclass(frozen=True)
class Covariance(Query):
    """Covariance matrix of two or more numbers (divided by n), in the order given."""

    of: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", _names(self.of, 2, "Covariance"))

    @property
    def columns(self) -> tuple[str, ...]:
        """Rows and columns of the matrix."""
        return tuple(self.of)


@dataclass(frozen=True)
class Count(Query):
    """Records that meet all conditions.

    Parameters
    ----------
    where : mapping
        Column → level, list of levels, or (low, high) for a number, both ends included.
    """

    where: Mapping[str, Condition]

    def __post_init__(self) -> None:
        if not isinstance(self.where, Mapping) or not self.where:
            raise ConfigurationError(
                f"Count: where={self.where!r} must map columns to levels; the number of all "
                "records is public"
            )
        plain = {name: _condition(value) for name, value in self.where.items()}
        object.__setattr__(self, "where", MappingProxyType(plain))

    def __hash__(self) -> int:
        return hash(tuple(sorted((k, repr(v)) for k, v in self.where.items())))

    def __reduce__(self) -> tuple[Any, ...]:
        return Count, (dict(self.where),)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the conditions."""
        return tuple(self.where)

    @property
    def numeric_only(self) -> bool:
        """Levels or numbers."""
        return False

    @property
    def name(self) -> str:
        """The conditions in words."""
        words = [f"{k}={'|'.join(map(str, v))}" for k, v in self.conditions().items()]
        return f"count({', '.join(words)})"

    def conditions(self) -> dict[str, tuple[Level, ...]]:
        """Column → admitted levels, or (low, high)."""
        return {name: tuple(_condition(value)) for name, value in self.where.items()}

    def check(self, schema: Schema) -> None:
        """Also that every level is declared and every interval is one."""
        super().check(schema)
        known = domain(schema)
        for name, values in self.conditions().items():
            column = known[name]
            if isinstance(column, Categorical):
                unknown = [v for v in values if canonical_level(v) not in column.names]
                if unknown:
                    raise ConfigurationError(
                        f"{self.name}: {name!r} has no level {unknown[0]!r}; it has {column.names}"
                    )
            elif len(values) != 2 or not all(_is_number(v) for v in values):
                raise ConfigurationError(
                    f"{self.name}: give {name!r} an interval (low, high), got {values!r}"
                )
            elif not float(values[0]) <= float(values[1]):
                raise ConfigurationError(f"{self.name}: the interval {values!r} is empty")

    def to_dict(self) -> dict[str, Any]:
        """Conditions as lists."""
        return {"query": "Count", "where": {k: list(v) for k, v in self.conditions().items()}}


def _condition(value: Condition) -> tuple[Level, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return (value,)
    return tuple(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


_ONE: dict[str, type[_OneColumn]] = {cls.__name__: cls for cls in (Sum, Mean, Variance, Histogram)}
_SEVERAL: dict[str, type[ContingencyTable] | type[Covariance]] = {
    cls.__name__: cls for cls in (ContingencyTable, Covariance)
}


def query_from_dict(plain: Mapping[str, Any]) -> Query:
    """The query that ``to_dict`` wrote; an unknown one is refused."""
    name = plain.get("query")
    if name == "Count" and set(plain) == {"query", "where"}:
        return Count(plain["where"])
    if set(plain) == {"query", "columns"}:
        if name in _ONE and len(plain["columns"]) == 1:
            return _ONE[name](plain["columns"][0])
        if name in _SEVERAL:
            return _SEVERAL[name](tuple(plain["columns"]))
        if name == "SecondMoments":
            from corrdp.queries.moments import SecondMoments

            return SecondMoments(tuple(plain["columns"]))
    raise ConfigurationError(f"query {plain!r} is unknown")
