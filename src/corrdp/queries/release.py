"""Answer several queries on one table in one release, under one budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corrdp.distance import Distances
from corrdp.errors import ConfigurationError
from corrdp.neighbours import Adjacency
from corrdp.noise import RandomState, noise_source
from corrdp.privacy.budget import PrivacyBudget
from corrdp.privacy.budgets import PrivacyTarget, PureTarget
from corrdp.privacy.declaration import Declaration
from corrdp.privacy.ledger import Ledger
from corrdp.queries.account import write_release
from corrdp.queries.answers import answer
from corrdp.queries.coding import Checked, read_checked
from corrdp.queries.plan import Calibration, Mechanism, plan_queries
from corrdp.queries.query import Query
from corrdp.queries.results import QueryResult, QueryResults
from corrdp.schema import Schema
from corrdp.verification import certify

__all__ = ["release"]


def release(
    table: Any,
    schema: Schema,
    queries: Query | Sequence[Query] | Mapping[str, Query],
    *,
    epsilon: float,
    delta: float = 0.0,
    distances: Distances | Mapping[str, float] | None = None,
    mechanism: Mechanism = "gaussian",
    calibration: Calibration = "optimal",
    adjacency: Adjacency = "feature",
    epsilon_cap: float | None = None,
    record_epsilon: float | None = None,
    insensitive_epsilon: float | None = None,
    records_per_person: int = 1,
    label: Any = None,
    budget: PrivacyBudget | None = None,
    random_state: RandomState = None,
) -> QueryResults:
    """Noisy answers with standard errors and one certificate.

    Parameters
    ----------
    table : DataFrame, mapping of columns or array of shape (n, columns)
        All of the schema's columns; the label's is needed where a query names it.
    schema : Schema
    queries : Query, or sequence or mapping of them
        All share the budget; a sum that several of them need is released once.
    epsilon, delta : float
        Loss of the sensitive columns; ``delta`` is 0 for ``"laplace"`` and in (0, 1/n] for
        ``"gaussian"``.
    distances : Distances or mapping of str to float, optional
        d_i by column, group or label name; one that is not named gets d = 1.
    mechanism : {"gaussian", "laplace"}
        (ε, δ) by Gaussian DP, or pure ε.
    calibration : {"optimal", "one-scale"}
        Least total variance in public units (THEORY T5), or the published mechanism's one scale.
    adjacency, epsilon_cap, record_epsilon, insensitive_epsilon, records_per_person
        As for the estimators.
    label : array of shape (n,), optional
        The label, where it is not a column of ``table``.
    budget : PrivacyBudget, optional
        Charged per kind with what this release takes, before anything is drawn.
    random_state : int, optional
        Seeded noise can be subtracted: for tests only; the certificate says so.

    Raises
    ------
    ConfigurationError, DataError
        Before anything is spent or drawn.
    BudgetExceededError
        If ``budget`` has too little left; nothing was drawn.

    Examples
    --------
    >>> from corrdp.schema import Categorical, Label, Numeric, Schema
    >>> from corrdp.queries import Histogram, Mean, release
    >>> schema = Schema(
    ...     {"age": Numeric(0, 100, role="insensitive"), "sex": Categorical(["f", "m"])},
    ...     Label("y", [0, 1], role="public"),
    ... )
    >>> table = {"age": [20, 40, 60, 80] * 100, "sex": ["f", "m"] * 200}
    >>> asked = [Mean("age"), Histogram("sex")]
    >>> results = release(
    ...     table, schema, asked, epsilon=1.0, mechanism="laplace", distances={"age": 0.1}
    ... )
    >>> bool(abs(results["mean(age)"].value - 50) < 1), results.certificate.holds
    (True, True)
    """
    source = noise_source(random_state)
    target = _target(
        mechanism,
        epsilon,
        delta,
        adjacency,
        epsilon_cap,
        record_epsilon,
        insensitive_epsilon,
        records_per_person,
    )
    named = _named(queries)
    checked = read_checked(table, schema, label)
    if not delta * checked.size <= 1:
        raise ConfigurationError(
            f"delta={delta:g} exceeds 1/n = {1 / checked.size:.3g}: publishing a random record "
            "would satisfy it; lower delta"
        )
    declaration = Declaration(schema, target, checked.size, _distances(distances), source.seeded)
    plan = plan_queries(declaration, named, mechanism, calibration)
    _check_label(named, schema, checked)
    if budget is not None:
        budget.charge(plan.charge())
    ledger = Ledger().append("declaration", declaration.to_entry())
    ledger, released = write_release(plan, checked, source.child("queries"), ledger)
    results = {}
    for name, query in named.items():
        found = answer(query, declaration, released)
        results[name] = QueryResult(query, found.value, found.standard_error, found.levels)
    return QueryResults(results, certify(ledger))


def _target(
    mechanism: str,
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    epsilon_cap: float | None,
    record_epsilon: float | None,
    insensitive_epsilon: float | None,
    records_per_person: int,
) -> PrivacyTarget:
    """The target of a release; δ must be what the mechanism can give."""
    if isinstance(delta, bool) or not isinstance(delta, (int, float)):
        raise ConfigurationError(f"delta={delta!r} is not a number")
    if mechanism == "laplace" and delta != 0:
        raise ConfigurationError(
            f"delta={delta!r}: mechanism='laplace' is pure; leave delta out or use 'gaussian'"
        )
    if mechanism != "laplace" and delta == 0:
        raise ConfigurationError(
            "delta=0: Gaussian noise needs a positive delta, for example 1e-6; for delta=0 use "
            "mechanism='laplace'"
        )
    kind = PureTarget if mechanism == "laplace" else PrivacyTarget
    return kind(
        epsilon,
        float(delta),
        adjacency,
        epsilon_cap,
        record_epsilon,
        insensitive_epsilon,
        records_per_person,
    )


def _named(queries: Query | Sequence[Query] | Mapping[str, Query]) -> dict[str, Query]:
    if isinstance(queries, Query):
        queries = [queries]
    if isinstance(queries, Mapping):
        named = dict(queries)
    elif isinstance(queries, Sequence) and all(isinstance(one, Query) for one in queries):
        names = [one.name for one in queries]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ConfigurationError(f"queries ask {repeated} twice; a mapping gives own names")
        named = dict(zip(names, queries, strict=True))
    else:
        raise ConfigurationError(f"queries={queries!r}: pass a query, or a list or mapping of them")
    for name, one in named.items():
        if not isinstance(name, str) or not isinstance(one, Query):
            raise ConfigurationError(f"queries[{name!r}]={one!r} is not a query")
    return named


def _distances(distances: object) -> Distances:
    if distances is None:
        return Distances({})
    if isinstance(distances, Distances):
        return distances
    if isinstance(distances, Mapping):
        return Distances.given(distances)
    raise ConfigurationError(f"distances={distances!r}: pass a mapping from column to d")


def _check_label(queries: Mapping[str, Query], schema: Schema, table: Checked) -> None:
    for name, query in queries.items():
        if schema.label.name in query.columns and schema.label.name not in table.columns:
            raise ConfigurationError(
                f"{name}: the table has no column {schema.label.name!r}; pass label="
            )
