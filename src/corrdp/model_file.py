"""Fitted models as JSON: coefficients, schema and certificate in one file, no pickle."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from corrdp.errors import ConfigurationError, CorrDPError, VerificationError
from corrdp.files import write_text
from corrdp.privacy.certificate import FORMAT_VERSION, Certificate
from corrdp.privacy.ledger import Ledger, decode_array, digest, encode_array
from corrdp.schema import Schema
from corrdp.verification import certify
from corrdp.version import __version__

__all__ = ["load", "model_problems", "save_model"]

# Estimators that may be read from a file, and where they live.
ESTIMATORS = {
    "CorrDPLogisticRegression": "corrdp.linear_model",
    "CorrDPRidge": "corrdp.linear_model",
    "CorrDPMLPClassifier": "corrdp.nn.estimators",
    "CorrDPMLPRegressor": "corrdp.nn.estimators",
}
# Ledger entries whose coefficients are checked against what was released.
MODEL_ENTRIES = ("linear-release", "moments-model", "network-release")
# Constructor parameters that never go into a file: they are objects of the running process.
PROCESS_ONLY = ("schema", "distances", "budget", "progress", "checkpoint", "random_state")


def save_model(model: Any, path: Path) -> None:
    """Write a fitted estimator with its certificate atomically."""
    name = type(model).__name__
    if name not in ESTIMATORS or not hasattr(model, "theta_"):
        raise ConfigurationError(f"{name} has no schema or is not fitted: nothing to save")
    parameters = {k: v for k, v in model.get_params(deep=False).items() if k not in PROCESS_ONLY}
    certificate = model.certificate_
    body = {
        "format_version": FORMAT_VERSION,
        "library_version": __version__,
        "estimator": name,
        "parameters": {key: _plain(value) for key, value in parameters.items()},
        "schema": model.encoder_.schema.to_dict(),
        "scale": model.encoder_.scale,
        "feature_bits": model.encoder_.feature_bits,
        "steps": model.n_iter_,
        "coefficients": encode_array(model.theta_),
        "certificate": None if certificate is None else certificate.to_dict(),
    }
    body["digest"] = digest(body)
    write_text(path, json.dumps(body, indent=1, allow_nan=False) + "\n")


def load(path: str | Path) -> Any:
    """Read a fitted estimator back; its certificate is recomputed from the ledger.

    Raises
    ------
    VerificationError
        If the file is damaged, or its coefficients are not those of its ledger.
    """
    body = _read(Path(path))
    name = body.get("estimator")
    if name not in ESTIMATORS:
        raise VerificationError(f"{path}: estimator {name!r} is unknown")
    try:
        cls = getattr(importlib.import_module(ESTIMATORS[name]), name)
        parameters = {key: _value(value) for key, value in body["parameters"].items()}
        model = cls(Schema.from_dict(body["schema"]), **parameters)
        certificate = None
        if body["certificate"] is not None:
            certificate = certify(Ledger.from_list(body["certificate"]["ledger"]))
        model._restore(
            decode_array(body["coefficients"]), body["scale"], body["feature_bits"], body["steps"]
        )
    except (KeyError, TypeError, CorrDPError) as error:
        raise VerificationError(f"{path}: the model is damaged: {error}") from None
    model.certificate_ = certificate
    if certificate is not None:
        problems = _coefficient_problems(body, certificate)
        if problems:
            raise VerificationError(f"{path}: {problems[0]}")
    return model


def model_problems(path: Path, certificate: Certificate) -> list[str]:
    """What a model file and a certificate disagree on."""
    try:
        body = _read(path)
        own = body["certificate"]
        if own is None:
            return [f"{path.name} was trained without privacy"]
        problems = _coefficient_problems(body, certificate)
        if Ledger.from_list(own["ledger"]).head != certificate.ledger.head:
            problems.append(f"{path.name} carries the ledger of another run")
    except (KeyError, TypeError, VerificationError) as error:
        return [f"{path.name} is damaged: {error}"]
    return problems


def _read(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        recorded = body.pop("digest")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise VerificationError(f"{path}: cannot be read as a model ({error})") from None
    if recorded != digest(body):
        raise VerificationError(f"{path}: the model was changed after it was written (digest)")
    return dict(body)


def _coefficient_problems(body: Mapping[str, Any], certificate: Certificate) -> list[str]:
    """Coefficients, schema and scale must be those of the ledger."""
    coefficients = decode_array(body["coefficients"])
    released = [
        decode_array(entry["coefficients"]) for entry in certificate.ledger.of_type(*MODEL_ENTRIES)
    ]
    problems = []
    if not any(np.array_equal(coefficients, one) for one in released):
        problems.append(
            "the coefficients are not those that the ledger released: the model was swapped"
        )
    if body["schema"] != certificate.ledger.one("declaration")["schema"]:
        problems.append("the schema is not the certificate's: columns or classes were changed")
    entries = [e for e in certificate.ledger.entries if "scale" in e and "lattice" in e]
    if entries and not any(_same_scale(body, entry) for entry in entries):
        problems.append("the encoder's scale is not the one that the ledger fixed")
    return problems


def _same_scale(body: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Whether a training entry fixed the encoder that the file has (its scale is rounded down)."""
    bits = entry["lattice"]["feature_bits"]
    fixed = math.floor(entry["scale"] * 2.0**bits) * 2.0**-bits
    return bool(body["feature_bits"] == bits and body["scale"] == fixed)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and np.isinf(value):
        return "inf"
    if isinstance(value, Mapping):
        return {"mapping": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if isinstance(value, np.generic):
        return value.item()
    return value


def _value(plain: Any) -> Any:
    if plain == "inf":
        return float("inf")
    if isinstance(plain, dict):
        return {key: _value(item) for key, item in plain["mapping"]}
    return plain
