"""Gradient sums over records, clipped per block, without a gradient per record (THEORY T12).

A record's contribution to a block is an outer product of its input and its signal, so its norm is
the product of two norms: clipping scales the signal, and the sum over records is one matrix
product. Records are processed in chunks whose bounds depend on positions alone; on a lattice every
product and every sum is exact, whatever the order (THEORY T14).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corrdp.encoding import Block, Design
from corrdp.nn.network import Network
from corrdp.nn.query import GradientQuery

__all__ = ["Chunk", "Inputs", "PathInputs", "gradient_sum", "scores"]

FloatArray: TypeAlias = NDArray[np.float64]
# a chunk's hidden values stay in the processor's cache
CHUNK = 2048


@dataclass(frozen=True, repr=False)
class PathInputs:
    """The columns of one path: dense numeric part (intercept last) and sparse one-hot part."""

    dense: FloatArray
    one_hot: sparse.csr_array
    transposed: sparse.csc_array
    dense_rows: NDArray[np.int64]
    one_hot_rows: NDArray[np.int64]

    @classmethod
    def of(cls, design: Design, columns: tuple[Block, ...]) -> PathInputs:
        """The part of a design that these columns make up."""
        encoder = design.encoder
        kinds = np.repeat([c.kind for c in columns], [c.size for c in columns])
        place = np.concatenate([np.arange(c.start, c.start + c.size) for c in columns])
        numeric = np.isin(encoder.numeric_index, place[kinds == "numeric"])
        one_hot = np.isin(encoder.one_hot_index, place[kinds == "one-hot"])
        intercept = np.full((design.size, 1), encoder.scale)
        part = sparse.csr_array(design.one_hot[:, np.flatnonzero(one_hot)])
        return cls(
            np.ascontiguousarray(np.hstack([design.numeric[:, numeric], intercept])),
            part,
            part.T,
            np.flatnonzero(kinds != "one-hot"),
            np.flatnonzero(kinds == "one-hot"),
        )

    def rows(self, start: int, stop: int) -> PathInputs:
        """Records start .. stop."""
        part = sparse.csr_array(self.one_hot[start:stop])
        dense = self.dense[start:stop]
        return PathInputs(dense, part, part.T, self.dense_rows, self.one_hot_rows)

    def apply(self, weights: FloatArray) -> FloatArray:
        """Inputs times weights, shape (n, columns of weights)."""
        result: FloatArray = self.dense @ weights[self.dense_rows]
        if self.one_hot_rows.size:
            result += self.one_hot @ weights[self.one_hot_rows]
        return result

    def add_sum(self, total: FloatArray, signal: FloatArray) -> None:
        """Add Σ_i input_i ⊗ signal_i to ``total``."""
        total[self.dense_rows] += self.dense.T @ signal
        if self.one_hot_rows.size:
            total[self.one_hot_rows] += self.transposed @ signal


@dataclass(frozen=True, repr=False)
class Chunk:
    """Consecutive records, split by path; ``counts`` says how often each occurs, None: once."""

    place: slice
    hidden: PathInputs
    skip: PathInputs
    counts: FloatArray | None = None

    def repeated(self, residual: FloatArray) -> FloatArray:
        """Rounded residuals, on which every sum depends linearly, times the counts."""
        return residual if self.counts is None else residual * self.counts[:, None]


@dataclass(frozen=True, repr=False)
class Inputs:
    """Encoded records in chunks whose bounds depend on positions alone.

    ``size`` is the number of records n, repeated ones counted as often as they occur; ``cell`` is
    the row in which every record stands where equal ones share a row, None: each has its own.
    """

    size: int
    chunks: tuple[Chunk, ...]
    cell: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        design: Design,
        network: Network,
        chunk: int = CHUNK,
        cell: NDArray[np.int64] | None = None,
    ) -> Inputs:
        """Split a design that the network's encoder made; ``cell``: the row of every record."""
        counts = None if cell is None else _occurrences(cell, design.size)
        hidden = PathInputs.of(design, network.hidden_columns)
        skip = PathInputs.of(design, network.skip_columns)
        bounds = [(i, min(i + chunk, design.size)) for i in range(0, design.size, chunk)]
        chunks = tuple(
            Chunk(
                slice(*b),
                hidden.rows(*b),
                skip.rows(*b),
                None if counts is None else counts[slice(*b)],
            )
            for b in bounds
        )
        return cls(design.size if cell is None else len(cell), chunks, cell)

    def sampled(self, index: NDArray[np.int64]) -> Inputs:
        """A batch: the records at these positions once each, all others not at all.

        Every row stays where it is and the others count zero times. Gathering the batch's rows
        would be enough for two tables that differ in a record's values, since the same coins give
        both the same rows. But the accountant also compares a sum with a record's contribution to
        the sum without it (THEORY T7), and without it every later row would stand one place
        earlier: a matrix product may then round another record's score differently, across the
        edge of a lattice cell, and the two sums would differ by more than one contribution. Rows
        that stay cost a pass over the table. Chunks that count nothing add exact zeros and are
        left out.
        """
        rows = index if self.cell is None else self.cell[index]
        counts = _occurrences(rows, self.chunks[-1].place.stop)
        chunks = tuple(
            replace(chunk, counts=counts[chunk.place])
            for chunk in self.chunks
            if counts[chunk.place].any()
        )
        return replace(self, chunks=chunks)


def _occurrences(rows: NDArray[np.int64], size: int) -> FloatArray:
    """How often each of ``size`` rows is named."""
    return np.bincount(rows, minlength=size).astype(np.float64)


