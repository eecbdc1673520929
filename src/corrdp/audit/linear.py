"""Attacks on linear models: one step at a chosen point, and a short run (THEORY T13)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.allocation import allocate
from corrdp.audit.pairs import Columns, label_values, random_rows, worst_pair
from corrdp.audit.run import Attack, Claim
from corrdp.audit.steps import StepDraw
from corrdp.encoding import Design
from corrdp.erm.account import read_setup
from corrdp.erm.fit import LinearTask, PlanRequest, prepare
from corrdp.erm.optimiser import Run, train
from corrdp.erm.plan import single_step_noise
from corrdp.errors import ConfigurationError
from corrdp.noise import NoiseSource, noise_source
from corrdp.privacy import gdp
from corrdp.privacy.certificate import Certificate
from corrdp.privacy.estimate import declaration_of
from corrdp.privacy.guarantee import guaranteed_mu
from corrdp.records import read_records

__all__ = ["RecordGuess", "linear_attacks", "linear_task", "run_attack", "step_attack"]

FloatArray: TypeAlias = NDArray[np.float64]
MOST_RECORDS = 5_000
STEP_EFFORT = 50


def linear_task(certificate: Certificate, steps: int = 3) -> LinearTask:
    """The mechanism of a certificate's first training run, shortened to a few steps.

    Everything the guarantee rests on is kept: schema, roles, distances, loss, budgets. The number
    of records is chosen so that the noise does not drown the path, which changes no claim.

    Raises
    ------
    ConfigurationError
        If the certificate has no full-batch run of a linear model.
    """
    entries = certificate.ledger.of_type("linear-budget")
    if not entries:
        raise ConfigurationError(
            "the certificate holds no run of a linear model; audit other mechanisms with "
            "corrdp.audit.audit(fit, pairs, claims)"
        )
    declaration, setup = declaration_of(certificate.ledger), read_setup(entries[0])
    if setup.sampling is not None or setup.calibration != "optimal":
        raise ConfigurationError(
            "only full-batch runs with optimal calibration can be audited step by step; audit "
            "this one with corrdp.audit.audit(fit, pairs, claims)"
        )

    def prepared(n: int) -> LinearTask:
        small = replace(declaration, n=n)
        radius, scale = setup.plan.radius, setup.table(small).encoder.scale
        # one step of a crowd of one class takes the intercept to the saturated point
        rate = 2.0 * min(8.0 / scale, 0.5 * radius) / (scale * setup.loss.residual_bound)
        request = PlanRequest(steps, rate, radius, 0.0, setup.scale)
        task = prepare(small, setup.loss, setup.class_weights, request, setup.lattice)
        plain = replace(task.plan, momentum=0.0)
        return replace(task, setup=replace(task.setup, plan=plain))

    return prepared(_enough_records(prepared(1000)))


def _enough_records(task: LinearTask) -> int:
    """n for which a step's noise moves the mean gradient by 3 % of its bound."""
    table = task.setup.table(task.declaration)
    budget = np.array([one.mu_squared for one in task.budgets]) / task.plan.steps
    noise = single_step_noise(table, budget, task.plan.radius, 1)
    largest = table.residual_bound * table.encoder.norm_bound
    return int(min(MOST_RECORDS, max(200, math.ceil(noise / (0.03 * largest)))))


def linear_attacks(task: LinearTask) -> list[Attack]:
    """One step at two points and one short run, for every kind with a finite guarantee."""
    attacks = []
    guaranteed = _guaranteed(task)
    for position in range(len(task.declaration.kinds)):
        if math.isfinite(task.budgets[position].mu_squared):
            attacks.append(step_attack(task, position, np.zeros(task.encoder.dimension), "step 1"))
            attacks.append(step_attack(task, position, saturated(task), "later step"))
        if math.isfinite(guaranteed[position]):
            attacks.append(run_attack(task, position))
    # where nothing moves (a clipped residual far out) there is nothing to tell apart
    return [attack for attack in attacks if attack.reach]


def saturated(task: LinearTask) -> FloatArray:
    """A point with a large intercept alone: records of the other class have the largest residual.

    There the residual does not move with the columns, so that a changed column moves the gradient
    by as much as the bound allows.
    """
    theta = np.zeros(task.encoder.dimension)
    theta[-1] = min(8.0 / task.encoder.scale, 0.5 * task.plan.radius)
    return theta


def _guaranteed(task: LinearTask) -> FloatArray:
    table = task.setup.table(task.declaration)
    budget = [one.mu_squared for one in task.budgets]
    kinds = task.declaration.kinds
    return guaranteed_mu(kinds, budget, table.infimum, table.supremum(task.plan.radius))


