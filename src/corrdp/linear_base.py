"""What the linear estimators share: reading, planning, training, certificate, files."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from corrdp.distance import EstimateSettings, estimate_distances
from corrdp.encoding import Design, Encoder
from corrdp.erm.exact import minimise
from corrdp.erm.fit import (
    LinearTask,
    PlanRequest,
    Recipe,
    Solver,
    TrainingData,
    default_scale,
    fit_linear,
)
from corrdp.erm.losses import Loss
from corrdp.erm.published import Calibration
from corrdp.errors import ConfigurationError, UtilityWarning
from corrdp.neighbours import Adjacency
from corrdp.noise import NoiseSource, noise_source
from corrdp.parameters import (
    DistanceChoice,
    RandomState,
    check_alpha,
    check_delta,
    check_epsilon,
    check_run,
    distance_request,
)
from corrdp.privacy.budget import PrivacyBudget
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.certificate import Certificate
from corrdp.privacy.declaration import Declaration
from corrdp.records import Records, read_label, read_records
from corrdp.schema import Schema
from corrdp.verification import certify

__all__ = ["LinearModel", "RidgeSolver", "warn_if_drowned"]

FloatArray: TypeAlias = NDArray[np.float64]
RidgeSolver: TypeAlias = Literal["auto", "gradient", "sgd", "moments"]


class LinearModel(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: reading, planning, training, certificate, files."""

    certificate_: Certificate | None

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        distances: DistanceChoice = "private",
        adjacency: Adjacency = "feature",
        epsilon_cap: float | None = None,
        record_epsilon: float | None = None,
        insensitive_epsilon: float | None = None,
        records_per_person: int = 1,
        alpha: float = 0.0,
        steps: int | None = None,
        learning_rate: float | None = None,
        radius: float | None = None,
        scale: float | None = None,
        solver: RidgeSolver = "gradient",
        sample_rate: float | None = None,
        calibration: Calibration = "optimal",
        budget: PrivacyBudget | None = None,
        progress: Callable[[int, int], None] | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.distances = distances
        self.adjacency = adjacency
        self.epsilon_cap = epsilon_cap
        self.record_epsilon = record_epsilon
        self.insensitive_epsilon = insensitive_epsilon
        self.records_per_person = records_per_person
        self.alpha = alpha
        self.steps = steps
        self.learning_rate = learning_rate
        self.radius = radius
        self.scale = scale
        self.solver = solver
        self.sample_rate = sample_rate
        self.calibration = calibration
        self.budget = budget
        self.progress = progress
        self.random_state = random_state

    def _check_schema(self, schema: Schema | None) -> None:
        """The label of the schema must be of the estimator's kind."""
        raise NotImplementedError

    def _loss(self, schema: Schema | None) -> Loss:
        raise NotImplementedError

    def _class_weights(self, schema: Schema) -> tuple[float, ...] | None:
        return None

    def _fit_table(self, X: Any, y: Any) -> FloatArray:
        """Fit on a table with a schema; returns θ in the encoded space."""
        epsilon = check_epsilon(self.epsilon)
        schema = self.schema
        if not isinstance(schema, Schema):
            raise ConfigurationError(
                f"schema={type(schema).__name__}: pass a corrdp.Schema, for example Schema("
                '{"age": Numeric(17, 90, role="insensitive"), ...}, Label("income", ["no", "yes"]))'
            )
        self._check_schema(schema)
        check_run(epsilon, self.budget, self.progress)
        check_alpha(self.alpha)
        source = noise_source(self.random_state)
        records = read_records(X, schema)
        raw = read_label(y, schema.label, records.size)
        data = TrainingData(records, raw, self._scaled_label(raw, schema))
        if math.isinf(epsilon):
            return self._fit_exact(records, data.scaled, schema)
        return self._fit_private(data, (X, y), schema, source)

    def _target(self) -> PrivacyTarget:
        return PrivacyTarget(
            float(self.epsilon),
            self.delta,
            self.adjacency,
            self.epsilon_cap,
            self.record_epsilon,
            self.insensitive_epsilon,
            self.records_per_person,
        )

    def _recipe(self, schema: Schema) -> Recipe:
        request = PlanRequest(
            self.steps,
            self.learning_rate,
            self.radius,
            self.alpha,
            self.scale,
            self._step_solver(),
            self.sample_rate,
            self.calibration,
        )
        return Recipe(self._loss(schema), self._class_weights(schema), request)

    def _step_solver(self) -> Solver:
        """The solver, if it takes steps; the plan refuses any other."""
        return cast(Solver, self.solver)

    def _task(self, n: int, seeded: bool) -> LinearTask:
        """Everything fixed from public numbers; nothing is read from data."""
        schema = self.schema
        if not isinstance(schema, Schema):
            raise ConfigurationError("a plan needs a schema")
        asked = distance_request(self.distances)
        declaration = Declaration(schema, self._target(), n, asked.known, seeded)
        return self._recipe(schema).prepare(declaration)

    def _fit_private(
        self, data: TrainingData, table: tuple[Any, Any], schema: Schema, source: NoiseSource
    ) -> FloatArray:
        size = data.records.size
        check_delta(self.delta, size)
        asked = distance_request(self.distances)
        known = asked.known
        if asked.publish:
            known = estimate_distances(
                schema,
                *table,
                source="published",
                method="published",
                resolution="assume-smooth",
            )
        if asked.estimate is not None and asked.estimate.resolution == "binned":
            schema = schema.binned()
        declaration = Declaration(schema, self._target(), size, known, source.seeded)
        return self._train(declaration, data, source, asked.estimate)

    def _train(
        self,
        declaration: Declaration,
        data: TrainingData,
        source: NoiseSource,
        estimate: EstimateSettings | None,
    ) -> FloatArray:
        """Release what the model is made of; sets certificate, encoder and number of steps."""
        recipe = self._recipe(declaration.schema)
        warn_if_drowned(recipe.prepare(declaration))
        theta, task, ledger = fit_linear(
            declaration,
            recipe,
            data,
            source,
            estimate=estimate,
            budget=self.budget,
            progress=self.progress,
        )
        self.certificate_ = certify(ledger)
        self.encoder_ = task.encoder
        self.n_iter_ = task.plan.steps
        return theta

    def _fit_exact(self, records: Records, label: FloatArray, schema: Schema) -> FloatArray:
        weights = self._class_weights(schema)
        scale = default_scale(len(schema.used)) if self.scale is None else self.scale
        self.encoder_ = Encoder(schema, scale)
        self.certificate_ = None
        design = self.encoder_.transform(records)
        per_record = np.ones(design.size)
        if weights is not None:
            per_record = np.asarray(weights)[label.astype(np.int64)]
        return self._exact(design, label, per_record)

    def _exact(self, design: Design, label: FloatArray, weights: FloatArray) -> FloatArray:
        theta, self.n_iter_ = minimise(
            design.scores,
            design.weighted_sum,
            label,
            weights,
            self._loss(None),
            self.alpha,
            design.encoder.dimension,
        )
        return theta

    def _scaled_label(self, label: NDArray[Any], schema: Schema) -> FloatArray:
        return label.astype(np.float64)

    def _set_encoded(self, theta: FloatArray) -> None:
        """Attributes that a fit on a schema leaves."""
        encoder = self.encoder_
        self.theta_ = theta
        self.coef_ = self._shaped(theta[:-1])
        self.intercept_ = self._shaped_intercept(float(theta[-1] * encoder.scale))
        self.feature_names_in_ = np.array(list(encoder.schema.used), dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self.feature_names_out_ = np.array(encoder.feature_names_out()[:-1], dtype=object)

    def _restore(
        self, theta: FloatArray, scale: float, feature_bits: int | None, steps: int
    ) -> None:
        """Attributes of a model that was read from a file."""
        if not isinstance(self.schema, Schema):
            raise ConfigurationError("a saved model has a schema")
        self.encoder_ = Encoder(self.schema, scale, feature_bits)
        self.n_iter_ = steps
        self._set_encoded(theta)

    def _shaped(self, weights: FloatArray) -> FloatArray:
        return weights

    def _shaped_intercept(self, value: float) -> Any:
        return value

    def _scores(self, X: Any) -> FloatArray:
        """θᵀφ of new records."""
        check_is_fitted(self)
        if self.schema is None:
            array = validate_data(self, X, reset=False, dtype=np.float64)
            score: FloatArray = array @ np.ravel(self.coef_) + np.ravel(self.intercept_)[0]
            return score
        return self.encoder_.transform(read_records(X, self.encoder_.schema)).scores(self.theta_)

    def save(self, path: str | Path) -> None:
        """Write the fitted model with its certificate as one JSON file, atomically.

        Raises
        ------
        ConfigurationError
            If the model has no schema.
        """
        from corrdp.model_file import save_model

        save_model(self, Path(path))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")


def warn_if_drowned(task: LinearTask) -> None:
    """Warn when the noise of one step exceeds any possible mean gradient."""
    import warnings

    from corrdp.erm.plan import single_step_noise

    table = task.setup.table(task.declaration)
    budget = np.array([one.mu_squared for one in task.budgets])
    noise = single_step_noise(table, budget, task.plan.radius, task.declaration.n)
    largest = table.residual_bound * table.encoder.norm_bound
    if noise > largest:
        needed = math.ceil(task.declaration.n * noise / largest)
        warnings.warn(
            f"n={task.declaration.n} is too small for this epsilon: the noise exceeds any possible "
            f"gradient by a factor {noise / largest:.1f}; about {needed} records are needed",
            UtilityWarning,
            stacklevel=2,
        )
