"""The published calibration: its noise, what that certifies, and the truth when it falls short."""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from corrdp import CorrDPLogisticRegression, CorrDPRidge, PrivacyBudget, verify
from corrdp.distance import Distances
from corrdp.encoding import Encoder
from corrdp.erm import published
from corrdp.erm.account import read_setup
from corrdp.erm.fit import LinearTask, PlanRequest, prepare
from corrdp.erm.fixed_noise import step_changes
from corrdp.erm.losses import Logistic, Loss, Squared
from corrdp.errors import ConfigurationError
from corrdp.privacy import gdp, subsampled
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.ledger import Ledger, decode_array, digest, encode_array
from corrdp.schema import Categorical, Label, Numeric, Schema
from corrdp.verification import certify

Edit = Callable[[dict[str, Any]], None]
COLUMNS = {
    "s": Numeric(0, 1, bins=(0, 0.5, 1)),
    "u": Numeric(0, 1, role="insensitive", bins=(0, 0.5, 1)),
    "v": Categorical(["a", "b", "c"], role="insensitive"),
    "w": Numeric(0, 1, role="insensitive", bins=(0, 0.5, 1)),
}
WITH_PUBLIC = {**COLUMNS, "w": Numeric(0, 1, role="public")}
SCHEMA = Schema(COLUMNS, Label("y", [0, 1], role="insensitive"))
# with these the noise certifies every kind; with label distance .04 the label falls short
GOOD = {"u": 0.6, "v": 0.5, "w": 0.5, "y": 0.5}
SHORT = {"u": 0.6, "v": 0.5, "w": 0.5, "y": 0.04}


def declared(
    distances: dict[str, float], schema: Schema = SCHEMA, n: int = 2000, **target: Any
) -> Declaration:
    asked = PrivacyTarget(**{"epsilon": 1.0, "delta": 1e-5, **target})
    return Declaration(schema, asked, n, Distances.given(distances), seeded=True)


def task(declaration: Declaration, loss: Loss | None = None, **request: Any) -> LinearTask:
    asked = PlanRequest(**{"steps": 10, "radius": 1.0, "calibration": "published", **request})
    return prepare(declaration, Logistic() if loss is None else loss, None, asked)


def table(n: int = 400) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(0)
    X = {"s": rng.random(n), "u": rng.random(n), "v": rng.choice(["a", "b", "c"], n)}
    X["w"] = rng.random(n)
    X["s"] = np.where(rng.random(n) < 0.5, X["u"], X["s"])
    return X, (X["u"] > 0.5).astype(int)


def fitted(distances: Any, n: int = 400, **settings: Any) -> CorrDPLogisticRegression:
    given = {"epsilon": 1.0, "delta": 1e-5, "steps": 10, "radius": 1.0, "random_state": 1}
    model = CorrDPLogisticRegression(
        SCHEMA, distances=distances, calibration="published", **{**given, **settings}
    )
    return model.fit(*table(n))


# --- the rule ------------------------------------------------------------------------------------


def test_variance_factors() -> None:
    """m = 7 coordinates, m_s = 1: sensitive 1, insensitive max{d, 1/49}, public 1/49, label's d."""
    encoder = Encoder(Schema(WITH_PUBLIC, SCHEMA.label))
    factors = published.variance_factors(encoder, {"u": 0.3, "v": 0.001, "y": 0.2})
    assert factors == pytest.approx([1.0, 0.3, 1 / 49, 1 / 49, 0.2])
    assert published.variance_factors(encoder, {})[[1, 2, 4]] == pytest.approx(1.0)
    secret = Schema(WITH_PUBLIC, Label("y", [0, 1]))
    assert published.variance_factors(Encoder(secret), {"u": 0.3, "v": 0.3})[-1] == 1.0
    known = Schema(WITH_PUBLIC, Label("y", [0, 1], role="public"))
    assert published.variance_factors(Encoder(known), {"u": 0.3, "v": 0.3})[-1] == 1 / 49


