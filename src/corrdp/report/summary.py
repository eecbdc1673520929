"""A certificate and its results as one dict that every rendering starts from.

Nothing here reads a record: a summary is made of released and public values only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corrdp.errors import ConfigurationError
from corrdp.privacy import gdp
from corrdp.privacy.ledger import Ledger, decode_array, decode_number
from corrdp.report.edges import sharp_edges
from corrdp.report.names import listed
from corrdp.schema import Categorical, Numeric, Schema

if TYPE_CHECKING:
    from corrdp.privacy.certificate import Certificate

__all__ = ["best_guess", "summarise"]

SOURCES = {
    "given": "stated by the user",
    "public": "public table",
    "private": "private estimate",
    "published": "read from this table, not accounted for",
    "exact": "known distribution",
    "none": "not stated",
    "sensitive": "sensitive",
}
ESTIMATE, QUERIES = "a private estimate of the distances", "answers to queries"


def best_guess(epsilon: float, delta: float) -> float:
    """How often the better of two equally likely values can be guessed: (1 + τ(ε, δ))/2.

    τ bounds the total variation of a pair of outputs (THEORY T3).

    Examples
    --------
    >>> round(best_guess(1.0, 1e-6), 3), best_guess(math.inf, 1e-6)
    (0.731, 1.0)
    """
    return (1.0 + float(gdp.tau(epsilon, delta))) / 2.0


def summarise(
    certificate: Certificate,
    *,
    metrics: Mapping[str, Any] | None = None,
    comparison: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Everything that a report says, before it is put into words or pictures.

    Parameters
    ----------
    certificate : Certificate
    metrics : mapping, optional
        Figures measured on other records, shown as not private.
    comparison : sequence of mappings
        ``{"method": str, "epsilon": float, "accuracy": float}`` per point of the picture
        "accuracy against ε"; ``epsilon`` may be ``inf``.

    Returns
    -------
    dict
        ``state`` ("holds", "does not hold" or "not private"), ``trained``, ``protected`` and
        ``unprotected`` (sentences), ``columns``, ``joint``, ``noise``, ``domain``,
        ``comparison``, ``metrics``, ``assumptions``, ``problems``, ``edges``, ``verify``.
    """
    claims = certificate.claims()
    ledgers = _ledgers(certificate.ledger)
    schema = Schema.from_dict(ledgers[0].one("declaration")["schema"])
    columns = [_column(row, certificate, schema) for row in certificate.columns]
    summary: dict[str, Any] = {
        "state": _state(certificate),
        "claims": claims,
        "trained": _trained(ledgers, certificate, schema),
        "columns": columns,
        "joint": _joint(certificate, columns),
        "noise": _noise(ledgers[0], schema),
        "domain": _domain(schema),
        "metrics": dict(metrics or {}),
        "comparison": [_point(point) for point in comparison],
        "assumptions": list(certificate.assumptions),
        "problems": list(certificate.problems),
        "verify": {"digest": certificate.to_dict()["digest"], "head": certificate.ledger.head},
    }
    summary["protected"] = _protected(summary)
    summary["unprotected"] = _unprotected(summary)
    summary["edges"] = sharp_edges(summary)
    return summary


def _state(certificate: Certificate) -> str:
    if not certificate.holds:
        return "does not hold"
    return "not private" if certificate.seeded else "holds"


def _ledgers(ledger: Ledger) -> list[Ledger]:
    """The ledger itself, or the parts of a combination."""
    parts = ledger.of_type("part")
    return [Ledger.from_list(part["ledger"]) for part in parts] or [ledger]


def _trained(ledgers: Sequence[Ledger], certificate: Certificate, schema: Schema) -> dict[str, Any]:
    releases: list[str] = []
    for ledger in ledgers:
        releases.extend(filter(None, (_release(ledger, entry) for entry in ledger.entries)))
    return {
        # the model first: an estimate of distances only serves it
        "releases": sorted(releases, key=lambda one: one == ESTIMATE),
        "records": certificate.n,
        "label": schema.label.name,
        "predicts": any(one not in (ESTIMATE, QUERIES) for one in releases),
        "columns": len(schema.used),
    }


