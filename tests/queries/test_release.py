"""Releases: calibration, exactness of the noise, certificates and what they catch."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from corrdp import Certificate, verify
from corrdp.errors import ConfigurationError, VerificationError
from corrdp.noise import noise_source
from corrdp.privacy import gdp
from corrdp.privacy.ledger import Ledger, decode_array, digest, encode_array
from corrdp.queries import (
    ContingencyTable,
    Count,
    Covariance,
    Histogram,
    Mean,
    Query,
    Sum,
    Variance,
    release,
)
from corrdp.queries.answers import answer
from corrdp.queries.blocks import changed_names
from corrdp.queries.coding import read_checked
from corrdp.queries.laplace import laplace_variance
from corrdp.queries.plan import QueryPlan, draw, plan_queries
from corrdp.verification import certify
from tests.queries.tiny import DISTANCES, SCHEMA, declaration, records

QUERIES: list[Query] = [
    Histogram("s"),
    Mean("u"),
    Sum("t"),
    ContingencyTable(["s", "g"]),
    Covariance(["u", "v"]),
    Count({"w": "k", "y": (1, 3)}),
]
MECHANISMS = [("laplace", 0.0), ("gaussian", 1e-6)]


def table(n: int = 200, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "s": rng.choice(["a", "b"], n),
        "t": rng.uniform(0, 10, n),
        "g": rng.choice(["p", "q"], n),
        "h": rng.uniform(1, 3, n),
        "u": rng.uniform(-1, 1, n),
        "v": rng.beta(2, 5, n),
        "w": rng.choice(["k", "l"], n),
        "y": rng.uniform(0, 4, n),
    }


def planned(
    mechanism: str, delta: float, calibration: str = "optimal", **settings: Any
) -> QueryPlan:
    named = {query.name: query for query in QUERIES}
    return plan_queries(declaration(delta=delta, **settings), named, mechanism, calibration)


def asked(mechanism: str = "gaussian", delta: float = 1e-6, **settings: Any) -> Any:
    given: dict[str, Any] = {"epsilon": 1.0, "random_state": 3, "distances": DISTANCES}
    given |= {"mechanism": mechanism, "delta": delta, **settings}
    return release(given.pop("table", table()), SCHEMA, given.pop("queries", QUERIES), **given)


# --- the loss of whole releases, by enumeration ---------------------------------------------------


def losses(plan: QueryPlan, noise: np.ndarray) -> dict[str, float]:
    """Largest true loss of every kind: Σ|Δ|/scale or Σ|Δ|²/σ² over all blocks at once."""
    columns = ("s", "t", "g", "u", "v", "y")
    grid = (-1.0, 1.0)
    found: dict[str, float] = {}
    for kind in plan.declaration.kinds:
        changed = changed_names(kind, plan.declaration.schema) & set(columns)
        fixed = [name for name in columns if name not in changed]
        order = (*fixed, *(name for name in columns if name in changed))
        rows = []
        for record in records(SCHEMA, order, grid):
            record.codes["w"] = np.array([0])  # public: never changes
            terms = [b.total(record) / s for b, s in zip(plan.blocks, noise, strict=True)]
            rows.append(np.concatenate(terms))
        still = 2 ** len(fixed)
        points = np.array(rows).reshape(still, -1, len(rows[0]))
        gaps = np.abs(points[:, :, None] - points[:, None, :])
        power = 1 if plan.mechanism == "laplace" else 2
        found[kind.name] = float((gaps**power).sum(axis=-1).max())
    return found


@pytest.mark.parametrize("calibration", ["optimal", "one-scale"])
@pytest.mark.parametrize(("mechanism", "delta"), MECHANISMS)
def test_no_pair_of_records_loses_more_than_allowed(
    mechanism: str, delta: float, calibration: str
) -> None:
    plan = planned(mechanism, delta, calibration)
    true = losses(plan, plan.noise)
    spent = dict(zip(true, plan.use(), strict=True))
    ratios = []
    for budget in plan.declaration.budgets():
        allowed = budget.epsilon if mechanism == "laplace" else budget.mu_squared
        kind = budget.kind.name
        assert true[kind] <= spent[kind] * (1 + 1e-12)
        assert spent[kind] <= allowed * (1 + 1e-9)
        if true[kind] > 0:
            ratios.append(true[kind] / spent[kind])
    # joint maxima over blocks are nearly attained, so 10 % less noise would be caught
    assert max(ratios) > 0.95
    low = losses(plan, 0.9 * plan.noise)
    assert any(
        low[b.kind.name] > (b.epsilon if mechanism == "laplace" else b.mu_squared)
        for b in plan.declaration.budgets()
    )


def test_one_scale_is_the_published_mechanism() -> None:
    plan = planned("laplace", 0.0, "one-scale", epsilon=0.5)
    total = plan.sensitivity.sum(axis=1)
    expected = max(t / b.epsilon for t, b in zip(total, plan.declaration.budgets(), strict=True))
    by_distance = max(
        t * b.distance / 0.5
        for t, b in zip(total, plan.declaration.budgets(), strict=True)
        if b.kind.name in (*DISTANCES, "<sensitive>")
    )
    assert plan.noise == pytest.approx(np.full(len(plan.noise), expected), rel=1e-9)
    assert expected == pytest.approx(by_distance, rel=1e-12)
    assert (plan.noise >= expected).all()


@pytest.mark.parametrize(("mechanism", "delta"), MECHANISMS)
def test_optimal_noise_has_less_total_variance(mechanism: str, delta: float) -> None:
    best, single = (planned(mechanism, delta, c) for c in ("optimal", "one-scale"))
    sizes = np.array([block.size for block in best.blocks])
    assert sizes @ best.variance() < 0.9 * (sizes @ single.variance())


def test_a_sum_that_two_queries_need_is_released_once() -> None:
    names = {"mean": Mean("u"), "sum": Sum("u"), "cov": Covariance(["u", "v"])}
    plan = plan_queries(declaration(delta=0.0), names, "laplace", "optimal")
    assert [b.name for b in plan.blocks].count("sum 'u'") == 1
    results = asked("laplace", 0.0, queries=names)
    assert results["sum"].value == pytest.approx(200 * results["mean"].value)


# --- the noise -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "delta"), MECHANISMS)
def test_noise_has_the_stated_scale(mechanism: str, delta: float) -> None:
    query = {"many": ContingencyTable(["u", "v", "t"])}
    plan = plan_queries(declaration(delta=delta), query, mechanism, "optimal")
    data = read_checked(table(), SCHEMA)
    exact = plan.blocks[0].total(data.coded(plan.bits))
    noise = np.concatenate([draw(plan, data, noise_source(seed))[0] - exact for seed in range(20)])
    spread = math.sqrt(plan.variance()[0])
    if mechanism == "gaussian":
        statistic = (noise**2).sum() / spread**2
        limits = stats.chi2.ppf([1e-4, 1 - 1e-4], len(noise))
    else:
        # |k| is geometric up to its zero: compare the mean absolute value
        ratio = math.exp(-1.0 / plan.noise[0])
        mean = 2 * ratio / (1 - ratio**2)
        error = math.sqrt((spread**2 - mean**2) / len(noise))
        statistic = np.abs(noise).mean()
        limits = np.array([mean - 3.9 * error, mean + 3.9 * error])
    assert limits[0] < statistic < limits[1]
    wrong = 1.05**2 if mechanism == "gaussian" else 1.05
    assert statistic * wrong > limits[1]
    assert statistic / wrong < limits[0]


def test_variance_of_the_discrete_law() -> None:
    for scale, spacing in ((0.4, 1.0), (3.0, 1.0), (30.0, 0.25)):
        cells = np.arange(-4000, 4001)
        law = np.exp(-np.abs(cells) * spacing / scale)
        law /= law.sum()
        exact = float(law @ (cells * spacing) ** 2)
        assert laplace_variance(scale, spacing) == pytest.approx(exact, rel=1e-9)
    assert laplace_variance(0.0, 1.0) == laplace_variance(1e-4, 1.0) == 0.0


@pytest.mark.parametrize(("mechanism", "delta"), MECHANISMS)
def test_answers_are_right_when_the_noise_is_small(mechanism: str, delta: float) -> None:
    data = table(500)
    near = dict.fromkeys(DISTANCES, 1.0)
    results = asked(mechanism, delta, table=data, epsilon=1e4, distances=near)
    count = results["count(w=k, y=1|3)"]
    assert count.value == pytest.approx(
        ((data["w"] == "k") & (data["y"] >= 1) & (data["y"] <= 3)).sum(), abs=0.5
    )
    assert results["mean(u)"].value == pytest.approx(data["u"].mean(), abs=1e-3)
    assert results["sum(t)"].value == pytest.approx(data["t"].sum(), abs=1.5)
    exact = np.cov(data["u"], data["v"], ddof=0)
    assert results["covariance(u, v)"].value == pytest.approx(exact, abs=1e-3)
    cells = results["contingencytable(s, g)"]
    assert cells.levels == (("a", "b"), ("p", "q"))
    wanted = [[((data["s"] == a) & (data["g"] == b)).sum() for b in "pq"] for a in "ab"]
    assert np.abs(cells.value - np.array(wanted)).max() <= 1.0
    near_exact: dict[str, Any] = {"table": data, "epsilon": 1e4, "distances": near}
    bins = asked(mechanism, delta, queries=[Histogram("v")], **near_exact)
    edges = np.linspace(0, 1, 11)
    counted = np.histogram(data["v"], edges)[0]
    assert np.abs(bins["histogram(v)"].value - counted).max() <= 1.0
    assert bins["histogram(v)"].levels[0][0] == "[0, 0.1]"


@pytest.mark.parametrize(("mechanism", "delta"), MECHANISMS)
def test_standard_errors_cover(mechanism: str, delta: float) -> None:
    data = table(400)
    exact = np.array(
        [
            data["u"].mean(),
            data["t"].sum(),
            *np.cov(data["u"], data["v"], ddof=0)[[0, 0, 1], [0, 1, 1]],
        ]
    )
    plan = planned(mechanism, delta, n=400)
    checked = read_checked(data, SCHEMA)
    upper = ([0, 0, 1], [0, 1, 1])
    scores = []
    for seed in range(150):
        released = plan.released(draw(plan, checked, noise_source(seed)))
        mean, total, cov = (
            answer(plan.queries[name], plan.declaration, released)
            for name in ("mean(u)", "sum(t)", "covariance(u, v)")
        )
        value = np.array([mean.value, total.value, *cov.value[upper]])
        error = np.array([mean.standard_error, total.standard_error, *cov.standard_error[upper]])
        scores.append((value - exact) / error)
    z = np.array(scores)
    assert np.abs(z.mean(axis=0)).max() < 4 / math.sqrt(150)
    assert (z**2).mean(axis=0) == pytest.approx(np.ones(5), abs=0.5)
    assert (np.abs(z) < 1.96).mean() > 0.93


def test_sums_do_not_depend_on_the_order_of_records() -> None:
    data = table(1000)
    back = {name: values[::-1] for name, values in data.items()}
    first, second = asked(table=data), asked(table=back)
    one, two = (found.ledger.one("query-release")["blocks"] for found in (first, second))
    assert one == two


def test_every_kind_of_table_gives_the_same() -> None:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    data = table()
    features = {name: values for name, values in data.items() if name != "y"}
    values = [
        asked(table=frame)["mean(u)"].value
        for frame in (data, pd.DataFrame(data), pl.DataFrame(data), pa.table(data))
    ]
    values.append(asked(table=pd.DataFrame(features), label=data["y"])["mean(u)"].value)
    assert len(set(values)) == 1


# --- certificates --------------------------------------------------------------------------------


@pytest.mark.parametrize("calibration", ["optimal", "one-scale"])
@pytest.mark.parametrize(("mechanism", "delta"), MECHANISMS)
def test_certificates_hold_and_verify(mechanism: str, delta: float, calibration: str) -> None:
    certificate = asked(mechanism, delta, calibration=calibration).certificate
    assert certificate.holds
    assert certificate.delta == delta
    for row in certificate.columns:
        assert row["epsilon_holds"] <= row["epsilon_target"]
    assert verify(json.loads(json.dumps(certificate.to_dict()))).problems == ()
    assert 0 < certificate.joint["record"] < math.inf
    assert str(certificate).startswith("This certificate HOLDS")


def test_pure_joint_rows_are_what_the_noise_allows() -> None:
    certificate = asked("laplace", 0.0).certificate
    plan = planned("laplace", 0.0, n=200)
    true = losses(plan, plan.noise)
    for name, key in (("<record>", "record"), ("<insensitive>", "insensitive")):
        assert true[name] <= certificate.joint[key]
        assert certificate.joint[key] <= 2 * true[name]


def altered(plain: dict[str, Any], change: Any) -> dict[str, Any]:
    """An attacker's file: entries changed, every digest and claim recomputed."""
    plain = copy.deepcopy(plain)
    change(plain["ledger"])
    ledger = Ledger()
    for entry in plain["ledger"]:
        body = {k: v for k, v in entry.items() if k not in ("type", "previous", "digest")}
        ledger = ledger.append(entry["type"], body)
    try:
        return certify(ledger).to_dict()
    except VerificationError:
        body = {k: v for k, v in plain.items() if k not in ("digest", "ledger")}
        body["ledger"] = ledger.to_list()
        return {**body, "digest": digest(body)}


