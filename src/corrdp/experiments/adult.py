"""Adult, income: logistic regression; claims (b), (e) and (g)."""

from __future__ import annotations

import math

from corrdp.datasets import load_adult
from corrdp.datasets.adult import GIVEN
from corrdp.experiments.claims import (
    LEAST_SEEDS,
    Claim,
    Question,
    ahead,
    listed,
    mean_of,
    verdict,
)
from corrdp.experiments.comparison import estimated_distances, published_rule
from corrdp.experiments.experiment import Experiment, Table
from corrdp.experiments.facts import LEAST_RECORDS, METHOD, counted_distances
from corrdp.experiments.results import Results, Row
from corrdp.experiments.settings import ExperimentSettings
from corrdp.experiments.task import Task, first_records

__all__ = ["EXPERIMENT"]

NAME = "adult"
SENSITIVE = ("race", "sex")
MOST_LOST = 0.04
QUICK_RECORDS = 8_000
COLUMN = "workclass"
TABLES = (Table(NAME, "insensitive", SENSITIVE), Table(NAME, "sensitive", SENSITIVE))
_GIVEN = "CorrDP given"


def load(table: Table, seed: int, settings: ExperimentSettings) -> Task:
    """Adult's own test file; the stated distances are those to race and sex."""
    found = load_adult(frame="dict", sensitive=table.sensitive, label_role=table.label_role)
    label = found.schema.label.name
    given = {name: GIVEN.get(name, 1.0) for name in found.schema.names("insensitive")}
    if table.label_role == "insensitive":
        given[label] = GIVEN[label]
    assert found.y_test is not None
    train, test = (found.X, found.y), (found.X_test, found.y_test)
    if settings.quick:
        train, test = first_records(train, QUICK_RECORDS), first_records(test, QUICK_RECORDS)
    return Task(
        found.schema,
        given if table.given else None,
        train,
        test,
        delta=settings.target_delta,
        solver=settings.solver,
    )


def facts(settings: ExperimentSettings) -> list[Row]:
    """Counted distances of every column to race and sex."""
    return counted_distances(load(TABLES[0], 0, settings), *TABLES[0].key)


def judge(results: Results) -> list[Claim]:
    """Claims (b), (e) and (g)."""
    losses = Question(results, (NAME, "insensitive"), "log-loss", "lower")
    why = (
        "With binned columns the model sees numbers only at the resolution of their bins, which "
        "costs log-loss at every ε, however large. A part of ε pays for the estimate, and columns "
        "whose tables cannot become useful, and those with rare levels, count with 1."
    )
    return [_income(results), _adaptation(results), estimated_distances(results, losses, why)]


def _income(results: Results) -> Claim:
    claim = (
        "Income: CorrDP ahead of semi, DP and partial, less than 4 % accuracy below non-private "
        "at small ε."
    )
    method = _GIVEN
    question = Question(results, (NAME, "insensitive"), "accuracy", "higher")
    if not question.has("non-private", "partial", "DP", "semi", method):
        return Claim("b", claim, "not run", ())
    grid = question.epsilons
    won = {name: ahead(question, method, name) for name in ("DP", "semi", "partial")}
    lost = {e: -question.gain(method, "non-private", e)[0] for e in grid}
    losses = Question(results, (NAME, "insensitive"), "log-loss", "lower")
    figures = [
        mean_of(question, ("DP", method, "semi")),
        mean_of(losses, ("DP", method, "semi")),
        f"Non-private {question.mean('non-private', grid[0]):.4f}, partial "
        f"{question.mean('partial', grid[0]):.4f} accuracy.",
        "Ahead in accuracy, at ε: "
        + "; ".join(f"of {name} {listed(values)}" for name, values in won.items())
        + f". In log-loss of DP: {listed(ahead(losses, method, 'DP'))}.",
        f"Accuracy below non-private: {listed(lost, 4)}.",
        *published_rule(losses),
    ]
    sensitive = Question(results, (NAME, "sensitive"), "log-loss", "lower")
    if sensitive.has("DP", method):
        figures.append(
            f"Sensitive label: ahead of DP in log-loss at ε = "
            f"{listed(ahead(sensitive, method, 'DP'))}."
        )
    parts = [set(values) >= set(grid[:1]) for values in won.values()]
    why = (
        "Semi protects less than CorrDP and adds less noise with the same allocation, so nothing "
        "honest can be ahead of it. Partial is trained without noise, and race and sex add almost "
        "nothing to the prediction of income: at small ε a way with noise stays behind it, and "
        "later what separates them is chance. Accuracy hardly tells the ways apart at ε ≥ .5; "
        "log-loss does."
    )
    return Claim("b", claim, verdict(*parts, lost[grid[0]] < MOST_LOST), tuple(figures), why)


