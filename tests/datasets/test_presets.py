"""Every warning of THEORY T2 as a case, with its exact distances."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from corrdp.datasets import Simulated, make_copy, make_near_copy, make_parity, make_xor
from corrdp.errors import ConfigurationError

PRESETS: list[Callable[..., Simulated]] = [make_copy, make_near_copy, make_parity, make_xor]


def plug_in(table: dict[str, Any], columns: list[str], secret: list[str]) -> float:
    """Largest total variation over the values that occur."""
    s = np.unique(np.column_stack([table[name] for name in secret]), axis=0, return_inverse=True)[1]
    u = np.column_stack([table[name] for name in columns])
    rows = []
    for value in np.unique(u, axis=0):
        here = s[(u == value).all(axis=1)]
        rows.append(np.bincount(here, minlength=int(s.max()) + 1) / len(here))
    return max(float(np.abs(p - q).sum()) / 2 for p, q in itertools.combinations(rows, 2))


def test_xor_marginal_zero_conditional_one() -> None:
    data = make_xor(100_000, frame="dict", random_state=1)
    assert data.distances == {"u1": 0.0, "u2": 0.0, "y": 0.0}
    assert data.conditional_distances == {"u1": 1.0, "u2": 1.0, "y": 0.0}
    assert data.joint_distance == 1.0  # marginal distances do not add up: 0 + 0 < 1
    X = data.X
    assert np.array_equal(X["s1"], X["u1"] ^ X["u2"])
    assert plug_in(X, ["u1"], ["s1"]) < 0.02
    for value in (0, 1):
        given = {name: column[X["u2"] == value] for name, column in X.items()}
        assert plug_in(given, ["u1"], ["s1"]) == 1.0


def test_copy_needs_the_rule_for_impossible_combinations() -> None:
    data = make_copy(1_000, frame="dict", random_state=1)
    assert data.distances == {"u1": 1.0, "u2": 1.0, "y": 0.0}
    assert data.joint_distance == 1.0
    assert data.conditional_distances is not None
    # over the pairs that occur alone, u1 would tell nothing once u2 is known
    X = data.X
    assert np.array_equal(X["u1"], X["s1"]) and np.array_equal(X["u2"], X["s1"])
    assert all(len(np.unique(X["u1"][X["u2"] == value])) == 1 for value in (0, 1))
    assert data.conditional_distances["u1"] == data.conditional_distances["u2"] == 1.0


def test_near_copy_conditional_zero_marginal_near_one() -> None:
    data = make_near_copy(200_000, frame="dict", random_state=1)
    assert data.distances["u1"] == pytest.approx(0.98, abs=1e-12)
    assert data.distances["u2"] == 1.0
    assert data.conditional_distances is not None
    assert data.conditional_distances["u1"] == pytest.approx(0.0, abs=1e-12)
    assert data.conditional_distances["u2"] == 1.0
    assert np.array_equal(data.X["s1"], data.X["u2"])
    assert np.mean(data.X["u1"] == data.X["u2"]) == pytest.approx(0.99, abs=0.002)
    assert plug_in(data.X, ["u1"], ["s1"]) == pytest.approx(0.98, abs=0.005)


@pytest.mark.parametrize("agreement", [0.0, 0.25, 0.5, 1.0])
def test_near_copy_of_any_agreement(agreement: float) -> None:
    data = make_near_copy(10, agreement=agreement, random_state=1)
    assert data.distances["u1"] == pytest.approx(abs(2 * agreement - 1), abs=1e-12)
    assert data.conditional_distances is not None
    # with agreement 0 or 1 some combinations are impossible
    expected = 1.0 if agreement in (0.0, 1.0) else 0.0
    assert data.conditional_distances["u1"] == pytest.approx(expected, abs=1e-12)


def test_near_copy_refuses_nan() -> None:
    with pytest.raises(ConfigurationError, match="agreement=nan"):
        make_near_copy(10, agreement=float("nan"))


def test_parity_is_invisible_to_single_sensitive_columns() -> None:
    data = make_parity(100_000, frame="dict", random_state=1)
    assert data.distances["u1"] == data.joint_distance == 1.0
    X = data.X
    assert np.array_equal(X["u1"], X["s1"] ^ X["s2"])
    single = max(plug_in(X, ["u1"], [name]) for name in ("s1", "s2"))
    assert single < 0.02 < plug_in(X, ["u1"], ["s1", "s2"]) == 1.0


@pytest.mark.parametrize("make", PRESETS)
def test_label_is_a_fair_coin_that_tells_nothing(make: Callable[..., Simulated]) -> None:
    data = make(40_000, random_state=2)
    assert data.y.mean() == pytest.approx(0.5, abs=0.01)
    assert data.distances["y"] == 0.0
    assert data.schema.role("y") == "insensitive"
    assert set(data.X.columns) == set(data.schema.columns)
    table = {**{name: data.X[name].to_numpy() for name in data.X.columns}, "y": data.y}
    secret = list(data.schema.names("sensitive"))
    assert plug_in(table, ["y"], secret) < 0.02
    again = make(40_000, random_state=2)
    assert data.X.equals(again.X) and np.array_equal(data.y, again.y)
    with pytest.raises(ConfigurationError, match="n=0"):
        make(0)
