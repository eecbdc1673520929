"""Neural networks with correlation-aware privacy, as scikit-learn estimators (THEORY T12).

Objective: mean loss in the encoded space (see :class:`corrdp.encoding.Encoder`), noisy gradient
descent on full batches or on Poisson-sampled ones. With ``epsilon=inf`` the same network is trained
on full batches without noise or clips; that is the only case in which ``schema=None`` is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from corrdp.erm.losses import Logistic, Loss, Squared
from corrdp.erm.plan import SMALLEST, checked_number
from corrdp.erm.published import Calibration
from corrdp.erm.sampling import Solver
from corrdp.errors import ConfigurationError
from corrdp.linear_model import (
    DistanceChoice,
    RandomState,
    require_infinite,
    weights_of,
)
from corrdp.neighbours import Adjacency
from corrdp.nn.activations import ActivationName
from corrdp.nn.base import NetworkModel, bounds_of
from corrdp.nn.network import OutputWeights, SensitivePath
from corrdp.nn.residual import ClippedResidual, Softmax
from corrdp.parameters import check_run
from corrdp.privacy.budget import PrivacyBudget
from corrdp.schema import Label, Schema

__all__ = ["CorrDPMLPClassifier", "CorrDPMLPRegressor"]

FloatArray: TypeAlias = NDArray[np.float64]
# Residual clips, from none to the tightest that noise can make worth its bias; ½, for ordinary DP,
# halves what a whole record can do and leaves a label's change as it is.
CLIPS, HALF = (1.0, 0.85, 0.7), 0.5


class CorrDPMLPClassifier(ClassifierMixin, NetworkModel):  # type: ignore[misc]
    """A neural network for two or more classes under CorrDP (THEORY T12).

    Sensitive columns enter by a linear skip, all others through the hidden layers. A change of
    the sensitive columns then moves the residual alone, which is what makes the noise small.

    Parameters
    ----------
    schema, epsilon, delta, distances, adjacency, epsilon_cap, record_epsilon, insensitive_epsilon
        As in :class:`corrdp.CorrDPLogisticRegression`.
    records_per_person, class_weight, budget, progress, random_state
        As in :class:`corrdp.CorrDPLogisticRegression`.
    hidden_layer_sizes : int or sequence of int
        Widths. One layer has the tightest certificate; deeper nets gain only up to 1/max d.
    activation : {"tanh", "sigmoid", "softplus", "relu"}
    normalization : None
        Batch normalisation is refused: it mixes records.
    sensitive_path : {"skip", "hidden"}
        ``"hidden"`` costs 2 to 8 times the noise. Where every column is sensitive all are hidden.
    output_weights : {"fixed", "trained"}
        ``"fixed"``: ±output_norm/√H with public signs.
    output_norm, initial_scale : float
        Norm of the output weights; standard deviation of the public random start.
    residual_clip : float, optional
        The residual is clipped to ±it, in (0, 1], two classes only; a clip is biased at any ε.
        Default: the largest of 1 (no clip), .85 and .7 whose noise leaves 200 steps, or .7; where
        everything is sensitive down to ½, which halves what a whole record can do.
    clips : float or sequence of float, optional
        Clip of the signal per hidden layer, and of the hidden values at trained output weights.
    steps, learning_rate, scale : optional
        Overrides of the data-free defaults.
    solver : {"gradient", "sgd"}
        Full batches, or Poisson-sampled ones (THEORY T7), which cost noise and save no time.
    sample_rate : float, optional
        Probability that a record joins a step, only with ``solver="sgd"``.
    calibration : {"optimal", "published"}
        ``"published"`` fixes the noise by the paper's rule on the slices of the first layer; the
        certificate tells what it holds (THEORY T8).
    checkpoint : path, optional
        Where an interrupted fit leaves its ledger and iterates; the next fit with the same
        parameters and table goes on from there and is certified as one run. Keep one copy.

    Attributes
    ----------
    classes_ : array of shape (C,)
        In the order of the schema's label levels.
    network_ : Network, theta_ : array
        The network and its flat parameters.
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
    >>> model = CorrDPMLPClassifier(schema, distances={"x": 0.1, "y": 0.1})
    >>> bool(model.fit(X, y).score(X, y) > 0.9)
    True
    """

    def fit(self, X: Any, y: Any) -> CorrDPMLPClassifier:
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
        if self.schema is not None:
            self._fit_table(X, y)
            self.classes_ = np.array(self.schema.label.levels)
            return self
        require_infinite(self.epsilon)
        check_run(math.inf, self.budget, self.progress)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "Classifier can't train when only one class is present: y holds 1 class"
            )
        label = Label("y", tuple(range(len(self.classes_))))
        self._fit_plain(X, y, label, codes.astype(np.float64))
        return self

    def _restore(
        self, theta: FloatArray, scale: float, feature_bits: int | None, steps: int
    ) -> None:
        super()._restore(theta, scale, feature_bits, steps)
        self.classes_ = np.array(self.encoder_.schema.label.levels)

    def decision_function(self, X: Any) -> FloatArray:
        """Scores: shape (n,) for two classes (positive means the second), else (n, C)."""
        score = self._scores(X)
        return score[:, 0] if score.shape[1] == 1 else score

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities, shape (n, C), in the order of ``classes_``."""
        score = self._scores(X)
        if score.shape[1] == 1:
            positive = 1.0 + Logistic().residual(score[:, 0], np.array(1.0))
            return np.column_stack([1.0 - positive, positive])
        likely: FloatArray = np.exp(score - score.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        return likely

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class, shape (n,)."""
        score = self._scores(X)
        best = score.argmax(axis=1) if score.shape[1] > 1 else (score[:, 0] > 0).astype(np.int64)
        classes: NDArray[Any] = self.classes_[best]
        return classes

    def _check_schema(self, schema: Schema) -> None:
        if schema.label.is_numeric:
            raise ConfigurationError(
                f"label {schema.label.name!r} is a number; a classifier needs Label(name, "
                "[class, class, ...])"
            )

    def _outputs(self, schema: Schema) -> int:
        classes = len(schema.label.names)
        return 1 if classes == 2 else classes

    def _losses(self, schema: Schema) -> tuple[Loss, ...]:
        if self._outputs(schema) > 1:
            if self.residual_clip is not None:
                raise ConfigurationError(
                    f"residual_clip={self.residual_clip!r} is for two classes; use clips="
                )
            return (Softmax(),)
        if self.residual_clip is not None:
            return (ClippedResidual(self.residual_clip),)
        sensitive = set(schema.names("sensitive")) == set(schema.used)
        everything = sensitive and schema.label.role == "sensitive"
        return tuple(map(ClippedResidual, (*CLIPS, HALF) if everything else CLIPS))

    def _exact_loss(self, schema: Schema) -> Loss:
        return Logistic() if self._outputs(schema) == 1 else Softmax()

    def _class_weights(self, schema: Schema) -> tuple[float, ...] | None:
        if self.class_weight is None:
            return None
        names = np.array(schema.label.names) if self.schema is not None else self.classes_
        return weights_of(self.class_weight, names)


class CorrDPMLPRegressor(RegressorMixin, NetworkModel):  # type: ignore[misc]
    """A neural network for a number under CorrDP (THEORY T12): squared loss, clipped residual.

    The label is scaled to [−1, 1] by its public bounds and the residual clipped to
    ``residual_clip`` there, which makes the loss a Huber loss. Parameters and attributes are those
    of :class:`CorrDPMLPClassifier` without the classes.
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
        hidden_layer_sizes: int | Sequence[int] = (32,),
        activation: ActivationName = "tanh",
        normalization: None = None,
        sensitive_path: SensitivePath = "skip",
        output_weights: OutputWeights = "fixed",
        output_norm: float = 3.0,
        initial_scale: float = 1.0,
        residual_clip: float = 0.3,
        clips: float | Sequence[float] | None = None,
        steps: int | None = None,
        learning_rate: float | None = None,
        scale: float | None = None,
        solver: Solver = "gradient",
        sample_rate: float | None = None,
        calibration: Calibration = "optimal",
        budget: PrivacyBudget | None = None,
        progress: Callable[[int, int], None] | None = None,
        checkpoint: str | Path | None = None,
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
            hidden_layer_sizes=hidden_layer_sizes,
            activation=activation,
            sensitive_path=sensitive_path,
            output_weights=output_weights,
            output_norm=output_norm,
            initial_scale=initial_scale,
            residual_clip=residual_clip,
            clips=clips,
            steps=steps,
            learning_rate=learning_rate,
            scale=scale,
            calibration=calibration,
            budget=budget,
            progress=progress,
            checkpoint=checkpoint,
            random_state=random_state,
        )
        self.normalization, self.solver, self.sample_rate = normalization, solver, sample_rate

    def fit(self, X: Any, y: Any) -> CorrDPMLPRegressor:
        """Train on a table; ``y`` is clamped to the label's public bounds.

        Raises
        ------
        ConfigurationError, DataError
            Before anything is spent.
        BudgetExceededError
            If ``budget`` has too little left; nothing was drawn.
        """
        if self.schema is not None:
            self._fit_table(X, y)
            return self
        require_infinite(self.epsilon)
        check_run(math.inf, self.budget, self.progress)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        bounds = bounds_of(y)
        label = Label("y", low=bounds.low, high=bounds.high)
        middle, half = 0.5 * (bounds.low + bounds.high), 0.5 * (bounds.high - bounds.low)
        self._fit_plain(X, y, label, (y - middle) / half)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predictions in the label's unit, shape (n,)."""
        score = self._scores(X)[:, 0]
        low, high = self.encoder_.schema.label.bounds
        return low + (high - low) * (score + 1.0) / 2.0

    def _check_schema(self, schema: Schema) -> None:
        if not schema.label.is_numeric:
            raise ConfigurationError(
                f"label {schema.label.name!r} has classes; regression needs "
                "Label(name, low=..., high=...)"
            )

    def _losses(self, schema: Schema) -> tuple[Loss, ...]:
        clip = checked_number("residual_clip", self.residual_clip, SMALLEST)
        return (Squared(clip, 2.0),)

    def _exact_loss(self, schema: Schema) -> Loss:
        return Squared(math.inf, 2.0)

    def _scaled_label(self, label: NDArray[Any], schema: Schema) -> FloatArray:
        low, high = schema.label.bounds
        scaled: FloatArray = 2.0 * (label - low) / (high - low) - 1.0
        return scaled
