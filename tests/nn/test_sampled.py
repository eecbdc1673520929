"""Poisson-sampled training of networks: batches, fixed budgets, certificates (THEORY T7, T12)."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import corrdp
from corrdp import CorrDPMLPClassifier, CorrDPMLPRegressor, PrivacyBudget
from corrdp.allocation import allocate
from corrdp.audit import attacks_on
from corrdp.distance import Distances
from corrdp.encoding import Encoder
from corrdp.erm import sampled_account, sampling
from corrdp.erm.sampling import SampledBudgets, with_presence
from corrdp.errors import ConfigurationError
from corrdp.nn import trainer
from corrdp.nn.account import decode_single, read_setup
from corrdp.nn.cells import inputs_of
from corrdp.nn.gradients import gradient_sum
from corrdp.nn.network import Network
from corrdp.nn.recipe import NetworkRecipe
from corrdp.nn.residual import ClippedResidual
from corrdp.nn.sampled import reach_of, reference_parameters
from corrdp.nn.sensitivity import NetworkSensitivity
from corrdp.nn.trainer import NetworkPlan, train_network
from corrdp.noise import noise_source
from corrdp.privacy import subsampled
from corrdp.privacy.budgets import RESERVE, PrivacyTarget
from corrdp.privacy.certificate import subsampled_loss
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.estimate import declaration_of
from corrdp.privacy.guarantee import dual_bound
from corrdp.privacy.ledger import Ledger, decode_array, digest, encode_array
from corrdp.records import read_label, read_records
from corrdp.schema import Categorical, Label, Numeric, Schema
from corrdp.verification import certify

from .test_estimators import StopError, schema_of, stop_at, table
from .tiny import build, grid, random_parameters, table_of

DISTANCES = {"x": 0.2, "c": 0.1, "y": 0.2}


def fitted(**options):
    X, y = table(800)
    given = {"epsilon": 1.0, "distances": DISTANCES, "steps": 8, "solver": "sgd"}
    given |= {"sample_rate": 0.2, "hidden_layer_sizes": (4,), "random_state": 0}
    return CorrDPMLPClassifier(schema_of(levels=[0, 1]), **{**given, **options}).fit(X, y)


def recipe(schema, q=0.2, steps=8, **shape):
    network = Network(Encoder(schema, 0.5), **{"hidden": (4,), **shape})
    loss = ClippedResidual(0.7)
    return NetworkRecipe(network, loss, steps=steps, solver="sgd", sample_rate=q)


def declared(n=800, distances=DISTANCES, schema=None, delta=1e-6, **target):
    schema = schema_of(levels=[0, 1]) if schema is None else schema
    asked = PrivacyTarget(**{"epsilon": 1.0, "delta": delta, **target})
    return Declaration(schema, asked, n, Distances.given(distances), seeded=True)


def ledger_of(model):
    """Setup, table, iterates and noise of a fitted model."""
    ledger = model.certificate_.ledger
    setup = read_setup(ledger.one("network-budget"))
    release = ledger.one("network-release")
    sensitivity = setup.table(declaration_of(ledger))
    return setup, sensitivity, decode_single(release["iterates"]), decode_array(release["sigma"])


# --- the law of the batches ----------------------------------------------------------------------

MEMBERS = 40
# a level per record: the released sum of the skip says who took part
ROLL = Schema(
    {
        "id": Categorical([f"p{i}" for i in range(MEMBERS)], role="sensitive"),
        "u": Numeric(0, 1, role="insensitive"),
    },
    Label("y", [0, 1], role="sensitive"),
)
RATE = 1e-9


def batches(q, steps, seed, sigma=0.0, actual=None):
    """Released iterates of sampled steps; parameters hardly move, so the residual stays at −½."""
    task = recipe(ROLL, q=0.5, steps=1, initial_scale=1e-6).prepare(
        declared(MEMBERS, {}, ROLL, 1e-3)
    )
    X = {"id": np.array([f"p{i}" for i in range(MEMBERS)]), "u": np.linspace(0, 1, MEMBERS)}
    network = task.table.query.network
    inputs, label = inputs_of(network.encoder, network, read_records(X, ROLL), np.ones(MEMBERS))
    kinds, blocks = len(task.table.kinds), len(network.blocks)
    budgets = SampledBudgets(q if actual is None else actual, 1.0, (1.0,) * kinds, (1.0,) * kinds)
    plan = NetworkPlan(steps, RATE, 20.0, 0)
    run = train_network(
        inputs,
        label,
        task.table,
        np.ones(kinds),
        plan,
        noise_source(seed),
        math.inf,
        sampling=budgets,
        fixed_noise=np.full(blocks, sigma),
    )
    return network, run, budgets.rate * MEMBERS


def members(q, steps, seed, sigma=0.0, actual=None):
    """Who took part in each step: the sum of the skip slice over what one member adds."""
    network, run, expected = batches(q, steps, seed, sigma, actual)
    place = next(b for b in network.blocks if b.name == "skip:id")
    moved = np.diff(run.iterates, axis=0)[:, place.start : place.start + place.size]
    return moved / RATE * expected / (0.5 * network.encoder.scale)


def score_of_rate(joined, q):
    """Deviations of the number of participations from q."""
    return (joined.sum() - joined.size * q) / math.sqrt(joined.size * q * (1 - q))


@pytest.mark.parametrize("q", [0.05, 0.3])
def test_batches_are_independent_coin_flips(q):
    steps = 600
    joined = members(q, steps, 4)
    # one member adds exactly ½φ/(q·n): sums are divided by the fixed q·n, never by the batch
    assert np.allclose(joined, np.rint(joined), atol=1e-3)
    joined = np.rint(joined)
    assert set(np.unique(joined)) == {0.0, 1.0}
    scores = (joined.sum(axis=0) - steps * q) / math.sqrt(steps * q * (1 - q))
    assert stats.chi2.sf(scores @ scores, MEMBERS) > 1e-4  # every member equally often
    assert abs(score_of_rate(joined, q)) < 3
    ratio = joined.sum(axis=1).var(ddof=1) / (MEMBERS * q * (1 - q))
    assert abs(ratio - 1) < 4 * math.sqrt(2 / steps)  # .23: a fixed size is rejected
    lagged = np.corrcoef(joined[:-1].ravel(), joined[1:].ravel())[0, 1]
    assert abs(lagged) < 4 / math.sqrt(joined[1:].size)
    pairs = np.corrcoef(joined.T)[np.triu_indices(MEMBERS, 1)]
    assert np.abs(pairs).max() < 5.5 / math.sqrt(steps)
    # a rate 10 % off is rejected by the same count
    assert abs(score_of_rate(np.rint(members(q, steps, 4, actual=1.1 * q)), q)) > 3


def test_an_empty_batch_is_a_step_of_noise_alone():
    _, silent, _ = batches(1e-6, 10, 5)
    assert (np.diff(silent.iterates, axis=0) == 0).all()
    network, noisy, expected = batches(1e-6, 40, 5, sigma=3.0)
    # hidden weights start away from zero, where single precision hides so small a step
    start = next(b.start for b in network.blocks if b.path == "skip")
    noise = np.diff(noisy.iterates, axis=0)[:, start:] / RATE * expected
    assert (np.abs(noise).max(axis=1) > 0).all()
    assert abs(noise.std() / 3.0 - 1) < 0.08  # 1,640 draws: a standard error of 1.7 %


def test_coins_do_not_depend_on_the_noise():
    quiet = np.rint(members(0.3, 20, 8))
    assert np.allclose(members(0.3, 20, 8, sigma=1e-3), quiet, atol=0.05)


def test_absence_of_a_record_moves_no_other():
    """The accountant compares the sums with a record, without it, and with its neighbour."""
    task = recipe(schema_of(levels=[0, 1]), hidden=(3, 2)).prepare(declared(300))
    query, network = task.table.query, task.table.query.network
    X, y = table(300)
    records = read_records(X, network.encoder.schema)
    label = read_label(y, network.encoder.schema.label, 300).astype(float)
    inputs, label = inputs_of(network.encoder, network, records, label)
    parameters = random_parameters(network, np.random.default_rng(0))
    batch = noise_source(1).poisson_sample(300, 0.3)
    whole = inputs.sampled(batch)
    assert all(
        one.hidden is other.hidden and one.place == other.place
        for one, other in zip(whole.chunks, inputs.chunks, strict=True)
    )
    with_all = gradient_sum(query, parameters, whole, label)
    for left in (batch[0], batch[len(batch) // 2], batch[-1]):
        without = inputs.sampled(batch[batch != left])
        alone = inputs.sampled(np.array([left]))
        difference = with_all - gradient_sum(query, parameters, without, label)
        np.testing.assert_array_equal(difference, gradient_sum(query, parameters, alone, label))
    everybody = gradient_sum(query, parameters, inputs.sampled(np.arange(300)), label)
    np.testing.assert_array_equal(everybody, gradient_sum(query, parameters, inputs, label))


@pytest.mark.parametrize("n", [400, 40])
def test_sampled_cells_are_sampled_records(n, monkeypatch):
    """Cells are sampled record by record: a member of a cell joins or not on its own."""
    schema = Schema(
        {"c": Categorical(["a", "b"], role="insensitive"), "s": Categorical(["m", "w"])},
        Label("y", [0, 1], role="insensitive"),
    )
    rng = np.random.default_rng(3)
    X = {"c": rng.choice(["a", "b"], n), "s": rng.choice(["m", "w"], n)}
    y = rng.integers(0, 2, n).astype(float)
    task = recipe(schema).prepare(declared(n, {"c": 0.1}, schema))
    query, network = task.table.query, task.table.query.network
    parameters = random_parameters(network, rng)
    batch = noise_source(1).poisson_sample(n, 0.3)
    by_cell = inputs_of(network.encoder, network, read_records(X, schema), y)
    monkeypatch.setattr("corrdp.nn.cells.FEWER", 10**6)
    by_record = inputs_of(network.encoder, network, read_records(X, schema), y)
    assert len(by_cell[1]) == 8 and len(by_record[1]) == n
    sums = [
        gradient_sum(query, parameters, i.sampled(batch), label)
        for i, label in (by_cell, by_record)
    ]
    assert np.abs(sums[0]).max() > 0
    np.testing.assert_array_equal(*sums)
    assert by_cell[0].sampled(np.array([], dtype=np.int64)).chunks == ()


# --- what the accountant supposes, by brute force ------------------------------------------------

SHAPES = [
    {"hidden": (4,)},
    {"hidden": (4,), "classes": 3},
    {"hidden": (3,), "output_weights": "trained"},
    {"hidden": (3,), "classes": 3, "output_weights": "trained"},
    {"hidden": (3, 2), "activation": "relu"},
    {"hidden": (4,), "bits": (2, 2, 2)},
    {"hidden": (3,), "classes": 0, "bits": (3, 3, 3), "output_weights": "trained"},
]


def contribution_ratio(shape, presence):
    """Largest norm of a block of any record's contribution over what ``presence`` says."""
    query = build(**shape)
    points = grid(query.network, (0.0, 0.5, 1.0))
    bound = presence(table_of(query))
    rng = np.random.default_rng(1)
    worst = 0.0
    for size in (0.1, 1.0, 5.0):
        parameters = query.network.project(size * random_parameters(query.network, rng), 20.0)
        rows = points.contributions(query, parameters)
        for block, limit in zip(query.network.blocks, bound, strict=True):
            norms = np.linalg.norm(rows[:, block.start : block.start + block.size], axis=1)
            worst = max(worst, float(norms.max()) / limit)
    return worst


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_contribution_exceeds_the_presence_bound(shape):
    assert contribution_ratio(shape, lambda one: one.presence) <= 1.0