def _claim(task: LinearTask, mu: float) -> Claim:
    delta = task.declaration.target.delta
    return Claim(float(gdp.epsilon(mu, delta)), delta, mu)


# --- what a record contributes ---------------------------------------------------------------
# computed from encoder and loss alone, never from the sensitivity table that is being audited


def dense_rows(task: LinearTask, columns: Columns) -> FloatArray:
    """Encoded records φ, shape (records, m)."""
    encoder = task.encoder
    design = encoder.transform(read_records(columns, encoder.schema))
    features = np.empty((design.size, encoder.dimension))
    features[:, encoder.numeric_index] = design.numeric
    features[:, encoder.one_hot_index] = design.one_hot.toarray()
    features[:, -1] = encoder.scale
    return features


def contributions(
    task: LinearTask, features: FloatArray, label: FloatArray, theta: FloatArray
) -> FloatArray:
    """r̃·φ of every record at θ as the mechanism rounds it, shape (records, m)."""
    setup = task.setup
    residual = setup.loss.residual(features @ theta, label)
    if setup.class_weights is not None:
        residual = residual * np.asarray(setup.class_weights)[label.astype(np.int64)]
    return setup.lattice.round_residual(residual)[:, None] * features


@dataclass(frozen=True)
class _Embedding:
    """Contributions along a path of points θ_t with noise σ_t, in units of the noise."""

    task: LinearTask
    theta: FloatArray
    sigma: FloatArray

    def __call__(self, columns: Columns, label: FloatArray) -> FloatArray:
        features = dense_rows(self.task, columns)
        parts = []
        for theta, sigma in zip(self.theta, self.sigma, strict=True):
            noise = self.task.encoder.spread(sigma)
            own = contributions(self.task, features, label, theta)
            # a block without noise is one that no limited kind moves
            parts.append(np.divide(own, noise, out=np.zeros_like(own), where=noise > 0))
        return np.hstack(parts)


# --- one step ------------------------------------------------------------------------------------


def step_attack(task: LinearTask, kind: int, theta: FloatArray, name: str) -> Attack:
    """One noisy gradient at θ; kind is the position among the declaration's kinds."""
    budget = np.array([one.mu_squared for one in task.budgets]) / task.plan.steps
    table = task.setup.table(task.declaration)
    sigma = allocate(table(theta), budget, task.encoder.dimensions).sigma
    embed = _Embedding(task, theta[None, :], sigma[None, :])
    pair = worst_pair(task.declaration.schema, task.declaration.kinds[kind], embed)
    claim = _claim(task, math.sqrt(budget[kind]))
    sums = contributions(task, dense_rows(task, pair.columns), pair.label, theta)
    draw = StepDraw(sums, task.encoder.spread(sigma), task.setup.lattice.spacing)
    reach = float(pair.mu_squared / budget[kind])
    return Attack(name, pair.kind.name, claim, draw, reach, effort=STEP_EFFORT)


# --- a short run ---------------------------------------------------------------------------------


def run_attack(task: LinearTask, kind: int) -> Attack:
    """The whole run, released iterates and all, against its guarantee for one kind."""
    guaranteed = float(_guaranteed(task)[kind])
    found = []
    for attempt, one in enumerate((task, _hardly_moving(task))):
        crowd, label = _crowd(one, attempt)
        embed = _path(one, crowd, label)
        pair = worst_pair(one.declaration.schema, one.declaration.kinds[kind], embed, seed=attempt)
        found.append((pair.mu_squared, one, pair, crowd, label))
    best, one, pair, crowd, label = max(found, key=lambda entry: entry[0])
    guess = RecordGuess.among(one, pair.columns, pair.label, crowd, label)
    reach = best / guaranteed**2
    return Attack("short run", pair.kind.name, _claim(task, guaranteed), _Run(guess), reach)


def _hardly_moving(task: LinearTask) -> LinearTask:
    """The same mechanism with a tiny learning rate: at zero a label change uses all it may."""
    slow = replace(task.plan, learning_rate=1e-3 * task.plan.learning_rate)
    return replace(task, setup=replace(task.setup, plan=slow))


def trained(task: LinearTask, design: Design, label: FloatArray, noise: NoiseSource) -> Run:
    """The training loop itself, with the task's budgets."""
    budget = np.array([one.mu_squared for one in task.budgets]) / task.plan.steps
    table = task.setup.table(task.declaration)
    setup = task.setup
    return train(design, label, table, budget, setup.plan, setup.lattice, noise, setup.max_scale)