@dataclass(frozen=True, repr=False)
class _Weights:
    """Matrices that view one flat vector."""

    first: FloatArray
    deeper: list[FloatArray]
    output: FloatArray
    skip: FloatArray

    @classmethod
    def of(cls, network: Network, flat: FloatArray) -> _Weights:
        return cls(
            network.first_layer(flat),
            network.deeper_layers(flat),
            network.output_layer(flat),
            network.skip_layer(flat),
        )


def _forward(network: Network, weights: _Weights, inputs: Chunk) -> list[FloatArray]:
    """Hidden values of every layer, then the scores of shape (n, outputs)."""
    value = network.nonlinearity.value
    layers = [value(inputs.hidden.apply(weights.first))]
    for layer in weights.deeper:
        layers.append(value(layers[-1] @ layer[:-1] + layer[-1]))
    score = layers[-1] @ weights.output
    score += inputs.skip.apply(weights.skip)
    return [*layers, score]


def scores(network: Network, parameters: FloatArray, inputs: Inputs) -> FloatArray:
    """Scores t of every record, shape (n, outputs)."""
    weights = _Weights.of(network, parameters)
    parts = [_forward(network, weights, chunk)[-1] for chunk in inputs.chunks]
    return np.concatenate(parts)


def gradient_sum(
    query: GradientQuery, parameters: FloatArray, inputs: Inputs, label: FloatArray
) -> FloatArray:
    """Σ over records of the contributions, a flat vector like ``parameters``.

    Parameters
    ----------
    query : GradientQuery
    parameters : array of shape (network.dimension,)
    inputs : Inputs
    label : array of shape (n,)
        Codes, or the scaled number.
    """
    network = query.network
    flat = np.zeros(network.dimension)
    weights, total = _Weights.of(network, parameters), _Weights.of(network, flat)
    for chunk in inputs.chunks:
        *layers, score = _forward(network, weights, chunk)
        residual = query.rule.residual(score, label[chunk.place])
        if network.depth == 1:
            _one_hidden_layer(query, weights, total, chunk, layers[0], residual)
        else:
            _deep(query, weights, total, chunk, layers, residual)
        _outer(query, total, chunk, layers[-1], residual)
    return flat


def _outer(
    query: GradientQuery,
    total: _Weights,
    inputs: Chunk,
    last: FloatArray,
    residual: FloatArray,
) -> None:
    """Skip slices, and trained output weights with their inputs clipped."""
    network = query.network
    rounded = inputs.repeated(query.round_residual(residual))
    inputs.skip.add_sum(total.skip, rounded)
    if network.output_weights == "trained":
        norm = np.sqrt(np.einsum("ij,ij->i", last, last))
        factor = query.clips[-1] / np.maximum(norm, query.clips[-1])
        value = query.truncate_value(last * factor[:, None])
        np.add(total.output, value.T @ rounded, out=total.output)


def _one_hidden_layer(
    query: GradientQuery,
    weights: _Weights,
    total: _Weights,
    inputs: Chunk,
    hidden: FloatArray,
    residual: FloatArray,
) -> None:
    """The first layer of a net with one: signal V·r̂, r̂ = round(r·min(1, C/‖V·r‖))."""
    network = query.network
    slope = network.nonlinearity.slope(hidden)
    if network.outputs == 1:
        slope *= weights.output[:, 0]
        gradients = [query.truncate_signal(slope)]
        norm = np.sqrt(np.einsum("ij,ij->i", slope, slope)) * np.abs(residual[:, 0])
    else:
        gradients = [query.truncate_signal(slope * column) for column in weights.output.T]
        signal = sum(g * residual[:, c, None] for c, g in enumerate(gradients))
        norm = np.sqrt(np.einsum("ij,ij->i", signal, signal))
    factor = query.clips[0] / np.maximum(norm, query.clips[0])
    scaled = inputs.repeated(query.round_residual(residual * factor[:, None]))
    signal = gradients[0]
    signal *= scaled[:, :1]
    for c in range(1, network.outputs):
        signal += gradients[c] * scaled[:, c, None]
    inputs.hidden.add_sum(total.first, signal)


def _deep(
    query: GradientQuery,
    weights: _Weights,
    total: _Weights,
    inputs: Chunk,
    layers: list[FloatArray],
    residual: FloatArray,
) -> None:
    """Every layer of a deeper net: clipped score gradients times the rounded residual."""
    network = query.network
    rounded = inputs.repeated(query.round_residual(residual.copy()))
    slope = network.nonlinearity.slope
    deeper, sums = weights.deeper, total.deeper
    gradients = [slope(layers[-1]) * column for column in weights.output.T]
    for number in range(network.depth - 1, 0, -1):
        below = query.truncate_value(layers[number - 1].copy())
        size = np.sqrt(1.0 + np.einsum("ij,ij->i", below, below))
        signal = _clipped_signal(query, gradients, rounded, query.clips[number], size)
        sums[number - 1][:-1] += below.T @ signal
        sums[number - 1][-1] += signal.sum(axis=0)
        slopes = slope(layers[number - 1])
        gradients = [slopes * (one @ deeper[number - 1][:-1].T) for one in gradients]
    signal = _clipped_signal(query, gradients, rounded, query.clips[0], 1.0)
    inputs.hidden.add_sum(total.first, signal)


def _clipped_signal(
    query: GradientQuery,
    gradients: list[FloatArray],
    residual: FloatArray,
    clip: float,
    input_norm: FloatArray | float,
) -> FloatArray:
    """Σ_c r_c·trunc(min(1, C/(‖V‖_F·input norm))·V_c), shape (n, width)."""
    norm = np.sqrt(sum(np.einsum("ij,ij->i", one, one) for one in gradients)) * input_norm
    factor = (clip / np.maximum(norm, clip))[:, None]
    signal: FloatArray = np.zeros_like(gradients[0])
    for c, one in enumerate(gradients):
        signal += query.truncate_signal(one * factor) * residual[:, c, None]
    return signal
