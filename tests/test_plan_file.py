"""Plans: sections, admissible keys, models."""

from __future__ import annotations

import inspect
import math
from pathlib import Path

import pytest

from corrdp.distance import Distances, EstimateSettings
from corrdp.errors import ConfigurationError, MissingExtraError
from corrdp.linear_model import CorrDPLogisticRegression, CorrDPRidge
from corrdp.plan_file import MODELS, PROCESS_ONLY, ModelClass, file_section, read_plan
from corrdp.schema import Ignored

COLUMNS = """
[columns.x]
kind = "numeric"
low = 0
high = 1
role = "insensitive"
[columns.s]
kind = "categorical"
levels = ["a", "b"]
"""
CLASSES = '[label]\nname = "y"\nlevels = [0, 1]\nrole = "insensitive"\n'
NUMBER = '[label]\nname = "y"\nlow = 0\nhigh = 9\n'


def test_the_label_chooses_the_model() -> None:
    assert isinstance(read_plan(COLUMNS + CLASSES).estimator(), CorrDPLogisticRegression)
    assert isinstance(read_plan(COLUMNS + NUMBER).estimator(), CorrDPRidge)


def test_every_constructor_parameter_is_a_key() -> None:
    model = CorrDPLogisticRegression()
    values = {name: getattr(model, name) for name in inspect.signature(type(model)).parameters}
    private = {"epsilon", "delta", "distances", "adjacency", "records_per_person"}
    for name, value in values.items():
        if name in PROCESS_ONLY or not isinstance(value, (int, float, str)):
            continue
        section = "privacy" if name in private else "training"
        text = f"{COLUMNS}{CLASSES}[{section}]\n{name} = {value!r}\n"
        assert read_plan(text).parameters == {name: value}


@pytest.mark.parametrize("name", PROCESS_ONLY)
def test_objects_of_a_process_are_no_keys(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        read_plan(f"{COLUMNS}{CLASSES}[training]\n{name} = 1\n")


def test_distances_in_all_forms() -> None:
    def distances(text: str) -> object:
        plan = read_plan(f"{COLUMNS}{CLASSES}[privacy]\n{text}\n")
        return plan.parameters.get("distances")

    assert distances("") is None
    assert distances('distances = "private"') == "private"
    assert distances("[privacy.distances]\nx = 0.5") == {"x": 0.5}
    joint = distances("joint_distance = 0.7\n[privacy.distances]\nx = 0.5")
    assert joint == Distances.given({"x": 0.5}, 0.7)
    assert distances("[privacy.estimate]\nshare = 0.1") == EstimateSettings(share=0.1)
    with pytest.raises(ConfigurationError, match="shares"):
        distances("[privacy.estimate]\nshares = 0.1")
    with pytest.raises(ConfigurationError, match="joint_distance"):
        distances('joint_distance = 0.7\ndistances = "private"')


def test_infinity_and_mappings() -> None:
    plan = read_plan(
        f'{COLUMNS}{CLASSES}[privacy]\nepsilon = inf\n[training]\nclass_weight = {{"1" = 2.0}}\n'
    )
    assert math.isinf(plan.estimator().epsilon)
    assert plan.estimator().class_weight == {"1": 2.0}


def test_unconfirmed_entries() -> None:
    text = COLUMNS.replace("low = 0", "low = 0\nconfirmed = false") + CLASSES
    with pytest.raises(ConfigurationError, match="'x'"):
        read_plan(text)
    assert read_plan(text, unconfirmed="accept").schema.role("x") == "insensitive"


def test_written_plans_read_back() -> None:
    plan = read_plan(
        f"# remark\n{COLUMNS}{CLASSES}[privacy]\nepsilon = 0.5\n[file]\nskip_rows = 1\n"
    )
    again = read_plan(plan.to_toml())
    assert "remark" not in plan.to_toml()
    assert (again.schema, again.parameters, again.file) == (
        plan.schema,
        plan.parameters,
        plan.file,
    )


def test_file_section(tmp_path: Path) -> None:
    assert file_section(tmp_path / "none.toml").names is None
    path = tmp_path / "plan.toml"
    path.write_text('[file]\nnames = ["a", "b"]\n', encoding="utf-8")
    assert file_section(path).names == ("a", "b")
    path.write_text("[file", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="TOML"):
        file_section(path)


def test_a_model_of_an_absent_extra_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = ModelClass("corrdp_absent", classifier="C", extra="torch")
    monkeypatch.setitem(MODELS, "net", absent)
    with pytest.raises(MissingExtraError, match=r"corrdp\[torch\]"):
        read_plan(f'{COLUMNS}{CLASSES}[training]\nmodel = "net"\n')


def test_what_an_ignored_column_still_says_is_left_behind() -> None:
    """A draft's column that was set to ignored may keep its bounds; the copy does not."""
    leftover = (
        '[columns.z]\nkind = "ignored"\nlow = 3\nhigh = 777\nrole = "sensitive"\n'
        "confirmed = false\n"
    )
    plan = read_plan(leftover + COLUMNS + CLASSES)
    assert plan.schema.columns["z"] == Ignored()
    assert "777" not in plan.to_toml()
    with pytest.raises(ConfigurationError, match="lwo"):
        read_plan(leftover.replace("low", "lwo") + COLUMNS + CLASSES)
