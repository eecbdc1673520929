"""An experiment with its settings and results: what can be said of it, and what cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from corrdp.experiments.claims import LEAST_SEEDS, Claim
from corrdp.experiments.experiment import ALL, Experiment, Table, chosen_tables, remembered
from corrdp.experiments.methods import method_named
from corrdp.experiments.results import Results
from corrdp.experiments.settings import ExperimentSettings, short

__all__ = ["Evaluation"]

TOO_LITTLE = (
    f"It needs {LEAST_SEEDS} seeds of every way to train that it compares, and all their ε."
)


@dataclass(frozen=True)
class Evaluation:
    """What was run of an experiment.

    Attributes
    ----------
    experiment : Experiment
    settings : ExperimentSettings
    results : Results
    """

    experiment: Experiment
    settings: ExperimentSettings
    results: Results

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """All tables of such settings, run or not."""
        return chosen_tables(self.experiment, remembered(self.experiment, self.settings))

    @cached_property
    def filled(self) -> tuple[Table, ...]:
        """Tables with results at some ε."""
        return tuple(table for table in self.tables if self.results.epsilons(table.key))

    @cached_property
    def claims(self) -> list[Claim]:
        """Every claim with its verdict; one that is not judged says why."""
        claims = self.experiment.judge(self.results)
        if not all(table.given for table in self.tables):
            why = f"The claim is about {self._own}. {self.without_distances}"
            return [replace(one, verdict="not run", figures=(), why=why) for one in claims]
        return [
            replace(one, why=one.why or TOO_LITTLE) if one.verdict == "not run" else one
            for one in claims
        ]

    @property
    def _own(self) -> str:
        return f"the sensitive columns {', '.join(self.experiment.tables[0].sensitive)}"

    @property
    def without_distances(self) -> str:
        """What is left out with sensitive columns that no distances are given for; else empty."""
        foreign = [table for table in self.tables if not table.given]
        if not foreign:
            return ""
        left_out = [name for name in ALL if method_named(name).distances == "given"]
        return (
            f"No distances are given for the sensitive columns "
            f"{', '.join(foreign[0].sensitive)}, so that "
            f"{' and '.join(repr(name) for name in left_out)} cannot be run."
        )

    def not_run(self, table: Table) -> Sequence[str]:
        """Ways to train of a table without a result, those without given distances among them."""
        grid = self.results.epsilons(table.key)
        return [
            name
            for name in ALL
            if (name in table.methods or not table.given)
            and not any(
                self.results.seeds(table.key, name, epsilon, self.experiment.metric)
                for epsilon in grid
            )
        ]

    @property
    def described(self) -> str:
        """The settings as sentences, for the reader of a page."""
        records = "the first records only (quick)" if self.settings.quick else "all records"
        said = f"δ = {short(self.settings.target_delta)}, {self.settings.steps} steps, {records}."
        if self.without_distances:
            said = f"Not run with {self._own}. {self.without_distances} {said}"
        return said