@dataclass(frozen=True)
class RecordGuess:
    """Which of several records was in the table? The attacker knows all the others.

    Called as ``guess(truth, seed)``: trains on the table that holds record number ``truth`` and
    returns the log likelihood of every candidate given all released iterates, up to a constant.

    Attributes
    ----------
    task : LinearTask
    features : array of shape (candidates, m)
    label : array of shape (candidates,)
        Encoded.
    tables : tuple of (Design, array)
        The whole table with either candidate in it.
    """

    task: LinearTask
    features: FloatArray
    label: FloatArray
    tables: tuple[tuple[Design, FloatArray], ...]

    @classmethod
    def among(
        cls,
        task: LinearTask,
        candidates: Columns,
        label: FloatArray,
        others: Columns,
        other_label: FloatArray,
    ) -> RecordGuess:
        """From raw columns: candidates of shape (k,), others of shape (n − 1,), encoded labels."""
        tables = tuple(
            _encoded(
                task,
                {n: np.concatenate([candidates[n][i : i + 1], others[n]]) for n in others},
                np.concatenate([label[i : i + 1], other_label]),
            )
            for i in range(len(label))
        )
        return cls(task, dense_rows(task, candidates), label, tables)

    def __call__(self, truth: int, seed: int | None) -> FloatArray:
        run = trained(self.task, *self.tables[truth], noise_source(seed))
        return self.evidence(run)[0]

    def evidence(self, run: Run) -> tuple[FloatArray, float]:
        """Log likelihood of every candidate, and how little the noise changed between steps."""
        likelihood = np.zeros(len(self.label))
        previous, repeat = None, 0.0
        for step, noisy in enumerate(_released_sums(self.task, run)):
            if noisy is None:
                continue
            spread = self.task.encoder.spread(run.sigma[step])
            own = contributions(self.task, self.features, self.label, run.iterates[step])
            known = exact_sum(self.task, *self.tables[0], run.iterates[step]) - own[0]
            left = (noisy - known) - own
            residue = np.divide(left, spread, out=np.zeros_like(left), where=spread > 0)
            likelihood -= 0.5 * np.sum(residue**2, axis=1)
            if previous is not None:
                repeat += float(np.sum((residue[0] - previous) ** 2))
            previous = residue[0]
        return likelihood, repeat


@dataclass(frozen=True)
class _Run:
    """Statistics of a whole run: log likelihood ratio, and how much the noise repeats itself."""

    guess: RecordGuess

    def __call__(self, side: int, count: int, seed: int | None) -> FloatArray:
        out = np.empty((count, 2))
        for i in range(count):
            source = noise_source(None if seed is None else seed + i)
            run = trained(self.guess.task, *self.guess.tables[side], source)
            likelihood, repeat = self.guess.evidence(run)
            out[i] = likelihood[1] - likelihood[0], repeat
        return out


def exact_sum(task: LinearTask, design: Design, label: FloatArray, theta: FloatArray) -> FloatArray:
    """Σ r̃φ at θ as the mechanism computes it before it adds noise."""
    setup = task.setup
    residual = setup.loss.residual(design.scores(theta), label)
    if setup.class_weights is not None:
        residual = residual * np.asarray(setup.class_weights)[label.astype(np.int64)]
    return design.weighted_sum(setup.lattice.round_residual(residual))


def _released_sums(task: LinearTask, run: Run) -> list[FloatArray | None]:
    """The noisy sum of every step, from the iterates; None where the projection hid its length."""
    plan, n = task.plan, task.declaration.n
    sums: list[FloatArray | None] = []
    before: FloatArray | None = np.zeros(task.encoder.dimension)
    for theta, after in zip(run.iterates[:-1], run.iterates[1:], strict=True):
        velocity = (theta - after) / plan.learning_rate
        if np.linalg.norm(after) >= plan.radius * (1.0 - 1e-9):
            velocity = None
        if velocity is None or before is None:
            sums.append(None)
        else:
            penalty = plan.alpha * theta
            penalty[-1] = 0.0
            sums.append((velocity - plan.momentum * before - penalty) * n)
        # what follows a hidden step cannot be recovered either while there is momentum
        before = velocity if plan.momentum else np.zeros(task.encoder.dimension)
    return sums


def _crowd(task: LinearTask, attempt: int) -> tuple[Columns, FloatArray]:
    """Records of one class in all colours: they drive the intercept and little else."""
    schema = task.declaration.schema
    labels = label_values(schema)
    columns, label = random_rows(schema, task.declaration.n - 1, noise_source(attempt))
    return columns, np.full_like(label, labels[attempt % 2])


def _encoded(task: LinearTask, columns: Columns, label: FloatArray) -> tuple[Design, FloatArray]:
    return task.encoder.transform(read_records(columns, task.encoder.schema)), label


def _path(task: LinearTask, columns: Columns, label: FloatArray) -> _Embedding:
    """One run on a table, for the search only."""
    run = trained(task, *_encoded(task, columns, label), noise_source(0))
    return _Embedding(task, run.iterates[:-1], run.sigma)
