"""Linear and logistic regression with correlation-aware privacy, as scikit-learn estimators.

Objective: mean loss + (alpha/2)‖θ‖² in the encoded space (see :class:`corrdp.encoding.Encoder`),
intercept not penalised. With ``epsilon=inf`` the exact minimiser is found; that is the only case
in which ``schema=None`` is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from corrdp.distance import Distances, EstimateSettings, estimate_distances
from corrdp.encoding import Design, Encoder
from corrdp.erm.exact import least_squares, minimise
from corrdp.erm.fit import (
    LinearTask,
    PlanRequest,
    Recipe,
    Solver,
    TrainingData,
    default_scale,
    fit_linear,
)
from corrdp.erm.losses import Logistic, Loss, Squared
from corrdp.erm.published import Calibration
from corrdp.errors import ConfigurationError, DataError, UtilityWarning
from corrdp.neighbours import Adjacency
from corrdp.noise import NoiseSource, noise_source
from corrdp.parameters import check_alpha, check_delta, check_run
from corrdp.privacy.budget import PrivacyBudget
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.certificate import Certificate
from corrdp.privacy.declaration import Declaration
from corrdp.queries.regression import fit_moments, ledger_errors, prefer_moments
from corrdp.records import Records, read_label, read_records
from corrdp.schema import Schema, canonical_level
from corrdp.verification import certify

__all__ = ["CorrDPLogisticRegression", "CorrDPRidge"]

FloatArray: TypeAlias = NDArray[np.float64]
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None
RidgeSolver: TypeAlias = Literal["auto", "gradient", "sgd", "moments"]
DistanceChoice: TypeAlias = (
    Literal["private", "published"] | EstimateSettings | Distances | Mapping[str, float] | None
)


@dataclass(frozen=True)
class DistanceRequest:
    """What ``distances=`` asks for.

    Attributes
    ----------
    known : Distances
        Distances known before the fit.
    estimate : EstimateSettings, optional
        Set when the fit is to release them first.
    publish : bool
        Whether to compute them from the table itself, unaccounted.
    """

    known: Distances
    estimate: EstimateSettings | None = None
    publish: bool = False


def distance_request(distances: object) -> DistanceRequest:
    """Read ``distances=``; see :class:`CorrDPLogisticRegression`."""
    if distances is None:
        return DistanceRequest(Distances({}))
    if isinstance(distances, EstimateSettings):
        return DistanceRequest(Distances({}), distances)
    if isinstance(distances, str) and distances == "private":
        return DistanceRequest(Distances({}), EstimateSettings())
    if isinstance(distances, str) and distances == "published":
        return DistanceRequest(Distances({}), publish=True)
    if isinstance(distances, Distances):
        return DistanceRequest(distances)
    if isinstance(distances, Mapping):
        return DistanceRequest(Distances.given(distances))
    raise ConfigurationError(
        f"distances={distances!r} is not understood; pass 'private', 'published', an "
        "EstimateSettings, a mapping from column to d, a Distances object, or None for d = 1"
    )


def check_epsilon(epsilon: object) -> float:
    """A positive number, possibly ``inf``."""
    number = isinstance(epsilon, (int, float, np.floating, np.integer))
    if isinstance(epsilon, bool) or not number or not epsilon > 0:  # type: ignore[operator]
        raise ConfigurationError(f"epsilon={epsilon!r} must be positive (inf: no privacy)")
    return float(epsilon)  # type: ignore[arg-type]


class _LinearModel(BaseEstimator):  # type: ignore[misc]
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


class CorrDPLogisticRegression(ClassifierMixin, _LinearModel):  # type: ignore[misc]
    """Binary logistic regression under CorrDP (THEORY T3–T6), full-batch noisy gradient descent.

    Parameters
    ----------
    schema : Schema
        Columns, bounds, levels, roles. None only with ``epsilon=inf``.
    epsilon : float
        Loss allowed for the sensitive columns; column i may lose ε/d_i. ``inf``: no privacy.
    delta : float
        In (0, 1/n].
    distances : {"private", "published"}, EstimateSettings, Distances, mapping or None
        d_i by column or group name; a column without one gets d = 1. ``"private"`` (default)
        releases noisy tables first and trains on what is left (THEORY T10); it lets the model see
        numeric columns only at their bins' resolution unless
        ``EstimateSettings(resolution="assume-smooth")`` is passed. ``"published"`` computes them
        from this table without accounting for it, and the certificate says so.
    adjacency : {"feature", "record"}
        One insensitive column at a time, or any set of them at once.
    epsilon_cap, record_epsilon, insensitive_epsilon : float, optional
        Upper limits: per column, for the whole record (ordinary DP), for all insensitive columns.
    records_per_person : int
        Rows that one person may own.
    class_weight : mapping from class to positive number, optional
        Public weights; they enter the sensitivity.
    alpha : float
        Penalty (alpha/2)‖θ‖², intercept left out.
    steps, learning_rate, radius, scale : optional
        Overrides of the data-free defaults: number of noisy steps, step size, radius of the ball
        that iterates are projected on, scale of the encoded features.
    solver : {"gradient", "sgd"}
        Full batches, or Poisson-sampled ones (THEORY T7).
    sample_rate : float, optional
        Probability that a record joins a step, only with ``solver="sgd"``.
    calibration : {"optimal", "published"}
        Least noise that meets every target, or fixed noise by distance (THEORY T8); the
        certificate states what that certifies, and does not hold where a target is missed.
    budget : PrivacyBudget, optional
        Charged before anything is drawn.
    progress : callable, optional
        Called as ``progress(step, steps)``; never sees data.
    random_state : int, optional
        Seeded noise can be subtracted: for tests only; the certificate says so.

    Attributes
    ----------
    classes_ : array of shape (2,)
        In the order of the schema's label levels; the second is the positive class.
    coef_ : array of shape (1, m), intercept_ : array of shape (1,)
        In the encoded space named by ``feature_names_out_``.
    certificate_ : Certificate or None
        What is guaranteed; None with ``epsilon=inf``.

    Examples
    --------
    >>> import numpy as np
    >>> from corrdp.schema import Schema, Numeric, Categorical, Label
    >>> schema = Schema(
    ...     {"x": Numeric(0, 1, role="insensitive"), "s": Categorical(["a", "b"])},
    ...     Label("y", [0, 1], role="insensitive"),
    ... )
    >>> rng = np.random.default_rng(0)
    >>> X = {"x": rng.random(5000), "s": rng.choice(["a", "b"], 5000)}
    >>> y = (X["x"] + 0.1 * rng.normal(size=5000) > 0.5).astype(int)
    >>> model = CorrDPLogisticRegression(schema, epsilon=1.0, distances={"x": 0.1, "y": 0.1})
    >>> bool(model.fit(X, y).score(X, y) > 0.9)
    True
    """

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
        class_weight: Mapping[Any, float] | None = None,
        alpha: float = 0.0,
        steps: int | None = None,
        learning_rate: float | None = None,
        radius: float | None = None,
        scale: float | None = None,
        solver: Solver = "gradient",
        sample_rate: float | None = None,
        calibration: Calibration = "optimal",
        budget: PrivacyBudget | None = None,
        progress: Callable[[int, int], None] | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            schema,
            epsilon=epsilon,
            delta=delta,
            distances=distances,
            adjacency=adjacency,
            epsilon_cap=epsilon_cap,
            record_epsilon=record_epsilon,
            insensitive_epsilon=insensitive_epsilon,
            records_per_person=records_per_person,
            alpha=alpha,
            steps=steps,
            learning_rate=learning_rate,
            radius=radius,
            scale=scale,
            solver=solver,
            sample_rate=sample_rate,
            calibration=calibration,
            budget=budget,
            progress=progress,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any) -> CorrDPLogisticRegression:
        """Train on a table.

        Parameters
        ----------
        X : DataFrame (pandas, Polars, PyArrow), mapping of columns or array of shape (n, columns)
        y : array of shape (n,)
            Classes as the schema declares them.

        Raises
        ------
        ConfigurationError, DataError
            Before anything is spent.
        BudgetExceededError
            If ``budget`` has too little left; nothing was drawn.
        """
        if self.schema is None:
            return self._fit_plain(X, y)
        theta = self._fit_table(X, y)
        self._set_encoded(theta)
        return self

    def _set_encoded(self, theta: FloatArray) -> None:
        super()._set_encoded(theta)
        self.classes_ = np.array(self.encoder_.schema.label.levels)

    def _fit_plain(self, X: Any, y: Any) -> CorrDPLogisticRegression:
        """scikit-learn's own contract: numbers in, no schema, no privacy."""
        require_infinite(self.epsilon)
        check_run(math.inf, self.budget, self.progress)
        check_alpha(self.alpha)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if type_of_target(y) != "binary" or len(self.classes_) != 2:
            found = len(self.classes_)
            if found < 2:
                raise ValueError(
                    "Classifier can't train when only one class is present: y holds 1 class"
                )
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}."
            )
        features = np.column_stack([X, np.ones(len(X))])
        weights = np.ones(len(y))
        if self.class_weight is not None:
            weights = np.asarray(weights_of(self.class_weight, self.classes_))[codes]
        theta, self.n_iter_ = minimise(
            lambda t: features @ t,
            lambda r: features.T @ r,
            codes.astype(np.float64),
            weights,
            Logistic(),
            self.alpha,
            features.shape[1],
        )
        self.coef_, self.intercept_ = theta[None, :-1], theta[-1:]
        self.certificate_ = None
        return self

    def _exact(self, design: Design, label: FloatArray, weights: FloatArray) -> FloatArray:
        if len(np.unique(label)) < 2:
            raise DataError(
                "only one class is present: without privacy its optimum lies at infinity; add "
                "records of the other class"
            )
        return super()._exact(design, label, weights)

    def decision_function(self, X: Any) -> FloatArray:
        """Score θᵀφ, shape (n,); positive means the second class."""
        return self._scores(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of both classes, shape (n, 2), in the order of ``classes_``."""
        positive = 1.0 + Logistic().residual(self._scores(X), np.array(1.0))
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any) -> NDArray[Any]:
        """The more probable class, shape (n,)."""
        score = self._scores(X)
        classes: NDArray[Any] = self.classes_[(score > 0).astype(np.int64)]
        return classes

    def _check_schema(self, schema: Schema) -> None:  # type: ignore[override]
        if len(schema.label.names) != 2:
            raise ConfigurationError(
                f"label {schema.label.name!r} must have two classes for logistic regression; "
                "declare Label(name, [negative, positive])"
            )

    def _loss(self, schema: Schema | None) -> Loss:
        return Logistic()

    def _class_weights(self, schema: Schema) -> tuple[float, ...] | None:
        if self.class_weight is None:
            return None
        return weights_of(self.class_weight, np.array(schema.label.names))

    def _shaped(self, weights: FloatArray) -> FloatArray:
        return weights[None, :]

    def _shaped_intercept(self, value: float) -> Any:
        return np.array([value])


class CorrDPRidge(RegressorMixin, _LinearModel):  # type: ignore[misc]
    """Ridge regression under CorrDP (THEORY T3–T6): squared loss with a clipped residual.

    The label is scaled to [−1, 1] by its public bounds and the residual clipped to
    ``residual_clip`` there, which makes the loss a Huber loss. ``alpha=0`` is linear regression.
    Parameters and attributes are those of :class:`CorrDPLogisticRegression`, and

    Parameters
    ----------
    residual_clip : float
        L in units of the scaled label; off at ``epsilon=inf`` and for moments.
    solver : {"auto", "gradient", "sgd", "moments"}
        Noisy gradient descent, full batch or Poisson-sampled, or one release of all second
        moments (THEORY T11), which minimises the squared loss without clipping. ``"auto"`` takes
        moments where their noise is known to be small beforehand and nothing about steps was
        asked for, else full batch.

    Attributes
    ----------
    coef_standard_error_ : array of shape (m,) or None, intercept_standard_error_ : float or None
        Sampling error and noise together; only from moments, and None where their noise drowns a
        direction.
    """

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
        residual_clip: float = 0.3,
        alpha: float = 0.0,
        steps: int | None = None,
        learning_rate: float | None = None,
        radius: float | None = None,
        scale: float | None = None,
        solver: RidgeSolver = "auto",
        sample_rate: float | None = None,
        calibration: Calibration = "optimal",
        budget: PrivacyBudget | None = None,
        progress: Callable[[int, int], None] | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            schema,
            epsilon=epsilon,
            delta=delta,
            distances=distances,
            adjacency=adjacency,
            epsilon_cap=epsilon_cap,
            record_epsilon=record_epsilon,
            insensitive_epsilon=insensitive_epsilon,
            records_per_person=records_per_person,
            alpha=alpha,
            steps=steps,
            learning_rate=learning_rate,
            radius=radius,
            scale=scale,
            solver=solver,
            sample_rate=sample_rate,
            calibration=calibration,
            budget=budget,
            progress=progress,
            random_state=random_state,
        )
        self.residual_clip = residual_clip

    def fit(self, X: Any, y: Any) -> CorrDPRidge:
        """Train on a table; ``y`` is clamped to the label's public bounds.

        Raises
        ------
        ConfigurationError, DataError
            Before anything is spent.
        BudgetExceededError
            If ``budget`` has too little left; nothing was drawn.
        """
        if self.schema is None:
            require_infinite(self.epsilon)
            check_run(math.inf, self.budget, self.progress)
            check_alpha(self.alpha)
            X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
            theta = least_squares(X, np.asarray(y, dtype=np.float64), self.alpha)
            self.coef_, self.intercept_ = theta[:-1], float(theta[-1])
            self.certificate_ = None
            self.n_iter_ = 1
            return self
        theta = self._fit_table(X, y)
        self._set_encoded(theta)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predictions in the label's unit, shape (n,)."""
        score = self._scores(X)
        if self.schema is None:
            return score
        low, high = self.encoder_.schema.label.bounds
        return low + (high - low) * (score + 1.0) / 2.0

    @property
    def coef_standard_error_(self) -> FloatArray | None:
        """Standard errors of ``coef_``, shape (m,), read from the certificate's ledger."""
        errors = self._standard_errors()
        return None if errors is None else errors[:-1]

    @property
    def intercept_standard_error_(self) -> float | None:
        """Standard error of ``intercept_``."""
        errors = self._standard_errors()
        return None if errors is None else float(errors[-1]) * self.encoder_.scale

    def _standard_errors(self) -> FloatArray | None:
        certificate = self.certificate_
        return None if certificate is None else ledger_errors(certificate.ledger)

    def _step_solver(self) -> Solver:
        if self.solver == "moments":
            raise ConfigurationError("solver='moments' takes no steps: there is no plan of steps")
        return "gradient" if self.solver == "auto" else super()._step_solver()

    def _uses_moments(self, declaration: Declaration) -> bool:
        """Whether moments are released instead of gradients; known before anything is drawn."""
        if self.calibration != "optimal":
            if self.solver == "moments":
                raise ConfigurationError(
                    f"calibration={self.calibration!r}: solver='moments' takes no steps; leave it"
                )
            return False
        for name in ("steps", "learning_rate", "radius", "sample_rate"):
            if getattr(self, name) is not None:
                if self.solver == "moments":
                    raise ConfigurationError(f"{name}: solver='moments' takes no steps; leave it")
                return False
        return self.solver == "moments" or (self.solver == "auto" and prefer_moments(declaration))

    def _train(
        self,
        declaration: Declaration,
        data: TrainingData,
        source: NoiseSource,
        estimate: EstimateSettings | None,
    ) -> FloatArray:
        if not self._uses_moments(declaration):
            return super()._train(declaration, data, source, estimate)
        schema = declaration.schema
        scale = default_scale(len(schema.used)) if self.scale is None else self.scale
        fit, ledger = fit_moments(
            declaration,
            data.records,
            data.label,
            source,
            penalty=self.alpha / scale**2,
            scale=scale,
            estimate=estimate,
            budget=self.budget,
        )
        self.certificate_ = certify(ledger)
        self.encoder_ = Encoder(schema, scale)
        self.n_iter_ = 1
        return fit.theta / scale

    def _check_schema(self, schema: Schema) -> None:  # type: ignore[override]
        if not schema.label.is_numeric:
            raise ConfigurationError(
                f"label {schema.label.name!r} has classes; regression needs "
                "Label(name, low=..., high=...)"
            )

    def _loss(self, schema: Schema | None) -> Loss:
        return Squared(self.residual_clip, 2.0)

    def _scaled_label(self, label: NDArray[Any], schema: Schema) -> FloatArray:
        low, high = schema.label.bounds
        scaled: FloatArray = 2.0 * (label - low) / (high - low) - 1.0
        return scaled

    def _exact(self, design: Design, label: FloatArray, weights: FloatArray) -> FloatArray:
        features = np.empty((design.size, design.encoder.dimension - 1))
        features[:, design.encoder.numeric_index] = design.numeric
        features[:, design.encoder.one_hot_index] = design.one_hot.toarray()
        self.n_iter_ = 1
        theta = least_squares(features, label, self.alpha)
        theta[-1] /= design.encoder.scale
        return theta


def require_infinite(epsilon: object) -> None:
    """Without a schema only training without privacy is possible."""
    if not math.isinf(check_epsilon(epsilon)):
        raise ConfigurationError(
            f"epsilon={epsilon!r} needs a schema with public bounds, for example Schema("
            '{"age": Numeric(17, 90, role="insensitive"), "sex": Categorical(["F", "M"])}, '
            'Label("income", ["low", "high"])); or set epsilon=inf for training without privacy'
        )


def weights_of(class_weight: object, classes: NDArray[Any]) -> tuple[float, ...]:
    """Public weights in the order of the classes."""
    if not isinstance(class_weight, Mapping):
        raise ConfigurationError(
            f"class_weight={class_weight!r}: pass public numbers, {{class: weight}}; weights "
            "computed from the data are a release"
        )
    given = {canonical_level(key): value for key, value in class_weight.items()}
    names = [canonical_level(level) for level in classes.tolist()]
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise ConfigurationError(f"class_weight names {unknown}; the classes are {names}")
    weights = tuple(given.get(name, 1.0) for name in names)
    numbers = (int, float, np.integer, np.floating)
    if not all(isinstance(w, numbers) and w is not True and 0 < w < math.inf for w in weights):
        raise ConfigurationError(f"class_weight={class_weight!r} must be positive and finite")
    return tuple(float(w) for w in weights)
