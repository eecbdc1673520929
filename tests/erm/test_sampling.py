"""Poisson-sampled training: the law of the batches, and budgets that always hold (THEORY T7)."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from corrdp import CorrDPLogisticRegression, verify
from corrdp.allocation import allocate
from corrdp.distance import Distances
from corrdp.erm import fit, sampling
from corrdp.erm.account import LinearSetup, read_setup
from corrdp.erm.fit import LinearTask, PlanRequest, prepare
from corrdp.erm.losses import Logistic
from corrdp.erm.optimiser import Run, train
from corrdp.erm.plan import TrainingPlan
from corrdp.erm.sampling import SampledBudgets
from corrdp.errors import ConfigurationError
from corrdp.noise import Lattice, noise_source
from corrdp.privacy import subsampled
from corrdp.privacy.budgets import RESERVE, PrivacyTarget
from corrdp.privacy.certificate import subsampled_loss
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.ledger import Ledger, decode_array, digest, encode_array
from corrdp.records import read_records
from corrdp.schema import Categorical, Label, Numeric, Schema
from corrdp.verification import certify

SCHEMA = Schema(
    {
        "s": Categorical(["a", "b"]),
        "u": Numeric(0, 1, role="insensitive"),
        "v": Categorical(["a", "b", "c"], role="insensitive"),
        "w": Numeric(0, 1, role="public"),
    },
    Label("y", [0, 1], role="insensitive"),
)
DISTANCES = {"u": 0.2, "v": 0.05, "y": 0.3}


def table(n: int = 400, seed: int = 0) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(seed)
    X = {
        "s": rng.choice(["a", "b"], n),
        "u": rng.random(n),
        "v": rng.choice(["a", "b", "c"], n),
        "w": rng.random(n),
    }
    return X, (X["u"] > 0.5).astype(int)


def fitted(n: int = 400, **settings: Any) -> CorrDPLogisticRegression:
    given = {
        "epsilon": 1.0,
        "delta": 1e-5,
        "distances": DISTANCES,
        "steps": 12,
        "solver": "sgd",
        "sample_rate": 0.2,
        "random_state": 1,
    }
    model = CorrDPLogisticRegression(SCHEMA, **{**given, **settings})
    return model.fit(*table(n))


def declared(
    schema: Schema = SCHEMA,
    distances: dict[str, float] | None = None,
    n: int = 400,
    **target: Any,
) -> Declaration:
    given = DISTANCES if distances is None else distances
    asked = PrivacyTarget(**{"epsilon": 1.0, "delta": 1e-5, **target})
    return Declaration(schema, asked, n, Distances.given(given), seeded=True)


def task(declaration: Declaration, q: float | None = 0.2, steps: int = 12) -> LinearTask:
    return prepare(declaration, Logistic(), None, PlanRequest(steps, solver="sgd", sample_rate=q))


def setup_of(model: CorrDPLogisticRegression) -> LinearSetup:
    assert model.certificate_ is not None
    return read_setup(model.certificate_.ledger.one("linear-budget"))


# --- the law of the batches ----------------------------------------------------------------------

MEMBERS = 40
# a level per record: the released sum says who took part
ROLL = Schema(
    {"id": Categorical([f"p{i}" for i in range(MEMBERS)], role="sensitive")},
    Label("y", [0, 1], role="sensitive"),
)


def batches(q: float, steps: int, seed: int, sigma: float = 0.0, rate: float = 1e-9) -> Run:
    """Noise-free sums of ``steps`` samples; θ hardly moves, so the residual stays at −½."""
    base = prepare(
        declared(ROLL, {}, MEMBERS, delta=1e-3), Logistic(), None, PlanRequest(1, 1.0, scale=1.0)
    )
    sensitivity = base.setup.table(base.declaration)
    names = [f"p{i}" for i in range(MEMBERS)]
    design = base.encoder.transform(read_records({"id": np.array(names)}, ROLL))
    plan = TrainingPlan(steps, rate, 20.0, 0)
    budgets = SampledBudgets(q, 1.0, (1.0, 1.0), (1.0, 1.0))
    return train(
        design,
        np.ones(MEMBERS),
        sensitivity,
        np.ones(2),
        plan,
        Lattice(),
        noise_source(seed),
        math.inf,
        sampling=budgets,
        fixed_noise=np.array([sigma, sigma]),
    )


def members(run: Run, q: float, rate: float = 1e-9) -> Any:
    """Who took part in each step: the sum divided by what one member adds, ½·q·n."""
    moved = np.diff(run.iterates, axis=0)[:, :MEMBERS]
    return moved / rate * (q * MEMBERS) / 0.5


@pytest.mark.parametrize("q", [0.05, 0.3])
def test_batches_are_independent_coin_flips(q: float) -> None:
    steps = 1200
    joined = members(batches(q, steps, 4), q)
    # one member adds exactly ½φ/(q·n): sums are divided by the fixed q·n, never by the batch
    assert np.allclose(joined, np.rint(joined), atol=1e-4)
    joined = np.rint(joined)
    assert set(np.unique(joined)) == {0.0, 1.0}
    sizes = joined.sum(axis=1)
    scores = (joined.sum(axis=0) - steps * q) / math.sqrt(steps * q * (1 - q))
    assert stats.chi2.sf(scores @ scores, MEMBERS) > 1e-4  # every member equally often, at rate q
    ratio = sizes.var(ddof=1) / (MEMBERS * q * (1 - q))
    spread = 4 * math.sqrt(2 / steps)
    assert abs(ratio - 1) < spread
    assert spread < 0.2  # a fixed size, or half the rate, is rejected
    lagged = np.corrcoef(joined[:-1].ravel(), joined[1:].ravel())[0, 1]
    assert abs(lagged) < 4 / math.sqrt(joined[1:].size)
    pairs = np.corrcoef(joined.T)[np.triu_indices(MEMBERS, 1)]
    assert np.abs(pairs).max() < 5.5 / math.sqrt(steps)


def test_an_empty_batch_is_a_step_of_noise_alone() -> None:
    q = 1e-6
    silent = batches(q, 30, 5)
    assert (silent.iterates == 0).all()
    noisy = batches(q, 300, 5, sigma=3.0, rate=1e-12)
    noise = np.diff(noisy.iterates, axis=0) / 1e-12 * (q * MEMBERS)
    assert (np.abs(noise).max(axis=1) > 0).all()
    deviation = noise.std()
    assert abs(deviation / 3.0 - 1) < 0.03  # 12,300 draws: a standard error of .6 %


def test_two_streams_share_nothing() -> None:
    """The coins do not depend on how much noise was drawn."""
    loud = batches(0.3, 20, 8, sigma=1e-3)
    assert np.allclose(members(loud, 0.3), members(batches(0.3, 20, 8), 0.3), atol=0.02)


# --- what is fixed, and what every step meets ----------------------------------------------------


def test_every_step_meets_presence_and_changes() -> None:
    model = fitted(steps=25)
    setup = setup_of(model)
    assert model.certificate_ is not None and setup.sampling is not None
    sensitivity = setup.table(declared())
    entry = model.certificate_.ledger.one("linear-release")
    iterates, sigma = decode_array(entry["iterates"]), decode_array(entry["sigma"])
    assert (sigma > 0).all()  # with q < 1 the presence row touches every block
    presence = ((sensitivity.presence / sigma) ** 2).sum(axis=1)
    assert presence.max() <= setup.sampling.presence**2 * (1 + 1e-12)
    change = np.array(setup.sampling.change)
    tight = []
    for theta, noise in zip(iterates[:-1], sigma, strict=True):
        use = ((sensitivity(theta) / noise) ** 2).sum(axis=1) / change
        assert use.max() <= 1 + 1e-12
        tight.append(max(use.max(), float(presence.max() / setup.sampling.presence**2)))
    assert min(tight) > 1 - 1e-9  # no step gives noise away


@pytest.mark.parametrize(
    ("epsilon", "q", "steps"), [(0.2, 0.02, 5), (0.2, 0.5, 60), (3.0, 0.02, 60), (3.0, 0.5, 5)]
)
def test_calibrated_changes_never_exceed_the_target(epsilon: float, q: float, steps: int) -> None:
    declaration = declared(epsilon=epsilon, n=5000)
    one = task(declaration, q, steps)
    chosen = one.setup.sampling
    assert chosen is not None and chosen.change == chosen.fixed
    targets = [(b.epsilon, b.delta) for b in one.budgets]
    kept = [(e * (1 - RESERVE), d * (1 - RESERVE)) for e, d in targets]
    expected = subsampled.calibrate(q, steps, chosen.presence, kept) ** 2
    assert np.allclose(chosen.change, expected, rtol=1e-12)
    for squared, (allowed, delta) in zip(chosen.change, targets, strict=True):
        change = math.sqrt(squared)
        loss = subsampled.epsilon(q, chosen.presence, change, steps, delta)
        assert loss <= allowed
        assert loss >= 0.985 * allowed or change >= 2 * chosen.presence * (1 - 1e-12)


def test_certificate_keeps_to_its_targets() -> None:
    certificate = fitted().certificate_
    assert certificate is not None and certificate.holds
    assert verify(certificate.to_dict()).holds
    for row in certificate.columns:
        if row["role"] != "public":
            assert row["epsilon_holds"] <= row["epsilon_target"]
    assert certificate.row("s")["epsilon_holds"] >= 0.98 * certificate.row("s")["epsilon_target"]


def test_all_records_at_every_step_is_full_batch() -> None:
    sampled = fitted(sample_rate=1.0).certificate_
    full = fitted(sample_rate=None, solver="gradient").certificate_
    assert sampled is not None and full is not None
    for name in ("s", "u", "y"):
        one, other = sampled.row(name)["epsilon_holds"], full.row(name)["epsilon_holds"]
        assert one <= sampled.row(name)["epsilon_target"]
        if one >= 0.97 * sampled.row(name)["epsilon_target"]:
            assert one == pytest.approx(other, rel=0.01)
    assert sampled.joint["sensitive"] == pytest.approx(full.joint["sensitive"], rel=0.01)


def test_joint_rows_are_finite_where_full_batch_says_infinity() -> None:
    """d = 0 and a public label: nothing but presence bounds them, and that is enough."""
    schema = Schema(dict(SCHEMA.columns), Label("y", [0, 1], role="public"))
    settings: dict[str, Any] = {"distances": {"u": 0.0, "v": 0.0}}
    sampled = CorrDPLogisticRegression(
        schema, epsilon=1.0, delta=1e-5, steps=12, solver="sgd", sample_rate=0.2, random_state=1
    )
    model = sampled.set_params(**settings).fit(*table())
    full = CorrDPLogisticRegression(
        schema, epsilon=1.0, delta=1e-5, steps=12, random_state=1, **settings
    ).fit(*table())
    assert full.certificate_ is not None and model.certificate_ is not None
    assert full.certificate_.joint["record"] > 1000  # type: ignore[operator]
    setup = setup_of(model)
    assert setup.sampling is not None
    use = setup.sampling.use(12, 1)
    account = setup.sampler(model.encoder_)
    most = subsampled_loss(use, 2 * use.presence, account, 1e-5)
    assert most < 50
    for key in ("insensitive", "record"):
        assert model.certificate_.joint[key] <= most * (1 + 1e-9)  # type: ignore[operator]
    for name in ("u", "v"):
        assert model.certificate_.row(name)["epsilon_holds"] <= most * (1 + 1e-9)


def test_a_small_rate_takes_more_and_smaller_steps() -> None:
    declaration = declared(n=1000, epsilon=0.2)
    usual = prepare(declaration, Logistic(), None, PlanRequest(solver="sgd")).plan
    small = PlanRequest(solver="sgd", sample_rate=0.01)
    many = prepare(declaration, Logistic(), None, small).plan
    assert usual.steps < many.steps <= 500
    assert many.learning_rate < usual.learning_rate
    asked = PlanRequest(7, solver="sgd", sample_rate=0.01)
    assert prepare(declaration, Logistic(), None, asked).plan.steps == 7


@pytest.mark.parametrize(("epsilon", "q", "steps"), [(3.0, 0.6, 1), (0.5, 0.9, 4), (2.0, 0.01, 30)])
def test_presence_is_near_the_best(epsilon: float, q: float, steps: int) -> None:
    """No presence on a wide grid needs much less noise at the public reference point."""
    one = task(declared(epsilon=epsilon, delta=1e-3), q, steps)
    chosen = one.setup.sampling
    assert chosen is not None
    sensitivity = one.setup.table(one.declaration)
    rows = sampling.with_presence(
        sensitivity(sampling._reference(sensitivity)), sensitivity.presence
    )
    kept = [(b.epsilon * (1 - RESERVE), b.delta * (1 - RESERVE)) for b in one.budgets]

    def variance(presence: float) -> float:
        change = subsampled.calibrate(q, steps, presence, kept)
        limits = np.append(change**2, presence**2)
        return allocate(rows, limits, one.encoder.dimensions).total_variance

    grid = chosen.presence * np.exp(np.linspace(-3, 1, 9))
    assert variance(chosen.presence) <= 1.1 * min(variance(float(c)) for c in grid)
    assert variance(chosen.presence / 4) > 1.1 * variance(chosen.presence)


# --- several rows per person ---------------------------------------------------------------------


def test_rows_of_one_person_join_more_often() -> None:
    k, q = 10, 0.01
    one = task(declared(records_per_person=k, n=5000), q, 8)
    chosen = one.setup.sampling
    assert chosen is not None
    assert chosen.use(8, k).rate == pytest.approx(1 - (1 - q) ** k, rel=1e-12)
    sensitivity = one.setup.table(one.declaration)
    alone = task(declared(n=5000), q, 8)
    single = alone.setup.table(alone.declaration)
    assert np.allclose(sensitivity.presence, k * single.presence, rtol=1e-12)
    assert np.allclose(sensitivity.infimum, k * single.infimum, rtol=1e-12)
    kept = [(b.epsilon * (1 - RESERVE), b.delta * (1 - RESERVE)) for b in one.budgets]
    wrong = subsampled.calibrate(q, 8, chosen.presence, kept)  # plain q
    joined = subsampled.person_rate(q, k)
    for a, budget in zip(wrong, one.budgets, strict=True):
        if a < 2 * chosen.presence * (1 - 1e-9):
            loss = subsampled.epsilon(joined, chosen.presence, float(a), 8, budget.delta)
            assert loss > 1.5 * budget.epsilon


def test_plain_rate_for_several_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was planned with q where 1 − (1 − q)^k belongs does not verify."""
    monkeypatch.setattr(subsampled, "person_rate", lambda q, k: q)
    model = fitted(records_per_person=3)
    assert model.certificate_ is not None and model.certificate_.holds
    ledger = model.certificate_.ledger
    monkeypatch.undo()
    assert not certify(ledger).holds


