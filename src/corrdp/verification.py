"""From a ledger to its certificate, and from a certificate back to the truth of its claims.

``certify`` computes every number of a certificate from the ledger; fitting uses it once and
``verify`` uses it again, so both say the same. Verification proves the arithmetic's integrity,
not that the run happened (THEORY, sharp edge 10).
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.errors import ConfigurationError, CorrDPError, VerificationError
from corrdp.neighbours import INSENSITIVE, RECORD, SENSITIVE
from corrdp.privacy import gdp
from corrdp.privacy.budgets import KindBudget
from corrdp.privacy.certificate import (
    Certificate,
    ReleaseAccount,
    loss_together,
    read_certificate_file,
)
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.estimate import declaration_of
from corrdp.privacy.ledger import Ledger, digest
from corrdp.schema import Schema
from corrdp.version import __version__

__all__ = ["Verification", "certify", "combine", "verify"]

FloatArray: TypeAlias = NDArray[np.float64]
Accounts: TypeAlias = Callable[[Declaration, Ledger], list[ReleaseAccount]]

# Entry type → module and function that recompute what such releases spent.
MECHANISMS: dict[str, tuple[str, str]] = {
    "estimate-release": ("corrdp.privacy.estimate", "estimate_accounts"),
    "linear-release": ("corrdp.erm.account", "linear_accounts"),
    "network-release": ("corrdp.nn.account", "network_accounts"),
    "query-release": ("corrdp.queries.account", "query_accounts"),
    "moments-model": ("corrdp.queries.account", "model_accounts"),
}
PASSIVE = (
    "declaration",
    "estimate-budget",
    "linear-budget",
    "network-budget",
    "query-budget",
)


@dataclass(frozen=True)
class Verification:
    """Result of :func:`verify`.

    Attributes
    ----------
    holds : bool
        Whether every check passed.
    problems : tuple of str
        One sentence per failed check.
    certificate : Certificate or None
        The certificate recomputed from the ledger; None when the ledger is damaged.
    """

    holds: bool
    problems: tuple[str, ...]
    certificate: Certificate | None


def accounts_of(declaration: Declaration, ledger: Ledger) -> list[ReleaseAccount]:
    """Accounts of every release in the ledger; an unknown entry is refused, never skipped."""
    known = {*MECHANISMS, *PASSIVE}
    unknown = sorted({str(entry["type"]) for entry in ledger.entries} - known)
    if unknown:
        raise VerificationError(f"ledger entries of unknown type {unknown}")
    accounts: list[ReleaseAccount] = []
    for kind, (module, function) in MECHANISMS.items():
        if ledger.of_type(kind):
            recompute: Accounts = getattr(importlib.import_module(module), function)
            accounts.extend(recompute(declaration, ledger))
    return accounts


def certify(ledger: Ledger) -> Certificate:
    """The certificate of a ledger, or of a combination of ledgers.

    Raises
    ------
    VerificationError
        If the ledger is damaged or incomplete.
    """
    parts = ledger.of_type("part")
    if parts:
        ledgers = [Ledger.from_list(part["ledger"]) for part in parts]
        if len(parts) != len(ledger.entries):
            raise VerificationError("a combination holds nothing but parts")
    else:
        ledgers = [ledger]
    declarations = [declaration_of(one) for one in ledgers]
    accounts = [accounts_of(*pair) for pair in zip(declarations, ledgers, strict=True)]
    if not all(accounts):
        raise VerificationError("the ledger holds no release")
    flat = [account for part in accounts for account in part]
    if parts:
        _check_combinable(declarations)
        rows, joint = _combined_claims(_strictest(declarations), flat)
    else:
        losses = _losses(declarations[0], flat)
        rows, joint = _rows(declarations[0], losses), losses
    return _certificate(ledger, declarations, flat, rows, joint)


def _certificate(
    ledger: Ledger,
    declarations: Sequence[Declaration],
    accounts: Sequence[ReleaseAccount],
    rows: Sequence[Mapping[str, Any]],
    losses: Mapping[str, float],
) -> Certificate:
    first = _strictest(declarations)
    problems = tuple(problem for account in accounts for problem in account.problems)
    epsilon = first.target.epsilon
    if len(declarations) > 1:
        epsilon = losses.get(SENSITIVE, max(losses.values()))
    return Certificate(
        n=first.n,
        epsilon=epsilon,
        delta=first.target.delta,
        adjacency=first.target.adjacency,
        records_per_person=max(one.target.records_per_person for one in declarations),
        holds=not problems,
        seeded=any(one.seeded for one in declarations),
        floating_point_noise=False,
        confidence=None if first.distances.gamma is None else 1.0 - first.distances.gamma,
        assumptions=_assumptions(declarations),
        columns=tuple(rows),
        joint={
            "sensitive": losses.get(SENSITIVE),
            "insensitive": losses.get(INSENSITIVE),
            "record": _record_loss(first.schema, losses.get(RECORD)),
        },
        ledger=ledger,
        problems=problems,
        library_version=__version__,
    )


def _record_loss(schema: Schema, loss: float | None) -> float | None:
    """ε of the whole record; nothing is said about it when all but S is public (THEORY T1)."""
    names = (*schema.used, schema.label.name)
    roles = {schema.role(name) for name in names}
    return math.inf if "public" in roles and "insensitive" not in roles else loss


def _losses(declaration: Declaration, accounts: Sequence[ReleaseAccount]) -> dict[str, float]:
    """ε at δ that holds for every kind, all releases together."""
    delta = declaration.target.delta
    losses = {}
    for position, budget in enumerate(declaration.budgets()):
        loss = loss_together(accounts, position, delta)
        if budget.delta < delta:
            # the budget followed a released distance: it was met at δ/m, which sums to δ (T10)
            loss = min(loss, loss_together(accounts, position, budget.delta, "run"))
        losses[budget.kind.name] = loss
    return losses


def _rows(declaration: Declaration, losses: Mapping[str, float]) -> list[dict[str, Any]]:
    """One row per used column, and one for the label."""
    schema = declaration.schema
    budgets = {budget.kind.name: budget for budget in declaration.budgets()}
    rows = []
    for name in (*schema.used, schema.label.name):
        role = schema.role(name)
        group = schema.group_of(name)
        kind = SENSITIVE if role == "sensitive" else group.name if group else name
        if role == "public":
            rows.append(_public_row(name))
        else:
            rows.append(_row(declaration, name, role, budgets[kind], losses[kind]))
    return rows


def _public_row(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "role": "public",
        "distance": None,
        "distance_interval": None,
        "distance_source": None,
        "epsilon_target": math.inf,
        "epsilon_holds": math.inf,
        "belief_shift": None,
    }


def _row(
    declaration: Declaration, name: str, role: str, budget: KindBudget, holds: float
) -> dict[str, Any]:
    entry = declaration.distances.get(budget.kind.name)
    interval = None
    if entry is not None and entry.low is not None and entry.high is not None:
        interval = [entry.low, entry.high]
    source = "sensitive" if role == "sensitive" else "none" if entry is None else entry.source
    delta = declaration.target.delta
    return {
        "name": name,
        "role": role,
        "distance": budget.distance,
        "distance_interval": interval,
        "distance_source": source,
        "epsilon_target": budget.epsilon,
        "epsilon_holds": holds,
        "belief_shift": budget.distance * float(gdp.tau(holds, delta)),
    }


def _assumptions(declarations: Sequence[Declaration]) -> tuple[str, ...]:
    """Sentences on which the guarantee rests."""
    declaration = declarations[0]
    target, schema = declaration.target, declaration.schema
    sentences = [
        "Neighbouring tables differ by substituting values in one record; the number of records "
        "is public.",
        "Bounds, levels, roles and groups are public declarations that were not learned from "
        "this table.",
    ]
    if target.records_per_person > 1:
        sentences.append(f"One person owns at most {target.records_per_person} records.")
    else:
        sentences.append("One person owns one record.")
    if len(schema.names("insensitive")) > 1 and target.adjacency == "feature":
        sentences.append(
            "The loss of a column holds for a change of that column alone; losses of several "
            "columns do not add up to a joint one: read the joint rows."
        )
    if any(entry.source == "given" for entry in declaration.distances.values()):
        sentences.append("Given distances are the user's statement about the population.")
    if declaration.distances:
        sentences.append(
            "Distances are marginal: they suppose an observer who knows nothing else about the "
            "person."
        )
    sentences.extend(declaration.distances.assumptions)
    if any(one.seeded for one in declarations):
        sentences.append("The noise was seeded and can be subtracted: this run is not private.")
    return tuple(sentences)


def combine(certificates: Sequence[Certificate]) -> Certificate:
    """One certificate for several: squared μ add up kind by kind (THEORY T3, T4)."""
    if not certificates:
        raise ConfigurationError("nothing to combine: pass at least one certificate")
    ledger = Ledger()
    for certificate in certificates:
        parts = certificate.ledger.of_type("part")
        for entries in [p["ledger"] for p in parts] or [certificate.ledger.to_list()]:
            ledger = ledger.append("part", {"ledger": entries})
    return certify(ledger)


def _strictest(declarations: Sequence[Declaration]) -> Declaration:
    """The one whose δ stands for all: pure releases join others at their δ."""
    return max(declarations, key=lambda one: one.target.delta)


def _check_combinable(declarations: Sequence[Declaration]) -> None:
    """Losses add only when all parts speak of the same kinds, distances and δ."""
    first = _strictest(declarations)
    for other in declarations:
        same = (other.kinds, other.n, other.target.adjacency) == (
            first.kinds,
            first.n,
            first.target.adjacency,
        )
        same = same and other.target.delta in (0.0, first.target.delta)
        values = {name: entry.value for name, entry in other.distances.items()}
        if not same or values != {n: entry.value for n, entry in first.distances.items()}:
            raise ConfigurationError(
                "certificates add up only for the same columns, roles, distances, delta, "
                "adjacency and number of records"
            )
    if any(budget.delta < one.target.delta for one in declarations for budget in one.budgets()):
        raise ConfigurationError(
            "certificates with privately estimated distances do not add in Gaussian DP; use "
            "PrivacyBudget(composition='basic')"
        )


def _combined_claims(
    declaration: Declaration, accounts: Sequence[ReleaseAccount]
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Rows whose target is what all parts were allowed together."""
    delta = declaration.target.delta
    losses = {
        kind.name: loss_together(accounts, position, delta)
        for position, kind in enumerate(declaration.kinds)
    }
    rows = _rows(declaration, losses)
    for row in rows:
        row["epsilon_target"] = row["epsilon_holds"]
    return rows, losses


