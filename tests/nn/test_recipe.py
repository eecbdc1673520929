"""Clip and rates follow the noise that bounds, budgets and n lead to, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from corrdp import CorrDPMLPClassifier
from corrdp.distance import Distances
from corrdp.nn.estimators import CLIPS, HALF
from corrdp.nn.network import LATTICES
from corrdp.nn.recipe import ENOUGH_STEPS, NetworkRecipe
from corrdp.nn.residual import ClippedResidual
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.declaration import Declaration
from corrdp.schema import Categorical, Label, Numeric, Schema
from corrdp.verification import certify

N = 20_000
SCHEMA = Schema(
    {
        "age": Numeric(0, 100, role="insensitive"),
        "job": Categorical(["a", "b"], role="insensitive"),
        "sex": Categorical(["F", "M"]),
    },
    Label("y", [0, 1], role="insensitive"),
)
DISTANCES = {"age": 0.2, "job": 0.2, "y": 0.2}


def task_of(epsilon, schema=SCHEMA, solver="gradient", **options):
    model = CorrDPMLPClassifier(schema, epsilon=epsilon, solver=solver, **options)
    known = {} if schema is not SCHEMA else DISTANCES
    declaration = Declaration(schema, PrivacyTarget(epsilon, 1e-6), N, Distances.given(known), True)
    return model._recipe(schema).prepare(declaration)


@pytest.mark.parametrize("schema", [SCHEMA, SCHEMA.all_sensitive()], ids=["CorrDP", "DP"])
@pytest.mark.parametrize("solver", ["gradient", "sgd"])
def test_the_clip_opens_as_noise_falls(schema, solver):
    clips = [
        task_of(epsilon, schema, solver).setup.loss.residual_clip
        for epsilon in (0.005, 0.02, 0.05, 0.2, 1.0)
    ]
    assert clips == sorted(clips)
    assert clips[0] == (HALF if schema is not SCHEMA else CLIPS[-1])
    assert clips[-1] == CLIPS[0] == 1.0


def test_the_chosen_clip_is_the_largest_that_leaves_enough_steps():
    for epsilon in np.geomspace(0.01, 0.3, 8):
        chosen = task_of(epsilon).setup.loss.residual_clip
        for clip in CLIPS:
            steps = task_of(epsilon, residual_clip=clip).setup.plan.steps
            if clip > chosen:
                assert steps < ENOUGH_STEPS + 1
            elif clip == chosen and chosen > CLIPS[-1]:
                assert steps >= ENOUGH_STEPS


def test_a_clip_of_the_users_is_kept():
    assert task_of(1.0, residual_clip=0.6).setup.loss == ClippedResidual(0.6)


def test_steps_of_the_users_do_not_change_the_clip():
    assert task_of(1.0, steps=3).setup.loss == ClippedResidual(1.0)
    assert task_of(0.005, steps=3).setup.loss == ClippedResidual(CLIPS[-1])


def test_skip_weights_move_faster_where_noise_is_small():
    factors = [task_of(epsilon).setup.plan.skip_factor for epsilon in (0.005, 0.1, 0.2, 5.0)]
    assert factors == sorted(factors)
    assert factors[0] == 1.0
    assert factors[-1] == 3.0  # the default norm of the output weights


def test_the_factor_multiplies_the_rate_of_the_skip_alone():
    task = task_of(5.0)
    network, plan = task.table.query.network, task.setup.plan
    rates = plan.rates(network)
    skip = network.skip_layer(rates)
    assert skip.shape[0] == 3  # two levels of sex and the output's bias
    np.testing.assert_allclose(skip, 3.0 * plan.learning_rate)
    np.testing.assert_allclose(network.first_layer(rates), plan.learning_rate)
    np.testing.assert_allclose(replace(plan, skip_factor=1.0).rates(network), plan.learning_rate)


def test_without_privacy_nothing_is_clipped_and_a_model_is_calibrated_at_large_epsilon():
    rng = np.random.default_rng(0)
    X = {
        "age": rng.uniform(0, 100, N),
        "job": rng.choice(["a", "b"], N),
        "sex": rng.choice(["F", "M"], N),
    }
    y = (rng.random(N) < 0.07).astype(int)
    schema = SCHEMA.binned()  # few cells: fast
    model = CorrDPMLPClassifier(schema, epsilon=5.0, distances=DISTANCES, random_state=0)
    open_ = model.fit(X, y).predict_proba(X)[:, 1].mean()
    clipped = CorrDPMLPClassifier(
        schema, epsilon=5.0, distances=DISTANCES, residual_clip=0.7, random_state=0
    )
    biased = clipped.fit(X, y).predict_proba(X)[:, 1].mean()
    assert abs(open_ - y.mean()) < 0.003
    assert y.mean() - biased > 0.01


def private(epsilon):
    model = CorrDPMLPClassifier(
        SCHEMA.binned(), epsilon=epsilon, distances="private", steps=3, random_state=0
    )
    rng = np.random.default_rng(0)
    X = {
        "age": rng.uniform(0, 100, N),
        "job": rng.choice(["a", "b"], N),
        "sex": rng.choice(["F", "M"], N),
    }
    return model.fit(X, rng.integers(0, 2, N))


@pytest.mark.filterwarnings("ignore::corrdp.errors.UtilityWarning")
def test_a_released_distance_does_not_choose_the_clip(monkeypatch):
    """What joint rows are guaranteed depends on the clip: it must be fixed before (THEORY T4)."""
    seen = []
    suited = NetworkRecipe.suited

    def watched(recipe, declaration):
        chosen = suited(recipe, declaration)
        seen.append((declaration.estimate is not None, chosen.loss))
        return chosen

    monkeypatch.setattr(NetworkRecipe, "suited", watched)
    for epsilon in (0.03, 0.06, 0.1):
        seen.clear()
        private(epsilon)
        assert {after for after, _ in seen} == {False, True}
        assert len({loss for _, loss in seen}) == 1


def test_joint_rows_of_released_distances_hold_on_every_lattice(monkeypatch):
    model = private(1.0)
    ledger = model.certificate_.ledger
    printed = model.certificate_.joint
    for lattice in LATTICES:
        monkeypatch.setattr("corrdp.nn.account.LATTICES", (lattice,))
        alone = certify(ledger).joint
        for key in ("insensitive", "record"):
            assert alone[key] <= printed[key]
