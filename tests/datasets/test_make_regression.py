"""make_regression: exact distances, true coefficients, public bounds."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from corrdp.datasets import make_regression
from corrdp.errors import ConfigurationError
from corrdp.records import read_label, read_records


def test_coefficients_are_the_true_ones() -> None:
    data = make_regression(100_000, columns=6, sensitive=2, random_state=1, frame="dict")
    assert data.coefficients is not None
    theta = np.array([data.coefficients[name] for name in data.X])
    assert np.abs(theta).sum() == pytest.approx(1.0)
    design = np.column_stack([*data.X.values(), np.ones(len(data.y))])
    found, *_ = np.linalg.lstsq(design, data.y, rcond=None)
    assert found[:-1] == pytest.approx(theta, abs=0.004)
    assert found[-1] == pytest.approx(0.0, abs=0.004)
    error = data.y - design[:, :-1] @ theta
    assert error.std() == pytest.approx(0.1, rel=0.01)
    assert np.abs(error).max() <= 0.4 + 1e-12
    assert abs(np.mean(error**4) / np.var(error) ** 2 - 3) < 0.1  # a normal error, barely cut


@pytest.mark.parametrize("distance", [0.0, 0.1, 0.6, 1.0])
def test_distance_to_the_joint_tuple(distance: float) -> None:
    data = make_regression(
        400_000, columns=5, sensitive=2, distance=distance, random_state=4, frame="dict"
    )
    secret = ((data.X["s1"] + 1) + (data.X["s2"] + 1) / 2).astype(int)
    assert np.bincount(secret) / len(secret) == pytest.approx(np.full(4, 0.25), abs=0.005)
    for name in ("u1", "u2", "u3"):
        assert data.distances[name] == distance
        u = data.X[name]
        assert np.abs(u).max() <= 1 and abs(u.mean()) < 0.005
        assert np.mean(u**2) == pytest.approx(1 / 3, abs=0.003)  # uniform on [−1, 1]
        rows = []
        for low in (-1.0, -0.5, 0.0, 0.5):  # P(s | u) is constant on either side of zero
            here = secret[(u > low) & (u <= low + 0.5)]
            rows.append(np.bincount(here, minlength=4) / len(here))
        found = max(np.abs(p - q).sum() / 2 for p, q in itertools.combinations(rows, 2))
        assert found == pytest.approx(distance, abs=0.009)


@pytest.mark.parametrize("sensitive", [1, 2])
def test_joint_distance_against_enumeration(sensitive: int) -> None:
    distances = [0.2, 0.5, 0.3, 0.2]
    data = make_regression(
        5,
        columns=sensitive + 4,
        sensitive=sensitive,
        distance=distances,
        label_role="public",
        random_state=0,
    )
    posterior = []
    secrets = list(itertools.product((-1, 1), repeat=sensitive))
    for signs in itertools.product((-1, 1), repeat=4):
        weights = [
            np.prod([1 + d * s[i % sensitive] * signs[i] for i, d in enumerate(distances)])
            for s in secrets
        ]
        posterior.append(np.array(weights) / sum(weights))
    exact = max(np.abs(p - q).sum() / 2 for p, q in itertools.combinations(posterior, 2))
    assert data.joint_distance == pytest.approx(exact, abs=1e-12)
    assert max(distances) < exact < sum(distances)
    assert "y" not in data.distances and data.background == ()


def test_an_insensitive_label_has_distance_one() -> None:
    data = make_regression(100_000, columns=4, sensitive=1, random_state=2, frame="dict")
    assert data.distances["y"] == data.joint_distance == 1.0
    assert data.conditional_distances is None and "continuous" in data.reason
    assert data.coefficients is not None
    # the largest labels come with one sign of s only, the smallest with the other
    order, sign = np.argsort(data.y), np.sign(data.coefficients["s1"])
    top, bottom = data.X["s1"][order[-20:]] * sign, data.X["s1"][order[:20]] * sign
    assert top.mean() > 0.9 and bottom.mean() < -0.9


@pytest.mark.parametrize("distance", [0.0, 0.4])
def test_a_label_that_tells_less(distance: float) -> None:
    settings: dict[str, Any] = {"columns": 4, "sensitive": 1, "random_state": 3, "frame": "dict"}
    data = make_regression(400_000, label_distance=distance, **settings)
    assert data.distances["y"] == distance
    # an extreme label is the record's own where the columns are extreme too
    public = make_regression(5, label_role="public", **settings)
    assert data.joint_distance == (1.0 if distance else public.joint_distance)
    # P(s | y) moves by the distance from the smallest labels to the largest, nowhere by more
    order = np.argsort(data.y)
    share = (data.X["s1"][order] > 0).reshape(400, -1).mean(axis=1)
    assert np.ptp(share) < distance + 0.12
    assert abs(share[-10:].mean() - share[:10].mean()) == pytest.approx(distance, abs=0.03)
    # the same law of y, weaker coefficients
    full = make_regression(400_000, **settings)
    assert full.coefficients is not None and data.coefficients is not None
    for q in (0.01, 0.2, 0.5, 0.9):
        assert np.quantile(data.y, q) == pytest.approx(np.quantile(full.y, q), abs=0.01)
    X = np.column_stack([*data.X.values()])
    found = np.linalg.lstsq(X, data.y, rcond=None)[0]
    assert found == pytest.approx([*data.coefficients.values()], abs=0.01)
    expected = distance * np.array([*full.coefficients.values()])
    assert [*data.coefficients.values()] == pytest.approx(expected)


def test_table_fits_its_schema() -> None:
    data = make_regression(1_000, noise=0.5, distance=1.0, random_state=2)
    assert read_records(data.X, data.schema).size == 1_000
    assert data.schema.label.bounds == (-3.0, 3.0)
    assert np.array_equal(read_label(data.y, data.schema.label, 1_000), data.y)
    assert data.schema.names("sensitive") == ("s1", "s2", "s3")
    assert len(data.distances) == 18


def test_many_sensitive_columns() -> None:
    data = make_regression(
        5, columns=40, sensitive=15, label_role="public", frame="dict", random_state=0
    )
    assert data.joint_distance is None and "too large" in data.reason


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"n": 0}, "n=0"),
        ({"columns": 3, "sensitive": 3}, "sensitive=3"),
        ({"distance": float("nan")}, "distance=nan"),
        ({"distance": [0.1]}, "distance has 1 entries"),
        ({"noise": 0.0}, "noise=0.0"),
        ({"noise": float("nan")}, "noise=nan"),
        ({"noise": float("inf")}, "noise=inf"),
        ({"noise": "little"}, "noise='little'"),
        ({"label_distance": 1.5}, "label_distance=1.5"),
        ({"label_distance": float("nan")}, "label_distance=nan"),
        ({"label_role": "sensitive"}, "label_role='sensitive'"),
    ],
)
def test_wrong_parameters(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        make_regression(**{"n": 10, **arguments})
