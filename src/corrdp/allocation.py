"""Noise allocation: the least noise that meets the budget of every neighbour kind (THEORY T5).

Gaussian noise  minimise Σ_j η_j n_j σ_j²  subject to  Σ_j a_kj²/σ_j² ≤ b_k,    w_j = 1/σ_j²;
Laplace noise   minimise Σ_j 2 n_j scale_j²  subject to  Σ_j a_kj/scale_j ≤ ε_k, v_j = 1/scale_j.

Both are `minimise Σ c_j/v_j^p subject to A v ≤ 1` (p = 1 and p = 2) after each row is divided by
its budget. Whatever the solver does, the result is scaled to meet every budget, so privacy never
rests on convergence; the duality gap says how much noise was given away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack

from corrdp.errors import ConfigurationError

__all__ = ["Allocation", "LaplaceAllocation", "allocate", "allocate_laplace", "one_scale_laplace"]

Floats = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_HUGE = float(np.finfo(np.float64).max)
_COLD_STEPS = 100
_WARM_STEPS = 25


@dataclass(frozen=True, eq=False)
class Allocation:
    """Gaussian noise per block.

    Attributes
    ----------
    sigma
        Standard deviation of every coordinate of a block, one number per block; 0 where no kind
        with a finite budget touches the block.
    total_variance
        Σ n_j σ_j².
    gap
        Relative duality gap: the objective is at most this fraction above the least possible.
    dual
        One multiplier per kind (0 for dropped kinds); pass as ``start=`` to the next call.
    """

    sigma: Floats
    total_variance: float
    gap: float
    dual: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", _result("sigma", self.sigma))
        object.__setattr__(self, "dual", _result("dual", self.dual))
        _result("total_variance", self.total_variance)
        _result("gap", self.gap)


@dataclass(frozen=True, eq=False)
class LaplaceAllocation:
    """Laplace noise per block: `scale` per block, `total_variance` = Σ 2 n_j scale_j².

    `gap` and `dual` as in `Allocation`.
    """

    scale: Floats
    total_variance: float
    gap: float
    dual: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _result("scale", self.scale))
        object.__setattr__(self, "dual", _result("dual", self.dual))
        _result("total_variance", self.total_variance)
        _result("gap", self.gap)


def allocate(
    sensitivity: ArrayLike,
    budget: ArrayLike,
    dimension: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    start: ArrayLike | None = None,
    tolerance: float = 1e-8,
) -> Allocation:
    """Least Gaussian noise under a μ² budget per neighbour kind (THEORY T5).

    Parameters
    ----------
    sensitivity
        (kinds × blocks): how far in L2 a change of the kind moves the WHOLE block; n merged
        scalars that each move by a have a√n here, not a.
    budget
        (kinds,): the μ_k² of this release; ``inf`` drops the kind.
    dimension
        (blocks,): number of coordinates n_j ≥ 1.
    weights
        (blocks,): positive weight of each block in the objective, η_j² of T5; default 1.
    start
        `dual` of an earlier call with the same kinds.
    tolerance
        Relative duality gap at which to stop.

    Returns
    -------
    Allocation. Σ_j a_kj²/σ_j² ≤ b_k holds in exact arithmetic for every kind, converged or not,
    so the release is √b_k-GDP for kind k (THEORY T4).

    Raises
    ------
    ConfigurationError
        A shape does not fit, a number is NaN or out of range, or a kind has budget 0 but moves.
    """
    problem = _Problem.check(sensitivity, budget, dimension, weights, start, tolerance)
    sigma, gap, dual = _least_noise(problem, power=1)
    return Allocation(sigma, float(problem.dimension @ sigma**2), gap, dual)


def allocate_laplace(
    sensitivity: ArrayLike,
    budget: ArrayLike,
    dimension: ArrayLike,
    *,
    start: ArrayLike | None = None,
    tolerance: float = 1e-8,
) -> LaplaceAllocation:
    """Least Laplace noise under a pure-ε budget per neighbour kind (THEORY T5).

    As `allocate`, with L1 bounds in `sensitivity` and ε_k in `budget`: Σ_j a_kj/scale_j ≤ ε_k
    holds in exact arithmetic, so the release is ε_k-DP for kind k.
    """
    problem = _Problem.check(sensitivity, budget, dimension, None, start, tolerance)
    scale, gap, dual = _least_noise(problem, power=2)
    return LaplaceAllocation(scale, float(2 * (problem.dimension @ scale**2)), gap, dual)


def one_scale_laplace(sensitivity_total: ArrayLike, distances: ArrayLike, epsilon: float) -> float:
    """Laplace scale of the paper's mechanism: max_k d_k Δ_k / ε, rounded up (THEORY T5).

    `sensitivity_total` is the L1 bound Δ_k of the whole query under kind k, `distances` the
    d_k in [0, 1]; with that scale on every coordinate kind k is (ε/d_k)-DP. Raises
    ConfigurationError for NaN, numbers out of range or shapes that differ.
    """
    total = _numbers("sensitivity_total", sensitivity_total, 1)
    distance = _numbers("distances", distances, 1)
    _within("sensitivity_total", total, 0.0, _HUGE, "a finite bound >= 0")
    _within("distances", distance, 0.0, 1.0, "a number in [0, 1]")
    if total.shape != distance.shape:
        raise ConfigurationError(
            f"distances has length {distance.size}, sensitivity_total {total.size}: pass one each"
        )
    if not epsilon > 0:
        raise ConfigurationError(f"epsilon={epsilon} is not allowed: pass epsilon > 0")
    if math.isinf(epsilon) or not (total * distance).any():
        return 0.0
    scale = float((total * distance).max()) / epsilon * (1 + 4 * _EPS)
    if not math.isfinite(scale):
        raise ConfigurationError(f"epsilon={epsilon} needs infinite noise: pass a larger epsilon")
    return scale


# --- the program in normal form ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Problem:
    """Checked arguments; `cost` is the objective's weight of a block, η_j² n_j."""

    sensitivity: Floats
    budget: Floats
    dimension: Floats
    cost: Floats
    start: Floats | None
    tolerance: float

    @classmethod
    def check(
        cls,
        sensitivity: ArrayLike,
        budget: ArrayLike,
        dimension: ArrayLike,
        weights: ArrayLike | None,
        start: ArrayLike | None,
        tolerance: float,
    ) -> _Problem:
        a = _numbers("sensitivity", sensitivity, 2)
        b = _numbers("budget", budget, 1, a.shape[0])
        n = _numbers("dimension", dimension, 1, a.shape[1])
        _within("sensitivity", a, 0.0, _HUGE, "a finite bound >= 0")
        _within("budget", b, 0.0, math.inf, "a number >= 0 or inf")
        _within("dimension", n, 1.0, _HUGE, "a count >= 1")
        cost = n
        if weights is not None:
            eta = _numbers("weights", weights, 1, a.shape[1])
            _within("weights", eta, 1e-150, 1e150, "a number > 0, such as a squared step rate")
            cost = n * eta
        first = None
        if start is not None:
            first = _numbers("start", start, 1, a.shape[0])
            _within("start", first, 0.0, _HUGE, "the dual of a result")
        if not (0 < tolerance < math.inf):
            raise ConfigurationError(f"tolerance={tolerance} is not allowed: pass a number > 0")
        stuck = (b == 0) & a.any(axis=1)
        if stuck.any():
            raise ConfigurationError(
                f"budget[{int(stuck.argmax())}]=0 but this kind moves a block: "
                "no finite noise meets it; give it a budget > 0"
            )
        return cls(a, b, n, cost, first, float(tolerance))