def test_a_presence_bound_ten_per_cent_too_small_is_caught():
    ratios = [contribution_ratio(shape, lambda one: 0.9 * one.presence) for shape in SHAPES]
    assert sum(ratio > 1.0 for ratio in ratios) >= 4


TINY = {
    "x": Numeric(0, 1, role="insensitive"),
    "s": Numeric(0, 1, role="sensitive"),
    "c": Categorical(["a", "b", "d"], role="insensitive"),
    "t": Categorical(["a", "b"], role="sensitive"),
}
BRUTE = [
    {},
    {"output_weights": "trained", "hidden_layer_sizes": (3,)},
    {"hidden_layer_sizes": (3, 2), "record_epsilon": 3.0, "class_weight": {0: 1.0, 1: 3.0}},
    {"records_per_person": 2, "adjacency": "record", "sensitive_path": "hidden"},
]


def tiny_fit(**options):
    schema = Schema(TINY, Label("y", [0, 1], role="insensitive"))
    rng = np.random.default_rng(0)
    X = {"x": rng.random(60), "s": rng.random(60)}
    X |= {"c": rng.choice(["a", "b", "d"], 60), "t": rng.choice(["a", "b"], 60)}
    given = {"epsilon": 2.0, "delta": 1e-3, "steps": 4, "solver": "sgd", "sample_rate": 0.4}
    given |= {"hidden_layer_sizes": (4,), "learning_rate": 3.0, "random_state": 0}
    given |= {"distances": {"x": 0.3, "c": 0.5, "y": 0.4}}
    model = CorrDPMLPClassifier(schema, **{**given, **options})
    return model.fit(X, rng.integers(0, 2, 60))


