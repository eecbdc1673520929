"""The tables of all experiments as one Markdown document, claim by claim."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from corrdp.experiments.claims import Claim
from corrdp.experiments.experiment import Experiment
from corrdp.experiments.methods import METHODS
from corrdp.experiments.report import GUARANTEES, TITLES, cells, run_counts
from corrdp.experiments.results import Results
from corrdp.version import __version__

__all__ = ["document"]

_HEAD = """\
# The paper's experiments

The evaluation of T. Wang, L. Zhang and R. Cummings, *Integrating Feature Correlation in
Differential Privacy with Applications in DP-ERM* (AISTATS 2026), run again with this library
beside baselines that state what they protect. Every number below comes from

    corrdp experiments all -o out/
    corrdp experiments document -o out/

Written by version {version}. Values are means over seeds with 95 % intervals (Student's t), δ is
1e-6 throughout. Real data sets keep one split, so that their seeds differ in the noise only;
simulated ones draw fresh records for every seed. Runs of one seed share their noise and are
compared in pairs: a difference counts where its interval excludes zero and it is at least 5 % of
what the worse way lacks to training without noise. Hyper-parameters are the library's data-free
defaults for every way to train. All runs are seeded, hence none is private, and figures on test
records never are.

Rows that agree to all printed digits are no mistake: where a change of the label moves every
block (a sensitive label, a label of distance 1) distances gain nothing.
"""


def document(
    found: Sequence[tuple[Experiment, Results]], quick: Collection[str] = frozenset()
) -> str:
    """Everything that ``docs/experiments.md`` says, from results alone.

    ``quick`` names the experiments that ran on fewer records.
    """
    judged = [
        (experiment, claim) for experiment, results in found for claim in experiment.judge(results)
    ]
    parts = [_HEAD.format(version=__version__), _methods(), _verdicts(judged)]
    parts.append(_ran(found, quick))
    for letter in sorted({claim.letter for _, claim in judged}):
        parts.append(_claim(letter, judged))
    parts += [_experiment(experiment, results) for experiment, results in found]
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


def _ran(found: Sequence[tuple[Experiment, Results]], quick: Collection[str]) -> str:
    """What was run, with how many seeds, and how long it took."""
    rows = []
    for experiment, results in found:
        runs, seconds = run_counts(results)
        for table in results.tables:
            grid = results.epsilons(table)
            if not grid:
                continue
            counts = [
                results.seeds(table, method.name, epsilon, experiment.metric)
                for method in METHODS
                if method.private and method.name in results.methods(table)
                for epsilon in grid
            ]
            counts = [count for count in counts if count]
            seeds = (
                f"{min(counts)}"
                if min(counts) == max(counts)
                else f"{min(counts)} to {max(counts)}"
            )
            rows.append(
                (
                    ", ".join(table) + " label",
                    seeds,
                    "quick" if experiment.name in quick else "all",
                    " ".join(f"{e:g}" for e in grid),
                    f"{runs} / {seconds / 60:.0f} min",
                )
            )
    header = ("table", "seeds", "records", "ε", "trainings of the experiment / processor time")
    return "## What was run\n\n" + markdown_table(header, rows) + "\n"


def _claim(letter: str, judged: Sequence[tuple[Experiment, Claim]]) -> str:
    lines = [f"## Claim ({letter})", ""]
    for experiment, claim in judged:
        if claim.letter != letter:
            continue
        lines += [f"**{experiment.title}: {claim.verdict}.** {claim.claim}", ""]
        lines += [f"* {figure}" for figure in claim.figures]
        if claim.why:
            lines += ["", f"Why: {claim.why}"]
        lines.append("")
    return "\n".join(lines)


def _experiment(experiment: Experiment, results: Results) -> str:
    """All printed tables of one experiment."""
    lines = [f"## {experiment.title}", "", experiment.about, ""]
    for table in results.tables:
        if not results.epsilons(table):
            continue
        lines += [f"### {table[0]}, {table[1]} label", ""]
        for metric in (*experiment.shown, *GUARANTEES):
            header, rows = cells(experiment, results, table, metric)
            kept = [row for row in rows if any(cell != "–" for cell in row[1:])]
            if kept:
                header = [TITLES.get(metric, metric), *header[1:]]
                lines += [markdown_table(header, kept), ""]
    return "\n".join(lines)
