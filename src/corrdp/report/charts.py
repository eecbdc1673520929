"""Pictures as inline SVG: no script, no network, readable in print.

Drawn at the width of a phone, so that letters keep their size there. Every number in a picture
also stands in a table; a picture carries a text alternative.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from corrdp.report.names import short
from corrdp.report.summarise import format_loss

__all__ = ["accuracy_chart", "distance_chart", "loss_chart", "noise_chart"]

WIDTH, LABEL, ROW, TOP = 380, 132, 20, 8
PLOT = WIDTH - LABEL - 52
ROLE_COLOURS = {"sensitive": "#a3195b", "insensitive": "#1f6f8b", "public": "#777777"}
LINES = ("#1f6f8b", "#a3195b", "#c27c0e", "#4d7c2f", "#5b4b9a", "#777777")


def _svg(height: float, title: str, body: Sequence[str]) -> str:
    """One picture with its text alternative."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title>{''.join(body)}</svg>"
    )


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    extra = f' class="{style}"' if style else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{extra}>{escape(text)}</text>'


def _name(row: int, name: str) -> str:
    # an isolate keeps a right-to-left name from turning the letters around it
    shown = "\u2068" + short(name, 19) + "\u2069"
    return _text(LABEL - 6, TOP + row * ROW + 14, shown, "name", "end")


def _bar(row: int, width: float, colour: str) -> str:
    y = TOP + row * ROW + 4
    return (
        f'<rect x="{LABEL}" y="{y:g}" width="{max(width, 0.5):.1f}" height="12" fill="{colour}"/>'
    )


