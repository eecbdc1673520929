"""Declarations check themselves, and TOML and JSON give them back."""

from __future__ import annotations

import copy
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrdp.errors import SchemaError
from corrdp.schema import (
    Categorical,
    Group,
    Ignored,
    Label,
    Numeric,
    Schema,
    canonical_level,
)

Y = Label("y", [0, 1], role="insensitive")


def example() -> Schema:
    return Schema(
        {
            "age": Numeric(17, 90, role="insensitive", missing=40, bins=[17, 17, 30, 90]),
            "race": Categorical(["a", "b", 3], other=True, missing="a"),
            "edu": Numeric(1.5, 16, role="public", resolution="binned"),
            "years": Categorical([1, 2], role="insensitive"),
            "months": Categorical([12, 24], role="insensitive"),
            "weight": Ignored(),
        },
        Label("income", ["<=50K", ">50K"], role="insensitive"),
        [Group(("years", "months"), [(1, 12), (2, 24)], (1, 12))],
    )


# Levels


@pytest.mark.parametrize("same", [(1, 1.0, "1", np.float32(1)), (-0.0, 0, "0"), (0.5, "0.5")])
def test_same_level(same: tuple[object, ...]) -> None:
    assert len({canonical_level(value) for value in same}) == 1


def test_booleans_are_levels_of_their_own() -> None:
    assert [canonical_level(v) for v in (True, "True", 1)] == ["True", "True", "1"]
    assert Categorical([1, True]).names == ("1", "True")
    with pytest.raises(SchemaError, match="listed twice"):
        Categorical([True, "True"])


def test_large_numbers_stay_apart() -> None:
    assert Categorical([2**64, 2**64 + 1]).domain_size == 2
    assert canonical_level(1e22) == str(10**22)


def test_the_words_none_and_nan_are_levels() -> None:
    assert Categorical(["None", "nan"]).names == ("None", "nan")


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (["a"], "needs at least 2 levels"),
        ([], "needs at least 2 levels"),
        (["a", "a"], "listed twice"),
        ([1, "1"], "listed twice"),
        ("ab", "must be a list"),
        (None, "must be a list"),
        (5, "must be a list"),
        (["a", None], "empty level"),
        (["a", math.nan], "empty level"),
        (["a", ""], "empty level"),
        (["a", math.inf], "no text, finite number"),
        (["a", ["b"]], "no text, finite number"),
        (["a", b"b"], "no text, finite number"),
        (["a", 1j], "no text, finite number"),
        (["a", np.datetime64("2020-01-01")], "no text, finite number"),
    ],
)
def test_bad_levels(levels: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Categorical(levels)
    with pytest.raises(SchemaError, match="label 'y'|must be a list" if levels is None else "'y'"):
        Label("y", levels if levels is not None else "ab")


def test_numpy_scalars_become_plain_values() -> None:
    """A schema is written as JSON and TOML, which know no NumPy."""
    column = Categorical(list(np.array([1, 2])), missing=np.int64(1))
    number = Numeric(np.int64(0), np.float32(2), missing=np.float64(1))
    schema = Schema({"c": column, "x": number}, Label("y", low=np.int64(0), high=np.int64(9)))
    assert Schema.from_toml(schema.to_toml()) == schema
    assert json.loads(json.dumps(schema.to_dict())) == schema.to_dict()


def test_other() -> None:
    assert Categorical(["a"], other=True).names == ("a", "other")
    assert Categorical(["other", "a"], other=True).names == ("other", "a")
    with pytest.raises(SchemaError, match="other='no' must be True or False"):
        Categorical(["a"], other="no")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="missing='z' is not one of the levels"):
        Categorical(["a", "b"], missing="z")
    assert Categorical(["a"], other=True, missing="other").missing == "other"


