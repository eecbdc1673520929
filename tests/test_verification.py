"""A certificate that was tampered with does not verify, whoever recomputed the digests."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corrdp import Certificate, CorrDPLogisticRegression, CorrDPRidge, load, verify
from corrdp.errors import ConfigurationError, VerificationError
from corrdp.privacy.ledger import Ledger, decode_array, digest, encode_array
from corrdp.schema import Categorical, Label, Numeric, Schema
from corrdp.verification import certify

SCHEMA = Schema(
    {
        "s": Categorical(["a", "b"]),
        "u": Numeric(0, 1, role="insensitive"),
        "v": Categorical(["a", "b", "c"], role="insensitive"),
        "w": Numeric(0, 1, role="public"),
    },
    Label("y", [0, 1], role="insensitive"),
)


def table(n: int = 400, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    X = {
        "s": rng.choice(["a", "b"], n),
        "u": rng.random(n),
        "v": rng.choice(["a", "b", "c"], n),
        "w": rng.random(n),
    }
    return X, (X["u"] > 0.5).astype(int)


def fitted(**settings: Any) -> CorrDPLogisticRegression:
    given = {"epsilon": 1.0, "delta": 1e-5, "distances": {"u": 0.2, "y": 0.3}, "steps": 12}
    model = CorrDPLogisticRegression(SCHEMA, random_state=1, **{**given, **settings})
    return model.fit(*table())


@pytest.fixture(scope="module")
def original() -> dict[str, Any]:
    certificate = fitted().certificate_
    assert certificate is not None
    return json.loads(json.dumps(certificate.to_dict()))


def edit(plain: dict[str, Any], change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    altered = copy.deepcopy(plain)
    change(altered)
    return altered


def rechain(plain: dict[str, Any]) -> dict[str, Any]:
    """What an attacker does: recompute every digest of the ledger and of the file."""
    ledger = Ledger()
    for entry in plain["ledger"]:
        body = {k: v for k, v in entry.items() if k not in ("type", "previous", "digest")}
        ledger = ledger.append(entry["type"], body)
    body = {k: v for k, v in plain.items() if k not in ("digest", "ledger")}
    body["ledger"] = ledger.to_list()
    return {**body, "digest": digest(body)}


def reclaim(plain: dict[str, Any]) -> dict[str, Any]:
    """Digests and every claim recomputed: a consistently changed certificate."""
    return certify(Ledger.from_list(rechain(plain)["ledger"])).to_dict()


def lower_noise(plain: dict[str, Any]) -> None:
    entry = plain["ledger"][2]
    entry["sigma"] = encode_array(0.9 * decode_array(entry["sigma"]))


def lower_noise_once(plain: dict[str, Any]) -> None:
    entry = plain["ledger"][2]
    sigma = decode_array(entry["sigma"])
    sigma[5, 0] *= 0.95
    entry["sigma"] = encode_array(sigma)


def remove_step(plain: dict[str, Any]) -> None:
    entry = plain["ledger"][2]
    entry["sigma"] = encode_array(decode_array(entry["sigma"])[:-1])
    entry["iterates"] = encode_array(decode_array(entry["iterates"])[:-1])


def remove_step_everywhere(plain: dict[str, Any]) -> None:
    remove_step(plain)
    plain["ledger"][1]["plan"]["steps"] -= 1


def smaller_distance(plain: dict[str, Any]) -> None:
    plain["ledger"][0]["distances"]["columns"]["u"]["value"] = 0.1


def larger_distance(plain: dict[str, Any]) -> None:
    plain["ledger"][0]["distances"]["columns"]["u"]["value"] = 0.4


def other_role(plain: dict[str, Any]) -> None:
    plain["ledger"][0]["schema"]["columns"]["w"]["role"] = "insensitive"


def public_role(plain: dict[str, Any]) -> None:
    plain["ledger"][0]["schema"]["columns"]["u"]["role"] = "public"


def swap_model(plain: dict[str, Any]) -> None:
    entry = plain["ledger"][2]
    entry["coefficients"] = encode_array(decode_array(entry["coefficients"]) + 0.1)


def smaller_epsilon(plain: dict[str, Any]) -> None:
    plain["ledger"][0]["target"]["epsilon"] = 0.5


def larger_epsilon(plain: dict[str, Any]) -> None:
    plain["ledger"][0]["target"]["epsilon"] = 2.0


def larger_run_budget(plain: dict[str, Any]) -> None:
    row = plain["ledger"][1]["kinds"][0]
    row["run"] *= 1.5
    row["step"] *= 1.5


def remove_release(plain: dict[str, Any]) -> None:
    del plain["ledger"][2]


def move_iterate(plain: dict[str, Any]) -> None:
    """Larger parameters would have needed more noise."""
    entry = plain["ledger"][2]
    iterates = decode_array(entry["iterates"])
    iterates[3] *= 1.5
    entry["iterates"] = encode_array(iterates)


EDITS = [
    lower_noise,
    lower_noise_once,
    remove_step,
    remove_step_everywhere,
    smaller_distance,
    larger_distance,
    other_role,
    public_role,
    swap_model,
    smaller_epsilon,
    larger_epsilon,
    larger_run_budget,
    remove_release,
    move_iterate,
]


def test_the_original_verifies(original: dict[str, Any]) -> None:
    result = verify(original)
    assert result.holds and result.problems == ()
    assert result.certificate is not None and result.certificate.holds


@pytest.mark.parametrize("change", EDITS, ids=lambda f: f.__name__)
def test_any_edit_is_noticed(original: dict[str, Any], change: Any) -> None:
    result = verify(edit(original, change))
    assert not result.holds and result.problems


@pytest.mark.parametrize("key", ["n", "epsilon", "delta", "columns", "joint", "assumptions"])
def test_an_edited_claim_is_noticed(original: dict[str, Any], key: str) -> None:
    def change(plain: dict[str, Any]) -> None:
        if key == "columns":
            plain["columns"][0]["epsilon_holds"] = 0.1
        elif key == "joint":
            plain["joint"]["record"] = 0.1
        elif key == "assumptions":
            plain["assumptions"].pop()
        else:
            plain[key] = plain[key] / 2

    altered = edit(original, change)
    body = {k: v for k, v in altered.items() if k != "digest"}
    assert not verify(altered).holds
    assert not verify({**body, "digest": digest(body)}).holds


@pytest.mark.parametrize(
    "change",
    [lower_noise, lower_noise_once, swap_model, remove_step, larger_run_budget, smaller_epsilon],
    ids=lambda f: f.__name__,
)
def test_recomputed_digests_do_not_help(original: dict[str, Any], change: Any) -> None:
    """Lowered noise and a swapped model fail although the chain is intact."""
    altered = rechain(edit(original, change))
    result = verify(altered)
    assert not result.holds
    if change is not remove_step:
        with_claims = reclaim(edit(original, change))
        assert with_claims["holds"] is False and with_claims["problems"]


def test_exceeded_budget_prints_the_larger_loss(original: dict[str, Any]) -> None:
    claimed = certify(Ledger.from_list(rechain(edit(original, lower_noise))["ledger"]))
    assert not claimed.holds
    assert claimed.joint["sensitive"] > original["joint"]["sensitive"]  # type: ignore[operator]


@pytest.mark.parametrize("change", [smaller_distance, larger_epsilon], ids=lambda f: f.__name__)
def test_a_consistently_changed_claim_verifies_as_that_claim(
    original: dict[str, Any], change: Any
) -> None:
    """A smaller d or larger ε claims less than the noise gives: it holds as the other claim."""
    altered = reclaim(edit(original, change))
    result = verify(altered)
    assert result.holds
    assert result.certificate is not None
    assert result.certificate.claims() != original  # another claim than the original
    assert altered["columns"] != original["columns"]


def test_larger_distance_with_recomputed_claims_does_not_hold(original: dict[str, Any]) -> None:
    """d from .2 to .4 promises column u more than its noise gives."""
    assert not verify(reclaim(edit(original, larger_distance))).holds


def test_swapped_model_file(tmp_path: Path) -> None:
    model, other = fitted(), fitted(steps=13)
    assert model.certificate_ is not None
    model.certificate_.save(tmp_path / "certificate.json")
    model.save(tmp_path / "model.json")
    assert verify(tmp_path / "certificate.json").holds
    other.save(tmp_path / "model.json")
    assert not verify(tmp_path / "certificate.json").holds
    text = (tmp_path / "model.json").read_text(encoding="utf-8")
    (tmp_path / "model.json").write_text(text.replace('"float64": "', '"float64": "A', 1))
    assert not verify(tmp_path / "certificate.json").holds
    with pytest.raises(VerificationError):
        load(tmp_path / "model.json")


def test_load_refuses_swapped_coefficients(tmp_path: Path) -> None:
    model = fitted()
    model.save(tmp_path / "model.json")
    body = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    body.pop("digest")
    body["coefficients"] = encode_array(decode_array(body["coefficients"]) * 2)
    body["digest"] = digest(body)
    (tmp_path / "model.json").write_text(json.dumps(body), encoding="utf-8")
    with pytest.raises(VerificationError, match="swapped"):
        load(tmp_path / "model.json")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"ledger": []}', '{"ledger": [1]}'])
def test_damaged_files_do_not_verify(tmp_path: Path, content: str) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(content, encoding="utf-8")
    result = verify(path)
    assert not result.holds and result.problems
    assert not verify(tmp_path / "absent.json").holds


def test_the_certificate_is_the_same_whatever_the_data_were() -> None:
    first = fitted().certificate_
    model = CorrDPLogisticRegression(
        SCHEMA, epsilon=1.0, delta=1e-5, distances={"u": 0.2, "y": 0.3}, steps=12, random_state=9
    )
    X, y = table(seed=5)
    second = model.fit(X, 1 - y).certificate_
    assert first is not None and second is not None
    assert first.claims() == second.claims()
    constant = model.fit({k: np.repeat(v[:1], len(v)) for k, v in X.items()}, 0 * y).certificate_
    assert constant is not None and constant.claims() == first.claims()


def test_claims_follow_the_contract(original: dict[str, Any]) -> None:
    expected = {
        "format_version", "library_version", "n", "epsilon", "delta", "neighbouring_relation",
        "adjacency", "records_per_person", "holds", "seeded", "floating_point_noise",
        "confidence", "assumptions", "columns", "joint", "ledger", "digest",
    }  # fmt: skip
    assert expected <= set(original)
    assert original["neighbouring_relation"] == "substitution"
    assert original["seeded"] is True and original["floating_point_noise"] is False
    assert [row["name"] for row in original["columns"]] == ["s", "u", "v", "w", "y"]
    keys = {
        "name", "role", "distance", "distance_interval", "distance_source", "epsilon_target",
        "epsilon_holds", "belief_shift",
    }  # fmt: skip
    for row in original["columns"]:
        assert set(row) == keys
        if row["role"] != "public":
            assert row["epsilon_holds"] <= row["epsilon_target"]
    rows = {row["name"]: row for row in original["columns"]}
    assert rows["u"]["epsilon_target"] == pytest.approx(5.0)
    assert rows["v"]["epsilon_target"] == pytest.approx(1.0)
    assert rows["w"]["epsilon_holds"] == "inf"
    assert set(original["joint"]) == {"sensitive", "insensitive", "record"}
    assert original["joint"]["sensitive"] <= 1.0 < original["joint"]["record"]


def test_reserve_is_small_and_never_exceeded(original: dict[str, Any]) -> None:
    for row in original["columns"]:
        if row["role"] != "public" and row["name"] in ("s", "u"):
            assert 0.99 * row["epsilon_target"] <= row["epsilon_holds"] <= row["epsilon_target"]


def test_combine_adds_squared_mu() -> None:
    first, second = fitted().certificate_, fitted(steps=20).certificate_
    assert first is not None and second is not None
    both = Certificate.combine(first, second)
    assert both.holds and verify(both.to_dict()).holds
    from corrdp.privacy import gdp

    mu = math.sqrt(2) * gdp.mu(1.0, 1e-5)
    assert both.joint["sensitive"] == pytest.approx(gdp.epsilon(mu, 1e-5), rel=0.01)
    again = Certificate.combine(both, first)
    assert again.joint["sensitive"] > both.joint["sensitive"]  # type: ignore[operator]
    tampered = both.to_dict()
    tampered["ledger"][0]["ledger"][2]["sigma"]["shape"] = [1]
    assert not verify(tampered).holds


def test_combine_refuses_what_does_not_add() -> None:
    first = fitted().certificate_
    other = fitted(distances={"u": 0.5}).certificate_
    assert first is not None and other is not None
    with pytest.raises(ConfigurationError, match="add up"):
        Certificate.combine(first, other)
    with pytest.raises(ConfigurationError, match="nothing"):
        Certificate.combine()


def test_record_epsilon_is_certified() -> None:
    for limit in (0.5, 1.0, 2.0):
        certificate = fitted(record_epsilon=limit).certificate_
        assert certificate is not None
        assert certificate.joint["record"] <= limit  # type: ignore[operator]
        assert certificate.joint["record"] >= 0.99 * limit  # type: ignore[operator]


def test_all_sensitive_is_one_kind() -> None:
    model = CorrDPLogisticRegression(
        SCHEMA.all_sensitive(), epsilon=1.0, delta=1e-5, steps=10, random_state=0
    ).fit(*table())
    certificate = model.certificate_
    assert certificate is not None
    assert certificate.joint["insensitive"] is None
    assert certificate.joint["record"] == certificate.joint["sensitive"]


def test_ridge_certificate_verifies() -> None:
    schema = Schema(dict(SCHEMA.columns), Label("y", low=0, high=10, role="insensitive"))
    X, _ = table()
    model = CorrDPRidge(
        schema, epsilon=1.0, delta=1e-5, distances={"u": 0.2, "y": 0.3}, steps=12, random_state=1
    ).fit(X, 10 * X["u"])
    assert model.certificate_ is not None
    result = verify(model.certificate_.to_dict())
    assert result.holds and model.certificate_.row("u")["epsilon_holds"] <= 5.0


def test_an_unknown_ledger_entry_is_refused(original: dict[str, Any]) -> None:
    def add(plain: dict[str, Any]) -> None:
        plain["ledger"].append({"type": "mystery", "previous": "", "digest": ""})

    result = verify(rechain(edit(original, add)))
    assert not result.holds and "unknown" in result.problems[0]


def test_semi_says_nothing_about_the_whole_record() -> None:
    """With everything but S public the record's row is infinite (THEORY T1)."""
    model = CorrDPLogisticRegression(
        SCHEMA.insensitive_as_public(), epsilon=1.0, delta=1e-5, steps=10, random_state=0
    ).fit(*table())
    certificate = model.certificate_
    assert certificate is not None
    assert certificate.joint["record"] == math.inf
    assert certificate.joint["sensitive"] <= 1.0  # type: ignore[operator]
    assert verify(certificate.to_dict()).holds
