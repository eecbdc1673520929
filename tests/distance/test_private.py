"""The private estimate: what it costs, what it draws, what follows from the release alone."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from scipy import stats

from corrdp.distance import EstimateSettings, PrivateDistances, estimate_private, plan_estimate
from corrdp.distance.plan import public_grid, table_weights
from corrdp.distance.private import count_tables, private_distances, private_tables
from corrdp.errors import ConfigurationError, UtilityWarning
from corrdp.neighbours import neighbour_kinds
from corrdp.noise import noise_source
from corrdp.records import Records, read_label, read_records
from corrdp.schema import Categorical, Label, Numeric, Schema

MU = 0.2


def make_schema(label_role="insensitive", **more):
    columns = {
        "s": Categorical(("a", "b"), role="sensitive"),
        "t": Categorical(("p", "q"), role="sensitive"),
        "u": Categorical(("x", "y", "z"), role="insensitive"),
        "v": Categorical(("k", "l"), role="insensitive"),
        **more,
    }
    return Schema(columns, Label("y", (0, 1), role=label_role))


def draw_table(schema, n, seed=0):
    """Records in which u tells about s and nothing else tells anything."""
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 2, n)
    table = {
        "s": np.array(["a", "b"])[s],
        "t": rng.choice(["p", "q"], n),
        "u": np.array(["x", "y", "z"])[np.where(rng.random(n) < 0.5, s, rng.integers(0, 3, n))],
        "v": rng.choice(["k", "l"], n),
    }
    if "region" in schema.used:
        table["region"] = rng.choice(["n", "s"], n)
    records = read_records(table, schema)
    return records, read_label(rng.integers(0, 2, n), schema.label, n)


FULL = EstimateSettings(columns=("u", "v", "y"))


def every_record(schema):
    """All records of the tiny domain, as one-record tables."""
    for s, t, u, v, y in itertools.product("ab", "pq", "xyz", "kl", (0, 1)):
        row = {"s": [s], "t": [t], "u": [u], "v": [v]}
        yield (s, t, u, v, y), read_records(row, schema), read_label([y], schema.label, 1)


def movement(plan, schema):
    """Largest squared movement Σ(Δtotal/τ)² + Σ(Δcell/σ)² of every kind, by enumeration."""
    specs = [table.spec for table in plan.tables]
    counted = []
    for key, records, label in every_record(schema):
        counts = count_tables(specs, schema, records, label)
        parts = []
        for table in plan.tables:
            cells = counts[table.spec.name]
            parts += [
                cells.sum(axis=2).ravel() / table.total_sigma,
                cells.ravel() / table.cell_sigma,
            ]
        counted.append((key, np.concatenate(parts)))
    names = ("s", "t", "u", "v", "y")
    most = {}
    for kind in neighbour_kinds(schema):
        free = {*kind.columns, *(("y",) if kind.label_changes else ())}
        most[kind.name] = max(
            float(((one - other) ** 2).sum())
            for (first, one), (second, other) in itertools.combinations(counted, 2)
            if all(n in free or f == g for n, f, g in zip(names, first, second))
        )
    return most


@pytest.mark.parametrize("label_role", ["insensitive", "sensitive"])
def test_cost_of_every_kind_is_its_largest_movement(label_role):
    schema = make_schema(label_role)
    kinds = ("u", "v", "y") if label_role == "insensitive" else ("u", "v")
    plan = plan_estimate(schema, 5000, MU, EstimateSettings(columns=kinds))
    enumerated = movement(plan, schema)
    assert set(enumerated) == {kind.name for kind in neighbour_kinds(schema)}
    for name, squared in enumerated.items():
        assert squared <= plan.mu_squared(name) <= squared * (1 + 1e-9)
    assert plan.mu_squared("<sensitive>") <= MU**2


def test_noise_ten_per_cent_too_small_is_caught():
    schema = make_schema()
    plan = plan_estimate(schema, 5000, MU, FULL)
    for name, squared in movement(plan, schema).items():
        assert squared / 0.9**2 > plan.mu_squared(name)


def test_cost_follows_the_table_in_the_docstring():
    plan = plan_estimate(make_schema(), 5000, MU, FULL)
    weights = {table.spec.name: table.weight for table in plan.tables}
    assert weights == {"u": 0.25, "v": 0.25, "y": 0.5}
    for name, weight in weights.items():
        assert plan.mu_squared(name) == pytest.approx((1 + weight) * MU**2)
    for joint in ("<insensitive>", "<record>"):
        assert plan.mu_squared(joint) == pytest.approx((len(weights) + 1) * MU**2)
    assert plan.mu_squared("s") == 0.0  # not a kind of its own
    alone = plan_estimate(make_schema(), 5000, MU, EstimateSettings(columns=("v",)))
    assert alone.mu_squared("v") == pytest.approx(2 * MU**2)
    assert alone.mu_squared("<sensitive>") == pytest.approx(MU**2)


def test_drawn_noise_has_the_planned_scale_and_a_wrong_one_is_rejected():
    schema = make_schema()
    plan = plan_estimate(schema, 5000, 0.02, FULL)
    counts = {t.spec.name: np.zeros(t.spec.shape, dtype=np.int64) for t in plan.tables}
    standard = {"totals": [], "cells": []}
    for seed in range(200):
        released = private_tables(counts, plan, noise_source(seed))
        for table in plan.tables:
            noisy = released[table.spec.name]
            standard["totals"].append(noisy.totals.ravel() / table.total_sigma)
            standard["cells"].append(noisy.cells.ravel() / table.cell_sigma)
    for values in map(np.concatenate, standard.values()):
        low, high = stats.chi2.ppf([0.001, 0.999], values.size)
        square = float((values**2).sum())
        assert low < square < high
        assert square * 0.9**2 < low and square * 1.1**2 > high


def test_no_two_releases_share_noise():
    schema = make_schema()
    plan = plan_estimate(schema, 5000, 0.001, FULL)
    counts = {t.spec.name: np.zeros(t.spec.shape, dtype=np.int64) for t in plan.tables}
    released = private_tables(counts, plan, noise_source(1))
    values = np.concatenate([np.r_[t.totals.ravel(), t.cells.ravel()] for t in released.values()])
    assert len(np.unique(values)) > 0.9 * len(values)
    other = private_tables(counts, plan, noise_source(2))
    assert not (other["u"].cells == released["u"].cells).any()


def test_estimate_is_recomputed_from_the_ledger_entry_alone():
    schema = make_schema()
    records, label = draw_table(schema, 20_000)
    plan = plan_estimate(schema, records.size, MU)
    result = estimate_private(plan, records, label, noise_source(3))
    entry = json.loads(json.dumps(result.to_dict()))
    again = PrivateDistances.from_dict(schema, entry)
    assert again.distances == result.distances
    assert entry["mu_squared"]["<record>"] == plan.mu_squared("<record>")
    damaged = [
        {**entry, "mu": entry["mu"] * 1.1},
        {**entry, "records": 10},
        {**entry, "tables": {"u": entry["tables"]["u"]}},
        {**entry, "settings": {"share": 0.3, "surprise": 1}},
        {k: v for k, v in entry.items() if k != "tables"},
    ]
    for wrong in damaged:
        with pytest.raises(ConfigurationError):
            PrivateDistances.from_dict(schema, wrong)


def test_values_are_rounded_up_to_the_public_grid():
    schema = make_schema()
    records, label = draw_table(schema, 20_000)
    settings = EstimateSettings(grid_size=5, column_floor=0.2, label_floor=0.4)
    plan = plan_estimate(schema, records.size, MU, settings)
    distances = estimate_private(plan, records, label, noise_source(5)).distances
    assert set(distances) == {"u", "v", "y"}
    assert distances.gamma == 0.05
    for name, floor in (("u", 0.2), ("v", 0.2), ("y", 0.4)):
        entry, grid = distances[name], public_grid(floor, 5)
        assert entry.value in grid and entry.grid_size == 5
        assert entry.value >= max(floor, entry.high)
        assert all(g < entry.high for g in grid if g < entry.value)
        assert entry.source == "private" and entry.method == "pair"
    assert distances["u"].high > 0.45 > distances["v"].high
    assert distances["u"].low > 0.2


def test_grid_weights_and_floors():
    grid = public_grid(0.1, 8)
    assert grid[0] == 0.1 and grid[-1] == 1.0 and len(grid) == 8
    assert max(b / a for a, b in itertools.pairwise(grid)) < 1.4
    assert public_grid(1.0, 8) == (1.0,)
    assert table_weights(["u", "v"], "y", 0.5) == [0.5, 0.5]
    assert table_weights(["y"], "y", 0.5) == [1.0]
    assert sum(table_weights(["u", "v", "w", "y"], "y", 0.7)) == pytest.approx(1)


def test_tables_that_cannot_become_useful_are_left_out_by_public_numbers():
    schema = make_schema(code=Categorical(tuple(range(200)), role="insensitive"))
    plan = plan_estimate(schema, 20_000, MU)
    assert [g.spec.name for g in plan.skipped] == ["code"]
    assert {t.spec.name for t in plan.tables} == {"u", "v", "y"}
    assert plan.mu_squared("code") == 0.0
    assert plan.advice() is not None and "'code'" in plan.advice()
    few = plan_estimate(schema, 20, MU)
    assert few.tables == () and few.draws == 0 and few.largest_sigma == 0.0
    assert few.mu_squared("<record>") == 0.0
    table = {"s": ["a", "b"], "t": ["p", "q"], "u": ["x", "y"], "v": ["k", "l"], "code": [3, 4]}
    pair = plan_estimate(schema, 2, MU)
    with pytest.warns(UtilityWarning, match="'code'"):
        result = estimate_private(
            pair, read_records(table, schema), np.array([0, 1]), noise_source(1)
        )
    assert {d.value for d in result.distances.values()} == {1.0}
    assert result.distances.gamma is None and result.distances["code"].grid_size == 1


def test_public_columns_are_background_where_their_cells_allow_it():
    schema = make_schema(region=Categorical(("n", "s"), role="public"))
    plan = plan_estimate(schema, 40_000, MU)
    assert all(table.spec.strata.columns == ("region",) for table in plan.tables)
    assert plan.without_background() == ()
    blind = plan_estimate(schema, 40_000, MU, EstimateSettings(background="none"))
    assert blind.without_background() == ("u", "v", "y")
    records, label = draw_table(schema, 40_000)
    result = estimate_private(blind, records, label, noise_source(0))
    assert any("'region'" in sentence for sentence in result.distances.assumptions)
    wide = make_schema(region=Categorical(("n", *range(400)), role="public"))
    assert plan_estimate(wide, 40_000, MU).without_background() == ("u", "v", "y")
    forced = plan_estimate(wide, 40_000, MU, EstimateSettings(background="public"))
    assert forced.without_background() == ()


def test_smoothness_is_an_explicit_choice_and_reaches_the_certificate():
    schema = make_schema(age=Numeric(0, 10, role="insensitive"))
    with pytest.raises(ConfigurationError, match="age"):
        plan_estimate(schema, 5000, MU, EstimateSettings(resolution="binned"))
    # by default a numeric column that the model sees exactly is not measured and keeps d = 1
    left_out = plan_estimate(schema, 500_000, MU)
    assert "age" not in [table.spec.name for table in left_out.tables]
    assert left_out.mu_squared("age") == 0.0
    seen = plan_estimate(schema.binned(), 500_000, MU)
    assert "age" in [table.spec.name for table in seen.tables]
    plan = plan_estimate(schema, 500_000, MU, EstimateSettings(resolution="assume-smooth"))
    tables = {t.spec.name: (np.full(t.spec.shape, 100), t) for t in plan.tables}
    released = private_tables({n: c for n, (c, _) in tables.items()}, plan, noise_source(0))
    distances = private_distances(plan, released)
    assert distances["age"].resolution == "assume-smooth"
    assert any("'age'" in sentence for sentence in distances.assumptions)


def test_no_insensitive_column_means_no_release():
    plan = plan_estimate(make_schema().all_sensitive(), 100, MU)
    assert plan.tables == () and plan.mu_squared("<sensitive>") == 0.0
    empty = estimate_private(plan, *draw_table(make_schema().all_sensitive(), 100), noise_source(0))
    assert dict(empty.distances) == {}


def test_bad_arguments():
    schema = make_schema()
    for mu in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ConfigurationError, match="mu"):
            plan_estimate(schema, 100, mu)
    for records in (0, 1.5, True):
        with pytest.raises(ConfigurationError, match="records"):
            plan_estimate(schema, records, MU)
    with pytest.raises(ConfigurationError, match="nowhere"):
        plan_estimate(schema, 100, MU, EstimateSettings(columns=("nowhere",)))
    plan = plan_estimate(schema, 20_000, MU)
    with pytest.raises(ConfigurationError, match="planned for 20000"):
        estimate_private(plan, *draw_table(schema, 50), noise_source(0))
    with pytest.raises(ConfigurationError, match="'u'"):
        private_tables({}, plan, noise_source(0))
    counts = {t.spec.name: np.zeros(t.spec.shape, dtype=float) for t in plan.tables}
    with pytest.raises(ConfigurationError, match="integer"):
        private_tables(counts, plan, noise_source(0))
    assert isinstance(draw_table(schema, 3)[0], Records)


@pytest.mark.parametrize(
    "change",
    [
        {"share": 0.0},
        {"share": math.nan},
        {"share": "half"},
        {"gamma": 1.0},
        {"gamma": None},
        {"label_weight": 1.0},
        {"label_floor": True},
        {"label_floor": 0.0},
        {"column_floor": math.nan},
        {"grid_size": 1},
        {"grid_size": 2.5},
        {"form": "best"},
        {"background": "all"},
        {"resolution": "fine"},
    ],
)
def test_settings_refuse_nonsense(change):
    (name,) = change
    with pytest.raises(ConfigurationError, match=name):
        EstimateSettings(**change)


def test_settings_survive_json():
    settings = EstimateSettings(share=0.2, columns=("u", "y"), form="split")
    assert EstimateSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
