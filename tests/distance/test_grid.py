"""Public grids: bins with spikes, groups, joint tuples, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from corrdp.distance.advice import USEFUL, coarser_grid, expected_excess, outgrown_message
from corrdp.distance.grid import axis, axis_codes, level_names, sensitive_axis, table_specs
from corrdp.errors import ConfigurationError, SchemaError
from corrdp.records import read_label, read_records
from corrdp.schema import Categorical, Group, Label, Numeric, Schema

SPIKED = Numeric(0, 100, role="insensitive", bins=(0, 0, 50, 100), resolution="binned")


def make_schema(label_role="insensitive", **columns):
    base = {
        "s": Categorical(("a", "b"), role="sensitive"),
        "u": Categorical(("x", "y", "z"), role="insensitive"),
    }
    return Schema({**base, **columns}, Label("y", (0, 1), role=label_role))


def codes_of(schema, columns, table, y):
    records = read_records(table, schema)
    label = read_label(y, schema.label, records.size)
    grid = axis(schema, columns)
    return axis_codes(grid, schema, records, label), level_names(grid, schema)


def test_joint_codes_follow_the_names():
    schema = make_schema()
    table = {"s": ["a", "b", "a", "b"], "u": ["x", "z", "y", "x"]}
    codes, names = codes_of(schema, ("u", "s", "y"), table, [0, 1, 1, 0])
    expected = ["x, a, 0", "z, b, 1", "y, a, 1", "x, b, 0"]
    assert [names[code] for code in codes] == expected
    assert len(names) == 12


def test_bins_hold_their_upper_edge_and_a_spike_is_its_own_bin():
    schema = make_schema(gain=SPIKED)
    values = [0, 0.001, 50, 50.5, 100, 250, -3]
    table = {"s": ["a"] * 7, "u": ["x"] * 7, "gain": values}
    codes, names = codes_of(schema, ("gain",), table, [0] * 7)
    assert [names[code] for code in codes] == [
        "=0", "0–50", "0–50", "50–100", "50–100", "50–100", "=0",
    ]  # fmt: skip


def test_default_bins_are_ten_public_widths():
    schema = make_schema(age=Numeric(0, 10, role="insensitive", resolution="binned"))
    grid = axis(schema, ("age",))
    assert grid.size == 10
    assert level_names(grid, schema)[0] == "0–1"


def test_a_column_with_one_bin_is_an_error_and_never_distance_zero():
    with pytest.raises(SchemaError, match="single bin"):
        Numeric(0, 10, role="insensitive", bins=(0, 10))


def test_numeric_columns_need_a_choice_of_resolution():
    exact = Numeric(0, 10, role="insensitive")
    schema = make_schema(age=exact)
    with pytest.raises(ConfigurationError, match=r"'age'.*assume-smooth"):
        table_specs(schema, "binned")
    specs = {spec.name: spec for spec in table_specs(schema, "assume-smooth")}
    assert specs["age"].resolution == "assume-smooth"
    assert specs["u"].resolution is None and specs["y"].resolution is None
    binned = {spec.name: spec for spec in table_specs(schema.binned(), "binned")}
    assert binned["age"].resolution == "binned"
    again = {spec.name: spec for spec in table_specs(schema.binned(), "assume-smooth")}
    assert again["age"].resolution == "binned"


def test_a_group_with_listed_values_is_one_axis():
    schema = Schema(
        {
            "s": Categorical(("a", "b"), role="sensitive"),
            "school": Categorical(("low", "high"), role="insensitive"),
            "years": Numeric(0, 20, role="insensitive"),
        },
        Label("y", (0, 1), role="public"),
        (Group(("school", "years"), (("low", 8), ("high", 12), ("high", 16)), ("low", 8)),),
    )
    table = {
        "s": ["a", "b", "a", "b"],
        "school": ["high", "low", "high", "low"],
        "years": [16, 8, 12, 16],  # the last pair is not listed
    }
    codes, names = codes_of(schema, ("school", "years"), table, [0, 1, 0, 1])
    assert codes.tolist() == [2, 0, 1, 0]
    assert names == ["low & 8", "high & 12", "high & 16"]
    (spec,) = table_specs(schema, "binned")  # listed values are exact: no bins involved
    assert spec.name == "school+years" and spec.resolution is None and spec.shape == (1, 3, 2)
    both, joint = codes_of(schema, ("school", "years", "s"), table, [0, 1, 0, 1])
    assert joint[both[0]] == "high & 16, a" and len(joint) == 6


def test_a_group_without_a_list_is_a_product():
    schema = Schema(
        {
            "s": Categorical(("a", "b"), role="sensitive"),
            "one": Categorical(("p", "q"), role="insensitive"),
            "two": SPIKED,
        },
        Label("y", (0, 1)),
        (Group(("one", "two")),),
    )
    (spec,) = table_specs(schema, "binned")
    assert spec.shape == (1, 6, 4)  # a sensitive label doubles the cells
    assert spec.resolution == "binned"


def test_numeric_labels_are_measured_on_ten_bins():
    columns = {"s": Categorical(("a", "b")), "u": Categorical(("x", "y"), role="insensitive")}
    schema = Schema(columns, Label("pay", low=0, high=100, role="insensitive"))
    with pytest.raises(ConfigurationError, match="pay"):
        table_specs(schema, "binned")
    specs = table_specs(schema, "assume-smooth")
    assert [(s.name, s.shape) for s in specs] == [("u", (1, 2, 2)), ("pay", (1, 10, 2))]
    sensitive = Schema(columns, Label("pay", low=0, high=100))
    assert sensitive_axis(sensitive).size == 20


def test_public_columns_become_strata():
    schema = make_schema("public", region=Categorical(("n", "s"), role="public"))
    (spec,) = table_specs(schema, "binned", ("region", "y"))
    assert spec.shape == (4, 3, 2)
    table = {"s": ["a", "b"], "u": ["z", "x"], "region": ["s", "n"]}
    records = read_records(table, schema)
    rows = spec.rows(schema, records, read_label([1, 0], schema.label, 2))
    assert rows.tolist() == [3 * 3 + 2, 0]


def test_nothing_sensitive_or_a_single_cell_is_refused():
    columns = {"u": Categorical(("x", "y"), role="insensitive")}
    schema = Schema(columns, Label("y", (0, 1), role="insensitive"))
    with pytest.raises(ConfigurationError, match="1 joint value"):
        table_specs(schema, "binned")


def test_a_table_that_does_not_fit_into_memory_is_refused_by_name():
    fine = Numeric(0, 1, role="sensitive", bins=tuple(np.linspace(0, 1, 300).tolist()))
    schema = make_schema(p=fine, q=fine, r=fine)
    with pytest.raises(ConfigurationError, match=r"'u'.*coarser"):
        table_specs(schema, "binned")


def test_advice_names_the_column_and_a_grid_that_would_do():
    fine = Numeric(0, 1, role="sensitive", bins=tuple(np.linspace(0, 1, 101).tolist()))
    schema = make_schema(dose=fine)
    grown = [coarser_grid(s, 4000, 0.05) for s in table_specs(schema, "binned")]
    assert grown[0] is not None and grown[0].spec.name == "u"
    assert expected_excess(4000, 3, grown[0].most_cells, 0.05) <= USEFUL
    assert expected_excess(4000, 3, grown[0].most_cells + 1, 0.05) > USEFUL
    message = outgrown_message(schema, [g for g in grown if g], 4000)
    assert "'u'" in message and "bins for 'dose'" in message and "200 sensitive cells" in message
    bins = int(message.split(" bins for")[0].split()[-1])
    assert 2 * bins <= grown[0].most_cells < 2 * (bins + 1)
    assert all(coarser_grid(s, 10**7, 0.05) is None for s in table_specs(schema, "binned"))


def test_advice_without_a_numeric_column_or_without_any_grid():
    levels = Categorical(tuple(f"l{i}" for i in range(60)), role="sensitive")
    schema = make_schema(code=levels)
    grown = [g for g in (coarser_grid(s, 3000, 0.05) for s in table_specs(schema, "binned")) if g]
    assert "merge sensitive levels" in outgrown_message(schema, grown, 3000)
    hopeless = [g for g in (coarser_grid(s, 5, 0.05) for s in table_specs(schema, "binned")) if g]
    assert "more records" in outgrown_message(schema, hopeless, 5)
    assert expected_excess(5, 3, 120, 0.05) == 1.0
    assert expected_excess(10**6, 3, 10, 0.05, 50.0) > expected_excess(10**6, 3, 10, 0.05)
