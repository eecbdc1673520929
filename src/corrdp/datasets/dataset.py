"""What a loader returns, and how columns of text become a table of the user's choice."""

from __future__ import annotations

import csv
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.datasets.cache import DatasetError
from corrdp.errors import ConfigurationError, MissingExtraError
from corrdp.schema import Role, Schema

__all__ = [
    "Dataset",
    "Frame",
    "check_distances",
    "check_rows",
    "choose_roles",
    "given_distances",
    "make_frame",
    "parse_table",
    "split_label",
]

Array: TypeAlias = NDArray[Any]
Frame: TypeAlias = Literal["pandas", "polars", "pyarrow", "dict"]

# where each library comes from; Polars has no extra of its own
_INSTALL = {"pandas": "corrdp[demo]", "pyarrow": "corrdp[parquet]", "polars": "polars"}


@dataclass(frozen=True, repr=False, eq=False)
class Dataset:
    """A public table with its public description.

    Attributes
    ----------
    name : str
    X : table of shape (n, columns)
        In the asked-for frame; ignored columns are in it.
    y : array of shape (n,)
    schema : Schema
        Bounds and levels from the documentation, none computed from the records.
    X_test, y_test : the same, or None
        A separate test set where the source has one.
    distances : mapping of column name to float, or None
        Distances *assumed* in comparisons (source ``given``), for the usual sensitive columns.
    description, licence, source : str
    """

    name: str
    X: Any
    y: Array
    schema: Schema
    X_test: Any = None
    y_test: Array | None = None
    distances: Mapping[str, float] | None = None
    description: str = ""
    licence: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        check_rows(self.name, self.X, self.y)
        if (self.X_test is None) != (self.y_test is None):
            raise ConfigurationError(f"{self.name}: give X_test and y_test together")
        if self.y_test is not None:
            check_rows(f"{self.name} (test)", self.X_test, self.y_test)
        if self.distances is not None:
            check_distances(self.name, self.distances, self.schema)

    def __repr__(self) -> str:
        test = "" if self.y_test is None else f", test={len(self.y_test)}"
        return f"Dataset({self.name!r}, records={len(self.y)}{test})"


def check_distances(name: str, distances: Mapping[str, float], schema: Schema) -> None:
    """Distances lie in [0, 1] and belong to insensitive columns or an insensitive label."""
    for column, distance in distances.items():
        if not 0.0 <= distance <= 1.0:
            raise ConfigurationError(f"{name}: distance of {column!r} is {distance}, not in [0, 1]")
        if schema.role(column) != "insensitive":
            raise ConfigurationError(f"{name}: {column!r} is {schema.role(column)}: no distance")


def check_rows(name: str, table: Any, label: Array) -> None:
    """The table and its label have the same number of records."""
    rows = len(next(iter(table.values()))) if isinstance(table, dict) else len(table)
    if label.ndim != 1 or rows != len(label):
        raise ConfigurationError(f"{name}: {rows} records but labels of shape {label.shape}")


def parse_table(content: bytes, names: Sequence[str], *, skip_lines: int) -> dict[str, Array]:
    """Columns of a CSV file: ``int64`` where all values are whole, ``float64``, else text."""
    lines = content.decode("utf-8").splitlines()[skip_lines:]
    rows = [row for row in csv.reader(lines, skipinitialspace=True) if row]
    if any(len(row) != len(names) for row in rows):
        raise DatasetError(f"a row has not the {len(names)} fields {list(names)}; fetch it again")
    return {name: _typed(values) for name, values in zip(names, zip(*rows), strict=True)}


def _typed(values: Sequence[str]) -> Array:
    text = np.array(values)
    try:
        numbers = text.astype(np.float64)
    except ValueError:
        return text
    whole = np.rint(numbers)
    return whole.astype(np.int64) if np.array_equal(whole, numbers) else numbers


def make_frame(columns: Mapping[str, Array], frame: Frame) -> Any:
    """Columns as a table.

    Raises
    ------
    ConfigurationError
        If the kind of table is unknown.
    MissingExtraError
        If its library is not installed; the message names what to install.
    """
    if frame == "dict":
        return dict(columns)
    if frame not in _INSTALL:
        raise ConfigurationError(f"frame={frame!r} is unknown; use {', '.join(_INSTALL)} or dict")
    try:
        library: Any = importlib.import_module(frame)
    except ImportError:
        raise MissingExtraError(
            f"frame={frame!r} needs {frame}: pip install '{_INSTALL[frame]}', or use frame='dict'"
        ) from None
    make = library.table if frame == "pyarrow" else library.DataFrame
    return make(dict(columns))


def split_label(columns: dict[str, Array], schema: Schema) -> tuple[dict[str, Array], Array]:
    """Columns in the schema's order, and the label."""
    return {name: columns[name] for name in schema.columns}, columns[schema.label.name]


def choose_roles(schema: Schema, sensitive: Sequence[str], label_role: Role) -> Schema:
    """The schema with these columns sensitive, the others insensitive.

    Raises
    ------
    ConfigurationError
        If nothing is sensitive, or the label stands among the columns (it has its own role).
    SchemaError
        If a name is no used column of the table, or the label's role is unknown.
    """
    if isinstance(sensitive, str) or not isinstance(sensitive, Sequence):
        raise ConfigurationError(f"sensitive={sensitive!r} must be a sequence of column names")
    label = schema.label.name
    if label in sensitive:
        raise ConfigurationError(f"the label {label!r} has its own role: label_role='sensitive'")
    if not sensitive and label_role != "sensitive":
        raise ConfigurationError("sensitive=() leaves nothing to protect; name a column")
    roles: dict[str, Role] = dict.fromkeys(schema.used, "insensitive")
    roles.update(dict.fromkeys(sensitive, "sensitive"))
    return schema.with_roles({**roles, label: label_role})


def given_distances(
    schema: Schema, usual: Sequence[str], given: Mapping[str, float], default: float
) -> dict[str, float] | None:
    """The comparison's distances, or None where the sensitive tuple is another one.

    They were given for the usual sensitive columns; a sensitive label belongs to the tuple too.
    """
    if set(schema.names("sensitive")) != set(usual) or schema.label.role == "sensitive":
        return None
    names = [*schema.names("insensitive"), schema.label.name]
    insensitive = [name for name in names if schema.role(name) == "insensitive"]
    return {name: given.get(name, default) for name in insensitive}
