"""What the networks' estimators share: reading, planning, training, certificate, files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from corrdp.distance import estimate_distances
from corrdp.encoding import Encoder
from corrdp.erm.fit import TrainingData, default_scale
from corrdp.erm.losses import Loss
from corrdp.erm.plan import checked_whole
from corrdp.erm.published import Calibration
from corrdp.erm.sampling import Solver
from corrdp.errors import ConfigurationError
from corrdp.linear_model import (
    DistanceChoice,
    RandomState,
    check_epsilon,
    distance_request,
)
from corrdp.neighbours import Adjacency
from corrdp.nn.activations import ActivationName
from corrdp.nn.cells import inputs_of
from corrdp.nn.checkpoint import Checkpoint
from corrdp.nn.fit import fit_network
from corrdp.nn.gradients import Inputs, scores
from corrdp.nn.network import Network, OutputWeights, SensitivePath
from corrdp.nn.query import GradientQuery, default_clips
from corrdp.nn.recipe import NetworkRecipe, warn_if_drowned
from corrdp.nn.trainer import minimise_network
from corrdp.noise import NoiseSource, noise_source
from corrdp.parameters import check_delta, check_run
from corrdp.privacy.budget import PrivacyBudget
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.certificate import Certificate
from corrdp.privacy.declaration import Declaration
from corrdp.records import Records, read_label, read_records
from corrdp.schema import Label, Numeric, Schema
from corrdp.verification import certify

__all__ = ["NetworkModel", "bounds_of"]

FloatArray: TypeAlias = NDArray[np.float64]
# steps of training without privacy
PLAIN_STEPS = 300


class NetworkModel(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: reading, planning, training, certificate, files.

    The constructor is the classifier's, whose documentation says what its parameters are.
    """

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
        class_weight: Mapping[Any, float] | None = None,
        hidden_layer_sizes: int | Sequence[int] = (32,),
        activation: ActivationName = "tanh",
        normalization: None = None,
        sensitive_path: SensitivePath = "skip",
        output_weights: OutputWeights = "fixed",
        output_norm: float = 3.0,
        initial_scale: float = 0.1,
        residual_clip: float | None = None,
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
        self.schema = schema
        self.epsilon, self.delta = epsilon, delta
        self.distances = distances
        self.adjacency = adjacency
        self.epsilon_cap = epsilon_cap
        self.record_epsilon = record_epsilon
        self.insensitive_epsilon = insensitive_epsilon
        self.records_per_person = records_per_person
        self.class_weight = class_weight
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.normalization = normalization
        self.sensitive_path = sensitive_path
        self.output_weights = output_weights
        self.output_norm = output_norm
        self.initial_scale = initial_scale
        self.residual_clip = residual_clip
        self.clips = clips
        self.steps = steps
        self.learning_rate = learning_rate
        self.scale = scale
        self.solver, self.sample_rate = solver, sample_rate
        self.calibration = calibration
        self.budget = budget
        self.progress = progress
        self.checkpoint = checkpoint
        self.random_state = random_state

    def _check_schema(self, schema: Schema) -> None:
        """The label of the schema must be of the estimator's kind."""
        raise NotImplementedError

    def _losses(self, schema: Schema) -> tuple[Loss, ...]:
        raise NotImplementedError

    def _exact_loss(self, schema: Schema) -> Loss:
        """The loss without a clip, for training without privacy."""
        raise NotImplementedError

    def _outputs(self, schema: Schema) -> int:
        return 1

    def _class_weights(self, schema: Schema) -> tuple[float, ...] | None:
        return None

    def _scaled_label(self, label: NDArray[Any], schema: Schema) -> FloatArray:
        return label.astype(np.float64)

    def _network(self, schema: Schema) -> Network:
        """The network on an encoder without a lattice."""
        self._check_options()
        scale = default_scale(len(schema.used)) if self.scale is None else self.scale
        return Network(
            Encoder(schema, scale),
            _widths(self.hidden_layer_sizes),
            self.activation,
            self._outputs(schema),
            self.sensitive_path,
            self.output_weights,
            self.output_norm,
            self.initial_scale,
        )

    def _check_options(self) -> None:
        if self.normalization is not None:
            raise ConfigurationError(
                f"normalization={self.normalization!r}: batch normalisation mixes records, so one "
                "record moves every other's gradient and no bound holds; inputs are already "
                "scaled by public bounds, leave it at None"
            )

    def _recipe(self, schema: Schema) -> NetworkRecipe:
        clips = self.clips
        if clips is None:
            listed: tuple[float, ...] = ()
        elif isinstance(clips, (int, float)):
            listed = (clips,) * len(default_clips(self._network(schema)))
        else:
            listed = _listed(clips)
        loss, *gentler = self._losses(schema)
        return NetworkRecipe(
            self._network(schema),
            loss,
            tuple(gentler),
            self._class_weights(schema),
            listed,
            self.steps,
            self.learning_rate,
            self.calibration,
            self.solver,
            self.sample_rate,
        )

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

    def _fit_table(self, X: Any, y: Any) -> None:
        """Fit on a table with a schema."""
        epsilon = check_epsilon(self.epsilon)
        schema = self.schema
        if not isinstance(schema, Schema):
            raise ConfigurationError(
                f"schema={type(schema).__name__}: pass a corrdp.Schema, for example Schema("
                '{"age": Numeric(17, 90, role="insensitive"), ...}, Label("income", ["no", "yes"]))'
            )
        self._check_schema(schema)
        check_run(epsilon, self.budget, self.progress)
        source = noise_source(self.random_state)
        records = read_records(X, schema)
        raw = read_label(y, schema.label, records.size)
        data = TrainingData(records, raw, self._scaled_label(raw, schema))
        if math.isinf(epsilon):
            self._fit_exact(records, data.scaled, schema, source)
        else:
            self._fit_private(data, (X, y), schema, source)
        self.feature_names_in_ = np.array(list(schema.used), dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)

    def _fit_private(
        self, data: TrainingData, table: tuple[Any, Any], schema: Schema, source: NoiseSource
    ) -> None:
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
        recipe = self._recipe(schema)
        warn_if_drowned(recipe.prepare(declaration))
        self.theta_, task, ledger = fit_network(
            declaration,
            recipe,
            data,
            source,
            estimate=asked.estimate,
            budget=self.budget,
            progress=self.progress,
            checkpoint=None if self.checkpoint is None else Checkpoint.at(self.checkpoint),
        )
        self.certificate_ = certify(ledger)
        self.network_ = task.table.query.network
        self.n_iter_ = task.setup.plan.steps

    def _fit_exact(
        self, records: Records, label: FloatArray, schema: Schema, source: NoiseSource
    ) -> None:
        network = self._network(schema)
        weights = self._class_weights(schema)
        clips = (1e9,) * len(default_clips(network))
        query = GradientQuery(network, self._exact_loss(schema), weights, clips)
        inputs, label = inputs_of(network.encoder, network, records, label)
        self.n_iter_ = PLAIN_STEPS if self.steps is None else checked_whole("steps", self.steps)
        start = network.initial(source.child("start"))
        self.theta_ = minimise_network(query, inputs, label, start, steps=self.n_iter_)
        self.network_ = network
        self.certificate_ = None

    @property
    def encoder_(self) -> Encoder:
        """The encoder that the network reads records through."""
        encoder: Encoder = self.network_.encoder
        return encoder

    def _restore(
        self, theta: FloatArray, scale: float, feature_bits: int | None, steps: int
    ) -> None:
        """Attributes of a model that was read from a file."""
        if not isinstance(self.schema, Schema):
            raise ConfigurationError("a saved model has a schema")
        network = self._network(self.schema)
        self.network_ = replace(network, encoder=Encoder(self.schema, scale, feature_bits))
        self.theta_ = self.network_.check_parameters(theta)
        self.n_iter_ = steps
        self.feature_names_in_ = np.array(list(self.schema.used), dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)

    def _fit_plain(self, X: Any, y: Any, label: Label, target: FloatArray) -> None:
        """scikit-learn's own contract: numbers in, no schema, no privacy."""
        columns = {f"x{i}": bounds_of(values) for i, values in enumerate(X.T)}
        schema = Schema(columns, label)
        self.plain_schema_ = schema
        records = Records({name: X[:, i] for i, name in enumerate(columns)}, len(X))
        self._fit_exact(records, target, schema, noise_source(self.random_state))

    def _scores(self, X: Any) -> FloatArray:
        """Scores t of new records, shape (n, outputs)."""
        check_is_fitted(self)
        if self.schema is None:
            array = validate_data(self, X, reset=False, dtype=np.float64)
            columns = {f"x{i}": values for i, values in enumerate(array.T)}
            records = Records(columns, len(array))
        else:
            records = read_records(X, self.encoder_.schema)
        design = self.encoder_.transform(records)
        return scores(self.network_, self.theta_, Inputs.of(design, self.network_))

    def save(self, path: str | Path) -> None:
        """Write the fitted model with its certificate as one JSON file, atomically.

        Raises
        ------
        ConfigurationError
            If the model has no schema.
        """
        from corrdp.model_file import save_model

        if self.schema is None:
            raise ConfigurationError("a model without a schema cannot be saved")
        save_model(self, Path(path))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "theta_")


def _listed(clips: object) -> tuple[float, ...]:
    """The clips of a sequence; what is in it the query checks."""
    if isinstance(clips, (Sequence, np.ndarray)) and not isinstance(clips, str) and len(clips):
        return tuple(np.asarray(clips, dtype=object).tolist())
    raise ConfigurationError(f"clips={clips!r} must be a number or a sequence of them, or None")


def _widths(sizes: object) -> tuple[int, ...]:
    if isinstance(sizes, (int, np.integer)) and not isinstance(sizes, bool):
        return (int(sizes),)
    if isinstance(sizes, Sequence) and not isinstance(sizes, str):
        return tuple(sizes)
    raise ConfigurationError(
        f"hidden_layer_sizes={sizes!r} must be a whole number or a sequence of them"
    )


def bounds_of(values: FloatArray) -> Numeric:
    """Bounds from the data themselves: only for training without privacy."""
    low, high = float(values.min()), float(values.max())
    return Numeric(low, high) if low < high else Numeric(low - 0.5, low + 0.5)
