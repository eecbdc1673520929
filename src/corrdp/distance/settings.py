"""Public choices of a private estimate (THEORY T10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from corrdp.distance.result import Measured
from corrdp.errors import ConfigurationError

__all__ = ["Background", "EstimateSettings", "Form"]

Background: TypeAlias = Literal["auto", "public", "none"]
Form: TypeAlias = Literal["pair", "split"]


@dataclass(frozen=True)
class EstimateSettings:
    """Public choices of a private estimate.

    Attributes
    ----------
    share : float
        Part of ε that the estimate may spend, 0 < share < 1.
    gamma : float
        Probability, over records and noise, that any estimated distance is below the true one.
    label_floor, column_floor : float
        Least distance that is ever used for the label and for columns, in (0, 1].
    grid_size : int
        m: number of values on the public grid that distances are rounded up to.
    label_weight : float
        Part of the cells' budget for the label's table, 0 < weight < 1; the rest is shared equally.
    form : {"pair", "split"}
        Confidence limit: one statement per pair of levels, or one per row.
    background : {"auto", "public", "none"}
        Whether public columns belong to what the observer knows; ``auto``: if the cells allow it.
    resolution : {"as-declared", "binned", "assume-smooth"}
        As in `corrdp.distance.grid.table_specs`. By default numeric columns that the model sees
        exactly keep d = 1: measuring them costs either accuracy or an assumption.
    columns : tuple of str, optional
        Kinds to estimate; None leaves out those whose table cannot become useful (judged by n,
        numbers of levels and cells, and noise).
    """

    share: float = 0.3
    gamma: float = 0.05
    label_floor: float = 0.3
    column_floor: float = 0.1
    grid_size: int = 8
    label_weight: float = 0.5
    form: Form = "pair"
    background: Background = "auto"
    resolution: Measured = "as-declared"
    columns: tuple[str, ...] | None = None

    def _is_number(self, name: str) -> bool:
        value = getattr(self, name)
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    def __post_init__(self) -> None:
        for name in ("share", "gamma", "label_weight"):
            if not (self._is_number(name) and 0 < getattr(self, name) < 1):
                raise ConfigurationError(f"{name}={getattr(self, name)!r} must lie in (0, 1)")
        for name in ("label_floor", "column_floor"):
            if not (self._is_number(name) and 0 < getattr(self, name) <= 1):
                raise ConfigurationError(f"{name}={getattr(self, name)!r} must lie in (0, 1]")
        if isinstance(self.grid_size, bool) or not isinstance(self.grid_size, int):
            raise ConfigurationError(f"grid_size={self.grid_size!r} must be a whole number")
        if not self.grid_size >= 2:
            raise ConfigurationError(f"grid_size={self.grid_size!r} must be at least 2")
        choices = {"form": Form, "background": Background, "resolution": Measured}
        for name, allowed in choices.items():
            if getattr(self, name) not in get_args(allowed):
                raise ConfigurationError(
                    f"{name}={getattr(self, name)!r} is unknown; use one of {get_args(allowed)}"
                )
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the ledger."""
        plain = asdict(self)
        plain["columns"] = None if self.columns is None else list(self.columns)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> EstimateSettings:
        """The settings that :meth:`to_dict` wrote; unknown keys are an error."""
        known = {item.name for item in fields(cls)}
        if not isinstance(plain, Mapping) or set(plain) - known:
            raise ConfigurationError(f"not estimate settings: {plain!r}; known are {sorted(known)}")
        return cls(**plain)
