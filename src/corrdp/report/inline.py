"""Short forms of a certificate for notebooks and text files; they need no extra."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from corrdp.report.names import visible
from corrdp.report.summarise import format_loss
from corrdp.report.summary import summarise, tiny

if TYPE_CHECKING:
    from corrdp.privacy.certificate import Certificate

__all__ = ["certificate_html", "certificate_markdown"]

HEADER = ("column", "role", "d", "source of d", "ε target", "ε holds", "belief shift (points)")
STATES = {
    "holds": "The certificate holds.",
    "not private": "NOT PRIVATE: the noise was seeded and can be subtracted.",
    "does not hold": "THE CERTIFICATE DOES NOT HOLD.",
}
SHIFT = (
    "Belief shift: the most that an observer who knows nothing else about the person can move the "
    "belief in the sensitive values through this column; columns do not add up."
)
# what Markdown could read as its own marks
_MARKS = "\\`*_[]<>|~&#"


def certificate_html(certificate: Certificate) -> str:
    """A fragment for notebooks: sentences and the table, all text escaped."""
    summary = summarise(certificate)
    sentences = [STATES[summary["state"]], *summary["problems"]]
    sentences += [*summary["protected"], *summary["unprotected"]]
    head = "".join(f"<th>{escape(cell)}</th>" for cell in HEADER)
    body = "".join(
        "<tr>" + "".join(f'<td><bdi dir="auto">{escape(c)}</bdi></td>' for c in row) + "</tr>"
        for row in _rows(summary)
    )
    text = "".join(f"<p>{escape(visible(sentence))}</p>" for sentence in sentences)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div>{text}{table}<p>{escape(SHIFT)}</p></div>"


def certificate_markdown(certificate: Certificate) -> str:
    """The certificate as GitHub-flavoured Markdown, all names escaped."""
    summary = summarise(certificate)
    parts = [
        f"**{STATES[summary['state']]}** {certificate.n:,} records, δ = {tiny(certificate.delta)}."
    ]
    parts += [_escaped(sentence) for sentence in summary["problems"]]
    parts += [_escaped(s) for s in (*summary["protected"], *summary["unprotected"])]
    lines = [_line(HEADER), _line(["---"] * len(HEADER))]
    lines += [_line([_escaped(cell) for cell in row]) for row in _rows(summary)]
    parts += ["\n".join(lines), SHIFT]
    parts.append("\n".join(f"* {_escaped(sentence)}" for sentence in summary["assumptions"]))
    return "\n\n".join(parts) + "\n"


def _rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """Every column, then the joint rows."""
    rows = []
    for column in summary["columns"]:
        shift, distance = column["belief_shift"], column["distance"]
        interval = column["distance_interval"]
        limits = "" if not interval else f" [{interval[0]:.3g}, {interval[1]:.3g}]"
        rows.append(
            [
                visible(column["name"]),
                column["role"],
                "–" if distance is None else f"{distance:.3g}{limits}",
                column["source"] or "–",
                format_loss(column["epsilon_target"]),
                format_loss(column["epsilon_holds"]),
                "–" if shift is None else f"{math.ceil(shift * 1000 - 1e-6) / 10:.1f}",
            ]
        )
    for row in summary["joint"]:
        rows.append([row["name"], "joint", "–", "–", "–", format_loss(row["epsilon"]), "–"])
    return rows


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in _MARKS else c for c in visible(text))