def worst_use(model):
    """Largest contribution over c, and largest movement over a_k, by trying all records."""
    setup, sensitivity, iterates, sigma = ledger_of(model)
    chosen, network = setup.sampling, sensitivity.query.network
    points = grid(network, (0.0, 0.5, 1.0))
    rows = model.records_per_person
    contribution, movement = 0.0, 0.0
    for parameters, noise in zip(iterates[:-1], sigma, strict=True):
        scaled = rows * points.contributions(sensitivity.query, parameters) / network.spread(noise)
        squared = (scaled**2).sum(axis=1)
        contribution = max(contribution, math.sqrt(squared.max()) / chosen.presence)
        gaps = squared[:, None] + squared[None, :] - 2.0 * scaled @ scaled.T
        for kind, change in zip(sensitivity.kinds, chosen.change, strict=True):
            changing = {*kind.columns, *(["y"] if kind.label_changes else [])}
            fixed = [i for i, name in enumerate(("x", "s", "c", "t", "y")) if name not in changing]
            key = points.values[:, fixed]
            pair = (key[:, None, :] == key[None, :, :]).all(axis=-1)
            movement = max(movement, math.sqrt(gaps[pair].max() / change))
    return contribution, movement


@pytest.mark.parametrize("options", BRUTE, ids=str)
@pytest.mark.filterwarnings("ignore::corrdp.errors.UtilityWarning")
def test_no_record_exceeds_what_the_accountant_was_told(options):
    contribution, movement = worst_use(tiny_fit(**options))
    assert contribution <= 1.0 and movement <= 1.0
    assert max(contribution, movement) > 0.5