def less_noise(ledger: list[dict[str, Any]]) -> None:
    ledger[1]["noise"] = [0.95 * value for value in ledger[1]["noise"]]


def no_noise(ledger: list[dict[str, Any]]) -> None:
    ledger[1]["noise"] = [0.0 for _ in ledger[1]["noise"]]


def off_lattice(ledger: list[dict[str, Any]]) -> None:
    piece = ledger[2]["blocks"][0]
    piece["values"] = encode_array(decode_array(piece["values"]) + 0.125)


def drop_block(ledger: list[dict[str, Any]]) -> None:
    ledger[2]["blocks"] = ledger[2]["blocks"][1:]


def other_query(ledger: list[dict[str, Any]]) -> None:
    ledger[1]["queries"][0]["query"] = "Secret"


def finer(ledger: list[dict[str, Any]]) -> None:
    ledger[1]["bits"] = 40


def no_release(ledger: list[dict[str, Any]]) -> None:
    del ledger[2]


@pytest.mark.parametrize(
    "change", [less_noise, no_noise, off_lattice, drop_block, other_query, finer, no_release]
)
@pytest.mark.parametrize(("mechanism", "delta"), MECHANISMS)
def test_changed_ledgers_do_not_verify(mechanism: str, delta: float, change: Any) -> None:
    plain = json.loads(json.dumps(asked(mechanism, delta).certificate.to_dict()))
    assert not verify(altered(plain, change)).holds


