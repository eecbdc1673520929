"""Training without privacy: the exact minimiser by L-BFGS, for baselines (``epsilon=inf``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from corrdp.erm.losses import Loss

__all__ = ["minimise"]

FloatArray: TypeAlias = NDArray[np.float64]


def minimise(
    scores: Callable[[FloatArray], FloatArray],
    weighted_sum: Callable[[FloatArray], FloatArray],
    label: FloatArray,
    weights: FloatArray,
    loss: Loss,
    alpha: float,
    dimension: int,
    max_iterations: int = 2000,
) -> tuple[FloatArray, int]:
    """θ that minimises Σw_iℓ_i/n + (α/2)‖θ‖², the last coordinate not penalised.

    ``scores`` maps θ to θᵀφ, ``weighted_sum`` maps residuals to Σr_iφ_i. Returns θ and the number
    of iterations.
    """
    size = len(label)
    penalised = np.ones(dimension)
    penalised[-1] = 0.0

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        score = scores(theta)
        penalty = alpha * penalised * theta
        value = float(weights @ loss.value(score, label)) / size + 0.5 * float(penalty @ theta)
        gradient = weighted_sum(weights * loss.residual(score, label)) / size + penalty
        return value, gradient

    options = {"maxiter": max_iterations, "maxfun": 4 * max_iterations, "gtol": 1e-8, "ftol": 1e-14}
    result: Any = minimize(  # type: ignore[call-overload]
        objective,
        np.zeros(dimension),
        jac=True,
        method="L-BFGS-B",
        options={**options, "maxcor": 30},
    )
    theta: FloatArray = np.asarray(result.x, dtype=np.float64)
    return theta, max(1, int(result.nit))


def least_squares(features: FloatArray, target: FloatArray, alpha: float) -> FloatArray:
    """θ that minimises ‖Φθ − y‖²/2n + (α/2)‖θ‖² with a last, unpenalised, constant column.

    ``features`` (n, m − 1) holds no constant column; the answer has shape (m,) with the intercept
    last, and is the one of least norm where columns depend on each other.
    """
    mean, centre = features.mean(axis=0), target.mean()
    centred = features - mean
    if alpha > 0:
        size, width = centred.shape
        centred = np.vstack([centred, np.sqrt(size * alpha) * np.eye(width)])
        target = np.concatenate([target - centre, np.zeros(width)])
    else:
        target = target - centre
    weights = np.linalg.lstsq(centred, target, rcond=None)[0]
    return np.append(weights, centre - mean @ weights)
