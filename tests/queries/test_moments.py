"""Second moments, ridge from them, standard errors, and the estimator's solver."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corrdp import CorrDPRidge, load, verify
from corrdp.datasets import make_regression
from corrdp.distance import EstimateSettings
from corrdp.encoding import INTERCEPT, Encoder
from corrdp.erm.exact import least_squares
from corrdp.errors import ConfigurationError, DataError, UtilityWarning
from corrdp.noise import noise_source
from corrdp.privacy.certificate import certified_loss
from corrdp.privacy.ledger import decode_array, encode_array
from corrdp.queries import SecondMoments, release
from corrdp.queries import plan as queries_plan
from corrdp.queries.coding import read_checked
from corrdp.queries.plan import draw
from corrdp.queries.regression import (
    MOMENTS_BELOW,
    MOST_NOISE_RATIO,
    moments_of,
    noise_ratio,
    plan_moments,
    prefer_moments,
    relative_noise,
)
from corrdp.queries.ridge import Moments, solve_ridge
from corrdp.records import read_records
from corrdp.schema import Schema
from tests.queries.test_release import altered, table
from tests.queries.tiny import DISTANCES, SCHEMA, declaration


def exact_moments(data: dict[str, Any], schema: Schema = SCHEMA) -> Moments:
    """The same moments without noise."""
    plan = plan_moments(declaration(n=len(data["y"]), schema=schema))
    coded = read_checked(data, schema).coded(plan.bits)
    released = plan.released([block.total(coded) for block in plan.blocks])
    moments = moments_of(plan, released)
    zero = np.zeros_like
    return Moments(
        moments.gram,
        zero(moments.gram_variance),
        moments.cross,
        zero(moments.cross_variance),
        moments.square,
        0.0,
        moments.n,
        moments.one_hot,
    )


def design(data: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Encoded features (constant last) and scaled label, densely."""
    encoder = Encoder(SCHEMA, 1.0)
    made = encoder.transform(read_records({k: v for k, v in data.items() if k != "y"}, SCHEMA))
    dense = np.ones((made.size, encoder.dimension))
    dense[:, encoder.numeric_index] = made.numeric
    dense[:, encoder.one_hot_index] = made.one_hot.toarray()
    return dense, data["y"] / 2.0 - 1.0


def test_moments_are_those_of_the_encoder() -> None:
    data = table(300)
    features, label = design(data)
    moments = exact_moments(data)
    assert moments.gram == pytest.approx(features.T @ features, abs=1e-2)
    assert moments.cross == pytest.approx(features.T @ label, abs=1e-2)
    assert moments.square == pytest.approx(label @ label, abs=1e-2)


def test_every_unknown_entry_has_the_variance_of_its_noise() -> None:
    data = table(200)
    plan = plan_moments(declaration(n=200))
    checked = read_checked(data, SCHEMA)
    exact = exact_moments(data)
    draws = [
        moments_of(plan, plan.released(draw(plan, checked, noise_source(s)))) for s in range(60)
    ]
    gaps = np.array([one.gram - exact.gram for one in draws])
    known = draws[0].gram_variance == 0
    assert (gaps[:, known] == 0).all()
    spread = (gaps[:, ~known] ** 2).mean(axis=0) / draws[0].gram_variance[~known]
    assert 0.9 < spread.mean() < 1.1
    assert spread.max() < 2.2
    # only entries of public columns, zeros within a category, and n itself carry no noise
    names = SecondMoments((*SCHEMA.used, "y")).layout(SCHEMA)[1]
    assert names[-1] == INTERCEPT
    assert known.sum() == 1 + 2 * 2 + 4 + 4  # n; zeros of s and g; w with itself and the constant


