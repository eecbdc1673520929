"""The certificate: which loss holds for every column, computed from a ledger alone.

A :class:`ReleaseAccount` says what one release spends per neighbour kind; accounts of several
releases add up (adaptive composition of Gaussian DP, THEORY T4). Everything printed is what was
fixed beforehand, never a realised sum.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.errors import ConfigurationError, VerificationError
from corrdp.noise import Slack, gaussian_slack
from corrdp.privacy import gdp, subsampled
from corrdp.privacy.budgets import RESERVE
from corrdp.privacy.ledger import Ledger, digest, encode_number

__all__ = [
    "FORMAT_VERSION",
    "Certificate",
    "ReleaseAccount",
    "SamplerUse",
    "Subsampling",
    "certified_loss",
    "loss_together",
]

FloatArray: TypeAlias = NDArray[np.float64]
FORMAT_VERSION = 1


@dataclass(frozen=True)
class SamplerUse:
    """How the lattice sampler was used: what its slack depends on (THEORY T14).

    Attributes
    ----------
    draws : int
        Noisy coordinates times steps.
    scale : float
        Largest σ/h that was reserved for.
    steps : int
        Releases that share a kind's budget equally.
    """

    draws: int
    scale: float
    steps: int

    def slack(self, shift: float, epsilon: float, delta: float) -> Slack:
        """Slack where outputs shift by at most ``shift`` deviations a step, for ε at δ."""
        log_failure = math.log(RESERVE * delta / 4.0) - epsilon
        failure = math.exp(log_failure) if log_failure > -690 else 0.0
        return gaussian_slack(self.draws, self.scale, shift, failure)


@dataclass(frozen=True)
class Subsampling:
    """Poisson sampling of a release's steps (THEORY T7).

    Attributes
    ----------
    rate : float
        Probability that a person takes part in a step.
    steps : int
    presence : float
        c: bound on a contribution in units of the noise.
    """

    rate: float
    steps: int
    presence: float


@dataclass(frozen=True)
class ReleaseAccount:
    """What one release spends.

    Attributes
    ----------
    name : str
    run : array of shape (kinds,)
        Squared μ that the allocation met for each kind; ``inf`` where unlimited.
    fixed : array of shape (kinds,)
        μ guaranteed by what was fixed before the first release of the ledger.
    sampler : SamplerUse
    problems : tuple of str
        What does not hold; empty when everything was checked and fits.
    pure : array of shape (kinds,), optional
        ε at δ = 0 guaranteed by what was fixed before the release; only for exact samplers.
    subsampling : Subsampling, optional
        Set for Poisson-sampled steps; then ``run`` holds squared changes a_k² of one step and
        ``fixed`` changes a_κ, both in units of the noise.
    """

    name: str
    run: FloatArray
    fixed: FloatArray
    sampler: SamplerUse
    problems: tuple[str, ...] = ()
    pure: FloatArray | None = None
    subsampling: Subsampling | None = None


def certified_loss(mus: Sequence[float], samplers: Sequence[SamplerUse], delta: float) -> float:
    """ε that releases with these μ guarantee together at δ, the sampler's slack included.

    Rounded up; ``inf`` where a μ is infinite or the slack does not fit into the reserve of δ.
    """
    total = math.sqrt(sum(mu**2 for mu in mus)) * (1.0 + 1e-15)
    if math.isinf(total):
        return math.inf
    ideal_delta = delta * (1.0 - RESERVE)
    ideal = float(gdp.epsilon(total, ideal_delta))
    shifts = [mu / math.sqrt(s.steps) for s, mu in zip(samplers, mus, strict=True)]
    return _with_slack(samplers, shifts, ideal, delta)


def _with_slack(
    samplers: Sequence[SamplerUse], shifts: Sequence[float], ideal: float, delta: float
) -> float:
    """ε at δ of an ideal mechanism that has ``ideal`` at δ less the reserve."""
    try:
        parts = [s.slack(shift, ideal, delta) for s, shift in zip(samplers, shifts, strict=True)]
    except ConfigurationError:
        return math.inf
    epsilon, reached = Slack.combine(*parts).apply(ideal, delta * (1.0 - RESERVE))
    return epsilon if reached <= delta else math.inf


def subsampled_loss(use: Subsampling, change: float, sampler: SamplerUse, delta: float) -> float:
    """ε at δ of Poisson-sampled steps that a change moves by ``change``, slack included."""
    if math.isinf(use.presence):
        return math.inf
    ideal = subsampled.epsilon(use.rate, use.presence, change, use.steps, delta * (1.0 - RESERVE))
    return _with_slack([sampler], [2.0 * use.presence], ideal, delta)


def loss_together(
    accounts: Sequence[ReleaseAccount], position: int, delta: float, part: str = "fixed"
) -> float:
    """ε at δ that releases guarantee together for one kind.

    Gaussian releases add squared μ. Pure releases add their ε, or enter through
    μ = −2Φ⁻¹(1/(1+e^ε)), whichever is less. Poisson-sampled runs are added by basic composition,
    δ split equally between them and all Gaussian ones together (THEORY T3, T4, T10). Rounded up.
    ``part`` is ``"fixed"`` (what was fixed before the first release) or ``"run"``.

    Raises
    ------
    VerificationError
        If δ = 0 is claimed for a release that is not pure.
    """
    sampled = [one for one in accounts if one.subsampling is not None]
    plain = [one for one in accounts if one.subsampling is None]
    noisy = [one for one in plain if one.pure is None]
    losses = [float(one.pure[position]) for one in plain if one.pure is not None]
    pure = math.fsum(losses)
    if len(losses) > 1:  # a single loss is not rounded
        pure = math.nextafter(pure, math.inf)
    if not noisy and not sampled:
        return pure
    if not delta > 0:
        name = (noisy or sampled)[0].name
        raise VerificationError(f"the release {name!r} is not pure: delta must be positive")
    share = delta / (len(sampled) + bool(noisy))
    total = pure
    for one in sampled:
        amount = _amount(one, position, part)
        total += subsampled_loss(_checked(one.subsampling), amount, one.sampler, share)
    if noisy:
        total += _gaussian_loss(noisy, position, share, part)
    total *= 1.0 + 1e-15
    if sampled or len(noisy) == len(plain):
        return total
    return min(total, _gaussian_loss(plain, position, delta, part))


def _amount(account: ReleaseAccount, position: int, part: str) -> float:
    if part == "run":
        return math.sqrt(float(account.run[position]))
    return float(account.fixed[position])


def _checked(use: Subsampling | None) -> Subsampling:
    if use is None:
        raise VerificationError("a sampled release has no sampling rate")
    return use


def _gaussian_loss(
    accounts: Sequence[ReleaseAccount], position: int, delta: float, part: str
) -> float:
    mus = [_amount(account, position, part) for account in accounts]
    return certified_loss(mus, [account.sampler for account in accounts], delta)


@dataclass(frozen=True, repr=False)
class Certificate:
    """What is guaranteed, for whom, and under which assumptions.

    Attributes follow the ``certificate.json`` contract; ``columns`` holds one mapping per column
    (label included), ``joint`` the ε at δ for all sensitive columns, all insensitive columns and
    the whole record. ``str(certificate)`` is meant for people.
    """

    n: int
    epsilon: float
    delta: float
    adjacency: str
    records_per_person: int
    holds: bool
    seeded: bool
    floating_point_noise: bool
    confidence: float | None
    assumptions: tuple[str, ...]
    columns: tuple[Mapping[str, Any], ...]
    joint: Mapping[str, float | None]
    ledger: Ledger = field(repr=False)
    problems: tuple[str, ...] = ()
    library_version: str = ""
    neighbouring_relation: str = "substitution"

    def __repr__(self) -> str:
        return (
            f"Certificate(epsilon={self.epsilon:g}, delta={self.delta:g}, n={self.n}, "
            f"holds={self.holds})"
        )

    def __str__(self) -> str:
        from corrdp.report.summarise import certificate_text

        return certificate_text(self)

    def _repr_html_(self) -> str:
        from corrdp.report.inline import certificate_html

        return certificate_html(self)

    def to_markdown(self) -> str:
        """Sentences, table and assumptions as Markdown, names escaped."""
        from corrdp.report.inline import certificate_markdown

        return certificate_markdown(self)

    def claims(self) -> dict[str, Any]:
        """Everything but ledger and digest, as plain JSON values."""
        return {
            "format_version": FORMAT_VERSION,
            "library_version": self.library_version,
            "n": self.n,
            "epsilon": encode_number(self.epsilon),
            "delta": self.delta,
            "neighbouring_relation": self.neighbouring_relation,
            "adjacency": self.adjacency,
            "records_per_person": self.records_per_person,
            "holds": self.holds,
            "seeded": self.seeded,
            "floating_point_noise": self.floating_point_noise,
            "confidence": self.confidence,
            "assumptions": list(self.assumptions),
            "problems": list(self.problems),
            "columns": [_plain(column) for column in self.columns],
            "joint": _plain(self.joint),
        }

    def to_dict(self) -> dict[str, Any]:
        """The content of ``certificate.json``."""
        body = {**self.claims(), "ledger": self.ledger.to_list()}
        return {**body, "digest": digest(body)}

    def save(self, path: str | Path) -> None:
        """Write ``certificate.json`` atomically."""
        from corrdp.files import write_text

        write_text(Path(path), json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")

    def row(self, name: str) -> Mapping[str, Any]:
        """The row of one column.

        Raises
        ------
        KeyError
            If the certificate has no such column.
        """
        for column in self.columns:
            if column["name"] == name:
                return column
        raise KeyError(name)

    @staticmethod
    def combine(*certificates: Certificate) -> Certificate:
        """One certificate for several releases on the same table (adaptive composition).

        Raises
        ------
        ConfigurationError
            If schema, distances, δ, n or adjacency differ: then the losses do not add.
        """
        from corrdp.verification import combine

        return combine(certificates)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _plain_value(value) for key, value in row.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, float):
        return encode_number(value)
    if isinstance(value, (tuple, list)):
        return [_plain_value(item) for item in value]
    return value


def read_certificate_file(path: str | Path) -> dict[str, Any]:
    """The JSON object of a certificate file; damaged files do not verify."""
    try:
        plain = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise VerificationError(f"{path}: cannot be read as a certificate ({error})") from None
    if not isinstance(plain, dict):
        raise VerificationError(f"{path}: is not a certificate")
    return plain
