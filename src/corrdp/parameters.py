"""Parameters that every estimator shares, checked before a record is read."""

from __future__ import annotations

import math

import numpy as np

from corrdp.errors import BudgetExceededError, ConfigurationError
from corrdp.privacy.budget import PrivacyBudget

__all__ = ["check_alpha", "check_delta", "check_run"]


def check_run(epsilon: float, budget: object, progress: object) -> None:
    """Check ``budget=`` and ``progress=``.

    Raises
    ------
    BudgetExceededError
        If training without privacy would bypass a budget.
    ConfigurationError
        If one of them is something else than a budget or a callable.
    """
    if progress is not None and not callable(progress):
        raise ConfigurationError(f"progress={progress!r} must be callable: progress(step, steps)")
    if budget is None:
        return
    if not isinstance(budget, PrivacyBudget):
        raise ConfigurationError(f"budget={budget!r} must be a corrdp.PrivacyBudget or None")
    if math.isinf(epsilon):
        raise BudgetExceededError(
            "epsilon=inf releases the table's own optimum: more than any budget; use budget=None"
        )


def check_delta(delta: object, records: int) -> None:
    """Refuse a δ that is no number, or above 1/n: publishing a random record would satisfy it."""
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 < delta < 1:
        raise ConfigurationError(f"delta={delta!r} must be a number strictly between 0 and 1")
    if delta * records > 1:
        raise ConfigurationError(
            f"delta={delta:g} exceeds 1/n = {1 / records:.3g}: publishing a random record would "
            "satisfy it; lower delta"
        )


def check_alpha(alpha: object) -> None:
    """Refuse a penalty that is not a finite number ≥ 0."""
    number = isinstance(alpha, (int, float, np.integer, np.floating))
    if isinstance(alpha, bool) or not number or not 0 <= alpha < math.inf:  # type: ignore[operator]
        raise ConfigurationError(f"alpha={alpha!r} must be a finite number >= 0")
