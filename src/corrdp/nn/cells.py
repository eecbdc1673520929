"""Equal records added up: tables whose whole domain is small are trained on cell by cell.

Where every column is categorical or binned and the label has classes, a table is a vector of counts
over a public list of cells. Σ over records = Σ over cells of count · contribution, and the products
are as exact on a lattice as the sums (THEORY T14). Cells stand where the *domain* puts them, empty
ones too: their contributions then are the same numbers for every table, so that changing one record
moves two counts and nothing else. (Listing only the cells that occur would shift the others, and
matrix products may round differently at another place.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corrdp.encoding import Encoder
from corrdp.nn.gradients import Inputs
from corrdp.nn.network import Network
from corrdp.records import Records, bin_index, bin_middle
from corrdp.schema import Numeric, Schema

__all__ = ["Table", "collect", "inputs_of"]

# cells must be this many times fewer than records for the sums over cells to pay
FEWER = 2


@dataclass(frozen=True, repr=False)
class Table:
    """Records with how often each occurs.

    Attributes
    ----------
    records : Records
    label : array of shape (records.size,)
        As the loss takes it.
    cell : array of shape (n,), or None
        Row of every record of the table; None: each has its own.
    """

    records: Records
    label: NDArray[np.float64]
    cell: NDArray[np.int64] | None = None

    @property
    def counts(self) -> NDArray[np.int64] | None:
        """How often each row occurs; None: once."""
        return None if self.cell is None else np.bincount(self.cell, minlength=len(self.label))


def _sizes(schema: Schema) -> tuple[int, ...] | None:
    """Values of every used column and of the label, last; None where some are not finitely many."""
    sizes = []
    for column in schema.used.values():
        if isinstance(column, Numeric):
            if column.resolution != "binned":
                return None
            sizes.append(len(column.edges) - 1)
        else:
            sizes.append(column.domain_size)
    return None if schema.label.is_numeric else (*sizes, len(schema.label.names))


def collect(schema: Schema, records: Records, label: NDArray[np.float64]) -> Table:
    """The table by cells if its schema and its size, which are public, make that shorter.

    Parameters
    ----------
    schema : Schema
    records : Records
    label : array of shape (n,)
        Codes of classes, or the scaled number.
    """
    sizes = _sizes(schema)
    if sizes is None or math.prod(sizes) * FEWER > records.size:
        return Table(records, label)
    codes = [
        bin_index(records.columns[name], column)
        if isinstance(column, Numeric)
        else records.columns[name]
        for name, column in schema.used.items()
    ]
    total = math.prod(sizes)
    cell = np.ravel_multi_index((*codes, label.astype(np.int64)), sizes)
    *every, classes = np.unravel_index(np.arange(total), sizes)
    columns: dict[str, NDArray[Any]] = {
        name: bin_middle(column)[values] if isinstance(column, Numeric) else values
        for (name, column), values in zip(schema.used.items(), every, strict=True)
    }
    return Table(Records(columns, total), classes.astype(np.float64), cell)


def inputs_of(
    encoder: Encoder, network: Network, records: Records, label: NDArray[np.float64]
) -> tuple[Inputs, NDArray[np.float64]]:
    """Encoded inputs and their labels, by cells where that is shorter."""
    table = collect(encoder.schema, records, label)
    return Inputs.of(encoder.transform(table.records), network, cell=table.cell), table.label
