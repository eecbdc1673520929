"""The tables of all experiments as one Markdown document, claim by claim."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.stats import t as student

from corrdp.experiments.claims import LEAST_SEEDS, Claim
from corrdp.experiments.evaluation import Evaluation
from corrdp.experiments.experiment import Experiment, Table
from corrdp.experiments.methods import METHODS, method_named
from corrdp.experiments.report import GUARANTEES, TITLES, cells, costs, title
from corrdp.experiments.settings import short
from corrdp.version import __version__

__all__ = ["document"]

# from so many seeds on intervals are not called wide
FEW = 10

_HEAD = """\
# The paper's experiments

The evaluation of T. Wang, L. Zhang and R. Cummings, *Integrating Feature Correlation in
Differential Privacy with Applications in DP-ERM* (AISTATS 2026), run again with this library
beside baselines that state what they protect. The commands are

    corrdp experiments all -o out/
    corrdp experiments document -o out/

and the numbers below are those of the runs listed under *What was run*; the first command, given
the same folder, goes on from where they stopped.

Written by version {version}. Values are means over seeds with 95 % intervals (Student's t; without
one, a single run). Settings other than the defaults are options of the first command; sensitive
columns, δ and steps of every table stand in *What was run*. Real data sets keep one split, so that
their seeds differ in the noise only; simulated ones draw fresh records for every seed. Runs of one
seed share their noise and are compared in pairs: a difference counts where its interval excludes
zero and it is at least 5 % of what the worse way lacks to training without noise.
Hyper-parameters are the library's data-free defaults for every way to train. All runs are seeded,
hence none is private, and figures on test records never are.

Rows that agree to all printed digits are no mistake: where a change of the label moves every
block (a sensitive label, a label of distance 1) distances gain nothing.
"""


_RAN = """\
Time is processor time of one core; a training that stands in several tables counts for the first.
A claim with fewer than {least} seeds behind it counts as not run.{few}
"""
_FEW = """\
 Intervals of few seeds are wide
({seeds} seeds: {quantile:.1f} standard errors): many a difference that is there in the means does
not count for that."""


def document(found: Sequence[Evaluation]) -> str:
    """Everything that ``docs/experiments.md`` says, from results alone."""
    judged = [(one.experiment, claim) for one in found for claim in one.claims]
    parts = [_HEAD.format(version=__version__), _methods(), _verdicts(judged), _ran(found)]
    for letter in sorted({claim.letter for _, claim in judged}):
        parts.append(_claim(letter, judged))
    parts += [_experiment(one) for one in found]
    return "\n".join(parts)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; bars in cells are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines
    )


def _methods() -> str:
    rows = [(method.name, method.meaning) for method in METHODS]
    return "## Ways to train\n\n" + markdown_table(("name", "what it is"), rows) + "\n"


def _verdicts(judged: Sequence[tuple[Experiment, Claim]]) -> str:
    rows = [
        (f"({claim.letter})", experiment.name, claim.claim, f"**{claim.verdict}**")
        for experiment, claim in sorted(judged, key=lambda pair: pair[1].letter)
    ]
    header = ("claim", "experiment", "as the paper has it", "verdict")
    return "## Verdicts\n\n" + markdown_table(header, rows) + "\n"


def _ran(found: Sequence[Evaluation]) -> str:
    """What was run, with how many seeds, how long it took, and what is missing."""
    rows, fewest = [], FEW
    for one in found:
        spent = costs(one.results)
        for table in one.tables:
            counts = _seeds(one, table)
            fewest = min([fewest, *(count for count in counts if count > 1)])
            rows.append(_ran_row(one, table, counts, *spent.get(table.key, (0, 0.0))))
    header = (
        "table", "sensitive columns", "δ", "steps", "records", "ε", "seeds", "not run",
        "trainings", "time",
    )  # fmt: skip
    few = ""
    if fewest < FEW:
        few = _FEW.format(seeds=fewest, quantile=float(student.ppf(0.975, fewest - 1)))
    notes = [one.without_distances for one in found if one.without_distances]
    said = "\n".join([_RAN.format(least=LEAST_SEEDS, few=few), *(note + "\n" for note in notes)])
    return f"## What was run\n\n{said}\n{markdown_table(header, rows)}\n"


def _seeds(one: Evaluation, table: Table) -> list[int]:
    """Fewest seeds over ε of every way to train with noise that was run."""
    grid, missing = one.results.epsilons(table.key), one.not_run(table)
    return [
        min(one.results.seeds(table.key, name, e, one.experiment.metric) for e in grid)
        for name in table.methods
        if grid and method_named(name).private and name not in missing
    ]


def _ran_row(
    one: Evaluation, table: Table, counts: Sequence[int], runs: int, seconds: float
) -> tuple[str, ...]:
    grid = one.results.epsilons(table.key)
    return (
        title(table),
        ", ".join(table.sensitive),
        short(one.settings.target_delta),
        one.settings.steps,
        "quick" if one.settings.quick else "all",
        " ".join(f"{e:g}" for e in grid),
        _range(counts),
        "; ".join(one.not_run(table)) if grid else "the whole table",
        f"{runs}",
        f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s",
    )


def _range(counts: Sequence[int]) -> str:
    """Smallest and largest, or the one they all are."""
    if not counts:
        return "0"
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def _claim(letter: str, judged: Sequence[tuple[Experiment, Claim]]) -> str:
    lines = [f"## Claim ({letter})", ""]
    for experiment, claim in judged:
        if claim.letter != letter:
            continue
        lines += [f"**{experiment.title}: {claim.verdict}.** {claim.claim}", ""]
        lines += [f"* {figure}" for figure in claim.figures]
        if claim.figures:
            lines.append("")
        if claim.why:
            lines += [f"Why: {claim.why}", ""]
    return "\n".join(lines)


def _experiment(one: Evaluation) -> str:
    """All printed tables of one experiment."""
    experiment = one.experiment
    lines = [f"## {experiment.title}", "", experiment.about, "", one.described, ""]
    for table in one.filled:
        lines += [f"### {title(table)}", ""]
        for metric in (*experiment.shown, *GUARANTEES):
            header, rows = cells(experiment, one.results, table.key, metric)
            kept = [row for row in rows if any(cell != "–" for cell in row[1:])]
            if kept:
                header = [TITLES.get(metric, metric), *header[1:]]
                lines += [markdown_table(header, kept), ""]
    return "\n".join(lines)
