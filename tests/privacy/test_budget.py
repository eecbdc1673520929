"""One account for many releases: charged before noise, never overspent, never forgotten."""

from __future__ import annotations

import copy
import gc
import json
import math
import os
import pickle
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corrdp.erm.fit import charge_of
from corrdp.errors import BudgetExceededError, ConfigurationError
from corrdp.linear_model import CorrDPLogisticRegression
from corrdp.neighbours import INSENSITIVE, RECORD, SENSITIVE, NeighbourKind
from corrdp.privacy import gdp
from corrdp.privacy.budget import Charge, PrivacyBudget
from corrdp.privacy.budgets import KindBudget, PrivacyTarget
from corrdp.schema import Label, Numeric, Schema

DELTA = 1e-6
KINDS = {SENSITIVE: ["s"], "u": ["u"], "y": ["<label>"]}
DISTANCES = {SENSITIVE: 1.0, "u": 0.5, "y": 0.0}


def charge(epsilon: float, *, share: float = 1.0, **changes: Any) -> Charge:
    """A release at ε: S and u take their full μ² (times share), y is not limited."""
    squared = {
        kind: share * float(gdp.mu(epsilon / DISTANCES[kind], DELTA)) ** 2
        for kind in (SENSITIVE, "u")
    }
    values: dict[str, Any] = {"kinds": KINDS, "distances": DISTANCES, "mu_squared": squared}
    return Charge("fit", epsilon, DELTA, **{**values, **changes})


def basic(epsilon: float, delta: float = 1e-7) -> Charge:
    return Charge("query", epsilon, delta, KINDS, DISTANCES, {})


# Composition


def test_gaussian_charges_add_in_squared_mu() -> None:
    budget = PrivacyBudget(1.0, DELTA)
    budget.charge(charge(1.0, share=0.25))
    budget.charge(charge(1.0, share=0.75))
    assert budget.spent == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(
        BudgetExceededError, match=r"fit needs squared mu .* for '(u|<sensitive>)'; left"
    ):
        budget.charge(charge(1.0, share=1e-9))
    assert len(budget.charges) == 2


def test_gaussian_spending_is_less_than_the_sum() -> None:
    budget = PrivacyBudget(1.0, DELTA)
    for _ in range(4):
        budget.charge(charge(0.4))
    total = gdp.epsilon(math.sqrt(4) * gdp.mu(0.4, DELTA), DELTA)
    assert budget.spent == pytest.approx(float(total), rel=1e-9)
    assert budget.spent < 1.6
    with pytest.raises(BudgetExceededError):
        for _ in range(4):
            budget.charge(charge(0.4))


def test_ten_per_cent_too_much_is_caught() -> None:
    mu_squared = {SENSITIVE: 1.1 * float(gdp.mu(1.0, DELTA)) ** 2, "u": 0.0}
    with pytest.raises(BudgetExceededError):
        PrivacyBudget(1.0, DELTA).charge(charge(1.0, mu_squared=mu_squared))


def test_every_kind_has_its_own_limit() -> None:
    """u may lose ε/d = 2: what S has left does not help it."""
    squared = {SENSITIVE: 0.0, "u": 1.01 * float(gdp.mu(2.0, DELTA)) ** 2}
    with pytest.raises(BudgetExceededError, match="for 'u'"):
        PrivacyBudget(1.0, DELTA).charge(charge(1.0, mu_squared=squared))


def test_a_kind_without_a_stated_loss_is_not_free() -> None:
    budget = PrivacyBudget(1.0, DELTA)
    for squared, kinds in (({SENSITIVE: 0.1}, KINDS), ({}, KINDS), ({}, {})):
        with pytest.raises(ConfigurationError, match="does not say how much squared mu"):
            budget.charge(charge(1.0, mu_squared=squared, kinds=kinds))
    assert budget.charges == ()


def test_basic_adds_epsilon_and_delta() -> None:
    budget = PrivacyBudget(1.0, DELTA, composition="basic")
    for _ in range(10):
        budget.charge(basic(0.1))
    assert budget.spent == pytest.approx(1.0)
    with pytest.raises(BudgetExceededError, match=r"query needs epsilon 0.01 .*; left are 0 and 0"):
        budget.charge(basic(0.01))
    with pytest.raises(BudgetExceededError):
        PrivacyBudget(9.0, DELTA, composition="basic").charge(basic(0.1, delta=1.1e-6))


def test_pure_budget() -> None:
    budget = PrivacyBudget(1.0, 0.0, composition="basic")
    budget.charge(basic(1.0, delta=0.0))
    with pytest.raises(ConfigurationError):
        PrivacyBudget(1.0, 0.0)
    with pytest.raises(BudgetExceededError):
        PrivacyBudget(1.0, 0.0, composition="basic").charge(basic(0.5, delta=1e-12))


