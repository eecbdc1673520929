"""Which settings are accepted, which tables they choose, and what a folder remembers of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from corrdp.errors import ConfigurationError
from corrdp.experiments.catalogue import NAMES, experiment_named
from corrdp.experiments.experiment import check, chosen_tables, planned, remembered
from corrdp.experiments.settings import ExperimentSettings, remembered_settings, short

GIVEN = {"CorrDP given", "published, given"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilons", (0.0,)),
        ("epsilons", (math.nan,)),
        ("epsilons", (math.inf,)),
        ("epsilons", ()),
        ("epsilons", (1.0, 1.0)),
        ("epsilons", ("1",)),
        ("delta", 0.0),
        ("delta", 1.0),
        ("delta", math.nan),
        ("delta", True),
        ("sensitive", ()),
        ("sensitive", ("sex", "sex")),
        ("sensitive", "sex"),
        ("sensitive", ("",)),
        ("label_roles", ("secret",)),
        ("label_roles", ()),
        ("seeds", 0),
        ("seeds", 1.5),
        ("seeds", True),
        ("solver", "newton"),
        ("calibration", ("best",)),
        ("calibration", ()),
    ],
)
def test_wrong_settings_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=name.removesuffix("s")):
        ExperimentSettings(**{name: value})


def test_usual_settings_leave_the_entry_that_folders_have() -> None:
    # folders of version 0.1.0 hold exactly this and their version
    assert ExperimentSettings().to_entry() == {"quick": False}
    asked = ExperimentSettings(
        epsilons=(1.0,),
        delta=1e-6,
        label_roles=("sensitive",),
        seeds=2,
        calibration=("optimal",),
        quick=True,
    )
    assert asked.to_entry() == {"quick": True}


@pytest.mark.parametrize(
    "settings",
    [
        ExperimentSettings(),
        ExperimentSettings(delta=1e-7, sensitive=("age", "sex"), solver="sgd", quick=True),
    ],
)
def test_an_entry_is_read_back(settings: ExperimentSettings) -> None:
    assert remembered_settings(settings.to_entry()) == settings


@pytest.mark.parametrize(
    "entry", [{"speed": 1}, {"quick": True, "delta": "x"}, {"sensitive": "sex"}, {"solver": [1]}]
)
def test_other_entries_are_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        remembered_settings(entry)


def test_delta_is_written_as_people_do() -> None:
    assert [short(value) for value in (1e-6, 2.5e-10, 0.01)] == ["1e-6", "2.5e-10", "0.01"]


def test_no_choice_means_every_table_with_every_way() -> None:
    for name in NAMES:
        experiment = experiment_named(name)
        assert chosen_tables(experiment, ExperimentSettings()) == experiment.tables


def test_label_roles_choose_tables() -> None:
    adult = experiment_named("adult")
    settings = ExperimentSettings(label_roles=("sensitive",), seeds=1, epsilons=(1.0,))
    assert [table.key for table in chosen_tables(adult, settings)] == [("adult", "sensitive")]
    assert {run.roles for run in planned(adult, settings)} == {("sensitive",)}
    with pytest.raises(ConfigurationError, match="use insensitive, sensitive"):
        chosen_tables(adult, ExperimentSettings(label_roles=("public",)))


def test_calibration_chooses_the_ways_of_corrdp_and_keeps_baselines() -> None:
    adult = experiment_named("adult")
    optimal, published = (
        set(chosen_tables(adult, ExperimentSettings(calibration=(one,)))[0].methods)
        for one in ("optimal", "published")
    )
    assert {"DP", "DP, one scale", "semi", "partial", "d = 1 per column"} <= optimal & published
    assert optimal - published == {"CorrDP given", "CorrDP UCB", "CorrDP private"}
    assert published - optimal == {"published, given", "published, UCB"}


def test_other_sensitive_columns_have_no_given_distances() -> None:
    adult = experiment_named("adult")
    tables = chosen_tables(adult, ExperimentSettings(sensitive=("sex", "age")))
    assert [table.key for table in tables] == [
        ("adult S=age,sex", "insensitive"),
        ("adult S=age,sex", "sensitive"),
    ]
    for table, own in zip(tables, adult.tables):
        assert set(own.methods) - set(table.methods) == GIVEN


def test_own_sensitive_columns_are_the_usual_settings() -> None:
    adult, medical = experiment_named("adult"), experiment_named("medical")
    turned = ExperimentSettings(sensitive=("sex", "race"))
    assert chosen_tables(adult, turned) == adult.tables
    assert remembered(adult, turned) == ExperimentSettings()
    second = ExperimentSettings(sensitive=("bmi", "sex"))
    assert {table.dataset for table in chosen_tables(medical, second)} == {"medical S=sex,bmi"}
    assert remembered(medical, second).to_entry() == {"quick": False}
    foreign = ExperimentSettings(sensitive=("smoker", "age"), solver="sgd", seeds=1)
    assert remembered(medical, foreign).to_entry() == {
        "quick": False,
        "sensitive": ["age", "smoker"],
        "solver": "sgd",
    }


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("synthetic", ExperimentSettings(sensitive=("u1",)), "simulated around s1"),
        ("synthetic", ExperimentSettings(delta=1e-4), "below 1/n = 0.0001.*choose a smaller"),
    ],
)
def test_an_experiment_refuses_before_it_runs(
    name: str, settings: ExperimentSettings, said: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}: .*{said}"):
        check(experiment_named(name), settings)


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("adult", ExperimentSettings(sensitive=("sex", "faith")), "faith.*workclass"),
        ("medical", ExperimentSettings(sensitive=("charges",)), "own role"),
        (
            "medical",
            ExperimentSettings(sensitive=("age", "sex", "bmi", "children", "smoker", "region")),
            "every column; leave out",
        ),
        ("medical", ExperimentSettings(delta=1e-3), r"delta=0\.001 .*1/n = 0\.000935"),
    ],
)
def test_columns_and_delta_are_checked_against_the_data(
    data_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    settings: ExperimentSettings,
    said: str,
) -> None:
    monkeypatch.setenv("CORRDP_DATA_HOME", str(data_dir))
    with pytest.raises(ConfigurationError, match=f"^{name}: .*{said}"):
        check(experiment_named(name), settings)
