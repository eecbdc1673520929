"""Audit of a network's steps: nothing above the claim, and half the noise is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from corrdp import Categorical, CorrDPMLPClassifier, Label, Numeric, Schema
from corrdp.audit import attacks_on, run_attacks
from corrdp.audit.network import network_attacks
from corrdp.errors import ConfigurationError


@pytest.fixture(scope="module")
def certificate() -> Any:
    schema = Schema(
        {"x": Numeric(0, 1, role="insensitive"), "s": Categorical(["p", "q"])},
        Label("y", [0, 1], role="insensitive"),
    )
    rng = np.random.default_rng(0)
    X = {"x": rng.random(300), "s": rng.choice(["p", "q"], 300)}
    model = CorrDPMLPClassifier(
        schema,
        epsilon=6.0,
        delta=1e-5,
        distances={"x": 0.9, "y": 0.3},
        steps=2,
        hidden_layer_sizes=(4,),
        residual_clip=0.7,  # residuals start at ½: the first step comes near a bound of .7, not 1
        random_state=0,
    )
    return model.fit(X, rng.integers(0, 2, 300)).certificate_


def test_steps_stay_below_and_half_the_noise_is_found(certificate: Any, monkeypatch: Any) -> None:
    from corrdp.noise import NoiseSource

    attacks = [
        attack
        for attack in network_attacks(certificate, kinds=("x", "y"), population=30)
        if attack.name == "first step"
    ]
    assert {attack.kind for attack in attacks} == {"x", "y"}
    assert all(attack.reach is not None and 0.35 < attack.reach <= 1.0 for attack in attacks)
    report = run_attacks(attacks, runs=100, random_state=1)
    assert report.violated == ()
    assert all(one.lower_bound > 0.3 * one.claimed for one in report.findings)
    honest = NoiseSource.gaussian
    monkeypatch.setattr(
        NoiseSource, "gaussian", lambda self, scale: honest(self, np.asarray(scale) / 2)
    )
    assert len(run_attacks(attacks, runs=100, random_state=1).violated) == 2


def test_only_training_runs_are_attacked(certificate: Any) -> None:
    with pytest.raises(ConfigurationError, match="steps"):
        attacks_on(certificate, steps=0)
    from dataclasses import replace

    from corrdp.privacy.ledger import Ledger

    with pytest.raises(ConfigurationError, match="audit"):
        attacks_on(replace(certificate, ledger=Ledger()))
