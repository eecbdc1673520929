"""The lattice: rounding, exact sums, and what goes wrong without it (THEORY T14)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrdp.errors import ConfigurationError, DataError
from corrdp.noise import Lattice, noise_source


def test_steps() -> None:
    lattice = Lattice(residual_bits=5, feature_bits=3)
    assert (lattice.residual_step, lattice.feature_step) == (2.0**-5, 2.0**-3)
    assert lattice.spacing == 2.0**-8
    assert Lattice().spacing == 2.0**-14


@given(st.floats(-100, 100), st.floats(-100, 100))
def test_products_of_rounded_factors_are_on_the_lattice(residual: float, feature: float) -> None:
    lattice = Lattice()
    r, x = lattice.round_residual(residual), lattice.round_feature(feature)
    assert abs(r - residual) <= lattice.residual_step / 2
    assert abs(x - feature) <= lattice.feature_step / 2
    cells = r * x / lattice.spacing
    assert cells == np.rint(cells)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(wrong: float) -> None:
    for rounding in (Lattice().round_feature, Lattice().round_residual):
        with pytest.raises(DataError, match="NaN or infinite"):
            rounding([0.5, wrong])


@pytest.mark.parametrize("bits", [(-1, 7), (7, -1), (7.0, 7), (True, 7), (np.nan, 7), (30, 23)])
def test_wrong_bits_are_refused(bits: Any) -> None:
    with pytest.raises(ConfigurationError, match="bits"):
        Lattice(*bits)


def test_the_limit_of_exact_sums_is_sharp() -> None:
    lattice = Lattice(0, 0)
    lattice.check_exact_sum(2**53 - 1, 1.0)
    for n, term in ((2**53, 1.0), (2**52, 2.0)):
        with pytest.raises(ConfigurationError, match="do not add up exactly"):
            lattice.check_exact_sum(n, term)


@given(st.integers(1, 10**12), st.floats(1e-3, 1e5), st.integers(0, 26), st.integers(0, 26))
def test_a_refusal_names_the_finest_lattice_that_would_do(
    n: int, term: float, p: int, q: int
) -> None:
    try:
        Lattice(p, q).check_exact_sum(n, term)
    except ConfigurationError as error:
        if "scale the terms down" in str(error):
            with pytest.raises(ConfigurationError):
                Lattice(0, 0).check_exact_sum(n, term)
            return
        named = str(error).rsplit("Lattice(")[1].rstrip(")").split(", ")
        best = Lattice(int(named[0]), int(named[1]))
        best.check_exact_sum(n, term)
        with pytest.raises(ConfigurationError):
            Lattice(best.residual_bits + 1, best.feature_bits).check_exact_sum(n, term)


@pytest.mark.parametrize(
    "n, term", [(-1, 1.0), (1.5, 1.0), (True, 1.0), (1, np.nan), (1, np.inf), (1, -1.0)]
)
def test_wrong_sums_are_refused(n: Any, term: float) -> None:
    with pytest.raises(ConfigurationError, match="is not"):
        Lattice().check_exact_sum(n, term)


def running_sum(terms: np.ndarray) -> float:
    return float(np.add.accumulate(terms)[-1])


def test_float_sums_move_more_than_their_sensitivity_and_lattice_sums_do_not() -> None:
    rest = np.full(4096, 1.25 * 2.0**-53)  # rounds up to 2^-52 next to 1, to 2^-53 next to -1
    records = [np.concatenate(([first], rest)) for first in (1.0, -1.0)]
    naive = running_sum(records[0]) - running_sum(records[1])
    assert naive > 2.0 + 4000 * 2.0**-53  # substituting one term of [-1, 1] may move it by 2
    rounded = [Lattice().round_feature(r) for r in records]
    assert running_sum(rounded[0]) - running_sum(rounded[1]) <= 2.0


def test_float_sums_depend_on_the_order_and_lattice_sums_do_not() -> None:
    source = noise_source(4)
    terms = 1e3 * source.standard_normal(20_000)
    order = np.argsort(source.uniform(terms.size))
    assert running_sum(terms) != running_sum(terms[order])
    lattice = Lattice()
    exact = lattice.round_residual(terms) * lattice.round_feature(terms[::-1])
    lattice.check_exact_sum(exact.size, float(np.abs(exact).max()))
    sums = {running_sum(exact), running_sum(exact[order]), float(exact.sum())}
    sums |= {float(exact.reshape(200, 100).sum(axis=0).sum()), float(exact @ np.ones(exact.size))}
    assert len(sums) == 1
