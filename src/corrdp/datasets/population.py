"""Exact distances of a finite population, by enumeration (THEORY T2).

A population is a list of latent cells with probabilities. A cell fixes the sensitive tuple; given
the cell, the columns are independent, each drawn through its own channel. Any finite table can be
written so (with one cell per joint value at worst).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from scipy.special import xlogy

from corrdp.errors import ConfigurationError

__all__ = ["Channels", "Population"]

FloatArray: TypeAlias = NDArray[np.float64]
# a channel of shape (levels, cells), and how many columns have it
Channels: TypeAlias = Sequence[tuple[FloatArray, int]]

# bounds of the enumeration: about a third of a second, about 200 megabytes
MOST_WORK = 300_000_000
MOST_NUMBERS = 20_000_000
MOST_VALUES = 5_000


@dataclass(frozen=True, eq=False)
class Population:
    """Latent cells, their probabilities and their sensitive tuples.

    Parameters
    ----------
    prior : array of shape (cells,)
        Positive probabilities that sum to one.
    sensitive : array of int of shape (cells,)
        Number of the joint sensitive tuple of each cell, counted from 0.
    """

    prior: FloatArray
    sensitive: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not (np.all(self.prior > 0) and abs(float(self.prior.sum()) - 1.0) < 1e-9):
            raise ConfigurationError("prior must hold positive probabilities that sum to one")
        if self.sensitive.shape != self.prior.shape:
            raise ConfigurationError("every cell needs one sensitive tuple")

    def distance(self, changed: Channels, background: Channels = ()) -> float | None:
        """sup over the background's values K and pairs a, b of TV(P(s | a, K), P(s | b, K)).

        Columns with the same channel count as many times as stated: given the cell, only how
        often each level occurs matters, so the joint values are enumerated as multisets.

        Parameters
        ----------
        changed, background : sequences of (array of shape (levels, cells), int)
            Channels P(level | cell) of the columns that change and of those that are known.

        Returns
        -------
        float or None
            None where the domain is too large to enumerate. A combination of probability zero
            counts as 1: P(s | ·) is not defined there.
        """
        if self._too_large(changed, background):
            return None
        values = self._log_likelihoods(changed)
        return max(
            self._largest_total_variation(np.log(self.prior) + known + values)
            for known in self._log_likelihoods(background)
        )

    def _too_large(self, changed: Channels, background: Channels) -> bool:
        values, known = _multisets(changed), _multisets(background)
        cells, tuples = len(self.prior), int(self.sensitive.max()) + 1
        numbers = (values + known) * cells * max(len(c) for c, _ in (*changed, *background))
        work = known * values * (values * tuples + cells)
        return values > MOST_VALUES or numbers > MOST_NUMBERS or work > MOST_WORK

    def _log_likelihoods(self, channels: Channels) -> FloatArray:
        """log P(values | cell) up to a constant per row, shape (joint values, cells)."""
        rows = np.zeros((1, len(self.prior)))
        for channel, count in channels:
            repeats = _compositions(count, len(channel))
            logs = xlogy(repeats[:, :, None], channel[None, :, :]).sum(axis=1)
            rows = (rows[:, None, :] + logs[None, :, :]).reshape(-1, len(self.prior))
        return rows

    def _largest_total_variation(self, log_weights: FloatArray) -> float:
        """Largest total variation between the rows' posteriors of s."""
        top = log_weights.max(axis=1, keepdims=True)
        if np.isneginf(top).any():
            return 1.0
        weights = np.exp(log_weights - top)
        tuples = np.eye(int(self.sensitive.max()) + 1)[self.sensitive]
        posterior = weights @ tuples
        posterior /= posterior.sum(axis=1, keepdims=True)
        if len(posterior) < 2:
            return 0.0
        return min(1.0, float(pdist(posterior, "cityblock").max()) / 2.0)


def _multisets(channels: Channels) -> int:
    return math.prod(math.comb(n + len(channel) - 1, n) for channel, n in channels)


def _compositions(total: int, parts: int) -> NDArray[np.int64]:
    """All ways to write ``total`` as an ordered sum of ``parts`` counts, one a row."""
    bars = itertools.combinations(range(total + parts - 1), parts - 1)
    fences = np.array([(-1, *bar, total + parts - 1) for bar in bars], dtype=np.int64)
    counts: NDArray[np.int64] = np.diff(fences, axis=1) - 1
    return counts