@pytest.mark.parametrize("epsilon", [0.1, 0.01, 1e-3])
def test_a_coarser_lattice_makes_room_for_much_noise(epsilon: float) -> None:
    one = declaration(epsilon=epsilon, n=1000)
    plan = plan_moments(one)
    finest = queries_plan._bits(plan.blocks, plan.noise, one.n)
    assert (plan.bits < finest) == (epsilon < 0.1)

    def lost(bits: int) -> list[float]:
        sampler = replace(plan, bits=bits).sampler()
        used = zip(one.budgets(), plan.use(), strict=True)
        return [
            certified_loss([math.sqrt(use)], [sampler], budget.delta) / budget.epsilon
            for budget, use in used
            if math.isfinite(budget.mu_squared)
        ]

    assert max(lost(plan.bits)) <= 1.0
    if plan.bits < finest:  # and no coarser than it has to be
        assert max(lost(plan.bits + 1)) > 1.0
    # rounding is nothing beside the noise
    assert one.n * 2.0**-plan.bits < 0.01 * plan.noise[plan.noise > 0].min()


def test_counts_within_a_category_are_released_once() -> None:
    plan = plan_moments(declaration())
    assert [b.name for b in plan.blocks].count("table ['s']") == 1
    entries = sum(block.size for block in plan.blocks)
    features, numbers = 2 + 2 + 2, 5
    # diagonal and cross tables, level sums, and the triangle of numbers with the constant
    assert entries == features + 3 * 4 + features * numbers + numbers * (numbers + 1) // 2 + numbers


@pytest.mark.parametrize("penalty", [0.0, 0.05])
def test_without_noise_it_is_ridge_regression(penalty: float) -> None:
    data = table(400)
    data["y"] = np.clip(1 + data["u"] + 0.1 * data["t"] * (data["s"] == "a"), 0, 4)
    features, label = design(data)
    fit = solve_ridge(exact_moments(data), penalty)
    best = least_squares(features[:, :-1], label, penalty)
    assert fit.floored == 0
    assert features @ fit.theta == pytest.approx(features @ best, abs=2e-3)
    for first, size in exact_moments(data).one_hot:
        assert abs(fit.theta[first : first + size].sum()) < 1e-9


def simulated(n: int, seed: int = 0, **settings: Any) -> Any:
    return make_regression(n, columns=6, sensitive=2, random_state=seed, frame="dict", **settings)


def fitted(sim: Any, seed: int = 0, **settings: Any) -> CorrDPRidge:
    given = {"epsilon": 1.0, "delta": 1e-6, "distances": sim.distances, "solver": "moments"}
    return CorrDPRidge(sim.schema, random_state=seed, **{**given, **settings}).fit(sim.X, sim.y)


def noisy_moments(sensitive: bool, runs: int) -> list[tuple[Any, Moments]]:
    """Simulated tables with released moments; one plan serves all."""
    found = []
    schema, distances = simulated(2).schema, simulated(2).distances
    if sensitive:
        schema, distances = schema.all_sensitive(), {}
    plan = plan_moments(declaration(schema=schema, distances=distances, n=4000))
    for seed in range(runs):
        sim = simulated(4000, seed)
        checked = read_checked({**sim.X, "y": sim.y}, schema)
        released = plan.released(draw(plan, checked, noise_source(seed)))
        found.append((sim, moments_of(plan, released)))
    return found


def hits(sim: Any, moments: Moments) -> np.ndarray:
    """Which 95 % intervals hold the true coefficient."""
    fit = solve_ridge(moments, 0.0)
    low, high = sim.schema.label.bounds
    true = 2.0 / (high - low) * np.array([*sim.coefficients.values(), 0.0])
    assert fit.standard_error is not None
    return np.abs(fit.theta - true) < 1.96 * fit.standard_error


@pytest.mark.parametrize("sensitive", [False, True])
def test_standard_errors_cover_the_true_coefficients(sensitive: bool) -> None:
    found = noisy_moments(sensitive, 80)
    share = np.mean([hits(*one) for one in found])
    assert 0.93 < share < 0.99
    # errors that leave the noise out would not cover
    quiet = [
        replace(
            moments,
            gram_variance=0.0 * moments.gram_variance,
            cross_variance=0.0 * moments.cross_variance,
            square_variance=0.0,
        )
        for _, moments in found
    ]
    assert np.mean([hits(sim, m) for (sim, _), m in zip(found, quiet)]) < 0.8


