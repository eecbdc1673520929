"""The frozen result: what it accepts, what it refuses, and that it survives JSON and pickle."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from corrdp.distance import Distance, Distances
from corrdp.errors import ConfigurationError

FULL = Distances(
    {
        "age": Distance(
            0.3,
            source="private",
            method="pair",
            low=0.1,
            high=0.28,
            pair=("17–25", "45–90"),
            rarest_count=-3,
            background=("region",),
            resolution="binned",
            grid_size=8,
        ),
        "income": Distance(1.0, source="exact"),
    },
    joint=0.9,
    gamma=0.05,
    assumptions=("one.", "two."),
)


def test_given_is_a_mapping_and_absent_columns_have_distance_one():
    distances = Distances.given({"age": 0.3, "label": np.float64(0.25)}, joint=0.5)
    assert dict(distances) == {"age": Distance(0.3), "label": Distance(0.25)}
    assert distances.value("age") == 0.3
    assert distances.value("elsewhere") == 1.0
    assert distances.joint == 0.5
    assert distances["age"].source == "given" and distances["age"].interval is None
    with pytest.raises(KeyError):
        distances["elsewhere"]


def test_json_and_pickle_round_trips():
    assert Distances.from_dict(json.loads(json.dumps(FULL.to_dict()))) == FULL
    assert pickle.loads(pickle.dumps(FULL)) == FULL
    plain = Distances.given({"age": 0.3})
    assert plain.to_dict() == {"columns": {"age": {"value": 0.3, "source": "given"}}}
    assert Distances.from_dict(plain.to_dict()) == plain


@pytest.mark.parametrize("value", [float("nan"), -0.1, 1.0000001, float("inf"), True, "0.3", None])
def test_values_outside_the_unit_interval_are_refused_and_the_column_is_named(value):
    with pytest.raises(ConfigurationError, match="age"):
        Distances.given({"age": value})
    with pytest.raises(ConfigurationError, match="distance"):
        Distance(value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": "guess"}, "source"),
        ({"low": 0.5, "high": 0.4}, "exceeds"),
        ({"high": float("nan")}, "high"),
        ({"resolution": "fine"}, "resolution"),
        ({"grid_size": 0}, "grid_size"),
    ],
)
def test_a_distance_that_contradicts_itself_is_refused(change, message):
    with pytest.raises(ConfigurationError, match=message):
        Distance(0.5, **change)


@pytest.mark.parametrize("plain", [{}, {"columns": {}, "extra": 1}, {"columns": {"a": {"d": 1}}}])
def test_foreign_dictionaries_are_refused(plain):
    with pytest.raises(ConfigurationError, match="not"):
        Distances.from_dict(plain)


def test_other_wrong_arguments():
    for wrong in (0.3, ["age"], None):
        with pytest.raises(ConfigurationError, match="mapping"):
            Distances.given(wrong)
    with pytest.raises(ConfigurationError, match="not a Distance"):
        Distances({"age": 0.3})
    with pytest.raises(ConfigurationError, match="joint"):
        Distances({}, joint=float("nan"))
    with pytest.raises(ConfigurationError, match="gamma"):
        Distances({}, gamma=1.0)
    with pytest.raises(AttributeError):
        FULL.joint = 0.1
