"""Any kind of table becomes checked columns, or an error that names the column and the mend."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrdp.errors import DataError
from corrdp.records import bin_index, bin_middle, read_label, read_records, table_columns
from corrdp.schema import Categorical, Column, Group, Ignored, Label, Numeric, Schema

Y = Label("y", [0, 1])


def read(values: Any, column: Column) -> list[Any]:
    """One column read from a mapping."""
    return read_table({"x": values}, column)


def read_table(table: Any, column: Column) -> list[Any]:
    return read_records(table, Schema({"x": column}, Y)).columns["x"].tolist()


NUMBER = Numeric(0, 10, missing=5)
STRICT = Numeric(0, 10)
LETTER = Categorical(["a", "b"], missing="b")

NUMBERS_WITH_GAP = {
    "list": [1, None, 3],
    "nan": np.array([1, np.nan, 3]),
    "text": ["1", "", " 3 "],
    "blank": ["1", "  ", "3"],
    "masked": np.ma.array([1, 99, 3], mask=[0, 1, 0]),
    "pandas object": pd.Series([1, pd.NA, 3], dtype=object),
    "pandas NaT": pd.Series([1, pd.NaT, 3], dtype=object),
    "pandas Int64": pd.Series([1, None, 3], dtype="Int64"),
    "pandas Float64": pd.Series([1, None, 3], dtype="Float64"),
    "pandas arrow": pd.Series([1, None, 3], dtype="int64[pyarrow]"),
    "pandas arrow text": pd.Series(["1", None, "3"], dtype="string[pyarrow]"),
    "pandas text": pd.Series(["1", None, "3"], dtype="string[python]"),
    "polars": pl.Series([1, None, 3]),
    "polars nan": pl.Series([1.0, float("nan"), 3.0]),
    "polars decimal": pl.Series([decimal.Decimal(1), None, decimal.Decimal(3)]),
    "arrow": pa.chunked_array([[1, None], [3]]),
    "arrow uint8": pa.array([1, None, 3], type=pa.uint8()),
}


def in_frames(values: Any) -> list[Any]:
    """The column in the kind of table that it belongs to."""
    tables: list[Any] = [{"x": values}]
    if isinstance(values, pd.Series):
        tables.append(pd.DataFrame({"x": values}))
    elif isinstance(values, pl.Series):
        tables.append(pl.DataFrame({"x": values}))
    elif isinstance(values, (pa.Array, pa.ChunkedArray)):
        tables.append(pa.table({"x": values}))
    return tables


@pytest.mark.parametrize("values", NUMBERS_WITH_GAP.values(), ids=NUMBERS_WITH_GAP.keys())
def test_missing_number(values: Any) -> None:
    for table in in_frames(values):
        assert read_table(table, NUMBER) == [1, 5, 3]
        with pytest.raises(DataError, match=r"column 'x' has 1 missing value\(s\), the first in"):
            read_table(table, STRICT)


LETTERS_WITH_GAP = {
    "list": ["a", None, "b"],
    "nan": np.array(["a", np.nan, "b"], dtype=object),
    "padded": [" a", "", "b  "],
    "masked": np.ma.array(["a", "z", "b"], mask=[0, 1, 0]),
    "text dtype": np.array(["a", "", "b"], dtype=np.dtypes.StringDType()),
    "pandas": pd.Series(["a", None, "b"]),
    "pandas object": pd.Series(["a", pd.NA, "b"], dtype=object),
    "pandas category": pd.Series(["a", None, "b"], dtype="category"),
    "pandas arrow": pd.Series(["a", None, "b"], dtype="string[pyarrow]"),
    "pandas python": pd.Series(["a", None, "b"], dtype="string[python]"),
    "polars": pl.Series(["a", None, "b"]),
    "polars category": pl.Series(["a", None, "b"], dtype=pl.Categorical),
    "polars enum": pl.Series(["a", None, "b"], dtype=pl.Enum(["b", "a"])),
    "arrow": pa.chunked_array([["a", None], ["b"]]),
    "arrow dictionary": pa.array(["a", None, "b"]).dictionary_encode(),
    "arrow large": pa.array(["a", None, "b"], type=pa.large_string()),
    "arrow view": pa.array(["a", None, "b"], type=pa.string_view()),
}


@pytest.mark.parametrize("values", LETTERS_WITH_GAP.values(), ids=LETTERS_WITH_GAP.keys())
def test_missing_level(values: Any) -> None:
    for table in in_frames(values):
        assert read_table(table, LETTER) == [0, 1, 1]
        with pytest.raises(DataError, match="column 'x' has missing values; declare missing="):
            read_table(table, Categorical(["a", "b"]))


# Numbers


def test_clamped() -> None:
    huge = [-1e308, -1, 0, 10, 11, 10**30, -(10**400), 10**400]
    assert read(huge, STRICT) == [0, 0, 0, 10, 10, 10, 0, 10]
    assert read(np.array([True, False]), STRICT) == [1, 0]
    assert read([decimal.Decimal("1.5"), np.float32(0.25)], STRICT) == [1.5, 0.25]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, np.inf], "infinite value in record 1"),
        (["1", "-inf"], "infinite value in record 1"),
        (["1", "abc"], "'abc', not a number"),
        ([1, "a\nb"], r"'a\\nb', not a number"),
        (np.array(["2020"], dtype="M8[D]"), r"datetime64\[D\], not numbers"),
        (np.array([1], dtype="m8[s]"), "timedelta64"),
        (np.array([1j]), "complex128, not numbers"),
        (np.array([1j], dtype=object), "not a number"),
        (np.array([b"1"]), "S1, not numbers"),
        ([b"1", 2], "not a number|not numbers"),
        ([datetime.date(2020, 1, 1)], "'2020-01-01', not a number"),
        ([[1], [1, 2]], "column 'x' is ragged"),
        ([[1, 2]], r"column 'x' must be one-dimensional, got shape \(1, 2\)"),
        (3, "column 'x' must be one-dimensional"),
        (None, "column 'x' must be one-dimensional"),
        ("abc", "column 'x' must be one-dimensional"),
        ([], "the table has no records"),
        (pl.Series([[1, 2]]), "not a number"),
        (pd.period_range("2020", periods=1), "not a number"),
        (["x" * 200], "'x{40}'"),
    ],
)
def test_no_numbers(values: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(values, NUMBER)
    assert "\n" not in str(caught.value)


# Levels


@pytest.mark.parametrize(
    ("levels", "values", "codes"),
    [
        ([0, 1], [1, 0], [1, 0]),
        ([0, 1], [1.0, -0.0], [1, 0]),
        ([0, 1], ["1", "0"], [1, 0]),
        ([0, 1], [True, False], [1, 0]),
        ([0, 1], np.array([True, 0], dtype=object), [1, 0]),
        (["0", "1"], [True, False], [1, 0]),
        ([True, False], [True, False], [0, 1]),
        ([True, False], ["True", "False"], [0, 1]),
        ([1, True], np.array([True, 1, 1, True], dtype=object), [1, 0, 0, 1]),
        ([1, True], np.array([1, True], dtype=object), [0, 1]),
        ([0.1, 2], np.array([0.1, 2], dtype=np.float32), [0, 1]),
        ([0.1, 2], np.array([np.float32(0.1), 2.0], dtype=object), [0, 1]),
        ([2**53, 2**53 + 1], [2**53 + 1, 2**53], [1, 0]),
        ([2**64, 2**64 + 1], [2**64 + 1, 2**64], [1, 0]),
        ([" a", "a"], ["a", " a", "a "], [1, 0, 1]),
        ([" <=50K", " >50K"], [" >50K", " <=50K"], [1, 0]),
        (["None", "nan"], ["nan", "None"], [1, 0]),
        ([1, 2], pd.Series([2, None, 1], dtype="Int64").dropna(), [1, 0]),
        ([1, 2], pd.Series([2, 1], dtype="category"), [1, 0]),
        ([True, False], pd.Series([False, True], dtype="boolean"), [1, 0]),
        ([1, 2], [decimal.Decimal("2.0"), decimal.Decimal(1)], [1, 0]),
    ],
)
def test_levels(levels: Any, values: Any, codes: list[int]) -> None:
    assert read(values, Categorical(levels)) == codes


def test_order_of_first_sight_does_not_matter() -> None:
    """1 == True in Python: which of them comes first must not decide the other's level."""
    column = Categorical([1, True])
    mixed = np.array([1, True, "1", "True", 1.0], dtype=object)
    assert read(mixed, column) == [0, 1, 0, 1, 0]
    assert read(mixed[::-1], column) == [0, 1, 0, 1, 0][::-1]


