"""Rows, intervals and paired differences."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from corrdp.errors import DataError
from corrdp.experiments.results import Results, Row, estimate, read_rows, write_rows

TABLE = ("toy", "insensitive")


def row(method: str, epsilon: float, seed: int, value: float, metric: str = "loss") -> Row:
    return Row(*TABLE, method, epsilon, 1e-6, seed, metric, value)


def test_interval_is_students() -> None:
    # 1, 2, 3: mean 2, standard deviation 1, t(.975, 2) = 4.302653
    found = estimate([1.0, 2.0, 3.0])
    assert found.mean == 2.0
    assert found.half == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)


def test_interval_covers_at_its_rate() -> None:
    rng = np.random.default_rng(0)
    found = [estimate(list(rng.normal(1.0, 2.0, 5))) for _ in range(2_000)]
    covered = np.mean([one.low <= 1.0 <= one.high for one in found])
    narrow = np.mean([abs(one.mean - 1.0) <= 0.5 * one.half for one in found])
    assert 0.93 < covered < 0.97
    assert narrow < 0.9


def test_single_and_infinite_values_have_no_interval() -> None:
    assert math.isnan(estimate([0.5]).half)
    assert estimate([0.5]).low == 0.5
    assert estimate([math.inf, math.inf]).text() == "∞"
    assert estimate([]).text() == "–"


def test_rows_survive_a_file(tmp_path: Path) -> None:
    rows = (row("DP", 0.1, 0, 0.1 + 0.2), row("partial", math.inf, 0, -1.5))
    rows += (row("semi", 1.0, 3, math.inf),)
    write_rows(rows, tmp_path / "results.csv")
    assert read_rows(tmp_path / "results.csv") == rows
    assert read_rows(tmp_path / "nothing.csv") == ()


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "", "dataset,label_role\n"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"results\.csv"):
        read_rows(path)


def test_differences_are_paired_by_seed() -> None:
    values = {"DP": (1.0, 5.0, 9.0), "CorrDP": (0.5, 4.5, 8.5)}
    rows = [row(m, 0.1, s, v) for m, found in values.items() for s, v in enumerate(found)]
    results = Results((*rows, row("CorrDP", 0.1, 7, 99.0), row("partial", math.inf, 0, 2.0)))
    found = results.difference(TABLE, ("CorrDP", "DP"), 0.1, "loss")
    assert (found.mean, found.half, found.runs) == (-0.5, 0.0, 3)
    # one run without noise pairs with every seed
    alone = results.difference(TABLE, ("DP", "partial"), 0.1, "loss")
    assert (alone.mean, alone.runs) == (3.0, 3)


def test_ways_without_noise_answer_for_every_epsilon() -> None:
    results = Results((row("DP", 0.1, 0, 1.0), row("partial", math.inf, 0, 2.0)))
    assert results.epsilons(TABLE) == (0.1,)
    assert results.estimate(TABLE, "partial", 0.1, "loss").mean == 2.0
    assert results.estimate(TABLE, "DP", 0.5, "loss").runs == 0
