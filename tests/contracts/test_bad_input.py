"""Bad input: a one-line error before anything is spent, or a declared treatment.

Declared treatment: what lies inside the declared domain (one class present, a constant column,
two columns with the same content) is trained as usual at finite ε, because an error would itself
tell something about the records. Everything else is refused before the budget is touched.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from corrdp.errors import ConfigurationError, CorrDPError, DataError, UtilityWarning
from corrdp.schema import Categorical, Numeric, Schema
from tests.contracts.cases import Case, N


def refused(
    case: Case, tmp_path: Path, X: Any, y: Any, message: str, **parameters: Any
) -> CorrDPError:
    """The fit is refused in one line; the account and the model are untouched."""
    account = tmp_path / "account.json"
    budget = case.account(5.0, account)
    before = account.read_bytes()
    model = case.make(**{"budget": budget, **parameters})
    with pytest.raises(CorrDPError, match=message) as caught:
        model.fit(X, y)
    assert "\n" not in str(caught.value)
    assert account.read_bytes() == before
    assert not any(hasattr(model, name) for name in ("coef_", "theta_", "certificate_"))
    assert {p.name for p in tmp_path.iterdir()} <= {"account.json", "account.json.lock"}
    return caught.value


def with_column(X: dict[str, Any], name: str, value: Any, row: int = 3) -> dict[str, Any]:
    """The table with one value changed, the column as objects."""
    column = np.array(X[name], dtype=object)
    column[row] = value
    return {**X, name: column}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("age", np.nan, r"column 'age' has 1 missing value\(s\), the first in record 3; declare"),
        ("age", None, "column 'age' has 1 missing value"),
        ("age", pd.NA, "column 'age' has 1 missing value"),
        ("age", np.inf, "column 'age' holds an infinite value in record 3"),
        ("age", -np.inf, "column 'age' holds an infinite value in record 3"),
        ("age", "forty", "column 'age' holds 'forty', not a number"),
        ("age", 1j, "column 'age' holds .*not a number"),
        ("age", [1], "column 'age' holds .*not a number"),
        ("sex", "X", "column 'sex': level 'X' is not declared; add it to levels or set other"),
        ("sex", None, "column 'sex' has missing values; declare missing="),
        ("sex", b"F", "column 'sex' holds a value of type bytes"),
        ("sex", 0.5, "column 'sex': level '0.5' is not declared"),
    ],
)
def test_bad_value(case: Case, tmp_path: Path, name: str, value: Any, message: str) -> None:
    X, y = case.data()
    refused(case, tmp_path, with_column(X, name, value), y, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: {**X, "age": X["age"].astype(complex)}, "column 'age' holds complex128"),
        (lambda X: {**X, "age": X["age"].astype("M8[s]")}, "column 'age' holds datetime64"),
        (lambda X: {**X, "sex": X["sex"].astype("S1")}, r"column 'sex' holds \|S1"),
        (lambda X: {**X, "more": X["age"]}, r"in the table but not in the schema: \['more'\]"),
        (lambda X: {k: v for k, v in X.items() if k != "sex"}, r"not in the table: \['sex'\]"),
        (lambda X: {**X, "y": X["age"]}, "the label 'y' stands in the table"),
        (lambda X: {k: v[:0] for k, v in X.items()}, "the table has no records"),
        (lambda X: {**X, "age": X["age"][:-1]}, "columns have different lengths"),
        (lambda X: pd.DataFrame(X).iloc[:0], "the table has no records"),
        (lambda X: pd.DataFrame(X)[["age", "age", "sex"]], "more than once"),
        (lambda X: X["age"], "two-dimensional"),
        (lambda X: None, "cannot read a table from NoneType"),
    ],
)
def test_bad_table(case: Case, tmp_path: Path, change: Any, message: str) -> None:
    X, y = case.data()
    assert isinstance(refused(case, tmp_path, change(X), y, message), DataError)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: y[:-1], "label 'y' has 1999 values for 2000 records"),
        (lambda y: None, "label 'y': pass a series"),
        (lambda y: np.column_stack([y, y]), "label 'y' must be one-dimensional"),
        (lambda y: np.where(np.arange(N) == 5, None, y.astype(object)), "label 'y' has .*missing"),
        (lambda y: np.full(N, "maybe"), "label 'y'.*'maybe'"),
        (lambda y: np.full(N, "2020-01-01", dtype="M8[D]"), "label 'y' holds datetime64"),
    ],
)
def test_bad_label(case: Case, tmp_path: Path, change: Any, message: str) -> None:
    X, y = case.data()
    refused(case, tmp_path, X, change(y), message)


PARAMETERS: list[tuple[str, Any]] = [
    *(("epsilon", bad) for bad in (0, -1, math.nan, "1", True, None, [1.0], 1j)),
    *(("delta", bad) for bad in (0, 0.0, 1, 1.0, -1e-6, math.nan, math.inf, "1e-6", None, True)),
    *(("delta", bad) for bad in (1 / N * 1.01, 0.5)),
    *(("distances", {"age": bad}) for bad in (-0.1, 1.1, math.nan, math.inf, "x", None, True)),
    *(
        ("distances", bad)
        for bad in ({"sex": 0.1}, {"shoe": 0.1}, {"job": 0.1}, 0.3, [0.1], "other")
    ),
    *(("steps", bad) for bad in (0, -1, 2.5, "10", math.nan, True)),
    *(("learning_rate", bad) for bad in (0, -1, math.nan, math.inf, "1", True, 1e300)),
    *(("radius", bad) for bad in (0, -1, math.nan, math.inf, "1", True, 1e300)),
    *(("scale", bad) for bad in (0, -1, math.nan, math.inf, "1", True, 1e300, 1e-9)),
    *(("alpha", bad) for bad in (-1, math.nan, math.inf, "1", None, True)),
    *(("records_per_person", bad) for bad in (0, -1, 1.5, "1", True, None)),
    *(("adjacency", bad) for bad in ("x", None, True, ["feature"])),
    *(("epsilon_cap", bad) for bad in (0, -1, math.nan, math.inf, "1", 0.5, True)),
    *(("record_epsilon", bad) for bad in (0, -1, math.nan, math.inf, "1", True)),
    *(("insensitive_epsilon", bad) for bad in (0, -1, math.nan, math.inf, "1", 0.1, True)),
    *(("budget", bad) for bad in (1.0, "x", object)),
    *(("progress", bad) for bad in (5, "x")),
    *(("random_state", bad) for bad in ("a", -1, 1.5, True)),
    *(("schema", bad) for bad in (None, {"age": 1}, "x", Schema)),
]


@pytest.mark.parametrize(("name", "bad"), PARAMETERS, ids=lambda v: str(v)[:20])
def test_bad_parameter(case: Case, tmp_path: Path, name: str, bad: Any) -> None:
    X, y = case.data()
    if name not in case.make().get_params():
        with pytest.raises(TypeError, match=name):
            case.make(**{name: bad})
        assert not case.linear
        return
    words = {"distances": "distance|columns or groups", "radius": "radius", "schema": "schema"}
    error = refused(case, tmp_path, X, y, words.get(name, name), **{name: bad})
    assert isinstance(error, ConfigurationError)


@pytest.mark.parametrize(
    "bad",
    [
        "balanced",
        [1, 2],
        {"no": -1},
        {"no": 0},
        {"no": math.nan},
        {"no": math.inf},
        {"no": "1"},
        {"no": True},
        {"maybe": 1.0},
        3,
    ],
    ids=str,
)
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_bad_class_weight(case: Case, tmp_path: Path, bad: Any, epsilon: float) -> None:
    if "class_weight" not in case.make().get_params():
        assert case.label.levels is None
        return
    X, y = case.data()
    extra = {} if epsilon == 1.0 else {"budget": None}
    refused(case, tmp_path, X, y, "class_weight", class_weight=bad, epsilon=epsilon, **extra)


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, "1", None, True])
def test_bad_penalty_without_privacy(case: Case, bad: Any) -> None:
    if not case.linear:
        assert "alpha" not in case.make().get_params()
        return
    X, y = case.data()
    with pytest.raises(ConfigurationError, match="alpha="):
        case.make(epsilon=math.inf, alpha=bad).fit(X, y)
    with pytest.raises(ConfigurationError, match="alpha="):
        case.estimator(epsilon=math.inf, alpha=bad).fit(np.arange(8.0)[:, None], [0, 1] * 4)


def test_label_of_the_wrong_kind(case: Case, tmp_path: Path) -> None:
    from corrdp.schema import Label

    wrong = Label("y", low=0, high=1) if case.label.levels else Label("y", [0, 1])
    schema = Schema(case.schema.columns, wrong)
    refused(case, tmp_path, *case.data(), "label 'y'", schema=schema, distances=None)


def test_no_schema(case: Case) -> None:
    with pytest.raises(ConfigurationError, match=r"epsilon=1.0 needs a schema .* Schema\(\{"):
        case.estimator().fit(np.zeros((4, 1)), [0, 1, 0, 1])


def test_nobody_is_protected(case: Case, tmp_path: Path) -> None:
    roles = dict.fromkeys([*case.schema.used, "y"], "public")
    schema = case.schema.with_roles(roles)  # type: ignore[arg-type]
    refused(case, tmp_path, *case.data(), "no column is protected", schema=schema, distances=None)


def test_losses_beyond_the_sampler(case: Case, tmp_path: Path) -> None:
    """Tiny and huge ε that finite arithmetic cannot keep are refused, not rounded.

    In a sampled run presence bounds the loss, so that a huge ε is never used up.
    """
    for epsilon, mend in ((1e-12, "allow more"), (1e9, "lower epsilon")):
        parameters = {"epsilon": epsilon, "distances": None, "budget": None, "steps": 1}
        if case.sampled and epsilon > 1:
            certificate = case.make(**parameters).fit(*case.data()).certificate_
            assert certificate.holds and certificate.joint["record"] < 1e4
            continue
        refused(case, tmp_path, *case.data(), f"precision; {mend}", **parameters)


def test_a_loss_beyond_the_sampler_can_be_capped(case: Case, tmp_path: Path) -> None:
    """A tiny distance allows a loss out of the sampler's reach; the cap that is named mends it.

    In a sampled run no change can do more than presence allows, so there nothing has to be capped.
    """
    X, y = case.data()
    parameters = {"distances": {"age": 1e-9}, "epsilon": 0.5}
    if case.sampled:
        certificate = case.make(**parameters).fit(X, y).certificate_
        assert certificate.holds and certificate.row("age")["epsilon_holds"] <= 100
        return
    refused(case, tmp_path, X, y, "set epsilon_cap", budget=None, **parameters)
    certificate = case.make(**parameters, epsilon_cap=100.0).fit(X, y).certificate_
    assert certificate.holds and certificate.row("age")["epsilon_holds"] <= 100


# Inside the declared domain: trained as usual


def same_claims(case: Case, X: Any, y: Any) -> bool:
    usual = case.make().fit(*case.data()).certificate_.claims()
    return bool(case.make().fit(X, y).certificate_.claims() == usual)


def test_one_class(case: Case) -> None:
    X, y = case.data()
    assert same_claims(case, X, y[:1].repeat(N))


def test_constant_columns(case: Case) -> None:
    X, y = case.data()
    assert same_claims(case, {**X, "age": np.full(N, 30.0), "sex": np.full(N, "F")}, y)


def test_values_at_and_beyond_the_bounds(case: Case) -> None:
    X, y = case.data()
    ages = np.where(np.arange(N) % 2 == 0, -1e300, 1e300)
    assert same_claims(case, {**X, "age": ages}, y)


def test_duplicated_content(case: Case) -> None:
    X, y = case.data()
    columns = {"age": Numeric(17, 90, role="insensitive"), "again": Numeric(17, 90)}
    schema = Schema({**columns, "sex": Categorical(["F", "M"])}, case.label)
    table = {"age": X["age"], "again": X["age"], "sex": X["sex"]}
    model = case.make(schema=schema, distances={"age": 0.5}).fit(table, y)
    assert model.certificate_.holds


@pytest.mark.parametrize("n", [1, 2, 5])
def test_tiny_tables_are_trained_with_a_warning(case: Case, n: int) -> None:
    X, y = case.data(n=n)
    with pytest.warns(UtilityWarning, match=f"n={n} is too small for this epsilon"):
        model = case.make(epsilon=0.1).fit(X, y)
    assert model.certificate_.holds
    assert np.isfinite(model.theta_).all()


def test_one_class_without_privacy_is_scikit_learns_error(case: Case) -> None:
    if case.label.levels is None:
        model = case.without_privacy().set_params(random_state=0)
        constant = model.fit(np.arange(6.0)[:, None], np.ones(6))
        assert constant.predict([[3.0]]) == pytest.approx([1.0], abs=1e-6 if case.linear else 0.1)
        return
    with pytest.raises(ValueError, match=r"only one class|1 class"):
        case.without_privacy().fit(np.arange(6.0)[:, None], np.ones(6))
    X, y = case.data()
    if not case.linear:
        # a network takes a fixed number of steps and stays finite
        model = case.make(epsilon=math.inf).fit(X, y[:1].repeat(N))
        assert set(model.predict(X)) == {y[0]}
        return
    with pytest.raises(DataError, match=r"only one class is present"):
        case.make(epsilon=math.inf).fit(X, y[:1].repeat(N))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_prediction_refuses_bad_values(case: Case, bad: float) -> None:
    X, y = case.data()
    model = case.make().fit(X, y)
    with pytest.raises(DataError, match="column 'age'"):
        model.predict(with_column(X, "age", bad))
    with pytest.raises(DataError, match="not in the table"):
        model.predict({k: v for k, v in X.items() if k != "sex"})
    assert len(model.predict({k: v[:1] for k, v in X.items()})) == 1
