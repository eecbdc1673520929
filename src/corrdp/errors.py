"""Every exception and warning that corrdp raises.

::

    CorrDPError
    ├── ConfigurationError      (also ValueError)    a parameter, plan or schema is wrong
    │   └── SchemaError                              the description of the table is wrong
    ├── DataError               (also ValueError)    the table does not fit its schema
    ├── BudgetExceededError                          a release would spend more than was set aside
    ├── VerificationError                            a certificate does not hold
    └── MissingExtraError       (also ImportError)   an optional dependency is not installed

    CorrDPWarning               (UserWarning)
    ├── UtilityWarning                               the noise leaves little signal
    └── AssumptionWarning                            a guarantee rests on something worth checking

An error message is one line: it names the column or parameter, the value, and the mend.
It never contains a data value of a record unless that value lies outside the declared domain.
"""

from __future__ import annotations

__all__ = [
    "AssumptionWarning",
    "BudgetExceededError",
    "ConfigurationError",
    "CorrDPError",
    "CorrDPWarning",
    "DataError",
    "MissingExtraError",
    "SchemaError",
    "UtilityWarning",
    "VerificationError",
]


class CorrDPError(Exception):
    """Base of every error of this library."""


class ConfigurationError(CorrDPError, ValueError):
    """A parameter, plan or schema is wrong; nothing has been spent."""


class SchemaError(ConfigurationError):
    """The description of the table contradicts itself or is incomplete."""


class DataError(CorrDPError, ValueError):
    """The table does not fit its schema; nothing has been spent."""


class BudgetExceededError(CorrDPError):
    """A release would spend more than the budget allows; nothing has been drawn."""


class VerificationError(CorrDPError):
    """A certificate or a model does not hold what it says."""


class MissingExtraError(CorrDPError, ImportError):
    """An optional dependency is not installed; the message names the extra."""


class CorrDPWarning(UserWarning):
    """Base of every warning of this library."""


class UtilityWarning(CorrDPWarning):
    """The result is private but the noise leaves little signal."""


class AssumptionWarning(CorrDPWarning):
    """The guarantee rests on an assumption that this input makes worth checking."""
