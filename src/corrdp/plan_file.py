"""``plan.toml``: table, privacy, training and file layout in one file that people edit.

``[columns.NAME]``, ``[label]`` and ``[[groups]]`` are the schema. ``[privacy]`` and ``[training]``
hold constructor parameters of the estimator that ``model`` names; which keys are admissible is
read from that constructor. ``[file]`` says how the CSV files are laid out.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import tomli_w

from corrdp.errors import ConfigurationError, MissingExtraError
from corrdp.schema import Categorical, Numeric, Schema
from corrdp.tables.options import FileOptions

__all__ = ["MODELS", "ModelClass", "Plan", "file_section", "read_plan"]

Unconfirmed: TypeAlias = Literal["refuse", "accept"]
# everything else at the top level belongs to the schema
SECTIONS = ("privacy", "training", "file")
# objects of the running process, never part of a file
PROCESS_ONLY = ("schema", "budget", "progress", "checkpoint", "random_state")

# keys of [privacy] that become a part of distances=
DERIVED = ("joint_distance", "estimate")


@dataclass(frozen=True)
class ModelClass:
    """Where a model's estimators live: one for classes, one for numbers."""

    module: str
    classifier: str | None = None
    regressor: str | None = None
    extra: str | None = None


MODELS: dict[str, ModelClass] = {
    "logistic": ModelClass("corrdp.linear_model", classifier="CorrDPLogisticRegression"),
    "ridge": ModelClass("corrdp.linear_model", regressor="CorrDPRidge"),
    "mlp": ModelClass("corrdp.nn.estimators", "CorrDPMLPClassifier", "CorrDPMLPRegressor"),
}


@dataclass(frozen=True, repr=False)
class Plan:
    """Everything that a run needs besides the data.

    Attributes
    ----------
    schema : Schema
    model : str
        A key of :data:`MODELS`.
    parameters : mapping
        Constructor parameters of the estimator that the file states.
    file : FileOptions
    sections : mapping
        ``[privacy]``, ``[training]`` and ``[file]`` as the user wrote them.
    """

    schema: Schema
    model: str
    parameters: Mapping[str, Any]
    file: FileOptions = field(default_factory=FileOptions)
    sections: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        self.estimator_class()

    def __repr__(self) -> str:
        return f"Plan(model={self.model!r}, parameters={dict(self.parameters)})"

    def estimator_class(self) -> Any:
        """The class that ``model`` names for this label.

        Raises
        ------
        ConfigurationError
            If there is no such model for this kind of label.
        """
        return _estimator_class(self.model, self.schema)

    def estimator(self) -> Any:
        """An unfitted estimator."""
        return self.estimator_class()(self.schema, **self.parameters)

    def to_toml(self) -> str:
        """The plan as TOML, to be kept beside the model.

        Without comments and without what an ignored column still said: in a draft both quote the
        records.
        """
        return f"{self.schema.to_toml()}\n{tomli_w.dumps(dict(self.sections))}"


def read_plan(source: str | Path, unconfirmed: Unconfirmed = "refuse") -> Plan:
    """Read a plan from a file (:class:`~pathlib.Path`) or from text.

    Parameters
    ----------
    source : Path or str
    unconfirmed : {"refuse", "accept"}
        What happens to entries with ``confirmed = false``; only a command that reads no data may
        accept them.

    Raises
    ------
    ConfigurationError
        In one line, for everything that is not understood.
    """
    text = _read(source) if isinstance(source, Path) else source
    where = source.name if isinstance(source, Path) else "plan"
    try:
        plain = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{where}: is not valid TOML: {error}") from None
    try:
        return _plan(plain, unconfirmed)
    except ConfigurationError as error:
        raise type(error)(f"{where}: {error}") from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: is not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise ConfigurationError(
            f"{path}: cannot be read ({error.strerror}); corrdp init drafts one"
        ) from None


def _plan(plain: Mapping[str, Any], unconfirmed: Unconfirmed) -> Plan:
    for section in ("label", "columns"):
        if not isinstance(plain.get(section), Mapping):
            raise ConfigurationError(f"has no [{section}] table; corrdp init drafts one")
    parts = {key: value for key, value in plain.items() if key not in SECTIONS}
    parts |= {"columns": {n: _without_leftovers(c) for n, c in parts["columns"].items()}}
    if unconfirmed == "accept":
        parts |= {"columns": {n: _accepted(c) for n, c in parts["columns"].items()}}
        parts |= {"label": _accepted(parts["label"])}
    schema = Schema.from_dict(parts)
    sections = {key: _section(plain, key) for key in SECTIONS if key in plain}
    privacy = _section(plain, "privacy")
    training = _section(plain, "training")
    model = training.pop("model", "ridge" if schema.label.is_numeric else "logistic")
    parameters = _parameters(model, schema, privacy, training)
    return Plan(schema, model, parameters, FileOptions.from_dict(_section(plain, "file")), sections)