# Bounds


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (1, 0, "swap or correct"),
        (1, 1, "swap or correct"),
        (None, 1, "declare public bounds"),
        (0, None, "declare public bounds"),
        (math.nan, 1, "low must be a finite number"),
        (0, math.inf, "high must be a finite number"),
        (0, 10**400, "high must be a finite number"),
        (-1e308, 1e308, "low must be a finite number"),
        (False, True, "low must be a finite number"),
        ("0", 1, "low must be a finite number"),
        (0, 1j, "high must be a finite number"),
        (0, 5e-324, "too close"),
        (1e16, 1e16 + 2, "too close"),
        (2**53, 2**53 + 1, "swap or correct"),
    ],
)
def test_bad_bounds(low: Any, high: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        Numeric(low, high)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
    with pytest.raises(SchemaError, match=message):
        Label("y", low=low, high=high)


@pytest.mark.parametrize("missing", [-1, 2, math.nan, math.inf, "x", True])
def test_missing_must_lie_within(missing: Any) -> None:
    with pytest.raises(SchemaError, match="missing"):
        Numeric(0, 1, missing=missing)


@pytest.mark.parametrize(
    "bins",
    [[], [0], [0, 1], [0, 2, 1], [0.5, 1], [0, 0, 0, 1], [0, math.nan, 1], "01", 5, [0, None, 1]],
)
def test_bad_bins(bins: Any) -> None:
    with pytest.raises(SchemaError, match=r"bins|edge"):
        Numeric(0, 1, bins=bins)


def test_edges() -> None:
    assert Numeric(0, 1).bin_count == 10
    assert Numeric(0, 1).edges[0] == 0
    assert Numeric(0, 1).edges[-1] == 1
    spike = Numeric(0, 10, bins=(0, 0, 5, 10))
    assert spike.bin_count == spike.domain_size == 3


@pytest.mark.parametrize("role", ["secret", None, "", 1, ["sensitive"]])
def test_bad_role(role: Any) -> None:
    for make in (lambda: Numeric(0, 1, role), lambda: Categorical([0, 1], role)):
        with pytest.raises(SchemaError, match="role"):
            make()
    with pytest.raises(SchemaError, match="role"):
        Label("y", [0, 1], role=role)


def test_forgetting_a_role_fails_safe() -> None:
    assert {Numeric(0, 1).role, Categorical([0, 1]).role, Label("y", [0, 1]).role} == {"sensitive"}
    with pytest.raises(SchemaError, match="resolution"):
        Numeric(0, 1, resolution="coarse")  # type: ignore[arg-type]


# Label, groups, table


def test_label() -> None:
    assert Label("y", low=0, high=2).bounds == (0.0, 2.0)
    with pytest.raises(SchemaError, match="levels or bounds, not both"):
        Label("y", [0, 1], low=0, high=1)
    with pytest.raises(SchemaError, match="has classes, not bounds"):
        _ = Y.bounds
    for name in ("", None, 3):
        with pytest.raises(SchemaError, match="non-empty text"):
            Label(name, [0, 1])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("columns", "extra", "message"),
    [
        (("a",), {}, "two or more different"),
        (("a", "a"), {}, "two or more different"),
        ("ab", {}, "pass a tuple of column names"),
        (None, {}, "pass a tuple of column names"),
        (("a", 1), {}, "column names are texts"),
        (("a", "b"), {"values": [(0, 0), (1, 1)]}, "values and otherwise together"),
        (("a", "b"), {"otherwise": (0, 0)}, "values and otherwise together"),
        (("a", "b"), {"values": [(0,), (1, 1)], "otherwise": (1, 1)}, "needs 2 entries"),
        (("a", "b"), {"values": [(0, 0), (1, 1)], "otherwise": (0, 1)}, "must be one of"),
        (("a", "b"), {"values": [(0, 0), (1, None)], "otherwise": (0, 0)}, "empty level"),
    ],
)
def test_bad_group(columns: Any, extra: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Group(columns, **extra)


def two(**more: Any) -> dict[str, Any]:
    return {"a": Categorical([0, 1]), "b": Categorical([0, 1]), **more}


@pytest.mark.parametrize(
    ("columns", "label", "groups", "message"),
    [
        ({}, Y, (), "non-empty mapping"),
        (None, Y, (), "non-empty mapping"),
        (["a"], Y, (), "non-empty mapping"),
        ({"a": 1}, Y, (), "use Numeric, Categorical or Ignored"),
        ({1: Numeric(0, 1)}, Y, (), "column name 1 is not allowed"),
        ({"": Numeric(0, 1)}, Y, (), "not allowed"),
        ({"<record>": Numeric(0, 1)}, Y, (), "not allowed"),
        ({"<label>": Numeric(0, 1)}, Y, (), "not allowed"),
        ({"a": Ignored()}, Y, (), "every column is ignored"),
        (two(y=Numeric(0, 1)), Y, (), "also stands among the columns"),
        (two(), "y", (), "must be a Label"),
        (two(), Y, [("a", "z")], "no used column 'z'"),
        (two(c=Ignored()), Y, [("a", "c")], "no used column 'c'"),
        (two(c=Numeric(0, 1)), Y, [("a", "b"), ("b", "c")], "stands in two groups"),
        (two(), Y, "ab", "must be a list"),
        (two(), Y, ["ab"], "pass a tuple of column names"),
        (two(**{"a+b": Numeric(0, 1)}), Y, [("a", "b")], "named like a column"),
        (two(), Label("a+b", [0, 1]), [("a", "b")], "named like a column"),
    ],
)
def test_bad_schema(columns: Any, label: Any, groups: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Schema(columns, label, groups)


def test_two_groups_with_one_name() -> None:
    """Kinds are looked up by name: a shared name would share a budget."""
    names = ["a+b", "c", "a", "b+c"]
    columns = {name: Categorical([0, 1], role="insensitive") for name in names}
    with pytest.raises(SchemaError, match="two groups have the same name"):
        Schema(columns, Y, [("a+b", "c"), ("a", "b+c")])


def test_roles_and_groups() -> None:
    schema = example()
    assert schema.names("sensitive") == ("race",)
    assert schema.names("insensitive") == ("age", "years", "months")
    mixed = schema.with_roles({"years": "public"})
    assert mixed.role("years") == mixed.role("months") == "sensitive"
    assert schema.role("income") == "insensitive"
    with pytest.raises(SchemaError, match=r"no used column \['weight'\]"):
        schema.with_roles({"weight": "public"})
    with pytest.raises(SchemaError, match="role 'x' is unknown"):
        schema.with_roles({"age": "x"})  # type: ignore[dict-item]


def test_baselines() -> None:
    schema = example()
    everything = schema.all_sensitive()
    assert everything.names("sensitive") == tuple(schema.used)
    assert everything.label.role == "sensitive"
    semi = schema.insensitive_as_public()
    assert semi.names("insensitive") == ()
    assert (semi.names("sensitive"), semi.label.role) == (("race",), "public")
    assert (
        schema.with_roles({"income": "sensitive"}).insensitive_as_public().label.role == "sensitive"
    )
    without = schema.drop_sensitive()
    assert "race" in without.columns
    assert "race" not in without.used
    assert without.groups == schema.groups
    assert schema.binned().used["age"].resolution == "binned"  # type: ignore[union-attr]


def test_dropping_a_mixed_group_drops_it_whole() -> None:
    """A group with one sensitive column is sensitive as a whole: none of it may stay."""
    left = example().with_roles({"years": "sensitive"}).drop_sensitive()
    assert set(left.used) == {"age", "edu"}
    assert left.groups == ()
    with pytest.raises(SchemaError, match="every column is ignored"):
        Schema(two(), Y).drop_sensitive()


def test_frozen_and_independent_of_its_argument() -> None:
    columns = two()
    schema = Schema(columns, Y)
    columns["z"] = Numeric(0, 1)
    assert "z" not in schema.columns
    with pytest.raises(TypeError):
        schema.columns["z"] = Numeric(0, 1)  # type: ignore[index]


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))]
)
def test_copies(copied: Any) -> None:
    again = copied(example())
    assert again == example()
    assert list(again.columns) == list(example().columns)