def test_drowned_directions_are_floored_and_errors_withheld() -> None:
    sim = simulated(300)
    model = fitted(sim)
    assert model.coef_standard_error_ is None
    assert model.intercept_standard_error_ is None
    assert model.certificate_ is not None
    entry = model.certificate_.ledger.one("moments-model")
    assert entry["floored"] > 0
    assert entry["ridge"] > 0
    assert np.isfinite(model.coef_).all()
    # shrunk rather than wild
    assert np.abs(model.predict(sim.X)).max() < 3 * np.abs(sim.y).max()


def test_the_estimator_holds_verifies_and_comes_back(tmp_path: Path) -> None:
    sim = simulated(20_000)
    model = fitted(sim)
    assert model.n_iter_ == 1
    assert model.score(sim.X, sim.y) > 0.9
    assert model.coef_standard_error_ is not None
    assert model.coef_standard_error_.shape == model.coef_.shape
    certificate = model.certificate_
    assert certificate is not None
    assert certificate.holds
    assert certificate.joint["sensitive"] <= 1.0
    assert certificate.joint["record"] < math.inf
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.predict(sim.X) == pytest.approx(model.predict(sim.X))
    assert (again.coef_standard_error_ == model.coef_standard_error_).all()
    assert again.intercept_standard_error_ == model.intercept_standard_error_ > 0
    certificate.save(tmp_path / "certificate.json")
    assert verify(tmp_path / "certificate.json").problems == ()


def test_a_swapped_model_or_less_noise_does_not_verify() -> None:
    certificate = fitted(simulated(3000)).certificate_
    assert certificate is not None
    plain = json.loads(json.dumps(certificate.to_dict()))

    def swap(ledger: list[dict[str, Any]]) -> None:
        entry = ledger[3]
        entry["coefficients"] = encode_array(1.1 * decode_array(entry["coefficients"]))

    def quieter(ledger: list[dict[str, Any]]) -> None:
        ledger[1]["noise"] = [0.9 * value for value in ledger[1]["noise"]]

    def surer(ledger: list[dict[str, Any]]) -> None:
        entry = ledger[3]
        entry["standard_error"] = encode_array(0.5 * decode_array(entry["standard_error"]))

    def displaced(ledger: list[dict[str, Any]]) -> None:
        ledger.append({**ledger[3], "coefficients": encode_array(np.zeros(7))})

    for change in (swap, surer, quieter, displaced):
        assert not verify(altered(plain, change)).holds


def test_auto_takes_moments_where_their_noise_is_small() -> None:
    small, large = simulated(2000), simulated(60_000)
    for sim, moments in ((small, False), (large, True)):
        plan = plan_moments(declaration(schema=sim.schema, distances=sim.distances, n=len(sim.y)))
        assert (relative_noise(plan) <= MOMENTS_BELOW) == moments
    assert fitted(small, solver="auto", steps=None).n_iter_ > 1
    assert fitted(large, solver="auto").n_iter_ == 1
    assert fitted(large, solver="auto", steps=5).n_iter_ == 5


def test_auto_takes_gradients_where_everything_is_sensitive() -> None:
    sim = simulated(2)
    settings = {"n": 1_000_000, "distances": {}}
    everything = declaration(schema=sim.schema.all_sensitive(), **settings)
    plan = plan_moments(everything)
    assert relative_noise(plan) < 0.1 * MOMENTS_BELOW
    assert noise_ratio(plan, 0.3) > MOST_NOISE_RATIO
    assert not prefer_moments(everything, 0.3)
    # the ratio is free of n, and as the square of the step's noise
    few = plan_moments(replace(everything, n=1000))
    assert noise_ratio(few, 0.6) == pytest.approx(noise_ratio(plan, 0.3) / 4.0)
    one = declaration(schema=sim.schema, distances=sim.distances, n=1_000_000)
    assert noise_ratio(plan_moments(one), 0.3) < MOST_NOISE_RATIO
    assert prefer_moments(one, 0.3)
    # with every column public no kind of theirs is limited
    public = declaration(
        schema=sim.schema.with_roles(dict.fromkeys(sim.schema.used, "public")), **settings
    )
    assert noise_ratio(plan_moments(public), 0.3) == 0.0


