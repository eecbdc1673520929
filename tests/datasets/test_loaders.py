"""The four public data sets: counts, shares, schemas, roles, frames, every way to a file."""

from __future__ import annotations

import csv
import hashlib
import io
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pytest

from corrdp.datasets import (
    Dataset,
    DatasetError,
    cache,
    load_adult,
    load_credit,
    load_medical_cost,
    load_sepsis,
)
from corrdp.datasets import adult as adult_module
from corrdp.datasets import credit as credit_module
from corrdp.datasets import medical_cost as medical_cost_module
from corrdp.datasets import sepsis as sepsis_module
from corrdp.datasets.dataset import choose_roles, given_distances
from corrdp.errors import ConfigurationError, CorrDPError, MissingExtraError, SchemaError
from corrdp.records import read_label, read_records
from corrdp.schema import Role, Schema

Loader = Callable[..., Dataset]
LOADERS: list[Loader] = [load_adult, load_credit, load_medical_cost, load_sepsis]
UCI_CREDIT_SHA256 = "45bcf4df62ff2e237a74eb155cabfb4bbbc171219a0637daef44fdad07503dd0"


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(url: str) -> bytes:
        raise OSError("no network")

    monkeypatch.setattr(cache, "download", refuse)


@pytest.fixture
def real(data_dir: Path, monkeypatch: pytest.MonkeyPatch, offline: None) -> Path:
    monkeypatch.setenv("CORRDP_DATA_HOME", str(data_dir))
    return data_dir


def rows(dataset: Dataset) -> int:
    return int(read_records(dataset.X, dataset.schema).size)


def test_adult(real: Path) -> None:
    data = load_adult()
    assert rows(data) == len(data.y) == 32_561
    assert np.mean(data.y == ">50K") == pytest.approx(0.24081, abs=5e-6)
    assert data.y_test is not None and len(data.y_test) == 16_281
    assert set(data.y) == set(data.y_test) == {"<=50K", ">50K"}
    assert list(data.X.columns) == list(data.schema.columns)
    assert data.schema.names("sensitive") == ("race", "sex")
    assert data.schema.role("income") == "insensitive"
    assert (data.X["workclass"] == "?").sum() == 1_836
    assert (data.X["native-country"] == "Holand-Netherlands").sum() == 1
    assert data.X["capital-gain"].max() == 99_999  # clamped by the schema, not by the loader
    assert data.distances is not None
    assert data.distances["age"] == 0.3 and data.distances["income"] == 0.31
    assert data.distances["occupation"] == 1.0 and "race" not in data.distances
    assert read_label(data.y, data.schema.label, 32_561).sum() == 7_841


def test_adult_declares_every_level_and_no_empty_one(real: Path) -> None:
    data = load_adult(frame="dict")
    for name, column in data.schema.used.items():
        if hasattr(column, "names"):
            assert set(column.names) == set(data.X[name].tolist()), name


def test_credit(real: Path) -> None:
    data = load_credit()
    assert rows(data) == len(data.y) == 30_000
    assert data.y.mean() == pytest.approx(0.2212, abs=1e-9)
    assert data.schema.names("sensitive") == ("SEX", "MARRIAGE", "AGE")
    assert data.X["LIMIT_BAL"].max() == 1_000_000  # written 1e+06 in the file
    assert data.X["BILL_AMT3"].max() == 1_664_089
    education = read_records(data.X, data.schema).columns["EDUCATION"]
    assert np.bincount(education).tolist() == [10_585, 14_030, 4_917, 123, 280 + 51 + 14]
    assert data.distances is not None
    assert data.distances["PAY_0"] == 0.3
    assert data.distances["default.payment.next.month"] == 0.2
    assert data.X_test is None and data.y_test is None


def test_medical_cost(real: Path) -> None:
    data = load_medical_cost()
    assert rows(data) == len(data.y) == 1_338
    assert data.y.mean() == pytest.approx(13_270.42, abs=0.005)
    assert data.schema.label.bounds == (0.0, 65_000.0)
    assert data.distances is None
    assert (data.X["smoker"] == "yes").sum() == 274


def test_sepsis(real: Path) -> None:
    data = load_sepsis()
    assert rows(data) == len(data.y) == 110_204
    assert data.y.mean() == pytest.approx(0.92645, abs=5e-6)
    assert data.y_test is not None and len(data.y_test) == 137
    assert (data.X["episode_number"] == 1).sum() == 84_811  # persons
    study = load_sepsis(cohort="study", sensitive=("age_years",))
    assert len(study.y) == 19_051
    assert study.schema.names("sensitive") == ("age_years",)
    with pytest.raises(ConfigurationError, match="cohort='all'"):
        load_sepsis(cohort="all")  # type: ignore[arg-type]


