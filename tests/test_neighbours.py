"""T1: which kinds of change a schema has, for every role."""

from __future__ import annotations

import pytest

from corrdp.errors import ConfigurationError
from corrdp.neighbours import (
    INSENSITIVE,
    RECORD,
    SENSITIVE,
    NeighbourKind,
    check_adjacency,
    neighbour_kinds,
)
from corrdp.schema import Categorical, Label, Numeric, Schema


def schema(label: str = "insensitive", groups: tuple[tuple[str, ...], ...] = ()) -> Schema:
    columns = {
        "s": Categorical(["a", "b"]),
        "u": Numeric(0, 1, role="insensitive"),
        "w": Numeric(0, 1, role="insensitive"),
        "v": Numeric(0, 1, role="public"),
    }
    return Schema(columns, Label("y", [0, 1], role=label), groups)  # type: ignore[arg-type]


def as_rows(one: Schema) -> list[tuple[str, tuple[str, ...], bool]]:
    return [(k.name, k.columns, k.label_changes) for k in neighbour_kinds(one)]


def test_insensitive_label() -> None:
    assert as_rows(schema()) == [
        (SENSITIVE, ("s",), False),
        ("u", ("u",), False),
        ("w", ("w",), False),
        ("y", (), True),
        (INSENSITIVE, ("u", "w"), True),
        (RECORD, ("s", "u", "w"), True),
    ]


def test_sensitive_label_belongs_to_s() -> None:
    rows = as_rows(schema("sensitive"))
    assert rows[0] == (SENSITIVE, ("s",), True)
    assert (INSENSITIVE, ("u", "w"), False) in rows
    assert "y" not in [name for name, _, _ in rows]


def test_public_label_never_changes() -> None:
    assert not any(label for _, _, label in as_rows(schema("public")))


def test_public_columns_never_change() -> None:
    assert not any("v" in columns for _, columns, _ in as_rows(schema()))


def test_group_is_one_kind() -> None:
    rows = as_rows(schema(groups=(("u", "w"),)))
    assert ("u+w", ("u", "w"), False) in rows
    assert {"u", "w"} & {name for name, _, _ in rows} == set()


def test_mixed_group_is_sensitive() -> None:
    rows = as_rows(schema(groups=(("s", "u"),)))
    assert rows[0] == (SENSITIVE, ("s", "u"), False)
    assert (INSENSITIVE, ("w",), True) in rows


def test_all_sensitive_is_ordinary_privacy() -> None:
    """S and the whole record are the same change: one kind of loss."""
    first, record = neighbour_kinds(schema().all_sensitive())
    assert first.covers(record)
    assert record.covers(first)
    assert first.label_changes


def test_semi_has_s_only() -> None:
    names = [k.name for k in neighbour_kinds(schema().insensitive_as_public())]
    assert names == [SENSITIVE, RECORD]


def test_everything_public_has_no_kind() -> None:
    one = schema().with_roles(dict.fromkeys(["s", "u", "w", "y"], "public"))
    assert neighbour_kinds(one) == ()


def test_label_alone() -> None:
    only_label = schema().with_roles(dict.fromkeys(["s", "u", "w"], "public"))
    assert as_rows(only_label) == [("y", (), True), (INSENSITIVE, (), True), (RECORD, (), True)]


def test_covers() -> None:
    wide = NeighbourKind("w", ("a", "b"), True)
    assert wide.covers(NeighbourKind("a", ("a",), False))
    assert not NeighbourKind("a", ("a", "b"), False).covers(wide)
    assert not NeighbourKind("a", ("a",), True).covers(wide)


def test_nothing_changes() -> None:
    with pytest.raises(ConfigurationError, match="changes nothing"):
        NeighbourKind("empty", (), False)


@pytest.mark.parametrize("bad", [None, "columns", "", 1, True, ["feature"]])
def test_adjacency(bad: object) -> None:
    with pytest.raises(ConfigurationError, match="adjacency="):
        check_adjacency(bad)
    check_adjacency("record")
