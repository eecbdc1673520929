"""Judgements that several data sets share."""

from __future__ import annotations

from collections.abc import Sequence

from corrdp.experiments.claims import (
    Claim,
    Question,
    ahead,
    listed,
    mean_of,
    share_of_way,
    undecided,
    verdict,
)
from corrdp.experiments.results import Results, estimate

__all__ = ["close_to_semi", "estimated_distances", "published_rule"]

CLOSE = 0.8


def close_to_semi(
    letter: str,
    claim: str,
    question: Question,
    further: Sequence[Question],
    why: str,
    method: str = "CorrDP given",
) -> Claim:
    """Judge "close to semi, ahead of DP" on one table; further tables are only reported.

    Close: at least 80 % of the way from DP to semi at every ε at which semi itself is ahead of DP.
    Where it is nowhere ahead there is nothing to reproduce, or too few seeds to tell.
    """
    if not question.has("DP", "semi", method):
        return Claim(letter, claim, "not run", ())
    can, won = ahead(question, "semi", "DP"), ahead(question, method, "DP")
    shares = {e: s for e, s in share_of_way(question, method).items() if e in can}
    parts = (bool(can) and set(can) <= set(won), bool(can) and min(shares.values()) >= CLOSE)
    asked = [one for one in (question, *further) if one.has("DP", "semi", method)]
    figures = tuple(text for one in asked for text in _compared(one, method))
    figures += published_rule(question)
    found = "undecided" if undecided(question, "semi", "DP") else verdict(*parts)
    return Claim(letter, claim, found, figures, why)


def _compared(question: Question, method: str) -> tuple[str, str]:
    can, won = ahead(question, "semi", "DP"), ahead(question, method, "DP")
    shares = {e: s for e, s in share_of_way(question, method).items() if e in can}
    return (
        mean_of(question, ("DP", method, "semi")),
        f"{', '.join(question.table)} label: semi ahead of DP at ε = {listed(can)}; {method} ahead "
        f"of DP at ε = {listed(won)}; share of the way from DP to semi: "
        f"{listed(shares) if shares else 'nothing that could be told from noise'}.",
    )


def published_rule(question: Question) -> tuple[str, ...]:
    """What the paper's own fixed noise does in a table, and how often it certifies."""
    figures = []
    for name in ("published, given", "published, UCB"):
        if not question.has("DP", "DP, one scale", name):
            continue
        holds = {
            e: question.results.estimate(question.table, name, e, "holds").mean
            for e in question.epsilons
        }
        figures.append(
            f"The paper's fixed noise ({name}): ahead of DP with one scale at ε = "
            f"{listed(ahead(question, name, 'DP, one scale'))}, of DP with least noise at ε = "
            f"{listed(ahead(question, name, 'DP'))}; share of runs whose certificate holds: "
            f"{listed(holds)}."
        )
    return tuple(figures)


def estimated_distances(results: Results, question: Question, why: str) -> Claim:
    """Judge claim (g) on one table: every certificate holds, and the gain over DP stays."""
    claim = "Estimating the distances keeps privacy and utility."
    name = "CorrDP private"
    if not question.has("DP", "semi", "CorrDP given", name):
        return Claim("g", claim, "not run", ())
    held = [
        row.value
        for row in results.rows
        if (row.dataset, row.method, row.metric) == (question.table[0], name, "holds")
    ]
    holds = estimate(held)
    can, won = ahead(question, "CorrDP given", "DP"), ahead(question, name, "DP")
    cost = {e: -question.gain(name, "CorrDP given", e)[0] for e in question.epsilons}
    figures: tuple[str, ...] = (
        f"Certificates that hold: {holds.mean:.0%} of {holds.runs} runs.",
        f"{', '.join(question.table)} label: ahead of DP with given distances at ε = "
        f"{listed(can)}, with privately estimated ones at ε = {listed(won)}; {question.metric} "
        f"that the estimate costs: {listed(cost, 5)}.",
    )
    plain = "d = 1 per column"
    if question.has(plain):
        figures += (
            f"Ahead of {plain}, which needs no distances, at ε = "
            f"{listed(ahead(question, name, plain))}; behind it at ε = "
            f"{listed(ahead(question, plain, name))}.",
        )
    kept = bool(won) and set(can) <= set(won)
    return Claim("g", claim, verdict(holds.mean == 1.0, kept), figures, why)
