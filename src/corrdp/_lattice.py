"""The lattice on which records are summed and noise is released (THEORY T14)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corrdp.errors import ConfigurationError, DataError

__all__ = ["EXACT", "Lattice"]

#: Integers below this are exact in float64.
EXACT = 2**53
_MOST_BITS = 52


@dataclass(frozen=True)
class Lattice:
    """Grid of a record's contribution: residual (2^-p) times feature (2^-q) lies on 2^-(p+q).

    Rounding each factor, not the finished product, keeps block bounds: a rounded residual moves
    at most one ``residual_step`` more than the exact one (THEORY T14).

    Parameters
    ----------
    residual_bits, feature_bits : int
        p and q, each 0 or more, together at most 52.
    """

    residual_bits: int = 7
    feature_bits: int = 7

    def __post_init__(self) -> None:
        for name in ("residual_bits", "feature_bits"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not value >= 0:
                raise ConfigurationError(f"{name}={value!r} is not a whole number of bits >= 0")
        if self.residual_bits + self.feature_bits > _MOST_BITS:
            raise ConfigurationError(
                f"residual_bits={self.residual_bits} and feature_bits={self.feature_bits} add up "
                f"to more than {_MOST_BITS}; take fewer (the default is 7 and 7)"
            )

    @property
    def residual_step(self) -> float:
        """Spacing of rounded residuals, 2^-p."""
        return math.ldexp(1.0, -self.residual_bits)

    @property
    def feature_step(self) -> float:
        """Spacing of rounded features, 2^-q."""
        return math.ldexp(1.0, -self.feature_bits)

    @property
    def spacing(self) -> float:
        """Spacing h = 2^-(p+q) of products and of their sums."""
        return math.ldexp(1.0, -self.residual_bits - self.feature_bits)

    def round_feature(self, x: ArrayLike) -> NDArray[np.float64]:
        """Nearest multiples of ``feature_step``, any shape; DataError where not finite."""
        return _rounded(x, self.feature_step, "feature")

    def round_residual(self, x: ArrayLike) -> NDArray[np.float64]:
        """Nearest multiples of ``residual_step``, any shape; DataError where not finite."""
        return _rounded(x, self.residual_step, "residual")

    def check_exact_sum(self, n: int, largest_term: float) -> None:
        """Refuse (ConfigurationError) unless n terms of the lattice add up exactly in float64.

        Holds when n · largest_term / spacing < 2^53; then any order and chunking gives one sum.
        ``largest_term`` is the public bound of a term's magnitude, in the data's own unit.
        """
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or not n >= 0:
            raise ConfigurationError(f"n={n!r} is not a number of records")
        if not (math.isfinite(largest_term) and largest_term >= 0):
            raise ConfigurationError(f"largest_term={largest_term!r} is not a finite bound >= 0")
        sum_bound = int(n) * Fraction(largest_term)
        bits = self.residual_bits + self.feature_bits
        if sum_bound * 2**bits < EXACT:
            return
        while bits >= 0 and sum_bound * 2**bits >= EXACT:
            bits -= 1
        mend = (
            f"take residual_bits + feature_bits <= {bits}, for instance "
            f"Lattice({bits - bits // 2}, {bits // 2})"
            if bits >= 0
            else "scale the terms down"
        )
        raise ConfigurationError(
            f"n={n} terms up to {largest_term:g} do not add up exactly on the lattice of "
            f"{self.residual_bits}+{self.feature_bits} bits; {mend}"
        )


def _rounded(x: ArrayLike, step: float, what: str) -> NDArray[np.float64]:
    value = np.asarray(x, dtype=np.float64)
    if not np.isfinite(value).all():
        raise DataError(f"a {what} is NaN or infinite; impute or clamp before rounding")
    rounded: NDArray[np.float64] = np.rint(value / step) * step
    return rounded
