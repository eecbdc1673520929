"""The only place that draws randomness: noise sources, lattice noise and its slack (THEORY T14).

``noise_source(None)`` reads operating-system entropy at every draw and keeps no state, so that
forked, spawned, threaded and pickled copies never repeat noise. An integer gives reproducible
noise for tests; whoever knows it can subtract the noise, so ``source.seeded`` marks the result
"not private".

A release is h·(integer sum + integer noise) with both on the lattice hℤ: no low-order bit and no
order of summation tells anything beyond the ideal mechanism, up to :func:`gaussian_slack`. The
error analysis is in :mod:`corrdp._slack`, the samplers are in :mod:`corrdp._sampling`.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corrdp import _sampling
from corrdp._lattice import EXACT, Lattice
from corrdp._slack import Slack, gaussian_slack
from corrdp.errors import ConfigurationError

__all__ = [
    "Lattice",
    "NoiseSource",
    "RandomState",
    "Slack",
    "gaussian_slack",
    "noise_source",
    "release",
]

RandomState = int | np.random.Generator | np.random.RandomState | None
Size = int | tuple[int, ...]


class NoiseSource:
    """Where noise comes from; made by :func:`noise_source`.

    ``seeded`` is False for operating-system entropy and True for reproducible noise, which is
    for tests only. A seeded source continues its stream from draw to draw; a copy of it (pickle,
    fork, deepcopy) repeats what the original will draw.
    """

    __slots__ = ("_children", "_key", "_words")

    def __init__(self, key: bytes | None) -> None:
        self._key = key
        self._children: dict[str, NoiseSource] = {}
        self._words: _sampling.Words = _sampling.operating_system_words
        if key is not None:
            self._words = np.random.PCG64(int.from_bytes(key, "big")).random_raw

    @property
    def seeded(self) -> bool:
        """True when the noise can be reproduced: the result is not private."""
        return self._key is not None

    def __repr__(self) -> str:
        return f"NoiseSource(seeded={self.seeded})"

    def child(self, name: str, *indices: int) -> NoiseSource:
        """The stream called ``name`` (and indices, whole numbers ≥ 0) below this one.

        Under a seed every name has its own stream, independent of all others and of the parent;
        asking again returns the same object, which goes on where it stopped. Without a seed all
        draws are independent anyway.
        """
        label = _label(name, indices)
        if self._key is None:
            return self
        if label not in self._children:
            key = hashlib.sha256(self._key + label.encode()).digest()
            self._children.setdefault(label, NoiseSource(key))
        return self._children[label]

    def gaussian(self, scale: ArrayLike) -> NDArray[np.float64]:
        """Integers round(N(0, s²)), one per entry s = σ/h of ``scale``, as float64, exact.

        Parameters
        ----------
        scale : array of any shape
            Standard deviations in lattice cells, 0 (no noise) to 2^47; beyond, or where NaN,
            ConfigurationError. Every value is below 2^53 in magnitude.

        Guarantee: THEORY T14, the continuous Gaussian mechanism up to :func:`gaussian_slack`.
        """
        cells = _checked_scale(scale, _sampling.LARGEST_SCALE)
        return _sampling.lattice_gaussian(self._words, cells.ravel()).reshape(cells.shape)

    def discrete_laplace(
        self, scale: ArrayLike | Fraction | Sequence[Fraction]
    ) -> NDArray[np.int64]:
        """Integers k with probability proportional to exp(-|k|/s), exactly, one per entry s.

        Parameters
        ----------
        scale : float or Fraction, or an array of them of any shape
            In lattice cells, 0 (no noise) to 2^43; beyond, or where NaN, ConfigurationError. A
            float is taken as the fraction it is. A draw takes some microseconds.

        Guarantee: pure ε-DP with no slack, for ε = Σ |change in cells| / s (THEORY T14).
        """
        given = np.asarray(scale, dtype=object)
        scales = [_laplace_scale(s) for s in given.ravel()]
        value = _sampling.discrete_laplace(self._words, scales)
        return np.array(value, dtype=np.int64).reshape(given.shape)

    def poisson_sample(self, n: int, rate: float) -> NDArray[np.int64]:
        """Sorted indices of a Poisson sample: each of n records with probability exactly ``rate``.

        Independent over records, so the batch may be empty; ``rate=1`` is all of them (THEORY T7).
        """
        if not 0 <= rate <= 1:
            raise ConfigurationError(f"rate={rate!r} is not a probability")
        return _sampling.bernoulli(self._words, float(rate), _count(n, "n"))

    def uniform(self, size: Size) -> NDArray[np.float64]:
        """Uniform doubles strictly inside (0, 1), for simulated data; not for a release."""
        count = math.prod(_shape(size))
        high = (self._words(count) >> np.uint64(12)).astype(np.float64)
        return ((high + 0.5) * 2.0**-52).reshape(_shape(size))

    def standard_normal(self, size: Size) -> NDArray[np.float64]:
        """Standard normal doubles, for simulated data; not for a release (low bits leak)."""
        count = math.prod(_shape(size))
        return _sampling.standard_normal(self._words, count).reshape(_shape(size))

    def __reduce__(self) -> str | tuple[object, ...]:
        if self._key is None:
            return noise_source, (None,)
        return _restored, (self._key, self._words, self._children)


def _restored(key: bytes, words: _sampling.Words, children: dict[str, NoiseSource]) -> NoiseSource:
    source = NoiseSource(key)
    source._words, source._children = words, children
    return source


def noise_source(random_state: RandomState | NoiseSource) -> NoiseSource:
    """The source that ``random_state`` stands for.

    Parameters
    ----------
    random_state : None, int, numpy Generator or RandomState, or NoiseSource
        None: operating-system entropy, private. An int ≥ 0: reproducible, not private. A numpy
        generator gives up one integer, which then is the seed. A source is returned as it is.
    """
    if isinstance(random_state, NoiseSource):
        return random_state
    if random_state is None:
        return NoiseSource(None)
    if isinstance(random_state, np.random.Generator):
        seed = int(random_state.integers(2**63))
    elif isinstance(random_state, np.random.RandomState):
        seed = int(random_state.randint(2**63 - 1, dtype=np.int64))
    else:
        seed = _count(random_state, "random_state")
    return NoiseSource(hashlib.sha256(b"corrdp noise %d" % seed).digest())


def release(
    total: ArrayLike, sigma: ArrayLike, lattice_spacing: float, source: NoiseSource
) -> NDArray[np.float64]:
    """h·(total/h + round(N(0, σ²)/h)): a private sum, on the lattice (THEORY T14).

    The integer is added after the noise is rounded: rounding half to even does not commute with
    adding an odd integer.

    Parameters
    ----------
    total : array of any shape
        Sum over records, each entry exactly on the lattice and below 2^53 cells.
    sigma : array that broadcasts to it
        Standard deviations in the unit of ``total``; 0 releases that entry as it is.
    lattice_spacing : float
        h, a power of two (:attr:`Lattice.spacing`).

    Raises
    ------
    ConfigurationError
        If ``total`` is not on the lattice or anything is NaN; nothing has been drawn then.
    """
    if not (math.isfinite(lattice_spacing) and math.frexp(lattice_spacing)[0] == 0.5):
        raise ConfigurationError(f"lattice_spacing={lattice_spacing!r} is not a power of two")
    cells = np.asarray(total, dtype=np.float64) / lattice_spacing
    if not (np.abs(cells) < EXACT).all() or not (cells == np.rint(cells)).all():
        raise ConfigurationError(
            f"total is not on the lattice of spacing {lattice_spacing:g}; "
            "round every factor of a term first (Lattice.round_feature, Lattice.round_residual)"
        )
    scale = np.broadcast_to(np.asarray(sigma, dtype=np.float64) / lattice_spacing, cells.shape)
    noise = source.gaussian(scale)
    released = (cells.astype(np.int64) + noise.astype(np.int64)).astype(np.float64)
    return np.asarray(released * lattice_spacing)


def _label(name: str, indices: tuple[int, ...]) -> str:
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"name={name!r} of a noise stream is not a non-empty string")
    return json.dumps([name, *(_count(index, "index") for index in indices)])


def _count(value: object, name: str) -> int:
    """A whole number ≥ 0; True and 3.0 are none."""
    number = -1
    if not isinstance(value, bool | np.bool_) and hasattr(value, "__index__"):
        number = operator.index(value)
    if number < 0:
        raise ConfigurationError(f"{name}={value!r} is not a whole number >= 0")
    return number


def _shape(size: Size) -> tuple[int, ...]:
    sizes = size if isinstance(size, tuple) else (size,)
    return tuple(_count(length, "size") for length in sizes)


def _checked_scale(scale: ArrayLike, most: float) -> NDArray[np.float64]:
    cells = np.asarray(scale, dtype=np.float64)
    fits = (cells >= 0) & (cells <= most)  # NaN does not
    if np.count_nonzero(fits) < cells.size:
        raise ConfigurationError(
            f"scale={cells[~fits].flat[0]} cells of Gaussian noise is not between 0 and "
            f"{most:g}; take a coarser lattice or less noise"
        )
    return cells


def _laplace_scale(scale: object) -> Fraction:
    value = scale.item() if isinstance(scale, np.generic) else scale
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise ConfigurationError(f"scale={value!r} of Laplace noise is not a number")
    if not 0 <= value <= _sampling.LARGEST_LAPLACE_SCALE:
        raise ConfigurationError(
            f"scale={value} cells of Laplace noise is not between 0 and "
            f"{_sampling.LARGEST_LAPLACE_SCALE:g}; take a coarser lattice or less noise"
        )
    return Fraction(value)
