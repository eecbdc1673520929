"""What one record contributes to a training step: network, loss, clips and lattice together.

One hidden layer: the signal V·r that goes back into it, V = σ'(a) ⊙ W_out, is clipped to norm C.
Deeper nets: the score gradient of every layer is clipped, then multiplied by the residual
(THEORY T12). Trained output weights: the hidden values that meet the residual are clipped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.erm.losses import Loss
from corrdp.erm.sensitivity import FLOAT_MARGIN
from corrdp.errors import ConfigurationError
from corrdp.nn.network import Network, NetworkLattice
from corrdp.nn.residual import ResidualRule

__all__ = ["GradientQuery", "default_clips", "norm_bound"]

FloatArray: TypeAlias = NDArray[np.float64]
NUMBERS = (int, float, np.integer, np.floating)


def norm_bound(matrix: FloatArray) -> float:
    """An upper bound of the spectral norm: singular value or Frobenius norm, rounded up."""
    frobenius = float(np.sqrt(np.sum(matrix * matrix)))
    if min(matrix.shape) == 1 or not frobenius > 0:
        return frobenius * (1.0 + 1e-12)
    spectral = float(np.linalg.svd(matrix, compute_uv=False)[0]) + 1e-12 * frobenius
    return min(frobenius, spectral) * (1.0 + 1e-12)


def default_clips(network: Network) -> tuple[float, ...]:
    """B for every layer's signal or score gradient; √H for the values at trained output weights."""
    clips = (float(network.output_norm),) * network.depth
    if network.output_weights == "trained":
        clips = (*clips, math.sqrt(network.hidden[-1]))
    return clips


@dataclass(frozen=True)
class GradientQuery:
    """The sum over records of clipped, rounded gradient contributions.

    Parameters
    ----------
    network : Network
    loss : Loss
        Softmax for several outputs.
    class_weights : tuple of float, optional
        Public weight of each class.
    clips : tuple of float, optional
        One per hidden layer, first layer first, and one for trained output weights.
    lattice : NetworkLattice, optional
        Rounding of the factors; its ``feature_bits`` must be the encoder's. None: no rounding.

    Raises
    ------
    ConfigurationError
        For clips of another number or not positive, or a lattice that is not the encoder's.
    """

    network: Network
    loss: Loss
    class_weights: tuple[float, ...] | None = None
    clips: tuple[float, ...] = ()
    lattice: NetworkLattice | None = None
    rule: ResidualRule = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        defaults = default_clips(self.network)
        clips = tuple(self.clips) or defaults
        numbers = all(isinstance(c, NUMBERS) and c is not True for c in clips)
        fit = numbers and all(0 < clip < math.inf for clip in clips)
        if not fit or len(clips) != len(defaults):
            raise ConfigurationError(
                f"clips={self.clips} must be {len(defaults)} positive finite number(s): one per "
                "hidden layer, and one for trained output weights"
            )
        object.__setattr__(self, "clips", tuple(map(float, clips)))
        bits = self.network.encoder.feature_bits
        if self.lattice is not None and self.lattice.feature_bits != bits:
            raise ConfigurationError(
                f"the encoder rounds to {bits} bits, the lattice to {self.lattice.feature_bits}"
            )
        residual_bits = None if self.lattice is None else self.lattice.residual_bits
        outputs = self.network.outputs
        rule = ResidualRule(self.loss, outputs, self.class_weights, residual_bits)
        object.__setattr__(self, "class_weights", rule.class_weights)
        object.__setattr__(self, "rule", rule)

    @property
    def signal_step(self) -> float:
        """What truncation adds to the movement of one entry of a score gradient."""
        return 0.0 if self.lattice is None else 2.0**-self.lattice.signal_bits + FLOAT_MARGIN

    @property
    def value_step(self) -> float:
        """What truncation adds to the movement of one hidden value."""
        return 0.0 if self.lattice is None else 2.0**-self.lattice.feature_bits + FLOAT_MARGIN

    def truncate_signal(self, values: FloatArray) -> FloatArray:
        """Toward zero on 2^-s, in place: norms never grow."""
        if self.lattice is not None:
            _truncate(values, self.lattice.signal_bits)
        return values

    def truncate_value(self, values: FloatArray) -> FloatArray:
        """Toward zero on 2^-q, in place."""
        if self.lattice is not None:
            _truncate(values, self.lattice.feature_bits)
        return values

    def round_residual(self, values: FloatArray) -> FloatArray:
        """To the nearest multiple of 2^-p, in place."""
        if self.lattice is not None:
            values *= 2.0**self.lattice.residual_bits
            np.rint(values, out=values)
            values *= 2.0**-self.lattice.residual_bits
        return values

    def check_exact_sum(self, records: int) -> None:
        """Refuse a lattice on which the sums of this many records would not be exact."""
        if self.lattice is None:
            return
        network, rule = self.network, self.rule
        rounding = network.output_radius * rule.step if network.depth == 1 else 0.0
        largest = max(1.0, network.encoder.scale) * (
            rule.bound * max(1.0, *self.clips) + max(self.clips) + rounding
        )
        if not records * largest / self.lattice.spacing < 2.0**53:
            raise ConfigurationError(
                f"{records} records do not add up exactly on this lattice; take a smaller "
                "scale, class weights, output_norm or clips"
            )


def _truncate(values: FloatArray, bits: int) -> None:
    values *= 2.0**bits
    np.trunc(values, out=values)
    values *= 2.0**-bits
