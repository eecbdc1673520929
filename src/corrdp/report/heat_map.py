"""A picture of how differently the levels of every column tell about the sensitive ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.distance.summary import level_distances
from corrdp.errors import ConfigurationError, MissingExtraError
from corrdp.files import write_bytes

__all__ = ["Panel", "draw_heat_map", "panel_of"]

FloatArray: TypeAlias = NDArray[np.float64]
COLUMNS, MOST_LABELS, LABEL = 3, 16, 14


@dataclass(frozen=True)
class Panel:
    """One column's matrix of distances between its levels.

    Attributes
    ----------
    name : str
    levels : tuple of str
    matrix : array of shape (levels, levels)
        Total variation in [0, 1].
    """

    name: str
    levels: tuple[str, ...]
    matrix: FloatArray


def panel_of(name: str, levels: Sequence[str], counts: NDArray[np.int64]) -> Panel:
    """From a table of counts, exact or as released, shape (strata, levels, cells)."""
    return Panel(name, tuple(levels), level_distances(counts.sum(axis=0)))


def draw_heat_map(panels: Sequence[Panel], path: Path, title: str) -> None:
    """Write a PNG or SVG file, one panel a column, dark where two levels tell most apart.

    Raises
    ------
    ConfigurationError
        If the file is neither .png nor .svg, or there is no column to draw.
    MissingExtraError
        If matplotlib is not installed.
    """
    kind = path.suffix.lower().lstrip(".")
    if kind not in ("png", "svg"):
        raise ConfigurationError(f"heat map {str(path)!r}: name it .png or .svg")
    if not panels:
        raise ConfigurationError("no column has a table: there is no heat map to draw")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(
            "the heat map needs matplotlib: pip install 'corrdp[report]'"
        ) from None
    rows = math.ceil(len(panels) / COLUMNS)
    figure = Figure(figsize=(4.0 * COLUMNS, 3.4 * rows + 0.4), layout="constrained")
    axes = np.atleast_1d(np.asarray(figure.subplots(rows, COLUMNS))).ravel()
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    images = []
    for axis, panel in zip(axes, panels, strict=False):
        images.append(axis.imshow(panel.matrix, vmin=0.0, vmax=1.0, cmap="Blues"))
        axis.set_title(_plain(panel.name, 30), fontsize=10)
        shown = len(panel.levels) <= MOST_LABELS
        places = range(len(panel.levels)) if shown else []
        labels = [_plain(level, LABEL) for level in panel.levels] if shown else []
        axis.set_xticks(list(places), labels, rotation=90, fontsize=6)
        axis.set_yticks(list(places), labels, fontsize=6)
    figure.colorbar(images[0], ax=list(axes), shrink=0.6, label="total variation")
    figure.suptitle(_plain(title, 100), fontsize=11)
    content = BytesIO()
    figure.savefig(content, format=kind, dpi=120)
    write_bytes(path, content.getvalue())


def _plain(text: str, width: int) -> str:
    """Printable, short, and without the signs that matplotlib reads as mathematics."""
    clean = "".join(c if c.isprintable() else "·" for c in text).replace("$", r"\$")
    return clean if len(clean) <= width else clean[: width - 1] + "…"
