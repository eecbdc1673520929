"""The network: who enters where, and how its parameters stand in blocks (THEORY T12).

    a_1 = W_1ᵀφ_hidden,   h_l = σ(a_l),   a_{l+1} = W_{l+1}ᵀ(h_l, 1),
    t   = W_outᵀh_last + Θᵀφ_skip

φ_hidden holds the columns of the hidden path and the encoder's intercept (the first layer's
bias); φ_skip holds the columns of the linear skip and the intercept (the output's bias). Every
raw column's slice of W_1 or Θ is one block; each deeper layer is one block, bias row included;
trained output weights are one block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.encoding import INTERCEPT, Block, Encoder
from corrdp.errors import ConfigurationError
from corrdp.nn.activations import Activation, ActivationName, activation
from corrdp.noise import NoiseSource

__all__ = [
    "LATTICES",
    "Network",
    "NetworkLattice",
    "OutputWeights",
    "ParameterBlock",
    "SensitivePath",
]

FloatArray: TypeAlias = NDArray[np.float64]
SensitivePath: TypeAlias = Literal["skip", "hidden"]
OutputWeights: TypeAlias = Literal["fixed", "trained"]
OUTPUT = "<output>"


@dataclass(frozen=True)
class NetworkLattice:
    """The grid of a record's contribution, a product of three rounded factors (THEORY T14).

    Parameters
    ----------
    residual_bits, signal_bits, feature_bits : int
        Residuals are multiples of 2^-p, score gradients of 2^-s, encoded features and hidden
        values that are inputs of a later layer of 2^-q.
    """

    residual_bits: int = 7
    signal_bits: int = 8
    feature_bits: int = 7

    def __post_init__(self) -> None:
        for name in ("residual_bits", "signal_bits", "feature_bits"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 16:
                raise ConfigurationError(f"{name}={value!r} must be a whole number from 0 to 16")

    @property
    def spacing(self) -> float:
        """2^-(p+s+q), on which every block's sum lies."""
        return math.ldexp(1.0, -self.residual_bits - self.signal_bits - self.feature_bits)


# of options: squares stay finite, and parameters so in single precision
LARGEST = 1e30

# Finest first: a run takes the first whose sampler slack fits into the reserve.
LATTICES = tuple(
    NetworkLattice(*bits)
    for bits in [(7, 9, 8), (7, 8, 7), (6, 7, 7), (6, 6, 6), (5, 5, 5), (4, 4, 4)]
)


@dataclass(frozen=True)
class ParameterBlock:
    """One block of parameters that gets one noise scale.

    Attributes
    ----------
    name : str
        ``hidden:COLUMN``, ``layer:2`` …, ``<output>`` or ``skip:COLUMN``.
    path : {"hidden", "layer", "output", "skip"}
    column : Block or None
        The encoder's block behind a hidden or skip slice.
    start, size : int
        Its place in the flat parameter vector.
    """

    name: str
    path: Literal["hidden", "layer", "output", "skip"]
    column: Block | None
    start: int
    size: int


