"""Ridge regression from noisy moments: floor, ridge by SURE, standard errors (THEORY T11).

Moments are centred at the noisy means, so that the constant is never shrunk, and levels of a
categorical column are coded by contrasts that add up to zero. With g = e − Eθ the error that the
noise puts on the normal equations, cov(g) is known from the allocation; everything follows from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.errors import ConfigurationError

__all__ = ["Moments", "RidgeFit", "solve_ridge"]

FloatArray: TypeAlias = NDArray[np.float64]
RIDGES = 80


@dataclass(frozen=True, eq=False, repr=False)
class Moments:
    """Noisy Σφφᵀ (constant last), Σφy and Σy² with noise variances, and n.

    ``one_hot`` holds (first coordinate, levels) of every categorical column.
    """

    gram: FloatArray
    gram_variance: FloatArray
    cross: FloatArray
    cross_variance: FloatArray
    square: float
    square_variance: float
    n: int
    one_hot: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        m = len(self.cross)
        shapes = (self.gram.shape, self.gram_variance.shape, self.cross_variance.shape)
        if shapes != ((m, m), (m, m), (m,)):
            raise ConfigurationError(f"moments of shapes {shapes} do not belong together")
        numbers = (self.gram, self.gram_variance, self.cross, self.cross_variance)
        if not all(np.isfinite(part).all() for part in numbers) or not self.n >= 2:
            raise ConfigurationError("moments must be finite numbers of two or more records")

    @property
    def noise_norm(self) -> float:
        """E = 2√(max_i Σ_j Var_ij), about the norm of the noise matrix."""
        return 2.0 * math.sqrt(float(self.gram_variance.sum(axis=1).max()))


@dataclass(frozen=True, eq=False, repr=False)
class RidgeFit:
    """Coefficients in the moments' coordinates, constant last.

    Attributes
    ----------
    theta : array of shape (m,)
    standard_error : array of shape (m,), or None where an eigenvalue was floored
        Sampling error and noise together, the shrinkage's bias included.
    ridge : float
        What SURE added to every eigenvalue of the centred moments over n.
    floored : int
        Eigenvalues that were raised to the floor.
    """

    theta: FloatArray
    standard_error: FloatArray | None
    ridge: float
    floored: int


@dataclass(frozen=True, eq=False, repr=False)
class _Centred:
    """Moments over n without the constant, in contrasts: C θ = c up to noise."""

    matrix: FloatArray
    variance: FloatArray
    right: FloatArray
    right_variance: FloatArray
    mean: FloatArray
    basis: FloatArray


def _contrasts(size: int, one_hot: tuple[tuple[int, int], ...]) -> FloatArray:
    """Orthonormal basis of coefficients whose levels add up to zero, shape (size, r)."""
    basis = np.eye(size)
    drop: list[int] = []
    for first, levels in one_hot:
        helmert = np.linalg.qr(np.column_stack([np.ones(levels), np.eye(levels)[:, 1:]]))[0]
        basis[first : first + levels, first : first + levels] = helmert
        drop.append(first)
    return np.delete(basis, drop, axis=1)


def _centred(moments: Moments) -> _Centred:
    n, last = moments.n, len(moments.cross) - 1
    mean, mean_variance = moments.gram[:last, last] / n, moments.gram_variance[:last, last] / n**2
    label, label_variance = moments.cross[last] / n, moments.cross_variance[last] / n**2
    matrix = moments.gram[:last, :last] / n - np.outer(mean, mean) + np.diag(mean_variance)
    spread = np.outer(mean**2, mean_variance)
    variance = moments.gram_variance[:last, :last] / n**2 + spread + spread.T
    right = moments.cross[:last] / n - mean * label
    right_variance = (
        moments.cross_variance[:last] / n**2 + mean**2 * label_variance + mean_variance * label**2
    )
    basis = _contrasts(last, moments.one_hot)
    return _Centred(matrix, variance, right, right_variance, mean, basis)


def solve_ridge(moments: Moments, penalty: float, ridge: float | None = None) -> RidgeFit:
    """Least squares with eigenvalues floored at E/2 and a ridge chosen by SURE.

    Parameters
    ----------
    moments : Moments
    penalty : float
        Σ(t − y)²/2n + (penalty/2)‖θ‖², constant left out, in the moments' coordinates.
    ridge : float, optional
        Added to every eigenvalue instead of what SURE chooses.

    Returns
    -------
    RidgeFit. Post-processing of released moments: nothing is spent.
    """
    centred = _centred(moments)
    basis = centred.basis
    if basis.shape[1] == 0:
        raise ConfigurationError("no coefficient is left: every column has a single level")
    values, vectors = np.linalg.eigh(basis.T @ centred.matrix @ basis)
    axes = basis @ vectors
    floor = max(0.5 * moments.noise_norm / moments.n, 1e-12)
    floored = int((values < floor).sum())
    values = np.maximum(values, floor) + penalty
    right = axes.T @ centred.right
    first = axes @ (right / values)
    if ridge is None:
        noise = axes.T @ _error_covariance(centred, first) @ axes
        ridge = _least_risk(values, right, np.diag(noise))
    shrunk = 1.0 / (values + ridge)
    theta = axes @ (shrunk * right)
    label = moments.cross[-1] / moments.n
    if floored:
        # where the noise drowns a direction the label's mean may be drowned too (Stein's rule)
        noise_share = moments.cross_variance[-1] / moments.n**2 / max(label**2, 1e-300)
        label = float(np.clip(label * max(0.0, 1.0 - noise_share), -1.0, 1.0))
    constant = label - centred.mean @ theta
    errors = None
    if not floored:
        noise = axes.T @ _error_covariance(centred, theta) @ axes
        errors = _standard_errors(moments, centred, axes, values, ridge, theta, noise)
    return RidgeFit(np.append(theta, constant), errors, ridge, floored)


def _error_covariance(centred: _Centred, theta: FloatArray) -> FloatArray:
    """Covariance of g = e − Eθ for a symmetric noise matrix E with these variances."""
    covariance: FloatArray = centred.variance * np.outer(theta, theta)
    own = centred.right_variance + centred.variance @ theta**2
    covariance[np.diag_indices_from(covariance)] = own
    return covariance


def _least_risk(values: FloatArray, right: FloatArray, noise: FloatArray) -> float:
    """The ridge with the least unbiased estimate of the excess squared error.

    Along an eigenvector with eigenvalue λ the estimate β/λ has variance v/λ²; shrinking it by
    s = λ/(λ + ρ) costs λ[(1 − s)²(β² − v) + s²v]/λ².
    """
    top = float(values.max())
    grid = np.concatenate([[0.0], np.geomspace(1e-4 * top, 1e3 * top, RIDGES)])
    keep = values / (values + grid[:, None])
    risk = (((1.0 - keep) ** 2 * (right**2 - noise) + keep**2 * noise) / values).sum(axis=1)
    return float(grid[int(np.argmin(risk))])


def _standard_errors(
    moments: Moments,
    centred: _Centred,
    axes: FloatArray,
    values: FloatArray,
    ridge: float,
    theta: FloatArray,
    noise: FloatArray,
) -> FloatArray:
    """Sampling variance, noise and squared bias of every coefficient, constant last."""
    n = moments.n
    shrunk = 1.0 / (values + ridge)
    residual = _residual_variance(moments, centred, axes, values, noise, theta)
    inner = noise + np.diag(residual * values / n)
    covariance = (axes * shrunk) @ inner @ (axes * shrunk).T
    bias = axes @ (ridge / values * (axes.T @ theta))
    # the bias is estimated too, by what the shrinkage took away
    taken = axes * (ridge * shrunk / values)
    covariance = covariance + taken @ inner @ taken.T
    # second order: the noise in C^-1 spreads what the first order moved, and inflates θ
    inverse = (axes * shrunk) @ axes.T
    spread = centred.variance @ np.diag(covariance)
    covariance = covariance + (inverse * spread) @ inverse.T
    inflation = inverse @ (centred.variance @ np.diag(inverse) * theta)
    variance = np.diag(covariance) + bias**2 + inflation**2
    last = len(centred.mean)
    constant = residual / n + moments.cross_variance[last] / n**2
    constant += float(theta**2 @ moments.gram_variance[:last, last]) / n**2
    constant += float(centred.mean @ covariance @ centred.mean + (centred.mean @ bias) ** 2)
    error: FloatArray = np.sqrt(np.append(variance, constant))
    return error


def _residual_variance(
    moments: Moments,
    centred: _Centred,
    axes: FloatArray,
    values: FloatArray,
    noise: FloatArray,
    theta: FloatArray,
) -> float:
    """σ² of the label given the features, raised by one deviation of its own noise."""
    n, p = moments.n, len(values)
    label, last = moments.cross[-1] / n, len(centred.mean)
    total = moments.square / n - label**2 + moments.cross_variance[last] / n**2
    explained = float(2.0 * (theta @ centred.right) - theta @ centred.matrix @ theta)
    # the fit follows the noise: on average it looks better by gᵀC⁻¹g than it is
    found = total - explained + float((np.diag(noise) / values).sum())
    spread = moments.square_variance / n**2
    spread += float(4.0 * theta**2 @ centred.right_variance)
    spread += float(theta**2 @ centred.variance @ theta**2)
    deviation = math.sqrt(spread)
    unbiased: float = max(found * n / max(n - p - 1, 1), 0.0)
    return unbiased + deviation
