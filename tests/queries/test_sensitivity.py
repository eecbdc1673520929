"""Bounds of every query and kind against enumeration of all pairs of records (THEORY T5, T11)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from corrdp.encoding import INTERCEPT, Encoder
from corrdp.erm.losses import Squared
from corrdp.erm.sensitivity import SensitivityTable
from corrdp.neighbours import NeighbourKind, neighbour_kinds
from corrdp.noise import Lattice
from corrdp.queries import (
    ContingencyTable,
    Count,
    Covariance,
    Histogram,
    Mean,
    Query,
    SecondMoments,
    Sum,
    Variance,
)
from corrdp.queries.answers import blocks_of, exchange_classes
from corrdp.queries.blocks import (
    Block,
    LevelBlock,
    RectangleBlock,
    SquareBlock,
    TriangleBlock,
    changed_names,
    sensitivity_rows,
)
from corrdp.schema import Label, Numeric, Schema
from tests.queries.tiny import SCHEMA, declaration, movement, records

QUERIES: list[Query] = [
    Count({"s": "a"}),
    Count({"s": ["a"], "u": (0.0, 1.0), "y": (0, 2)}),
    Sum("t"),
    Mean("u"),
    Mean("y"),
    Histogram("s"),
    Histogram("g"),
    Histogram("v"),
    ContingencyTable(["s", "g"]),
    ContingencyTable(["w", "s"]),
    Variance("t"),
    Covariance(["u", "v", "t"]),
    Covariance(["h", "y"]),
    SecondMoments(["s", "g", "h"]),
    SecondMoments(["u", "v", "y"]),
]
KINDS = neighbour_kinds(SCHEMA)


def read_by(block: Block) -> list[str]:
    """The columns that a block depends on."""
    return [n for n in (*SCHEMA.used, SCHEMA.label.name) if f"{n!r}" in block.name]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_bounds_cover_every_pair_and_are_reached(query: Query) -> None:
    for block in blocks_of(query, declaration()):
        columns = read_by(block)
        assert columns
        for kind in KINDS:
            bound = block.movement(changed_names(kind, SCHEMA))
            true = movement(block, columns, kind)
            for most, found in zip(bound, true, strict=True):
                # the grid holds the corners, where each bound is attained
                assert found <= most
                assert most <= found * (1 + 1e-12)


@pytest.mark.parametrize("name", ["t", "u", "y"])
def test_a_dropped_or_halved_bound_is_caught(name: str) -> None:
    block = blocks_of(Variance(name), declaration())[1]
    kind = next(k for k in KINDS if name in changed_names(k, SCHEMA))
    true = movement(block, [name], kind)
    bound = block.movement(changed_names(kind, SCHEMA))
    assert all(t > 0.9 * b for t, b in zip(true, bound, strict=True))
    assert block.movement(frozenset()) == (0.0, 0.0)
    assert true[0] > 0.0


def test_columns_that_a_kind_leaves_alone_do_not_move() -> None:
    for query, kind in itertools.product(QUERIES, KINDS):
        for block in blocks_of(query, declaration()):
            untouched = not set(read_by(block)) & changed_names(kind, SCHEMA)
            assert (block.movement(changed_names(kind, SCHEMA)) == (0.0, 0.0)) == untouched


def numbers(count: int) -> Schema:
    columns = {f"x{i}": Numeric(-1, 1, role="insensitive") for i in range(count)}
    return Schema(columns, Label("y", low=-1, high=1))


@pytest.mark.parametrize("changing", range(6))
def test_merged_products_move_as_far_as_the_bound_and_no_further(changing: int) -> None:
    schema = numbers(5)
    names = tuple(schema.used)
    kind = NeighbourKind("some", names[:changing], label_changes=False) if changing else None
    changed = frozenset() if kind is None else changed_names(kind, schema)
    left, right = names[:3], names[3:]
    split = (names[0], names[3], names[1], names[4], names[2])[:changing]
    for block in (
        TriangleBlock(names, 1.0),
        TriangleBlock((INTERCEPT, *names[:4]), 0.5),
        RectangleBlock(left, right, 0.5),
        RectangleBlock((INTERCEPT,), left, 1.0),
        SquareBlock(names, 0.5),
    ):
        for some in (changed, frozenset(split)):
            moving = NeighbourKind("some", tuple(some) or ("none",), label_changes=False)
            read = [n for n in names if f"{n!r}" in block.name]
            grid = (-1.0, 0.0, 1.0) if isinstance(block, SquareBlock) else (-1.0, 1.0)
            true = movement(block, read, moving, schema, grid)
            bound = block.movement(some)
            assert true == pytest.approx(bound, rel=1e-12)
            assert all(t <= b for t, b in zip(true, bound, strict=True))


def test_inner_points_never_beat_the_corners() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        p, c = int(rng.integers(2, 6)), int(rng.integers(1, 6))
        before = rng.uniform(-1, 1, p)
        after = np.where(np.arange(p) < c, rng.uniform(-1, 1, p), before)
        gap = (np.outer(after, after) - np.outer(before, before))[np.triu_indices(p, 1)]
        names = tuple(f"x{i}" for i in range(p))
        most = TriangleBlock(names, 1.0).movement(frozenset(names[:c]))
        assert np.abs(gap).sum() <= most[0] + 1e-12
        assert np.sqrt((gap**2).sum()) <= most[1] + 1e-12


def test_everything_numeric_moves_the_triangle_by_columns_plus_two() -> None:
    # all m numbers, the constant and the label: m + 2, not 2√((m+1)(m+2)/2) (THEORY T11)
    schema = numbers(6).all_sensitive()
    block = next(
        b
        for b in blocks_of(
            SecondMoments((*schema.used, "y")), declaration(schema=schema, distances={})
        )
        if isinstance(b, TriangleBlock)
    )
    kind = next(k for k in neighbour_kinds(schema) if k.name == "<sensitive>")
    assert block.size == 28
    assert block.movement(changed_names(kind, schema))[1] == pytest.approx(8.0)


def test_level_sums_move_by_root_two_or_two() -> None:
    block = LevelBlock("s", 2, ("u",), 1.0)
    assert block.movement({"s"})[1] == pytest.approx(np.sqrt(2))
    assert block.movement({"u"})[1] == pytest.approx(2.0)
    assert block.movement({"s", "u"})[1] == pytest.approx(2.0)


def test_exchangeable_columns_share_a_class_and_only_those() -> None:
    columns = ["t", "h", "u", "v", "y"]
    assert exchange_classes(columns, declaration()) == [("t",), ("h",), ("u", "v"), ("y",)]
    far = {"u": 0.1, "v": 0.2}
    assert exchange_classes(["u", "v"], declaration(distances=far)) == [("u",), ("v",)]
    both = declaration(schema=SCHEMA.all_sensitive(), distances={})
    assert exchange_classes(columns, both) == [tuple(columns)]


def test_rows_per_person_multiply() -> None:
    blocks = blocks_of(Covariance(["u", "t"]), declaration())
    one = sensitivity_rows(blocks, KINDS, SCHEMA, 1)
    three = sensitivity_rows(blocks, KINDS, SCHEMA, 3)
    assert all((3 * a == b).all() for a, b in zip(one, three, strict=True))


def test_contributions_lie_on_the_lattice() -> None:
    grid = np.round(np.linspace(-1, 1, 5) * 2**3) / 2**3
    for query in QUERIES:
        for block in blocks_of(query, declaration()):
            for record in records(SCHEMA, read_by(block), grid):
                cells = block.total(record) / block.spacing(3)
                assert (cells == np.rint(cells)).all()
                assert (np.abs(block.total(record)) <= block.largest).all()


def test_rounding_a_factor_moves_an_unchanged_block_by_a_whole_step() -> None:
    # ρ = 1e-4 across a tie: the product moves by R·2^-p, which ρ·R + h·√n does not cover (T14)
    lattice = Lattice(7, 7)
    step, movement_of_residual = lattice.residual_step, 1e-4
    residual = np.array(
        [0.5 * step - movement_of_residual / 2, 0.5 * step + movement_of_residual / 2]
    )
    rounded = lattice.round_residual(residual)
    moved = abs(rounded[1] - rounded[0])
    naive = movement_of_residual + lattice.spacing
    assert moved == step
    assert moved > 10 * naive
    schema = Schema(
        {"a": Numeric(-1, 1, role="insensitive"), "b": Numeric(-1, 1, role="insensitive")},
        Label("y", low=-1, high=1),
    )
    kind = NeighbourKind("a", ("a",), label_changes=False)
    encoder = Encoder(schema, 1.0, lattice.feature_bits)
    table = SensitivityTable(encoder, Squared(0.5, 2.0), (kind,), None, 1, lattice.residual_bits)
    theta = np.array([movement_of_residual / 2, 0.0, 0.0])
    assert table(theta)[0, 1] >= moved
