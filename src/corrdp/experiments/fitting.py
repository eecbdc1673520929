"""One run of one method: train, measure, certify."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from corrdp.distance import EstimateSettings
from corrdp.encoding import Design, Encoder
from corrdp.erm.exact import least_squares, minimise
from corrdp.erm.fit import PlanRequest, Recipe, default_scale, fit_linear
from corrdp.erm.losses import Logistic, Loss, Squared
from corrdp.errors import UtilityWarning
from corrdp.experiments.methods import Method
from corrdp.experiments.task import Task
from corrdp.linear_model import DistanceChoice
from corrdp.noise import noise_source
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.certificate import Certificate
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.ledger import decode_array
from corrdp.schema import Schema
from corrdp.verification import certify

__all__ = ["Outcome", "fit", "score_metrics"]

FloatArray: TypeAlias = NDArray[np.float64]
RESIDUAL_CLIP = 0.3
# keeps the coefficient of a rare level finite that occurs in one class only
LEAST_PENALTY = 1e-6


@dataclass(frozen=True)
class Outcome:
    """What a run leaves.

    Attributes
    ----------
    metrics : dict of str to float
        On test records; never private. With a certificate also what it guarantees; and the
        processor time in seconds.
    certificate : Certificate or None
    """

    metrics: dict[str, float]
    certificate: Certificate | None


def fit(task: Task, method: Method, epsilon: float, seed: int) -> Outcome:
    """Train ``task`` by ``method``; the noise is seeded, so no run here is private.

    Raises
    ------
    ConfigurationError
        If the method cannot be run on this task, for example for lack of given distances.
    """
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        if task.model == "network":
            outcome = _network(task, method, epsilon, seed)
        elif method.private:
            outcome = _linear(task, method, epsilon, seed)
        else:
            outcome = _exact(task, method)
    guarantee = {} if outcome.certificate is None else _guarantee(outcome.certificate)
    seconds = {"seconds": time.process_time() - started}
    return Outcome({**outcome.metrics, **guarantee, **seconds}, outcome.certificate)


def _linear(task: Task, method: Method, epsilon: float, seed: int) -> Outcome:
    """Noisy gradient descent on a linear model."""
    schema, estimate = method.schema(task.schema), None
    if method.distances == "private":
        estimate = _estimate(schema)
        schema = schema.binned() if estimate.resolution == "binned" else schema
    declaration = Declaration(
        schema,
        PrivacyTarget(epsilon, task.delta),
        task.train_data.records.size,
        task.distances(method.distances),
        seeded=True,
    )
    request = PlanRequest(alpha=task.alpha, calibration=method.calibration, solver=task.solver)
    loss: Loss = Logistic() if task.classes else Squared(RESIDUAL_CLIP, 2.0)
    theta, done, ledger = fit_linear(
        declaration,
        Recipe(loss, None, request),
        task.train_data,
        noise_source(seed),
        estimate=estimate,
    )
    sigma = decode_array(ledger.one("linear-release")["sigma"])
    metrics = _linear_metrics(task, done.encoder, theta)
    return Outcome({**metrics, **_noise(done.encoder, sigma)}, certify(ledger))


def _estimate(schema: Schema) -> EstimateSettings:
    """Binned columns; a numeric label cannot be binned for a regression, which is then assumed."""
    smooth = schema.label.is_numeric and schema.label.role == "insensitive"
    return EstimateSettings(resolution="assume-smooth" if smooth else "binned")


def _noise(encoder: Encoder, sigma: FloatArray) -> dict[str, float]:
    """Norm of the noise if one step spent the whole budget, and σ per coordinate of every column.

    Runs of different lengths compare: σ² of a step is T times that of a single one.
    """
    mean = np.mean(sigma**2, axis=0) / len(sigma)
    columns = {
        f"noise:{block.name}": float(value)
        for block, value in zip(encoder.blocks, np.sqrt(mean), strict=True)
    }
    return {"noise": float(np.sqrt(encoder.dimensions @ mean)), **columns}


def _exact(task: Task, method: Method) -> Outcome:
    """The exact minimiser on the method's columns."""
    encoder, theta = exact_minimiser(task, method.schema(task.schema))
    return Outcome(_linear_metrics(task, encoder, theta), None)


