"""From checked columns to a design matrix in blocks, one block per raw column.

The encoder is a public function of the schema: it never looks at data, so encoding costs no
privacy. Features lie on a public lattice when ``feature_bits`` is given (THEORY T14).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corrdp.errors import ConfigurationError
from corrdp.records import Records, bin_index, bin_middle
from corrdp.schema import Categorical, Numeric, Schema

__all__ = ["INTERCEPT", "Block", "Design", "Encoder"]

FloatArray: TypeAlias = NDArray[np.float64]
INTERCEPT = "<intercept>"
LARGEST_SCALE = 2.0**40


@dataclass(frozen=True)
class Block:
    """One raw column's coordinates in the design.

    Attributes
    ----------
    name : str
        Column name, or ``<intercept>``.
    kind : {"numeric", "one-hot", "intercept"}
    start, size : int
        Coordinates ``start .. start + size``.
    radius : float
        Bound on the block's norm, R_j of THEORY T6.
    diameter : float
        Bound on the distance between two values of the block, D_j of THEORY T6.
    """

    name: str
    kind: Literal["numeric", "one-hot", "intercept"]
    start: int
    size: int
    radius: float
    diameter: float


@dataclass(frozen=True, repr=False)
class Design:
    """The encoded records: dense numeric columns and a sparse one-hot part.

    Attributes
    ----------
    numeric : array of shape (n, numeric blocks)
    one_hot : CSR array of shape (n, one-hot coordinates)
    encoder : Encoder
    """

    numeric: FloatArray
    one_hot: sparse.csr_array
    one_hot_transposed: sparse.csr_array
    encoder: Encoder

    def __repr__(self) -> str:
        return f"Design(records={self.size}, features={self.encoder.dimension})"

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self.numeric.shape[0])

    def scores(self, theta: FloatArray) -> FloatArray:
        """θᵀφ of every record, shape (n,)."""
        encoder = self.encoder
        score: FloatArray = self.numeric @ theta[encoder.numeric_index]
        if encoder.one_hot_index.size:
            score += self.one_hot @ theta[encoder.one_hot_index]
        score += theta[-1] * encoder.scale
        return score

    def scores_apart(self, theta: FloatArray) -> FloatArray:
        """The same as ``scores``, to the last bit alike wherever a record stands.

        A matrix product may round a row otherwise at another place. Where it matters what a sum
        is without one record (THEORY T7), every column is added by itself instead.
        """
        encoder = self.encoder
        score = np.full(self.size, theta[-1] * encoder.scale)
        for values, weight in zip(self.numeric.T, theta[encoder.numeric_index], strict=True):
            score += values * weight
        if encoder.one_hot_index.size:
            score += self.one_hot @ theta[encoder.one_hot_index]
        return score

    def weighted_sum(self, residual: FloatArray) -> FloatArray:
        """Σ_i r_i φ_i over the records, shape (m,)."""
        encoder = self.encoder
        total = np.empty(encoder.dimension)
        total[encoder.numeric_index] = residual @ self.numeric
        if encoder.one_hot_index.size:
            total[encoder.one_hot_index] = self.one_hot_transposed @ residual
        total[-1] = residual.sum() * encoder.scale
        return total

    def rows(self, index: NDArray[np.int64]) -> Design:
        """The design of some records."""
        part = self.one_hot[index]
        return Design(self.numeric[index], part, sparse.csr_array(part.T), self.encoder)


@dataclass(frozen=True)
class Encoder:
    """Records → blocks: numeric to [−scale, scale], one-hot × scale, intercept × scale.

    Parameters
    ----------
    schema : Schema
    scale : float
        h of THEORY T6; rounded down to the lattice when ``feature_bits`` is given.
    feature_bits : int, optional
        q of THEORY T14: features are multiples of 2^-q.

    Examples
    --------
    >>> from corrdp.schema import Schema, Numeric, Categorical, Label
    >>> schema = Schema({"x": Numeric(0, 1), "c": Categorical(["a", "b"])}, Label("y", [0, 1]))
    >>> [(block.name, block.size) for block in Encoder(schema).blocks]
    [('x', 1), ('c', 2), ('<intercept>', 1)]
    """

    schema: Schema
    scale: float = 1.0
    feature_bits: int | None = None
    blocks: tuple[Block, ...] = field(init=False, repr=False, compare=False)
    numeric_index: NDArray[np.int64] = field(init=False, repr=False, compare=False)
    one_hot_index: NDArray[np.int64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        number = isinstance(self.scale, (int, float)) and not isinstance(self.scale, bool)
        if not (number and 0 < self.scale <= LARGEST_SCALE):
            raise ConfigurationError(
                f"scale={self.scale!r} must be a positive number, at most {LARGEST_SCALE:g}"
            )
        if self.feature_bits is not None:
            step = 2.0**-self.feature_bits
            lattice_scale = math.floor(self.scale / step) * step
            if lattice_scale <= 0:
                raise ConfigurationError(
                    f"scale={self.scale:g} vanishes on a lattice of {self.feature_bits} bits; "
                    f"pass {step:g} or more"
                )
            object.__setattr__(self, "scale", lattice_scale)
        blocks = _blocks(self.schema, float(self.scale))
        object.__setattr__(self, "blocks", blocks)
        object.__setattr__(self, "numeric_index", _coordinates(blocks, "numeric"))
        object.__setattr__(self, "one_hot_index", _coordinates(blocks, "one-hot"))

    @property
    def dimension(self) -> int:
        """Number of coordinates m, the intercept included."""
        return self.blocks[-1].start + 1

    @property
    def dimensions(self) -> NDArray[np.int64]:
        """Coordinates per block, n_j of THEORY T5."""
        return np.array([block.size for block in self.blocks])

    @property
    def norm_bound(self) -> float:
        """√ΣR_j², the largest norm of an encoded record."""
        return math.sqrt(sum(block.radius**2 for block in self.blocks))

    def feature_names_out(self) -> tuple[str, ...]:
        """A name per coordinate; the intercept's is ``<intercept>``."""
        names: list[str] = []
        for block in self.blocks:
            column = self.schema.used.get(block.name)
            if isinstance(column, Categorical):
                names.extend(f"{block.name}={level}" for level in column.names)
            else:
                names.append(block.name)
        return tuple(names)

    def spread(self, values: FloatArray) -> FloatArray:
        """One value per block repeated over its coordinates."""
        return np.repeat(values, self.dimensions)

    def transform(self, records: Records) -> Design:
        """Encode checked records; a data-free, public map applied to each record alone."""
        used = self.schema.used
        numeric = [
            self._numeric(records.columns[name], column)
            for name, column in used.items()
            if isinstance(column, Numeric)
        ]
        dense = np.column_stack(numeric) if numeric else np.empty((records.size, 0))
        codes = [records.columns[n] for n, c in used.items() if isinstance(c, Categorical)]
        sizes = [c.domain_size for c in used.values() if isinstance(c, Categorical)]
        one_hot = _one_hot(codes, sizes, records.size, self.scale)
        transposed = sparse.csr_array(one_hot.T)
        return Design(np.ascontiguousarray(dense), one_hot, transposed, self)

    def _numeric(self, values: FloatArray, column: Numeric) -> FloatArray:
        if column.resolution == "binned":
            values = bin_middle(column)[bin_index(values, column)]
        unit = 2.0 * (values - column.low) / (column.high - column.low) - 1.0
        scaled: FloatArray = self.scale * np.clip(unit, -1.0, 1.0)
        if self.feature_bits is not None:
            scaled = np.rint(scaled * 2.0**self.feature_bits) * 2.0**-self.feature_bits
        return scaled


