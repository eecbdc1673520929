"""Distances given other columns: the warnings of THEORY T2, each a test."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrdp.datasets import make_copy, make_near_copy, make_xor
from corrdp.distance import dobrushin, estimate_conditional, estimate_distances, joint_distances
from corrdp.distance.conditional import warn_if_different
from corrdp.errors import AssumptionWarning, ConfigurationError
from corrdp.schema import Categorical, Label, Numeric, Schema

XOR = np.array([[[0.25, 0], [0, 0.25]], [[0, 0.25], [0.25, 0]]])
COPY = np.array([[[0.5, 0], [0, 0]], [[0, 0], [0, 0.5]]])
NEAR_COPY = np.array([[[0.495, 0], [0, 0.005]], [[0.005, 0], [0, 0.495]]])


def test_xor_is_nothing_alone_and_everything_together():
    found = joint_distances(XOR)
    assert found.marginal == (0.0, 0.0)
    assert found.conditional == (1.0, 1.0)
    assert found.joint == 1.0


def test_combinations_that_never_occur_count_as_one():
    found = joint_distances(COPY)
    assert found.marginal == found.conditional == (1.0, 1.0)
    assert found.joint == 1.0


def test_conditional_does_not_bound_marginal():
    found = joint_distances(NEAR_COPY)  # s = u2, u1 = u2 with probability .99
    assert found.marginal == pytest.approx((0.98, 1.0))
    assert found.conditional == pytest.approx((0.0, 1.0))


@st.composite
def joint_tables(draw):
    shape = (*draw(st.lists(st.integers(2, 3), min_size=2, max_size=3)), draw(st.integers(2, 3)))
    size = int(np.prod(shape))
    weights = draw(st.lists(st.integers(1, 20), min_size=size, max_size=size))
    return np.array(weights, dtype=float).reshape(shape)


@given(joint_tables())
@settings(max_examples=40, deadline=None)
def test_conditional_and_joint_by_enumeration_and_sub_additive_on_full_support(table):
    found = joint_distances(table)
    rows = table / table.sum(axis=-1, keepdims=True)
    levels = [range(size) for size in table.shape[:-1]]
    for i, value in enumerate(found.conditional):
        gaps = [
            0.5 * np.abs(rows[u] - rows[(*u[:i], b, *u[i + 1 :])]).sum()
            for u in itertools.product(*levels)
            for b in levels[i]
        ]
        assert value == pytest.approx(max(gaps), abs=1e-12)
    flat = rows.reshape(-1, table.shape[-1])
    assert found.joint == pytest.approx(dobrushin(flat), abs=1e-12)
    assert found.joint <= min(1.0, sum(found.conditional)) + 1e-12
    assert all(m <= 1 for m in found.marginal)


def test_a_strong_difference_is_said_and_names_the_column():
    with pytest.warns(AssumptionWarning, match="'u' 0 alone, 1 given"):
        warn_if_different(["u", "v"], [0.0, 0.4], [1.0, 0.5])
    warn_if_different(["u"], [0.3], [0.5])  # within the tolerated difference: silent


def test_xor_records_warn_and_relax_nothing_for_the_record():
    data = make_xor(8000, random_state=1)
    marginal = estimate_distances(data.schema, data.X, data.y, source="public")
    assert max(marginal["u1"].value, marginal["u2"].value) < 0.1
    assert marginal.joint is None  # adjacency="record" then counts everything as 1
    with pytest.warns(AssumptionWarning, match="'u1'"):
        found = estimate_conditional(data.schema, data.X, data.y, source="public")
    for name in ("u1", "u2"):
        assert found[name].value == pytest.approx(data.conditional_distances[name], abs=1e-3) == 1
    assert found.joint == pytest.approx(data.joint_distance) == 1.0
    assert set(found["u1"].background) == {"u2", "y"}


def test_copied_columns_keep_distance_one():
    data = make_copy(4000, random_state=1)
    with pytest.warns(AssumptionWarning, match="'y'"):  # alone the coin tells nothing
        found = estimate_conditional(data.schema, data.X, data.y, source="public")
    assert found["u1"].value == found["u2"].value == found.joint == 1.0
    assert found["u1"].rarest_count == 0


def test_near_copies_are_covered():
    data = make_near_copy(60_000, agreement=0.9, random_state=2)
    with pytest.warns(AssumptionWarning, match="'u1'"):
        found = estimate_conditional(data.schema, data.X, data.y, source="published")
    assert found["u1"].value < 0.2
    for name, truth in data.conditional_distances.items():
        assert found[name].value >= truth - 1e-9
    assert found["u2"].low > 0.8


def test_public_columns_belong_to_the_background():
    # s equals u where the region is n and its opposite where it is s
    columns = {
        "s": Categorical((0, 1), role="sensitive"),
        "u": Categorical((0, 1), role="insensitive"),
        "region": Categorical(("n", "s"), role="public"),
    }
    schema = Schema(columns, Label("y", (0, 1), role="public"))
    rng = np.random.default_rng(0)
    u, region = rng.integers(0, 2, 4000), rng.integers(0, 2, 4000)
    table = {"s": u ^ region, "u": u, "region": np.array(["n", "s"])[region]}
    y = rng.integers(0, 2, 4000)
    assert estimate_distances(schema, table, y, source="public")["u"].value == 1.0
    blind = estimate_distances(schema, table, y, source="public", background="none")
    assert blind["u"].value < 0.15 and blind["u"].background == ()
    assert any("'region'" in sentence for sentence in blind.assumptions)
    found = estimate_conditional(schema, table, y, source="public")
    assert found["u"].value == found.joint == 1.0
    assert found["u"].background == ("region", "y")


def test_large_joint_domains_are_refused():
    column = Categorical(tuple(range(60)), role="insensitive")
    schema = Schema(
        {"s": Categorical((0, 1)), **{f"u{i}": column for i in range(4)}},
        Label("y", (0, 1), role="public"),
    )
    table = {name: np.array([0, 1]) for name in schema.used}
    with pytest.raises(ConfigurationError, match="joint domain"):
        estimate_conditional(schema, table, [0, 1], source="public")


def test_bad_arguments():
    for table in (np.zeros(3), np.zeros((2, 1)), [[1, -1], [1, 1]], [[np.nan, 1], [1, 1]]):
        with pytest.raises(ConfigurationError):
            joint_distances(table)
    data = make_xor(50, random_state=1)
    with pytest.raises(ConfigurationError, match="source"):
        estimate_conditional(data.schema, data.X, data.y, source="guess")
    numeric = Schema(
        {"s": Categorical((0, 1)), "u": Numeric(0, 1, role="insensitive")}, Label("y", (0, 1))
    )
    with pytest.raises(ConfigurationError, match="resolution"):
        estimate_conditional(numeric, {"s": [0, 1], "u": [0, 1]}, [0, 1], source="public")
    quiet = Schema({"s": Categorical((0, 1))}, Label("y", (0, 1), role="public"))
    assert dict(estimate_conditional(quiet, {"s": [0, 1]}, [0, 1], source="public")) == {}