# --- private distances ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::corrdp.errors.UtilityWarning")
def test_private_distances_by_basic_composition() -> None:
    """Rate, presence, steps and limits do not depend on what the estimate released."""
    settings: dict[str, Any] = {"distances": "private", "epsilon": 4.0, "sample_rate": None}
    first = fitted(6000, **settings, steps=None)
    X, y = table(6000, seed=7)
    constant = {name: np.repeat(values[:1], len(values)) for name, values in X.items()}
    second = CorrDPLogisticRegression(
        SCHEMA, epsilon=4.0, delta=1e-5, solver="sgd", random_state=2
    ).fit(constant, 0 * y)
    one, other = setup_of(first), setup_of(second)
    assert one.sampling is not None and other.sampling is not None
    assert one.plan == other.plan
    assert (one.sampling.rate, one.sampling.presence) == (
        other.sampling.rate,
        other.sampling.presence,
    )
    assert one.sampling.fixed == other.sampling.fixed
    assert all(a <= b * (1 + 1e-9) for a, b in zip(one.sampling.change, one.sampling.fixed))
    certificate = first.certificate_
    assert certificate is not None and certificate.holds
    assert verify(certificate.to_dict()).holds
    for row in certificate.columns:
        if row["role"] != "public":
            assert row["epsilon_holds"] <= row["epsilon_target"]
    # the training alone has less than the whole ε, and half of δ
    use = one.sampling.use(one.plan.steps, 1)
    alone = subsampled_loss(
        use, math.sqrt(one.sampling.change[0]), one.sampler(first.encoder_), 1e-5 / 2
    )
    assert alone < 0.8 * 4.0 < certificate.row("s")["epsilon_holds"]