@pytest.mark.filterwarnings("ignore::corrdp.errors.UtilityWarning")
def test_bounds_ten_per_cent_too_small_are_caught_by_records(monkeypatch):
    """The verification shares the table and cannot tell; the records can."""
    right = NetworkSensitivity.__call__
    wrong = lambda self, parameters: 0.9 * right(self, parameters)  # noqa: E731
    # at a large rate the label's row binds, and at the start its bound is attained
    options = {"steps": 2, "learning_rate": 1e-6, "sample_rate": 0.9}
    options["distances"] = {"x": 0.01, "c": 0.01, "y": 1.0}
    assert 0.95 < worst_use(tiny_fit(**options))[1] <= 1.0
    monkeypatch.setattr(NetworkSensitivity, "__call__", wrong)
    assert worst_use(tiny_fit(**options))[1] > 1.0


# --- what is fixed, and what every step meets ----------------------------------------------------


def test_every_step_meets_presence_and_changes():
    setup, sensitivity, iterates, sigma = ledger_of(fitted(steps=20))
    assert (sigma > 0).all()  # with q < 1 the presence row touches every block
    present = ((sensitivity.presence / sigma) ** 2).sum(axis=1) / setup.sampling.presence**2
    assert present.max() <= 1 + 1e-12
    for parameters, noise, one in zip(iterates[:-1], sigma, present, strict=True):
        use = ((sensitivity(parameters) / noise) ** 2).sum(axis=1) / setup.sampling.change
        assert use.max() <= 1 + 1e-12
        assert max(use.max(), one) > 1 - 1e-9  # no step gives noise away


