"""One noisy sum under attack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.noise import noise_source, release

__all__ = ["StepDraw"]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class StepDraw:
    """Log likelihood ratio of one released sum; what the other records add cancels.

    Attributes
    ----------
    sums : array of shape (2, m)
        What the record in question adds on either side.
    noise : array of shape (m,)
        σ of every coordinate.
    spacing : float
        The lattice's.
    """

    sums: FloatArray
    noise: FloatArray
    spacing: float

    def __call__(self, side: int, count: int, seed: int | None) -> FloatArray:
        total = np.tile(self.sums[side], (count, 1))
        out = release(total, self.noise, self.spacing, noise_source(seed))
        moved = self.sums[1] - self.sums[0]
        weight = np.divide(moved, self.noise**2, out=np.zeros_like(moved), where=moved != 0)
        score: FloatArray = (out - self.sums[0]) @ weight
        return score