def test_estimated_distances_need_basic_composition() -> None:
    adaptive = charge(0.1, distances={}, mu_squared={}, adaptive=True)
    with pytest.raises(ConfigurationError, match="composition='basic'"):
        PrivacyBudget(1.0, DELTA).charge(adaptive)
    budget = PrivacyBudget(1.0, DELTA, composition="basic")
    budget.charge(adaptive)
    assert budget.spent == 0.1


@pytest.mark.parametrize(
    "other",
    [
        {"kinds": {**KINDS, "u": ["u", "w"]}},
        {"kinds": {SENSITIVE: ["s"], "u": ["u"]}},
        {"distances": {**DISTANCES, "u": 0.4}},
    ],
)
def test_losses_of_different_kinds_do_not_add(other: dict[str, Any]) -> None:
    budget = PrivacyBudget(5.0, DELTA)
    budget.charge(charge(0.1))
    with pytest.raises(ConfigurationError, match="other columns, roles or distances"):
        budget.charge(charge(0.1, **other))
    assert len(budget.charges) == 1


def test_charge_of_a_run() -> None:
    kinds = [
        NeighbourKind(SENSITIVE, ("s",), False),
        NeighbourKind("y", (), True),
        NeighbourKind(INSENSITIVE, ("u",), True),
        NeighbourKind(RECORD, ("s", "u"), True),
    ]
    budgets = [
        KindBudget(kind, d, 1.0, DELTA, mu)
        for kind, d, mu in zip(kinds, (1, 0, 1, 1), (0.3, math.inf, 9, 9), strict=True)
    ]
    made = Charge.of("fit", PrivacyTarget(1.0, DELTA, records_per_person=3), budgets)
    assert made.records_per_person == 3
    assert made.kinds == {SENSITIVE: ["s"], "y": ["<label>"]}
    assert made.mu_squared == {SENSITIVE: 0.3}
    assert made.distances == {SENSITIVE: 1, "y": 0}


def test_a_sampled_run_has_no_mu_to_add() -> None:
    """T7 certifies it at one (ε, δ): Gaussian composition is refused, basic composition is not."""
    schema = Schema({"s": Numeric(0, 1)}, Label("y", [0, 1]))
    model = CorrDPLogisticRegression(
        schema, solver="sgd", steps=2, sample_rate=0.5, distances=None, delta=DELTA
    )
    sampled = charge_of(model._task(1000, False), adaptive=False)
    with pytest.raises(ConfigurationError, match="Poisson-sampled runs need"):
        PrivacyBudget(5.0, DELTA).charge(sampled)
    budget = PrivacyBudget(5.0, DELTA, composition="basic")
    budget.charge(sampled)
    assert budget.spent == 1.0


# Validation