@pytest.mark.parametrize(("epsilon", "q", "steps"), [(0.3, 0.05, 5), (3.0, 0.5, 40)])
def test_calibrated_changes_never_exceed_the_target(epsilon, q, steps):
    declaration = declared(5000, epsilon=epsilon)
    task = recipe(declaration.schema, q, steps).prepare(declaration)
    chosen = task.setup.sampling
    assert chosen.change == chosen.fixed
    for squared, budget in zip(chosen.change, task.budgets, strict=True):
        change = math.sqrt(squared)
        loss = subsampled.epsilon(q, chosen.presence, change, steps, budget.delta)
        assert loss <= budget.epsilon
        assert loss >= 0.985 * budget.epsilon or change >= 2 * chosen.presence * (1 - 1e-12)


def test_presence_is_near_the_best():
    declaration = declared(800)
    task = recipe(declaration.schema, 0.05, 20).prepare(declaration)
    chosen, sensitivity = task.setup.sampling, task.table
    network = sensitivity.query.network
    rows = with_presence(sensitivity(reference_parameters(network)), sensitivity.presence)
    kept = [(b.epsilon * (1 - RESERVE), b.delta * (1 - RESERVE)) for b in task.budgets]

    def variance(presence):
        change = subsampled.calibrate(0.05, 20, presence, kept)
        limits = np.append(change**2, presence**2)
        return allocate(rows, limits, network.dimensions).total_variance

    around = [variance(chosen.presence * factor) for factor in (0.25, 0.5, 2.0)]
    assert variance(chosen.presence) <= 1.1 * min(around)
    assert max(around) > 1.1 * variance(chosen.presence)


def test_the_reference_point_is_public_and_ordinary():
    for shape in SHAPES:
        query = build(**shape)
        point = reference_parameters(query.network)
        np.testing.assert_array_equal(point, reference_parameters(query.network))
        first, limit = table_of(query)(point), table_of(query).largest(20.0)
        assert (first <= limit * (1 + 1e-9)).all()
        assert (first.sum(axis=1) > 0).all()


@pytest.mark.filterwarnings("ignore::corrdp.errors.UtilityWarning")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"output_weights": "trained"},
        {"sensitive_path": "hidden", "adjacency": "record"},
        {"hidden_layer_sizes": (3, 2), "record_epsilon": 4.0, "activation": "softplus"},
        {"records_per_person": 3, "class_weight": {0: 1.0, 1: 2.0}},
        {"sample_rate": None, "steps": None},
        {"distances": "private", "epsilon": 4.0},
    ],
    ids=str,
)
def test_certificates_keep_to_their_targets(options):
    model = fitted(**options)
    certificate = model.certificate_
    assert certificate.holds and corrdp.verify(certificate.to_dict()).holds
    for row in certificate.columns:
        assert row["epsilon_holds"] <= row["epsilon_target"]
    assert certificate.joint["record"] <= options.get("record_epsilon", math.inf)
    setup = ledger_of(model)[0]
    most = subsampled_loss(
        setup.sampling.use(setup.plan.steps, model.records_per_person),
        2 * setup.sampling.presence,
        setup.sampler(model.network_.dimension),
        certificate.delta / 2,
    )
    # nothing is infinite: presence bounds every change
    extra = 0.0 if options.get("distances") != "private" else 4.0
    assert certificate.joint["record"] <= most * (1 + 1e-9) + extra
    assert model.score(*table(800)) > 0.5


