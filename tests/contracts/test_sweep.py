"""Options in random combinations: a fit works and keeps its word, or says in one line why not.

The second half recomputes noise by brute force: every pair of records on a few values per column,
with features, residuals, kinds and budgets written anew from THEORY T1, T4 and T6.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr

import corrdp
from corrdp import Numeric, Schema
from corrdp.erm.sensitivity import SensitivityTable
from corrdp.errors import CorrDPError
from corrdp.privacy.ledger import decode_array
from tests.contracts.draws import Drawn, Kind, draw, draw_linear, insensitive_kinds, role_of

pytestmark = pytest.mark.filterwarnings("ignore::corrdp.errors.UtilityWarning")

# What a certificate promises


def check_promises(drawn: Drawn, certificate: Any) -> None:
    """Every limit that was asked for is kept by what is proved."""
    asked, joint, up = drawn.parameters, certificate.joint, 1 + 1e-9
    assert certificate.holds
    for row in certificate.columns:
        if row["role"] != "public":
            assert row["epsilon_holds"] <= row["epsilon_target"] * up
            assert row["epsilon_holds"] <= asked.get("epsilon_cap", math.inf) * up
    limits = {
        "sensitive": asked["epsilon"],
        "insensitive": asked.get("insensitive_epsilon", math.inf),
        "record": asked.get("record_epsilon", math.inf),
    }
    if asked.get("adjacency") == "record" and not isinstance(asked["distances"], str):
        limits["insensitive"] = min(limits["insensitive"], asked["epsilon"])  # d_U = 1
    if joint["insensitive"] is None and any(r["role"] == "public" for r in certificate.columns):
        limits["record"] = math.inf  # nothing is said about it where the rest is public
    for name, limit in limits.items():
        assert joint[name] is None or joint[name] <= limit * up


def outcome(seed: int, folder: Path) -> str:
    """Fit a combination and check it; what came of it in one word."""
    drawn = draw(seed)
    try:
        model = drawn.fit(seed)
    except CorrDPError as error:
        assert "\n" not in str(error) and len(str(error)) > 20
        budget = drawn.parameters.get("budget")
        assert budget is None or not budget.charges
        return "refused"
    X, _ = drawn.data(seed)
    certificate = model.certificate_
    model.save(folder / "model.json")
    certificate.save(folder / "certificate.json")
    assert np.array_equal(corrdp.load(folder / "model.json").predict(X), model.predict(X))
    checked = corrdp.verify(folder / "certificate.json")
    assert checked.holds == certificate.holds
    assert str(certificate) and json.dumps(certificate.to_dict(), allow_nan=False)
    if drawn.parameters.get("calibration") == "published" and not certificate.holds:
        assert certificate.problems and "DOES NOT HOLD" in str(certificate)
        return "short"
    check_promises(drawn, certificate)
    if drawn.parameters["distances"] is None or isinstance(drawn.parameters["distances"], dict):
        other = drawn.fit(seed + 1000, budget=None)
        assert other.certificate_.claims() == certificate.claims()
    return "held"


@pytest.mark.parametrize("start", range(0, 60, 10))
def test_any_combination_works_or_is_refused(start: int, tmp_path: Path) -> None:
    outcomes = [outcome(seed, tmp_path) for seed in range(start, start + 10)]
    assert "held" in outcomes


# Noise by brute force


def limited_kinds(drawn: Drawn) -> list[Kind]:
    """Kinds with the loss that the parameters allow: ε, ε/d under the cap, and the joint ones."""
    schema, asked = drawn.schema, drawn.parameters
    epsilon, cap = asked["epsilon"], asked.get("epsilon_cap", math.inf)
    sensitive = frozenset(name for name in schema.used if role_of(schema, name) == "sensitive")
    kinds = [Kind("S", sensitive, schema.label.role == "sensitive", epsilon)]
    rest: frozenset[str] = frozenset()
    for kind in insensitive_kinds(schema):
        distance = (asked["distances"] or {}).get(kind.name, 1.0)
        allowed = min(cap, epsilon / distance) if distance else cap
        kinds.append(Kind(kind.name, kind.columns, kind.label, allowed))
        rest |= kind.columns
    joint = asked.get("insensitive_epsilon", math.inf)
    if asked.get("adjacency") == "record":
        joint = min(joint, cap, epsilon)
    kinds.append(Kind("U", rest, schema.label.role == "insensitive", joint))
    whole = schema.label.role != "public"
    kinds.append(Kind("R", sensitive | rest, whole, asked.get("record_epsilon", math.inf)))
    return [kind for kind in kinds if kind.epsilon < math.inf]


def mu_of(epsilon: float, delta: float) -> float:
    """The largest μ whose Gaussian trade-off is (ε, δ), by bisection of its closed form."""
    low, high = 1e-12, 1e4
    for _ in range(200):
        middle = math.sqrt(low * high)
        first = log_ndtr(-epsilon / middle + middle / 2)
        gap = min(epsilon + log_ndtr(-epsilon / middle - middle / 2) - first, -1e-300)
        if first + math.log(-math.expm1(gap)) <= math.log(delta):
            low = middle
        else:
            high = middle
    return low


def encoded(schema: Schema, scale: float, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every record over ends and middle of numbers and all levels: values, features, blocks."""
    used = schema.used.values()
    sizes = [3 if isinstance(one, Numeric) else one.domain_size for one in used]
    values = np.array(list(itertools.product(*map(range, sizes))))
    parts: list[np.ndarray] = []
    for position, column in enumerate(used):
        value = values[:, position]
        if isinstance(column, Numeric):
            parts.append(np.rint((value - 1.0)[:, None] * scale * 2**bits) / 2**bits)
        else:
            parts.append(scale * np.eye(column.domain_size)[value])
    parts.append(np.full((len(values), 1), scale))
    blocks = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    return values, np.hstack(parts), blocks