# TOML and JSON


def test_round_trips(tmp_path: Path) -> None:
    schema = example()
    path = tmp_path / "plan.toml"
    path.write_text(schema.to_toml(), encoding="utf-8")
    for again in (
        Schema.from_toml(schema.to_toml()),
        Schema.from_toml(path),
        Schema.from_dict(json.loads(json.dumps(schema.to_dict()))),
    ):
        assert again == schema
        assert list(again.columns) == list(schema.columns)


def test_order_survives_sorted_keys() -> None:
    """Blocks stand in the order of the columns, and JSON tools may sort keys."""
    schema = Schema({"z": Numeric(0, 1), "a": Numeric(0, 1)}, Y)
    sorted_text = json.dumps(schema.to_dict(), sort_keys=True)
    assert list(Schema.from_dict(json.loads(sorted_text)).columns) == ["z", "a"]
    plain = {**schema.to_dict(), "order": ["z"]}
    with pytest.raises(SchemaError, match="order must name every column once"):
        Schema.from_dict(plain)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a schema has"),
        ("[columns.x]\nkind='numeric'\nlow=0\nhigh=1", "a schema has"),
        ("label = 3\n[columns.x]\nkind='numeric'", "found other values"),
        ("columns = 3\n[label]\nname='y'", "found other values"),
        ("[other]\n[columns.x]\n[label]\nname='y'", "found"),
        ("[columns.x]\nkind='number'\n[label]\nname='y'", "column 'x': kind must be one of"),
        ("[columns]\nx=3\n[label]\nname='y'", "column 'x': kind must be one of"),
        ("[columns.x]\nkind='numeric'\nlow=0\n[label]\nname='y'", "column 'x': missing .* 'high'"),
        ("[columns.x]\nkind='numeric'\nlow=2\nhigh=1\n[label]\nname='y'", "column 'x': .*swap"),
        ("[columns.x]\nkind='ignored'\nlow=2\n[label]\nname='y'", r"column 'x': \['low'\] not un"),
        ("[columns.x]\nkind='numeric'\nlow=0\nhigh=1\n[label]\nlevels=[0,1]", "label: missing"),
        ("[columns.x\n", "TOML text is broken"),
        ("groups=3\n[columns.x]\nkind='numeric'\nlow=0\nhigh=1\n[label]\nname='y'", "groups must"),
        (
            "[columns.x]\nkind='numeric'\nlow=0\nhigh=1\nconfirmed=false\n[label]\nname='y'",
            "not confirmed: 'x'",
        ),
        (
            "[columns.x]\nkind='numeric'\nlow=0\nhigh=1\n"
            "[label]\nname='y'\nlevels=[0,1]\nconfirmed=false",
            "not confirmed: 'y'",
        ),
        (
            "[columns.x]\nkind='categorical'\nlevels=['a']\nother='yes'\n[label]\nname='y'",
            "column 'x': other='yes'",
        ),
        (
            "[columns.x]\nkind='numeric'\nlow=0\nhigh=inf\n[label]\nname='y'",
            "column 'x': .*finite number",
        ),
    ],
)
def test_broken_toml(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        Schema.from_toml(text)
    assert "\n" not in str(caught.value)


def test_confirmed_entries_are_read() -> None:
    text = example().to_toml().replace('kind = "numeric"', 'kind = "numeric"\nconfirmed = true')
    assert Schema.from_toml(text) == example()


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="cannot read the schema"):
        Schema.from_toml(tmp_path / "absent.toml")
    (tmp_path / "latin").write_bytes(b"[columns.\xe9]")
    with pytest.raises(SchemaError, match="cannot read the schema"):
        Schema.from_toml(tmp_path / "latin")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
