"""The experiments by name."""

from __future__ import annotations

import importlib

from corrdp.errors import ConfigurationError
from corrdp.experiments.experiment import Experiment

__all__ = ["NAMES", "experiment_named"]

NAMES = ("synthetic", "adult", "sepsis", "credit", "medical")


def experiment_named(name: str) -> Experiment:
    """One of the experiments.

    Raises
    ------
    ConfigurationError
        Lists the names.
    """
    if name not in NAMES:
        raise ConfigurationError(f"experiment {name!r} is unknown; use one of {', '.join(NAMES)}")
    experiment: Experiment = importlib.import_module(f"corrdp.experiments.{name}").EXPERIMENT
    return experiment
