"""A certificate as plain sentences and a table of at most 80 columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corrdp.privacy.certificate import Certificate

__all__ = ["certificate_text", "format_loss", "text_table"]


def format_loss(value: float | None) -> str:
    """An ε for people: rounded up to three digits, ``∞`` and ``–``."""
    if value is None:
        return "–"
    if math.isinf(value):
        return "∞"
    if value <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / unit * (1 - 1e-9)) * unit:.3g}"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns; the first is text, the others numbers."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = []
    for row in [header, *rows]:
        cells = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join(lines)


def summary_sentences(certificate: Certificate) -> list[str]:
    """What is protected how strongly, in plain sentences."""
    state = "HOLDS" if certificate.holds else "DOES NOT HOLD"
    delta = f"{certificate.delta:g}"
    joint = certificate.joint
    sentences = [
        f"This certificate {state}: corrdp on {certificate.n:,} records, "
        f"δ = {delta}, neighbouring relation: substitution of one record."
    ]
    if joint["sensitive"] is not None:
        sentences.append(
            "All sensitive columns together: a change of them in one record changes what can be "
            f"learned by at most ε = {format_loss(joint['sensitive'])}."
        )
    if joint["insensitive"] is not None:
        sentences.append(
            f"All insensitive columns at once: ε = {format_loss(joint['insensitive'])}."
        )
    public = any(column["role"] == "public" for column in certificate.columns)
    whole = "but its public columns" if public else "(ordinary differential privacy)"
    if joint["insensitive"] is None and public:
        sentences.append(
            "Nothing is said about the whole record: all but the sensitive columns is public."
        )
    else:
        sentences.append(f"The whole record {whole}: ε = {format_loss(joint['record'])}.")
    return sentences


def column_rows(certificate: Certificate) -> list[list[str]]:
    """Name, role, distance, source, target ε, ε that holds, belief shift in points."""
    rows = []
    for column in certificate.columns:
        rows.append(
            [
                _short(str(column["name"])),
                str(column["role"]),
                "–" if column["distance"] is None else f"{column['distance']:.3g}",
                str(column["distance_source"] or "–"),
                format_loss(column["epsilon_target"]),
                format_loss(column["epsilon_holds"]),
                _points(column),
            ]
        )
    return rows


def _short(name: str, width: int = 22) -> str:
    clean = "".join(c if c.isprintable() else "·" for c in name)
    return clean if len(clean) <= width else clean[: width - 1] + "…"


def _points(column: Mapping[str, Any]) -> str:
    shift = column["belief_shift"]
    return "–" if shift is None else f"{math.ceil(shift * 1000 - 1e-6) / 10:.1f}"


def certificate_text(certificate: Certificate) -> str:
    """Plain sentences, then the table, then what it assumes."""
    header = ["column", "role", "d", "source", "ε target", "ε holds", "belief±%"]
    parts = ["\n".join(_wrapped(s) for s in summary_sentences(certificate))]
    parts.append(text_table(header, column_rows(certificate)))
    parts.append(
        _wrapped(
            "belief±%: most that an observer who knows nothing else about the person can shift "
            "the belief in the sensitive values through this column, in percentage points; "
            "columns do not add up."
        )
    )
    parts.append("\n".join(_wrapped(f"· {s}", "  ") for s in certificate.assumptions))
    if certificate.problems:
        parts.append("\n".join(_wrapped(f"✗ {p}", "  ") for p in certificate.problems))
    return "\n\n".join(parts)


def _wrapped(sentence: str, indent: str = "") -> str:
    import textwrap

    return textwrap.fill(sentence, 80, subsequent_indent=indent)
