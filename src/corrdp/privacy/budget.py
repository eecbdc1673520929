"""One budget for several fits and queries on the same table.

The account lives in a small file that every process shares under a lock, so clones, folds and
parallel workers charge the same budget, and a charge is written before any noise is drawn. The
file holds losses only.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from filelock import FileLock

from corrdp.errors import BudgetExceededError, ConfigurationError
from corrdp.files import write_text
from corrdp.neighbours import INSENSITIVE, RECORD, SENSITIVE, NeighbourKind
from corrdp.privacy import gdp
from corrdp.privacy.budgets import KindBudget, PrivacyTarget

__all__ = ["Charge", "Composition", "PrivacyBudget"]

Composition: TypeAlias = Literal["gdp", "basic"]
ROUNDING = 1e-12
GONE = "what was spent is not known any more; give PrivacyBudget a path= that stays"


@dataclass(frozen=True)
class Charge:
    """What a release is going to spend at most.

    Attributes
    ----------
    name : str
        What the release is.
    epsilon, delta : float
        The target of the sensitive columns.
    kinds : mapping of str to list of str
        Columns (and label) that each neighbour kind changes.
    distances : mapping of str to float
        d of every kind; empty when the distances are released themselves.
    mu_squared : mapping of str to float
        Squared μ per kind (kinds without a limit are left out).
    adaptive : bool
        Whether distances are estimated by the release itself.
    records_per_person : int
        Rows that the release supposes one person to own at most.
    """

    name: str
    epsilon: float
    delta: float
    kinds: Mapping[str, Sequence[str]]
    distances: Mapping[str, float]
    mu_squared: Mapping[str, float]
    adaptive: bool = False
    records_per_person: int = 1

    def __post_init__(self) -> None:
        if not (_is_number(self.epsilon) and 0 < self.epsilon < math.inf):
            raise ConfigurationError(f"charge {self.name!r}: epsilon={self.epsilon!r} must be > 0")
        if not (_is_number(self.delta) and 0 <= self.delta < 1):
            raise ConfigurationError(f"charge {self.name!r}: delta={self.delta!r} is not in [0, 1)")
        for kind, squared in self.mu_squared.items():
            if not (_is_number(squared) and squared >= 0):
                raise ConfigurationError(
                    f"charge {self.name!r}: squared mu of {kind!r} is {squared!r}, not >= 0"
                )
        for kind, distance in self.distances.items():
            if not (_is_number(distance) and 0 <= distance <= 1):
                raise ConfigurationError(
                    f"charge {self.name!r}: distance of {kind!r} is {distance!r}, not in [0, 1]"
                )

    @classmethod
    def of(cls, name: str, target: PrivacyTarget, budgets: Sequence[KindBudget]) -> Charge:
        """The charge of a run whose distances were known beforehand."""
        single = [b for b in budgets if b.kind.name not in (INSENSITIVE, RECORD)]
        return cls(
            name,
            target.epsilon,
            target.delta,
            {b.kind.name: changed_parts(b.kind) for b in single},
            {b.kind.name: b.distance for b in single},
            {b.kind.name: b.mu_squared for b in single if math.isfinite(b.mu_squared)},
            records_per_person=target.records_per_person,
        )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def changed_parts(kind: NeighbourKind) -> list[str]:
    """What a kind changes, the label named ``<label>``."""
    return [*kind.columns, *(["<label>"] if kind.label_changes else [])]


class PrivacyBudget:
    """(ε, δ) of CorrDP for everything that is released from one table.

    Parameters
    ----------
    epsilon, delta : float
        Loss of the sensitive columns; column i may lose ε/d_i. δ = 0 is for pure releases alone
        and needs ``composition="basic"``.
    composition : {"gdp", "basic"}
        ``"gdp"`` adds squared μ per kind and needs distances known beforehand; ``"basic"`` adds
        ε's and δ's and also takes privately estimated distances (THEORY T3, T4).
    path : path, optional
        File of the account; by default a temporary one that lives as long as this object. A
        copy in another process stops working when it is gone, it never starts anew.

    Raises
    ------
    BudgetExceededError
        From :meth:`charge`, before anything is drawn.

    Examples
    --------
    >>> budget = PrivacyBudget(1.0, 1e-6, composition="basic")
    >>> budget.charge(Charge("query", 0.4, 1e-7, {}, {}, {}))
    >>> round(budget.spent, 3)
    0.4
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        composition: Composition = "gdp",
        path: str | Path | None = None,
    ) -> None:
        if isinstance(epsilon, (bool, str)) or isinstance(delta, (bool, str)):
            raise ConfigurationError(f"epsilon={epsilon!r}, delta={delta!r} must be numbers")
        if delta == 0 and composition == "basic":
            gdp.mu_of_pure(epsilon)  # checks it
        else:
            gdp.mu(epsilon, delta)  # checks both
        if not math.isfinite(epsilon):
            raise ConfigurationError("a budget with epsilon=inf limits nothing")
        if composition not in ("gdp", "basic"):
            raise ConfigurationError(f"composition={composition!r} is unknown; use gdp or basic")
        self.epsilon, self.delta, self.composition = float(epsilon), float(delta), composition
        if path is None:
            folder = tempfile.mkdtemp(prefix="corrdp-budget-")
            self._finalizer = weakref.finalize(self, _remove, folder, os.getpid())
            path = Path(folder) / "budget.json"
        self.path = Path(path)
        self._open()

    def __repr__(self) -> str:
        return f"PrivacyBudget(epsilon={self.epsilon:g}, delta={self.delta:g}, {self.composition})"

    def _open(self) -> None:
        """Start an empty account unless the file already holds one."""
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._lock():
                if not self.path.exists():
                    self._write([])

    def __copy__(self) -> PrivacyBudget:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyBudget:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.epsilon, self.delta, self.composition, str(self.path))

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Everything charged so far, in order."""
        with self._lock():
            return tuple(self._read())

    @property
    def spent(self) -> float:
        """ε of the sensitive columns spent so far, at this budget's δ (never rounded down)."""
        charges = self.charges
        if self.composition == "basic":
            return math.fsum(charge.epsilon for charge in charges)
        sums = _sums(charges)
        spent = sums.get(SENSITIVE, max(sums.values(), default=0.0))
        return float(gdp.epsilon(math.sqrt(spent), self.delta)) if spent else 0.0

    def charge(self, charge: Charge) -> None:
        """Record a release that is about to happen, or refuse it.

        Raises
        ------
        BudgetExceededError
            If less is left than the release needs.
        ConfigurationError
            If its distances or kinds are not those of the earlier releases.
        """
        with self._lock():
            charges = self._read()
            self._check_same(charges, charge)
            if self.composition == "basic":
                self._check_basic(charges, charge)
            else:
                self._check_gdp(charges, charge)
            self._write([*charges, charge])

    def _lock(self) -> FileLock:
        if not self.path.parent.is_dir():
            raise ConfigurationError(f"{self.path} is gone: {GONE}")
        return FileLock(f"{self.path}.lock")

    @property
    def _limits(self) -> dict[str, float | str]:
        return {"epsilon": self.epsilon, "delta": self.delta, "composition": self.composition}

    def _write(self, charges: Sequence[Charge]) -> None:
        plain = {"limits": self._limits, "charges": [_to_plain(one) for one in charges]}
        write_text(self.path, json.dumps(plain, indent=1) + "\n")

    def _read(self) -> list[Charge]:
        if not self.path.is_file():
            raise ConfigurationError(f"{self.path} is gone: {GONE}")
        try:
            account = json.loads(self.path.read_text(encoding="utf-8"))
            limits, entries = account["limits"], account["charges"]
            charges = [Charge(**entry) for entry in entries]
        except (ValueError, TypeError, AttributeError, KeyError):
            raise ConfigurationError(f"{self.path} is not the file of a privacy budget") from None
        if limits != self._limits:
            raise ConfigurationError(
                f"{self.path} is the account of {limits}, not of {self._limits}; open it with the "
                "limits it was made with"
            )
        return charges

    def _check_same(self, charges: Sequence[Charge], charge: Charge) -> None:
        if charge.adaptive and self.composition == "gdp":
            raise ConfigurationError(
                "distances estimated by the release itself do not compose in Gaussian DP; use "
                "PrivacyBudget(..., composition='basic')"
            )
        for other in charges:
            same_kinds = _lists(other.kinds) == _lists(charge.kinds)
            same_distances = dict(other.distances) == dict(charge.distances)
            if other.records_per_person != charge.records_per_person:
                raise ConfigurationError(
                    f"records_per_person={charge.records_per_person} differs from the "
                    f"{other.records_per_person} of an earlier release; use one number for all"
                )
            if not same_kinds or not same_distances or other.adaptive != charge.adaptive:
                raise ConfigurationError(
                    "this release uses other columns, roles or distances than the first one "
                    "charged here; losses under different distances do not add"
                )

    def _check_basic(self, charges: Sequence[Charge], charge: Charge) -> None:
        epsilon = math.fsum(one.epsilon for one in (*charges, charge))
        delta = math.fsum(one.delta for one in (*charges, charge))
        if epsilon > self.epsilon * (1 + ROUNDING) or delta > self.delta * (1 + ROUNDING):
            raise BudgetExceededError(
                f"{charge.name} needs epsilon {charge.epsilon:g} at delta {charge.delta:g}; left "
                f"are {max(0.0, self.epsilon - epsilon + charge.epsilon):.4g} and "
                f"{max(0.0, self.delta - delta + charge.delta):.4g}"
            )

    def _check_gdp(self, charges: Sequence[Charge], charge: Charge) -> None:
        for kind in charge.kinds or [SENSITIVE]:
            distance = charge.distances.get(kind, 1.0)
            limited = distance > 0 and math.isfinite(self.epsilon / distance)
            if limited and kind not in charge.mu_squared:
                raise ConfigurationError(
                    f"{charge.name} does not say how much squared mu it takes for {kind!r}; "
                    "Poisson-sampled runs need PrivacyBudget(..., composition='basic')"
                )
        totals = _sums((*charges, charge))
        for kind, total in totals.items():
            distance = charge.distances.get(kind, 1.0)
            if distance <= 0:
                continue
            allowed = float(gdp.mu(self.epsilon / distance, self.delta)) ** 2
            if total > allowed * (1 + ROUNDING):
                needed = charge.mu_squared.get(kind, 0.0)
                left = max(0.0, allowed - total + needed)
                raise BudgetExceededError(
                    f"{charge.name} needs squared mu {needed:.4g} for {kind!r}; left are "
                    f"{left:.4g} of {allowed:.4g}"
                )


def _sums(charges: Sequence[Charge]) -> dict[str, float]:
    """Squared μ of every kind over all charges."""
    names = {kind for charge in charges for kind in charge.mu_squared}
    return {n: math.fsum(c.mu_squared.get(n, 0.0) for c in charges) for n in names}


def _lists(kinds: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {name: list(parts) for name, parts in kinds.items()}


def _to_plain(charge: Charge) -> dict[str, Any]:
    return {
        "name": charge.name,
        "epsilon": charge.epsilon,
        "delta": charge.delta,
        "kinds": _lists(charge.kinds),
        "distances": dict(charge.distances),
        "mu_squared": dict(charge.mu_squared),
        "adaptive": charge.adaptive,
        "records_per_person": charge.records_per_person,
    }


def _reopen(epsilon: float, delta: float, composition: str, path: str) -> PrivacyBudget:
    """A copy works on the same account; a new one would forget what was spent."""
    if not Path(path).is_file():
        raise ConfigurationError(f"{path} is gone: {GONE}")
    return PrivacyBudget(epsilon, delta, composition=cast(Composition, composition), path=path)


def _remove(folder: str, process: int) -> None:
    """Remove a temporary account; a forked copy of the owner leaves it alone."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
