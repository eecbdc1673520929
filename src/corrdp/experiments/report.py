"""An experiment for people: summary, figures and one HTML page in its folder."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from corrdp.errors import MissingExtraError
from corrdp.experiments.claims import Claim
from corrdp.experiments.experiment import Experiment
from corrdp.experiments.figures import draw, figure_name
from corrdp.experiments.methods import METHODS
from corrdp.experiments.results import Results
from corrdp.files import write_bytes, write_text

__all__ = ["cells", "check_extras", "claims_text", "page", "run_counts", "summary", "write_outputs"]

PAGE, SUMMARY = "report.html", "summary.json"
GUARANTEES = ("holds", "record ε")


def check_extras() -> None:
    """Refuse before anything runs what could not be shown afterwards.

    Raises
    ------
    MissingExtraError
        If matplotlib or jinja2 is not installed.
    """
    for name in ("matplotlib", "jinja2"):
        if importlib.util.find_spec(name) is None:
            raise MissingExtraError(f"experiments need {name}: pip install 'corrdp[report]'")


def write_outputs(experiment: Experiment, results: Results, folder: Path) -> dict[str, Path]:
    """Figures, summary and page; returns the files by what they are.

    Raises
    ------
    MissingExtraError
        If matplotlib or jinja2 is not installed; the results themselves are kept.
    """
    files, pictures = {}, {}
    for table in results.tables:
        if not results.epsilons(table):
            continue
        for kind, content in draw(experiment, results, table).items():
            path = folder / f"{figure_name(table)}.{kind}"
            write_bytes(path, content)
            files[path.name] = path
            if kind == "svg":
                text = content.decode("utf-8")
                pictures[table] = text[text.index("<svg") :]
    found = summary(experiment, results)
    files[SUMMARY], files[PAGE] = folder / SUMMARY, folder / PAGE
    write_text(files[SUMMARY], json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    write_text(files[PAGE], page(experiment, results, pictures))
    return files


def summary(experiment: Experiment, results: Results) -> dict[str, Any]:
    """Every claim with its verdict and figures, and what was run."""
    return {
        "experiment": experiment.name,
        "runs": run_counts(results)[0],
        "seconds": run_counts(results)[1],
        "claims": [claim.to_dict() for claim in experiment.judge(results)],
    }


def run_counts(results: Results) -> tuple[int, float]:
    """Number of trainings, and the processor time that they took, in seconds."""
    seconds = {
        (row.dataset, row.method, row.epsilon, row.seed, row.certificate): row.value
        for row in results.rows
        if row.metric == "seconds"
    }
    return len(seconds), sum(seconds.values())


def cells(
    experiment: Experiment, results: Results, table: tuple[str, str], metric: str
) -> tuple[list[str], list[list[str]]]:
    """Header and rows of one printed table: a method per row, an ε per column."""
    grid = results.epsilons(table)
    present = results.methods(table)
    rows = []
    for method in METHODS:
        if method.name not in present:
            continue
        if metric in GUARANTEES and not method.private:
            continue
        found = [results.estimate(table, method.name, e, metric) for e in grid]
        if metric == "holds":
            shown = ["–" if math.isnan(one.mean) else f"{one.mean:.0%}" for one in found]
        else:
            shown = [one.text(2 if metric in GUARANTEES else 4) for one in found]
        rows.append([method.name, *shown])
    return ["", *(f"ε = {e:g}" for e in grid)], rows


def page(experiment: Experiment, results: Results, pictures: dict[tuple[str, str], str]) -> str:
    """One HTML page without script or network.

    Raises
    ------
    MissingExtraError
        If jinja2 is not installed.
    """
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError:
        raise MissingExtraError("the page needs jinja2: pip install 'corrdp[report]'") from None
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(
        resources.files("corrdp.experiments").joinpath("page.html").read_text(encoding="utf-8")
    )
    counts = run_counts(results)
    return template.render(
        experiment=experiment,
        claims=experiment.judge(results),
        methods=METHODS,
        runs=counts[0],
        minutes=f"{counts[1] / 60:.0f}",
        sections=[
            {
                "title": f"{table[0]}, {table[1]} label",
                "svg": Markup(pictures.get(table, "")),  # our own drawing
                "tables": _tables(experiment, results, table),
            }
            for table in results.tables
            if results.epsilons(table)
        ],
    )


def _tables(
    experiment: Experiment, results: Results, table: tuple[str, str]
) -> Sequence[dict[str, Any]]:
    found = []
    for metric in (*experiment.shown, *GUARANTEES):
        header, rows = cells(experiment, results, table, metric)
        found.append({"metric": TITLES.get(metric, metric), "header": header, "rows": rows})
    return found


TITLES = {
    "holds": "Runs whose certificate holds at the target",
    "record ε": "ε that the certificate guarantees for the whole record",
}


def claims_text(claims: Sequence[Claim]) -> str:
    """Claims and verdicts for a terminal."""
    lines = []
    for claim in claims:
        lines.append(f"({claim.letter}) {claim.verdict.upper()}: {claim.claim}")
        lines += [f"    {figure}" for figure in claim.figures]
        if claim.why and claim.verdict != "reproduced":
            lines.append(f"    Why: {claim.why}")
    return "\n".join(lines)