def test_a_group_has_one_distance() -> None:
    schema = Schema(COLUMNS, SCHEMA.label, groups=[("u", "v")])
    name = schema.group_of("u").name  # type: ignore[union-attr]
    factors = published.variance_factors(Encoder(schema), {name: 0.4, "y": 0.2})
    assert factors[1] == factors[2] == 0.4


def test_standard_noise_protects_a_replaced_record() -> None:
    """σ = 2L√ΣR_j²/μ(ε, δ) for the whole run, split over T steps."""
    one = task(declared(GOOD))
    sensitivity = one.setup.table(one.declaration)
    base = one.setup.base_noise
    assert base is not None
    moved = 2 * sensitivity.residual_bound * one.encoder.norm_bound
    mu = math.sqrt(10) * moved / base
    assert 0.997 * 1.0 <= gdp.epsilon(mu, 1e-5) <= 1.0
    assert one.fixed_noise == pytest.approx(
        base * np.sqrt(published.variance_factors(one.encoder, GOOD)), rel=1e-12
    )


def test_sampled_standard_noise_protects_a_replaced_record() -> None:
    one = task(declared(GOOD), solver="sgd", sample_rate=0.1)
    sensitivity = one.setup.table(one.declaration)
    base = one.setup.base_noise
    assert base is not None
    c = float(np.linalg.norm(sensitivity.presence)) / base
    assert 0.99 <= subsampled.epsilon(0.1, c, 2 * c, 10, 1e-5) <= 1.0
    assert subsampled.epsilon(0.1, c / 0.9, 2 * c / 0.9, 10, 1e-5) > 1.0  # 10 % less is too little


# --- what it certifies ---------------------------------------------------------------------------


def movement(one: LinearTask, kind_changes: tuple[str, ...], label: bool, draws: int) -> float:
    """The largest Σ_t Σ_j movement²/σ_j² that random records and points of the ball attain."""
    rng = np.random.default_rng(5)
    encoder, noise = one.encoder, one.fixed_noise
    assert noise is not None
    theta = rng.standard_normal((draws, encoder.dimension))
    size = one.plan.radius * rng.choice([0.0, 0.3, 1.0], (draws, 1))
    theta *= size / np.linalg.norm(theta, axis=1, keepdims=True)
    first, other = corners(rng, draws, encoder.scale), corners(rng, draws, encoder.scale)
    for block in encoder.blocks:
        if block.name not in kind_changes:
            cut = slice(block.start, block.start + block.size)
            other[:, cut] = first[:, cut]
    y = rng.integers(2, size=draws)
    sums = []
    for phi, target in ((first, y), (other, 1 - y if label else y)):
        residual = 1 / (1 + np.exp(-(theta * phi).sum(axis=1))) - target
        sums.append(residual[:, None] * phi)
    moved = ((sums[1] - sums[0]) / encoder.spread(noise)) ** 2
    return float(one.plan.steps * moved.sum(axis=1).max())


def corners(rng: np.random.Generator, draws: int, h: float) -> Any:
    """Encoded records: s, u, one-hot v, w, intercept."""
    phi = h * rng.choice([-1.0, 1.0], (draws, 7))
    phi[:, 2:5] = h * np.eye(3)[rng.integers(3, size=draws)]
    phi[:, -1] = h
    return phi


def test_certified_mu_covers_enumerated_movements() -> None:
    """No pair of records at any point of the ball moves further than what is certified (T4)."""
    one = task(declared(SHORT))
    table_, base = one.setup.table(one.declaration), one.setup.base_noise
    assert base is not None
    _, fixed = step_changes(one.declaration, published.linear_noise(table_, 1.0, base))
    certified = dict(zip([k.name for k in table_.kinds], one.plan.steps * fixed, strict=True))
    changes = {
        "<sensitive>": (("s",), False),
        "u": (("u",), False),
        "v": (("v",), False),
        "y": ((), True),
        "<record>": (("s", "u", "v"), True),
    }
    for name, (columns, label) in changes.items():
        found = movement(one, columns, label, 20_000)
        assert found <= certified[name]
        assert found > 0.4 * certified[name]  # a bound of half the size would be caught