@pytest.mark.parametrize("load", LOADERS)
def test_every_value_fits_its_schema(load: Loader, real: Path) -> None:
    data = load(frame="dict")
    assert Schema.from_toml(data.schema.to_toml()) == data.schema
    assert rows(data) == len(data.y)
    if data.X_test is not None:
        assert data.y_test is not None
        assert read_records(data.X_test, data.schema).size == len(data.y_test)
    for text in (data.name, data.description, data.licence, data.source):
        assert text
    assert repr(data).startswith("Dataset(")


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow", "dict"])
def test_frames_hold_the_same_values(frame: Any, real: Path) -> None:
    base = load_medical_cost(frame="dict").X
    table = load_medical_cost(frame=frame).X
    if frame != "dict":
        native = nw.from_native(table, eager_only=True)
        assert native.implementation.value == frame
        table = {name: native[name].to_numpy() for name in native.columns}
    assert list(table) == list(base)
    assert all(np.array_equal(table[name], base[name]) for name in base)


def test_missing_library_names_what_to_install(real: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for frame, extra in (("pandas", "demo"), ("pyarrow", "parquet"), ("polars", "polars")):
        monkeypatch.setitem(sys.modules, frame, None)
        with pytest.raises(MissingExtraError, match=extra):
            load_medical_cost(frame=frame)  # type: ignore[arg-type]
    assert isinstance(load_medical_cost(frame="dict").X, dict)
    with pytest.raises(ConfigurationError, match="frame='spark'"):
        load_medical_cost(frame="spark")  # type: ignore[arg-type]


def test_roles(real: Path) -> None:
    data = load_medical_cost(sensitive=["sex", "bmi"], label_role="public")
    assert data.schema.names("sensitive") == ("sex", "bmi")
    assert data.schema.names("insensitive") == ("age", "children", "smoker", "region")
    assert data.schema.label.role == "public"
    with pytest.raises(SchemaError, match="height"):
        load_medical_cost(sensitive=("height",))
    with pytest.raises(SchemaError, match="secret"):
        load_medical_cost(label_role="secret")  # type: ignore[arg-type]
    for wrong, match in (("sex", "sequence"), (("charges",), "label_role"), ((), "nothing")):
        with pytest.raises(ConfigurationError, match=match):
            load_medical_cost(sensitive=wrong)


def test_given_distances_belong_to_the_usual_sensitive_tuple() -> None:
    def given(sensitive: tuple[str, ...], label_role: Role) -> dict[str, float] | None:
        schema = choose_roles(credit_module.SCHEMA, sensitive, label_role)
        return given_distances(schema, credit_module.USUAL, {credit_module.LABEL: 0.2}, 0.3)

    same = given(("AGE", "SEX", "MARRIAGE"), "insensitive")
    assert same is not None and same[credit_module.LABEL] == 0.2
    assert len(same) == 21 and set(same.values()) == {0.3, 0.2}
    public = given(credit_module.USUAL, "public")
    assert public is not None and credit_module.LABEL not in public
    assert given(credit_module.USUAL, "sensitive") is None
    assert given(("SEX",), "insensitive") is None


@pytest.mark.parametrize("load", LOADERS)
def test_offline_without_files(
    load: Loader, offline: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORRDP_DATA_HOME", str(tmp_path))
    with pytest.raises(DatasetError) as caught:
        load()
    text = str(caught.value)
    assert "\n" not in text and str(tmp_path) in text and "CORRDP_DATA_HOME" in text
    assert isinstance(caught.value, CorrDPError)
    modules = (adult_module.TRAIN[0], credit_module.FILE, medical_cost_module.FILE)
    files = [*modules, sepsis_module.FILES["primary"]]
    assert any(file.name in text and file.sha256 in text for file in files)
    assert list(tmp_path.iterdir()) == []


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, bytes]:
    """What the world answers, by address; loaders start with an empty folder."""
    pages: dict[str, bytes] = {}
    monkeypatch.setenv("CORRDP_DATA_HOME", str(tmp_path / "empty"))
    monkeypatch.setattr(cache, "download", lambda url: pages[url])
    return pages


def test_adult_original_and_headered_files_agree(
    data_dir: Path, served: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("adult.data", "adult.test")
    served[str(adult_module.TRAIN[0].url)] = zipped(
        {"Index": b"-", **{name: (data_dir / name).read_bytes() for name in names}}
    )
    original = load_adult(frame="dict")
    assert sorted(path.name for path in (tmp_path / "empty").iterdir()) == list(names)
    served.clear()
    assert cache.fetch(*adult_module.TRAIN)[0] is adult_module.TRAIN[0]

    monkeypatch.setenv("CORRDP_DATA_HOME", str(tmp_path))
    for name in ("adult_train.csv", "adult_test.csv"):
        (tmp_path / name).write_bytes((data_dir / name).read_bytes())
    headered = load_adult(frame="dict")
    assert np.array_equal(headered.y, original.y)
    assert np.array_equal(headered.y_test, original.y_test)
    for table, other in ((headered.X, original.X), (headered.X_test, original.X_test)):
        assert all(np.array_equal(table[name], other[name]) for name in table)


def uci_form(content: bytes) -> bytes:
    """The credit file as the source publishes it: whole numbers, X1.., Windows line ends."""
    _, *lines = csv.reader(io.StringIO(content.decode()))
    header = ["ID", *(f"X{i}" for i in range(1, 24)), "Y"]
    whole = ([str(int(float(value))) for value in line] for line in lines)
    return "".join(",".join(line) + "\r\n" for line in (header, *whole)).encode()


def test_credit_is_rewritten_from_the_source(
    data_dir: Path, served: dict[str, bytes], tmp_path: Path
) -> None:
    pinned = (data_dir / "UCI_Credit_Card.csv").read_bytes()
    source = uci_form(pinned)
    assert hashlib.sha256(source).hexdigest() == UCI_CREDIT_SHA256
    served[str(credit_module.FILE.url)] = source
    assert len(load_credit(frame="dict").y) == 30_000
    assert (tmp_path / "empty" / "UCI_Credit_Card.csv").read_bytes() == pinned


def test_credit_that_cannot_be_matched_says_what_to_place(
    served: dict[str, bytes], tmp_path: Path
) -> None:
    served[str(credit_module.FILE.url)] = b"ID,Y\r\n1,0\r\n"
    with pytest.raises(DatasetError, match=r"place a file UCI_Credit_Card\.csv") as caught:
        load_credit()
    assert credit_module.FILE.sha256 in str(caught.value)
    changed = ",".join(["ID", *(f"X{i}" for i in range(1, 24)), "Y"]) + "\n" + "1," * 24 + "1\n"
    served[str(credit_module.FILE.url)] = changed.encode()
    with pytest.raises(DatasetError, match=r"expected a0f0ab49.*nothing was kept.*place a file"):
        load_credit()
    assert not (tmp_path / "empty").exists()


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("0", "0"),
        ("-2", "-2"),
        ("20000", "20000"),
        ("100000", "1e+05"),
        ("-100000", "-1e+05"),
        ("120000", "120000"),
        ("1000000", "1e+06"),
        ("12000000", "1.2e+07"),
    ],
)
def test_credit_numbers_are_written_in_the_shorter_form(value: str, written: str) -> None:
    header = ",".join(["ID", *(f"X{i}" for i in range(1, 24)), "Y"])
    line = ",".join([value, *["0"] * 24])
    last = credit_module.from_uci(f"{header}\r\n{line}\r\n".encode()).splitlines()[1]
    assert last.decode().split(",")[0] == written
    assert float(written) == float(value)


