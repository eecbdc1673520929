"""Linear and logistic regression with correlation-aware privacy, as scikit-learn estimators.

Objective: mean loss + (alpha/2)‖θ‖² in the encoded space (see :class:`corrdp.encoding.Encoder`),
intercept not penalised. With ``epsilon=inf`` the exact minimiser is found; that is the only case
in which ``schema=None`` is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from corrdp.distance import EstimateSettings
from corrdp.encoding import Design, Encoder
from corrdp.erm.exact import least_squares, minimise
from corrdp.erm.fit import (
    Solver,
    TrainingData,
    default_scale,
)
from corrdp.erm.losses import Logistic, Loss, Squared
from corrdp.erm.published import Calibration
from corrdp.errors import ConfigurationError, DataError
from corrdp.linear_base import LinearModel, RidgeSolver
from corrdp.neighbours import Adjacency
from corrdp.noise import NoiseSource
from corrdp.parameters import (
    DistanceChoice,
    RandomState,
    check_alpha,
    check_epsilon,
    check_run,
    distance_request,
    require_infinite,
    weights_of,
)
from corrdp.privacy.budget import PrivacyBudget
from corrdp.privacy.declaration import Declaration
from corrdp.queries.regression import fit_moments, ledger_errors, prefer_moments
from corrdp.schema import Schema
from corrdp.verification import certify

__all__ = [
    "CorrDPLogisticRegression",
    "CorrDPRidge",
    "DistanceChoice",
    "RandomState",
    "check_epsilon",
    "distance_request",
    "require_infinite",
    "weights_of",
]

FloatArray: TypeAlias = NDArray[np.float64]


class CorrDPLogisticRegression(ClassifierMixin, LinearModel):  # type: ignore[misc]
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
        releases noisy tables first and trains on what is left (THEORY T10). Numeric columns that
        the model sees exactly keep d = 1 there, unless
        ``EstimateSettings(resolution="assume-smooth")`` (an assumption, stated on the
        certificate) or ``"binned"`` (the model sees bins only) is passed. ``"published"`` computes
        distances from this table without accounting for it, and the certificate says so.
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


class CorrDPRidge(RegressorMixin, LinearModel):  # type: ignore[misc]
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
        if self.solver not in get_args(RidgeSolver):
            known = ", ".join(get_args(RidgeSolver))
            raise ConfigurationError(f"solver={self.solver!r} is unknown; use one of {known}")
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
        if self.solver != "auto":
            return self.solver == "moments"
        return prefer_moments(declaration, self.residual_clip)

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