def _blocks(schema: Schema, scale: float) -> tuple[Block, ...]:
    blocks: list[Block] = []
    start = 0
    for name, column in schema.used.items():
        if isinstance(column, Numeric):
            blocks.append(Block(name, "numeric", start, 1, scale, 2.0 * scale))
        else:
            size = column.domain_size
            blocks.append(Block(name, "one-hot", start, size, scale, math.sqrt(2.0) * scale))
        start += blocks[-1].size
    blocks.append(Block(INTERCEPT, "intercept", start, 1, scale, 0.0))
    return tuple(blocks)


def _coordinates(blocks: tuple[Block, ...], kind: str) -> NDArray[np.int64]:
    parts = [np.arange(b.start, b.start + b.size) for b in blocks if b.kind == kind]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _one_hot(
    codes: list[NDArray[np.int64]], sizes: list[int], records: int, scale: float
) -> sparse.csr_array:
    """CSR with one entry per record and categorical column."""
    if not codes:
        return sparse.csr_array((records, 0))
    offsets = np.cumsum([0, *sizes[:-1]])
    columns = np.column_stack([code + offset for code, offset in zip(codes, offsets)])
    pointers = np.arange(records + 1, dtype=np.int32) * len(codes)
    values = np.full(columns.size, scale)
    shape = (records, int(sum(sizes)))
    return sparse.csr_array((values, columns.ravel().astype(np.int32), pointers), shape=shape)