@pytest.mark.parametrize(
    "changes",
    [
        *({"epsilon": bad} for bad in (0, -1.0, math.nan, math.inf, "1", True)),
        *({"delta": bad} for bad in (-1e-9, 1.0, math.nan, "0", True)),
        *({"mu_squared": {SENSITIVE: bad}} for bad in (-0.1, math.nan, "1", True)),
        *({"distances": {"u": bad}} for bad in (-0.1, 1.1, math.nan, True)),
    ],
    ids=str,
)
def test_a_charge_checks_itself(changes: dict[str, Any]) -> None:
    """A negative or NaN charge would give back what was spent."""
    values = {"name": "fit", "epsilon": 0.1, "delta": DELTA, "kinds": KINDS, "distances": {}}
    with pytest.raises(ConfigurationError, match="charge 'fit'"):
        Charge(**{**values, "mu_squared": {}, **changes})


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        *((bad, DELTA) for bad in (0, -1, math.nan, math.inf, "1", True, None)),
        *((1, bad) for bad in (0, 1, -1, math.nan, "a", None, True)),
    ],
)
def test_bad_budget(epsilon: Any, delta: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        PrivacyBudget(epsilon, delta, path=tmp_path / "account.json")
    assert list(tmp_path.iterdir()) == []


def test_bad_composition() -> None:
    with pytest.raises(ConfigurationError, match="composition='rdp' is unknown"):
        PrivacyBudget(1.0, DELTA, composition="rdp")  # type: ignore[arg-type]


# The account


def test_a_second_object_reads_the_same_account(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "account.json"
    PrivacyBudget(1.0, DELTA, path=path).charge(charge(0.9))
    again = PrivacyBudget(1.0, DELTA, path=path)
    assert again.charges == (charge(0.9),)
    with pytest.raises(BudgetExceededError):
        again.charge(charge(0.9))


def test_copies_share_the_account() -> None:
    budget = PrivacyBudget(1.0, DELTA)
    for one in (copy.copy(budget), copy.deepcopy(budget), pickle.loads(pickle.dumps(budget))):
        before = len(budget.charges)
        one.charge(charge(0.1))
        assert len(budget.charges) == before + 1
    assert copy.deepcopy({"budget": budget})["budget"] is budget


def test_a_lost_account_is_not_started_anew() -> None:
    """Unpickled after its owner is gone, a budget must not believe that nothing was spent."""
    budget = PrivacyBudget(1.0, DELTA)
    budget.charge(charge(0.9))
    pickled, copied = pickle.dumps(budget), pickle.loads(pickle.dumps(budget))
    folder = budget.path.parent
    del budget
    gc.collect()
    assert not folder.exists()
    with pytest.raises(ConfigurationError, match=r"is gone: what was spent is not known any more"):
        copied.charge(charge(0.9))
    with pytest.raises(ConfigurationError, match="give PrivacyBudget a path="):
        pickle.loads(pickled)


def test_a_deleted_file_is_not_started_anew(tmp_path: Path) -> None:
    budget = PrivacyBudget(1.0, DELTA, path=tmp_path / "account.json")
    budget.path.unlink()
    with pytest.raises(ConfigurationError, match="is gone"):
        budget.charge(charge(0.1))


def test_a_forked_child_leaves_the_account_alone() -> None:
    budget = PrivacyBudget(1.0, DELTA)
    script = (
        "import os, sys\n"
        "from corrdp.privacy.budget import PrivacyBudget\n"
        "budget = PrivacyBudget(1.0, 1e-6)\n"
        "child = os.fork()\n"
        "if child == 0: sys.exit(0)\n"  # runs the exit handlers that were inherited
        "os.waitpid(child, 0)\n"
        "print(budget.path.exists(), len(budget.charges))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "0"]
    assert budget.path.exists()


@pytest.mark.parametrize("content", ["", "{}x", '{"a": 1}', "3", "null", "[3]", '[{"name": "x"}]'])
def test_a_damaged_account_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "account.json"
    path.write_text(content)
    budget = PrivacyBudget(1.0, DELTA, path=path)
    with pytest.raises(ConfigurationError, match="is not the file of a privacy budget"):
        budget.charge(charge(0.1))
    assert path.read_text() == content


def test_an_account_with_a_negative_charge_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    PrivacyBudget(1.0, DELTA, path=path).charge(charge(0.9))
    plain = json.loads(path.read_text())
    plain["charges"][0]["mu_squared"][SENSITIVE] = -5.0
    path.write_text(json.dumps(plain))
    with pytest.raises(
        ConfigurationError, match=r"squared mu of '<sensitive>' is -5.0|is not the file"
    ):
        PrivacyBudget(1.0, DELTA, path=path).charge(charge(0.9))


def test_threads_cannot_overspend() -> None:
    budget = PrivacyBudget(1.0, DELTA, composition="basic")
    refused: list[BudgetExceededError] = []

    def spend() -> None:
        for _ in range(4):
            try:
                budget.charge(basic(0.1, delta=1e-8))
            except BudgetExceededError as error:
                refused.append(error)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(budget.charges) == 10
    assert len(refused) == 6


def test_the_file_holds_losses_only(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    PrivacyBudget(1.0, DELTA, path=path).charge(charge(0.5))
    fields = {"name", "epsilon", "delta", "kinds", "distances", "mu_squared", "adaptive"}
    fields.add("records_per_person")
    account = json.loads(path.read_text())
    assert set(account) == {"limits", "charges"}
    assert [set(entry) for entry in account["charges"]] == [fields]


def test_an_account_keeps_its_limits(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    PrivacyBudget(1.0, DELTA, path=path).charge(charge(0.5))
    with pytest.raises(ConfigurationError, match="open it with the limits"):
        PrivacyBudget(5.0, DELTA, path=path).charge(charge(0.9))


def test_rows_per_person_must_agree() -> None:
    budget = PrivacyBudget(1.0, DELTA, composition="basic")
    budget.charge(basic(0.1, delta=1e-8))
    with pytest.raises(ConfigurationError, match="records_per_person"):
        budget.charge(replace(basic(0.1, delta=1e-8), records_per_person=10))


def test_repr() -> None:
    assert repr(PrivacyBudget(1.5, DELTA)) == "PrivacyBudget(epsilon=1.5, delta=1e-06, gdp)"


def test_temporary_account_is_removed() -> None:
    budget = PrivacyBudget(1.0, DELTA)
    folder = budget.path.parent
    assert os.listdir(folder)  # noqa: PTH208
    del budget
    gc.collect()
    assert not folder.exists()