def test_pure_and_gaussian_certificates_add() -> None:
    pure = asked("laplace", 0.0, epsilon=0.3).certificate
    noisy = asked("gaussian", 1e-6, epsilon=0.4).certificate
    both = Certificate.combine(pure, noisy)
    assert both.delta == 1e-6
    assert both.holds
    assert verify(json.loads(json.dumps(both.to_dict()))).problems == ()
    basic = 0.3 + 0.4
    composed = gdp.epsilon(math.hypot(gdp.mu_of_pure(0.3), gdp.mu(0.4, 1e-6)), 1e-6)
    assert both.joint["sensitive"] <= min(basic, composed) * 1.001
    assert both.joint["sensitive"] > 0.9 * min(basic, composed)
    twice = Certificate.combine(pure, pure)
    assert twice.delta == 0.0
    assert twice.joint["sensitive"] == pytest.approx(0.6)


def test_a_pure_ledger_cannot_carry_gaussian_noise() -> None:
    plain = json.loads(json.dumps(asked("gaussian", 1e-6).certificate.to_dict()))

    def claim_pure(ledger: list[dict[str, Any]]) -> None:
        ledger[0]["target"]["delta"] = 0.0

    assert not verify(altered(plain, claim_pure)).holds


def test_caps_reach_queries() -> None:
    open_ = asked("laplace", 0.0).certificate
    capped = asked("laplace", 0.0, record_epsilon=2.0).certificate
    assert open_.joint["record"] > 2.0
    assert capped.joint["record"] <= 2.0
    limited = asked("gaussian", 1e-6, epsilon_cap=3.0).certificate
    assert max(row["epsilon_holds"] for row in limited.columns if row["role"] != "public") <= 3.0


