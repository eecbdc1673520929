"""Claims of the paper, and the questions to results by which they are judged.

A difference counts where its 95 % interval, paired by seed, lies on one side of zero and it is at
least 5 % of what the worse way lacks to training without noise: runs of a seed share their noise,
which makes the intervals of tiny differences tiny too. Fewer than three seeds decide nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

from corrdp.errors import ConfigurationError
from corrdp.experiments.methods import method_named
from corrdp.experiments.results import Results

__all__ = [
    "LEAST_SEEDS",
    "Claim",
    "Question",
    "ahead",
    "listed",
    "mean_of",
    "share_of_way",
    "undecided",
    "verdict",
]

Verdict: TypeAlias = Literal[
    "reproduced", "partly reproduced", "not reproduced", "undecided", "not run"
]
Way: TypeAlias = tuple[str, str]
LEAST_SEEDS = 3
MATERIAL, MATERIAL_VALUE = 0.05, 1e-3


@dataclass(frozen=True)
class Claim:
    """One claim, judged on one experiment.

    Attributes
    ----------
    letter : str
        (a) to (g).
    claim : str
        What is claimed.
    verdict : {"reproduced", "partly reproduced", "not reproduced", "undecided", "not run"}
        Undecided: a difference that would matter, but too few seeds to tell it from noise.
    figures : tuple of str
        Sentences with the figures that the verdict rests on.
    why : str
        What explains a claim that does not reproduce, or not fully.
    """

    letter: str
    claim: str
    verdict: Verdict
    figures: tuple[str, ...]
    why: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in get_args(Verdict):
            raise ConfigurationError(f"verdict {self.verdict!r} is not in {get_args(Verdict)}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "figures": list(self.figures)}


@dataclass(frozen=True)
class Question:
    """Where a claim is looked for: one table and one metric.

    Attributes
    ----------
    results : Results
    table : (data set, label role)
    metric : str
    better : {"higher", "lower"}
    """

    results: Results
    table: Way
    metric: str
    better: Literal["higher", "lower"]

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The grid of the table."""
        return self.results.epsilons(self.table)

    def has(self, *methods: str) -> bool:
        """Whether every method was run at every ε, with three seeds at least where it has noise."""
        return bool(self.epsilons) and all(
            self.results.seeds(self.table, method, epsilon, self.metric)
            >= (LEAST_SEEDS if method_named(method).private else 1)
            for method in methods
            for epsilon in self.epsilons
        )

    def gain(self, first: str, second: str, epsilon: float) -> tuple[float, float, float]:
        """(mean, low, high) of how much better the first method is; negative where it is worse."""
        found = self.results.difference(self.table, (first, second), epsilon, self.metric)
        if found.runs < LEAST_SEEDS:
            return found.mean, -math.inf, math.inf
        if self.better == "higher":
            return found.mean, found.low, found.high
        return -found.mean, -found.high, -found.low

    def mean(self, method: str, epsilon: float) -> float:
        """Mean of a method."""
        return self.results.estimate(self.table, method, epsilon, self.metric).mean


def ahead(question: Question, first: str, second: str) -> tuple[float, ...]:
    """The ε at which the first method is better by more than noise and by enough to matter."""
    won = []
    for epsilon in question.epsilons:
        gain, low, _ = question.gain(first, second, epsilon)
        if low > 0 and gain >= _least(question, second, epsilon):
            won.append(epsilon)
    return tuple(won)


def undecided(question: Question, first: str, second: str) -> bool:
    """Nowhere ahead for sure, but somewhere by enough to matter on average."""
    return not ahead(question, first, second) and any(
        question.gain(first, second, epsilon)[0] > _least(question, second, epsilon)
        for epsilon in question.epsilons
    )


def _least(question: Question, method: str, epsilon: float) -> float:
    """The least difference that matters: 5 % of the way to non-private, else .1 % of the value."""
    value, exact = question.mean(method, epsilon), question.mean("non-private", epsilon)
    if math.isnan(exact):
        return MATERIAL_VALUE * abs(value)
    return MATERIAL * abs(exact - value)


def share_of_way(question: Question, method: str) -> dict[float, float]:
    """Share of the way from DP (0) to semi (1) that a method goes, by ε; of means."""
    shares = {}
    for epsilon in question.epsilons:
        dp, semi = question.mean("DP", epsilon), question.mean("semi", epsilon)
        whole = semi - dp
        own = question.mean(method, epsilon) - dp
        shares[epsilon] = own / whole if whole else math.nan
    return shares


def mean_of(question: Question, methods: Iterable[str]) -> str:
    """Means of methods as a sentence: every ε with its values."""
    parts = []
    for epsilon in question.epsilons:
        values = ", ".join(
            f"{method} "
            + question.results.estimate(question.table, method, epsilon, question.metric).text()
            for method in methods
        )
        parts.append(f"ε={epsilon:g}: {values}")
    return f"{question.metric} ({', '.join(question.table)} label): {'; '.join(parts)}."


def listed(values: Sequence[float] | Mapping[float, float], digits: int = 2) -> str:
    """Numbers as text; a mapping gives ``ε: value``."""
    if isinstance(values, Mapping):
        return ", ".join(f"{value:.{digits}f} at ε={key:g}" for key, value in values.items())
    return ", ".join(f"{value:g}" for value in values) or "none"


def verdict(*parts: bool) -> Verdict:
    """All parts hold, some do, or none."""
    if all(parts):
        return "reproduced"
    return "partly reproduced" if any(parts) else "not reproduced"
