"""``corrdp report`` and ``corrdp audit`` on a folder that ``corrdp fit`` left."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corrdp import Categorical, CorrDPLogisticRegression, Label, Numeric, Schema
from corrdp.cli import main

PLAN = """
[columns.age]
kind = "numeric"
low = 0
high = 100
role = "insensitive"

[columns.sex]
kind = "categorical"
levels = ["f", "m"]

[label]
name = "ill"
levels = [0, 1]
role = "insensitive"

[privacy]
epsilon = 8.0
delta = 1e-5
distances = { age = 0.9, ill = 0.3 }

[training]
steps = 2
"""


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    return int(stopped.value.code or 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = {"age": 100 * rng.random(200), "sex": rng.choice(["f", "m"], 200)}
    schema = Schema(
        {"age": Numeric(0, 100, role="insensitive"), "sex": Categorical(["f", "m"])},
        Label("ill", [0, 1], role="insensitive"),
    )
    model = CorrDPLogisticRegression(
        schema, epsilon=8.0, delta=1e-5, distances={"age": 0.9, "ill": 0.3}, steps=2
    ).fit(X, rng.integers(0, 2, 200))
    out = tmp_path / "out"
    out.mkdir()
    model.save(out / "model.json")
    model.certificate_.save(out / "certificate.json")
    return out


def test_report_writes_the_page(folder: Path, capsys: Any, tmp_path: Path) -> None:
    points = tmp_path / "points.json"
    points.write_text(json.dumps([{"method": "a", "epsilon": "inf", "accuracy": 0.7}]))
    assert call("report", folder, "--comparison", points, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    page = Path(found["file"])
    assert found["holds"] and page == folder / "report.html"
    assert "The certificate holds" in page.read_text(encoding="utf-8")
    points.write_text("[1]")
    assert call("report", folder, "--comparison", points) == 2
    assert call("report", tmp_path / "nothing") == 2


def test_report_of_a_changed_certificate_says_so(folder: Path, capsys: Any) -> None:
    path = folder / "certificate.json"
    claims = json.loads(path.read_text())
    claims["epsilon"] = 0.1
    path.write_text(json.dumps(claims))
    assert call("report", folder) == 1
    assert "does not hold" in capsys.readouterr().err
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "The certificate does not hold" in text


def test_audit_finds_nothing_in_an_honest_fit(folder: Path, capsys: Any) -> None:
    assert call("audit", folder, "--runs", 30, "--steps", 2, "--seed", 1, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["violated"] == 0 and len(found["findings"]) > 6
    assert {row["kind"] for row in found["findings"]} >= {"<sensitive>", "age", "ill"}
    assert call("audit", folder, "--runs", 1) == 2


def test_audit_finds_half_the_noise(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    from corrdp.noise import NoiseSource

    honest = NoiseSource.gaussian
    monkeypatch.setattr(
        NoiseSource, "gaussian", lambda self, scale: honest(self, np.asarray(scale) / 2)
    )
    assert call("audit", folder, "--runs", 40, "--steps", 2, "--seed", 1) == 1
    assert "VIOLATED" in capsys.readouterr().out


def test_fit_writes_the_report_or_says_why_not(
    tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    rng = np.random.default_rng(0)
    rows = [
        f"{100 * a:.3f},{'fm'[s]},{i}"
        for a, s, i in zip(rng.random(60), rng.integers(0, 2, 60), rng.integers(0, 2, 60))
    ]
    data, plan = tmp_path / "data.csv", tmp_path / "plan.toml"
    data.write_text("\n".join(["age,sex,ill", *rows]) + "\n")
    plan.write_text(PLAN)
    assert call("fit", data, plan, "-o", tmp_path / "out") == 0
    assert (tmp_path / "out" / "report.html").is_file()
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert call("fit", data, plan, "-o", tmp_path / "out") == 0
    assert "no report was written" in capsys.readouterr().err
    assert not (tmp_path / "out" / "report.html").exists()