def test_a_public_column_is_released_exactly() -> None:
    data = table(50)
    found = asked("laplace", 0.0, table=data, queries=[Histogram("w")])["histogram(w)"]
    assert found.value.tolist() == [(data["w"] == "k").sum(), (data["w"] == "l").sum()]
    assert found.standard_error.tolist() == [0.0, 0.0]


def test_distances_of_zero_are_said_to_protect_nothing() -> None:
    certificate = asked(
        "laplace", 0.0, queries=[Mean("u"), Mean("t")], distances={**DISTANCES, "u": 0.0}
    ).certificate
    assert certificate.row("u")["epsilon_holds"] == math.inf
    assert certificate.joint["record"] == math.inf
    assert certificate.joint["sensitive"] == pytest.approx(1.0)


def test_seeded_releases_repeat_and_say_so() -> None:
    assert asked()["mean(u)"].value == asked()["mean(u)"].value
    assert asked().certificate.seeded
    private = asked(random_state=None)
    assert not private.certificate.seeded
    assert private["mean(u)"].value != asked(random_state=None)["mean(u)"].value


def test_variance_of_one_column() -> None:
    data = table(2000)
    found = asked(table=data, queries=Variance("u"), epsilon=50.0)["variance(u)"]
    assert abs(found.value - data["u"].var()) < 5 * found.standard_error
    assert "variance(u)" in repr(asked(queries=Variance("u")))


def test_a_private_distance_of_another_run_is_refused() -> None:
    from corrdp import Distance, Distances

    released = Distances({"u": Distance(0.2, "private", grid_size=8)})
    with pytest.raises(ConfigurationError, match="known before"):
        asked(distances=released)