@pytest.mark.parametrize("solver", ["gradient", "sgd"])
def test_certificates_state_what_holds(solver: str) -> None:
    settings = {} if solver == "gradient" else {"solver": "sgd", "sample_rate": 0.3}
    good = fitted(GOOD, **settings).certificate_
    assert good is not None and good.holds and verify(good.to_dict()).holds
    assert good.ledger.one("linear-budget")["calibration"] == "published"
    for row in good.columns:
        if row["role"] != "public":
            assert row["epsilon_holds"] <= row["epsilon_target"]
    tight = fitted(SHORT, **settings, epsilon_cap=1.0).certificate_
    assert tight is not None and not tight.holds
    result = verify(tight.to_dict())
    assert not result.holds
    assert any("'y'" in problem and "target is 1" in problem for problem in result.problems)
    assert tight.row("y")["epsilon_holds"] > 1.0
    # nothing is hidden: the printed loss is that of the noise
    sentence = next(problem for problem in tight.problems if "'y'" in problem)
    assert f"{tight.row('y')['epsilon_holds']:.4g}" in sentence


def test_condition_of_the_theory() -> None:
    """With a change of s alone: certified iff a_S² + a_U²/factor ≤ Δ² (THEORY T8)."""
    for radius, d in itertools.product([0.5, 3.0, 20.0], [0.02, 0.2, 0.9]):
        one = task(declared({"u": d, "v": d, "w": d, "y": d}), radius=radius)
        sensitivity, base = one.setup.table(one.declaration), one.setup.base_noise
        assert base is not None
        row = sensitivity.supremum(radius)[0]
        factors = published.variance_factors(one.encoder, {"u": d, "v": d, "w": d, "y": d})
        moved = float((row**2 / factors).sum())
        whole = (2 * sensitivity.residual_bound * one.encoder.norm_bound) ** 2
        short = published.published_account(
            one.declaration, sensitivity, one.plan, base, one.setup.sampler(one.encoder)
        ).problems
        assert any("<sensitive>" in problem for problem in short) == (moved > whole)


def test_a_sensitive_label_falls_short_beyond_a_radius() -> None:
    schema = Schema(COLUMNS, Label("y", [0, 1]))
    kinds = {"u": 0.05, "v": 0.05, "w": 0.05}
    near = fit_problems(task(declared(kinds, schema), radius=0.01))
    far = fit_problems(task(declared(kinds, schema), radius=20.0))
    assert any("<sensitive>" in problem for problem in far)
    assert len(near) <= len(far)


def fit_problems(one: LinearTask) -> tuple[str, ...]:
    base = one.setup.base_noise
    assert base is not None
    sensitivity = one.setup.table(one.declaration)
    sampler = one.setup.sampler(one.encoder)
    return published.published_account(
        one.declaration, sensitivity, one.plan, base, sampler
    ).problems


def test_radius_enters_the_certificate() -> None:
    wide, narrow = fitted(GOOD, radius=20.0), fitted(GOOD, radius=0.1)
    assert wide.certificate_ is not None and narrow.certificate_ is not None
    assert (
        wide.certificate_.joint["sensitive"] > narrow.certificate_.joint["sensitive"]  # type: ignore[operator]
    )


