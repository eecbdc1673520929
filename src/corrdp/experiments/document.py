"""The tables of all experiments as one Markdown document, claim by claim."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from corrdp.experiments.claims import Claim
from corrdp.experiments.experiment import Experiment
from corrdp.experiments.methods import METHODS, method_named
from corrdp.experiments.report import GUARANTEES, TITLES, cells, run_counts
from corrdp.experiments.results import Results
from corrdp.version import __version__

__all__ = ["document"]

_HEAD = """\
# The paper's experiments

The evaluation of T. Wang, L. Zhang and R. Cummings, *Integrating Feature Correlation in
Differential Privacy with Applications in DP-ERM* (AISTATS 2026), run again with this library
beside baselines that state what they protect. The commands are

    corrdp experiments all -o out/
    corrdp experiments document -o out/

and the numbers below are those of the runs listed under *What was run*; the first command, given
the same folder, goes on from where they stopped.

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


_RAN = """\
Time is processor time of one core. A claim with fewer than three seeds behind it counts as not
run. Intervals of few seeds are wide (three: 4.3 standard errors): many a difference that is there
in the means does not count for that.
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
    """What was run, with how many seeds, how long it took, and what is missing."""
    rows = []
    for experiment, results in found:
        runs, seconds = run_counts(results)
        time = f"{runs} / {seconds / 60:.1f} min"
        for table in experiment.tables:
            grid = results.epsilons(table.key)
            counts = {
                name: min(results.seeds(table.key, name, e, experiment.metric) for e in grid)
                for name in table.methods
                if grid and method_named(name).private
            }
            missing = [name for name in table.methods if not counts.get(name, grid)]
            rows.append(
                (
                    f"{', '.join(table.key)} label",
                    _range([count for count in counts.values() if count]),
                    "quick" if experiment.name in quick else "all",
                    " ".join(f"{e:g}" for e in grid),
                    "; ".join(missing) if grid else "the whole table",
                    time,
                )
            )
    header = ("table", "seeds", "records", "ε", "not run", "trainings of the experiment / time")
    return f"## What was run\n\n{_RAN}\n{markdown_table(header, rows)}\n"


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
