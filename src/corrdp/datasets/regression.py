"""Linear data with exactly known distances, for experiments with ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from corrdp.datasets.dataset import Array, Frame, make_frame
from corrdp.datasets.population import Channels, Population
from corrdp.datasets.simulated import (
    LABEL,
    TOO_LARGE,
    Seed,
    Simulated,
    check_count,
    check_unit,
    per_column,
)
from corrdp.errors import ConfigurationError
from corrdp.noise import NoiseSource, noise_source
from corrdp.schema import Column, Label, Numeric, Role, Schema

__all__ = ["make_regression"]

FloatArray: TypeAlias = NDArray[np.float64]
# the error is cut off here, in standard deviations, so that the label has public bounds
CUT = 4.0
MOST_SENSITIVE_ENUMERATED = 8


def make_regression(
    n: int,
    *,
    columns: int = 20,
    sensitive: int = 3,
    distance: float | Sequence[float] = 0.1,
    noise: float = 0.1,
    label_distance: float = 1.0,
    label_role: Literal["insensitive", "public"] = "insensitive",
    frame: Frame = "pandas",
    random_state: Seed = None,
) -> Simulated:
    """y = θᵀx + error with columns in [−1, 1] and chosen distances.

    Sensitive columns are fair signs. Insensitive column u_i lies, with probability d_i, on the
    side of zero that a sensitive column points to, and is uniform on [−1, 1] otherwise: P(s | u_i)
    depends on the sign of u_i only, and its distance is exactly d_i. Σ|θ_j| = 1.

    Parameters
    ----------
    n : int
        Number of records.
    columns, sensitive : int
        Number of columns m and of sensitive ones m_s, 1 ≤ m_s < m.
    distance : float or sequence of m − m_s floats
        Marginal distances d_i in [0, 1] to the joint sensitive tuple.
    noise : float
        Standard deviation of the error before it is cut off at four of them.
    label_distance : float
        Distance d_y of the label, in [0, 1]. The extreme values of θᵀx + error tell s, which is
        distance 1; with probability 1 − d_y the label is an independent draw of the same law
        instead, which tells nothing, and the coefficients of y are d_y·θ.
    label_role : {"insensitive", "public"}
        A public label is *not* in the background of the distances: they are marginal.
    frame : {"pandas", "polars", "pyarrow", "dict"}
    random_state : None, int, NumPy generator or NoiseSource

    Returns
    -------
    Simulated
        With the true ``coefficients``. Conditional distances are None: y is continuous.

    Raises
    ------
    ConfigurationError
        Names the parameter, its value and the allowed range.
    """
    check_count("n", n, 1)
    check_count("columns", columns, 2)
    check_count("sensitive", sensitive, 1, columns - 1)
    distances = per_column("distance", distance, columns - sensitive)
    number = isinstance(noise, (int, float, np.floating)) and not isinstance(noise, bool)
    if not (number and 0.0 < noise < float("inf")):
        raise ConfigurationError(f"noise={noise!r} must be a positive finite number")
    label_distance = check_unit("label_distance", label_distance)
    if label_role not in ("insensitive", "public"):
        raise ConfigurationError(
            f"label_role={label_role!r}: distances to a tuple with a continuous label are not "
            "known; use 'insensitive' or 'public'"
        )
    source = noise_source(random_state).child("simulated")
    table, names = _draw_columns(n, sensitive, distances, source)
    theta = source.child("coefficients").standard_normal(columns)
    theta = theta / np.abs(theta).sum()
    y = _linear(table, theta, noise, source)
    if label_distance < 1.0:
        other = source.child("unrelated")
        unrelated = _linear(_draw_columns(n, sensitive, distances, other)[0], theta, noise, other)
        y = np.where(source.child("linked").uniform(n) < label_distance, y, unrelated)
    found = dict(zip(names, distances))
    insensitive = label_role == "insensitive"
    # beside columns at their extremes, an extreme label is certain to be the record's own
    told = insensitive and label_distance > 0.0
    joint = 1.0 if told else _joint_distance(sensitive, distances)
    if insensitive:
        found[LABEL] = label_distance
    return Simulated(
        name="regression",
        X=make_frame(table, frame),
        y=y,
        schema=_schema(sensitive, names, 1.0 + CUT * noise, label_role),
        distances=found,
        joint_distance=joint,
        reason="given a continuous label, conditional distances are not known"
        + (f"; {TOO_LARGE}" if joint is None else ""),
        coefficients=dict(zip(table, map(float, label_distance * theta))),
    )


def _schema(sensitive: int, names: Sequence[str], bound: float, label_role: Role) -> Schema:
    # a bin for each sign, so that the declared cells of s are those that occur
    described: dict[str, Column] = {
        f"s{j + 1}": Numeric(-1.0, 1.0, role="sensitive", bins=(-1.0, 0.0, 1.0))
        for j in range(sensitive)
    }
    described |= {name: Numeric(-1.0, 1.0, role="insensitive") for name in names}
    return Schema(described, Label(LABEL, low=-bound, high=bound, role=label_role))


def _draw_columns(
    n: int, sensitive: int, distances: Sequence[float], source: NoiseSource
) -> tuple[dict[str, Array], list[str]]:
    """Signs s_j, then columns u_i with density (1 + d_i·s·sign(u_i))/2 on [−1, 1]."""
    table: dict[str, Array] = {
        f"s{j + 1}": np.where(source.child("sensitive", j).uniform(n) < 0.5, -1.0, 1.0)
        for j in range(sensitive)
    }
    names = [f"u{i + 1}" for i in range(len(distances))]
    for i, (name, d) in enumerate(zip(names, distances)):
        sign = table[f"s{i % sensitive + 1}"]
        free = 2.0 * source.child("drawn", i).uniform(n) - 1.0
        tied = source.child("tied", i).uniform(n) < d
        table[name] = np.where(tied, sign * np.abs(free), free)
    return table, names


def _linear(
    table: dict[str, Array], theta: FloatArray, noise: float, source: NoiseSource
) -> FloatArray:
    """θᵀx + error."""
    y: FloatArray = np.column_stack(list(table.values())) @ theta
    return y + noise * _cut_normal(len(y), source)


def _cut_normal(n: int, source: NoiseSource) -> FloatArray:
    """Standard normal errors, conditioned on lying within ±CUT."""
    tail = float(ndtr(-CUT))
    error: FloatArray = ndtri(tail + (1.0 - 2.0 * tail) * source.child("error").uniform(n))
    return np.clip(error, -CUT, CUT)


def _joint_distance(sensitive: int, distances: Sequence[float]) -> float | None:
    """d_U of the columns: only their signs matter, and given s these are independent."""
    used = min(sensitive, len(distances))
    if used > MOST_SENSITIVE_ENUMERATED:
        return None
    signs = np.indices((2,) * used).reshape(used, -1)
    cells = signs.shape[1]
    population = Population(np.full(cells, 1.0 / cells), np.arange(cells))
    groups: dict[tuple[int, float], int] = {}
    for i, d in enumerate(distances):
        groups[i % sensitive, d] = groups.get((i % sensitive, d), 0) + 1
    channels: Channels = [
        (d * np.eye(2)[:, signs[j]] + (1.0 - d) / 2.0, count) for (j, d), count in groups.items()
    ]
    return population.distance(channels)