def _without_leftovers(entry: Any) -> Any:
    """An ignored column, without bounds, levels and role that a draft had given it."""
    if not isinstance(entry, Mapping) or entry.get("kind") != "ignored":
        return entry
    leftovers = {item.name for kind in (Numeric, Categorical) for item in fields(kind)}
    return {key: value for key, value in entry.items() if key not in {*leftovers, "confirmed"}}


def _accepted(entry: Any) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    return {key: value for key, value in entry.items() if key != "confirmed"}


def _section(plain: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = plain.get(name, {})
    if not isinstance(section, Mapping):
        raise ConfigurationError(f"{name} = {section!r} must be a table: write [{name}]")
    return dict(section)


def _parameters(
    model: str, schema: Schema, privacy: Mapping[str, Any], training: Mapping[str, Any]
) -> dict[str, Any]:
    """Constructor parameters; privacy keys stand in [privacy], the others in either section."""
    known = [k for k in _estimator_class(model, schema)().get_params() if k not in PROCESS_ONLY]
    private = [*(key for key in known if key in _privacy_keys()), *DERIVED]
    misplaced = sorted(set(training) & set(private))
    if misplaced:
        raise ConfigurationError(f"[training]: {misplaced} belong(s) in [privacy]; move it there")
    twice = sorted(set(training) & set(privacy))
    if twice:
        raise ConfigurationError(f"{twice} stand(s) in [privacy] and in [training]; keep one")
    rest = [key for key in known if key not in private]
    for name, section, keys in (("privacy", privacy, private), ("training", training, rest)):
        unknown = sorted(set(section) - {*known, *DERIVED})
        if unknown:
            raise ConfigurationError(
                f"[{name}]: {unknown} not understood; known are {', '.join(sorted(keys))}"
            )
    values = {**privacy, **training}
    joint, estimate = values.pop("joint_distance", None), values.pop("estimate", None)
    if joint is not None:
        values["distances"] = _with_joint(values.get("distances", {}), joint)
    if estimate is not None:
        values["distances"] = _settings(values.get("distances", "private"), estimate)
    return values


def _with_joint(distances: object, joint: float) -> Any:
    """Given distances with d_U, the distance of all insensitive columns at once."""
    from corrdp.distance import Distances

    if not isinstance(distances, Mapping):
        raise ConfigurationError(
            f"[privacy]: joint_distance={joint!r} goes with given distances, not with "
            f"distances={distances!r}; remove one"
        )
    return Distances.given(distances, joint)


def _settings(distances: object, estimate: object) -> Any:
    """Settings of the private estimate, from the table ``[privacy.estimate]``."""
    from corrdp.distance import EstimateSettings

    if distances != "private":
        raise ConfigurationError(
            f"[privacy.estimate] goes with distances = 'private', not {distances!r}; remove one"
        )
    if not isinstance(estimate, Mapping):
        raise ConfigurationError(f"estimate = {estimate!r}: write a table [privacy.estimate]")
    try:
        return EstimateSettings.from_dict(estimate)
    except ConfigurationError as error:
        raise ConfigurationError(f"[privacy.estimate]: {error}") from None


def _privacy_keys() -> set[str]:
    from corrdp.privacy.budgets import PrivacyTarget

    return {item.name for item in fields(PrivacyTarget)} | {"distances"}


def _estimator_class(model: object, schema: Schema) -> Any:
    entry = MODELS.get(model) if isinstance(model, str) else None
    if entry is None:
        raise ConfigurationError(
            f"[training]: model = {model!r} is unknown; use one of {', '.join(MODELS)}"
        )
    numeric = schema.label.is_numeric
    name = entry.regressor if numeric else entry.classifier
    if name is None:
        fitting = [k for k, m in MODELS.items() if (m.regressor if numeric else m.classifier)]
        kind = "a number" if numeric else "classes"
        raise ConfigurationError(
            f"[training]: model = {model!r} does not fit the label {schema.label.name!r}, which "
            f"has {kind}; use {' or '.join(fitting)}"
        )
    try:
        return getattr(importlib.import_module(entry.module), name)
    except ImportError:
        if entry.extra is None:
            raise
        raise MissingExtraError(
            f"model = {model!r} needs more packages: pip install 'corrdp[{entry.extra}]'"
        ) from None


def file_section(path: Path) -> FileOptions:
    """The ``[file]`` table alone; defaults where there is no such file."""
    if not path.is_file():
        return FileOptions()
    try:
        return FileOptions.from_dict(_section(tomllib.loads(_read(path)), "file"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: is not valid TOML: {error}") from None
