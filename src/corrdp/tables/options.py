"""How a file is laid out, as far as the user says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from corrdp.errors import ConfigurationError

__all__ = ["FileOptions"]


@dataclass(frozen=True)
class FileOptions:
    """Layout of a CSV file; what is None is found from its first lines.

    Attributes
    ----------
    names : tuple of str, optional
        Column names of a file without a header line.
    skip_rows : int
        Lines before the header (or before the first record, with ``names``).
    separator : str, optional
        One character, such as ``","``, ``";"`` or a tab.
    decimal : str, optional
        ``"."`` or ``","``.
    missing : tuple of str
        Marks that stand for a missing value besides the empty cell.
    """

    names: tuple[str, ...] | None = None
    skip_rows: int = 0
    separator: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.skip_rows, bool) or not isinstance(self.skip_rows, int):
            raise ConfigurationError(f"skip_rows={self.skip_rows!r} must be a whole number >= 0")
        if self.skip_rows < 0:
            raise ConfigurationError(f"skip_rows={self.skip_rows} must be a whole number >= 0")
        if self.separator is not None and not _one_character(self.separator):
            raise ConfigurationError(f"separator={self.separator!r} must be a single character")
        if self.decimal not in (None, ".", ","):
            raise ConfigurationError(f"decimal={self.decimal!r} must be '.' or ','")
        for key in ("names", "missing"):
            value = getattr(self, key)
            if value is None:
                continue
            if isinstance(value, str) or not all(isinstance(item, str) for item in value):
                raise ConfigurationError(f"{key}={value!r} must be a list of texts")
            object.__setattr__(self, key, tuple(item.strip() for item in value))
        check_names(self.names or (), "names")

    def overridden(self, other: FileOptions) -> FileOptions:
        """These options, with what `other` states differently from the defaults."""
        stated = {
            item.name: getattr(other, item.name)
            for item in fields(other)
            if getattr(other, item.name) != item.default
        }
        return replace(self, **stated)

    def to_dict(self) -> dict[str, Any]:
        """What differs from the defaults, as plain values."""
        plain: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if value != item.default:
                plain[item.name] = list(value) if isinstance(value, tuple) else value
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> FileOptions:
        """From a ``[file]`` table; unknown keys are an error."""
        known = [item.name for item in fields(cls)]
        unknown = sorted(set(plain) - set(known))
        if unknown:
            raise ConfigurationError(f"[file]: {unknown} not understood; known are {known}")
        return cls(**plain)


def _one_character(separator: object) -> bool:
    return isinstance(separator, str) and len(separator) == 1 and separator not in '"\r\n'


def check_names(names: tuple[str, ...], where: str) -> None:
    """Column names are not empty and differ.

    Raises
    ------
    ConfigurationError
        Names the repeated or empty ones.
    """
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ConfigurationError(
            f"{where}: the column name(s) {repeated} occur more than once; rename them"
        )
    if "" in names:
        raise ConfigurationError(f"{where}: column {names.index('') + 1} has no name; name it")
