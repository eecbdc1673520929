"""Drafts: everything from the file is unconfirmed, rounded outward, and valid TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrdp.draft import draft_plan, outward
from corrdp.errors import ConfigurationError, DataError
from corrdp.plan_file import read_plan
from corrdp.tables import FileOptions

finite = st.floats(-1e12, 1e12, allow_subnormal=False)


@given(finite, finite)
def test_outward_never_cuts(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    if low < high:
        below, above = outward(low, high)
        assert below <= low < high <= above
        assert above - below <= 3 * (high - low)


def draft(folder: Path, text: str, label: str = "y") -> str:
    path = folder / "data.csv"
    path.write_text(text, encoding="utf-8")
    return draft_plan(path, label, FileOptions(), "private").text


BODY = "".join(f"{i % 37},{'ab'[i % 2]},{i % 3 % 2}\n" for i in range(200))


def test_nothing_from_the_file_is_confirmed(tmp_path: Path) -> None:
    text = draft(tmp_path, "x,c,y\n" + BODY)
    plain = tomllib.loads(text)
    entries = [*plain["columns"].values(), plain["label"]]
    assert all(entry["confirmed"] is False and entry["role"] == "sensitive" for entry in entries)
    with pytest.raises(ConfigurationError, match="'x', 'c', 'y'"):
        read_plan(text)
    assert read_plan(text.replace("confirmed = false", "confirmed = true")).model == "logistic"
    assert max(map(len, text.splitlines())) <= 100


def test_delta_is_below_one_over_n(tmp_path: Path) -> None:
    plain = tomllib.loads(draft(tmp_path, "x,c,y\n" + BODY))
    assert plain["privacy"]["delta"] == 1e-4
    assert plain["privacy"]["distances"] == "private"


def test_a_numeric_label_gets_bounds_and_ridge(tmp_path: Path) -> None:
    plain = tomllib.loads(draft(tmp_path, "x,c,y\n" + BODY, label="x"))
    assert (plain["label"]["low"], plain["label"]["high"]) == (0, 40)
    assert plain["training"]["model"] == "ridge"


def test_a_label_that_differs_in_every_row_is_a_number(tmp_path: Path) -> None:
    body = "".join(f"{i * 3},{'ab'[i % 2]}\n" for i in range(100))
    assert tomllib.loads(draft(tmp_path, "y,c\n" + body))["label"]["high"] == 300


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=2, max_size=4))
def test_any_name_and_level_survives(texts: list[str]) -> None:
    from corrdp.draft import _key, _listed, _text

    for text in texts:
        assert tomllib.loads(f"[columns.{_key(text)}]\n")["columns"] == {text: {}}
        assert tomllib.loads(f"a = {_text(text)}")["a"] == text
    repeated = texts * 12
    assert tomllib.loads("\n".join(_listed("a", repeated)))["a"] == repeated


def test_missing_label_and_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'x', 'c', 'y'"):
        draft(tmp_path, "x,c,y\n" + BODY, label="target")
    with pytest.raises(DataError, match="check the path"):
        draft_plan(tmp_path / "gone.csv", "y", FileOptions())
