"""A short run is attacked with full knowledge: never above its claim, but when noise is halved."""

from __future__ import annotations

import numpy as np
import pytest

from corrdp.audit import mu_lower_bound
from corrdp.distance import Distances
from corrdp.encoding import Encoder
from corrdp.nn.gradients import Inputs, gradient_sum
from corrdp.nn.network import Network
from corrdp.nn.recipe import NetworkRecipe
from corrdp.nn.residual import ClippedResidual
from corrdp.nn.trainer import train_network
from corrdp.noise import noise_source
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.declaration import Declaration
from corrdp.records import Records
from corrdp.schema import Categorical, Label, Numeric, Schema

STEPS, RUNS, RECORDS = 2, 400, 8
SCHEMA = Schema(
    {"x": Numeric(0, 1, role="insensitive"), "s": Categorical(["a", "b"])},
    Label("y", [0, 1], role="public"),
)


def prepared():
    declaration = Declaration(
        SCHEMA, PrivacyTarget(6.0, 1e-6), RECORDS, Distances.given({"x": 0.5}), True
    )
    shape = Network(Encoder(SCHEMA, 0.7), (4,))
    # a rate so small that parameters stay where bounds are attained: |r| = ½, σ' near 1
    recipe = NetworkRecipe(shape, ClippedResidual(0.5), steps=STEPS, learning_rate=1e-3)
    return recipe.prepare(declaration)


def encoded(task, column, value):
    columns = {"x": np.full(RECORDS, 0.5), "s": np.zeros(RECORDS, dtype=np.int64)}
    columns[column][0] = value
    network = task.table.query.network
    return Inputs.of(network.encoder.transform(Records(columns, RECORDS)), network)


def statistics(task, tables, on, noise_factor):
    """Log-likelihood ratio of what was released, for runs on ``tables[on]``."""
    query, plan = task.table.query, task.setup.plan
    network, label = query.network, np.zeros(RECORDS)
    budget = np.array([one.mu_squared for one in task.budgets]) / STEPS
    source = noise_source(10 + on)
    first = train_network(tables[0], label, task.table, budget, plan, noise_source(3), 1e12)
    start = type(first)(first.iterates[:1], first.sigma[:0])
    sums = [gradient_sum(query, first.iterates[0], table, label) for table in tables]
    gap, middle = sums[0] - sums[1], 0.5 * (sums[0] + sums[1])
    spread = network.spread(first.sigma[0])
    weight = np.where(spread > 0, gap / np.maximum(spread, 1e-300) ** 2, 0.0)
    fixed = first.sigma[0] * noise_factor
    results = np.empty(RUNS)
    for i in range(RUNS):
        run = train_network(
            tables[on],
            label,
            task.table,
            budget,
            plan,
            source.child("run", i),
            1e12,
            fixed_noise=fixed,
            start=start,
        )
        released = -np.diff(run.iterates, axis=0) * RECORDS / plan.learning_rate
        results[i] = float(((released - middle) @ weight).sum())
    return results, float(np.sqrt(STEPS * (gap @ weight)))


@pytest.mark.parametrize(
    ("kind", "column", "values"), [("<sensitive>", "s", (0, 1)), ("x", "x", (0.0, 1.0))]
)
def test_the_loss_is_what_was_claimed(kind, column, values):
    task = prepared()
    position = [budget.kind.name for budget in task.budgets].index(kind)
    claim = float(np.sqrt(task.budgets[position].mu_squared))
    tables = [encoded(task, column, value) for value in values]
    (one, reached), (other, _) = (statistics(task, tables, on, 1.0) for on in (0, 1))
    assert 0.5 * reached < mu_lower_bound(one, other) <= claim
    assert 0.75 * claim < reached <= claim
    (one, _), (other, _) = (statistics(task, tables, on, 0.5) for on in (0, 1))
    assert mu_lower_bound(one, other) > claim