def verify(source: str | Path | Mapping[str, Any]) -> Verification:
    """Check a certificate: digests, claims, every step's budget, and the model from iterates.

    Parameters
    ----------
    source : path or mapping
        ``certificate.json`` or its content. A ``model.json`` beside the file is checked too.

    Returns
    -------
    Verification
        Never raises for a certificate that does not hold; the reasons are listed.
    """
    try:
        plain = read_certificate_file(source) if isinstance(source, (str, Path)) else source
        ledger = Ledger.from_list(plain.get("ledger") or [])
        certificate = certify(ledger)
    except CorrDPError as error:
        return Verification(False, (str(error),), None)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        return Verification(False, (f"the certificate is damaged: {error!r:.200}",), None)
    problems = [*certificate.problems, *_claim_problems(plain, certificate)]
    if isinstance(source, (str, Path)):
        model = Path(source).with_name("model.json")
        if model.is_file():
            problems += _model_file_problems(model, certificate)
    return Verification(not problems, tuple(problems), certificate)


def _claim_problems(plain: Mapping[str, Any], certificate: Certificate) -> list[str]:
    """Differences between what a file claims and what its ledger supports."""
    problems = []
    body = {key: value for key, value in plain.items() if key != "digest"}
    if plain.get("digest") != digest(body):
        problems.append("the certificate was changed after it was written (digest)")
    for key, value in certificate.claims().items():
        if key == "library_version":
            continue
        if key not in plain:
            problems.append(f"the certificate has no {key!r}")
        elif not _same(plain[key], value):
            problems.append(f"the claim {key!r} is not what the ledger supports")
    return problems


def _same(claimed: Any, computed: Any) -> bool:
    """Equality with a slack for platforms in numbers."""
    if isinstance(claimed, Mapping) and isinstance(computed, Mapping):
        return claimed.keys() == computed.keys() and all(
            _same(claimed[key], computed[key]) for key in computed
        )
    if isinstance(claimed, list) and isinstance(computed, list):
        return len(claimed) == len(computed) and all(map(_same, claimed, computed))
    if isinstance(claimed, float) and isinstance(computed, float):
        return math.isclose(claimed, computed, rel_tol=1e-6, abs_tol=1e-12)
    return bool(claimed == computed)


def _model_file_problems(path: Path, certificate: Certificate) -> list[str]:
    from corrdp.model_file import model_problems

    return model_problems(path, certificate)