def _release(ledger: Ledger, entry: Mapping[str, Any]) -> str:
    """One release in words; empty for entries that release nothing."""
    kind = str(entry["type"])
    if not kind.endswith("-release"):
        return ""
    if kind == "estimate-release":
        return ESTIMATE
    if kind == "query-release":
        return QUERIES
    budget = next(iter(ledger.of_type(kind.replace("-release", "-budget"))), {})
    loss = str(budget.get("loss", {}).get("name", ""))
    names = {"logistic": "a logistic regression", "squared": "a linear regression"}
    what = names.get(loss, "a neural network" if kind.startswith("network") else "a model")
    steps = budget.get("plan", {}).get("steps")
    return f"{what} in {steps} noisy steps" if steps else what


def _column(row: Mapping[str, Any], certificate: Certificate, schema: Schema) -> dict[str, Any]:
    group = schema.group_of(row["name"]) if row["name"] != schema.label.name else None
    source = row["distance_source"]
    return {
        **row,
        "is_label": row["name"] == schema.label.name,
        "group": None if group is None else group.name,
        "source": None if source is None else SOURCES.get(str(source), str(source)),
        "best_guess": best_guess(row["epsilon_holds"], certificate.delta)
        if row["epsilon_holds"] is not None
        else None,
    }


def _joint(certificate: Certificate, columns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    names = {
        "sensitive": "all sensitive columns together",
        "insensitive": "all insensitive columns together",
        "record": "the whole record (ordinary differential privacy)",
    }
    public = any(column["role"] == "public" for column in columns)
    if public:
        names["record"] = "the whole record but its public columns"
    return [
        {
            "key": key,
            "name": name,
            "epsilon": certificate.joint[key],
            "best_guess": best_guess(_loss(certificate.joint[key]), certificate.delta),
        }
        for key, name in names.items()
        if certificate.joint.get(key) is not None
    ]


def _loss(value: float | None) -> float:
    return math.inf if value is None else value


def _noise(ledger: Ledger, schema: Schema) -> list[dict[str, Any]]:
    """Noise of a step per column, in units of the most one record can add there (linear models).

    Mean over the steps as √(mean σ²), for a run of full batches.
    """
    from corrdp.erm.account import read_setup
    from corrdp.privacy.estimate import declaration_of

    releases = ledger.of_type("linear-release")
    if not releases or "sigma" not in releases[0]:
        return []
    setup = read_setup(ledger.of_type("linear-budget")[0])
    table = setup.table(declaration_of(ledger))
    sigma = np.sqrt(np.mean(decode_array(releases[0]["sigma"]) ** 2, axis=0))
    most = table.presence
    names = [block.name for block in table.encoder.blocks]
    intercept = len(names) - 1
    return [
        {
            "name": "intercept" if position == intercept else name,
            "records": float(noise / bound),
        }
        for position, (name, noise, bound) in enumerate(zip(names, sigma, most, strict=True))
    ]


def _domain(schema: Schema) -> list[dict[str, Any]]:
    """The public declaration of every used column and the label."""
    rows: list[dict[str, Any]] = []
    for name, column in schema.used.items():
        if isinstance(column, Numeric):
            rows.append({"name": name, "bounds": (column.low, column.high), "levels": None})
        elif isinstance(column, Categorical):
            rows.append({"name": name, "bounds": None, "levels": column.names})
    label = schema.label
    bounds = label.bounds if label.is_numeric else None
    rows.append({"name": label.name, "bounds": bounds, "levels": label.names or None})
    return rows


def _point(point: Mapping[str, Any]) -> dict[str, Any]:
    try:
        method, accuracy = str(point["method"]), float(point["accuracy"])
        epsilon = decode_number(point["epsilon"]) if point["epsilon"] != math.inf else math.inf
    except (KeyError, TypeError, ValueError):
        raise ConfigurationError(
            f"comparison: {point!r} is not understood; a point has method, epsilon and accuracy"
        ) from None
    if not epsilon > 0 or not math.isfinite(accuracy):
        raise ConfigurationError(f"comparison: {point!r} needs epsilon > 0 and a finite accuracy")
    return {"method": method, "epsilon": epsilon, "accuracy": accuracy}


# --- the plain paragraph -------------------------------------------------------------------------


def _protected(summary: Mapping[str, Any]) -> list[str]:
    """What is protected how strongly, in plain sentences."""
    claims, columns = summary["claims"], summary["columns"]
    joint = {row["key"]: row for row in summary["joint"]}
    sentences = []
    names = [column["name"] for column in columns if column["role"] == "sensitive"]
    if "sensitive" in joint:
        sentences.append(
            f"The sensitive columns ({listed(names)}) of every person are protected together. "
            "Somebody who knows everything else in the table, hesitates between two equally "
            "likely sets of values for one person and then sees all that was released, picks the "
            f"right one in at most {percent(joint['sensitive']['best_guess'])} of cases; without "
            f"it, in 50\u00a0% (ε\u00a0=\u00a0{loss(joint['sensitive']['epsilon'])}, "
            f"δ\u00a0=\u00a0{tiny(claims['delta'])})."
        )
    if _as_strong(joint):
        whole = joint["record"]["name"]
        sentences.append(f"What is said of them holds for {whole} just as well.")
    others = [c for c in columns if c["role"] == "insensitive" and not _open(c)]
    if others:
        weakest = max(others, key=lambda column: column["best_guess"])
        strongest = min(others, key=lambda column: column["best_guess"])
        low, high = percent(strongest["best_guess"]), percent(weakest["best_guess"])
        span = f"at most {high}" if low == high else f"at most {low} to {high}"
        sentences.append(
            f"Each of {len(others)} insensitive columns is protected by itself, less the less it "
            f"is held to tell about the sensitive ones: the same guess about one of them succeeds "
            f"in {span} of cases, depending on the column."
        )
    return sentences


def _unprotected(summary: Mapping[str, Any]) -> list[str]:
    """What is not protected, or less, in plain sentences."""
    columns = summary["columns"]
    joint = {row["key"]: row for row in summary["joint"]}
    sentences = []
    if "record" in joint and not _as_strong(joint):
        row = joint["record"]
        if _open(row):
            sentences.append(
                "Several columns changed at once, up to the whole record, have "
                f"{_none(row['epsilon'])}."
            )
        else:
            sentences.append(
                f"Several columns at once, up to the whole record, are protected only at ε\u00a0= "
                f"{loss(row['epsilon'])}: a guess between two whole records may be right in "
                f"{percent(row['best_guess'])} of cases."
            )
    open_ = [c for c in columns if c["role"] != "public" and _open(c)]
    if open_:
        weakest = max(column["epsilon_holds"] for column in open_)
        why = ""
        if all(column["distance"] == 0 for column in open_):
            why = ": a distance of 0 says that they tell nothing about the sensitive columns"
        names = listed([column["name"] for column in open_])
        sentences.append(f"By themselves, these have {_none(weakest)}: {names}{why}.")
    public = [c["name"] for c in columns if c["role"] == "public"]
    if public:
        sentences.append(f"Public columns ({listed(public)}) are not protected at all.")
    sentences.append(
        "What is true of people in general is not hidden: a model may tell that two things go "
        "together, and about a person what follows from that, whether or not the person is in the "
        "table."
    )
    return sentences


def _as_strong(joint: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether the whole record is protected like the sensitive columns."""
    if not {"sensitive", "record"} <= set(joint):
        return False
    return bool(joint["record"]["epsilon"] <= joint["sensitive"]["epsilon"] * (1 + 1e-9))


def _open(row: Mapping[str, Any]) -> bool:
    """Whether so large a loss holds that it limits next to nothing."""
    return float(row["best_guess"]) > 0.9999


def _none(epsilon: float) -> str:
    practically = "" if math.isinf(epsilon) else "practically "
    return f"{practically}no protection (ε\u00a0= {loss(epsilon)})"


def percent(share: float) -> str:
    """A probability for people, rounded up; ``100 %`` for certainty alone."""
    if share >= 1.0:
        return "100\u00a0%"
    if share <= 0.99:
        return f"{math.ceil(share * 100 - 1e-9)}\u00a0%"
    if share <= 0.9999:
        return f"{math.ceil(share * 1e4 - 1e-9) / 100:g}\u00a0%"
    return "almost 100\u00a0%"


def loss(value: float | None) -> str:
    """An ε for people."""
    from corrdp.report.summarise import format_loss

    return format_loss(value)


def tiny(value: float) -> str:
    """A δ for people: ``1e-6``."""
    return f"{value:g}".replace("e-0", "e-")
