"""Reading against a schema: types, options, profiles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from corrdp.errors import ConfigurationError, DataError
from corrdp.schema import Categorical, Ignored, Label, Numeric, Schema
from corrdp.tables import FileOptions, column_chunks, read_table
from corrdp.tables.csv_file import CHUNK_ROWS
from corrdp.tables.profile import ColumnProfile, profile_columns

SCHEMA = Schema(
    {"x": Numeric(0, 10), "c": Categorical(["1", "2", "b"]), "z": Ignored()}, Label("y", [0, 1])
)


def write(folder: Path, text: str) -> Path:
    path = folder / "t.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_types_and_label(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "z,c,x,y\nq, 1 ,3.5,0\nq,b,,1\n"), SCHEMA)
    assert list(table.columns) == ["x", "c"]
    np.testing.assert_array_equal(table.columns["x"], [3.5, np.nan])
    assert table.columns["c"].tolist() == ["1", "b"]
    assert table.label is not None
    assert table.label.tolist() == ["0", "1"]


def test_a_level_written_as_a_decimal_is_the_declared_one(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "z,c,x,y\nq,2.0,1,1.0\nq,02,1,0\n"), SCHEMA)
    assert table.columns["c"].tolist() == ["2", "2"]
    assert table.label is not None
    assert table.label.tolist() == ["1", "0"]


def test_the_label_is_not_read_for_scoring(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "z,c,x\nq,b,1\n"), SCHEMA, label="ignored")
    assert table.label is None
    assert table.size == 1


def test_marks_and_decimals(tmp_path: Path) -> None:
    options = FileOptions(decimal=",", separator=";", missing=("NA", "9"))
    table = read_table(write(tmp_path, "z;c;x;y\nq;b;2,5;0\nq;NA;9;1\n"), SCHEMA, options)
    np.testing.assert_array_equal(table.columns["x"], [2.5, np.nan])
    assert table.columns["c"].tolist() == ["b", ""]


def test_records_across_chunks(tmp_path: Path) -> None:
    n = 2 * CHUNK_ROWS + 5
    lines = "".join(f"q,b,{i % 11},{i % 2}\n" for i in range(n))
    table = read_table(write(tmp_path, "z,c,x,y\n" + lines), SCHEMA)
    np.testing.assert_array_equal(table.columns["x"], np.arange(n) % 11)


def test_an_error_in_a_late_chunk_names_its_line(tmp_path: Path) -> None:
    lines = "q,b,1,0\n" * (CHUNK_ROWS + 3)
    path = write(tmp_path, "z,c,x,y\n\n" + lines + "q,b,one,0\n")
    with pytest.raises(DataError, match=rf"line {CHUNK_ROWS + 6}: column 'x' holds 'one'"):
        read_table(path, SCHEMA)


def test_names_that_the_file_has_too_are_its_header(tmp_path: Path) -> None:
    options = FileOptions(names=("z", "c", "x", "y"))
    with_header = read_table(write(tmp_path, "z,c,x,y\nq,b,1,0\n"), SCHEMA, options)
    without = read_table(write(tmp_path, "q,b,1,0\n"), SCHEMA, options)
    assert with_header.size == without.size == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"skip_rows": -1},
        {"skip_rows": 1.5},
        {"separator": "ab"},
        {"separator": '"'},
        {"decimal": "x"},
        {"names": ["a", "a"]},
        {"names": ["a", ""]},
        {"names": "ab"},
        {"missing": "NA"},
        {"encoding": "utf-8"},
    ],
)
def test_wrong_options(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        FileOptions.from_dict(wrong)


def test_options_override_each_other() -> None:
    stored = FileOptions(names=("a", "b"), separator=";", skip_rows=2)
    given = FileOptions(separator=",")
    assert stored.overridden(given) == FileOptions(("a", "b"), 2, ",")
    assert FileOptions.from_dict(stored.to_dict()) == stored


@pytest.mark.parametrize(
    ("cells", "shape"),
    [
        (["1", "2", "3"], "number"),
        (["1.5", "2", "1e3"], "number"),
        (["0", "1", "1"], "levels"),
        (["a", "b", "a"], "levels"),
        (["01", "02", "01"], "levels"),
        (["1", "2", "NA", "3"], "number"),
        (["1", "x", "1"], "levels"),
        (["inf", "1", "2"], "levels"),
        (["7", "7"], "constant"),
        (["", ""], "empty"),
        ([str(i) for i in range(100)], "id"),
        ([f"{i}.5" for i in range(100)], "number"),
        ([f"p{i}" for i in range(100)], "id"),
        ([f"p{i % 90}" for i in range(100)], "text"),
        (["2020-01-02", "2021-01-02", "2020-01-02"], "date"),
        (["1.2.2020", "2.2.2020", "1.2.2020"], "date"),
    ],
)
def test_shapes(cells: list[str], shape: str) -> None:
    profile = ColumnProfile("c")
    for start in range(0, len(cells), 40):
        profile.update(cells[start : start + 40])
    assert profile.shape == shape


def test_profile_of_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b\n1,x\n,x\n-3,y\n")
    file, chunks = column_chunks(path)
    a, b = profile_columns(chunks)
    assert file is not None
    assert (a.low, a.high, a.missing, a.size) == (-3, 1, 1, 3)
    assert b.level_list(()) == ["x", "y"]