def _heat(value: float) -> str:
    """Light for 0, dark for 1."""
    light, dark = (233, 242, 245), (16, 74, 96)
    mixed = [round(a + (b - a) * value) for a, b in zip(light, dark, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def distance_chart(columns: Sequence[Mapping[str, Any]]) -> str:
    """Distance of every insensitive column, shaded by size, with its interval as a whisker."""
    rows = [column for column in columns if column["role"] == "insensitive"]
    if not rows:
        return ""
    body = []
    for i, row in enumerate(rows):
        d, y = float(row["distance"]), TOP + i * ROW
        body.append(_name(i, row["name"]))
        body.append(
            f'<rect x="{LABEL}" y="{y + 4}" width="{PLOT}" height="12" class="rail"/>'
            + _bar(i, PLOT * d, _heat(d))
        )
        if row["distance_interval"]:
            low, high = (LABEL + PLOT * float(limit) for limit in row["distance_interval"])
            body.append(
                f'<path d="M{low:.1f} {y + 10}H{high:.1f}M{low:.1f} {y + 6}v8M{high:.1f} {y + 6}v8"'
                ' class="whisker"/>'
            )
        body.append(_text(LABEL + PLOT + 6, y + 14, f"{d:.3g}"))
    return _svg(TOP + len(rows) * ROW + 4, "Distance of every insensitive column, 0 to 1", body)


def loss_chart(columns: Sequence[Mapping[str, Any]], joint: Sequence[Mapping[str, Any]]) -> str:
    """ε that holds per column and jointly, on a logarithmic scale; ∞ reaches the edge."""
    rows = [(c["name"], c["epsilon_holds"], ROLE_COLOURS[c["role"]]) for c in columns]
    rows += [(f"▸ {_JOINT[row['key']]}", row["epsilon"], "#333333") for row in joint]
    finite = [value for _, value, _ in rows if value is not None and 0 < value < math.inf]
    if not finite:
        return ""
    low, high = math.log10(min(finite)) - 0.3, math.log10(max(finite)) + 0.15
    body = []
    for i, (name, value, colour) in enumerate(rows):
        share = 0.0
        if value is not None and value > 0:
            share = 1.0 if math.isinf(value) else (math.log10(value) - low) / (high - low)
        body.append(_name(i, name))
        body.append(_bar(i, PLOT * share, colour if share < 1 else "url(#open)"))
        body.append(_text(LABEL + PLOT * share + 6, TOP + i * ROW + 14, format_loss(value)))
    hatch = (
        '<defs><pattern id="open" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="6" height="6" fill="#eeeeee"/>'
        '<rect width="2" height="6" fill="#999999"/></pattern></defs>'
    )
    title = "Loss that holds for every column and jointly, logarithmic scale"
    return _svg(TOP + len(rows) * ROW + 4, title, [hatch, *body])


_JOINT = {"sensitive": "all sensitive", "insensitive": "all insensitive", "record": "whole record"}


def noise_chart(noise: Sequence[Mapping[str, Any]]) -> str:
    """Noise of one step per column, in records."""
    if not noise:
        return ""
    largest = max(row["records"] for row in noise) or 1.0
    body = []
    for i, row in enumerate(noise):
        width = PLOT * row["records"] / largest
        body += [_name(i, row["name"]), _bar(i, width, "#1f6f8b")]
        body.append(_text(LABEL + width + 6, TOP + i * ROW + 14, f"{row['records']:.3g}"))
    return _svg(TOP + len(noise) * ROW + 4, "Noise of one step per column, in records", body)


def accuracy_chart(points: Sequence[Mapping[str, Any]]) -> str:
    """Accuracy against ε, one line per method; ε = ∞ as a dashed line across."""
    finite = [p for p in points if math.isfinite(p["epsilon"])]
    if not points:
        return ""
    values = [float(p["accuracy"]) for p in points]
    pad = 0.08 * (max(values) - min(values)) or 0.01
    low, high = min(values) - pad, max(values) + pad
    logs = [math.log10(p["epsilon"]) for p in finite] or [0.0]
    left, right, top, height = 44.0, WIDTH - 12.0, 10.0, 170.0
    span = (max(logs) - min(logs)) or 1.0

    def x(epsilon: float) -> float:
        share = (math.log10(epsilon) - min(logs)) / span
        return float(left + 8 + (right - left - 16) * share)

    def y(value: float) -> float:
        return top + height * (high - value) / (high - low)

    body = [f'<path d="M{left} {top}V{top + height}H{right}" class="axis"/>']
    for share in (0.0, 0.5, 1.0):
        value = low + share * (high - low)
        body.append(_text(left - 5, y(value) + 4, f"{value:.3f}", "", "end"))
    for epsilon in sorted({p["epsilon"] for p in finite}):
        body.append(_text(x(epsilon), top + height + 15, f"{epsilon:g}", "", "middle"))
    body.append(_text((left + right) / 2, top + height + 30, "ε", "", "middle"))
    foot = top + height + 46
    for i, method in enumerate(dict.fromkeys(p["method"] for p in points)):
        own = sorted((p for p in points if p["method"] == method), key=lambda p: p["epsilon"])
        colour = LINES[i % len(LINES)]
        body.append(_line(own, colour, x, y, left, right))
        mark = f'<rect x="{left}" y="{foot - 9}" width="12" height="9" fill="{colour}"/>'
        body += [mark, _text(left + 18, foot, "\u2068" + short(method, 44) + "\u2069")]
        foot += 17
    return _svg(foot, "Accuracy against epsilon", body)


def _line(
    points: Sequence[Mapping[str, Any]], colour: str, x: Any, y: Any, left: float, right: float
) -> str:
    parts = []
    finite = [p for p in points if math.isfinite(p["epsilon"])]
    if finite:
        spots = [(f"{x(p['epsilon']):.1f}", f"{y(p['accuracy']):.1f}") for p in finite]
        path = "L".join(f"{across} {up}" for across, up in spots)
        parts.append(f'<path d="M{path}" stroke="{colour}" class="line"/>')
        parts += [f'<circle cx="{a}" cy="{b}" r="3" fill="{colour}"/>' for a, b in spots]
    parts += [
        f'<path d="M{left} {y(p["accuracy"]):.1f}H{right}" stroke="{colour}" class="line dashed"/>'
        for p in points
        if math.isinf(p["epsilon"])
    ]
    return "".join(parts)