def test_numbers_and_more_classes():
    X, y = table(800, classes=0)
    options = {"solver": "sgd", "sample_rate": 0.3, "steps": 5, "hidden_layer_sizes": (4,)}
    number = CorrDPMLPRegressor(schema_of(low=0, high=1), distances=DISTANCES, **options)
    assert number.fit(X, y).certificate_.holds
    X, y = table(800, classes=3)
    several = CorrDPMLPClassifier(schema_of(levels=[0, 1, 2]), distances=DISTANCES, **options)
    assert several.fit(X, y).certificate_.holds
    assert corrdp.verify(several.certificate_.to_dict()).holds


def test_all_records_at_every_step_is_full_batch():
    sampled = fitted(sample_rate=1.0).certificate_
    full = fitted(sample_rate=None, solver="gradient").certificate_
    assert sampled.joint["sensitive"] == pytest.approx(full.joint["sensitive"], rel=0.01)
    for name in ("x", "c", "y"):
        assert sampled.row(name)["epsilon_holds"] <= sampled.row(name)["epsilon_target"]


def test_without_privacy_batches_are_full():
    X, y = table(300)
    options = {"epsilon": math.inf, "steps": 5, "hidden_layer_sizes": (4,), "random_state": 1}
    schema = schema_of(levels=[0, 1])
    one = CorrDPMLPClassifier(schema, solver="sgd", sample_rate=0.1, **options).fit(X, y)
    other = CorrDPMLPClassifier(schema, **options).fit(X, y)
    np.testing.assert_array_equal(one.theta_, other.theta_)


def test_a_small_rate_takes_more_and_smaller_steps():
    declaration = declared(800, epsilon=0.3)
    base = recipe(declaration.schema, None, None)
    usual = base.prepare(declaration).setup.plan
    small = replace(base, sample_rate=0.02).prepare(declaration).setup.plan
    assert usual.steps < small.steps <= 500
    assert small.steps * small.learning_rate == pytest.approx(usual.steps * usual.learning_rate)
    asked = replace(base, sample_rate=0.02, steps=7).prepare(declaration).setup.plan
    assert asked.steps == 7 and asked.learning_rate == usual.learning_rate


@pytest.mark.parametrize("output_weights", ["fixed", "trained"])
@pytest.mark.parametrize("classes", [2, 3])
def test_joint_changes_cover_every_released_point(output_weights, classes):
    """λ from bounds over all parameters covers the tables at any of them (THEORY T4)."""
    query = build(hidden=(3,), output_weights=output_weights, classes=classes, bits=(3, 3, 3))
    sensitivity = table_of(query)
    reach = reach_of(sensitivity, 20.0)
    rng = np.random.default_rng(5)
    rows = with_presence(reach.infimum, reach.presence)
    budget = np.append(np.geomspace(0.01, 1.0, len(sensitivity.kinds)), 0.5)
    for position in range(len(sensitivity.kinds)):
        bound = dual_bound(budget, rows, reach.supremum[position])
        assert math.isfinite(bound.mu_squared)
        weight = np.array(bound.multipliers)
        for _ in range(20):
            parameters = random_parameters(query.network, rng)
            query.network.project(parameters, 20.0)
            at = sensitivity(parameters)
            covered = weight @ with_presence(at, sensitivity.presence) ** 2
            assert (covered >= at[position] ** 2 * (1 - 1e-9)).all()


# --- several rows per person ---------------------------------------------------------------------


def test_rows_of_one_person_join_more_often():
    k, q = 10, 0.02
    declaration = declared(500, records_per_person=k, epsilon=3.0)
    task = recipe(declaration.schema, q).prepare(declaration)
    chosen = task.setup.sampling
    assert chosen.use(8, k).rate == pytest.approx(1 - (1 - q) ** k, rel=1e-12)
    alone = recipe(declaration.schema, q).prepare(declared(500, epsilon=3.0)).table
    np.testing.assert_allclose(task.table.presence, k * alone.presence, rtol=1e-12)
    np.testing.assert_allclose(task.table.least_presence, k * alone.least_presence, rtol=1e-12)