FINITE = st.floats(-1e300, 1e300)
LEVEL = st.one_of(TEXT, st.integers(-(10**20), 10**20), FINITE, st.booleans())
ROLE = st.sampled_from(["sensitive", "insensitive", "public"])


@st.composite
def numerics(draw: st.DrawFn) -> Numeric:
    low = draw(st.one_of(st.integers(-(10**9), 10**9), st.floats(-1e9, 1e9)))
    high = low + draw(st.floats(1, 1e9))
    inner = sorted({draw(st.floats(low, high)) for _ in range(draw(st.integers(0, 3)))})
    edges = [low, *(e for e in inner if low < e < high), high]
    bins = [edges[0], *edges] if draw(st.booleans()) else None
    missing = draw(st.none() | st.floats(low, high))
    return Numeric(low, high, draw(ROLE), missing, bins, draw(st.sampled_from(["exact", "binned"])))


@st.composite
def categoricals(draw: st.DrawFn) -> Categorical:
    levels = draw(st.lists(LEVEL, min_size=2, max_size=5, unique_by=canonical_level))
    missing = draw(st.none() | st.sampled_from(levels))
    return Categorical(levels, draw(ROLE), draw(st.booleans()), missing)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    reserved = {"<sensitive>", "<insensitive>", "<record>", "<intercept>", "<label>"}
    names = draw(
        st.lists(TEXT.filter(lambda t: t not in reserved), min_size=2, max_size=6, unique=True)
    )
    columns = {n: draw(numerics() | categoricals() | st.just(Ignored())) for n in names[1:]}
    columns[names[1]] = draw(numerics())
    levels = draw(st.lists(LEVEL, min_size=2, max_size=3, unique_by=canonical_level))
    return Schema(columns, Label(names[0], levels, role=draw(ROLE)))


@settings(max_examples=60, deadline=None)
@given(schemas())
def test_any_schema_survives_toml_and_json(schema: Schema) -> None:
    for again in (
        Schema.from_toml(schema.to_toml()),
        Schema.from_dict(json.loads(json.dumps(schema.to_dict(), sort_keys=True))),
        pickle.loads(pickle.dumps(schema)),
    ):
        assert again == schema
        assert list(again.columns) == list(schema.columns)
        assert again.label.names == schema.label.names
        assert [c.edges for c in again.used.values() if isinstance(c, Numeric)] == [
            c.edges for c in schema.used.values() if isinstance(c, Numeric)
        ]
