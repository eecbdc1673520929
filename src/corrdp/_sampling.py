"""Exact and nearly exact samplers that turn random 64-bit words into noise.

Every function takes its words from its first argument, so that a test can inject them; only
:mod:`corrdp.noise` decides where they come from. Nothing here knows about privacy.

Uniforms. A word gives a sign and an odd integer below 2^63. The magnitude, scaled into (0, 1/2],
is a real uniform rounded to the nearest double: where the integer is too short for 53 significant
bits, further words are appended. So the relative precision is the same at every magnitude, 0
never occurs, and no normal quantile up to 37.5 standard deviations is out of reach.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

__all__ = [
    "FINE_FACTOR",
    "LARGEST_LAPLACE_SCALE",
    "LARGEST_SCALE",
    "TWO_LAYERS",
    "Words",
    "bernoulli",
    "discrete_laplace",
    "lattice_gaussian",
    "operating_system_words",
    "signed_half_uniform",
    "standard_normal",
]

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Words = Callable[[int], NDArray[np.uint64]]
Below = Callable[[int], int]

#: Above this standard deviation (in cells) the noise is drawn in two layers.
TWO_LAYERS = 2.0**16
#: Standard deviation of the fine layer in coarse cells: aliasing is below exp(-2 pi^2 4^2).
FINE_FACTOR = 4.0
#: Largest standard deviation (in cells): 38.5 of them, the sampler's end, stay below 2^53.
LARGEST_SCALE = 2.0**47
#: Largest discrete Laplace scale (in cells): 2^53 is exceeded with probability exp(-1024).
LARGEST_LAPLACE_SCALE = 2.0**43

_ONE = np.uint64(1)
_SHORT = 2.0**54
_WORD_BITS = 64
_LONGEST = 18 * _WORD_BITS  # more leading zeros than the smallest double has
_SMALLEST = math.ulp(0.0)


def operating_system_words(count: int) -> NDArray[np.uint64]:
    """``count`` words of operating-system entropy, drawn now: no state survives the call."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def signed_half_uniform(words: Words, count: int) -> Float:
    """``count`` numbers: a fair sign times a uniform on (0, 1/2] with 53 relative bits."""
    odd = (words(count) | _ONE).view(np.int64)
    value = odd.astype(np.float64)
    short = (np.abs(value) <= _SHORT).nonzero()[0]  # one in 512
    value *= 2.0**-_WORD_BITS
    if short.size:
        # The lowest of the 63 bits was set by hand, the others are random.
        longer = zip((np.abs(odd[short]) >> 1).tolist(), words(short.size).tolist(), strict=True)
        magnitude = [_lengthened(words, (top << _WORD_BITS) | low) for top, low in longer]
        value[short] = np.copysign(magnitude, value[short])
    return value


def _lengthened(words: Words, prefix: int) -> float:
    """A uniform on (0, 1/2] whose first 126 bits are ``prefix``, rounded to the nearest double."""
    exponent = -2 * _WORD_BITS
    while prefix < 2**53 and exponent > -_LONGEST:
        prefix = (prefix << _WORD_BITS) | int(words(1)[0])
        exponent -= _WORD_BITS
    # The odd integer is the middle of what is left open; Python rounds it correctly, never a tie.
    return max(math.ldexp(float(2 * prefix + 1), exponent), _SMALLEST)


def standard_normal(words: Words, count: int) -> Float:
    """``count`` standard normals: a signed half-uniform through the double-precision quantile."""
    uniform = signed_half_uniform(words, count)
    quantile: Float = ndtri(np.abs(uniform))
    return np.copysign(quantile, uniform, out=quantile)


def lattice_gaussian(words: Words, scale: Float) -> Float:
    """Integers round(N(0, scale²)), one per entry of the one-dimensional ``scale``.

    Entries above ``TWO_LAYERS`` are drawn in two layers; the rule looks at ``scale`` only.
    """
    fine = scale > TWO_LAYERS
    layered = np.count_nonzero(fine)
    if layered == 0:
        return _one_layer(words, scale)
    if layered == scale.size:
        return _two_layers(words, scale)
    noise = np.empty_like(scale)
    noise[fine] = _two_layers(words, scale[fine])
    noise[~fine] = _one_layer(words, scale[~fine])
    return noise