def exact_minimiser(task: Task, schema: Schema) -> tuple[Encoder, FloatArray]:
    """Encoder and coefficients without noise, clip or ball; classes with a tiny penalty."""
    encoder = Encoder(schema, default_scale(len(schema.used)))
    design = encoder.transform(task.train_data.records)
    if task.classes:
        theta, _ = minimise(
            design.scores,
            design.weighted_sum,
            task.train_data.scaled,
            np.ones(design.size),
            Logistic(),
            max(task.alpha, LEAST_PENALTY),
            encoder.dimension,
        )
        return encoder, theta
    theta = least_squares(_features(design), task.train_data.scaled, task.alpha)
    theta[-1] /= encoder.scale
    return encoder, theta


def _features(design: Design) -> FloatArray:
    """All columns of a design but the intercept."""
    features = np.empty((design.size, design.encoder.dimension - 1))
    features[:, design.encoder.numeric_index] = design.numeric
    features[:, design.encoder.one_hot_index] = design.one_hot.toarray()
    return features


def _linear_metrics(task: Task, encoder: Encoder, theta: FloatArray) -> dict[str, float]:
    metrics = score_metrics(task, encoder.transform(task.test_data.records).scores(theta))
    if task.excess:
        metrics["excess risk"] = _risk(task, encoder, theta) - least_risk(task)
    return metrics


@lru_cache(maxsize=8)
def least_risk(task: Task) -> float:
    """Risk of the exact minimiser on all columns."""
    return _risk(task, *exact_minimiser(task, task.schema))


def _risk(task: Task, encoder: Encoder, theta: FloatArray) -> float:
    """Mean squared loss on the training records with the penalty, unclipped."""
    score = encoder.transform(task.train_data.records).scores(theta)
    penalty = 0.5 * task.alpha * float(theta[:-1] @ theta[:-1])
    return 0.5 * float(np.mean((score - task.train_data.scaled) ** 2)) + penalty


def score_metrics(task: Task, score: FloatArray) -> dict[str, float]:
    """Metrics of scores on the test records; balanced accuracy cuts at the training share."""
    truth = task.test_data.scaled
    if not task.classes:
        error = score - truth
        low, high = task.schema.label.bounds
        return {
            "R²": 1.0 - float((error**2).mean() / truth.var()),
            "RMSE": 0.5 * (high - low) * float(np.sqrt((error**2).mean())),
        }
    likely = 1.0 / (1.0 + np.exp(-np.clip(score, -500.0, 500.0)))
    share = float(task.train_data.scaled.mean())
    return {
        "log-loss": float(Logistic().value(score, truth).mean()),
        "accuracy": float(((score > 0) == (truth > 0.5)).mean()),
        "AUC": float(roc_auc_score(truth, score)),
        "balanced accuracy": float(balanced_accuracy_score(truth > 0.5, likely > share)),
    }


def _network(task: Task, method: Method, epsilon: float, seed: int) -> Outcome:
    """A two-layer network by the estimator."""
    from corrdp.nn.estimators import CorrDPMLPClassifier

    distances: DistanceChoice = task.distances(method.distances)
    if method.distances == "private":
        distances = "private"
    model: Any = CorrDPMLPClassifier(
        method.schema(task.schema),
        epsilon=epsilon if method.private else math.inf,
        delta=task.delta,
        distances=distances if method.private else None,
        calibration=method.calibration,
        solver=task.solver if method.private else "gradient",
        random_state=seed,
    )
    model.fit(*task.train)
    return Outcome(score_metrics(task, model.decision_function(task.test[0])), model.certificate_)


def _guarantee(certificate: Certificate) -> dict[str, float]:
    """What a certificate states, as numbers."""
    joint = {
        f"{key} ε": float(value) for key, value in certificate.joint.items() if value is not None
    }
    distances = {
        f"distance:{row['name']}": float(row["distance"])
        for row in certificate.columns
        if row["role"] == "insensitive"
    }
    return {"holds": float(certificate.holds), **joint, **distances}
