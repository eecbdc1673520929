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

#: Above this standard deviation (in cells) the noise is drawn in two layers.
TWO_LAYERS = 2.0**16
#: Standard deviation of the fine layer in coarse cells: aliasing is below exp(-2 pi^2 4^2).
FINE_FACTOR = 4.0
#: Largest standard deviation (in cells): 38.5 of them, the sampler's end, stay below 2^53.
LARGEST_SCALE = 2.0**47
#: Largest discrete Laplace scale (in cells): 2^53 is exceeded with probability exp(-1024).
LARGEST_LAPLACE_SCALE = 2.0**43

_SHORT = 2.0**54
_WORD_BITS = 64
_LONGEST = 18 * _WORD_BITS  # more leading zeros than the smallest double has
_SMALLEST = math.ulp(0.0)


def operating_system_words(count: int) -> NDArray[np.uint64]:
    """``count`` words of operating-system entropy, drawn now: no state survives the call."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def signed_half_uniform(words: Words, count: int) -> Float:
    """``count`` numbers: a fair sign times a uniform on (0, 1/2] with 53 relative bits."""
    odd = (words(count) | np.uint64(1)).view(np.int64)
    value = odd.astype(np.float64)
    short = np.flatnonzero(np.abs(value) <= _SHORT)
    value *= 2.0**-_WORD_BITS
    for i in short:
        value[i] = math.copysign(_lengthened(words, abs(int(odd[i])) >> 1), value[i])
    return value


def _lengthened(words: Words, prefix: int) -> float:
    """A uniform on (0, 1/2] whose first 62 bits are ``prefix``, rounded to the nearest double."""
    exponent = -_WORD_BITS
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
    if not fine.any():
        return _one_layer(words, scale)
    noise = np.empty_like(scale)
    noise[fine] = _two_layers(words, scale[fine])
    noise[~fine] = _one_layer(words, scale[~fine])
    return noise


def _one_layer(words: Words, scale: Float) -> Float:
    # + 0.0 turns -0.0 into 0.0: the sign of a rounded-away noise must not survive.
    rounded: Float = np.rint(scale * standard_normal(words, scale.size)) + 0.0
    return rounded


def _two_layers(words: Words, scale: Float) -> Float:
    """Coarse noise on multiples of 2^b plus fine noise of standard deviation 4·2^b."""
    step = np.exp2(np.rint(np.log2(scale) / 2.0) - 1.0)
    fine = FINE_FACTOR * step
    # The last factor outweighs the rounding before it: the total is never below ``scale``.
    coarse = np.sqrt(scale * scale - fine * fine) / step * (1.0 + 2.0**-50)
    total: Float = step * _one_layer(words, coarse) + _one_layer(words, fine)
    return total + 0.0


def bernoulli(words: Words, probability: float, count: int) -> Int:
    """Sorted indices of the successes among ``count`` independent trials, exactly.

    A uniform is compared with ``probability`` byte by byte, as far as the comparison is open.
    """
    chosen = []
    open_ = np.arange(count, dtype=np.int64)
    rest = Fraction(probability)
    if rest >= 1:
        return open_
    while rest and open_.size:
        digit = int(rest * 256)
        rest = rest * 256 - digit
        drawn = words(-(-open_.size // 8)).view(np.uint8)[: open_.size]
        chosen.append(open_[drawn < digit])
        open_ = open_[drawn == digit]
    return np.sort(np.concatenate(chosen)) if chosen else open_[:0]


def discrete_laplace(words: Words, numerator: Int, denominator: Int) -> Int:
    """Integers k with probability ∝ exp(-|k|·denominator/numerator), exactly.

    Canonne, Kamath, Steinke (2020), with integers only; both arguments one-dimensional, at least
    1 and below 2^53. A value overflows with probability below exp(-1000), that is never.
    """
    result = np.zeros(numerator.size, dtype=np.int64)
    todo = np.arange(numerator.size)
    while todo.size:
        top = numerator[todo]
        low = _below(words, top)
        kept = _bernoulli_exp(words, low, top)
        size = (low + top * _geometric(words, todo.size)) // denominator[todo]
        negative = _below(words, np.full(todo.size, 2)) == 1
        kept &= ~(negative & (size == 0))  # else 0 would be counted twice
        result[todo[kept]] = np.where(negative, -size, size)[kept]
        todo = todo[~kept]
    return result


def _geometric(words: Words, count: int) -> Int:
    """How many Bernoulli(1/e) succeed before the first failure."""
    runs = np.zeros(count, dtype=np.int64)
    running = np.arange(count)
    while running.size:
        one = np.ones(running.size, dtype=np.int64)
        running = running[_bernoulli_exp(words, one, one)]
        runs[running] += 1
    return runs


def _bernoulli_exp(words: Words, numerator: Int, denominator: Int) -> NDArray[np.bool_]:
    """Bernoulli(exp(-γ)) for γ = numerator/denominator in [0, 1].

    The first k at which a Bernoulli(γ/k) fails is odd with probability 1 - γ + γ²/2 - … = exp(-γ).
    """
    success = np.zeros(numerator.size, dtype=np.bool_)
    running = np.arange(numerator.size)
    k = 1
    while running.size:
        goes_on = _below(words, denominator[running]) < numerator[running]
        goes_on &= _below(words, np.full(running.size, k)) == 0
        success[running[~goes_on]] = k % 2 == 1
        running = running[goes_on]
        k += 1
    return success


def _below(words: Words, bound: Int) -> Int:
    """Uniform integers in [0, bound), 1 ≤ bound ≤ 2^53: as many bits as needed, then rejection."""
    bits = np.frexp((bound - 1).astype(np.float64))[1].astype(np.int64)
    value = np.zeros(bound.size, dtype=np.int64)
    todo = np.flatnonzero(bits)
    while todo.size:
        shift = (63 - bits[todo]).astype(np.uint64)
        drawn = ((words(todo.size) >> np.uint64(1)) >> shift).astype(np.int64)
        value[todo] = drawn
        todo = todo[drawn >= bound[todo]]
    return value
