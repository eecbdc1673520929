"""``corrdp fit``: train on a file and write the model with its certificate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corrdp.cli.console import Output, note, steps_bar
from corrdp.cli.folder import check_folder, write_folder
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
    from corrdp.plan_file import Plan

__all__ = ["run"]

MODEL, CERTIFICATE, PLAN, REPORT = "model.json", "certificate.json", "plan.toml", "report.html"


def run(
    data: DataFile,
    plan: PlanFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for model and certificate.")
    ] = Path("out"),
    test: Annotated[
        Path | None,
        typer.Option(help="File to measure the model on. The figures are not private."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Reproducible noise, for tests only: the run is not private."),
    ] = None,
    names: Names = None,
    skip_rows: SkipRows = None,
    separator: Separator = None,
    decimal: Decimal = None,
    json: Json = False,
) -> None:
    """Train a model on DATA as PLAN says.

    Writes model.json, certificate.json, report.html and a copy of the plan. Nothing is written
    unless the whole run succeeds, and nothing is spent when the table does not fit the plan.
    """
    from corrdp.plan_file import read_plan
    from corrdp.tables import read_table

    out = Output(json)
    chosen = read_plan(plan)
    check_folder(output)
    options = chosen.file.overridden(file_options(names, skip_rows, separator, decimal))
    table = read_table(data, chosen.schema, options)
    held_out = None if test is None else read_table(test, chosen.schema, options)
    model = chosen.estimator()
    with steps_bar("training", out) as progress:
        model.set_params(progress=progress, random_state=seed)
        model.fit(table.columns, table.label)
    metrics = None if held_out is None else measure(model, held_out.columns, held_out.label)
    files = _save(model, chosen, output)
    _print(out, model, table.size, metrics)
    out.line("Files")
    for path in files.values():
        out.line(f"  {path}")
    certificate = model.certificate_
    for problem in () if certificate is None else certificate.problems:
        note(f"warning: the certificate does not hold: {problem}")
    result: dict[str, Any] = {
        "certificate": None if certificate is None else certificate.claims(),
        "records": table.size,
        "files": files,
    }
    if metrics is not None:
        result["metrics"] = metrics
    out.result(result)


def _save(model: Any, plan: Plan, output: Path) -> dict[str, Path]:
    """Write everything; the model comes first, because it carries its certificate."""
    from corrdp.files import write_text

    if (output / MODEL).exists():
        note(
            f"note: {output / MODEL} of an earlier run is replaced; both runs count towards the "
            "privacy loss of these records"
        )
    certificate = model.certificate_
    contents: dict[str, Any] = {
        MODEL: model.save,
        PLAN: lambda path: write_text(path, plan.to_toml()),
    }
    if certificate is not None:
        contents[CERTIFICATE] = certificate.save
    elif (output / CERTIFICATE).exists():
        (output / CERTIFICATE).unlink()
    (output / REPORT).unlink(missing_ok=True)
    write_folder(output, contents)
    names = list(contents)
    # the model is safe by now, whatever happens to the page
    if certificate is not None and _write_page(certificate, output / REPORT):
        names.append(REPORT)
    return {Path(name).stem: output / name for name in names}


def _write_page(certificate: Any, path: Path) -> bool:
    """Write the report; False where what it needs is not installed."""
    from corrdp.errors import MissingExtraError
    from corrdp.report import write_report

    try:
        write_report(certificate, path)
    except MissingExtraError as error:
        note(f"note: no report was written: {error}")
        return False
    return True


def _print(out: Output, model: Any, records: int, metrics: dict[str, Any] | None) -> None:
    name = type(model).__name__
    out.line(f"{name}: {records:,} records, {model.n_iter_} steps")
    out.line()
    if metrics is not None:
        out.line("Measured on the test file (not private: computed straight from its records)")
        for key, value in metrics.items():
            if isinstance(value, float):
                out.line(f"  {key.replace('_', ' '):<16} {value:.4f}")
            elif key == "records":
                out.line(f"  {'records':<16} {value:,}")
        out.line()
    if model.certificate_ is None:
        out.line("Trained WITHOUT privacy (epsilon = inf): there is no certificate.")
    else:
        out.line(str(model.certificate_))
    out.line()


def measure(model: Any, columns: Any, label: Any) -> dict[str, Any]:
    """Figures of merit on held-out records; they are a release of their own."""
    import numpy as np
    from sklearn import metrics

    from corrdp.records import read_label

    target = read_label(label, model.schema.label, len(label))
    result: dict[str, Any] = {"private": False, "records": len(target)}
    if not hasattr(model, "predict_proba"):
        predicted = model.predict(columns)
        error = predicted - target
        result["r2"] = float(metrics.r2_score(target, predicted))
        result["root_mean_squared_error"] = float(np.sqrt(np.mean(error**2)))
        result["mean_absolute_error"] = float(np.mean(np.abs(error)))
        return result
    probability = model.predict_proba(columns)[:, 1]
    result["accuracy"] = float(np.mean((probability > 0.5) == target))
    result["majority_share"] = float(max(np.mean(target), 1 - np.mean(target)))
    result["log_loss"] = float(metrics.log_loss(target, probability, labels=[0, 1]))
    both = 0 < np.mean(target) < 1
    result["roc_auc"] = float(metrics.roc_auc_score(target, probability)) if both else None
    return result
