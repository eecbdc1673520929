"""Sentences about distances that a certificate must repeat (THEORY T2, T10)."""

from __future__ import annotations

from collections.abc import Sequence

from corrdp.distance.grid import TableSpec, numeric_column, public_columns
from corrdp.schema import Schema

__all__ = ["assumptions"]


def assumptions(schema: Schema, specs: Sequence[TableSpec]) -> tuple[str, ...]:
    """What the distances of these tables rest on besides the estimate itself."""
    if not specs:
        return ()
    sentences = []
    smooth = [spec.name for spec in specs if spec.resolution == "assume-smooth"]
    if smooth:
        sentences.append(
            f"Within the bins of {_listed(smooth)} the sensitive columns are assumed to have the "
            "same distribution; the model sees finer values than the distances were measured on."
        )
    binned = [n for n in specs[0].cells.columns if numeric_column(schema, n) is not None]
    if binned:
        sentences.append(
            f"{_listed(binned)} is counted as told only at the resolution of its declared bins."
        )
    public = public_columns(schema)
    blind = [spec.name for spec in specs if public and not spec.strata.columns]
    if blind:
        sentences.append(
            f"The distances of {_listed(blind)} do not suppose that the observer also knows the "
            f"public columns {_listed(public)}."
        )
    return tuple(sentences)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
