"""A loss tells the truth about itself: residual, bounds and movements, by enumeration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from corrdp.erm.losses import Huber, Logistic, Loss, Squared, loss_from_dict
from corrdp.errors import ConfigurationError

LOSSES: list[Any] = [Logistic(), Squared(0.3, 2.0), Squared(5.0, 2.0), Huber(0.7, 1.0)]
SCORES = np.linspace(-8, 8, 641)


def labels(loss: Any) -> list[float]:
    """Extreme labels of the declared range."""
    return (
        [0.0, 1.0] if isinstance(loss, Logistic) else [-loss.label_range / 2, loss.label_range / 2]
    )


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_residual_is_the_derivative(loss: Any) -> None:
    step = 1e-6
    for y in labels(loss):
        label = np.full_like(SCORES, y)
        slope = (loss.value(SCORES + step, label) - loss.value(SCORES - step, label)) / (2 * step)
        assert loss.residual(SCORES, label) == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_residual_stays_within_its_bound_and_reaches_it(loss: Any) -> None:
    scores = np.linspace(-60, 60, 1001)
    found = max(np.abs(loss.residual(scores, np.full_like(scores, y))).max() for y in labels(loss))
    assert 0.9 * loss.residual_bound < found <= loss.residual_bound


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("tau", [0.0, 0.05, 0.5, 2.0, 10.0])
def test_movement_bounds_every_pair_of_scores(loss: Any, tau: float) -> None:
    """ρ(τ) is never exceeded, and 10 % less would be, for every label."""
    bound = float(loss.movement(np.array(tau)))
    found = 0.0
    for y in labels(loss):
        label = np.full_like(SCORES, y)
        for move in (tau, tau / 2):
            first, second = loss.residual(SCORES, label), loss.residual(SCORES + move, label)
            found = max(found, float(np.abs(second - first).max()))
    assert found <= bound * (1 + 1e-12) + 1e-15
    assert found >= 0.9 * bound
    assert bound <= 2 * loss.residual_bound


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("tau", [0.0, 0.1, 1.0])
def test_label_movement(loss: Any, tau: float) -> None:
    """When the label may change r moves by at most min(2L, ρ(τ) + Δ_y) (T6)."""
    bound = min(2 * loss.residual_bound, float(loss.movement(np.array(tau))) + loss.label_movement)
    low, high = labels(loss)
    first = loss.residual(SCORES, np.full_like(SCORES, high))
    second = loss.residual(SCORES + tau, np.full_like(SCORES, low))
    assert np.abs(second - first).max() <= bound + 1e-12
    assert np.abs(second - first).max() >= 0.9 * bound


def test_movement_does_not_fall() -> None:
    for loss in LOSSES:
        assert (np.diff(loss.movement(np.linspace(0, 50, 200))) >= 0).all()
        assert loss.movement(np.array(0.0)) == 0


def test_logistic_far_out() -> None:
    """No overflow and no warning, however large the score."""
    scores = np.array([-1e308, -1000.0, -37.0, 0.0, 37.0, 1000.0, 1e308])
    zero, one = np.zeros(7), np.ones(7)
    assert Logistic().residual(scores, zero).tolist()[:2] == [0.0, 0.0]
    assert Logistic().residual(scores, one).tolist()[-2:] == [0.0, 0.0]
    assert Logistic().value(scores, zero)[-1] == 1e308
    assert np.isfinite(Logistic().value(scores, one)).all()


def test_squared_without_a_clip_is_half_the_square() -> None:
    loss = Squared(math.inf, 2.0)
    assert loss.value(np.array([3.0]), np.array([1.0])).tolist() == [2.0]
    assert loss.residual(np.array([3.0]), np.array([1.0])).tolist() == [2.0]


def test_where_the_label_range_exceeds_the_clip() -> None:
    """Δ_y ≥ 2L: a label change moves the residual as far as anything can (T6)."""
    assert Squared(0.3, 2.0).label_movement == 0.6
    assert Squared(5.0, 2.0).label_movement == 2.0


@pytest.mark.parametrize("bad", [0, -1, math.nan, "1", None, True, 1j])
@pytest.mark.parametrize("cls", [Squared, Huber])
def test_bad_parameters(cls: Any, bad: Any) -> None:
    with pytest.raises(ConfigurationError, match="residual_clip="):
        cls(bad, 1.0)
    with pytest.raises(ConfigurationError, match="label_range="):
        cls(1.0, bad)
    with pytest.raises(ConfigurationError, match="label_range=inf"):
        cls(1.0, math.inf)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_read_back(loss: Any) -> None:
    again = loss_from_dict(loss.to_dict())
    assert again.to_dict() == loss.to_dict()
    assert isinstance(loss, Loss)
    assert again.residual(SCORES, SCORES * 0).tolist() == loss.residual(SCORES, SCORES * 0).tolist()


def test_unknown_loss() -> None:
    with pytest.raises(ConfigurationError, match="loss 'hinge' is unknown"):
        loss_from_dict({"name": "hinge"})