@dataclass(frozen=True)
class Network:
    """A feed-forward network on encoded records.

    Parameters
    ----------
    encoder : Encoder
        Its schema's roles decide what is sensitive.
    hidden : tuple of int
        Width of every hidden layer, at least one.
    activation : {"tanh", "sigmoid", "softplus", "relu"}
    outputs : int
        1 for two classes or a number, C > 2 for a softmax of C classes (2 is possible).
    sensitive_path : {"skip", "hidden"}
        Whether sensitive columns enter by a linear skip or through the hidden layers. Where every
        column is sensitive there is nothing to keep apart and all enter the hidden layers.
    output_weights : {"fixed", "trained"}
        Fixed: ±output_norm/√H with public signs, never updated.
    output_norm : float
        B of THEORY T12: the norm of each output's fixed (or initial) weights.
    initial_scale : float
        Standard deviation of the public random start of W_1.
    """

    encoder: Encoder
    hidden: tuple[int, ...] = (64,)
    activation: ActivationName = "tanh"
    outputs: int = 1
    sensitive_path: SensitivePath = "skip"
    output_weights: OutputWeights = "fixed"
    output_norm: float = 3.0
    initial_scale: float = 0.1
    hidden_columns: tuple[Block, ...] = field(init=False, repr=False, compare=False)
    skip_columns: tuple[Block, ...] = field(init=False, repr=False, compare=False)
    blocks: tuple[ParameterBlock, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check()
        schema = self.encoder.schema
        sensitive = set(schema.names("sensitive"))
        apart = self.sensitive_path == "skip" and sensitive != set(schema.used)
        skip = sensitive if apart else set()
        columns = self.encoder.blocks
        hidden_columns = tuple(block for block in columns if block.name not in skip)
        skip_columns = tuple(b for b in columns if b.name in skip or b.name == INTERCEPT)
        object.__setattr__(self, "hidden_columns", hidden_columns)
        object.__setattr__(self, "skip_columns", skip_columns)
        object.__setattr__(self, "blocks", tuple(self._layout()))

    def _check(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        widths_fit = all(type(width) is int and width >= 1 for width in self.hidden)
        if not self.hidden or not widths_fit:
            raise ConfigurationError(
                f"hidden={self.hidden!r} must list one or more widths, whole numbers >= 1"
            )
        activation(self.activation)
        if type(self.outputs) is not int or self.outputs < 1:
            raise ConfigurationError(f"outputs={self.outputs!r} must be a whole number >= 1")
        if self.sensitive_path not in ("skip", "hidden"):
            raise ConfigurationError(
                f"sensitive_path={self.sensitive_path!r} is unknown; use 'skip' or 'hidden'"
            )
        if self.output_weights not in ("fixed", "trained"):
            raise ConfigurationError(
                f"output_weights={self.output_weights!r} is unknown; use 'fixed' or 'trained'"
            )
        for name in ("output_norm", "initial_scale"):
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not (number and 1.0 / LARGEST <= value <= LARGEST):
                raise ConfigurationError(
                    f"{name}={value!r} must be a positive finite number, "
                    f"from {1.0 / LARGEST:g} to {LARGEST:g}"
                )

    def _layout(self) -> list[ParameterBlock]:
        blocks: list[ParameterBlock] = []
        start = 0

        def add(name: str, path: Any, column: Block | None, size: int) -> None:
            nonlocal start
            blocks.append(ParameterBlock(name, path, column, start, size))
            start += size

        for column in self.hidden_columns:
            add(f"hidden:{column.name}", "hidden", column, column.size * self.hidden[0])
        for number, (before, width) in enumerate(zip(self.hidden, self.hidden[1:]), start=2):
            add(f"layer:{number}", "layer", None, (before + 1) * width)
        if self.output_weights == "trained":
            add(OUTPUT, "output", None, self.hidden[-1] * self.outputs)
        for column in self.skip_columns:
            add(f"skip:{column.name}", "skip", column, column.size * self.outputs)
        return blocks

    @property
    def depth(self) -> int:
        """Number of hidden layers."""
        return len(self.hidden)

    @property
    def nonlinearity(self) -> Activation:
        """The activation with its bounds."""
        return activation(self.activation)

    @property
    def dimension(self) -> int:
        """Number of trained parameters."""
        last = self.blocks[-1]
        return last.start + last.size

    @property
    def dimensions(self) -> NDArray[np.int64]:
        """Parameters per block, n_j of THEORY T5."""
        return np.array([block.size for block in self.blocks])

    def spread(self, values: FloatArray) -> FloatArray:
        """One value per block repeated over its parameters."""
        return np.repeat(values, self.dimensions)

    def first_layer(self, parameters: FloatArray) -> FloatArray:
        """W_1, shape (hidden coordinates, first width); rows in the order of the columns."""
        end = sum(block.size for block in self.blocks if block.path == "hidden")
        return parameters[:end].reshape(-1, self.hidden[0])

    def deeper_layers(self, parameters: FloatArray) -> list[FloatArray]:
        """W_2 .., each of shape (width before + 1, width); the last row is the bias."""
        layers = [block for block in self.blocks if block.path == "layer"]
        return [
            parameters[block.start : block.start + block.size].reshape(-1, width)
            for block, width in zip(layers, self.hidden[1:], strict=True)
        ]

    def output_layer(self, parameters: FloatArray) -> FloatArray:
        """W_out, shape (last width, outputs), whether trained or fixed."""
        for block in self.blocks:
            if block.path == "output":
                values = parameters[block.start : block.start + block.size]
                return values.reshape(-1, self.outputs)
        return self.fixed_output

    def skip_layer(self, parameters: FloatArray) -> FloatArray:
        """Θ, shape (skip coordinates, outputs); the last row is the output's bias."""
        start = next(block.start for block in self.blocks if block.path == "skip")
        return parameters[start:].reshape(-1, self.outputs)

    @property
    def output_radius(self) -> float:
        """Frobenius norm that trained output weights are projected on: twice the start's."""
        return 2.0 * self.output_norm * math.sqrt(self.outputs)

    def project(self, parameters: FloatArray, skip_radius: float) -> FloatArray:
        """Output weights and skip weights back into their public balls, in place."""
        if self.output_weights == "trained":
            _shrink(self.output_layer(parameters), self.output_radius)
        _shrink(self.skip_layer(parameters), skip_radius)
        return parameters

    @property
    def fixed_output(self) -> FloatArray:
        """±B/√H: output c takes row 1 + c of a Walsh matrix, so its signs are balanced."""
        width = self.hidden[-1]
        patterns = max(1, 2 ** (width - 1).bit_length() - 1)
        masks = 1 + np.arange(self.outputs) % patterns
        parity = np.bitwise_count(np.arange(width)[:, None] & masks[None, :]) % 2
        size = self.output_norm / math.sqrt(width)
        result: FloatArray = size * (1.0 - 2.0 * parity)
        return result

    def initial(self, source: NoiseSource) -> FloatArray:
        """A start from public randomness: W_1 normal, deeper layers normal/√width, skip zero."""
        parameters = np.zeros(self.dimension)
        first = self.first_layer(parameters)
        first[:-1] = self.initial_scale * source.standard_normal(first[:-1].shape)
        for layer in self.deeper_layers(parameters):
            layer[:-1] = source.standard_normal(layer[:-1].shape) / math.sqrt(len(layer) - 1)
        if self.output_weights == "trained":
            self.output_layer(parameters)[:] = self.fixed_output
        return parameters

    def check_parameters(self, parameters: FloatArray) -> FloatArray:
        """The flat vector as float64; ConfigurationError for another shape or NaN."""
        flat = np.asarray(parameters, dtype=np.float64)
        if flat.shape != (self.dimension,) or not np.isfinite(flat).all():
            raise ConfigurationError(
                f"parameters must be {self.dimension} finite numbers, got shape {flat.shape}"
            )
        return flat

    def to_dict(self) -> dict[str, Any]:
        """Plain values besides the encoder."""
        return {
            "hidden": list(self.hidden),
            "activation": self.activation,
            "outputs": self.outputs,
            "sensitive_path": self.sensitive_path,
            "output_weights": self.output_weights,
            "output_norm": float(self.output_norm),
            "initial_scale": float(self.initial_scale),
        }


def _shrink(values: FloatArray, radius: float) -> None:
    """Project on the ball, with room for a later rounding to single precision."""
    limit = radius * (1.0 - 1e-6)
    norm = float(np.linalg.norm(values))
    if norm > limit:
        values *= limit / norm
