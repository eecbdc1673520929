"""Attacks on Poisson-sampled steps: below the claim, above it with half the noise (THEORY T13)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from corrdp.allocation import allocate
from corrdp.audit import epsilon_lower_bound
from corrdp.distance import Distances
from corrdp.erm.fit import LinearTask, PlanRequest, prepare
from corrdp.erm.losses import Logistic
from corrdp.erm.optimiser import train
from corrdp.erm.sampling import SampledBudgets, with_presence
from corrdp.noise import noise_source, release
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.declaration import Declaration
from corrdp.records import read_records
from corrdp.schema import Categorical, Label, Numeric, Schema

Floats = NDArray[np.float64]
SCHEMA = Schema(
    {"s": Categorical(["a", "b"]), "u": Numeric(0, 1, role="insensitive")},
    Label("y", [0, 1], role="insensitive"),
)
# S is the label alone: it moves every block by all its bound at θ = 0
LABEL_ONLY = Schema({"u": Numeric(0, 1, role="insensitive")}, Label("y", [0, 1]))


def task(
    schema: Schema, epsilon: float, delta: float, q: float, steps: int, distance: float = 0.1
) -> LinearTask:
    distances = {"u": 0.1} if schema is LABEL_ONLY else {"u": distance, "y": 0.9}
    target = PrivacyTarget(epsilon, delta)
    declaration = Declaration(schema, target, 1, Distances.given(distances), seeded=True)
    request = PlanRequest(steps, 1e-6, solver="sgd", sample_rate=q)
    return prepare(declaration, Logistic(), None, request)


def sampled(one: LinearTask) -> SampledBudgets:
    assert one.setup.sampling is not None
    return one.setup.sampling


def noise_at(one: LinearTask, theta: Floats) -> Floats:
    """σ per block that a step at θ would add."""
    table, chosen = one.setup.table(one.declaration), sampled(one)
    rows = with_presence(table(theta), table.presence)
    budget = np.append(chosen.change, chosen.presence**2)
    return allocate(rows, budget, one.encoder.dimensions).sigma


def contribution(one: LinearTask, record: dict[str, Any], y: int, theta: Floats) -> Floats:
    design = one.encoder.transform(read_records({k: [v] for k, v in record.items()}, _schema(one)))
    residual = Logistic().residual(design.scores(theta), np.array([float(y)]))
    return design.weighted_sum(one.setup.lattice.round_residual(residual))


def _schema(one: LinearTask) -> Schema:
    return one.declaration.schema


def log_ratio(sums: Floats, v: Floats, w: Floats, sigma: Floats, q: float) -> Floats:
    """ln dP/dQ of sampled Gaussian sums, shape of the leading axes."""

    def log_density(centre: Floats) -> Floats:
        present = math.log(q) - 0.5 * (((sums - centre) / sigma) ** 2).sum(axis=-1)
        absent = math.log1p(-q) - 0.5 * ((sums / sigma) ** 2).sum(axis=-1)
        return np.logaddexp(present, absent)

    return log_density(v) - log_density(w)


PAIRS: dict[str, tuple[tuple[dict[str, Any], int], tuple[dict[str, Any], int]]] = {
    "<sensitive>": (({"s": "a", "u": 1.0}, 0), ({"s": "b", "u": 1.0}, 0)),
    "u": (({"s": "a", "u": 1.0}, 0), ({"s": "a", "u": 0.0}, 0)),
    "y": (({"s": "a", "u": 1.0}, 0), ({"s": "a", "u": 1.0}, 1)),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_one_step(kind: str) -> None:
    q, delta, runs = 0.6, 1e-2, 20_000
    one = task(SCHEMA, 3.0, delta, q, 1, distance=0.8)
    allowed = next(b.epsilon for b in one.budgets if b.kind.name == kind)
    theta = np.zeros(one.encoder.dimension)
    theta[-1] = 8.0 / one.encoder.scale  # class 0 has its largest residual here
    v, w = (contribution(one, record, y, theta) for record, y in PAIRS[kind])
    sigma = one.encoder.spread(noise_at(one, theta))
    bounds = []
    for factor in (1.0, 0.5):
        outputs = []
        for side, centre in enumerate((v, w)):
            source = noise_source(100 * side + int(10 * factor))
            total = np.zeros((runs, len(v)))
            total[source.child("sample").poisson_sample(runs, q)] = centre
            spacing = one.setup.lattice.spacing
            sums = release(total, factor * sigma, spacing, source.child("noise"))
            outputs.append(log_ratio(sums, v, w, factor * sigma, q))
        bounds.append(epsilon_lower_bound(outputs[0], outputs[1], delta, 0.999))
    assert bounds[0] <= allowed
    assert bounds[1] > allowed


@pytest.mark.parametrize(("schema", "kind"), [(LABEL_ONLY, "<sensitive>"), (SCHEMA, "y")])
def test_short_run(schema: Schema, kind: str) -> None:
    """Two steps of the training loop itself, on a table of one record."""
    q, delta, runs, steps = 0.8, 0.1, 700, 2
    one = task(schema, 1.0, delta, q, steps)
    allowed = next(b.epsilon for b in one.budgets if b.kind.name == kind)
    zero = np.zeros(one.encoder.dimension)
    noise = noise_at(one, zero)
    sides = [(record, y) for record, y in PAIRS["y"]]
    if schema is LABEL_ONLY:
        sides = [({"u": record["u"]}, y) for record, y in sides]
    v, w = (contribution(one, record, y, zero) for record, y in sides)
    table, plan = one.setup.table(one.declaration), one.plan
    bounds = []
    for factor in (1.0, 0.5):
        outputs = []
        for side, (record, y) in enumerate(sides):
            design = one.encoder.transform(
                read_records({k: [value] for k, value in record.items()}, schema)
            )
            scores = np.empty(runs)
            for run in range(runs):
                released = train(
                    design,
                    np.array([float(y)]),
                    table,
                    np.array(sampled(one).change),
                    plan,
                    one.setup.lattice,
                    noise_source(10_000 * side + run),
                    math.inf,
                    sampling=sampled(one),
                    fixed_noise=factor * noise,
                )
                sums = -np.diff(released.iterates, axis=0) / plan.learning_rate * q
                sums[1:] -= plan.momentum * sums[:-1].copy()
                spread = one.encoder.spread(factor * noise)
                scores[run] = log_ratio(sums, v, w, spread, q).sum()
            outputs.append(scores)
        bounds.append(epsilon_lower_bound(outputs[0], outputs[1], delta, 0.95))
    assert bounds[0] <= allowed
    assert bounds[1] > allowed
    # the loop allocates that noise itself where θ hardly moves
    budget = np.array(sampled(one).change)
    arguments = (table, budget, plan, one.setup.lattice, noise_source(1), one.setup.max_scale)
    own = train(design, np.array([0.0]), *arguments, sampling=sampled(one))
    assert np.allclose(own.sigma, noise, rtol=0.02)
