"""The exception tree that the docstring draws is the one that exists."""

from __future__ import annotations

import re

import pytest

from corrdp import errors

TREE = {
    "ConfigurationError": (errors.CorrDPError, ValueError),
    "SchemaError": (errors.ConfigurationError, ValueError),
    "DataError": (errors.CorrDPError, ValueError),
    "BudgetExceededError": (errors.CorrDPError,),
    "VerificationError": (errors.CorrDPError,),
    "MissingExtraError": (errors.CorrDPError, ImportError),
    "CorrDPWarning": (UserWarning,),
    "UtilityWarning": (errors.CorrDPWarning,),
    "AssumptionWarning": (errors.CorrDPWarning,),
}


@pytest.mark.parametrize(("name", "bases"), TREE.items())
def test_tree(name: str, bases: tuple[type, ...]) -> None:
    assert all(issubclass(getattr(errors, name), base) for base in bases)


def test_exports_are_complete_and_drawn() -> None:
    defined = {
        n
        for n, v in vars(errors).items()
        if isinstance(v, type) and v.__module__ == errors.__name__
    }
    assert defined == set(errors.__all__) == {"CorrDPError", *TREE}
    drawn = set(re.findall(r"[A-Za-z]+(?:Error|Warning)", errors.__doc__ or ""))
    assert defined <= drawn


def test_budget_and_verification_are_no_value_errors() -> None:
    """A caller who catches ValueError for bad input must not swallow a refused release."""
    assert not issubclass(errors.BudgetExceededError, ValueError)
    assert not issubclass(errors.VerificationError, ValueError)
