"""The sharp edges that apply to one run, in the words of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["sharp_edges"]

Edge = tuple[str, str]


def sharp_edges(summary: Mapping[str, Any]) -> list[dict[str, str]]:
    """Warnings about this run, the gravest first: mappings with ``title`` and ``text``."""
    edges = [*_about_the_run(summary), *_about_distances(summary), *_always(summary)]
    return [{"title": title, "text": text} for title, text in edges]


def _about_the_run(summary: Mapping[str, Any]) -> list[Edge]:
    claims, edges = summary["claims"], []
    if claims["seeded"]:
        edges.append(
            (
                "The run was seeded",
                "Whoever knows the seed subtracts the noise. Train again without a seed before "
                "anything leaves the house.",
            )
        )
    rows = claims["records_per_person"]
    owned = "one record" if rows == 1 else f"at most {rows} records"
    edges.append(
        (
            "One person, many rows",
            f"Every number supposes that a person owns {owned}. A person with more is protected "
            "less: k times the rows is up to k times the loss.",
        )
    )
    if any(c["is_label"] and c["role"] == "sensitive" for c in summary["columns"]):
        edges.append(
            (
                "The label is sensitive",
                "This costs nearly all the accuracy that distances can gain, and columns that "
                "predict the label then count as correlated with the sensitive ones.",
            )
        )
    return edges


def _about_distances(summary: Mapping[str, Any]) -> list[Edge]:
    columns, claims, edges = summary["columns"], summary["claims"], []
    sources = {column["distance_source"] for column in columns}
    uses = any(c["role"] == "insensitive" and c["distance"] < 1 for c in columns)
    if uses:
        edges.append(
            (
                "A distance is a statement about the population",
                "It says how much a column tells about the sensitive ones among all people, not "
                "in this file. If it is too small, that column is protected less than it should "
                "be.",
            )
        )
    if "published" in sources:
        edges.append(
            (
                "Distances were read from the private table",
                "Their own leak is not accounted for in any number of this report.",
            )
        )
    if claims["confidence"] is not None:
        edges.append(
            (
                "Estimated distances can miss",
                f"With confidence {claims['confidence']:.3g} every true distance lies below the "
                "one that was used. The loss that holds is stated for the distance that was used.",
            )
        )
    if any(c["role"] == "insensitive" and c["distance"] == 0 for c in columns):
        edges.append(
            (
                "Columns at distance 0",
                "They are protected only as far as the noise for others happens to hide them. "
                "A cap (epsilon_cap) gives them a limit of their own.",
            )
        )
    if sum(c["role"] == "insensitive" for c in columns) > 1 and claims["adjacency"] == "feature":
        edges.append(
            (
                "Columns do not add up",
                "A loss per column holds for a change of that column alone. Columns that tell "
                "little one by one may tell much together: read the joint rows.",
            )
        )
    return edges


def _always(summary: Mapping[str, Any]) -> list[Edge]:
    edges = [
        (
            "Bounds and level lists are public",
            "They are printed below and shape the model. Had they been learned from the table, "
            "they would be a leak of their own.",
        ),
        (
            "Looking is spending",
            "Choosing columns, roles or settings by looking at results from this table is not in "
            "any number here, and neither are figures measured on its records.",
        ),
        (
            "Substitution, not removal",
            "Neighbouring tables replace one record. Numbers of systems that add or remove a "
            "record are smaller for the same protection: replacing is one removal and one "
            "addition.",
        ),
        (
            "What verifying proves",
            "That the numbers follow from what was released. Not that the run took place as "
            "written.",
        ),
    ]
    if summary["metrics"] or summary["comparison"]:
        edges.insert(
            0,
            (
                "Accuracy figures are not private",
                "They were computed straight from records and are a release of their own.",
            ),
        )
    return edges