def _fact(results: Results, kind: str, column: str) -> float:
    found = results.values((NAME, "insensitive"), METHOD, math.inf, f"{kind}:{column}")
    return next(iter(found.values()), math.nan)


def _adaptation(results: Results) -> Claim:
    claim = (
        "Estimated distances adapt the noise: workclass needs more, being correlated with the "
        "sensitive columns."
    )
    table = (NAME, "insensitive")
    columns = [
        row.metric.partition(":")[2] for row in results.rows
        if row.method == METHOD and row.metric.startswith("plug-in:")
    ]  # fmt: skip
    grid = results.epsilons(table)
    middle = grid[len(grid) // 2] if grid else math.nan
    needed = [(_GIVEN, "noise"), ("DP", "noise"), ("CorrDP private", "holds")]
    seeds = [results.seeds(table, method, middle, metric) for method, metric in needed]
    if not columns or min(seeds) < LEAST_SEEDS:
        return Claim("e", claim, "not run", ())
    figures = [
        f"{column}: counted {_fact(results, 'plug-in', column):.2f}, among levels with at least "
        f"{LEAST_RECORDS} records {_fact(results, 'frequent', column):.2f}, rarest level "
        f"{_fact(results, 'rarest', column):.0f} records, UCB {_fact(results, 'UCB', column):.2f}, "
        f"tighter bound {_fact(results, 'CP or H', column):.2f}; private at ε={middle:g} "
        + results.estimate(table, "CorrDP private", middle, f"distance:{column}").text(2)
        + "."
        for column in columns
    ]
    enough = results.seeds(table, "CorrDP UCB", middle, "noise") >= LEAST_SEEDS
    source = "CorrDP UCB" if enough else _GIVEN
    noise = {
        column: results.estimate(table, source, middle, f"noise:{column}").mean
        / results.estimate(table, "DP", middle, f"noise:{column}").mean
        for column in columns
        if column != "income"
    }
    ratios = ", ".join(f"{column} {value:.2f}" for column, value in noise.items())
    figures.append(f"Noise of {source} over that of DP at ε={middle:g}: {ratios}.")
    others = [value for column, value in noise.items() if column != COLUMN]
    adapts = max(noise.values()) > 1.05 * min(noise.values())
    more = noise[COLUMN] >= 1.05 * sorted(others)[len(others) // 2]
    correlated = (
        _fact(results, "frequent", COLUMN)
        >= sorted(_fact(results, "frequent", column) for column in columns)[len(columns) // 2]
    )
    why = (
        "Noise follows the distances, but with least noise only weakly: a change of any column "
        "moves every block through the residual. Workclass does differ among frequent levels; its "
        "bound is 1 because one of its levels has seven records, and the bounds of occupation and "
        "native-country are 1 for rarity too, not for what they tell. Relationship (husband, wife) "
        "is what really gives sex away."
    )
    return Claim("e", claim, verdict(adapts, more, correlated), tuple(figures), why)


EXPERIMENT = Experiment(
    name=NAME,
    title="Adult: logistic regression on income",
    about=(
        "32,561 training and 16,281 test records; race and sex are sensitive. Given distances: "
        "age .3, capital-gain .25, capital-loss .15, education-num .5, hours-per-week .5, income "
        ".31, all others 1; with a sensitive label the same numbers, which then are optimistic."
    ),
    metric="log-loss",
    better="lower",
    shown=("log-loss", "accuracy", "AUC"),
    tables=TABLES,
    load=load,
    judge=judge,
    facts=facts,
)