def test_ridge_with_the_published_noise() -> None:
    schema = Schema(COLUMNS, Label("y", low=0, high=10, role="insensitive"))
    X, _ = table()
    model = CorrDPRidge(
        schema,
        epsilon=1.0,
        delta=1e-5,
        distances=GOOD,
        steps=10,
        radius=1.0,
        calibration="published",
        random_state=1,
    ).fit(X, 10 * X["u"])
    assert model.certificate_ is not None
    again = verify(model.certificate_.to_dict())
    assert again.holds == model.certificate_.holds
    assert model.certificate_.ledger.one("linear-budget")["loss"]["name"] == "squared"
    assert task(declared(GOOD, schema), Squared(0.3, 2.0)).setup.calibration == "published"


@pytest.mark.filterwarnings("ignore::corrdp.errors.UtilityWarning")
@pytest.mark.parametrize("solver", ["gradient", "sgd"])
def test_private_distances(solver: str) -> None:
    """What is certified rests on the least distances, fixed before the estimate (T10)."""
    model = fitted("private", 5000, solver=solver, epsilon=4.0)
    certificate = model.certificate_
    assert certificate is not None
    assert verify(certificate.to_dict()).holds == certificate.holds
    setup = read_setup(certificate.ledger.one("linear-budget"))
    assert setup.base_noise is not None
    sigma = decode_array(certificate.ledger.one("linear-release")["sigma"])
    from corrdp.privacy.estimate import declaration_of

    declaration = declaration_of(certificate.ledger)
    least = published.least_distances(declaration)
    known = published.known_distances(declaration)
    assert all(least[name] <= known[name] for name in known) and least != known
    lowest = published.block_noise(setup.table(declaration), setup.base_noise, least)
    assert (sigma >= lowest * (1 - 1e-12)).all()
    rule = published.linear_noise(setup.table(declaration), setup.plan.radius, setup.base_noise)
    run, fixed = step_changes(declaration, rule)
    assert (run <= fixed * (1 + 1e-12)).all() and (run < fixed).any()
    kinds = [kind.name for kind in declaration.kinds]
    assert run[kinds.index("<sensitive>")] == fixed[kinds.index("<sensitive>")]


def test_nothing_to_protect_by_noise_is_not_a_crash() -> None:
    """No sensitive column and d = 0 everywhere: the rule adds nothing, and says what that gives."""
    schema = Schema(
        {"u": Numeric(0, 1, role="insensitive")}, Label("y", [0, 1], role="insensitive")
    )
    free = task(declared({"u": 0.0, "y": 0.0}, schema))
    assert free.fixed_noise is not None and not free.fixed_noise.any()
    assert not fit_problems(free)  # nothing is limited
    capped = task(declared({"u": 0.0, "y": 0.0}, schema, record_epsilon=2.0))
    assert any("inf" in problem for problem in fit_problems(capped))


# --- what it refuses -----------------------------------------------------------------------------


def test_a_shared_budget_is_not_charged_with_a_missed_target(tmp_path: Any) -> None:
    with pytest.raises(ConfigurationError, match="cannot be charged"):
        fitted(SHORT, epsilon_cap=1.0, budget=PrivacyBudget(3.0, 1e-4))
    with pytest.raises(ConfigurationError, match="private distances"):
        fitted("private", epsilon=4.0, budget=PrivacyBudget(8.0, 1e-4))
    assert fitted(GOOD, budget=PrivacyBudget(3.0, 1e-4)).certificate_ is not None


def test_sampling_needs_noise_everywhere() -> None:
    schema = Schema(
        {"u": Numeric(0, 1, role="insensitive")}, Label("y", [0, 1], role="insensitive")
    )
    with pytest.raises(ConfigurationError, match="no noise on 'u'"):
        task(declared({"u": 0.0, "y": 0.5}, schema), solver="sgd", sample_rate=0.1)
    full = task(declared({"u": 0.0, "y": 0.5}, schema))
    assert full.fixed_noise is not None and full.fixed_noise[0] == 0.0
    assert fit_problems(full)  # the label shows itself in the block without noise


@pytest.mark.parametrize("value", ["standard", "", None, 1])
def test_wrong_calibrations(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="calibration"):
        PlanRequest(calibration=value)


