"""Small populations that show where distances mislead (the warnings of THEORY T2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.datasets.dataset import Array, Frame, make_frame
from corrdp.datasets.population import Population
from corrdp.datasets.simulated import LABEL, Seed, Simulated, check_count, check_unit, draw_levels
from corrdp.noise import noise_source
from corrdp.schema import Categorical, Label, Schema

__all__ = ["make_copy", "make_near_copy", "make_parity", "make_xor"]

Bits: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class _Atom:
    """A joint value: its probability, the sensitive bits and the insensitive bits."""

    share: float
    sensitive: Bits
    insensitive: Bits


def make_xor(n: int, *, frame: Frame = "pandas", random_state: Seed = None) -> Simulated:
    """s = u1 ⊕ u2 with fair bits: each column alone tells nothing, both together everything.

    Marginal distances 0, conditional distances 1, d_U = 1: marginal distances do not bound
    conditional ones, and they do not add up. The label is a fair coin that tells nothing.

    Parameters
    ----------
    n : int
        Number of records.
    frame : {"pandas", "polars", "pyarrow", "dict"}
    random_state : None, int, NumPy generator or NoiseSource
    """
    atoms = [_Atom(0.25, (a ^ b,), (a, b)) for a in (0, 1) for b in (0, 1)]
    return _simulate("xor", atoms, n, frame, random_state)


def make_copy(n: int, *, frame: Frame = "pandas", random_state: Seed = None) -> Simulated:
    """u1 = u2 = s: each column tells everything, and either is redundant given the other.

    Marginal distances 1. Given u2 the values of u1 that occur do not differ in what they tell
    about s, which would give a conditional distance of 0; but u1 ≠ u2 never occurs, P(s | u) is
    not defined there, and such a combination counts as 1. The label is a fair coin.

    Parameters
    ----------
    n : int
        Number of records.
    frame : {"pandas", "polars", "pyarrow", "dict"}
    random_state : None, int, NumPy generator or NoiseSource
    """
    atoms = [_Atom(0.5, (bit,), (bit, bit)) for bit in (0, 1)]
    return _simulate("copy", atoms, n, frame, random_state)


def make_near_copy(
    n: int,
    *,
    agreement: float = 0.99,
    frame: Frame = "pandas",
    random_state: Seed = None,
) -> Simulated:
    """s = u2, and u1 = u2 with probability ``agreement``: conditional 0 where marginal is near 1.

    u1 has marginal distance |2·agreement − 1| and, for an agreement strictly between 0 and 1,
    conditional distance 0: conditional distances do not bound marginal ones. u2 has 1 and 1. The
    label is a fair coin.

    Parameters
    ----------
    n : int
        Number of records.
    agreement : float
        P(u1 = u2), in [0, 1].
    frame : {"pandas", "polars", "pyarrow", "dict"}
    random_state : None, int, NumPy generator or NoiseSource
    """
    same = check_unit("agreement", agreement)
    joint = [(a, b, (same if a == b else 1.0 - same) / 2.0) for a in (0, 1) for b in (0, 1)]
    atoms = [_Atom(share, (b,), (a, b)) for a, b, share in joint if share > 0]
    return _simulate("near-copy", atoms, n, frame, random_state)


def make_parity(n: int, *, frame: Frame = "pandas", random_state: Seed = None) -> Simulated:
    """u1 = s1 ⊕ s2 with fair bits: distance 0 to each sensitive column, 1 to the pair.

    A maximum over single sensitive columns is not an upper bound of the distance to the joint
    tuple. The label is a fair coin.

    Parameters
    ----------
    n : int
        Number of records.
    frame : {"pandas", "polars", "pyarrow", "dict"}
    random_state : None, int, NumPy generator or NoiseSource
    """
    atoms = [_Atom(0.25, (a, b), (a ^ b,)) for a in (0, 1) for b in (0, 1)]
    return _simulate("parity", atoms, n, frame, random_state)


def _simulate(
    name: str, atoms: Sequence[_Atom], n: int, frame: Frame, random_state: Seed
) -> Simulated:
    """Draw from a list of joint values and enumerate its distances; y is a fair coin."""
    check_count("n", n, 1)
    columns = [f"u{i + 1}" for i in range(len(atoms[0].insensitive))]
    table, y = _draw(atoms, n, random_state)
    population, channels = _population(atoms)
    names = [*columns, LABEL]
    one = {name: (channel, 1) for name, channel in zip(names, channels, strict=True)}
    marginal, conditional = {}, {}
    for name_ in names:
        others = [one[other] for other in names if other != name_]
        marginal[name_] = population.distance([one[name_]])
        conditional[name_] = population.distance([one[name_]], others)
    bit = Categorical((0, 1))
    schema = Schema(
        {c: Categorical((0, 1), role="insensitive") if c in columns else bit for c in table},
        Label(LABEL, (0, 1), role="insensitive"),
    )
    return Simulated(
        name=name,
        X=make_frame(table, frame),
        y=y,
        schema=schema,
        distances=_known(marginal),
        joint_distance=population.distance(list(one.values())),
        conditional_distances=_known(conditional),
    )


def _draw(
    atoms: Sequence[_Atom], n: int, random_state: Seed
) -> tuple[dict[str, Array], NDArray[np.int64]]:
    source = noise_source(random_state).child("simulated")
    shares = np.array([atom.share for atom in atoms])
    drawn = draw_levels(shares, source.child("records").uniform(n))
    y = (source.child("label").uniform(n) < 0.5).astype(np.int64)
    s = np.array([atom.sensitive for atom in atoms])[drawn]
    u = np.array([atom.insensitive for atom in atoms])[drawn]
    table: dict[str, Array] = {f"s{j + 1}": s[:, j] for j in range(s.shape[1])}
    table |= {f"u{i + 1}": u[:, i] for i in range(u.shape[1])}
    return table, y


def _population(atoms: Sequence[_Atom]) -> tuple[Population, list[NDArray[np.float64]]]:
    """A cell per joint value of (atom, y); every column, y last, is a function of the cell."""
    cells = [(atom, y) for atom in atoms for y in (0, 1)]
    tuples = sorted({atom.sensitive for atom in atoms})
    population = Population(
        np.array([atom.share / 2.0 for atom, _ in cells]),
        np.array([tuples.index(atom.sensitive) for atom, _ in cells]),
    )
    columns = zip(*((*atom.insensitive, y) for atom, y in cells), strict=True)
    return population, [np.eye(2)[:, list(levels)] for levels in columns]


def _known(distances: dict[str, float | None]) -> dict[str, float]:
    """These domains are small: nothing is ever too large to enumerate."""
    return {name: value for name, value in distances.items() if value is not None}