def test_sepsis_from_an_archive_in_an_archive(
    data_dir: Path, served: dict[str, bytes], tmp_path: Path
) -> None:
    def windows(cohort: str) -> bytes:
        return (data_dir / f"sepsis_{cohort}.csv").read_bytes().replace(b"\n", b"\r\n")

    cohorts = ("primary", "study", "validation")
    inner = {f"x_sepsis_survival_{cohort}_cohort.csv": windows(cohort) for cohort in cohorts}
    outer = zipped({"x_sepsis_survival_dataset.zip": zipped(inner)})
    served[str(sepsis_module.FILES["primary"].url)] = outer
    assert len(load_sepsis(frame="dict").y) == 110_204
    for cohort in ("primary", "validation"):
        name = f"sepsis_{cohort}.csv"
        assert (tmp_path / "empty" / name).read_bytes() == (data_dir / name).read_bytes()


def test_insurance_is_downloaded_as_it_is(data_dir: Path, served: dict[str, bytes]) -> None:
    served[str(medical_cost_module.FILE.url)] = (data_dir / "insurance.csv").read_bytes()
    assert len(load_medical_cost(frame="dict").y) == 1_338


def test_dataset_checks_itself() -> None:
    schema, X, y = medical_cost_module.SCHEMA, {"age": np.zeros(2)}, np.zeros(2)
    with pytest.raises(ConfigurationError, match="labels of shape"):
        Dataset("t", X, np.zeros(3), schema)
    with pytest.raises(ConfigurationError, match="together"):
        Dataset("t", X, y, schema, X_test=X)
    for distance in (float("nan"), -0.1, 1.1):
        with pytest.raises(ConfigurationError, match="not in"):
            Dataset("t", X, y, schema, distances={"age": distance})
    with pytest.raises(ConfigurationError, match="no distance"):
        Dataset("t", X, y, schema, distances={"age": 0.5})  # sensitive by default