def test_plain_rate_for_several_rows_is_caught(monkeypatch):
    monkeypatch.setattr(subsampled, "person_rate", lambda q, k: q)
    certificate = fitted(records_per_person=3).certificate_
    assert certificate.holds
    monkeypatch.undo()
    assert not certify(certificate.ledger).holds


# --- published calibration -----------------------------------------------------------------------


def test_published_noise_is_certified_for_what_it_is():
    whole = fitted(calibration="published", distances={"x": 1.0, "c": 1.0, "y": 1.0})
    assert whole.certificate_.holds
    assert whole.certificate_.joint["record"] <= 1.0
    assert corrdp.verify(whole.certificate_.to_dict()).holds
    setup, _, _, sigma = ledger_of(whole)
    full = ledger_of(fitted(calibration="published", solver="gradient", sample_rate=None))[0]
    assert setup.base < full.base  # a batch needs less noise than the whole table
    assert (sigma == sigma[0]).all()
    short = fitted(calibration="published", distances={"x": 0.01, "c": 0.01, "y": 0.01})
    assert not short.certificate_.holds
    assert "published calibration: the noise certifies" in short.certificate_.problems[0]
    certificate = rechained(whole.certificate_.to_dict(), lower_noise)
    assert not certify(Ledger.from_list(certificate["ledger"])).holds


# --- tampering -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def original():
    return json.loads(json.dumps(fitted().certificate_.to_dict()))


def rechained(plain, change):
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


def edit_sampling(key, factor):
    def change(plain):
        chosen = plain["ledger"][1]["sampling"]
        value = chosen[key]
        chosen[key] = [factor * v for v in value] if isinstance(value, list) else factor * value

    return change


def lower_noise(plain):
    entry = plain["ledger"][2]
    entry["sigma"] = encode_array(0.9 * decode_array(entry["sigma"]))


def remove_steps(plain):
    from corrdp.nn.account import encode_single

    entry = plain["ledger"][2]
    entry["sigma"] = encode_array(decode_array(entry["sigma"])[:-2])
    entry["iterates"] = encode_single(decode_single(entry["iterates"])[:-2])


def remove_steps_everywhere(plain):
    remove_steps(plain)
    plain["ledger"][1]["plan"]["steps"] -= 2


def no_sampling(plain):
    plain["ledger"][1]["sampling"] = None


def forgotten_sampling(plain):
    del plain["ledger"][1]["sampling"]


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
    "forgotten sampling": forgotten_sampling,
}
# without the coins a lower rate is another claim, not a contradiction
ANOTHER_CLAIM = ("rate down",)
DAMAGED = ("removed steps", "forgotten sampling")


@pytest.mark.parametrize("name", EDITS)
def test_edits_are_noticed(original, name):
    assert corrdp.verify(original).holds
    altered = copy.deepcopy(original)
    EDITS[name](altered)
    assert not corrdp.verify(altered).holds
    assert not corrdp.verify(rechained(original, EDITS[name])).holds


@pytest.mark.parametrize("name", [n for n in EDITS if n not in (*ANOTHER_CLAIM, *DAMAGED)])
def test_recomputed_claims_do_not_help(original, name):
    claimed = certify(Ledger.from_list(rechained(original, EDITS[name])["ledger"]))
    assert not claimed.holds and claimed.problems


def test_a_lower_rate_is_another_claim(original):
    claimed = certify(Ledger.from_list(rechained(original, EDITS["rate down"])["ledger"]))
    assert claimed.joint["sensitive"] < original["joint"]["sensitive"]


# --- mutations -----------------------------------------------------------------------------------


def test_changes_ten_per_cent_too_large_are_refused(monkeypatch):
    """As if the accountant had been told a change 10 % too small."""
    right = sampling.calibrate_changes
    monkeypatch.setattr(sampling, "calibrate_changes", lambda *given: 1.1 * right(*given))
    with pytest.raises(ConfigurationError, match="leaves no room"):
        fitted()
    monkeypatch.setattr("corrdp.nn.recipe._slack_problem", lambda task: "")
    certificate = fitted().certificate_
    assert not certificate.holds
    assert any("lose" in problem for problem in certificate.problems)


