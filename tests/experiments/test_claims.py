"""Verdicts on results that were made up: planted directions are seen, reversed ones too."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from corrdp.experiments.catalogue import NAMES, experiment_named
from corrdp.experiments.claims import Question, ahead, share_of_way
from corrdp.experiments.comparison import close_to_semi
from corrdp.experiments.facts import METHOD
from corrdp.experiments.results import Results, Row
from corrdp.experiments.synthetic import WIDTH_SENSITIVE, WIDTHS, growth, slope, width_name

TABLE = ("toy", "insensitive")


def made(levels: dict[str, float], spread: float = 0.01, metric: str = "loss") -> Question:
    """Three seeds at two ε around a level per method; the spread is shared by all methods."""
    rows = [
        Row(*TABLE, method, epsilon, 1e-6, seed, metric, level + spread * seed * (i + 1) / 5)
        for i, (method, level) in enumerate(levels.items())
        for epsilon in (0.1, 1.0)
        for seed in range(3)
    ]
    return Question(Results(tuple(rows)), TABLE, metric, "lower")


def sweep(seeds: int) -> tuple[Row, ...]:
    """Every width with a gain of √(m/m_s) in noise, and of its square in risk."""
    rows = []
    for columns in WIDTHS:
        table = (width_name(columns), "public")
        gain = math.sqrt(columns / WIDTH_SENSITIVE)
        for metric, power in (("noise", 1), ("excess risk", 2)):
            for seed in range(seeds):
                for method in ("DP", "DP, one scale"):
                    rows.append(Row(*table, method, 0.5, 1e-6, seed, metric, gain**power))
                for method in ("CorrDP given", "published, given"):
                    rows.append(Row(*table, method, 0.5, 1e-6, seed, metric, 1.0))
    return tuple(rows)


def test_ahead_needs_a_clear_difference() -> None:
    question = made({"CorrDP given": 1.0, "DP": 2.0})
    assert ahead(question, "CorrDP given", "DP") == (0.1, 1.0)
    assert ahead(question, "DP", "CorrDP given") == ()


def test_a_difference_within_noise_does_not_count() -> None:
    assert ahead(made({"a": 1.0, "b": 1.001}, spread=1.0), "a", "b") == ()


def test_a_tiny_difference_does_not_count_however_sure() -> None:
    assert ahead(made({"a": 1.0, "b": 1.0005}, spread=0.0), "a", "b") == ()
    assert ahead(made({"a": 1.0, "b": 1.0011}, spread=0.0), "a", "b") == (0.1, 1.0)


def test_what_matters_is_measured_against_training_without_noise() -> None:
    levels = {"a": 1.9, "b": 2.0, "non-private": 1.0}
    assert ahead(made(levels, spread=0.0), "a", "b") == (0.1, 1.0)
    assert ahead(made({**levels, "a": 1.96}, spread=0.0), "a", "b") == ()


def test_two_seeds_decide_nothing() -> None:
    question = made({"DP": 2.0, "CorrDP given": 1.0, "semi": 1.0})
    alone = replace(
        question, results=Results(tuple(r for r in question.results.rows if r.seed < 2))
    )
    assert ahead(alone, "CorrDP given", "DP") == ()
    assert close_to_semi("d", "…", alone, [], "…").verdict == "not run"


def test_share_of_the_way() -> None:
    question = made({"DP": 2.0, "CorrDP given": 1.25, "semi": 1.0}, spread=0.0)
    assert share_of_way(question, "CorrDP given") == {0.1: 0.75, 1.0: 0.75}


@pytest.mark.parametrize(
    ("corrdp", "expected"),
    [(1.05, "reproduced"), (1.6, "partly reproduced"), (2.0, "not reproduced")],
)
def test_close_to_semi(corrdp: float, expected: str) -> None:
    question = made({"DP": 2.0, "CorrDP given": corrdp, "semi": 1.0}, spread=0.001)
    assert close_to_semi("d", "…", question, [], "…").verdict == expected


def test_nothing_to_gain_is_not_a_reproduction() -> None:
    question = made({"DP": 2.0, "CorrDP given": 2.0, "semi": 2.0}, spread=0.0)
    claim = close_to_semi("d", "…", question, [], "…")
    assert claim.verdict == "not reproduced"
    assert "nothing that could be told" in claim.figures[1]


def test_a_difference_in_the_means_alone_is_undecided() -> None:
    values = {"DP": (1.0, 2.0, 6.0), "CorrDP given": (1.5, 1.5, 1.5), "semi": (1.5, 1.5, 1.5)}
    rows = tuple(
        Row(*TABLE, method, 0.1, 1e-6, seed, "loss", value)
        for method, found in values.items()
        for seed, value in enumerate(found)
    )
    question = Question(Results(rows), TABLE, "loss", "lower")
    assert close_to_semi("d", "…", question, [], "…").verdict == "undecided"


def test_growth_finds_the_exponent() -> None:
    found = growth(Results(sweep(3)), "published, given")
    assert slope(found, 1) == pytest.approx(1.0)
    assert slope(found, 2) == pytest.approx(2.0)


@pytest.mark.parametrize(("seeds", "expected"), [(3, "reproduced"), (2, "not run")])
def test_growth_needs_three_seeds(seeds: int, expected: str) -> None:
    claims = experiment_named("synthetic").judge(Results(sweep(seeds)))
    assert {claim.verdict for claim in claims if claim.letter == "f"} == {expected}


def test_growth_leaves_out_a_width_with_fewer_seeds_of_one_way() -> None:
    kept = tuple(
        row
        for row in sweep(3)
        if not (row.dataset == width_name(80) and row.method == "DP" and row.seed == 2)
    )
    assert set(growth(Results(kept), "CorrDP given")) == set(WIDTHS) - {80}
    assert set(growth(Results(kept), "published, given")) == set(WIDTHS)


@pytest.mark.parametrize(("seeds", "expected"), [(3, "partly reproduced"), (2, "not run")])
def test_adaptation_needs_three_seeds(seeds: int, expected: str) -> None:
    table = ("adult", "insensitive")
    rows = [
        Row(*table, METHOD, math.inf, 1e-6, 0, f"{kind}:{column}", 0.5)
        for kind in ("plug-in", "frequent", "rarest", "UCB", "CP or H")
        for column in ("age", "workclass", "occupation")
    ]
    for seed in range(seeds):
        for method in ("DP", "CorrDP given", "CorrDP private"):
            rows.append(Row(*table, method, 1.0, 1e-6, seed, "holds", 1.0))
            rows.append(Row(*table, method, 1.0, 1e-6, seed, "noise", 1.0))
            rows += [
                Row(*table, method, 1.0, 1e-6, seed, f"noise:{column}", 1.0 + seed)
                for column in ("age", "workclass", "occupation")
            ]
    claims = experiment_named("adult").judge(Results(tuple(rows)))
    assert {claim.verdict for claim in claims if claim.letter == "e"} == {expected}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_run_is_said(name: str) -> None:
    claims = experiment_named(name).judge(Results(()))
    assert claims
    assert {claim.verdict for claim in claims} == {"not run"}


def test_every_claim_of_the_paper_is_judged_somewhere() -> None:
    letters = {c.letter for name in NAMES for c in experiment_named(name).judge(Results(()))}
    assert letters == set("abcdefg")