def _one_layer(words: Words, scale: Float) -> Float:
    noise = standard_normal(words, scale.size)
    noise *= scale
    np.rint(noise, out=noise)
    noise += 0.0  # turns -0.0 into 0.0: the sign of a rounded-away noise must not survive
    return noise


def _two_layers(words: Words, scale: Float) -> Float:
    """Coarse noise on multiples of H = 2^b plus fine noise of standard deviation 4H.

    H lies within a factor √2 of √scale/2, where both layers have about 2√scale cells.
    """
    step = np.ldexp(1.0, (np.frexp(scale)[1] >> 1) - 1)
    layers = np.empty(2 * scale.size)
    coarse, fine = layers[: scale.size], layers[scale.size :]
    np.multiply(step, FINE_FACTOR, out=fine)
    # The last factor outweighs the rounding before it: the total is never below ``scale``.
    np.multiply(np.sqrt(scale * scale - fine * fine) / step, 1.0 + 2.0**-50, out=coarse)
    drawn = _one_layer(words, layers)
    noise: Float = step * drawn[: scale.size] + drawn[scale.size :]
    return noise


def bernoulli(words: Words, probability: float, count: int) -> Int:
    """Sorted indices of the successes among ``count`` independent trials, exactly.

    A uniform is compared with ``probability`` byte by byte, as far as the comparison is open.
    """
    success = np.full(count, probability >= 1)
    undecided = np.arange(0 if probability >= 1 else count)
    rest = Fraction(probability)
    while rest and undecided.size:
        digit = int(rest * 256)
        rest = rest * 256 - digit
        drawn = words(-(-undecided.size // 8)).view(np.uint8)[: undecided.size]
        success[undecided[drawn < digit]] = True
        undecided = undecided[drawn == digit]
    return np.flatnonzero(success)


def discrete_laplace(words: Words, scales: list[Fraction]) -> list[int]:
    """Integers k with probability proportional to exp(-|k|/scale), exactly; 0 for scale 0.

    Canonne, Kamath, Steinke (2020), with Python integers only.
    """
    below = _uniform_below(words, len(scales))
    return [_one_laplace(below, s.numerator, s.denominator) if s else 0 for s in scales]


def _one_laplace(below: Below, numerator: int, denominator: int) -> int:
    while True:
        low = below(numerator)
        if not _bernoulli_exp(below, low, numerator):
            continue
        high = 0
        while _bernoulli_exp(below, 1, 1):
            high += 1
        # low + numerator·high is geometric with ratio exp(-1/numerator).
        size = (low + numerator * high) // denominator
        negative = below(2)
        if size or not negative:  # a negative 0 would count 0 twice
            return -size if negative else size


def _bernoulli_exp(below: Below, numerator: int, denominator: int) -> bool:
    """Bernoulli(exp(-γ)) for γ = numerator/denominator in [0, 1].

    The first k at which a Bernoulli(γ/k) fails is odd with probability 1 - γ + γ²/2 - … = exp(-γ).
    """
    k = 1
    while below(k * denominator) < numerator:
        k += 1
    return k % 2 == 1


def _uniform_below(words: Words, expected: int) -> Below:
    """Function that draws uniform integers in [0, bound): just enough bits, then rejection."""
    block = min(4096, 16 * max(1, expected))  # one draw takes about a dozen words
    pool: list[int] = []

    def below(bound: int) -> int:
        bits = (bound - 1).bit_length()
        while True:
            value, excess = 0, -bits
            while excess < 0:
                if not pool:
                    pool.extend(words(block).tolist())
                value = (value << _WORD_BITS) | pool.pop()
                excess += _WORD_BITS
            value >>= excess
            if value < bound:
                return value

    return below