# --- tampering -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def original() -> dict[str, Any]:
    certificate = fitted().certificate_
    assert certificate is not None
    return json.loads(json.dumps(certificate.to_dict()))


def rechained(plain: dict[str, Any], change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Edited, with every digest recomputed."""
    altered = copy.deepcopy(plain)
    change(altered)
    ledger = Ledger()
    for entry in altered["ledger"]:
        body = {k: v for k, v in entry.items() if k not in ("type", "previous", "digest")}
        ledger = ledger.append(entry["type"], body)
    body = {k: v for k, v in altered.items() if k not in ("digest", "ledger")}
    body["ledger"] = ledger.to_list()
    return {**body, "digest": digest(body)}


def edit_sampling(key: str, factor: float) -> Callable[[dict[str, Any]], None]:
    def change(plain: dict[str, Any]) -> None:
        chosen = plain["ledger"][1]["sampling"]
        value = chosen[key]
        chosen[key] = [factor * v for v in value] if isinstance(value, list) else factor * value

    return change


def lower_noise(plain: dict[str, Any]) -> None:
    entry = plain["ledger"][2]
    entry["sigma"] = encode_array(0.9 * decode_array(entry["sigma"]))


def remove_steps(plain: dict[str, Any]) -> None:
    entry = plain["ledger"][2]
    for key in ("sigma", "iterates"):
        entry[key] = encode_array(decode_array(entry[key])[:-2])


def remove_steps_everywhere(plain: dict[str, Any]) -> None:
    remove_steps(plain)
    plain["ledger"][1]["plan"]["steps"] -= 2


def no_sampling(plain: dict[str, Any]) -> None:
    plain["ledger"][1]["sampling"] = None


EDITS = {
    "rate down": edit_sampling("rate", 0.5),
    "rate up": edit_sampling("rate", 1.2),
    "presence down": edit_sampling("presence", 0.9),
    "presence up": edit_sampling("presence", 1.2),
    "change down": edit_sampling("change", 0.8),
    "change up": edit_sampling("change", 1.2),
    "limits up": edit_sampling("fixed", 1.2),
    "lower noise": lower_noise,
    "removed steps": remove_steps,
    "removed steps everywhere": remove_steps_everywhere,
    "no sampling": no_sampling,
}
# without the coins a lower rate is another claim, not a contradiction
ANOTHER_CLAIM = ("rate down",)


@pytest.mark.parametrize("name", EDITS)
def test_edits_are_noticed(original: dict[str, Any], name: str) -> None:
    assert verify(original).holds
    altered = copy.deepcopy(original)
    EDITS[name](altered)
    assert not verify(altered).holds
    again = rechained(original, EDITS[name])
    assert not verify(again).holds


@pytest.mark.parametrize("name", [n for n in EDITS if n not in (*ANOTHER_CLAIM, "removed steps")])
def test_recomputed_claims_do_not_help(original: dict[str, Any], name: str) -> None:
    claimed = certify(Ledger.from_list(rechained(original, EDITS[name])["ledger"]))
    assert not claimed.holds and claimed.problems


def test_a_lower_rate_is_another_claim(original: dict[str, Any]) -> None:
    claimed = certify(Ledger.from_list(rechained(original, EDITS["rate down"])["ledger"]))
    assert claimed.joint["sensitive"] < original["joint"]["sensitive"]  # type: ignore[operator]


# --- mutations -----------------------------------------------------------------------------------


def test_changes_ten_per_cent_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the accountant had been told a change 10 % too small."""
    right = sampling.calibrate_changes

    def wrong(*arguments: Any) -> Any:
        return right(*arguments) * 1.1

    monkeypatch.setattr(sampling, "calibrate_changes", wrong)
    with pytest.raises(ConfigurationError, match="leaves no room"):
        task(declared())
    monkeypatch.setattr(fit, "check_slack", lambda task: None)
    model = fitted()
    assert model.certificate_ is not None and not model.certificate_.holds
    assert any("lose" in problem for problem in model.certificate_.problems)


def test_a_table_ten_per_cent_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from corrdp.erm import optimiser

    class Small(optimiser._Allocator):
        def sigma(self, theta: Any) -> Any:
            return 0.9 * super().sigma(theta)

    monkeypatch.setattr(optimiser, "_Allocator", Small)
    model = fitted()
    assert model.certificate_ is not None and not model.certificate_.holds
    assert not verify(model.certificate_.to_dict()).holds


# --- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.5, math.nan, math.inf, "0.1", True])
def test_wrong_rates(rate: Any) -> None:
    with pytest.raises(ConfigurationError, match="sample_rate"):
        task(declared(), rate)


def test_rate_needs_sampling() -> None:
    with pytest.raises(ConfigurationError, match="solver='sgd'"):
        PlanRequest(sample_rate=0.1)
    with pytest.raises(ConfigurationError, match="unknown"):
        PlanRequest(solver="adam")  # type: ignore[arg-type]


def test_default_rate_keeps_sampling_cheap() -> None:
    """At the default rate the noise is near that of full batches at equal budgets."""
    protected = {name: column for name, column in SCHEMA.columns.items() if name != "w"}
    declaration = declared(Schema(protected, SCHEMA.label), n=20_000, epsilon=0.5)
    sampled = task(declaration, None, 100)
    chosen = sampled.setup.sampling
    assert chosen is not None and 0 < chosen.rate < 1
    full = prepare(declaration, Logistic(), None, PlanRequest(100))
    sensitivity = full.setup.table(declaration)
    theta = sampling._reference(sensitivity)
    budget = np.array([b.mu_squared for b in full.budgets]) / 100
    one = allocate(sensitivity(theta), budget, full.encoder.dimensions).total_variance
    rows = sampling.with_presence(sensitivity(theta), sensitivity.presence)
    limits = np.append(chosen.change, chosen.presence**2)
    other = allocate(rows, limits, full.encoder.dimensions).total_variance / chosen.rate**2
    assert one < other < 1.15 * one
    few = task(declaration, 0.02, 100).setup.sampling
    assert few is not None
    limits = np.append(few.change, few.presence**2)
    dear = allocate(rows, limits, full.encoder.dimensions).total_variance / few.rate**2
    assert dear > 2 * one


def test_scores_of_a_batch_do_not_depend_on_who_else_is_in_it(monkeypatch: Any) -> None:
    """A matrix product may round a row otherwise at another place (THEORY T7, T14)."""

    def product(design: Any, theta: Any) -> Any:
        raise AssertionError("a batch was multiplied as a matrix")

    monkeypatch.setattr("corrdp.encoding.Design.scores", product)
    assert fitted(steps=3).certificate_.holds
    X, y = table()
    full = CorrDPLogisticRegression(SCHEMA, delta=1e-5, steps=3, distances=None, random_state=0)
    with pytest.raises(AssertionError, match="multiplied"):
        full.fit(X, y)