def _least_noise(problem: _Problem, power: int) -> tuple[Floats, float, Floats]:
    """Noise per block, relative duality gap and dual of `minimise Σ c_j noise_j²` (THEORY T5).

    With p = `power`, noise_j = unit_j·y_j^(−p/2), and Σ_j ratio_kj^(2/p) y_j ≤ 1 is the budget.
    """
    a, b = problem.sensitivity, problem.budget
    noise, dual = np.zeros(a.shape[1]), np.zeros(a.shape[0])
    kinds = np.flatnonzero((b < math.inf) & a.any(axis=1))
    if not kinds.size:
        return noise, 0.0, dual
    a, b = (a, b) if kinds.size == b.size else (a[kinds], b[kinds])
    blocks = np.flatnonzero(a.any(axis=0))
    a = a if blocks.size == a.shape[1] else a[:, blocks]
    with np.errstate(all="ignore"):
        relative = a / (np.sqrt(b) if power == 1 else b)[:, None]
        unit = relative.max(axis=0)
        if not (unit.min() > 1e-150 and unit.max() < 1e150):
            raise ConfigurationError(
                "sensitivity / budget leaves 1e-150..1e150: express the query in other units"
            )
        ratio = relative / unit
        costs = problem.cost[blocks] * (unit / unit.max()) ** 2
        total = float(costs.max())
        costs = np.maximum(costs / total, 1e-250)
        start = None if problem.start is None else problem.start[kinds] * b
        matrix = ratio * ratio if power == 1 else ratio
        y, bound, multipliers = _solve(matrix, costs, power, start, problem.tolerance)
        scaled = _meet_budgets(1 / (np.sqrt(y) if power == 1 else y), ratio, power)
        dual[kinds] = np.minimum(multipliers * (total * float(unit.max()) ** 2 / b), _HUGE)
    noise[blocks] = unit * scaled * (1 + 4 * _EPS)
    gap = max(float(costs @ scaled**2) / bound - 1.0, 0.0)
    return noise, gap, dual


def _meet_budgets(noise: Floats, ratio: Floats, power: int) -> Floats:
    """Scale the noise until Σ_j (ratio_kj/noise_j)^(2/p) ≤ 1 in exact arithmetic for every k."""
    terms = ratio / noise
    spent = float((terms * terms if power == 1 else terms).sum(axis=1).max())
    spent *= 1 + (ratio.shape[1] + 16) * _EPS  # more than a sum of that many terms can lose
    return noise * (math.sqrt(spent) if power == 1 else spent)