# --- tampering -----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["gradient", "sgd"])
def original(request: pytest.FixtureRequest) -> dict[str, Any]:
    settings = {} if request.param == "gradient" else {"solver": "sgd", "sample_rate": 0.3}
    certificate = fitted(GOOD, **settings).certificate_
    assert certificate is not None
    return json.loads(json.dumps(certificate.to_dict()))


def rechained(plain: dict[str, Any], change: Edit) -> dict[str, Any]:
    altered = copy.deepcopy(plain)
    change(altered)
    ledger = Ledger()
    for entry in altered["ledger"]:
        body = {k: v for k, v in entry.items() if k not in ("type", "previous", "digest")}
        ledger = ledger.append(entry["type"], body)
    body = {k: v for k, v in altered.items() if k not in ("digest", "ledger")}
    body["ledger"] = ledger.to_list()
    return {**body, "digest": digest(body)}


def lower_noise(plain: dict[str, Any]) -> None:
    entry = plain["ledger"][2]
    entry["sigma"] = encode_array(0.9 * decode_array(entry["sigma"]))


def lower_noise_once(plain: dict[str, Any]) -> None:
    entry = plain["ledger"][2]
    sigma = decode_array(entry["sigma"])
    sigma[4, 1] *= 0.9
    entry["sigma"] = encode_array(sigma)


def lower_noise_and_base(plain: dict[str, Any]) -> None:
    lower_noise(plain)
    plain["ledger"][1]["base_noise"] *= 0.9


def raise_base(plain: dict[str, Any]) -> None:
    plain["ledger"][1]["base_noise"] *= 1.1


def call_it_optimal(plain: dict[str, Any]) -> None:
    plain["ledger"][1]["calibration"] = "optimal"


def smaller_ball(plain: dict[str, Any]) -> None:
    plain["ledger"][1]["plan"]["radius"] = 1e-3


def remove_steps(plain: dict[str, Any]) -> None:
    entry = plain["ledger"][2]
    for key in ("sigma", "iterates"):
        entry[key] = encode_array(decode_array(entry[key])[:-2])
    plain["ledger"][1]["plan"]["steps"] -= 2


def swap_model(plain: dict[str, Any]) -> None:
    entry = plain["ledger"][2]
    entry["coefficients"] = encode_array(decode_array(entry["coefficients"]) + 0.1)


def smaller_distance(plain: dict[str, Any]) -> None:
    plain["ledger"][0]["distances"]["columns"]["u"]["value"] = 0.1


CAUGHT = [
    lower_noise,
    lower_noise_once,
    lower_noise_and_base,
    raise_base,
    call_it_optimal,
    smaller_ball,
    remove_steps,
    swap_model,
    smaller_distance,
]


@pytest.mark.parametrize("change", CAUGHT, ids=lambda f: f.__name__)
def test_edits_are_noticed(original: dict[str, Any], change: Edit) -> None:
    assert verify(original).holds
    altered = copy.deepcopy(original)
    change(altered)
    assert not verify(altered).holds
    assert not verify(rechained(original, change)).holds


@pytest.mark.parametrize("change", CAUGHT, ids=lambda f: f.__name__)
def test_recomputed_claims_do_not_help(original: dict[str, Any], change: Edit) -> None:
    plain = rechained(original, change)
    try:
        claimed = certify(Ledger.from_list(plain["ledger"]))
    except Exception as error:
        assert change is call_it_optimal and "calibration" in str(error)
    else:
        assert not claimed.holds and claimed.problems


def test_lower_noise_prints_a_larger_loss(original: dict[str, Any]) -> None:
    claimed = certify(Ledger.from_list(rechained(original, lower_noise)["ledger"]))
    for key in ("sensitive", "insensitive", "record"):
        assert claimed.joint[key] > 1.05 * original["joint"][key]  # type: ignore[operator]
