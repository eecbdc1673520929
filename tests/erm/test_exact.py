"""The minimiser without privacy: stationary, and of least norm where columns depend."""

from __future__ import annotations

import numpy as np
import pytest

from corrdp.erm.exact import least_squares, minimise
from corrdp.erm.losses import Huber, Logistic, Squared


def problem(n: int = 80, m: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    features = np.column_stack([rng.normal(size=(n, m)), np.ones(n)])
    label = (features[:, 0] + rng.normal(size=n) > 0).astype(float)
    return features, label, rng.uniform(0.5, 2, n)


@pytest.mark.parametrize("loss", [Logistic(), Squared(10.0, 2.0), Huber(0.4, 1.0)], ids=str)
@pytest.mark.parametrize("alpha", [1e-4, 0.1])
def test_gradient_vanishes(loss: object, alpha: float) -> None:
    features, label, weights = problem()
    theta, iterations = minimise(
        lambda t: features @ t,
        lambda r: features.T @ r,
        label,
        weights,
        loss,
        alpha,
        5,  # type: ignore[arg-type]
    )
    residual = weights * loss.residual(features @ theta, label)  # type: ignore[attr-defined]
    gradient = features.T @ residual / len(label) + alpha * np.array([1, 1, 1, 1, 0]) * theta
    assert np.abs(gradient).max() < 1e-5
    assert iterations >= 1


def test_the_intercept_is_not_penalised() -> None:
    """With an overwhelming penalty only the intercept is left: the mean."""
    features, label, _ = problem()
    theta = least_squares(features[:, :-1], label, 1e9)
    assert theta[-1] == pytest.approx(label.mean())
    assert np.abs(theta[:-1]).max() < 1e-6
    found, _ = minimise(
        lambda t: features @ t, lambda r: features.T @ r, label, np.ones(80), Logistic(), 1e6, 5
    )
    assert 1 / (1 + np.exp(-found[-1])) == pytest.approx(label.mean(), abs=1e-4)


def test_least_squares_solves_the_normal_equations() -> None:
    features, label, _ = problem()
    for alpha in (0.0, 0.3):
        theta = least_squares(features[:, :-1], label, alpha)
        penalty = len(label) * alpha * np.diag([1, 1, 1, 1, 0])
        expected = np.linalg.solve(features.T @ features + penalty, features.T @ label)
        assert theta == pytest.approx(expected)


def test_dependent_columns_share_their_weight() -> None:
    features, label, _ = problem(m=2)
    twice = np.column_stack([features[:, 0], features[:, 0], features[:, 1]])
    theta = least_squares(twice, label, 0.0)
    single = least_squares(features[:, :-1], label, 0.0)
    assert theta[:2] == pytest.approx([single[0] / 2] * 2)
    constant = least_squares(np.full((80, 1), 3.0), label, 0.0)
    assert constant == pytest.approx([0.0, label.mean()])


def test_one_record() -> None:
    theta = least_squares(np.array([[1.0, 2.0]]), np.array([5.0]), 0.0)
    assert theta == pytest.approx([0, 0, 5])