def test_moments_take_no_steps() -> None:
    sim = simulated(500)
    with pytest.raises(ConfigurationError, match="steps"):
        fitted(sim, steps=5)
    with pytest.raises(ConfigurationError, match="use one of auto, gradient, sgd, moments"):
        fitted(sim, solver="newton")
    with pytest.raises(DataError, match="one record"):
        fitted(simulated(1), delta=1e-6)


def test_distances_estimated_in_the_same_run() -> None:
    sim = simulated(20_000)
    settings = EstimateSettings(resolution="assume-smooth")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        certificate = fitted(sim, distances=settings).certificate_
    assert certificate is not None
    assert certificate.holds
    assert verify(json.loads(json.dumps(certificate.to_dict()))).problems == ()
    assert certificate.joint["sensitive"] <= 1.0
    for row in certificate.columns:
        assert row["epsilon_holds"] <= row["epsilon_target"]


def test_second_moments_as_a_query() -> None:
    data = table(500)
    results = release(
        data,
        SCHEMA,
        SecondMoments(["s", "u"]),
        epsilon=100.0,
        delta=1e-6,
        distances=dict.fromkeys(DISTANCES, 1.0),
        random_state=0,
    )
    found = results["secondmoments(s, u)"]
    first = (data["s"] == "a").astype(float)
    psi = np.column_stack([first, 1 - first, data["u"], np.ones(500)])
    assert found.levels[0] == ("s=a", "s=b", "u", INTERCEPT)
    assert found.value == pytest.approx(psi.T @ psi, abs=5 * found.standard_error.max() + 1e-2)
    assert found.value[3, 3] == 500
    assert found.standard_error[0, 1] == 0.0


@pytest.mark.parametrize("distance", [0.0, 1.0])
def test_moments_and_gradient_against_the_mean(distance: float) -> None:
    # the full comparison is benchmarks/ridge.py
    excess: dict[str, list[float]] = {}
    for seed in range(2):
        sim = simulated(10_000, seed, distance=distance)
        features = np.column_stack([*sim.X.values(), np.ones(len(sim.y))])
        best = features @ np.linalg.lstsq(features, sim.y, rcond=None)[0]
        risk = np.mean((sim.y - best) ** 2)
        everything = sim.schema.all_sensitive()
        models = {
            "moments": fitted(sim, seed),
            "gradient": fitted(sim, seed, solver="gradient"),
            "DP moments": CorrDPRidge(
                everything, distances={}, solver="moments", random_state=seed
            ).fit(sim.X, sim.y),
        }
        for name, model in models.items():
            gap = np.mean((sim.y - model.predict(sim.X)) ** 2) - risk
            excess.setdefault(name, []).append(float(gap))
        excess.setdefault("mean", []).append(float(sim.y.var() - risk))
    means = {name: np.mean(values) for name, values in excess.items()}
    assert means["gradient"] < means["moments"] < means["DP moments"] < 0.2 * means["mean"]


@pytest.mark.parametrize("distance", [0.0, 0.1, 1.0])
def test_the_quick_no_of_auto_is_never_wrong(distance: float) -> None:
    for schema in (SCHEMA, SCHEMA.all_sensitive()):
        given = dict.fromkeys(DISTANCES, distance) if schema is SCHEMA else {}
        one = declaration(n=1000, schema=schema, distances=given)
        least = min(b.mu_squared for b in one.budgets() if b.kind.columns)
        quick = 2.0 * math.sqrt(2.0 * len(schema.used) / least) / 1000
        noise = relative_noise(plan_moments(one))
        assert quick <= noise
        enough = math.ceil(1000 * noise / MOMENTS_BELOW) + 1
        for n, wanted in ((enough, True), (enough // 2, False), (10, False)):
            sized = declaration(n=n, schema=schema, distances=given)
            few = noise_ratio(plan_moments(sized), 0.3) <= MOST_NOISE_RATIO
            assert prefer_moments(sized, 0.3) == (wanted and few)
            assert prefer_moments(sized, 10.0) == wanted
