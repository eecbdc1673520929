"""``corrdp plan``: what a plan will cost, without reading data."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from corrdp.cli.console import Output
from corrdp.cli.options import Json, PlanFile

if TYPE_CHECKING:
    from corrdp.forecast import Forecast

__all__ = ["run"]


def run(
    plan: PlanFile,
    records: Annotated[
        int, typer.Option("--records", "-n", min=1, help="Number of records of the table.")
    ],
    json: Json = False,
) -> None:
    """Show noise and bound of every column; no data is read.

    Reads only the plan, so entries need not be confirmed yet. Shows what other distances, half
    the epsilon or twice the records would change.
    """
    from corrdp.forecast import forecast
    from corrdp.plan_file import read_plan

    out = Output(json)
    result = forecast(read_plan(plan, unconfirmed="accept"), records)
    _print(out, result)
    out.result(asdict(result))


def _print(out: Output, result: Forecast) -> None:
    from corrdp.report.summarise import format_loss, text_table

    out.line(
        f"{result.records:,} records, ε = {result.epsilon:g}, δ = {result.delta:g}: "
        f"{result.steps} steps of rate {result.learning_rate:.3g}. No data was read."
    )
    for key, value in result.supposed.items():
        out.line(f"The forecast supposes {key} = {value!r} in place of what the plan says.")
    if not result.distances_known:
        out.line("Distances are still to be estimated; d = 1 stands for each of them here.")
    out.line()
    header = ["column", "role", "d", "ε allowed", "bound", "noise at 0", "at edge"]
    rows = [
        [
            _short(row.name),
            row.role,
            "–" if row.distance is None else f"{row.distance:.3g}",
            format_loss(row.epsilon),
            *map(_tiny, (row.bound, row.noise_start, row.noise_edge)),
        ]
        for row in result.columns
    ]
    out.line(text_table(header, rows))
    out.line()
    out.line(_EXPLANATION)
    out.line()
    planned = result.scenarios[0]
    cases = [
        [
            case.name,
            _tiny(case.start),
            _ratio(case.start, planned.start),
            _tiny(case.edge),
            _ratio(case.edge, planned.edge),
        ]
        for case in result.scenarios
    ]
    header = ["noise, norm over all coordinates", "at 0", "÷ plan", "at edge", "÷ plan"]
    out.line(text_table(header, cases))
    out.line()
    out.line(f"The largest possible mean gradient has norm {result.largest:.2g}.")
    if planned.edge > result.largest:
        out.line("The noise can exceed it: use more records, a larger ε, or fewer columns.")


_EXPLANATION = """\
bound: most that changing one record can move this part of the mean gradient.
noise: standard deviation per coordinate if one step spent the whole budget, at
the start (all coefficients 0) and at the edge of the public ball; it is
re-allocated at every step and lies between. The label has none of its own: its
distance limits that of all columns."""


def _tiny(value: float | None) -> str:
    return "–" if value is None else f"{value:.2e}"


def _ratio(value: float, planned: float) -> str:
    return "–" if planned == 0 else f"{value / planned:.2f}"


def _short(name: str, width: int = 22) -> str:
    clean = "".join(c if c.isprintable() else "·" for c in name)
    return clean if len(clean) <= width else clean[: width - 1] + "…"