def test_noise_ten_per_cent_too_small_is_caught(monkeypatch):
    class Small(trainer._Allocator):
        def sigma(self, parameters):
            return 0.9 * super().sigma(parameters)

    monkeypatch.setattr(trainer, "_Allocator", Small)
    certificate = fitted().certificate_
    assert not certificate.holds
    assert any("exceed" in problem for problem in certificate.problems)
    assert not corrdp.verify(certificate.to_dict()).holds


def test_a_presence_unit_that_is_too_large_would_be_seen():
    """Trained weights: presence in units of B(θ) is least where B(θ) is largest."""
    query = build(hidden=(3,), output_weights="trained")
    sensitivity = table_of(query)
    slices = [block.path == "hidden" for block in query.network.blocks]
    least, whole = sensitivity.least_presence[slices], sensitivity.presence[slices]
    at_edge = sensitivity._signal_bound(query.network.output_radius)
    np.testing.assert_allclose(least, whole / at_edge, rtol=1e-9)
    assert (least <= whole / at_edge).all()


def test_budgets_of_other_kinds_do_not_verify(original):
    plain = copy.deepcopy(original)
    plain["ledger"][1]["sampling"]["change"].pop()
    altered = rechained(plain, lambda one: None)
    assert not corrdp.verify(altered).holds
    assert sampled_account.TOLERANCE <= 1e-9


# --- resumed runs, shared budgets, arguments -----------------------------------------------------


@pytest.mark.parametrize("calibration", ["published", "optimal"])
def test_a_resumed_run_is_the_run_and_is_certified_as_one(tmp_path, calibration):
    path = tmp_path / "state.json"
    options = {"steps": 16, "calibration": calibration, "distances": {"x": 1.0, "c": 1.0}}
    whole = fitted(**options)
    with pytest.raises(StopError):
        fitted(**options, checkpoint=path, progress=stop_at(11))
    resumed = fitted(**options, checkpoint=path)
    assert not path.exists()
    np.testing.assert_array_equal(resumed.theta_, whole.theta_)
    assert resumed.certificate_.claims() == whole.certificate_.claims()
    assert len(resumed.certificate_.ledger.of_type("network-release")) == 1
    with pytest.raises(StopError):
        fitted(**options, checkpoint=path, progress=stop_at(3))
    for change in ({"sample_rate": 0.3}, {"solver": "gradient", "sample_rate": None}):
        with pytest.raises(ConfigurationError, match="another run"):
            fitted(**{**options, **change}, checkpoint=path)


def test_sampled_runs_are_charged_by_basic_composition():
    with pytest.raises(ConfigurationError, match="Poisson-sampled runs need"):
        fitted(budget=PrivacyBudget(5.0, 1e-5))
    budget = PrivacyBudget(5.0, 1e-5, composition="basic")
    fitted(budget=budget)
    assert budget.spent == 1.0


def test_seeds():
    one, other = fitted(), fitted()
    np.testing.assert_array_equal(one.theta_, other.theta_)
    assert one.certificate_.seeded
    assert not np.array_equal(fitted(random_state=1).theta_, one.theta_)
    fresh = fitted(random_state=None)
    assert not fresh.certificate_.seeded
    assert fresh.certificate_.claims()["columns"] == one.certificate_.claims()["columns"]


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.5, math.nan, math.inf, "0.1", True])
def test_wrong_rates(rate):
    with pytest.raises(ConfigurationError, match="sample_rate"):
        fitted(sample_rate=rate)


def test_rate_needs_sampling():
    with pytest.raises(ConfigurationError, match="needs solver='sgd'"):
        fitted(solver="gradient")
    with pytest.raises(ConfigurationError, match="solver='adam' is unknown"):
        fitted(solver="adam", sample_rate=None)


def test_a_sampled_network_is_not_attacked_step_by_step():
    """The claim of a sampled step is not the full batch's."""
    with pytest.raises(ConfigurationError, match=r"corrdp\.audit\.audit"):
        attacks_on(fitted().certificate_)