def test_undeclared_level() -> None:
    assert read(["a", "z", "q"], Categorical(["a"], other=True)) == [0, 1, 1]
    with pytest.raises(DataError, match=r"column 'x': level 'z' is not declared; add it .* other="):
        read(["a", "z"], LETTER)
    with pytest.raises(DataError, match="level 'True' is not declared"):
        read([True], Categorical(["a", "b"]))


@pytest.mark.parametrize("other", [True, False])
@pytest.mark.parametrize(
    "values",
    [
        np.array([b"a"]),
        [b"a", "a"],
        np.array([1j]),
        np.array(["2020"], dtype="M8[D]"),
        np.array([datetime.date(2020, 1, 1)], dtype=object),
        pl.Series([["a"]]),
        pl.Series([datetime.time(1)]),
        pa.array([b"a"]),
        pd.Series([("a",), "b"]),
    ],
)
def test_no_levels(values: Any, other: bool) -> None:
    """Values of a wrong type are a mistake, never silently ``other``."""
    column = Categorical(["a", "b", "c"], other=other)
    with pytest.raises(DataError, match=r"column 'x' holds|level .b'a'. is not"):
        if isinstance(values, list):
            values = np.array(values, dtype=object)
        read(values, column)


# Tables

SCHEMA = Schema({"a": STRICT, "i": Ignored(), "b": LETTER}, Y)
ROWS = {"a": [1, 2], "i": ["x", "y"], "b": ["b", "a"]}


