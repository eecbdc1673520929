"""Encoded records lie inside their blocks' radius and diameter, and on the lattice (T6, T14)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrdp.encoding import INTERCEPT, Design, Encoder
from corrdp.erm.losses import Logistic
from corrdp.errors import ConfigurationError
from corrdp.records import Records, read_records
from corrdp.schema import Categorical, Ignored, Label, Numeric, Schema

Y = Label("y", [0, 1])
SCHEMA = Schema(
    {
        "x": Numeric(-2, 6),
        "c": Categorical(["a", "b", "c"]),
        "i": Ignored(),
        "z": Numeric(0, 1, bins=(0, 0, 0.5, 1), resolution="binned"),
        "d": Categorical([0, 1]),
    },
    Y,
)


def dense(design: Design) -> np.ndarray:
    """All coordinates, read through the scores of unit vectors."""
    unit = np.eye(design.encoder.dimension)
    return np.column_stack([design.scores(row) for row in unit])


def example() -> Records:
    return read_records(
        {"x": [-9, -2, 2, 6], "c": ["a", "c", "b", "b"], "z": [0, 0.1, 0.5, 1], "d": [1, 0, 0, 1]},
        SCHEMA,
    )


def test_values() -> None:
    got = dense(Encoder(SCHEMA).transform(example()))
    expected = [
        [-1, 1, 0, 0, -1, 0, 1, 1],
        [-1, 0, 0, 1, -0.5, 1, 0, 1],
        [0, 0, 1, 0, -0.5, 1, 0, 1],
        [1, 0, 1, 0, 0.5, 0, 1, 1],
    ]
    assert got.tolist() == expected
    assert (
        dense(Encoder(SCHEMA, scale=0.25).transform(example())).tolist()
        == (0.25 * np.array(expected)).tolist()
    )


def test_blocks() -> None:
    encoder = Encoder(SCHEMA, scale=0.5)
    assert [(b.name, b.kind, b.start, b.size) for b in encoder.blocks] == [
        ("x", "numeric", 0, 1),
        ("c", "one-hot", 1, 3),
        ("z", "numeric", 4, 1),
        ("d", "one-hot", 5, 2),
        (INTERCEPT, "intercept", 7, 1),
    ]
    assert {b.radius for b in encoder.blocks} == {0.5}
    assert [b.diameter for b in encoder.blocks] == pytest.approx([1, 0.5**0.5, 1, 0.5**0.5, 0])
    assert encoder.dimensions.tolist() == [1, 3, 1, 2, 1]
    assert encoder.norm_bound == pytest.approx(0.5 * math.sqrt(5))
    assert encoder.feature_names_out() == (("x", "c=a", "c=b", "c=c", "z", "d=0", "d=1", INTERCEPT))
    assert encoder.spread(np.arange(5.0)).tolist() == [0, 1, 1, 1, 2, 3, 3, 4]


def test_sums_agree_with_the_dense_matrix() -> None:
    design = Encoder(SCHEMA, scale=0.3).transform(example())
    rng = np.random.default_rng(0)
    theta, residual = rng.normal(size=8), rng.normal(size=4)
    assert design.scores(theta) == pytest.approx(dense(design) @ theta)
    assert design.weighted_sum(residual) == pytest.approx(dense(design).T @ residual)
    part = design.rows(np.array([2, 0]))
    assert dense(part).tolist() == dense(design)[[2, 0]].tolist()
    assert part.weighted_sum(residual[:2]) == pytest.approx(dense(part).T @ residual[:2])
    assert design.rows(np.array([], dtype=np.int64)).weighted_sum(np.empty(0)).tolist() == [0.0] * 8


@pytest.mark.parametrize("columns", [{"x": Numeric(0, 1)}, {"c": Categorical([0, 1])}])
def test_one_kind_of_column(columns: dict[str, Any]) -> None:
    schema = Schema(columns, Y)
    design = Encoder(schema).transform(read_records({next(iter(columns)): [0, 1]}, schema))
    assert dense(design).shape == (2, Encoder(schema).dimension)
    assert design.weighted_sum(np.ones(2))[-1] == 2


def test_repr_holds_no_data() -> None:
    design = Encoder(SCHEMA).transform(example())
    assert repr(design) == "Design(records=4, features=8)"


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, "1", None, True, 1e300])
def test_bad_scale(scale: Any) -> None:
    with pytest.raises(ConfigurationError, match="scale="):
        Encoder(SCHEMA, scale)


def test_scale_is_rounded_down_to_the_lattice() -> None:
    """Rounded up, the radius would exceed what was asked for."""
    assert Encoder(SCHEMA, 1 / math.sqrt(5), 7).scale == math.floor(128 / math.sqrt(5)) / 128
    with pytest.raises(ConfigurationError, match=r"of 7 bits; pass 0\.0078125 or more"):
        Encoder(SCHEMA, 1e-3, 7)


BOUNDS = st.one_of(
    st.tuples(st.floats(-1e300, 1e300), st.floats(1e-300, 1e300)),
    st.tuples(st.floats(-1, 1), st.floats(1e-3, 10)),
    st.tuples(st.just(0.0), st.floats(1e-307, 1e-300)),
)


@settings(max_examples=80, deadline=None)
@given(
    BOUNDS,
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=5),
    st.floats(0.05, 4),
    st.sampled_from([None, 5, 7, 20]),
    st.sampled_from(["exact", "binned"]),
)
def test_inside_the_block_and_on_the_lattice(
    bounds: tuple[float, float],
    values: list[float],
    scale: float,
    bits: int | None,
    resolution: Any,
) -> None:
    low, high = bounds[0], bounds[0] + bounds[1]
    try:
        column = Numeric(low, high, resolution=resolution)
    except ValueError:
        return  # bounds that doubles cannot tell apart are refused
    schema = Schema({"x": column, "c": Categorical(list("abcde"))}, Y)
    table = {"x": [*values, low, high], "c": list("abcdeab")[: len(values) + 2]}
    encoder = Encoder(schema, scale, bits)
    rows = dense(encoder.transform(read_records(table, schema)))
    assert encoder.scale <= scale
    for block in encoder.blocks:
        part = rows[:, block.start : block.start + block.size]
        distances = np.linalg.norm(part[:, None] - part[None], axis=2)
        assert np.linalg.norm(part, axis=1).max() <= block.radius * (1 + 1e-15)
        assert distances.max() <= block.diameter * (1 + 1e-15)
    if resolution == "exact":
        assert rows[-2:, 0].tolist() == [-encoder.scale, encoder.scale]
    if bits is not None:
        cells = rows * 2.0**bits
        assert (cells == np.rint(cells)).all()


def test_a_smaller_radius_or_diameter_would_be_exceeded() -> None:
    """The bounds are attained: 10 % less would be wrong."""
    encoder = Encoder(SCHEMA, scale=0.7)
    rows = dense(encoder.transform(example()))
    for block in encoder.blocks[:2]:
        part = rows[:, block.start : block.start + block.size]
        distances = np.linalg.norm(part[:, None] - part[None], axis=2)
        assert np.linalg.norm(part, axis=1).max() > 0.9 * block.radius
        assert distances.max() > 0.9 * block.diameter


def test_records_are_encoded_alone() -> None:
    """A record's coordinates do not depend on the others: the encoder learns nothing."""
    encoder = Encoder(SCHEMA, 0.4, 7)
    together = dense(encoder.transform(example()))
    for row in range(4):
        alone = {name: values[row : row + 1] for name, values in example().columns.items()}
        assert dense(encoder.transform(Records(alone, 1))).tolist() == [together[row].tolist()]


def test_scores_apart_do_not_depend_on_the_place_of_a_record():
    rng = np.random.default_rng(0)
    columns = {f"x{i}": Numeric(0, 1) for i in range(60)} | {"c": Categorical(["a", "b"])}
    encoder = Encoder(Schema(columns, Label("y", [0, 1])), 0.37)
    values = {f"x{i}": rng.uniform(size=301) for i in range(60)} | {"c": rng.integers(0, 2, 301)}
    design = encoder.transform(Records(values, 301))
    theta = rng.normal(size=encoder.dimension)
    score = design.scores_apart(theta)
    np.testing.assert_allclose(score, design.scores(theta), rtol=1e-12, atol=1e-12)
    for left_out in (0, 1, 150, 300):
        rest = np.delete(np.arange(301), left_out)
        np.testing.assert_array_equal(design.rows(rest).scores_apart(theta), score[rest])
        residual = Logistic().residual(score, np.ones(301))
        np.testing.assert_array_equal(
            Logistic().residual(score[rest], np.ones(300)), residual[rest]
        )
