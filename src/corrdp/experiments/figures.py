"""Pictures of an experiment: the main metric against ε with 95 % intervals, as PNG and SVG."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

from corrdp.errors import MissingExtraError
from corrdp.experiments.experiment import Experiment
from corrdp.experiments.results import Results
from corrdp.experiments.settings import short

__all__ = ["draw", "figure_name"]

COLOURS = {
    "DP": "#a61b1b",
    "DP, one scale": "#e58a6f",
    "semi": "#4d7c2f",
    "d = 1 per column": "#c27c0e",
    "CorrDP given": "#1f6f8b",
    "CorrDP UCB": "#5b4b9a",
    "CorrDP private": "#0d3b66",
    "published, given": "#d1479b",
    "published, UCB": "#777777",
    "non-private": "#111111",
    "partial": "#999999",
}
LINES = {"non-private": "--", "partial": ":"}
LOGARITHMIC = ("excess risk",)
# the means are shown with this margin; the interval of a drowned run may leave the picture
MARGIN = 0.08
APART = 1.025


def figure_name(table: tuple[str, str]) -> str:
    """File name without its ending."""
    return "-".join(table).replace(" ", "-").replace(",", "-").replace("=", "-")


def draw(experiment: Experiment, results: Results, table: tuple[str, str]) -> dict[str, bytes]:
    """One table as a picture: bytes of a PNG and of an SVG file.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("figures need matplotlib: pip install 'corrdp[report]'") from None
    with rc_context({"svg.hashsalt": "corrdp", "svg.fonttype": "path", "font.size": 10}):
        figure = Figure(figsize=(7.0, 4.4), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        limits = _lines(axes, experiment, results, table)
        axes.set_xlabel(f"ε of the sensitive columns (δ = {short(results.delta)})")
        _labels(axes, experiment, table, limits)
        return {kind: _bytes(figure.savefig, kind) for kind in ("png", "svg")}


def _bytes(save: Callable[..., Any], kind: str) -> bytes:
    content = io.BytesIO()
    # no date and no maker: the same results give the same file
    left_out = ("Date", "Creator", "Format", "Type") if kind == "svg" else ("Software",)
    metadata = dict.fromkeys(left_out)
    save(content, format=kind, dpi=150, metadata=metadata)
    return content.getvalue()


def _lines(
    axes: Any, experiment: Experiment, results: Results, table: tuple[str, str]
) -> list[float]:
    """Draw every method, side by side at an ε; returns the means that the axis must show."""
    grid, shown = results.epsilons(table), []
    methods = [method for method in results.methods(table) if method in COLOURS]
    for position, method in enumerate(methods):
        found = [results.estimate(table, method, e, experiment.metric) for e in grid]
        points = [(e, one) for e, one in zip(grid, found) if _drawable(one.mean, experiment)]
        if not points:
            continue
        means, colour = [one.mean for _, one in points], COLOURS[method]
        shown += means
        if method in LINES:
            across = [e for e, _ in points]
            axes.plot(across, means, LINES[method], color=colour, label=method, lw=1.2)
            continue
        shift = APART ** (position - len(methods) / 2.0)
        across = [e * shift for e, _ in points]
        half = [0.0 if math.isnan(one.half) else one.half for _, one in points]
        axes.errorbar(
            across, means, yerr=half, marker="o", ms=3.2, capsize=1.8, color=colour,
            label=method, lw=1.1, elinewidth=0.9,
        )  # fmt: skip
    return shown


def _drawable(value: float, experiment: Experiment) -> bool:
    return math.isfinite(value) and (value > 0 or experiment.metric not in LOGARITHMIC)


def _labels(axes: Any, experiment: Experiment, table: tuple[str, str], shown: list[float]) -> None:
    axes.set_xscale("log")
    axes.set_ylabel(f"{experiment.metric} ({experiment.better} is better)")
    axes.set_title(f"{table[0]}, {table[1]} label: mean and 95 % interval", fontsize=10)
    if shown:
        low, high = min(shown), max(shown)
        if experiment.metric in LOGARITHMIC:
            axes.set_yscale("log")
            axes.set_ylim(low / 1.5, high * 1.5)
        else:
            room = MARGIN * (high - low) or MARGIN * max(abs(high), 1e-9)
            axes.set_ylim(low - room, high + room)
        axes.legend(fontsize=7.5, ncols=2, frameon=False)
    axes.grid(alpha=0.25, lw=0.6)
