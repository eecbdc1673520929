"""Runs commands in this process, and small files to run them on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corrdp.cli import main


@dataclass(frozen=True)
class Finished:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The one JSON object on stdout."""
        return json.loads(self.out)


Command = Callable[..., Finished]


@pytest.fixture
def corrdp(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the command line; returns exit code, stdout and stderr."""

    def run(*arguments: object) -> Finished:
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        code = stopped.value.code
        return Finished(code if isinstance(code, int) else 0, captured.out, captured.err)

    return run


PLAN = """
[columns.age]
kind = "numeric"
low = 17
high = 90
role = "insensitive"

[columns.job]
kind = "categorical"
levels = ["office", "field, sea", "none"]
role = "insensitive"

[columns.sex]
kind = "categorical"
levels = ["F", "M"]

[label]
name = "rich"
levels = ["no", "yes"]
role = "insensitive"

[privacy]
epsilon = 2.0
delta = 1e-4

[privacy.distances]
age = 0.2
rich = 0.1

[training]
steps = 20
"""


def rows(n: int, seed: int = 0) -> list[list[str]]:
    """Records as text: age, job, sex, rich."""
    rng = np.random.default_rng(seed)
    age = rng.integers(17, 91, n)
    jobs = rng.choice(["office", "field, sea", "none"], n)
    sex = rng.choice(["F", "M"], n)
    rich = np.where(age + rng.normal(0, 8, n) > 50, "yes", "no")
    return [list(map(str, row)) for row in zip(age, jobs, sex, rich)]


def as_csv(
    table: list[list[str]], header: str = "age,job,sex,rich", separator: str = ",", end: str = "\n"
) -> str:
    """CSV text; values with the separator are quoted."""
    quoted = [[f'"{c}"' if separator in c else c for c in row] for row in table]
    lines = [separator.join(row) for row in quoted]
    return end.join([header.replace(",", separator), *lines]) + end


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A confirmed plan for :func:`rows`."""
    path = tmp_path / "plan.toml"
    path.write_text(PLAN, encoding="utf-8")
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """600 records."""
    path = tmp_path / "data.csv"
    path.write_text(as_csv(rows(600)), encoding="utf-8")
    return path
