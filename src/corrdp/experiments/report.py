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
from corrdp.experiments.evaluation import Evaluation
from corrdp.experiments.experiment import Experiment, Table
from corrdp.experiments.figures import draw, figure_name
from corrdp.experiments.methods import METHODS
from corrdp.experiments.results import Results
from corrdp.files import write_bytes, write_text

__all__ = ["cells", "check_extras", "claims_text", "costs", "page", "summary", "write_outputs"]

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


def write_outputs(evaluation: Evaluation, folder: Path) -> dict[str, Path]:
    """Figures, summary and page; returns the files by what they are.

    Raises
    ------
    MissingExtraError
        If matplotlib or jinja2 is not installed; the results themselves are kept.
    """
    files, pictures = {}, {}
    for table in evaluation.filled:
        if table.epsilons is not None:
            continue  # a single ε of the experiment's own makes no curve
        drawn = draw(evaluation.experiment, evaluation.results, table.key)
        for kind, content in drawn.items():
            path = folder / f"{figure_name(table.key)}.{kind}"
            write_bytes(path, content)
            files[path.name] = path
            if kind == "svg":
                text = content.decode("utf-8")
                pictures[table.key] = text[text.index("<svg") :]
    found = summary(evaluation)
    files[SUMMARY], files[PAGE] = folder / SUMMARY, folder / PAGE
    write_text(files[SUMMARY], json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    write_text(files[PAGE], page(evaluation, pictures))
    return files


def summary(evaluation: Evaluation) -> dict[str, Any]:
    """Every claim with its verdict and figures, what was asked for last, and what was run."""
    runs, seconds = total(costs(evaluation.results))
    return {
        "experiment": evaluation.experiment.name,
        "settings": evaluation.settings.to_dict(),
        "runs": runs,
        "seconds": seconds,
        "claims": [claim.to_dict() for claim in evaluation.claims],
    }


def costs(results: Results) -> dict[tuple[str, str], tuple[int, float]]:
    """Trainings and their processor time in seconds, by table.

    A training that stands in several tables counts for the first of them.
    """
    found: dict[tuple[str, str], tuple[int, float]] = {}
    seen = set()
    for row in results.rows:
        run = (row.dataset, row.method, row.epsilon, row.seed, row.certificate)
        if row.metric == "seconds" and run not in seen:
            seen.add(run)
            table = (row.dataset, row.label_role)
            runs, seconds = found.get(table, (0, 0.0))
            found[table] = (runs + 1, seconds + row.value)
    return found


def total(found: dict[tuple[str, str], tuple[int, float]]) -> tuple[int, float]:
    """Trainings and seconds of all tables."""
    return sum(runs for runs, _ in found.values()), sum(time for _, time in found.values())


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


def page(evaluation: Evaluation, pictures: dict[tuple[str, str], str]) -> str:
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
    runs, seconds = total(costs(evaluation.results))
    return template.render(
        experiment=evaluation.experiment,
        settings=evaluation.described,
        claims=evaluation.claims,
        methods=METHODS,
        runs=runs,
        minutes=f"{seconds / 60:.1f}",
        sections=[
            {
                "title": title(table),
                "not_run": "; ".join(evaluation.not_run(table)),
                "svg": Markup(pictures.get(table.key, "")),  # our own drawing
                "tables": _tables(evaluation, table),
            }
            for table in evaluation.filled
        ],
    )


def title(table: Table) -> str:
    """A table's name, its sensitive columns and its label's role."""
    return f"{', '.join(table.key)} label"


def _tables(evaluation: Evaluation, table: Table) -> Sequence[dict[str, Any]]:
    experiment, found = evaluation.experiment, []
    for metric in (*experiment.shown, *GUARANTEES):
        header, rows = cells(experiment, evaluation.results, table.key, metric)
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