@pytest.mark.parametrize(
    "table",
    [
        ROWS,
        {"b": ROWS["b"], "a": ROWS["a"]},
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS)[["b", "i", "a"]].set_index(pd.Index([7, 3])),
        pl.DataFrame(ROWS),
        pa.table(ROWS),
        np.array([[1, "x", "b"], [2, "y", "a"]], dtype=object),
        np.array([[1, "b"], [2, "a"]], dtype=object),
        [[1, "b"], [2, "a"]],
        [["1", "b"], ["2", "a"]],
    ],
    ids=lambda table: type(table).__module__.split(".")[0],
)
def test_kinds_of_tables(table: Any) -> None:
    records = read_records(table, SCHEMA)
    assert {name: column.tolist() for name, column in records.columns.items()} == {
        "a": [1, 2],
        "b": [1, 0],
    }
    assert records.size == 2
    assert repr(records) == "Records(columns=['a', 'b'], size=2)"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": [1]}, r"in the schema but not in the table: \['b'\]"),
        ({**ROWS, "z": [1, 2]}, r"in the table but not in the schema: \['z'\]"),
        ({"a": [1], "z": [1]}, r"not in the table: \['b'\]; in the table but not"),
        ({**ROWS, "y": [0, 1]}, "the label 'y' stands in the table: pass it as y alone"),
        ({**ROWS, "a": [1]}, "columns have different lengths"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than once"),
        (pa.table([[1], [2]], names=["a", "a"]), "more than once"),
        (pd.DataFrame([[1, 2]], columns=[0, "0"]), r"\['0'\] more than once"),
        ({0: [1], "0": [1]}, r"\['0'\] more than once"),
        (pd.DataFrame({"a": [], "b": []}), "the table has no records"),
        (pl.DataFrame({"a": [], "b": []}), "the table has no records"),
        (np.empty((0, 2)), "the table has no records"),
        (np.zeros(3), "two-dimensional array, got 1"),
        (np.zeros((2, 5)), "the array has 5 columns, the schema 2 used ones"),
        ([[1], [1, 2]], "the table is ragged"),
        ([], "cannot read a table from list"),
        (None, "cannot read a table from NoneType"),
        ("data.csv", "cannot read a table from str"),
        (pd.Series([1, 2]), "cannot read a table from Series"),
        (pl.LazyFrame(ROWS), "cannot read a table from LazyFrame"),
    ],
)
def test_no_table(table: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        table_columns(table, SCHEMA)
    assert "\n" not in str(caught.value)


def test_numbers_as_column_names() -> None:
    schema = Schema({"0": STRICT, "1": STRICT}, Y)
    frame = pd.DataFrame([[1, 2]])
    assert read_records(frame, schema).columns["1"].tolist() == [2]


def test_ignored_columns_are_never_looked_at() -> None:
    class Untouchable:
        def __eq__(self, other: object) -> bool:
            raise AssertionError("looked at")

        __hash__ = None  # type: ignore[assignment]

    bad = np.array([Untouchable()] * 2, dtype=object)
    assert read_records({**ROWS, "i": bad}, SCHEMA).size == 2


# Labels

# PyArrow itself reads the missing entry of a dictionary as its last level
GAP = pa.chunked_array([pa.array([0, None]).dictionary_encode()])


@pytest.mark.parametrize(
    "values",
    [
        [0, 1],
        (0, 1),
        range(2),
        [[0], [1]],
        [False, True],
        ["0", "1"],
        np.array([0.0, 1.0]),
        np.array([[0], [1]]),
        pd.Series([0, 1], index=[5, 6]),
        pd.DataFrame({"any": [0, 1]}),
        pl.Series([0, 1]),
        pl.DataFrame({"y": [0, 1]}),
        pa.chunked_array([[0, 1]]),
        pd.Series([0, 1], dtype="category"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_labels(values: Any) -> None:
    assert read_label(values, Y, 2).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (None, "pass a series, list or NumPy array"),
        (5, "pass a series, list or NumPy array"),
        ("01", "pass a series, list or NumPy array"),
        (iter([0, 1]), "pass a series, list or NumPy array"),
        ([0], "has 1 values for 2 records"),
        ([[0, 1], [1, 0]], "must be one-dimensional"),
        ([[0], [0, 1]], "ragged"),
        ([None, 1], "label 'y' has missing values; drop these records"),
        ([np.nan, 1], "label 'y' has missing values; drop these records"),
        (np.ma.array([0, 1], mask=[0, 1]), "has missing values"),
        (GAP, "has missing values"),
        (pa.table({"y": GAP}), "has missing values"),
        (pa.table({"y": [0, 1], "z": [0, 1]}), "must be one-dimensional"),
        ([0, 2], "label 'y': level '2' is not declared; add it to levels$"),
        (np.array(["2020", "2021"], dtype="M8[Y]"), "holds datetime64"),
    ],
)
def test_bad_labels(values: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_label(values, Y, 2)


def test_numeric_label() -> None:
    label = Label("y", low=0, high=2)
    assert read_label([-1, 1, 10**400], label, 3).tolist() == [0, 1, 2]
    for bad, message in (
        ([None, 1], "1 missing value.* drop these records"),
        ([np.inf, 1], "infinite"),
        (["a", 1], "not a number"),
        ([1j, 1], "complex"),
    ):
        with pytest.raises(DataError, match=message):
            read_label(bad, label, 2)


# Groups


def test_undeclared_joint_value_is_replaced() -> None:
    schema = Schema(
        {"edu": Categorical(["low", "high"]), "years": Numeric(0, 20)},
        Y,
        [Group(("edu", "years"), [("low", 8), ("high", 16)], ("low", 8))],
    )
    table = {"edu": ["low", "high", "low", "high"], "years": [8, 16, 16, 3]}
    records = read_records(table, schema)
    assert records.columns["edu"].tolist() == [0, 1, 0, 0]
    assert records.columns["years"].tolist() == [8, 16, 8, 8]
    assert table["years"] == [8, 16, 16, 3]


def test_group_with_an_undeclared_level() -> None:
    pair = [Group(("a", "b"), [("p", 0), ("z", 1)], ("p", 0))]
    schema = Schema({"a": Categorical(["p", "q"]), "b": Categorical([0, 1])}, Y, pair)
    with pytest.raises(DataError, match=r"group 'a\+b', column 'a': level 'z' is not declared"):
        read_records({"a": ["p"], "b": [0]}, schema)


# Bins


def test_bins() -> None:
    column = Numeric(0, 10, bins=(0, 0, 5, 5, 10))
    values = np.array([0, 1e-9, 4, 5, 5.5, 10])
    assert bin_index(values, column).tolist() == [0, 1, 1, 2, 3, 3]
    assert bin_middle(column).tolist() == [0, 2.5, 5, 7.5]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.integers(2, 6), st.booleans())
def test_every_value_lies_in_its_bin(values: list[float], bins: int, spike: bool) -> None:
    edges = np.linspace(0, 1, bins + 1).tolist()
    column = Numeric(0, 1, bins=[0.0, *edges] if spike else edges)
    index = bin_index(np.array(values), column)
    lower, upper = np.array(column.edges)[:-1][index], np.array(column.edges)[1:][index]
    assert ((lower <= values) & (values <= upper)).all()


# Whatever comes in: inside the domain or a one-line error

ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**25), 10**25),
    st.floats(),
    st.text(max_size=4),
    st.binary(max_size=3),
    st.decimals(),
    st.dates(),
    st.just(pd.NA),
    st.just(pd.NaT),
    st.sampled_from(["a", "b", " a", "0", "1", "nan"]),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(ANYTHING, min_size=1, max_size=4),
    st.sampled_from([NUMBER, STRICT, LETTER, Categorical([0, 1, "a"], other=True, missing="a")]),
    st.booleans(),
)
def test_inside_the_domain_or_refused(values: list[Any], column: Any, as_object: bool) -> None:
    table = np.empty(len(values), dtype=object)
    table[:] = values
    try:
        codes = read(table if as_object else table.tolist(), column)
    except DataError as error:
        assert "'x'" in str(error)
        assert "\n" not in str(error)
        return
    if isinstance(column, Numeric):
        assert all(column.low <= code <= column.high for code in codes)
    else:
        assert all(code in range(column.domain_size) for code in codes)
