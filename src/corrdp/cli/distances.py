"""``corrdp distances``: how much every column tells about the sensitive ones."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from corrdp.cli.console import Output
from corrdp.cli.options import (
    DataFile,
    Decimal,
    Json,
    Names,
    PlanFile,
    Separator,
    SkipRows,
    file_options,
)

if TYPE_CHECKING:
    from corrdp.distance import Distances
    from corrdp.plan_file import Plan
    from corrdp.privacy.certificate import Certificate
    from corrdp.tables import Table

__all__ = ["run"]

Found: TypeAlias = "tuple[Distances, Certificate]"
BAR, READING = 10, 34


def run(
    data: DataFile,
    plan: PlanFile,
    public: Annotated[
        Path | None,
        typer.Option(help="Public reference table to measure on; DATA is then not read."),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Straight from DATA, unprotected: for your eyes only."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the certificate of the private estimate."),
    ] = None,
    heat_map: Annotated[
        Path | None,
        typer.Option("--heat-map", help="Draw the distances between levels: a .png or .svg file."),
    ] = None,
    names: Names = None,
    skip_rows: SkipRows = None,
    separator: Separator = None,
    decimal: Decimal = None,
    json: Json = False,
) -> None:
    """Estimate what every column tells about the sensitive ones.

    By default the estimate is private and costs a part of the plan's epsilon, in addition to
    every fit on the same records. A fit whose plan says distances = "private" makes its own
    estimate and needs none from here.
    """
    from corrdp.distance import distance_rows
    from corrdp.plan_file import read_plan
    from corrdp.tables import read_table

    out = Output(json)
    _check(public, exact, output, heat_map)
    chosen = read_plan(plan)
    options = chosen.file.overridden(file_options(names, skip_rows, separator, decimal))
    table = read_table(data if public is None else public, chosen.schema, options)
    certificate: Certificate | None = None
    if exact or public is not None:
        distances = _unprotected(chosen, table, exact)
    else:
        distances, certificate = _private(chosen, table)
        if output is not None and certificate is not None:
            certificate.save(output)
    if heat_map is not None:
        _draw(heat_map, chosen, table, certificate)
    rows = distance_rows(chosen.schema, distances)
    _print(out, rows, certificate, exact)
    for sentence in distances.assumptions:
        out.line(textwrap.fill(f"· {sentence}", 80, subsequent_indent="  "))
    if public is not None and rows:
        out.line("\nTo use these distances, write into the plan in place of distances = ...:\n")
        out.line(_snippet(rows))
    out.result(
        {
            "distances": rows,
            "records": table.size,
            "release": not exact,
            "gamma": distances.gamma,
            "certificate": None if certificate is None else certificate.claims(),
        }
    )


def _check(public: Path | None, exact: bool, output: Path | None, heat_map: Path | None) -> None:
    """Refuse options that do not go together before anything is read."""
    from corrdp.errors import ConfigurationError

    if exact and public is not None:
        raise ConfigurationError("--exact and --public exclude each other; pass one of them")
    if output is not None and (exact or public is not None):
        raise ConfigurationError("--output goes with the private estimate; leave it out here")
    if heat_map is not None and heat_map.suffix.lower() not in (".png", ".svg"):
        raise ConfigurationError(f"--heat-map {heat_map}: name it .png or .svg")


def _draw(path: Path, plan: Plan, table: Table, certificate: Certificate | None) -> None:
    """Draw released tables where there are any, else the counts of the table itself."""
    from corrdp.distance.grid import level_names, table_specs
    from corrdp.distance.private import PrivateDistances, count_tables
    from corrdp.records import read_label, read_records
    from corrdp.report.heat_map import draw_heat_map, panel_of
    from corrdp.schema import Schema

    if certificate is not None:
        schema = Schema.from_dict(certificate.ledger.one("declaration")["schema"])
        released = PrivateDistances.from_dict(schema, certificate.ledger.one("estimate-release"))
        specs = [planned.spec for planned in released.plan.tables]
        counts = {name: noisy.cells for name, noisy in released.tables.items()}
    else:
        schema = plan.schema
        specs = list(table_specs(schema, "assume-smooth"))
        records = read_records(table.columns, schema)
        label = read_label(table.label, schema.label, records.size)
        counts = count_tables(specs, schema, records, label)
    panels = [
        panel_of(spec.name, level_names(spec.levels, schema), counts[spec.name]) for spec in specs
    ]
    source = "noisy counts" if certificate is not None else "exact counts"
    draw_heat_map(panels, path, f"How differently levels tell about the sensitive ({source})")


def _unprotected(plan: Plan, table: Table, exact: bool) -> Distances:
    from corrdp.distance import estimate_distances

    return estimate_distances(
        plan.schema,
        table.columns,
        table.label,
        source="published" if exact else "public",
        method="plug-in" if exact else "auto",
        resolution="assume-smooth",
    )


def _private(plan: Plan, table: Table) -> Found:
    """Release the tables of the estimate, charged like the first part of a fit."""
    from corrdp.distance import Distances, EstimateSettings
    from corrdp.noise import noise_source
    from corrdp.privacy.budgets import PrivacyTarget
    from corrdp.privacy.declaration import Declaration
    from corrdp.privacy.estimate import check_affordable, plan_of, release_distances
    from corrdp.privacy.ledger import Ledger
    from corrdp.records import read_label, read_records
    from corrdp.verification import certify

    model = plan.estimator()
    target = PrivacyTarget(
        **{item.name: getattr(model, item.name) for item in fields(PrivacyTarget)}
    )
    settings = model.distances
    if not isinstance(settings, EstimateSettings):
        settings = EstimateSettings()
    schema = plan.schema.binned() if settings.resolution == "binned" else plan.schema
    records = read_records(table.columns, schema)
    label = read_label(table.label, schema.label, records.size)
    declaration = Declaration(schema, target, records.size, Distances({}), False)
    estimate = plan_of(declaration, settings)
    check_affordable(declaration, estimate)
    ledger = Ledger().append("declaration", declaration.to_entry())
    noise = noise_source(None).child("estimate")
    after, ledger = release_distances(declaration, estimate, records, label, noise, ledger)
    return after.distances, certify(ledger)


def _print(
    out: Output, rows: Sequence[Mapping[str, Any]], certificate: Certificate | None, exact: bool
) -> None:
    from corrdp.report.summarise import format_loss, text_table

    if exact:
        out.line("NOT FOR RELEASE: computed straight from the private records, unprotected.")
        out.line()
    if not rows:
        out.line("No column is insensitive: there is no distance to measure.")
        return
    cells = []
    for row in rows:
        limits = "–" if row["low"] is None else f"{row['low']:.2f}–{row['high']:.2f}"
        bar = "█" * round(row["distance"] * BAR)
        reading = row["reading"].ljust(READING)
        cells.append(
            [_short(row["name"]), f"{row['distance']:.3f}", bar.ljust(BAR), limits, reading]
        )
    out.line(
        text_table(
            ["column", "d", "0" + "1".rjust(BAR - 1), "interval", "reading".ljust(READING)], cells
        )
    )
    out.line()
    out.line(f"d: how much a column tells about the sensitive ones. Source: {rows[0]['source']}.")
    if certificate is not None:
        joint = certificate.joint
        out.line(
            f"This look cost ε = {format_loss(joint['sensitive'])} for the sensitive columns "
            f"(whole record {format_loss(joint['record'])})"
        )
        out.line(f"at δ = {certificate.delta:g}; it adds to every other release on these records.")


def _short(name: str, width: int = 14) -> str:
    clean = "".join(c if c.isprintable() else "·" for c in name)
    return clean if len(clean) <= width else clean[: width - 1] + "…"


def _snippet(rows: Sequence[Mapping[str, Any]]) -> str:
    import tomli_w

    values = {row["name"]: math.ceil(row["distance"] * 1e4) / 1e4 for row in rows}
    return tomli_w.dumps({"privacy": {"distances": values}})
