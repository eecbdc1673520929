"""Correlation-aware differential privacy for tables.

Mark the sensitive columns; every other column is protected as much as it tells about them. The
names below are the public interface; they are imported when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from corrdp.version import __version__

_EXPORTS = {
    "Categorical": "corrdp.schema",
    "Certificate": "corrdp.privacy.certificate",
    "CorrDPError": "corrdp.errors",
    "CorrDPLogisticRegression": "corrdp.linear_model",
    "CorrDPMLPClassifier": "corrdp.nn.estimators",
    "CorrDPMLPRegressor": "corrdp.nn.estimators",
    "CorrDPRidge": "corrdp.linear_model",
    "Distance": "corrdp.distance",
    "Distances": "corrdp.distance",
    "Group": "corrdp.schema",
    "Ignored": "corrdp.schema",
    "Label": "corrdp.schema",
    "Numeric": "corrdp.schema",
    "PrivacyBudget": "corrdp.privacy.budget",
    "Schema": "corrdp.schema",
    "load": "corrdp.model_file",
    "verify": "corrdp.verification",
}

__all__ = ["__version__", *_EXPORTS]

if TYPE_CHECKING:
    from corrdp.distance import Distance as Distance
    from corrdp.distance import Distances as Distances
    from corrdp.errors import CorrDPError as CorrDPError
    from corrdp.linear_model import CorrDPLogisticRegression as CorrDPLogisticRegression
    from corrdp.linear_model import CorrDPRidge as CorrDPRidge
    from corrdp.model_file import load as load
    from corrdp.nn.estimators import CorrDPMLPClassifier as CorrDPMLPClassifier
    from corrdp.nn.estimators import CorrDPMLPRegressor as CorrDPMLPRegressor
    from corrdp.privacy.budget import PrivacyBudget as PrivacyBudget
    from corrdp.privacy.certificate import Certificate as Certificate
    from corrdp.schema import Categorical as Categorical
    from corrdp.schema import Group as Group
    from corrdp.schema import Ignored as Ignored
    from corrdp.schema import Label as Label
    from corrdp.schema import Numeric as Numeric
    from corrdp.schema import Schema as Schema
    from corrdp.verification import verify as verify


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'corrdp' has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