# --- the solver ----------------------------------------------------------------------------------


def _solve(
    A: Floats, c: Floats, power: int, start: Floats | None, tolerance: float
) -> tuple[Floats, float, Floats]:
    """Minimise Σ c_j/y_j^p subject to A y ≤ 1; returns y, a lower bound of the minimum and λ."""
    best = None
    if start is not None and 0 < float(start.max()) < math.inf:
        lam = start / float(start.max())
        best = _Point.at(A, c, power, np.maximum(lam, 1e-12 * lam.sum() / lam.size))
        if not best.gap <= tolerance:
            lifted = _Point.at(A, c, power, np.maximum(best.lam, 1e-2 * best.lam.sum() / lam.size))
            best = _newton(A, c, power, lifted, 1e-2, tolerance, _WARM_STEPS)
    if best is None or not best.gap <= tolerance:
        first = _Point.at(A, c, power, np.ones(A.shape[0]))
        cold = _newton(A, c, power, first, 1.0, tolerance, _COLD_STEPS)
        best = cold if best is None or not best.gap <= cold.gap else best
    return best.y, best.bound, best.lam


class _Point(NamedTuple):
    """A dual point λ, moved to the best multiple along its ray, and what follows from it.

    y_j = (p c_j/s_j)^(1/(p+1)) with s = Aᵀλ; `slack` is 1 − A y; `bound` the dual value, which
    nothing feasible can go below; `gap` how far y, scaled to feasibility, lies above it.
    """

    lam: Floats
    s: Floats
    y: Floats
    slack: Floats
    bound: float
    gap: float

    @classmethod
    def at(cls, A: Floats, c: Floats, power: int, lam: Floats) -> _Point:
        s = lam @ A
        y = np.sqrt(c / s) if power == 1 else np.cbrt(2 * c / s)
        total = float(lam.sum())
        root = float(s @ y) / total
        grow = root ** (power + 1)
        y = y / root
        use = A @ y
        gap = float(use.max()) ** power - 1
        return cls(lam * grow, s * grow, y, 1 - use, grow * total / power, gap)


def _newton(
    A: Floats, c: Floats, power: int, point: _Point, least: float, tolerance: float, steps: int
) -> _Point:
    """Primal–dual interior-point iterations from `point`; the point of the smallest gap seen.

    z ≥ 0 stands for the slack; `least` keeps it away from 0 at the start.
    """
    best, centre, z = point, 0.1, np.maximum(point.slack, least)
    for _ in range(steps):
        if best.gap <= tolerance:
            break
        lam, ratio = point.lam, z / point.lam
        target = centre * float(lam @ z) / lam.size / lam
        half = A * np.sqrt(point.y / ((power + 1) * point.s))
        hessian = half @ half.T
        diagonal = hessian.ravel()[:: lam.size + 1]
        diagonal *= 1 + 1e-13  # duplicated kinds make the Hessian singular
        diagonal += ratio
        _factor, step, failed = lapack.dposv(hessian.T, target - point.slack)
        if failed:
            break
        step_z = target - z - ratio * step
        length = 0.99 / max(0.99, -float((step / lam).min()))
        length_z = 0.99 / max(0.99, -float((step_z / z).min()))
        z = z + length_z * step_z
        point = _Point.at(A, c, power, lam + length * step)
        best = point if point.gap < best.gap else best
        centre = 0.01 if min(length, length_z) > 0.9 else 0.1
    return best


# --- arguments -----------------------------------------------------------------------------------


def _numbers(name: str, value: ArrayLike, ndim: int, length: int | None = None) -> Floats:
    try:
        out = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{name} is not an array of numbers: {error}") from error
    if out.ndim != ndim or out.size == 0 or (length is not None and out.shape[0] != length):
        wanted = "(kinds, blocks)" if ndim == 2 else f"({'n' if length is None else length},)"
        raise ConfigurationError(f"{name} has shape {out.shape}: pass shape {wanted}")
    return out


def _within(name: str, value: Floats, low: float, high: float, wanted: str) -> None:
    if value.min() >= low and value.max() <= high:  # false for NaN
        return
    at = tuple(int(i) for i in np.argwhere(~((value >= low) & (value <= high)))[0])
    raise ConfigurationError(f"{name}{list(at)}={value[at]} is not allowed: pass {wanted}")


def _result(name: str, value: ArrayLike) -> Floats:
    """A read-only copy, refused if it is not a finite number >= 0 throughout."""
    out = np.array(value, dtype=np.float64)
    if not (out.min(initial=0.0) >= 0 and out.max(initial=0.0) < math.inf):
        raise ConfigurationError(f"{name}={out} is not allowed: pass finite numbers >= 0")
    out.setflags(write=False)
    return out
