"""Attacks on sampled steps: below the claim, above it with half the noise (THEORY T7, T13)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from corrdp.allocation import allocate
from corrdp.audit import epsilon_lower_bound
from corrdp.distance import Distances
from corrdp.encoding import Encoder
from corrdp.erm.sampling import with_presence
from corrdp.nn.cells import inputs_of
from corrdp.nn.gradients import gradient_sum
from corrdp.nn.network import Network
from corrdp.nn.recipe import NetworkRecipe
from corrdp.nn.residual import ClippedResidual
from corrdp.nn.trainer import NetworkRun, single_precision, train_network
from corrdp.noise import noise_source, release
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.declaration import Declaration
from corrdp.records import Records
from corrdp.schema import Categorical, Label, Numeric, Schema

# S is the label alone, or U_i is: it moves every block by all that its bound allows
COLUMNS = {"x": Numeric(0, 1, role="insensitive")}
SENSITIVE = Schema(COLUMNS, Label("y", [0, 1], role="sensitive"))
INSENSITIVE = Schema(
    {**COLUMNS, "s": Categorical(["a", "b"])}, Label("y", [0, 1], role="insensitive")
)


def prepared(schema, epsilon, delta, q, steps):
    distances = {"x": 1.0} if schema is SENSITIVE else {"x": 1.0, "y": 0.9}
    target = PrivacyTarget(epsilon, delta)
    declaration = Declaration(schema, target, 1, Distances.given(distances), True)
    # a rate so small that parameters stay where bounds are attained: |r| = ½, σ' near 1
    recipe = NetworkRecipe(
        Network(Encoder(schema, 0.7), (4,), initial_scale=0.02),
        ClippedResidual(0.5),
        steps=steps,
        learning_rate=1e-3,
        solver="sgd",
        sample_rate=q,
    )
    return recipe.prepare(declaration)


def allowed_for(task, kind):
    return next(one.epsilon for one in task.budgets if one.kind.name == kind)


def alone(task, kind, side):
    """A table of the one record that the attacker asks about, and its label."""
    changes_label = kind != "x"
    columns = {"x": np.array([1.0 if changes_label else float(side)]), "s": np.array([0])}
    network = task.table.query.network
    columns = {name: columns[name] for name in network.encoder.schema.used}
    label = np.array([float(side) if changes_label else 0.0])
    return inputs_of(network.encoder, network, Records(columns, 1), label)


def noise_at(task, parameters):
    """σ per block that a step there adds."""
    chosen, table = task.setup.sampling, task.table
    rows = with_presence(table(parameters), table.presence)
    budget = np.append(chosen.change, chosen.presence**2)
    return allocate(rows, budget, table.query.network.dimensions).sigma


def trained(task, table, source, start, sigma=None):
    return train_network(
        *table,
        task.table,
        np.array(task.setup.sampling.change),
        task.setup.plan,
        source,
        math.inf,
        sampling=task.setup.sampling,
        fixed_noise=sigma,
        start=start,
    )


def log_ratio(sums, first, second, spread, q):
    """ln dP/dQ of sampled Gaussian sums, per step."""

    def log_density(centre):
        present = math.log(q) - 0.5 * (((sums - centre) / spread) ** 2).sum(axis=-1)
        absent = math.log1p(-q) - 0.5 * ((sums / spread) ** 2).sum(axis=-1)
        return np.logaddexp(present, absent)

    return log_density(first) - log_density(second)


def beginning(task):
    """Start, noise there, and what the record adds on either side."""
    network = task.table.query.network
    begin = single_precision(network.initial(noise_source(3)))
    return begin, noise_at(task, begin)


@pytest.mark.parametrize(
    ("schema", "kind"), [(SENSITIVE, "<sensitive>"), (INSENSITIVE, "x"), (INSENSITIVE, "y")]
)
def test_one_step(schema, kind):
    q, delta, runs = 0.6, 1e-2, 20_000
    task = prepared(schema, 3.0, delta, q, 1)
    begin, noise = beginning(task)
    query, network = task.table.query, task.table.query.network
    centres = [gradient_sum(query, begin, *alone(task, kind, side)) for side in (0, 1)]
    bounds = []
    for factor in (1.0, 0.5):
        spread, outputs = network.spread(factor * noise), []
        for side, centre in enumerate(centres):
            source = noise_source(100 * side + int(10 * factor))
            total = np.zeros((runs, network.dimension))
            total[source.child("sample").poisson_sample(runs, q)] = centre
            sums = release(total, spread, query.lattice.spacing, source.child("noise"))
            outputs.append(log_ratio(sums, *centres, spread, q))
        bounds.append(epsilon_lower_bound(*outputs, delta, 0.999))
    assert bounds[0] <= allowed_for(task, kind) < bounds[1]


@pytest.mark.parametrize(("schema", "kind"), [(SENSITIVE, "<sensitive>"), (INSENSITIVE, "y")])
def test_short_run(schema, kind):
    """Two steps of the training loop itself, on a table of one record."""
    q, delta, runs, steps = 0.8, 0.1, 400, 2
    task = prepared(schema, 1.0, delta, q, steps)
    begin, noise = beginning(task)
    start = NetworkRun(begin[None, :], np.empty((0, len(noise))))
    tables = [alone(task, kind, side) for side in (0, 1)]
    centres = [gradient_sum(task.table.query, begin, *table) for table in tables]
    bounds = []
    for factor in (1.0, 0.5):
        spread = task.table.query.network.spread(factor * noise)
        scores = np.empty((2, runs))
        for side, table in enumerate(tables):
            source = noise_source(20 * side + int(4 * factor))
            for i in range(runs):
                run = trained(task, table, source.child("run", i), start, factor * noise)
                sums = -np.diff(run.iterates, axis=0) / task.setup.plan.learning_rate * q
                scores[side, i] = log_ratio(sums, *centres, spread, q).sum()
        bounds.append(epsilon_lower_bound(*scores, delta, 0.95))
    assert bounds[0] <= allowed_for(task, kind) < bounds[1]
    # the loop allocates that noise itself where the parameters hardly move
    own = trained(task, tables[0], noise_source(1), start)
    np.testing.assert_allclose(own.sigma, np.tile(noise, (steps, 1)), rtol=0.02)