def gradients(drawn: Drawn, features: np.ndarray, theta: np.ndarray, y: float, bits: int) -> Any:
    """r·φ of every record with this label, the residual clipped, weighted and rounded."""
    score = features @ theta
    if drawn.name == "logistic":
        residual = 0.5 * (1 + np.tanh(score / 2)) - y
    else:
        clip = drawn.parameters.get("residual_clip", 0.3)
        residual = np.clip(score - y, -clip, clip)
    weights: Mapping[Any, float] = drawn.parameters.get("class_weight") or {}
    residual = residual * weights.get(y, 1.0)
    return (np.round(residual * 2.0**bits) * 2.0**-bits)[:, None] * features


def worst_use(drawn: Drawn, model: Any) -> float:
    """Largest movement over noise that any two neighbours cause in a step, over the step's μ."""
    ledger = model.certificate_.ledger
    budget, release = ledger.one("linear-budget"), ledger.one("linear-release")
    lattice, steps = budget["lattice"], budget["plan"]["steps"]
    noise, iterates = decode_array(release["sigma"]), decode_array(release["iterates"])
    bits = lattice["feature_bits"]
    scale = math.floor(budget["scale"] * 2**bits) / 2**bits
    values, features, blocks = encoded(drawn.schema, scale, bits)
    labels = (0, 1) if drawn.name == "logistic" else (-1.0, 0.0, 1.0)
    rows = drawn.parameters.get("records_per_person", 1)
    worst = 0.0
    for step in range(steps):
        sums = {
            y: gradients(drawn, features, iterates[step], y, lattice["residual_bits"])
            for y in labels
        }
        for kind in limited_kinds(drawn):
            allowed = mu_of(kind.epsilon, drawn.parameters["delta"]) / math.sqrt(steps)
            moved = largest_shift(drawn.schema, values, sums, noise[step][blocks], kind)
            worst = max(worst, rows * moved / allowed)
    return worst


def largest_shift(
    schema: Schema, values: np.ndarray, sums: Mapping[Any, Any], noise: np.ndarray, kind: Kind
) -> float:
    """Largest ‖Δ/σ‖ over pairs of records that differ in the kind's columns alone."""
    fixed = [i for i, name in enumerate(schema.used) if name not in kind.columns]
    pairs = (values[:, None, fixed] == values[None, :, fixed]).all(axis=-1)
    labels = itertools.product(sums, sums) if kind.label else ((y, y) for y in sums)
    largest = 0.0
    for first, second in labels:
        gap = np.abs(sums[first][:, None] - sums[second][None])[pairs]
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where(gap > 0, gap / noise, 0.0)
        largest = max(largest, float(np.sqrt((shift**2).sum(axis=-1).max())))
    return largest


def uses(seeds: range) -> list[float]:
    """Worst use of every fit that is not refused; each of them verifies."""
    found = []
    for seed in seeds:
        drawn = draw_linear(seed)
        try:
            model = drawn.fit(seed)
        except CorrDPError:
            continue
        assert corrdp.verify(model.certificate_.to_dict()).holds
        found.append(worst_use(drawn, model))
    return found


def test_no_pair_of_records_exceeds_a_step_budget() -> None:
    """Whatever the schema and the options, and bounds are nearly reached."""
    found = uses(range(40))
    assert len(found) >= 30
    assert 0.95 < max(found) <= 1.0


def test_bounds_ten_per_cent_too_small_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verification shares the bounds and cannot tell; the pairs of records can."""
    right = SensitivityTable._table

    def wrong(self: SensitivityTable, movement: np.ndarray) -> np.ndarray:
        return 0.9 * right(self, movement)

    monkeypatch.setattr(SensitivityTable, "_table", wrong)
    assert sum(use > 1.0 for use in uses(range(12))) >= 2
