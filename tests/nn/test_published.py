"""The published calibration on a network: its noise, what it certifies, what verify finds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import corrdp
from corrdp.errors import ConfigurationError
from corrdp.nn.published import block_noise
from corrdp.privacy.ledger import Ledger, decode_array, encode_array

from .test_estimators import fitted


def test_noise_follows_the_distances():
    model = fitted(calibration="published", hidden_layer_sizes=(4, 3))
    noise = block_noise(model.network_, 2.0, {"x": 0.25, "c": 0.5, "y": 0.36})
    by_name = dict(zip([b.name for b in model.network_.blocks], noise, strict=True))
    assert by_name["hidden:x"] == pytest.approx(2.0 * 0.5)
    assert by_name["hidden:c"] == pytest.approx(2.0 * math.sqrt(0.5))
    assert by_name["hidden:<intercept>"] == pytest.approx(2.0 * 0.6)
    assert by_name["layer:2"] == by_name["skip:s"] == 2.0
    # the floor (m_s/m)² with m_s = 2 of m = 7 coordinates
    assert block_noise(model.network_, 1.0, {"x": 0.0})[0] == pytest.approx(2 / 7)


def test_ordinary_privacy_is_certified_and_a_claim_that_does_not_hold_is_named():
    whole = fitted(calibration="published", distances={"x": 1.0, "c": 1.0, "y": 1.0})
    assert whole.certificate_.holds
    assert whole.certificate_.joint["record"] <= 1.0
    small = fitted(calibration="published", distances={"x": 0.01, "c": 0.01, "y": 0.01})
    assert not small.certificate_.holds
    assert "published calibration: the noise certifies" in small.certificate_.problems[0]
    sensitive = small.certificate_.joint["sensitive"]
    assert sensitive > 1.0


def test_less_noise_than_claimed_does_not_verify():
    model = fitted(calibration="published", distances={"x": 1.0, "c": 1.0, "y": 1.0})
    entries = model.certificate_.ledger.to_list()
    changed = Ledger()
    for entry in entries:
        body = {k: v for k, v in entry.items() if k not in ("type", "previous", "digest")}
        if entry["type"] == "network-release":
            body["sigma"] = encode_array(0.9 * decode_array(body["sigma"]))
        changed = changed.append(entry["type"], body)
    result = corrdp.verification.certify(changed)
    assert not result.holds
    assert result.joint["record"] > 1.1 * model.certificate_.joint["record"]
    assert np.isfinite(result.joint["record"])


def test_an_unknown_calibration_is_refused():
    with pytest.raises(ConfigurationError, match="calibration"):
        fitted(calibration="best")
