"""The probability model of correlated tables, and its exact distances.

It is built around one fact: if a column is, with probability c, a function g of the sensitive
tuple and otherwise an independent draw *from the distribution of g(s)*, then its distance is
exactly c. Bayes' rule gives P(s | u=a) = c·P(s | g(s)=a) + (1−c)·P(s), and two such mixtures
differ only in their first parts, which have disjoint supports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.datasets.population import Channels, Population
from corrdp.datasets.simulated import LABEL
from corrdp.schema import Level, Role

__all__ = [
    "LEVELS",
    "Levels",
    "MixtureModel",
    "conditional_distances",
    "joint_distance",
    "marginal_distances",
]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Levels:
    """Levels of a kind of column, with the public distribution of a sensitive column."""

    values: tuple[Level, ...]
    shares: tuple[float, ...]

    @property
    def probabilities(self) -> FloatArray:
        """Share of every level, in order."""
        return np.array(self.shares)

    @property
    def upper(self) -> NDArray[np.bool_]:
        """The levels in the upper half, on which the label depends."""
        size = len(self.shares)
        return np.arange(size) >= (size + 1) // 2

    @property
    def lean(self) -> FloatArray:
        """A direction in [−1, 1] that rises with the level and averages to zero."""
        position = np.arange(len(self.shares), dtype=np.float64)
        centred: FloatArray = position - position @ self.probabilities
        return centred / float(np.abs(centred).max())


# the enumeration stays below about a second
MOST_CELLS = 20_000
# uneven on purpose: symmetric distributions hide mistakes
LEVELS: dict[str, Levels] = {
    "binary": Levels((0, 1), (0.6, 0.4)),
    "categorical": Levels(("a", "b", "c"), (0.5, 0.3, 0.2)),
    "numeric": Levels((-1.0, -0.5, 0.0, 0.5, 1.0), (0.1, 0.2, 0.4, 0.2, 0.1)),
}


@dataclass(frozen=True)
class MixtureModel:
    """The probability model behind ``make_correlated``.

    Sensitive columns s_1.. and a hidden bit ξ are independent. Column u_i copies its sensitive
    column with probability c_i, else it is drawn from that column's distribution, leaning up or
    down with ξ. The label is [s_1 is in its upper half] with probability c_y, else ξ.
    """

    levels: Levels
    sensitive: int
    strengths: tuple[float, ...]
    label_role: Role
    label_strength: float
    label_signal: float

    def source_of(self, column: int) -> int:
        """Which sensitive column an insensitive one depends on."""
        return column % self.sensitive

    @property
    def label_share(self) -> float:
        """P(s_1 is in its upper half) = P(ξ = 1)."""
        return float(self.levels.probabilities[self.levels.upper].sum())

    def independent_part(self) -> FloatArray:
        """P(u = a | not copied, ξ), shape (levels, 2); its mean over ξ is the distribution of s."""
        share = self.label_share
        tilt = np.array([-share, 1.0 - share]) / max(share, 1.0 - share)
        base = self.levels.probabilities
        return base[:, None] * (1.0 + self.label_signal * self.levels.lean[:, None] * tilt[None, :])


@dataclass(frozen=True, eq=False)
class _Enumerated:
    """Cells (s_j for the chosen j, ξ, y) of a model, as a population with channels."""

    population: Population
    label: FloatArray  # channel of shape (2, cells)
    codes: Mapping[int, IntArray]  # level of s_j in each cell
    hidden: IntArray

    def channel(self, model: MixtureModel, column: int) -> FloatArray:
        """P(u_i = a | cell), shape (levels, cells)."""
        strength = model.strengths[column]
        copied = np.eye(len(model.levels.shares))[:, self.codes[model.source_of(column)]]
        return strength * copied + (1.0 - strength) * model.independent_part()[:, self.hidden]


def _enumerate(model: MixtureModel, chosen: Sequence[int]) -> _Enumerated | None:
    """The population of these sensitive columns; the others are independent of everything."""
    size = len(model.levels.shares)
    if 4 * size ** len(chosen) > MOST_CELLS:
        return None
    grid = np.indices((size,) * len(chosen) + (2, 2)).reshape(len(chosen) + 2, -1)
    *s, hidden, y = grid
    upper = model.levels.upper[s[chosen.index(0)]].astype(np.int64)
    share, copied = model.label_share, model.label_strength
    prior = np.prod([model.levels.probabilities[code] for code in s], axis=0)
    prior = prior * np.where(hidden == 1, share, 1.0 - share)
    prior = prior * (copied * (y == upper) + (1.0 - copied) * (y == hidden))
    tuples = np.ravel_multi_index(tuple(s), (size,) * len(chosen))
    if model.label_role == "sensitive":
        tuples = 2 * tuples + y
    kept = prior > 0
    population = Population(prior[kept], np.asarray(tuples[kept], dtype=np.int64))
    codes = {j: code[kept] for j, code in zip(chosen, s)}
    return _Enumerated(population, np.eye(2)[:, y[kept]], codes, hidden[kept])


def marginal_distances(model: MixtureModel) -> dict[str, float]:
    """Distance of each column alone (given a public label)."""
    if model.label_role == "insensitive":
        found = {f"u{i + 1}": strength for i, strength in enumerate(model.strengths)}
        return {**found, LABEL: model.label_strength}
    known: dict[tuple[int, float], float] = {}
    for i, strength in enumerate(model.strengths):
        key = (model.source_of(i), strength)
        if key not in known:
            known[key] = _single_distance(model, i)
    return {
        f"u{i + 1}": known[model.source_of(i), strength]
        for i, strength in enumerate(model.strengths)
    }


def _single_distance(model: MixtureModel, column: int) -> float:
    cells = _enumerate(model, sorted({0, model.source_of(column)}))
    assert cells is not None
    background = [(cells.label, 1)] if model.label_role == "public" else []
    distance = cells.population.distance([(cells.channel(model, column), 1)], background)
    assert distance is not None
    return distance


def _all_cells(
    model: MixtureModel,
) -> tuple[_Enumerated, dict[tuple[int, float], list[int]]] | None:
    """Cells over every sensitive column that matters, and the columns by equal channel."""
    groups: dict[tuple[int, float], list[int]] = {}
    for i, strength in enumerate(model.strengths):
        groups.setdefault((model.source_of(i), strength), []).append(i)
    cells = _enumerate(model, sorted({0, *(j for j, _ in groups)}))
    return None if cells is None else (cells, groups)


def joint_distance(model: MixtureModel) -> float | None:
    """d_U: all insensitive columns at once, an insensitive label too (given a public label)."""
    enumerated = _all_cells(model)
    if enumerated is None:
        return None
    cells, groups = enumerated
    changed: Channels = [
        (cells.channel(model, members[0]), len(members)) for members in groups.values()
    ]
    label: Channels = [(cells.label, 1)]
    if model.label_role == "insensitive":
        return cells.population.distance([*changed, *label])
    background = label if model.label_role == "public" else []
    return cells.population.distance(changed, background)


def conditional_distances(model: MixtureModel) -> dict[str, float] | None:
    """Distance of each column given all other columns that are not sensitive."""
    enumerated = _all_cells(model)
    if enumerated is None:
        return None
    cells, groups = enumerated
    channels = {key: cells.channel(model, members[0]) for key, members in groups.items()}
    label = [] if model.label_role == "sensitive" else [(cells.label, 1)]
    found: dict[str, float] = {}
    for key, members in groups.items():
        others = [(channels[k], len(m) - (k == key)) for k, m in groups.items()]
        distance = cells.population.distance([(channels[key], 1)], [*others, *label])
        if distance is None:
            return None
        found |= {f"u{i + 1}": distance for i in members}
    if model.label_role == "insensitive":
        others = [(channels[key], len(members)) for key, members in groups.items()]
        distance = cells.population.distance(label, others)
        if distance is None:
            return None
        found[LABEL] = distance
    names = [*(f"u{i + 1}" for i in range(len(model.strengths))), LABEL]
    return {name: found[name] for name in names if name in found}
