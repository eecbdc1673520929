"""All columns of a schema from unprotected records: Adult's values, sources, bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from corrdp.datasets import load_adult, make_parity
from corrdp.distance import Distances, distance_rows, estimate_distances
from corrdp.distance.bounds import plug_in
from corrdp.distance.counting import contingency_table
from corrdp.distance.summary import level_distances, reading
from corrdp.errors import ConfigurationError, DataError, SchemaError, UtilityWarning
from corrdp.schema import Categorical, Label, Numeric, Schema
from tests.conftest import load_oracle


def make_schema(**more):
    columns = {
        "s": Categorical(("a", "b"), role="sensitive"),
        "u": Categorical(("x", "y"), role="insensitive"),
        **more,
    }
    return Schema(columns, Label("y", (0, 1), role="insensitive"))


def make_table(n=2000, seed=0, told=0.8):
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 2, n)
    u = np.where(rng.random(n) < told, s, 1 - s)
    table = {"s": np.array(["a", "b"])[s], "u": np.array(["x", "y"])[u]}
    return table, rng.integers(0, 2, n)


def codes(values):
    names, positions = np.unique(np.asarray(values, dtype=str), return_inverse=True)
    return names, positions.astype(np.int64)


def test_plug_in_of_adult_equals_exact_fractions(data_dir):
    frame = pd.read_csv(data_dir / "adult_train.csv")
    coded = {name: codes(frame[name]) for name in frame if name != "fnlwgt"}
    for case in load_oracle("t10_adult_plug_in.json"):
        parts = [coded[name] for name in case["sensitive"]]
        joint = np.zeros(len(frame), dtype=np.int64)
        for names, positions in parts:
            joint = joint * len(names) + positions
        cells, levels = codes(joint), coded[case["column"]]
        counts = contingency_table(levels[1], cells[1], (len(levels[0]), len(cells[0])))
        value, rows = plug_in(counts)
        assert value == pytest.approx(case["tv_plug_in"], abs=1e-12)
        assert len(levels[0]) == case["levels"]
        assert counts.sum(axis=1).min() == case["rarest_level_records"]
        matrix = level_distances(counts)
        a, b = (list(levels[0]).index(name) for name in case["pair"])
        assert matrix[a, b] == pytest.approx(matrix[rows]) == pytest.approx(value)


def test_adult_schema_gives_the_same_plug_in_and_covering_limits(data_dir, monkeypatch):
    monkeypatch.setenv("CORRDP_DATA_HOME", str(data_dir))
    adult = load_adult()
    wanted = {
        case["column"]: case["tv_plug_in"]
        for case in load_oracle("t10_adult_plug_in.json")
        if case["sensitive"] == ["race", "sex"]
    }
    kinds = ("workclass", "marital-status", "occupation", "relationship", "income")
    schema = adult.schema.binned()
    found = {
        method: estimate_distances(schema, adult.X, adult.y, source="published", method=method)
        for method in ("plug-in", "CP", "published")
    }
    for name in kinds:
        assert found["plug-in"][name].value == pytest.approx(wanted[name], abs=1e-12)
        assert wanted[name] < found["CP"][name].value <= found["published"][name].value
    assert found["CP"]["workclass"].rarest_count == 7
    assert found["CP"]["workclass"].value == pytest.approx(0.84, abs=0.005)
    assert found["published"]["workclass"].value == 1.0
    assert found["CP"]["income"].value == pytest.approx(0.28, abs=0.005)


def test_result_names_source_method_interval_and_pair():
    schema = make_schema()
    table, y = make_table()
    found = estimate_distances(schema, table, y, source="public")
    u = found["u"]
    assert (u.source, u.method) == ("public", "CP")
    assert u.low < 0.6 < u.high == u.value < 0.75
    assert set(u.pair) == {"x", "y"}
    assert u.rarest_count == min(np.unique(table["u"], return_counts=True)[1])
    assert found.gamma == 0.05 and found.assumptions == ()
    assert found["y"].high < 0.15
    assert Distances.from_dict(found.to_dict()) == found


def test_estimates_from_the_private_records_say_so():
    table, y = make_table()
    found = estimate_distances(make_schema(), table, y, source="published", method="published")
    assert any("not covered" in sentence for sentence in found.assumptions)
    assert found["u"].source == found["u"].method == "published"


def test_gamma_is_shared_by_the_tables():
    table, y = make_table()
    table["w"] = table["u"]
    two = make_schema(w=Categorical(("x", "y"), role="insensitive"))
    wide = estimate_distances(two, table, y, source="public")["u"].value
    del table["w"]
    narrow = estimate_distances(make_schema(), table, y, source="public")["u"].value
    same = estimate_distances(make_schema(), table, y, source="public", gamma=0.05 * 2 / 3)["u"]
    assert narrow < wide == pytest.approx(same.value, abs=1e-12)


def test_every_kind_of_frame_gives_the_same():
    import polars as pl
    import pyarrow as pa

    table, y = make_table()
    frames = [table, pd.DataFrame(table), pl.DataFrame(table), pa.table(table)]
    found = [estimate_distances(make_schema(), frame, y, source="public") for frame in frames]
    assert all(result == found[0] for result in found)


def test_a_declared_level_without_records_has_distance_one():
    schema = make_schema(w=Categorical(("k", "l", "never"), role="insensitive"))
    table, y = make_table()
    table["w"] = np.where(np.arange(len(y)) % 2 == 0, "k", "l")
    for method in ("auto", "plug-in", "H", "published"):
        found = estimate_distances(schema, table, y, source="public", method=method)
        assert found["w"].value == 1.0 and found["w"].rarest_count == 0


def test_bad_input_is_refused_or_said():
    schema = make_schema()
    table, y = make_table()
    unseen = dict(table, u=np.where(np.arange(len(y)) == 3, "new", table["u"]))
    with pytest.raises(DataError, match="'new'"):
        estimate_distances(schema, unseen, y, source="public")
    missing = dict(table, u=np.where(np.arange(len(y)) == 3, None, table["u"]))
    with pytest.raises(DataError, match="missing"):
        estimate_distances(schema, missing, y, source="public")
    with pytest.raises(DataError, match="missing"):
        estimate_distances(schema, table, np.where(y == 1, np.nan, 0.0), source="public")
    constant = dict(table, s=np.full(len(y), "a"))
    with pytest.raises(DataError, match="one value"):
        estimate_distances(schema, constant, y, source="public", method="plug-in")
    assert estimate_distances(schema, constant, y, source="public")["u"].value > 0
    with pytest.raises(SchemaError, match="at least 2"):
        Categorical(("only",), role="sensitive")
    with pytest.raises(ConfigurationError, match="source"):
        estimate_distances(schema, table, y, source="private")
    with pytest.raises(ConfigurationError, match="method"):
        estimate_distances(schema, table, y, source="public", method="guess")
    with pytest.raises(ConfigurationError, match="gamma"):
        estimate_distances(schema, table, y, source="public", gamma=float("nan"))


def test_more_levels_than_records_is_said_and_gives_one():
    schema = make_schema(code=Categorical(tuple(range(50)), role="insensitive"))
    table, y = make_table(30)
    table["code"] = np.arange(30)
    with pytest.warns(UtilityWarning, match="'code'"):
        found = estimate_distances(schema, table, y, source="public")
    assert found["code"].value == 1.0


def test_parity_is_seen_by_the_joint_tuple_only():
    data = make_parity(4000, random_state=3)
    joint = estimate_distances(data.schema, data.X, data.y, source="public")
    assert joint["u1"].value == data.distances["u1"] == 1.0
    for name in data.schema.names("sensitive"):
        other = next(n for n in data.schema.names("sensitive") if n != name)
        single = data.schema.with_roles({other: "public"})
        found = estimate_distances(single, data.X, data.y, source="public", background="none")
        assert found["u1"].value < 0.15
        known = estimate_distances(single, data.X, data.y, source="public")
        assert known["u1"].value == 1.0 and known["u1"].background == (other,)


def test_bins_of_two_hide_parity_and_the_certificate_does_not_claim_it():
    """u on 16 values, s its parity: TV over paired bins is 0, the real distance is 1."""
    values = np.arange(4000) % 16
    table = {"s": np.array(["a", "b"])[values % 2], "u": values}
    y = np.zeros(4000, dtype=int)
    y[::2] = 1
    pairs = tuple(np.arange(-0.5, 16.5, 2).tolist())

    def schema_with(bins, resolution):
        column = Numeric(bins[0], bins[-1], "insensitive", bins=bins, resolution=resolution)
        return make_schema(u=column)

    with pytest.raises(ConfigurationError, match="resolution"):
        estimate_distances(schema_with(pairs, "exact"), table, y, source="public")
    smooth = estimate_distances(
        schema_with(pairs, "exact"), table, y, source="public", resolution="assume-smooth"
    )
    assert smooth["u"].value < 0.3 and smooth["u"].resolution == "assume-smooth"
    assert any("'u'" in sentence for sentence in smooth.assumptions)
    binned = estimate_distances(schema_with(pairs, "binned"), table, y, source="public")
    assert binned["u"].resolution == "binned" and binned.assumptions == ()
    fine = tuple(np.arange(-0.5, 16.5, 1).tolist())
    seen = estimate_distances(schema_with(fine, "binned"), table, y, source="public")
    assert seen["u"].value == 1.0


def test_numeric_sensitive_columns_count_at_their_grid():
    schema = make_schema(age=Numeric(0, 90, role="sensitive", bins=(0, 30, 60, 90)))
    table, y = make_table(6000)
    rng = np.random.default_rng(1)
    age = np.where(table["u"] == "x", rng.uniform(0, 30, 6000), rng.uniform(60, 90, 6000))
    found = estimate_distances(schema, table | {"age": age}, y, source="public")
    assert found["u"].value == 1.0  # age tells it although s alone says .6
    assert any("'age'" in sentence for sentence in found.assumptions)


def test_rows_for_the_table_of_distances():
    table, y = make_table(told=0.7)
    schema = make_schema()
    rows = distance_rows(schema, estimate_distances(schema, table, y, source="public"))
    assert [row["name"] for row in rows] == ["u", "y"]
    assert rows[0]["reading"] == "tells something" and rows[0]["pair"]
    absent = distance_rows(schema, Distances({}))
    assert [row["distance"] for row in absent] == [1.0, 1.0]
    assert absent[0]["reading"] == "counts as telling everything"
    with pytest.warns(UtilityWarning, match="more records"):
        small = estimate_distances(schema, *make_table(24), source="public")
    assert reading(small["u"]) == "too few records in a level to know"
    clear = estimate_distances(schema, *make_table(told=0.99), source="public")
    assert reading(clear["u"]) == "tells much"
    assert reading(Distances.given({"u": 0.0})["u"]) == "tells nothing"


def test_level_distances_are_a_matrix_of_total_variations():
    counts = np.array([[8, 2], [2, 8], [0, 0], [-3, 6]])
    matrix = level_distances(counts)
    assert matrix[0, 1] == pytest.approx(0.6)
    assert (matrix == matrix.T).all() and (np.diag(matrix) == 0).all()
    assert (matrix[2, [0, 1, 3]] == 1).all()
    assert matrix[0, 3] == pytest.approx(0.8)
    with pytest.raises(ConfigurationError, match="levels × cells"):
        level_distances(np.zeros((1, 2, 2)))
