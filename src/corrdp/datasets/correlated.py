"""Tables with a chosen correlation and exactly known distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.datasets.dataset import Array, Frame, make_frame
from corrdp.datasets.mixture import (
    LEVELS,
    MixtureModel,
    conditional_distances,
    joint_distance,
    marginal_distances,
)
from corrdp.datasets.simulated import (
    LABEL,
    TOO_LARGE,
    Seed,
    Simulated,
    check_count,
    check_unit,
    draw_levels,
    per_column,
)
from corrdp.errors import ConfigurationError
from corrdp.noise import NoiseSource, noise_source
from corrdp.schema import Categorical, Column, Label, Numeric, Role, Schema

__all__ = ["make_correlated"]

IntArray: TypeAlias = NDArray[np.int64]
Kind: TypeAlias = Literal["categorical", "binary", "numeric"]
# one bin per value of the numeric grid: distances on the bins are those of the column
_GRID_BINS = (-1.0, -0.75, -0.25, 0.25, 0.75, 1.0)


def make_correlated(
    n: int,
    *,
    columns: int = 8,
    sensitive: int = 2,
    strength: float | Sequence[float] = 0.3,
    label_role: Role = "insensitive",
    label_strength: float = 0.2,
    label_signal: float = 0.8,
    kind: Kind = "categorical",
    frame: Frame = "pandas",
    random_state: Seed = None,
) -> Simulated:
    """A table with chosen correlation between its insensitive and its sensitive columns.

    Sensitive columns ``s1..`` are independent; insensitive column ``u_i`` copies one of them with
    probability ``strength`` and is otherwise drawn independently from the same distribution, so
    that its marginal distance is exactly ``strength`` unless the label is sensitive or public.
    The label ``y`` depends in the same way on ``s1``, and through a hidden bit on every column.

    Parameters
    ----------
    n : int
        Number of records.
    columns, sensitive : int
        Number of columns m and of sensitive ones m_s, 1 ≤ m_s < m.
    strength : float or sequence of m − m_s floats
        Copying probabilities in [0, 1].
    label_role : {"insensitive", "sensitive", "public"}
    label_strength : float
        Distance of an insensitive label.
    label_signal : float
        How far columns lean with the label, in [0, 1].
    kind : {"categorical", "binary", "numeric"}
        Three levels, two, or five numbers in [−1, 1].
    frame : {"pandas", "polars", "pyarrow", "dict"}
    random_state : None, int, NumPy generator or NoiseSource

    Returns
    -------
    Simulated
        With exact distances; joint and conditional ones are None where the domain is too large.

    Raises
    ------
    ConfigurationError
        Names the parameter, its value and the allowed range.
    """
    if kind not in LEVELS:
        raise ConfigurationError(f"kind={kind!r} is unknown; use {', '.join(LEVELS)}")
    check_count("n", n, 1)
    check_count("columns", columns, 2)
    check_count("sensitive", sensitive, 1, columns - 1)
    model = MixtureModel(
        LEVELS[kind],
        sensitive,
        per_column("strength", strength, columns - sensitive),
        label_role,
        check_unit("label_strength", label_strength),
        check_unit("label_signal", label_signal),
    )
    schema = _schema(model, kind)
    table, y = _sample(model, n, noise_source(random_state).child("simulated"))
    joint, conditional = joint_distance(model), conditional_distances(model)
    return Simulated(
        name="correlated",
        X=make_frame(table, frame),
        y=y,
        schema=schema,
        distances=marginal_distances(model),
        background=(LABEL,) if label_role == "public" else (),
        joint_distance=joint,
        conditional_distances=conditional,
        reason=TOO_LARGE if joint is None or conditional is None else "",
    )


def _schema(model: MixtureModel, kind: Kind) -> Schema:
    def column(role: Role) -> Column:
        if kind == "numeric":
            return Numeric(-1.0, 1.0, role=role, bins=_GRID_BINS)
        return Categorical(model.levels.values, role=role)

    names = {f"s{j + 1}": column("sensitive") for j in range(model.sensitive)}
    names |= {f"u{i + 1}": column("insensitive") for i in range(len(model.strengths))}
    return Schema(names, Label(LABEL, (0, 1), role=model.label_role))


def _sample(model: MixtureModel, n: int, source: NoiseSource) -> tuple[dict[str, Array], IntArray]:
    """Draw n records, each column from a stream of its own."""
    levels = model.levels
    s = [
        draw_levels(levels.probabilities, source.child("sensitive", j).uniform(n))
        for j in range(model.sensitive)
    ]
    hidden = (source.child("hidden").uniform(n) < model.label_share).astype(np.int64)
    from_s = source.child("label").uniform(n) < model.label_strength
    y = np.where(from_s, levels.upper[s[0]].astype(np.int64), hidden)
    independent = model.independent_part().T[hidden]
    codes = {f"s{j + 1}": code for j, code in enumerate(s)}
    for i, strength in enumerate(model.strengths):
        copied = source.child("copied", i).uniform(n) < strength
        drawn = draw_levels(independent, source.child("drawn", i).uniform(n))
        codes[f"u{i + 1}"] = np.where(copied, s[model.source_of(i)], drawn)
    values = np.array(levels.values)
    return {name: values[code] for name, code in codes.items()}, y
