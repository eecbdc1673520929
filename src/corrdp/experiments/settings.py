"""What of an experiment can be chosen, and what of that a folder of results remembers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from corrdp.erm.published import Calibration
from corrdp.erm.sampling import Solver
from corrdp.errors import ConfigurationError
from corrdp.schema import Role

__all__ = [
    "CALIBRATIONS",
    "DELTA",
    "EPSILONS",
    "QUICK_EPSILONS",
    "ExperimentSettings",
    "remembered_settings",
    "short",
]

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
QUICK_EPSILONS = (0.1, 1.0)
SEEDS, QUICK_SEEDS = 10, 3
DELTA = 1e-6
CALIBRATIONS: tuple[Calibration, ...] = get_args(Calibration)
STEPS: dict[Solver, str] = {"gradient": "full-batch", "sgd": "Poisson-sampled"}
Entry: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class ExperimentSettings:
    """The choices of who runs an experiment; None leaves a choice to the experiment.

    δ, sensitive columns, solver and ``quick`` change what a run is: results that differ in one of
    them never stand in one folder. The others choose which runs are made.

    Attributes
    ----------
    epsilons : tuple of float, optional
        ε of the sensitive columns. A table of one fixed ε keeps it.
    delta : float, optional
        1e-6 by default; below 1/n for every data set.
    sensitive : tuple of str, optional
        Columns, in any order. Distances are given for the experiment's own only: with others the
        ways to train that need given distances are left out, and no claim is judged.
    label_roles : tuple of {"insensitive", "sensitive", "public"}, optional
        Tables to run, of those that the experiment has.
    seeds : int, optional
        Runs behind every number: 10, quick 3.
    solver : {"gradient", "sgd"}
        Steps on all records, or on Poisson samples. Training without noise has none.
    calibration : tuple of {"optimal", "published"}
        CorrDP's ways to train that are run; baselines always are.
    quick : bool
        Fewer records, as the experiment chooses, and two ε.
    """

    epsilons: tuple[float, ...] | None = None
    delta: float | None = None
    sensitive: tuple[str, ...] | None = None
    label_roles: tuple[Role, ...] | None = None
    seeds: int | None = None
    solver: Solver = "gradient"
    calibration: tuple[Calibration, ...] = CALIBRATIONS
    quick: bool = False

    def __post_init__(self) -> None:
        for epsilon in _several("epsilons", self.epsilons):
            if not (_number(epsilon) and 0 < epsilon < math.inf):
                raise ConfigurationError(f"epsilon={epsilon!r} must be a positive finite number")
        if self.delta is not None and not (_number(self.delta) and 0 < self.delta < 1):
            raise ConfigurationError(f"delta={self.delta!r} must lie between 0 and 1, below 1/n")
        for name in _several("sensitive", self.sensitive):
            if not (isinstance(name, str) and name):
                raise ConfigurationError(f"sensitive: {name!r} is no column name")
        _choices("label_roles", self.label_roles, get_args(Role))
        _choices("calibration", self.calibration, CALIBRATIONS)
        _choices("solver", (self.solver,), get_args(Solver))
        whole = isinstance(self.seeds, int) and not isinstance(self.seeds, bool)
        if self.seeds is not None and not (whole and self.seeds >= 1):
            raise ConfigurationError(f"seeds={self.seeds!r} must be a whole number >= 1")

    @property
    def grid(self) -> tuple[float, ...]:
        """ε that are run."""
        usual = QUICK_EPSILONS if self.quick else EPSILONS
        return usual if self.epsilons is None else tuple(float(e) for e in self.epsilons)

    @property
    def seed_count(self) -> int:
        """Runs behind every number."""
        usual = QUICK_SEEDS if self.quick else SEEDS
        return usual if self.seeds is None else self.seeds

    @property
    def target_delta(self) -> float:
        """δ of every run."""
        return DELTA if self.delta is None else float(self.delta)

    @property
    def steps(self) -> str:
        """The solver in words."""
        return STEPS[self.solver]

    def to_entry(self) -> Entry:
        """What a folder remembers: what changes a run and is not usual."""
        entry: Entry = {"quick": self.quick}
        if self.target_delta != DELTA:
            entry["delta"] = self.target_delta
        if self.sensitive is not None:
            entry["sensitive"] = sorted(self.sensitive)
        if self.solver != "gradient":
            entry["solver"] = self.solver
        return entry

    def to_dict(self) -> Entry:
        """Everything that was asked for, defaults filled in, as plain values for JSON."""
        return {
            "epsilons": list(self.grid),
            "delta": self.target_delta,
            "sensitive": None if self.sensitive is None else list(self.sensitive),
            "label_roles": None if self.label_roles is None else list(self.label_roles),
            "seeds": self.seed_count,
            "solver": self.solver,
            "calibration": list(self.calibration),
            "quick": self.quick,
        }


def remembered_settings(entry: Mapping[str, Any]) -> ExperimentSettings:
    """The settings of :meth:`ExperimentSettings.to_entry`; absent ones are the usual.

    Raises
    ------
    ConfigurationError
        If something else stands there.
    """
    unknown = set(entry) - {"quick", "delta", "sensitive", "solver"}
    if unknown:
        raise ConfigurationError(f"settings {sorted(unknown)} are unknown")
    sensitive = entry.get("sensitive")
    if sensitive is not None and not isinstance(sensitive, list):
        raise ConfigurationError(f"sensitive={sensitive!r} is no list of columns")
    return ExperimentSettings(
        delta=entry.get("delta"),
        sensitive=None if sensitive is None else tuple(sensitive),
        solver=entry.get("solver", "gradient"),
        quick=entry.get("quick") is True,
    )


def short(number: float) -> str:
    """A number as people write it: ``1e-6``, not ``1e-06``."""
    return f"{number:g}".replace("e-0", "e-")


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _several(name: str, values: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """The values of a list that is there: a tuple, not empty, each once."""
    if values is None:
        return ()
    once = isinstance(values, tuple) and all(values.count(value) == 1 for value in values)
    if not once or not values:
        raise ConfigurationError(f"{name}={values!r} must name at least one, and each once")
    return values


def _choices(name: str, values: tuple[Any, ...] | None, allowed: tuple[str, ...]) -> None:
    for value in _several(name, values):
        if value not in allowed:
            raise ConfigurationError(f"{name}: {value!r} is unknown; use {', '.join(allowed)}")
