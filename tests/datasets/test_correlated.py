"""make_correlated: exact distances against a model written out cell by cell, and against data."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from corrdp.datasets import Simulated, make_correlated
from corrdp.errors import ConfigurationError, SchemaError
from corrdp.noise import noise_source
from corrdp.records import read_label, read_records

SHARES = {
    "binary": [0.6, 0.4],
    "categorical": [0.5, 0.3, 0.2],
    "numeric": [0.1, 0.2, 0.4, 0.2, 0.1],
}
ROLES = ["insensitive", "sensitive", "public"]
Row = tuple[int, ...]


def joint_table(
    kind: str, sensitive: int, strengths: Sequence[float], label: float, signal: float
) -> dict[tuple[Row, Row, int], float]:
    """P(s, u, y) as the docstring of the model tells it, with plain loops."""
    shares = SHARES[kind]
    k = len(shares)
    first_upper = {2: 1, 3: 2, 5: 3}[k]
    beta = sum(shares[first_upper:])
    mean = sum(a * p for a, p in enumerate(shares))
    reach = max(mean, k - 1 - mean)
    tilt = {0: -beta / max(beta, 1 - beta), 1: (1 - beta) / max(beta, 1 - beta)}
    table: dict[tuple[Row, Row, int], float] = defaultdict(float)
    for s in itertools.product(range(k), repeat=sensitive):
        for hidden, y in itertools.product((0, 1), repeat=2):
            p = float(np.prod([shares[level] for level in s]))
            p *= beta if hidden else 1 - beta
            p *= label * (y == (s[0] >= first_upper)) + (1 - label) * (y == hidden)
            for u in itertools.product(range(k), repeat=len(strengths)):
                weight = p
                for i, (a, c) in enumerate(zip(u, strengths)):
                    lean = 1 + signal * (a - mean) / reach * tilt[hidden]
                    weight *= c * (a == s[i % sensitive]) + (1 - c) * shares[a] * lean
                table[s, u, y] += weight
    assert sum(table.values()) == pytest.approx(1)
    return table


def total_variation(
    table: dict[tuple[Row, Row, int], float], role: str, changed: set[int], known: set[int]
) -> float:
    """The definition; columns are numbered u_0.., the label comes after them (or is −1)."""
    by_known: dict[Any, dict[Any, dict[Any, float]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(float))
    )
    for (s, u, y), p in table.items():
        row = (*u, y)
        secret = (s, y) if role == "sensitive" else s
        a = tuple(row[i] for i in sorted(changed))
        background = tuple(row[i] for i in sorted(known))
        by_known[background][a][secret] += p
    largest = 0.0
    for rows in by_known.values():
        posterior = []
        for mass in rows.values():
            total = sum(mass.values())
            if total == 0:
                return 1.0
            posterior.append({secret: p / total for secret, p in mass.items()})
        for one, other in itertools.combinations(posterior, 2):
            both = set(one) | set(other)
            distance = sum(abs(one.get(x, 0) - other.get(x, 0)) for x in both) / 2
            largest = max(largest, distance)
    return largest


CASES = [
    ("binary", 2, [0.3, 0.7, 0.3]),
    ("binary", 1, [0.2, 0.2, 0.2]),
    ("categorical", 1, [0.4, 0.15]),
    ("categorical", 2, [0.5, 0.5]),
    ("numeric", 1, [0.35, 0.35]),
    ("binary", 3, [0.6]),
    ("binary", 1, [1.0, 0.5]),
    ("binary", 1, [1.0, 1.0]),
    ("binary", 2, [0.0, 0.4]),
]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("kind", "sensitive", "strengths"), CASES)
def test_distances_by_enumeration(
    kind: Any, sensitive: int, strengths: list[float], role: Any
) -> None:
    data = make_correlated(
        1,
        columns=sensitive + len(strengths),
        sensitive=sensitive,
        strength=strengths,
        label_role=role,
        label_strength=0.25,
        label_signal=0.6,
        kind=kind,
        frame="dict",
        random_state=0,
    )
    table = joint_table(kind, sensitive, strengths, 0.25, 0.6)
    label = len(strengths)
    insensitive = {*range(label), *([label] if role == "insensitive" else [])}
    public = {label} if role == "public" else set()
    name = {i: f"u{i + 1}" for i in range(label)} | {label: "y"}
    assert data.conditional_distances is not None
    assert set(data.distances) == set(data.conditional_distances) == {name[i] for i in insensitive}
    assert data.background == (("y",) if public else ())
    for i in insensitive:
        exact = total_variation(table, role, {i}, public)
        assert data.distances[name[i]] == pytest.approx(exact, abs=1e-12)
        exact = total_variation(table, role, {i}, (insensitive | public) - {i})
        assert data.conditional_distances[name[i]] == pytest.approx(exact, abs=1e-12)
    exact = total_variation(table, role, insensitive, public)
    assert data.joint_distance == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("kind", list(SHARES))
def test_the_enumeration_would_notice_a_wrong_strength(kind: Any) -> None:
    table = joint_table(kind, 1, [0.3, 0.27], 0.2, 0.8)
    assert total_variation(table, "insensitive", {0}, set()) == pytest.approx(0.3, abs=1e-12)
    assert total_variation(table, "insensitive", {1}, set()) == pytest.approx(0.27, abs=1e-12)


def codes(data: Simulated) -> dict[str, Any]:
    """Cells on which distances are measured, by column."""
    from corrdp.records import bin_index
    from corrdp.schema import Numeric

    records = read_records(data.X, data.schema).columns
    cells = {
        name: bin_index(records[name], column) if isinstance(column, Numeric) else records[name]
        for name, column in data.schema.used.items()
    }
    return {**cells, "y": read_label(data.y, data.schema.label, len(data.y))}


def plug_in(column: Any, secret: Any) -> float:
    table = np.zeros((int(column.max()) + 1, int(secret.max()) + 1))
    np.add.at(table, (column, secret), 1.0)
    rows = table / table.sum(axis=1, keepdims=True)
    return max(float(np.abs(p - q).sum()) / 2 for p, q in itertools.combinations(rows, 2))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("kind", list(SHARES))
def test_distances_agree_with_a_large_sample(kind: Any, role: Any) -> None:
    data = make_correlated(
        300_000, columns=5, strength=[0.3, 0.5, 0.4], label_role=role, kind=kind, random_state=7
    )
    cell = codes(data)
    secret = cell["s1"] * 5 + cell["s2"]
    if role == "sensitive":
        secret = 2 * secret + cell["y"]
    secret = np.unique(secret, return_inverse=True)[1]
    for name, exact in data.distances.items():
        if role == "public":
            parts = [cell["y"] == value for value in (0, 1)]
            found = max(plug_in(cell[name][part], secret[part]) for part in parts)
        else:
            found = plug_in(cell[name], secret)
        # well inside ten per cent, so a strength that is off by a tenth would be seen
        assert abs(found - exact) < 0.05 * exact, name


def test_the_label_is_learnable_and_every_kind_of_column_is_bounded() -> None:
    data = make_correlated(20_000, kind="numeric", random_state=3, frame="dict")
    assert set(np.unique(data.X["u1"])) == {-1.0, -0.5, 0.0, 0.5, 1.0}
    assert 0.25 < data.y.mean() < 0.35
    total = sum(data.X[f"u{i}"] for i in range(1, 7))
    assert total[data.y == 1].mean() - total[data.y == 0].mean() > 0.3
    assert data.schema.names("sensitive") == ("s1", "s2")


def test_a_thousand_weak_columns_reveal_the_secret_together() -> None:
    data = make_correlated(
        2, columns=301, sensitive=1, strength=0.1, kind="binary", random_state=0, frame="dict"
    )
    assert max(data.distances[f"u{i + 1}"] for i in range(300)) == 0.1
    assert data.joint_distance == pytest.approx(1.0, abs=1e-9)


def test_marginal_distances_need_no_small_domain() -> None:
    data = make_correlated(
        2, columns=60, sensitive=20, strength=0.2, label_role="sensitive", random_state=0
    )
    assert data.joint_distance is None and data.conditional_distances is None
    assert "too large" in data.reason
    assert len(data.distances) == 40 and min(data.distances.values()) > 0.2
    # columns of equal strength that copy s1, which the label depends on, and those that do not
    assert len({round(value, 12) for value in data.distances.values()}) == 2


def test_seeds() -> None:
    def first(random_state: Any) -> Any:
        return make_correlated(50, random_state=random_state, frame="dict").X["u1"].tolist()

    assert first(5) == first(5) != first(6)
    assert first(None) != first(None)
    assert first(noise_source(5)) == first(5)
    assert make_correlated(50, random_state=5).X["u1"].tolist() == first(5)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"n": 0}, "n=0"),
        ({"n": 2.5}, "n=2.5"),
        ({"n": True}, "n=True"),
        ({"columns": 1}, "columns=1"),
        ({"columns": 4, "sensitive": 4}, "sensitive=4 must be a whole number between 1 and 3"),
        ({"sensitive": 0}, "sensitive=0"),
        ({"strength": float("nan")}, "strength=nan"),
        ({"strength": -0.1}, "strength=-0.1"),
        ({"strength": "0.1"}, "strength"),
        ({"strength": [0.1, 0.2]}, "strength has 2 entries for 6 columns"),
        ({"strength": [0.1] * 5 + [2.0]}, r"strength\[5\]=2.0"),
        ({"label_strength": float("nan")}, "label_strength=nan"),
        ({"label_signal": 1.5}, "label_signal=1.5"),
        ({"kind": "ordinal"}, "kind='ordinal'"),
        ({"frame": "spark"}, "frame='spark'"),
    ],
)
def test_wrong_parameters(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        make_correlated(**{"n": 10, **arguments})


def test_wrong_label_role() -> None:
    with pytest.raises(SchemaError, match="secret"):
        make_correlated(10, label_role="secret")  # type: ignore[arg-type]


def test_simulated_checks_itself() -> None:
    data = make_correlated(3, random_state=0, frame="dict")
    assert repr(data) == "Simulated('correlated', records=3)"
    fields = {"name": "t", "X": data.X, "y": data.y, "schema": data.schema, "distances": {}}
    with pytest.raises(ConfigurationError, match="reason"):
        Simulated(**fields)
    with pytest.raises(ConfigurationError, match="reason"):
        Simulated(**fields, joint_distance=0.5, conditional_distances={}, reason="none")
    with pytest.raises(ConfigurationError, match="joint_distance=nan"):
        Simulated(**fields, joint_distance=float("nan"), conditional_distances={})
    with pytest.raises(ConfigurationError, match="labels of shape"):
        Simulated(**{**fields, "y": data.y[:2]}, reason="none")
    with pytest.raises(ConfigurationError, match="'s1' is sensitive"):
        Simulated(**{**fields, "distances": {"s1": 0.1}}, reason="none")
